#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "replay/backoff.h"
#include "replay/handles.h"

enum {
    FD_PENDING = -1, /* its open is still to come */
    FD_GONE = -2,    /* closed, or its open failed */
};

enum { MAX_SPARE = 4, FIRST_SIZE = 64 };

struct slot {
    uint32_t process, handle;
    enum handle_fate fate;
    _Atomic int fd;
    _Atomic uint32_t uses;
    _Atomic int spare[MAX_SPARE]; /* further descriptors of the same open file, 0: none */
    _Atomic(FILE *) stream;
    _Atomic(DIR *) dir;
    char *buffer;
};

struct handles {
    size_t count, size; /* size: a power of two, of both arrays */
    struct slot *slots;
    uint32_t *index;      /* open addressing: slot + 1, 0: free */
    pthread_mutex_t lock; /* while a stream or a directory is made of a descriptor */
};

static size_t hash(uint32_t process, uint32_t handle)
{
    uint64_t x = ((uint64_t)process << 32 | handle) * UINT64_C(0x9e3779b97f4a7c15);

    return (size_t)(x >> 32);
}

static uint32_t *find(const struct handles *h, uint32_t process, uint32_t handle)
{
    size_t i = hash(process, handle) & (2 * h->size - 1);

    while (h->index[i]) {
        const struct slot *s = &h->slots[h->index[i] - 1];

        if (s->process == process && s->handle == handle)
            break;
        i = (i + 1) & (2 * h->size - 1);
    }
    return &h->index[i];
}

static int grow(struct handles *h)
{
    size_t size = h->size ? 2 * h->size : FIRST_SIZE;
    struct slot *slots = realloc(h->slots, size * sizeof(*slots));
    uint32_t *index;

    if (!slots)
        return -1;
    h->slots = slots;
    index = calloc(2 * size, sizeof(*index));
    if (!index)
        return -1;
    free(h->index);
    h->index = index;
    h->size = size;
    for (size_t i = 0; i < h->count; i++)
        *find(h, slots[i].process, slots[i].handle) = (uint32_t)i + 1;
    return 0;
}

struct handles *handles_create(void)
{
    struct handles *h = calloc(1, sizeof(*h));

    if (h)
        pthread_mutex_init(&h->lock, NULL);
    if (h && grow(h) < 0) {
        handles_destroy(h);
        return NULL;
    }
    return h;
}

static void close_slot(struct slot *s)
{
    if (s->stream)
        fclose(s->stream);
    else if (s->dir)
        closedir(s->dir);
    else if (s->fd >= 0)
        close(s->fd);
    free(s->buffer);
    for (int i = 0; i < MAX_SPARE; i++)
        if (s->spare[i] > 0)
            close(s->spare[i]);
}

void handles_destroy(struct handles *h)
{
    int saved = errno;

    if (!h)
        return;
    for (size_t i = 0; i < h->count; i++)
        close_slot(&h->slots[i]);
    free(h->slots);
    free(h->index);
    pthread_mutex_destroy(&h->lock);
    free(h);
    errno = saved;
}

uint32_t handles_slot(struct handles *h, uint32_t process, uint32_t handle)
{
    uint32_t *place;
    struct slot *s;

    if (handle == 0)
        return HANDLE_NO_SLOT;
    place = find(h, process, handle);
    if (*place)
        return *place - 1;
    if (h->count == h->size) {
        if (grow(h) < 0)
            return HANDLE_NO_SLOT;
        place = find(h, process, handle);
    }
    s = &h->slots[h->count++];
    *s = (struct slot){.process = process, .handle = handle, .fate = HANDLE_MISSING};
    atomic_init(&s->fd, FD_GONE);
    *place = (uint32_t)h->count;
    return *place - 1;
}

size_t handles_count(const struct handles *h)
{
    return h->count;
}

void handles_set_fate(struct handles *h, uint32_t slot, enum handle_fate fate)
{
    struct slot *s = &h->slots[slot];

    s->fate = fate;
    atomic_store(&s->fd, fate == HANDLE_OPENED ? FD_PENDING : FD_GONE);
}

