#include "config.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/peers_kit.h"

struct wd_peers_conf kit_conf;
static struct side *sides[KIT_MAX];
static int nsides;

static long now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- sides -------------------------------------------------------------------------- */

static void on_up(void *arg, int host)
{
    ((struct side *)arg)->ups[host]++;
}

static void on_down(void *arg, int host, const char *reason)
{
    struct side *s = arg;
    s->downs[host]++;
    snprintf(s->reason[host], sizeof(s->reason[host]), "%s", reason ? reason : "");
}

/* The n-th message of a host is of type n and consists of bytes n. */
static void on_message(void *arg, int host, uint16_t type, const void *payload, size_t len)
{
    struct side *s = arg;
    const unsigned char *bytes = payload;
    s->disordered |= type != s->messages[host];
    for (size_t i = 0; i < len; i++)
        s->disordered |= bytes[i] != (unsigned char)type;
    s->messages[host]++;
    s->type[host] = type;
    s->len[host] = len;
}

/* A port that was free a moment ago. */
static uint16_t free_port(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET};
    socklen_t len = sizeof(addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert(fd >= 0 && bind(fd, (struct sockaddr *)&addr, len) == 0 &&
              getsockname(fd, (struct sockaddr *)&addr, &len) == 0);
    close(fd);
    return ntohs(addr.sin_port);
}

void kit_begin(void)
{
    uint16_t port = free_port();
    nsides = 0;
    kit_conf = (struct wd_peers_conf){
        .nhosts = KIT_HOSTS,
        .address = "127.0.0.1",
        .ports = {port, port},
        .job = 4711,
        .step = 3,
        .munge = PT_MUNGE_NO,
        .message = on_message,
        .up = on_up,
        .down = on_down,
    };
    ck_assert(getrandom(kit_conf.secret, sizeof(kit_conf.secret), 0) == sizeof(kit_conf.secret));
}

void kit_start(struct side *s, int host, const struct wd_peers_conf *conf)
{
    struct wd_peers_conf own = *conf;
    struct pt_err err = {""};
    memset(s, 0, sizeof(*s));
    own.hostid = host;
    own.arg = s;
    s->p = wd_peers_create(&own, &err);
    ck_assert_msg(s->p != NULL, "host %d: %s", host, err.text);
    ck_assert_int_lt(nsides, KIT_MAX);
    sides[nsides++] = s;
}

void kit_stop(struct side *s)
{
    for (int i = 0; i < nsides; i++)
        if (sides[i] == s)
            sides[i] = sides[--nsides];
    wd_peers_destroy(s->p);
    s->p = NULL;
}

static void work_once(void)
{
    struct pollfd fds[KIT_MAX];
    for (int i = 0; i < nsides; i++)
        fds[i] = (struct pollfd){.fd = wd_peers_fd(sides[i]->p), .events = POLLIN};
    poll(fds, (nfds_t)nsides, 10);
    for (int i = 0; i < nsides; i++)
        if (fds[i].revents)
            wd_peers_work(sides[i]->p);
}

int kit_until(int ms, int (*cond)(void *arg), void *arg)
{
    long end = now_ms() + ms;
    while (!cond(arg)) {
        if (now_ms() >= end)
            return 0;
        work_once();
    }
    return 1;
}

static int never(void *arg)
{
    return 0;
}

void kit_work(int ms)
{
    kit_until(ms, never, NULL);
}

static int all_complete(void *arg)
{
    for (int i = 0; i < nsides; i++)
        if (!wd_peers_complete(sides[i]->p))
            return 0;
    return 1;
}

void kit_connect(struct side *hub, struct side *clients, int nclients)
{
    for (int i = 0; i < nclients; i++) /* before the hub: they have to wait for it */
        kit_start(&clients[i], i + 1, &kit_conf);
    kit_work(100);
    kit_start(hub, 0, &kit_conf);
    ck_assert_msg(kit_until(8000, all_complete, NULL), "not connected: %s", clients[0].reason[0]);
}

uint64_t kit_refused(const struct side *s)
{
    struct wd_peers_stats stats;
    wd_peers_stats(s->p, &stats);
    return stats.refused;
}

