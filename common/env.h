/*
 * The environment that the plugin gives to a traced task.
 */
#ifndef PT_ENV_H
#define PT_ENV_H

/* Abstract name (without the leading NUL) of the watchdog's socket. */
#define PT_ENV_SOCKET "PARATRACE_SOCKET"
/* Its pid: the shared memory is its descriptor PT_MEMORY_FD. */
#define PT_ENV_WATCHDOG "PARATRACE_WATCHDOG"
#define PT_MEMORY_FD    100

/* Lets programs that are built with ASan start though a library is preloaded. */
#define PT_ENV_ASAN    "ASAN_OPTIONS"
#define PT_ASAN_OPTION "verify_asan_link_order=0"

/*
 * From srun to the hosts of a step: "SECRET HOST ADDRESS", the secret in hex, the step's
 * first host and where it is.  Slurm hands on what begins with SLURM even with
 * --export=NONE.  Tasks do not get to see it.
 */
#define PT_ENV_PEERS    "SLURM_PARATRACE_PEERS"
#define PT_PEERS_SECRET 16 /* bytes */

#endif
