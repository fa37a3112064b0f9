/*
 * The environment that the plugin gives to a traced task.
 */
#ifndef PT_ENV_H
#define PT_ENV_H

/* Abstract name (without the leading NUL) of the watchdog's socket. */
#define PT_ENV_SOCKET "PARATRACE_SOCKET"

/* Lets programs that are built with ASan start though a library is preloaded. */
#define PT_ENV_ASAN    "ASAN_OPTIONS"
#define PT_ASAN_OPTION "verify_asan_link_order=0"

#endif
