#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "watchdog/peers_inside.h"

#define UNKNOWN_MS 2000 /* what has not proved itself by then is refused */
#define TRY_MS     1000 /* for a hub to prove itself: it may be anything at that port */
#define WELCOME_MS 5000 /* for one of us, in the rest of the handshake: munged may be busy */
#define ALIVE_MS   1000 /* who has nothing to say says so */
#define SILENCE_MS 5000 /* and is lost if it does not */

uint64_t wd_peers_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

int wd_peers_is_hub(const struct wd_peers *p)
{
    return p->conf.hostid == 0;
}

/* ---- epoll ------------------------------------------------------------------------- */

int wd_peers_watch(struct wd_peers *p, int fd, void *what)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = what};
    return epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &ev);
}

void wd_peers_set_tick(struct wd_peers *p, int ms)
{
    struct itimerspec spec = {{0, ms * 1000000}, {0, ms * 1000000}};
    if (ms != p->tick_ms && timerfd_settime(p->timer, 0, &spec, NULL) == 0)
        p->tick_ms = ms;
}

/* ---- time --------------------------------------------------------------------------- */

static uint64_t patience(const struct wd_peers *p, const struct wd_link *l)
{
    if (l->stage > WD_LINK_PROOF)
        return WELCOME_MS;
    return wd_peers_is_hub(p) ? UNKNOWN_MS : TRY_MS;
}

static void tick_link(struct wd_peers *p, struct wd_link *l, uint64_t now)
{
    if (l->failure) {
        wd_peers_drop(p, l, l->failure);
    } else if (l->stage != WD_LINK_UP) {
        if (now >= l->since + patience(p, l))
            wd_peers_drop(p, l, "took too long in the handshake");
    } else if (now >= l->heard + SILENCE_MS) {
        wd_peers_drop(p, l, "silent for 5 s");
    } else if (now >= l->spoke + ALIVE_MS) {
        l->spoke = now;
        wd_link_send(l, WD_WIRE_ALIVE, NULL, 0);
    }
}

static void tick(struct wd_peers *p)
{
    uint64_t now = wd_peers_now();
    int busy = 0;
    if (wd_peers_is_hub(p) && !p->listening && wd_peers_watch(p, p->listener, &p->listener) == 0)
        p->listening = 1;
    for (struct wd_link *l = p->links; l; l = l->next) {
        if (l->fd >= 0)
            tick_link(p, l, now);
        busy |= l->fd >= 0 && l->stage != WD_LINK_UP;
    }
    if (!wd_peers_is_hub(p)) {
        wd_peers_search(p);
        busy |= !p->search.over;
    }
    wd_peers_set_tick(p, busy || (wd_peers_is_hub(p) && !p->listening) ? WD_PEERS_FAST
                                                                       : WD_PEERS_SLOW);
}

static void hear_helper(struct wd_peers *p)
{
    struct wd_helper_answer a;
    while (wd_helper_hear(p->helper, &a)) {
        if (a.what & WD_HELPER_RESOLVE)
            wd_peers_search_addresses(p, &a);
        else
            wd_peers_go_on(p, &a);
    }
}

/* ---- the outside ---------------------------------------------------------------------- */

static void watch_out(struct wd_peers *p, struct wd_link *l, int wanted)
{
    if (wanted == l->wants_out)
        return;
    struct epoll_event ev = {.events = wanted ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = l};
    if (epoll_ctl(p->epoll, EPOLL_CTL_MOD, l->fd, &ev) == 0)
        l->wants_out = wanted;
}

static void free_closed(struct wd_peers *p)
{
    for (struct wd_link **at = &p->links; *at;) {
        struct wd_link *l = *at;
        if (l->fd >= 0) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        wd_link_destroy(l);
    }
}

