/*
 * The environment that the plugin gives to a traced task.
 */
#ifndef PT_ENV_H
#define PT_ENV_H

/* Abstract name (without the leading NUL) of the watchdog's socket. */
#define PT_ENV_SOCKET "PARATRACE_SOCKET"

#endif
