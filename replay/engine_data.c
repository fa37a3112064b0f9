/*
 * Calls on descriptors.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "replay/engine_posix.h"

/* No call moves more than this, whatever it is asked for. */
#define MAX_TRANSFER 0x7ffff000

static size_t length(const struct engine_call *c)
{
    return c->event->len < MAX_TRANSFER ? (size_t)c->event->len : MAX_TRANSFER;
}

/* The calls with an offset take -1 for "at the position" where they can, and did. */
static int at_position(const struct engine_call *c)
{
    return c->event->off == -1 && !c->event->err;
}

int64_t posix_close(const struct engine_call *c)
{
    int rc;

    if (c->live.stream) {
        rc = fclose(c->live.stream);
        free(c->live.buffer);
        return rc;
    }
    return c->live.dir ? closedir(c->live.dir) : close(c->live.fd);
}

int64_t posix_dup(const struct engine_call *c)
{
    return fcntl(c->live.fd, F_DUPFD_CLOEXEC, 0);
}

int64_t posix_read(const struct engine_call *c)
{
    return read(c->live.fd, c->buffer, length(c));
}

int64_t posix_write(const struct engine_call *c)
{
    return write(c->live.fd, c->buffer, length(c));
}

int64_t posix_pread(const struct engine_call *c)
{
    return at_position(c) ? posix_read(c) : pread(c->live.fd, c->buffer, length(c), c->event->off);
}

int64_t posix_pwrite(const struct engine_call *c)
{
    return at_position(c) ? posix_write(c)
                          : pwrite(c->live.fd, c->buffer, length(c), c->event->off);
}

int64_t posix_seek(const struct engine_call *c)
{
    return lseek(c->live.fd, c->event->off, c->event->whence);
}

int64_t posix_fsync(const struct engine_call *c)
{
    return fsync(c->live.fd);
}

int64_t posix_fdatasync(const struct engine_call *c)
{
    return fdatasync(c->live.fd);
}

int64_t posix_sync(const struct engine_call *c)
{
    (void)c;
    sync();
    return 0;
}

int64_t posix_syncfs(const struct engine_call *c)
{
    return syncfs(c->live.fd);
}

int64_t posix_syncrange(const struct engine_call *c)
{
    return sync_file_range(c->live.fd, c->event->off, c->event->len, (unsigned)c->event->oflags);
}

int64_t posix_truncate(const struct engine_call *c)
{
    return ftruncate(c->live.fd, c->event->len);
}

/* fallocate, or what stands for it where a file system has none, as posix_fallocate does. */
int64_t posix_allocate(const struct engine_call *c)
{
    const struct pt_store_event *ev = c->event;
    int rc = fallocate(c->live.fd, ev->oflags, ev->off, ev->len);

    if (rc < 0 && errno == EOPNOTSUPP && ev->oflags == 0) {
        errno = posix_fallocate(c->live.fd, ev->off, ev->len);
        rc = errno ? -1 : 0;
    }
    return rc;
}

int64_t posix_advise(const struct engine_call *c)
{
    errno = posix_fadvise(c->live.fd, c->event->off, c->event->len, c->event->oflags);
    return errno ? -1 : 0;
}

int64_t posix_readahead(const struct engine_call *c)
{
    return readahead(c->live.fd, c->event->off, length(c));
}

/* What went to a socket or a terminal is only read, as much as it was. */
static int64_t read_only(const struct engine_call *c)
{
    const struct pt_store_event *ev = c->event;
    size_t n = ev->ret > 0 ? (size_t)ev->ret : 0;

    return ev->off < 0 ? read(c->live.fd, c->buffer, n) : pread(c->live.fd, c->buffer, n, ev->off);
}

int64_t posix_sendfile(const struct engine_call *c)
{
    off_t off = c->event->off;

    if (c->fd2 < 0)
        return read_only(c);
    return sendfile(c->fd2, c->live.fd, off < 0 ? NULL : &off, (size_t)c->event->len);
}

int64_t posix_copyrange(const struct engine_call *c)
{
    off64_t off = c->event->off, off2 = c->event->off2;

    if (c->fd2 < 0)
        return read_only(c);
    return copy_file_range(c->live.fd, off < 0 ? NULL : &off, c->fd2, off2 < 0 ? NULL : &off2,
                           (size_t)c->event->len, 0);
}

/* ---- mapped files: which pages the program touched is not known ---------------------- */

static void *map_file(const struct engine_call *c)
{
    int prot = c->event->oflags & (PROT_READ | PROT_WRITE);
    size_t len = (size_t)c->event->len;
    void *p = mmap(NULL, len, prot, MAP_SHARED, c->live.fd, c->event->off);

    /* Writing to what is open for reading was a private mapping. */
    if (p == MAP_FAILED && errno == EACCES)
        p = mmap(NULL, len, prot, MAP_PRIVATE, c->live.fd, c->event->off);
    return p;
}

int64_t posix_mmap(const struct engine_call *c)
{
    void *p = map_file(c);

    if (p == MAP_FAILED)
        return -1;
    if (mappings_add(c->mappings, c->process, c->event->addr, (size_t)c->event->len, p) == 0)
        return 0;
    munmap(p, (size_t)c->event->len);
    errno = ENOMEM;
    return -1;
}

/* The program may unmap, or sync, what is not replayed: a device. */
int64_t posix_munmap(const struct engine_call *c)
{
    return mappings_cut(c->mappings, c->process, c->event->addr, (size_t)c->event->len);
}

int64_t posix_msync(const struct engine_call *c)
{
    size_t len;
    void *p = mappings_find(c->mappings, c->process, c->event->addr, &len);

    if (!p)
        return 0;
    return msync(p, c->event->len < (int64_t)len ? (size_t)c->event->len : len, c->event->oflags);
}

/* ---- attributes ------------------------------------------------------------------------ */

int64_t posix_fstat(const struct engine_call *c)
{
    struct stat st;

    return fstat(c->live.fd, &st);
}

int64_t posix_fstatfs(const struct engine_call *c)
{
    struct statfs st;

    return fstatfs(c->live.fd, &st);
}

/* Never makes a program that runs as somebody else. */
int64_t posix_fchmod(const struct engine_call *c)
{
    return fchmod(c->live.fd, c->event->mode & 01777);
}

int64_t posix_futime(const struct engine_call *c)
{
    return futimens(c->live.fd, NULL);
}

/* Owners and attributes are only read: to change them needs rights, or their values. */
int64_t posix_fattribute(const struct engine_call *c)
{
    char value[256];

    if (!c->text)
        return posix_fstat(c);
    return fgetxattr(c->live.fd, c->text, value, sizeof(value)) < 0 && errno != ENODATA &&
                   errno != ENOTSUP && errno != ERANGE
               ? -1
               : 0;
}
