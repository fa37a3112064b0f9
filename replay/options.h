/*
 * The command line of ptreplay.
 */
#ifndef PT_REPLAY_OPTIONS_H
#define PT_REPLAY_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "common/err.h"

enum replay_mode {
    MODE_CAUSAL, /* compute and dependencies */
    MODE_THINK,  /* the think time of the trace, no dependencies */
    MODE_TIMED,  /* each event when the trace has it */
    MODE_AFAP,   /* as fast as possible */
    NMODES
};

extern const char *const mode_names[NMODES];

enum options_action {
    OPTIONS_RUN,
    OPTIONS_HELP,
    OPTIONS_VERSION,
};

struct options {
    enum options_action action;
    const char *store;
    const char *root;
    const char *output; /* NULL: stdout */
    enum replay_mode mode;
    bool json;
    bool prepare; /* make the files that the trace needs */
    bool replay;
    bool keep;  /* leave the files afterwards */
    bool force; /* use a root that holds files of others */
    bool ignore_errors;
};

/* Fills `o`, which points into argv; -1 and err for a wrong command line. */
int options_parse(struct options *o, int argc, char **argv, struct pt_err *err);

void options_help(FILE *out);

#endif
