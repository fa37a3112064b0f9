/*
 * The way to a run directory, walked so that nobody else can lead us astray.
 */
#ifndef PT_PATH_H
#define PT_PATH_H

#include "common/err.h"

struct wd_place {
    int dir;        /* the directory */
    int parent;     /* the one that it is in */
    char name[256]; /* its name there */
};

/*
 * Opens the directory and makes it, and those above it, where they are missing.  It must
 * be ours, no link, and not for all to write to.  On the way, what lies in a directory in
 * which all may create things must be root's or ours: a link there that somebody else has
 * planted is not followed, a directory not entered.  -1 and err if it cannot be had.
 */
int wd_path_open(const char *path, struct wd_place *place, struct pt_err *err);
void wd_path_close(struct wd_place *place);

#endif
