/*
 * The directives of paratrace.conf: one row each.  Inside of conf*.c.
 */
#ifndef PT_CONF_TABLE_H
#define PT_CONF_TABLE_H

#include <stddef.h>

#include "common/conf.h"

enum pt_directive_kind {
    PT_DIRECTIVE_STRING, /* char *, NULL if empty */
    PT_DIRECTIVE_LIST,   /* struct pt_conf_list */
    PT_DIRECTIVE_NUMBER, /* uint64_t, 0 if empty */
    PT_DIRECTIVE_SIZE,
    PT_DIRECTIVE_TIME,
    PT_DIRECTIVE_CHOICE, /* int or enum: the place of the word in `words` */
};

struct pt_directive {
    const char *name;
    enum pt_directive_kind kind;
    size_t field; /* of struct pt_conf */
    /* STRING, and each value of a LIST: -1 and the reason if it is wrong */
    int (*check)(const char *value, struct pt_err *err);
    int (*read)(const char *value, uint64_t *number, struct pt_err *err);
    unsigned max;             /* LIST: values */
    const char *const *words; /* CHOICE: NULL behind the last one */
    const char *standard;     /* what holds if it is not set, as text; NULL: nothing */
};

#define PT_DIRECTIVES 31
extern const struct pt_directive pt_directives[PT_DIRECTIVES];

/* The place of the word, or -1 and the reason. */
int pt_directive_choose(const struct pt_directive *d, const char *word, struct pt_err *err);

/*
 * Do the settings go together?  -1: err has the reason, *wrong is the directive to be
 * blamed.
 */
int pt_conf_check_whole(const struct pt_conf *conf, const struct pt_directive **wrong,
                        struct pt_err *err);

#endif
