/*
 * Running other programs, without a shell.
 */
#ifndef PT_CAMPAIGN_SPAWN_H
#define PT_CAMPAIGN_SPAWN_H

#include "campaign/util.h"

struct spawn {
    const char *cwd; /* NULL: ours */
    const char *out; /* file for stdout; NULL: returned or ours */
    char **env;      /* NULL: ours */
};

/*
 * Runs argv (found along PATH) and waits.  If `text` is not NULL, the program's output
 * is returned there, for free(), also when it failed.  Returns its wait status, or -1
 * and err if it could not be started.  Its stderr is ours.
 */
int spawn_run(char *const argv[], const struct spawn *how, char **text, struct pt_err *err);

/* The absolute name of a program: beside our own, else along PATH; NULL and err. */
char *spawn_find(const char *program, struct pt_err *err);

/* Our own program, for free(); NULL and err. */
char *spawn_self(struct pt_err *err);

/* "exit status 3" or "signal 9 (Killed)". */
const char *spawn_describe(int status, char buf[64]);

#endif
