#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "watchdog/peers_inside.h"

#define REACH_MS    10000 /* a client tries that long to reach the hub */
#define PAUSE_MS    10    /* after it has tried all ports; twice as long each time, up to */
#define AGAIN_MS    75    /* this and 1 ms a host: the hub has many clients */
#define NAME_MS     1000  /* before a name that was not found is looked up again */
#define UNKNOWN_MAX 32    /* unproved connections, beside those of hosts that are to come */
#define ACCEPT_MAX  64    /* in one go */

/* ---- the hub ------------------------------------------------------------------------- */

/* Who waits at the door and says nothing must not keep others out: the oldest has to go. */
static void make_place(struct wd_peers *p)
{
    struct wd_link *oldest = NULL;
    int n = 0, max = UNKNOWN_MAX;
    for (int i = 1; i < p->conf.nhosts; i++)
        max += p->hosts[i].state == HOST_ABSENT;
    for (struct wd_link *l = p->links; l; l = l->next)
        if (l->fd >= 0 && l->stage <= WD_LINK_PROOF) {
            n++;
            oldest = l; /* newest first */
        }
    if (n >= max)
        wd_peers_drop(p, oldest, "too many at a time");
}

void wd_peers_accept(struct wd_peers *p)
{
    for (int i = 0; i < ACCEPT_MAX; i++) {
        int fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
            return;
        if (fd < 0) { /* no descriptors: would be asked again and again, so later */
            epoll_ctl(p->epoll, EPOLL_CTL_DEL, p->listener, NULL);
            p->listening = 0;
            wd_peers_set_tick(p, WD_PEERS_FAST);
            return;
        }
        make_place(p);
        if (!wd_peers_add(p, fd, WD_LINK_HELLO))
            close(fd);
        wd_peers_set_tick(p, WD_PEERS_FAST);
    }
}

static int bind_to(int family, uint16_t port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    int on = 1, off = 0, fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    const struct sockaddr *addr =
        family == AF_INET6 ? (struct sockaddr *)&six : (struct sockaddr *)&four;
    if (bind(fd, addr, family == AF_INET6 ? sizeof(six) : sizeof(four)) || listen(fd, 1024)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* At all addresses: which network the others come from cannot be known here. */
int wd_peers_listen(struct wd_peers *p, struct pt_err *err)
{
    const struct wd_peers_conf *c = &p->conf;
    for (unsigned i = 0; i < WD_WIRE_PORTS && p->listener < 0; i++) {
        uint16_t port = wd_wire_port(c->ports, c->job, c->step, i);
        p->listener = bind_to(AF_INET6, port);
        if (p->listener < 0 && errno != EADDRINUSE)
            p->listener = bind_to(AF_INET, port); /* no IPv6 here */
    }
    if (p->listener < 0)
        return pt_err_errno(err, "no port in %u-%u to listen at", c->ports.begin, c->ports.end);
    if (wd_peers_watch(p, p->listener, &p->listener))
        return pt_err_errno(err, "cannot listen");
    p->listening = 1;
    return 0;
}

/* ---- a client ------------------------------------------------------------------------- */

static void give_up(struct wd_peers *p)
{
    char reason[240];
    p->search.over = 1;
    snprintf(reason, sizeof(reason), "not reached within %d s: %s", REACH_MS / 1000,
             *p->search.why ? p->search.why : "no answer");
    p->hosts[0].state = HOST_LOST;
    p->conf.down(p->conf.arg, 0, reason);
}

/* The next place where the hub may be; all of them, then a pause. */
static void advance(struct wd_peers *p)
{
    struct wd_search *s = &p->search;
    s->next = 0;
    if (++s->address < s->naddresses)
        return;
    s->address = 0;
    if (++s->port < WD_WIRE_PORTS)
        return;
    s->port = 0;
    s->next = wd_peers_now() + s->pause;
    s->pause *= 2;
    if (s->pause > AGAIN_MS + (uint64_t)p->conf.nhosts)
        s->pause = AGAIN_MS + (uint64_t)p->conf.nhosts;
}

static void set_port(struct sockaddr_storage *addr, uint16_t port)
{
    if (addr->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)addr)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)addr)->sin_port = htons(port);
}

/* Begins to connect; 0, or -1 and s->why. */
static int try_connect(struct wd_peers *p)
{
    const struct wd_peers_conf *c = &p->conf;
    struct wd_search *s = &p->search;
    struct sockaddr_storage addr = s->addresses[s->address];
    set_port(&addr, wd_wire_port(c->ports, c->job, c->step, s->port));
    int fd = socket(addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) && errno != EINPROGRESS) {
        close(fd);
        fd = -1;
    }
    if (fd < 0) {
        snprintf(s->why, sizeof(s->why), "%s", strerror(errno));
        return -1;
    }
    if (!wd_peers_add(p, fd, WD_LINK_CONNECTING))
        close(fd);
    return 0;
}

static void ask_address(struct wd_peers *p)
{
    struct wd_helper_question q = {.what = WD_HELPER_RESOLVE};
    snprintf(q.name, sizeof(q.name), "%s", p->address);
    wd_helper_ask(p->helper, &q);
}

void wd_peers_search_begin(struct wd_peers *p)
{
    p->search.until = wd_peers_now() + REACH_MS;
    p->search.pause = PAUSE_MS;
    ask_address(p);
}

void wd_peers_search_addresses(struct wd_peers *p, const struct wd_helper_answer *a)
{
    struct wd_search *s = &p->search;
    memcpy(s->addresses, a->addresses, sizeof(s->addresses));
    s->naddresses = a->naddresses;
    if (!s->naddresses) {
        snprintf(s->why, sizeof(s->why), "%s", a->why);
        s->look_up = wd_peers_now() + NAME_MS;
    }
}

/* One connection at a time, until one is the hub's. */
void wd_peers_search(struct wd_peers *p)
{
    struct wd_search *s = &p->search;
    uint64_t now = wd_peers_now();
    if (wd_peers_is_hub(p) || s->over)
        return;
    for (struct wd_link *l = p->links; l; l = l->next)
        if (l->fd >= 0)
            return;
    if (now >= s->until) {
        give_up(p);
        return;
    }
    if (s->look_up && now >= s->look_up) {
        s->look_up = 0;
        ask_address(p);
    }
    for (int i = 0; s->naddresses && now >= s->next && i < WD_WIRE_PORTS; i++) {
        int rc = try_connect(p);
        advance(p);
        if (rc == 0)
            return;
    }
}

/* TCP has connected, or not. */
void wd_peers_connected(struct wd_peers *p, struct wd_link *l)
{
    int error = 0;
    socklen_t len = sizeof(error);
    if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &len) || error) {
        wd_peers_drop(p, l, strerror(error));
        return;
    }
    l->stage = WD_LINK_HELLO;
    if (wd_link_send_hello(l))
        wd_peers_drop(p, l, l->failure);
}
