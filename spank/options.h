/*
 * What the plugin was set up with and asked for, and what follows from it.  No
 * Slurm in here: plugin.c and the per-context files translate.
 */
#ifndef PT_OPTIONS_H
#define PT_OPTIONS_H

#include <limits.h>
#include <stddef.h>

#include "common/conf.h"
#include "common/err.h"
#include "common/spec.h"
#include "spank/policy.h"

/* Slurm keeps the option of sbatch and salloc in this variable for inner sruns. */
#define PT_OPTIONS_ENV "SLURM_SPANK__SLURM_SPANK_OPTION_paratrace_ptrace"

struct pt_options {
    char conf_path[PATH_MAX]; /* from plugstack.conf; "": not set */
    char preload[PATH_MAX];
    char watchdog[PATH_MAX];
    char request[PT_SPEC_MAX]; /* --ptrace=SPEC */
    int requested;
    struct pt_conf *conf;
    struct pt_who who; /* for the site's policy; the caller fills it in and says so */
    int who_known;
};

void pt_options_init(struct pt_options *o);
void pt_options_clear(struct pt_options *o);

/* One argument of plugstack.conf: conf=FILE, preload=FILE or watchdog=FILE. */
int pt_options_argument(struct pt_options *o, const char *arg, struct pt_err *err);

/* The site's file; NULL: the compiled-in one. */
const char *pt_options_conf_path(const struct pt_options *o);

/*
 * Reads the site's file.  The compiled-in one may be missing, one named in
 * plugstack.conf may not.  On failure the defaults are in force.
 */
int pt_options_load(struct pt_options *o, struct pt_err *err);

/*
 * --ptrace=SPEC was given.  May be called again, the last one wins.  A wrong SPEC, or
 * one that the site does not allow (if its file has been read), gives -1 and err, and
 * the one before stays.
 */
int pt_options_request(struct pt_options *o, const char *text, struct pt_err *err);

/*
 * Decides: --ptrace, else `env` (the variable above; NULL: not set), else what the site
 * traces unasked.  Returns 1: trace with *spec, whose complete text (the site's items,
 * then the user's, so that who parses it needs no other source) is in text[]; 0: do
 * not trace; -1 and err: the SPEC is wrong or not allowed.
 */
int pt_options_decide(const struct pt_options *o, const char *env, struct pt_spec *spec,
                      char text[PT_SPEC_MAX], struct pt_err *err);

/*
 * What every SPEC of the site begins with, then `request`, as text.  -1 and err if that
 * is no SPEC.
 */
int pt_options_combine(const struct pt_options *o, const char *request, char text[PT_SPEC_MAX],
                       struct pt_err *err);

/* The library and the program: plugstack.conf's, else the site's, else compiled in. */
const char *pt_options_preload(const struct pt_options *o);
const char *pt_options_watchdog(const struct pt_options *o);

/*
 * LD_PRELOAD with the library behind what is there (NULL: nothing); unchanged if it
 * is there already.  -1 if the result does not fit.
 */
int pt_options_ld_preload(const char *old, const char *library, char *out, size_t size);

/* LD_PRELOAD without it; out[] has room for `old`. */
void pt_options_ld_preload_without(const char *old, const char *library, char *out);

#endif
