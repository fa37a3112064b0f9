#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "campaign/util.h"

static void *check(void *p)
{
    if (!p) {
        fputs("ptcampaign: out of memory\n", stderr);
        exit(1);
    }
    return p;
}

void *xcalloc(size_t n, size_t size)
{
    return check(calloc(n ? n : 1, size));
}

void *xrealloc(void *p, size_t n, size_t size)
{
    return check(reallocarray(p, n ? n : 1, size));
}

char *xstrdup(const char *s)
{
    return s ? check(strdup(s)) : NULL;
}

char *xasprintf(const char *fmt, ...)
{
    char *s;
    va_list ap;

    va_start(ap, fmt);
    int n = vasprintf(&s, fmt, ap);
    va_end(ap);
    return check(n < 0 ? NULL : s);
}

void list_take(struct list *l, char *s)
{
    l->v = xrealloc(l->v, l->n + 2, sizeof(*l->v));
    l->v[l->n++] = s;
    l->v[l->n] = NULL;
}

void list_add(struct list *l, const char *s)
{
    list_take(l, xstrdup(s));
}

void list_clear(struct list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i]);
    free(l->v);
    *l = (struct list){0};
}

int parse_number(const char *s, long min, long max, long *value)
{
    char *end;

    if (*s < '0' || *s > '9')
        return -1;
    errno = 0;
    long v = strtol(s, &end, 10);
    if (errno || *end || v < min || v > max)
        return -1;
    *value = v;
    return 0;
}

/* ---- files --------------------------------------------------------------- */

static char *read_all(int fd, size_t max, size_t *len)
{
    struct stat st;
    if (fstat(fd, &st))
        return NULL;
    if (!S_ISREG(st.st_mode)) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
        return NULL;
    }
    if ((uintmax_t)st.st_size > max) {
        errno = EFBIG;
        return NULL;
    }
    char *text = xcalloc((size_t)st.st_size + 1, 1);
    *len = 0;
    while (*len < (size_t)st.st_size) {
        ssize_t n = read(fd, text + *len, (size_t)st.st_size - *len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            free(text);
            return NULL;
        }
        if (n == 0)
            break;
        *len += (size_t)n;
    }
    text[*len] = '\0';
    return text;
}

char *file_read(const char *path, size_t max, size_t *len, struct pt_err *err)
{
    /* Not to be stopped by a pipe without a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    char *text = fd < 0 ? NULL : read_all(fd, max, len);
    if (!text)
        pt_err_errno(err, "cannot read '%s'", path);
    int saved = errno;
    if (fd >= 0)
        close(fd);
    errno = saved;
    return text;
}

static int write_all(int fd, const char *p, size_t len)
{
    while (len) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

int file_write(const char *path, const void *data, size_t len, int mode, struct pt_err *err)
{
    char *tmp = xasprintf("%s.tmp.XXXXXX", path);
    int rc = -1, fd = mkostemp(tmp, O_CLOEXEC);

    if (fd >= 0) {
        mode_t mask = umask(0);
        umask(mask);
        rc = write_all(fd, data, len) || fchmod(fd, (mode_t)mode & ~mask) || fsync(fd) ? -1 : 0;
        if (close(fd))
            rc = -1;
        if (!rc)
            rc = rename(tmp, path);
        if (rc) {
            int saved = errno;
            unlink(tmp);
            errno = saved;
        }
    }
    if (rc)
        pt_err_errno(err, "cannot write '%s'", path);
    free(tmp);
    return rc;
}
