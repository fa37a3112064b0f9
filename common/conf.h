/*
 * The site's configuration file, see paratrace.conf(5).
 */
#ifndef PT_CONF_H
#define PT_CONF_H

#include <stdint.h>
#include <stdio.h>

#include "common/err.h"

enum pt_log_level { PT_LOG_ERROR, PT_LOG_INFO, PT_LOG_DEBUG };

/* Whose runs have the same anonymous name for the same file: nobody's (no), one user's, all. */
enum pt_anonymise { PT_ANONYMISE_NO, PT_ANONYMISE_USER, PT_ANONYMISE_SITE };

struct pt_conf_list {
    int set; /* the file has it, be it empty */
    unsigned n;
    char **item;
};

/* A string is NULL where the file does not set it, or sets it to "". */
struct pt_conf {
    /* traced unasked, see spank/policy.h */
    char *default_spec;
    struct pt_conf_list always_users, always_groups, always_accounts, always_partitions;
    /* who may */
    struct pt_conf_list allow_users, allow_groups;
    struct pt_conf_list throttle_users, throttle_groups;
    /* how much; 0: no limit of the site's */
    uint64_t min_period, max_period;
    uint64_t max_buffer;         /* bytes, a power of two */
    uint64_t max_hold, max_time; /* ns */
    uint64_t max_size;           /* bytes */
    /* defaults for the items of SPEC, valid as they are */
    char *period;
    char *buffer;
    char *output;
    char *output_root; /* with %u in it */
    int output_confined;
    struct pt_conf_list exclude_paths; /* globs, each good for nopath= and noexe= */
    struct pt_conf_list exclude_programs;
    enum pt_anonymise anonymise;
    char *anonymise_key; /* absolute paths */
    char *preload_library;
    char *watchdog;
    char *ports; /* how the hosts of a step connect, see common/hosts.h */
    char *munge;
    char *munge_socket;
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

/*
 * Writes all settings: as a file that reads the same, where the defaults are comments; or
 * as one JSON object, where a list that is not set is null.
 */
void pt_conf_print(const struct pt_conf *conf, FILE *f);
void pt_conf_print_json(const struct pt_conf *conf, FILE *f);

/* A path for the dynamic linker or exec: -1 and the reason if it cannot serve. */
int pt_conf_check_path(const char *path, struct pt_err *err);

/* Has the path a ".." in it? */
int pt_conf_climbs(const char *path);

/* Is it below that directory, as far as the names tell?  One that climbs is not. */
int pt_conf_is_below(const char *root, const char *path);

/* output_root with the user's name in it; -1 and err if that becomes too long. */
int pt_conf_root(const struct pt_conf *conf, const char *user, char *root, size_t size,
                 struct pt_err *err);

#endif
