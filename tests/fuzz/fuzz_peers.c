/*
 * What a watchdog hears from another one, mutated: a real connection of peers.h whose
 * other end says what the input says.  The first byte chooses the side and how far the
 * handshake has come; then come raw bytes, or frames that are made valid (number and code
 * right), because hardly anything would get past the code otherwise.
 */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "watchdog/peers_inside.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    HOW_HUB = 1,     /* the side under test is the hub */
    HOW_HELLO = 2,   /* it is sent a good hello first */
    HOW_FRAMES = 4,  /* then frames: u16 type, u16 length, payload, all made valid */
    HOW_UP = 8,      /* it takes the other for one of us already */
    HOW_PIECES = 16, /* bytes come one by one */
};

static volatile unsigned sink;

static void on_message(void *arg, int host, uint16_t type, const void *payload, size_t len)
{
    struct wd_peers **p = arg;
    for (size_t i = 0; i < len; i++)
        sink += ((const unsigned char *)payload)[i];
    if (host < 0 || host >= 3 || type >= WD_WIRE_OURS)
        abort();
    wd_peers_send(*p, host, type, payload, len < 100 ? len : 100); /* as a judge would */
}

static void on_up(void *arg, int host)
{
    sink += (unsigned)host;
}

static void on_down(void *arg, int host, const char *reason)
{
    sink += reason ? (unsigned)strlen(reason) : 0;
}

static struct wd_peers *make_side(int hub, struct wd_peers **self)
{
    struct wd_peers_conf conf = {.hostid = !hub,
                                 .nhosts = 3,
                                 .address = "192.0.2.1", /* leads nowhere */
                                 .ports = {20000, 60000},
                                 .job = (uint32_t)getpid(),
                                 .message = on_message,
                                 .up = on_up,
                                 .down = on_down,
                                 .arg = self};
    struct pt_err err;
    *self = wd_peers_create(&conf, &err);
    if (!*self) {
        fprintf(stderr, "fuzz_peers: %s\n", err.text);
        exit(1);
    }
    (*self)->search.over = 1; /* no connection but the one under test */
    return *self;
}

/* The stream as its bytes, up to `room`. */
static size_t make_stream(struct wd_wire *other, int how, const uint8_t *data, size_t size,
                          unsigned char *out, size_t room)
{
    size_t n = 0;
    if (how & HOW_HELLO) {
        memcpy(out, wd_wire_hello(other), WD_WIRE_HELLO);
        n = WD_WIRE_HELLO;
    }
    if (!(how & HOW_FRAMES)) {
        size = size < room - n ? size : room - n;
        memcpy(out + n, data, size);
        return n + size;
    }
    while (size >= 4) {
        uint16_t type = (uint16_t)(data[0] | data[1] << 8);
        size_t len = (size_t)(data[2] | data[3] << 8);
        data += 4;
        size -= 4;
        len = len < size ? len : size;
        if (WD_WIRE_HEAD + len + WD_WIRE_CODE > room - n)
            break;
        n += wd_wire_put(other, out + n, type, data, len);
        data += len;
        size -= len;
    }
    return n;
}

/* The other end: who it is, and that both have said hello if they have. */
static void make_other(struct wd_wire *other, struct wd_link *l, int how)
{
    static const unsigned char nonce[WD_WIRE_NONCE] = "0123456789abcde";
    wd_wire_begin(other, &l->wire.step, how & HOW_HUB ? WD_WIRE_CLIENT : WD_WIRE_HUB, 1, nonce);
    wd_wire_take_hello(other, wd_wire_hello(&l->wire));
}

static void pretend_up(struct wd_peers *p, struct wd_link *l, const struct wd_wire *other)
{
    int host = wd_peers_is_hub(p) ? 1 : 0;
    wd_wire_take_hello(&l->wire, wd_wire_hello(other));
    l->stage = WD_LINK_UP;
    l->wire.max = WD_WIRE_MAX;
    p->hosts[host] = (struct wd_host){HOST_UP, l};
    p->stats.up++;
}

static void play(struct wd_peers *p, int how, const uint8_t *data, size_t size)
{
    static unsigned char stream[1 << 17];
    struct wd_wire other;
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds))
        abort();
    struct wd_link *l = wd_peers_add(p, fds[0], WD_LINK_HELLO);
    if (!l)
        abort();
    make_other(&other, l, how);
    if (how & HOW_UP) {
        pretend_up(p, l, &other);
        how &= ~HOW_HELLO;
    }
    size_t n = make_stream(&other, how, data, size, stream, sizeof(stream));
    for (size_t at = 0; at < n && l->fd >= 0;) {
        size_t piece = how & HOW_PIECES && n < 2000 ? 1 : n - at;
        ssize_t sent = send(fds[1], stream + at, piece, MSG_NOSIGNAL);
        if (sent <= 0)
            break;
        at += (size_t)sent;
        wd_peers_read(p, l);
    }
    close(fds[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct wd_peers *sides[2];
    if (size < 1)
        return 0;
    int how = data[0], hub = how & HOW_HUB;
    if (!sides[hub])
        make_side(hub, &sides[hub]);
    struct wd_peers *p = sides[hub];
    play(p, how, data + 1, size - 1);
    for (int i = 0; p->links && i < 100; i++)
        wd_peers_work(p);
    if (p->links || p->stats.up)
        abort(); /* a connection that is closed is forgotten */
    memset(p->hosts, 0, 3 * sizeof(*p->hosts));
    return 0;
}
