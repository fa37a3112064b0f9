/*
 * Whose a run directory is.  Two steps may be told the same name: those of one script, the
 * components of a heterogeneous job, the tasks of an array.  The first to come leaves a mark,
 * and the watchdogs of its other hosts find that it is their own.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "watchdog/watchdog.h"

#define MARK ".step"
#define NAPS 200 /* of NAP ns, for who has made the mark to write it */
#define NAP  5000000

static int make_mark(int dir, const char *key)
{
    int fd = openat(dir, MARK, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return -1;
    ssize_t n = write(fd, key, strlen(key));
    if (close(fd) || n != (ssize_t)strlen(key)) {
        unlinkat(dir, MARK, 0);
        errno = ENOSPC;
        return -1;
    }
    return 0;
}

/* 1: the mark is that key; 0: another's; -1: there is none. */
static int is_marked(int dir, const char *key)
{
    char found[128];
    struct timespec nap = {0, NAP};
    for (int naps = 0; naps < NAPS; naps++) {
        int fd = openat(dir, MARK, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
            return errno == ENOENT ? -1 : 0;
        ssize_t n = read(fd, found, sizeof(found));
        close(fd);
        if (n)
            return n == (ssize_t)strlen(key) && !memcmp(found, key, (size_t)n);
        nanosleep(&nap, NULL);
    }
    return 0;
}

int wd_claim_take(const struct wd *wd)
{
    const char *key = wd->opt.claim;
    if (!key)
        return 0; /* no step: the run file itself must not be there */
    for (;;) {
        int marked = is_marked(wd->rundir, key);
        if (marked >= 0)
            return !marked;
        int files = wd_run_files(wd->rundir);
        if (files < 0)
            return -1;
        /*
         * A run that has ended leaves no mark but its files, and is never written over.  One
         * that has just begun may have left both since we looked: the mark is there first.
         */
        if (files > 0) {
            marked = is_marked(wd->rundir, key);
            return marked != 1;
        }
        if (!make_mark(wd->rundir, key))
            return 0;
        if (errno != EEXIST)
            return -1;
    }
}

void wd_claim_release(const struct wd *wd)
{
    if (wd->opt.claim)
        unlinkat(wd->rundir, MARK, 0);
}
