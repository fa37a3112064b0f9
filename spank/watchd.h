/*
 * The watchdog as a process: started as the user, spoken to in lines over a control
 * socket, ended within bounds.
 *
 * The watchdog finds its end of the socket as descriptor 3.  It sends the byte 'R'
 * when tasks may connect, or "error TEXT\n" if it cannot serve; then takes
 * "peers SECRET ADDRESS\n" (in hex; of the step's first host), "rank TASK RANK\n" (where
 * they differ), "exit TASK STATUS\n" (global task id, wait status) and "finish\n"; sends "wait\n"
 * every second while other hosts need it, then "summary TEXT\n" (empty: nothing to tell), and
 * closes.  When the other end is closed it has to end too.
 */
#ifndef PT_WATCHD_H
#define PT_WATCHD_H

#include <stddef.h>
#include <sys/types.h>

#include "common/err.h"

#define PT_WATCHD_CONTROL_FD 3
#define PT_WATCHD_LINE       5120 /* bytes: no line of its is longer */

struct pt_watchd_how {
    const char *program;
    char *const *argv;
    uid_t uid;
    gid_t gid;
    const gid_t *groups;
    size_t ngroups;
    const char *cwd; /* absolute */
    mode_t umask;
    const char *first_line; /* it finds there already; NULL: none.  "key HEX\n": --anonymise */
};

struct pt_watchd;

/*
 * Starts it with the rights of that user and no others, and waits until it is ready.
 * NULL and err if it could not be started or was not ready in time; then it is gone.
 * The caller may have been root and hold the user's effective id.
 */
struct pt_watchd *pt_watchd_start(const struct pt_watchd_how *how, int timeout_ms,
                                  struct pt_err *err);

/* Its process id. */
pid_t pt_watchd_pid(const struct pt_watchd *w);

/* Sends a line without ever waiting; -1 and errno if it could not be sent. */
int pt_watchd_send(struct pt_watchd *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Tells it to finish and waits until it has ended; its summary is then in summary[].
 * If it does not end in time it is killed: -1 and err, as when it ended without a
 * summary.
 */
int pt_watchd_finish(struct pt_watchd *w, int timeout_ms, char *summary, size_t size,
                     struct pt_err *err);

/* Frees; a watchdog that still runs sees the control socket closed. */
void pt_watchd_destroy(struct pt_watchd *w);

#endif
