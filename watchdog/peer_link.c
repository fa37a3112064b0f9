#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "watchdog/peer_link.h"

#define FIRST_IN  (WD_WIRE_HEAD + WD_WIRE_EARLY + WD_WIRE_CODE)
#define FIRST_OUT 1024
#define OUT_MAX   (1u << 20) /* who leaves that much unread is given up */

struct wd_link *wd_link_create(int fd, uint32_t id)
{
    struct wd_link *l = calloc(1, sizeof(*l));
    if (!l)
        return NULL;
    l->in = malloc(FIRST_IN);
    l->out = malloc(FIRST_OUT);
    if (!l->in || !l->out) {
        l->fd = -1;
        wd_link_destroy(l);
        return NULL;
    }
    l->in_size = FIRST_IN;
    l->out_size = FIRST_OUT;
    l->fd = fd;
    l->id = id;
    return l;
}

void wd_link_destroy(struct wd_link *l)
{
    if (l->fd >= 0)
        close(l->fd);
    free(l->in);
    free(l->out);
    free(l->question);
    explicit_bzero(&l->wire, sizeof(l->wire));
    free(l);
}

int wd_link_read(struct wd_link *l)
{
    if (l->in_have == l->in_size)
        return 0;
    ssize_t n = recv(l->fd, l->in + l->in_have, l->in_size - l->in_have, 0);
    if (n > 0) {
        l->in_have += (size_t)n;
        return 1;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n == 0)
        errno = 0;
    return -1;
}

void wd_link_used(struct wd_link *l, size_t n)
{
    l->in_have -= n;
    memmove(l->in, l->in + n, l->in_have);
}

int wd_link_expect(struct wd_link *l, size_t n)
{
    if (n <= l->in_size)
        return 0;
    unsigned char *in = realloc(l->in, n);
    if (!in)
        return -1;
    l->in = in;
    l->in_size = n;
    return 0;
}

static int fail(struct wd_link *l, const char *why)
{
    if (!l->failure)
        l->failure = why;
    return -1;
}

/* Room for n more bytes at out_end. */
static int make_room(struct wd_link *l, size_t n)
{
    size_t used = l->out_end - l->out_begin;
    if (l->out_size - l->out_end >= n)
        return 0;
    memmove(l->out, l->out + l->out_begin, used);
    l->out_begin = 0;
    l->out_end = used;
    if (l->out_size - used >= n)
        return 0;
    if (used + n > OUT_MAX)
        return fail(l, "does not read what it is sent");
    size_t size = 2 * l->out_size > used + n ? 2 * l->out_size : used + n;
    unsigned char *out = realloc(l->out, size);
    if (!out)
        return fail(l, "out of memory");
    l->out = out;
    l->out_size = size;
    return 0;
}

int wd_link_send_hello(struct wd_link *l)
{
    if (l->failure || make_room(l, WD_WIRE_HELLO))
        return -1;
    memcpy(l->out + l->out_end, wd_wire_hello(&l->wire), WD_WIRE_HELLO);
    l->out_end += WD_WIRE_HELLO;
    return wd_link_flush(l) < 0 ? -1 : 0;
}

int wd_link_send(struct wd_link *l, uint16_t type, const void *payload, size_t len)
{
    if (l->failure || make_room(l, WD_WIRE_HEAD + len + WD_WIRE_CODE))
        return -1;
    l->out_end += wd_wire_put(&l->wire, l->out + l->out_end, type, payload, len);
    return wd_link_flush(l) < 0 ? -1 : 0;
}

int wd_link_flush(struct wd_link *l)
{
    if (l->failure)
        return -1;
    while (l->out_begin < l->out_end) {
        ssize_t n = send(l->fd, l->out + l->out_begin, l->out_end - l->out_begin,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 1 : fail(l, "connection closed");
        l->out_begin += (size_t)n;
    }
    l->out_begin = l->out_end = 0;
    return 0;
}
