/*
 * The site's configuration file, see paratrace.conf(5).
 */
#ifndef PT_CONF_H
#define PT_CONF_H

#include "common/err.h"

enum pt_log_level { PT_LOG_ERROR, PT_LOG_INFO, PT_LOG_DEBUG };

struct pt_conf_list {
    unsigned n;
    char **item;
};

/* A string is NULL where the file does not set it. */
struct pt_conf {
    char *default_spec;    /* SPEC of steps without --ptrace; NULL: not traced */
    char *preload_library; /* absolute paths */
    char *watchdog;
    char *period; /* defaults for the items of SPEC, valid as they are */
    char *buffer;
    char *output;
    struct pt_conf_list exclude_paths; /* globs, each good for nopath= and noexe= */
    struct pt_conf_list exclude_programs;
    enum pt_log_level log_level;
    int quiet;
};

/*
 * Reads the file (NULL: none, the defaults) into a new *conf, for the caller to
 * destroy.  On failure returns -1, *conf is NULL, errno is set (EINVAL: the file is
 * wrong) and err reads "file:line: directive 'x': reason".
 */
int pt_conf_load(const char *path, struct pt_conf **conf, struct pt_err *err);
void pt_conf_destroy(struct pt_conf *conf);

/* A path for the dynamic linker or exec: -1 and the reason if it cannot serve. */
int pt_conf_check_path(const char *path, struct pt_err *err);

#endif