static void work_link(struct wd_peers *p, struct wd_link *l, uint32_t events)
{
    if (l->fd >= 0 && l->stage == WD_LINK_CONNECTING && events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
        wd_peers_connected(p, l);
    if (l->fd >= 0 && l->stage != WD_LINK_CONNECTING && events & ~(uint32_t)EPOLLOUT)
        wd_peers_read(p, l);
}

/* Whatever was queued meanwhile, by whomever. */
static void flush_links(struct wd_peers *p)
{
    for (struct wd_link *l = p->links; l; l = l->next) {
        if (l->fd < 0 || l->stage == WD_LINK_CONNECTING)
            continue;
        wd_peers_ask_again(p, l);
        int rc = wd_link_flush(l);
        if (rc < 0)
            wd_peers_drop(p, l, l->failure);
        else
            watch_out(p, l, rc);
    }
}

void wd_peers_work(struct wd_peers *p)
{
    struct epoll_event events[64];
    int n, ticks = 0;
    for (int round = 0; round < 8; round++) {
        n = epoll_wait(p->epoll, events, 64, 0);
        for (int i = 0; i < n; i++) {
            void *what = events[i].data.ptr;
            uint64_t count;
            if (what == &p->timer)
                ticks |= read(p->timer, &count, sizeof(count)) > 0;
            else if (what == &p->listener)
                wd_peers_accept(p);
            else if (what == &p->helper)
                hear_helper(p);
            else
                work_link(p, what, events[i].events);
        }
        wd_peers_search(p);
        flush_links(p);
        free_closed(p);
        if (n < 64)
            break;
    }
    if (ticks) { /* last: who has spoken while we slept is not silent */
        tick(p);
        flush_links(p);
        free_closed(p);
    }
}

int wd_peers_send(struct wd_peers *p, int host, uint16_t type, const void *payload, size_t len)
{
    if (host < 0 || host >= p->conf.nhosts || type >= WD_WIRE_OURS || len > WD_WIRE_MAX ||
        p->hosts[host].state != HOST_UP)
        return -1;
    struct wd_link *l = p->hosts[host].link;
    if (wd_link_send(l, type, payload, len)) {
        shutdown(l->fd, SHUT_RDWR); /* so that there is work, in which it is dropped */
        return -1;
    }
    l->spoke = wd_peers_now();
    watch_out(p, l, l->out_begin < l->out_end);
    return 0;
}

int wd_peers_complete(const struct wd_peers *p)
{
    return p->complete;
}

int wd_peers_fd(const struct wd_peers *p)
{
    return p->epoll;
}

void wd_peers_stats(const struct wd_peers *p, struct wd_peers_stats *stats)
{
    *stats = p->stats;
}

static int begin(struct wd_peers *p, struct pt_err *err)
{
    const struct wd_peers_conf *c = &p->conf;
    p->epoll = epoll_create1(EPOLL_CLOEXEC);
    p->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (p->epoll < 0 || p->timer < 0 || wd_peers_watch(p, p->timer, &p->timer))
        return pt_err_errno(err, "cannot wait for other hosts");
    p->helper = wd_helper_start(c->munge, p->munge_socket, err);
    if (p->helper < 0)
        return -1;
    if (wd_peers_watch(p, p->helper, &p->helper))
        return pt_err_errno(err, "cannot wait for other hosts");
    wd_peers_set_tick(p, WD_PEERS_FAST);
    if (wd_peers_is_hub(p))
        return wd_peers_listen(p, err);
    wd_peers_search_begin(p);
    return 0;
}

struct wd_peers *wd_peers_create(const struct wd_peers_conf *conf, struct pt_err *err)
{
    struct wd_peers *p = calloc(1, sizeof(*p));
    if (!p) {
        pt_err_errno(err, "other hosts");
        return NULL;
    }
    p->conf = *conf;
    p->epoll = p->timer = p->helper = p->listener = -1;
    p->step = (struct wd_wire_step){
        .job = conf->job, .step = conf->step, .nhosts = (uint32_t)conf->nhosts};
    memcpy(p->step.secret, conf->secret, sizeof(p->step.secret));
    explicit_bzero(p->conf.secret, sizeof(p->conf.secret));
    p->address = conf->address ? strdup(conf->address) : NULL;
    p->munge_socket = conf->munge_socket ? strdup(conf->munge_socket) : NULL;
    p->hosts = calloc((size_t)conf->nhosts, sizeof(*p->hosts));
    if (!p->hosts || (conf->address && !p->address) || (conf->munge_socket && !p->munge_socket))
        pt_err_errno(err, "other hosts");
    else if (conf->hostid && !p->address)
        pt_err_set(err, "the first host has no address");
    else if (begin(p, err) == 0)
        return p;
    wd_peers_destroy(p);
    return NULL;
}

static void take_leave(struct wd_link *l)
{
    char unread[4096];
    if (l->fd < 0 || l->stage != WD_LINK_UP)
        return;
    wd_link_send(l, WD_WIRE_BYE, NULL, 0);
    shutdown(l->fd, SHUT_WR);
    for (int i = 0; i < 64; i++) /* what is left unread would reset the connection */
        if (recv(l->fd, unread, sizeof(unread), MSG_DONTWAIT) <= 0)
            break;
}

void wd_peers_destroy(struct wd_peers *p)
{
    int saved = errno;
    if (!p)
        return;
    while (p->links) {
        struct wd_link *l = p->links;
        p->links = l->next;
        take_leave(l);
        wd_link_destroy(l);
    }
    const int fds[] = {p->listener, p->helper, p->timer, p->epoll};
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    explicit_bzero(&p->step, sizeof(p->step));
    free(p->hosts);
    free(p->address);
    free(p->munge_socket);
    free(p);
    errno = saved;
}
