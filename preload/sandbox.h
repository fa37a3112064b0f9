/*
 * Programs that may not make all system calls any more.
 */
#ifndef PT_SANDBOX_H
#define PT_SANDBOX_H

/* This process has made itself a sandbox: what it forks and executes is in it. */
extern int pt_sandboxed __attribute__((visibility("hidden")));

/* Makes a system call that makes a sandbox; returns what the kernel returns. */
long pt_sandbox(long nr, long op, long a, long b, long c, long d);

#endif
