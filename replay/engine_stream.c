/*
 * Streams and directories: libc buffers them here as it did in the program.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "replay/engine_posix.h"

/* ---- streams ------------------------------------------------------------------------------ */

int64_t posix_fopen(const struct engine_call *c)
{
    int64_t fd = posix_open(c);

    if (fd < 0)
        return -1;
    c->made->stream = fdopen((int)fd, handles_stream_mode((int)fd));
    if (!c->made->stream) {
        int saved = errno;

        close((int)fd);
        errno = saved;
        return -1;
    }
    return fd;
}

/* A call that failed at once; if the trace has no more of it than "no bytes", the same. */
static int64_t nothing(const struct engine_call *c)
{
    clearerr(c->live.stream);
    return c->event->ret == 0 && !c->event->err ? 0 : -1;
}

/* Looks for more without taking it, as a read that finds the end does. */
static int64_t peek(FILE *f)
{
    int ch = fgetc(f);

    if (ch != EOF)
        ungetc(ch, f);
    return 0;
}

int64_t posix_fread(const struct engine_call *c)
{
    FILE *f = c->live.stream;
    size_t n;

    if (c->event->len == 0)
        return peek(f);
    n = fread(c->buffer, 1, (size_t)c->event->len, f);
    return n == 0 && ferror(f) ? nothing(c) : (int64_t)n;
}

int64_t posix_fwrite(const struct engine_call *c)
{
    size_t n;

    if (c->event->len == 0)
        return 0;
    n = fwrite(c->buffer, 1, (size_t)c->event->len, c->live.stream);
    return n == 0 ? nothing(c) : (int64_t)n;
}

int64_t posix_fseek(const struct engine_call *c)
{
    return fseeko(c->live.stream, c->event->off, c->event->whence);
}

int64_t posix_ftell(const struct engine_call *c)
{
    return ftello(c->live.stream);
}

/* Without a stream: all of them. */
int64_t posix_fflush(const struct engine_call *c)
{
    return fflush(c->live.stream);
}

/* The program's own buffer, if it gave a size. */
int64_t posix_setvbuf(const struct engine_call *c)
{
    size_t size = c->event->oflags == _IONBF || c->event->len < 0 ? 0 : (size_t)c->event->len;
    char *buffer = size ? handles_buffer(c->handles, c->slot, size) : NULL;

    return setvbuf(c->live.stream, buffer, c->event->oflags, size);
}

/* ---- directories -------------------------------------------------------------------------- */

int64_t posix_opendir(const struct engine_call *c)
{
    int fd = root_open(c->root, c->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    c->made->dir = fdopendir(fd);
    if (!c->made->dir) {
        int saved = errno;

        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

int64_t posix_readdir(const struct engine_call *c)
{
    errno = 0;
    if (readdir(c->live.dir))
        return 1;
    return errno ? -1 : 0;
}

int64_t posix_rewinddir(const struct engine_call *c)
{
    rewinddir(c->live.dir);
    return 0;
}

int64_t posix_scandir(const struct engine_call *c)
{
    int fd = root_open(c->root, c->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK, 0), n = 0;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir) {
        int saved = errno;

        if (fd >= 0)
            close(fd);
        errno = saved;
        return -1;
    }
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}
