#include "config.h"

#include <fcntl.h>
#include <unistd.h>

#include "replay/engine.h"

/* No call moves more than this, whatever it is asked for. */
#define MAX_TRANSFER 0x7ffff000

static size_t length(const struct engine_call *c)
{
    return c->event->len < MAX_TRANSFER ? (size_t)c->event->len : MAX_TRANSFER;
}

static int64_t posix_open(const struct engine_call *c)
{
    return root_open(c->root, c->path, c->event->oflags | O_CLOEXEC, c->event->mode);
}

static int64_t posix_close(const struct engine_call *c)
{
    return close(c->fd);
}

static int64_t posix_dup(const struct engine_call *c)
{
    return fcntl(c->fd, F_DUPFD_CLOEXEC, 0);
}

static int64_t posix_read(const struct engine_call *c)
{
    return read(c->fd, c->buffer, length(c));
}

static int64_t posix_write(const struct engine_call *c)
{
    return write(c->fd, c->buffer, length(c));
}

static int64_t posix_pread(const struct engine_call *c)
{
    return pread(c->fd, c->buffer, length(c), c->event->off);
}

static int64_t posix_pwrite(const struct engine_call *c)
{
    return pwrite(c->fd, c->buffer, length(c), c->event->off);
}

static int64_t posix_seek(const struct engine_call *c)
{
    return lseek(c->fd, c->event->off, c->event->whence);
}

static int64_t posix_fsync(const struct engine_call *c)
{
    return fsync(c->fd);
}

static int64_t posix_fdatasync(const struct engine_call *c)
{
    return fdatasync(c->fd);
}

static int64_t posix_truncate(const struct engine_call *c)
{
    return ftruncate(c->fd, c->event->len);
}

static int64_t posix_unlink(const struct engine_call *c)
{
    return root_unlink(c->root, c->path);
}

static int64_t posix_rename(const struct engine_call *c)
{
    return root_rename(c->root, c->path, c->path2);
}

static int64_t posix_mkdir(const struct engine_call *c)
{
    return root_mkdir(c->root, c->path, c->event->mode);
}

static int64_t posix_rmdir(const struct engine_call *c)
{
    return root_rmdir(c->root, c->path);
}

const struct engine engine_posix = {
    .name = "posix",
    .op =
        {
            [PT_REPLAY_OPEN] = posix_open,
            [PT_REPLAY_CLOSE] = posix_close,
            [PT_REPLAY_DUP] = posix_dup,
            [PT_REPLAY_READ] = posix_read,
            [PT_REPLAY_WRITE] = posix_write,
            [PT_REPLAY_PREAD] = posix_pread,
            [PT_REPLAY_PWRITE] = posix_pwrite,
            [PT_REPLAY_SEEK] = posix_seek,
            [PT_REPLAY_FSYNC] = posix_fsync,
            [PT_REPLAY_FDATASYNC] = posix_fdatasync,
            [PT_REPLAY_TRUNCATE] = posix_truncate,
            [PT_REPLAY_UNLINK] = posix_unlink,
            [PT_REPLAY_RENAME] = posix_rename,
            [PT_REPLAY_MKDIR] = posix_mkdir,
            [PT_REPLAY_RMDIR] = posix_rmdir,
        },
};