enum handle_fate handles_fate(const struct handles *h, uint32_t slot)
{
    return slot == HANDLE_NO_SLOT ? HANDLE_MISSING : h->slots[slot].fate;
}

void handles_set(struct handles *h, uint32_t slot, int fd)
{
    atomic_store_explicit(&h->slots[slot].fd, fd >= 0 ? fd : FD_GONE, memory_order_release);
}

void handles_set_live(struct handles *h, uint32_t slot, const struct handle_live *live)
{
    struct slot *s = &h->slots[slot];

    atomic_store(&s->stream, live->stream);
    atomic_store(&s->dir, live->dir);
    handles_set(h, slot, live->fd);
}

void handles_add(struct handles *h, uint32_t slot, int fd)
{
    struct slot *s = &h->slots[slot];

    for (int i = 0; i < MAX_SPARE; i++) {
        int none = 0;

        if (atomic_compare_exchange_strong(&s->spare[i], &none, fd))
            return;
    }
    close(fd);
}

int handles_get(struct handles *h, uint32_t slot)
{
    struct slot *s = &h->slots[slot];
    struct backoff wait = {0};
    int fd;

    while ((fd = atomic_load_explicit(&s->fd, memory_order_acquire)) == FD_PENDING)
        backoff_pause(&wait);
    if (fd < 0) {
        errno = EBADF;
        return -1;
    }
    return fd;
}

const char *handles_stream_mode(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    switch (flags & O_ACCMODE) {
    case O_WRONLY:
        return flags & O_APPEND ? "a" : "w";
    case O_RDWR:
        return flags & O_APPEND ? "a+" : "r+";
    default:
        return "r";
    }
}

static int make_form(struct handles *h, struct slot *s, enum handle_form form, int fd)
{
    int rc = 0;

    pthread_mutex_lock(&h->lock);
    if (form == HANDLE_STREAM && !s->stream) {
        s->stream = fdopen(fd, handles_stream_mode(fd));
        rc = s->stream ? 0 : -1;
    } else if (form == HANDLE_DIR && !s->dir) {
        s->dir = fdopendir(fd);
        rc = s->dir ? 0 : -1;
    }
    pthread_mutex_unlock(&h->lock);
    return rc;
}

int handles_live(struct handles *h, uint32_t slot, enum handle_form form, struct handle_live *live)
{
    struct slot *s = &h->slots[slot];
    int fd = handles_get(h, slot);

    if (fd < 0)
        return -1;
    if ((form == HANDLE_STREAM && !atomic_load(&s->stream)) ||
        (form == HANDLE_DIR && !atomic_load(&s->dir)))
        if (make_form(h, s, form, fd) < 0)
            return -1;
    *live = (struct handle_live){.fd = fd, .stream = s->stream, .dir = s->dir};
    return 0;
}

char *handles_buffer(struct handles *h, uint32_t slot, size_t size)
{
    struct slot *s = &h->slots[slot];

    if (s->buffer) /* its first is still in use while it gets another */
        return NULL;
    s->buffer = malloc(size);
    return s->buffer;
}

void handles_used(struct handles *h, uint32_t slot)
{
    atomic_fetch_add_explicit(&h->slots[slot].uses, 1, memory_order_release);
}

int handles_take(struct handles *h, uint32_t slot, uint32_t uses, struct handle_live *live)
{
    struct slot *s = &h->slots[slot];
    struct backoff wait = {0};
    int fd = handles_get(h, slot);

    if (fd < 0)
        return -1;
    while (atomic_load_explicit(&s->uses, memory_order_acquire) < uses)
        backoff_pause(&wait);
    for (int i = 0; i < MAX_SPARE; i++) {
        int spare = atomic_exchange(&s->spare[i], 0);

        if (spare > 0) {
            *live = (struct handle_live){.fd = spare};
            return 0;
        }
    }
    fd = atomic_exchange(&s->fd, FD_GONE);
    if (fd < 0) {
        errno = EBADF;
        return -1;
    }
    *live = (struct handle_live){.fd = fd,
                                 .stream = atomic_exchange(&s->stream, NULL),
                                 .dir = atomic_exchange(&s->dir, NULL),
                                 .buffer = s->buffer};
    s->buffer = NULL;
    return 0;
}