int kit_fork(int host)
{
    struct side s;
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    nsides = 0;
    kit_start(&s, host, &kit_conf);
    kit_work(60000);
    _exit(0);
}

/* ---- a client by hand ---------------------------------------------------------------- */

void raw_open(struct raw *r, int host)
{
    const struct wd_peers_conf *c = &kit_conf;
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_port = htons(wd_wire_port(c->ports, c->job, c->step, 0)),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct wd_wire_step step = {.job = c->job, .step = c->step, .nhosts = (uint32_t)c->nhosts};
    unsigned char nonce[WD_WIRE_NONCE];
    memcpy(step.secret, c->secret, sizeof(step.secret));
    memset(r, 0, sizeof(*r));
    ck_assert(getrandom(nonce, sizeof(nonce), 0) == sizeof(nonce));
    wd_wire_begin(&r->wire, &step, WD_WIRE_CLIENT, (uint32_t)host, nonce);
    r->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_msg(connect(r->fd, (struct sockaddr *)&addr, sizeof(addr)) == 0, "connect: %s",
                  strerror(errno));
}

void raw_close(struct raw *r)
{
    close(r->fd);
    r->fd = -1;
}

void raw_send(struct raw *r, const void *bytes, size_t len)
{
    if (r->nsent + len <= sizeof(r->sent)) {
        memcpy(r->sent + r->nsent, bytes, len);
        r->nsent += len;
    }
    if (send(r->fd, bytes, len, MSG_NOSIGNAL) < 0)
        ck_assert_msg(errno == EPIPE || errno == ECONNRESET, "send: %s", strerror(errno));
}

size_t raw_receive(struct raw *r, void *bytes, size_t len)
{
    long end = now_ms() + 3000;
    size_t have = 0;
    while (have < len && now_ms() < end) {
        work_once();
        ssize_t n = recv(r->fd, (char *)bytes + have, len - have, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            break;
        have += n > 0 ? (size_t)n : 0;
    }
    return have;
}

static int is_closed(void *arg)
{
    struct raw *r = arg;
    char bytes[4096];
    ssize_t n;
    while ((n = recv(r->fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
        ;
    return n == 0 || (errno != EAGAIN && errno != EINTR);
}

int raw_is_closed(struct raw *r)
{
    return kit_until(4000, is_closed, r);
}

/* Takes a frame of that type and returns the length of its payload. */
static size_t receive_frame(struct raw *r, uint16_t type)
{
    unsigned char bytes[WD_WIRE_HEAD + WD_WIRE_EARLY + WD_WIRE_CODE];
    struct wd_wire_frame frame;
    const char *why = "";
    size_t needed = WD_WIRE_HEAD, have = 0;
    long used;
    do {
        size_t n = raw_receive(r, bytes + have, needed - have);
        ck_assert_msg(n == needed - have, "the hub has closed");
        have += n;
        used = wd_wire_take(&r->wire, bytes, have, &frame, &needed, &why);
    } while (used == 0);
    ck_assert_msg(used > 0, "the hub's frame is refused: %s", why);
    ck_assert_uint_eq(frame.type, type);
    return frame.len;
}

void raw_hello(struct raw *r)
{
    unsigned char hello[WD_WIRE_HELLO];
    raw_send(r, wd_wire_hello(&r->wire), WD_WIRE_HELLO);
    ck_assert_uint_eq(raw_receive(r, hello, sizeof(hello)), sizeof(hello));
    ck_assert_ptr_null(wd_wire_take_hello(&r->wire, hello));
    receive_frame(r, WD_WIRE_PROOF);
}

void raw_join(struct raw *r)
{
    unsigned char frame[WD_WIRE_HEAD + WD_WIRE_CODE];
    raw_hello(r);
    raw_send(r, frame, wd_wire_put(&r->wire, frame, WD_WIRE_PROOF, NULL, 0));
    receive_frame(r, WD_WIRE_WELCOME);
    raw_send(r, frame, wd_wire_put(&r->wire, frame, WD_WIRE_READY, NULL, 0));
    kit_work(50);
}
