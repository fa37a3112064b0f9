#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/trace_codec.h"
#include "watchdog/peers_inside.h"

#define READ_MAX 64 /* reads of one connection in one go: the others have their turn */

static int other_host(const struct wd_peers *p, const struct wd_link *l)
{
    return wd_peers_is_hub(p) ? (int)l->wire.host : 0;
}

static void enter(struct wd_link *l, enum wd_link_stage stage)
{
    l->stage = stage;
    l->since = wd_peers_now();
}

/* ---- links come and go ---------------------------------------------------------------- */

struct wd_link *wd_peers_add(struct wd_peers *p, int fd, enum wd_link_stage stage)
{
    unsigned char nonce[WD_WIRE_NONCE];
    int one = 1;
    if (getrandom(nonce, sizeof(nonce), 0) != sizeof(nonce))
        return NULL;
    struct wd_link *l = wd_link_create(fd, ++p->next_id);
    if (!l)
        return NULL;
    wd_wire_begin(&l->wire, &p->step, wd_peers_is_hub(p) ? WD_WIRE_HUB : WD_WIRE_CLIENT,
                  (uint32_t)p->conf.hostid, nonce);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT, .data.ptr = l};
    if (epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &ev)) {
        l->fd = -1;
        wd_link_destroy(l);
        return NULL;
    }
    l->wants_out = 1;
    enter(l, stage);
    l->heard = l->spoke = l->since;
    l->next = p->links;
    p->links = l;
    return l;
}

static struct wd_link *find_link(struct wd_peers *p, uint32_t id)
{
    for (struct wd_link *l = p->links; l; l = l->next)
        if (l->id == id && l->fd >= 0)
            return l;
    return NULL;
}

/* A hub's word to everybody. */
static void tell_all(struct wd_peers *p, uint16_t type, const void *payload, size_t len)
{
    for (struct wd_link *l = p->links; l; l = l->next)
        if (l->fd >= 0 && l->stage == WD_LINK_UP)
            wd_link_send(l, type, payload, len); /* a failure is seen at the next tick */
}

static void tell_lost(struct wd_peers *p, int host, const char *reason)
{
    unsigned char payload[4 + 160];
    size_t len = strlen(reason) < 160 ? strlen(reason) : 160;
    pt_put32(payload, (uint32_t)host);
    memcpy(payload + 4, reason, len);
    tell_all(p, WD_WIRE_LOST, payload, 4 + len);
}

static void set_down(struct wd_peers *p, int host, const char *reason)
{
    p->hosts[host].link = NULL;
    p->hosts[host].state = reason ? HOST_LOST : HOST_ENDED;
    if (!wd_peers_is_hub(p) || reason)
        p->complete = 0;
    p->stats.up--;
    if (wd_peers_is_hub(p) && reason)
        tell_lost(p, host, reason);
    p->conf.down(p->conf.arg, host, reason);
}

static void check_complete(struct wd_peers *p)
{
    for (int i = 1; i < p->conf.nhosts; i++)
        if (p->hosts[i].state != HOST_UP && p->hosts[i].state != HOST_ENDED)
            return;
    p->complete = 1;
    tell_all(p, WD_WIRE_COMPLETE, NULL, 0);
}

static void set_up(struct wd_peers *p, struct wd_link *l)
{
    int host = other_host(p, l);
    enter(l, WD_LINK_UP);
    l->heard = l->spoke = l->since;
    l->wire.max = WD_WIRE_MAX;
    p->hosts[host] = (struct wd_host){HOST_UP, l};
    p->stats.up++;
    p->search.over = 1;
    p->conf.up(p->conf.arg, host);
    if (wd_peers_is_hub(p))
        check_complete(p);
}

static void note_refusal(struct wd_peers *p, const char *reason)
{
    if (!p->stats.refused++)
        snprintf(p->stats.refusal, sizeof(p->stats.refusal), "%s", reason);
}

void wd_peers_drop(struct wd_peers *p, struct wd_link *l, const char *reason)
{
    enum wd_link_stage stage = l->stage;
    int host = other_host(p, l);
    close(l->fd);
    l->fd = -1;
    if (stage == WD_LINK_UP)
        set_down(p, host, reason);
    else if (wd_peers_is_hub(p))
        note_refusal(p, reason ? reason : "took its leave");
    else
        snprintf(p->search.why, sizeof(p->search.why), "%s", reason ? reason : "took its leave");
}

/* ---- the handshake --------------------------------------------------------------------- */

/* Asks munged for our credential, about the other one's (NULL: not yet), or both. */
static const char *ask_munge(struct wd_peers *p, struct wd_link *l, int what,
                             const struct wd_wire_frame *cred)
{
    int hub = wd_peers_is_hub(p);
    struct wd_helper_question q = {.what = what, .id = l->id};
    wd_wire_token(&l->wire, hub ? WD_WIRE_HUB : WD_WIRE_CLIENT, q.own_token);
    wd_wire_token(&l->wire, hub ? WD_WIRE_CLIENT : WD_WIRE_HUB, q.other_token);
    if (cred)
        memcpy(q.other_cred, cred->payload, cred->len); /* at most WD_WIRE_EARLY */
    enter(l, WD_LINK_HELPER);
    if (wd_helper_ask(p->helper, &q) == 0)
        return NULL;
    l->question = malloc(sizeof(q)); /* many hosts at once: it has its turn later */
    if (!l->question)
        return "out of memory";
    memcpy(l->question, &q, sizeof(q));
    return NULL;
}

void wd_peers_ask_again(struct wd_peers *p, struct wd_link *l)
{
    if (!l->question || wd_helper_ask(p->helper, l->question))
        return;
    free(l->question);
    l->question = NULL;
}

static const char *take_proof(struct wd_peers *p, struct wd_link *l, const struct wd_wire_frame *f)
{
    if (!wd_peers_is_hub(p))
        return ask_munge(p, l, WD_HELPER_VOUCH, NULL);
    if (p->hosts[l->wire.host].state == HOST_UP)
        return "that host is connected already";
    return ask_munge(p, l, WD_HELPER_VOUCH | WD_HELPER_CHECK, f);
}

/* What munged has said; the link goes on from where it waited. */
static const char *go_on(struct wd_peers *p, struct wd_link *l, const struct wd_helper_answer *a)
{
    size_t len = strlen(a->own_cred);
    if (!a->ok)
        return a->why;
    p->stats.munge |= a->munge;
    if (wd_peers_is_hub(p)) {
        enter(l, WD_LINK_READY);
        return wd_link_send(l, WD_WIRE_WELCOME, a->own_cred, len) ? l->failure : NULL;
    }
    if (a->what & WD_HELPER_VOUCH) {
        enter(l, WD_LINK_WELCOME);
        return wd_link_send(l, WD_WIRE_PROOF, a->own_cred, len) ? l->failure : NULL;
    }
    if (wd_link_send(l, WD_WIRE_READY, NULL, 0))
        return l->failure;
    set_up(p, l);
    return NULL;
}

void wd_peers_go_on(struct wd_peers *p, const struct wd_helper_answer *a)
{
    struct wd_link *l = find_link(p, a->id);
    const char *why = l && l->stage == WD_LINK_HELPER ? go_on(p, l, a) : NULL;
    if (why)
        wd_peers_drop(p, l, why);
}

static const char *take_hello(struct wd_peers *p, struct wd_link *l)
{
    const char *why = wd_wire_take_hello(&l->wire, l->in);
    if (why)
        return why;
    l->stage = WD_LINK_PROOF; /* the time goes on: it has still proved nothing */
    if (wd_peers_is_hub(p) && (wd_link_send_hello(l) || wd_link_send(l, WD_WIRE_PROOF, NULL, 0)))
        return l->failure;
    return NULL;
}

/* ---- messages -------------------------------------------------------------------------- */

static const char *take_lost(struct wd_peers *p, const struct wd_wire_frame *f)
{
    char reason[200];
    uint32_t host = f->len >= 4 ? pt_get32(f->payload) : 0;
    if (wd_peers_is_hub(p) || !host || host >= (uint32_t)p->conf.nhosts)
        return "a message that makes no sense";
    p->complete = 0;
    snprintf(reason, sizeof(reason), "%.*s", (int)(f->len - 4), (const char *)f->payload + 4);
    p->hosts[host].state = HOST_LOST;
    p->conf.down(p->conf.arg, (int)host, reason);
    return NULL;
}

/* One of us speaks. */
static const char *take_message(struct wd_peers *p, struct wd_link *l,
                                const struct wd_wire_frame *f)
{
    switch (f->type) {
    case WD_WIRE_ALIVE:
        return NULL;
    case WD_WIRE_BYE:
        wd_peers_drop(p, l, NULL);
        return NULL;
    case WD_WIRE_COMPLETE:
        p->complete = !wd_peers_is_hub(p);
        return NULL;
    case WD_WIRE_LOST:
        return take_lost(p, f);
    default:
        if (f->type >= WD_WIRE_OURS)
            return "a message out of turn";
        p->conf.message(p->conf.arg, other_host(p, l), f->type, f->payload, f->len);
        return NULL;
    }
}

static const char *take_frame(struct wd_peers *p, struct wd_link *l, const struct wd_wire_frame *f)
{
    if (l->stage == WD_LINK_UP)
        return take_message(p, l, f);
    if (l->stage == WD_LINK_PROOF && f->type == WD_WIRE_PROOF)
        return take_proof(p, l, f);
    if (l->stage == WD_LINK_WELCOME && f->type == WD_WIRE_WELCOME)
        return ask_munge(p, l, WD_HELPER_CHECK, f);
    if (l->stage == WD_LINK_READY && f->type == WD_WIRE_READY) {
        if (p->hosts[l->wire.host].state == HOST_UP)
            return "that host is connected already";
        set_up(p, l);
        return NULL;
    }
    return "a message out of turn";
}

/* What is in the buffer; NULL, or why the connection is to be ended. */
static const char *take_input(struct wd_peers *p, struct wd_link *l)
{
    const char *why = NULL;
    while (!why && l->fd >= 0) {
        struct wd_wire_frame frame;
        size_t needed = WD_WIRE_HELLO;
        long used;
        if (l->stage == WD_LINK_HELLO) {
            if (l->in_have < WD_WIRE_HELLO)
                return NULL;
            used = WD_WIRE_HELLO;
            why = take_hello(p, l);
        } else {
            used = wd_wire_take(&l->wire, l->in, l->in_have, &frame, &needed, &why);
            if (used == 0)
                return wd_link_expect(l, needed) ? "out of memory" : NULL;
            if (used > 0)
                why = take_frame(p, l, &frame);
        }
        if (!why)
            wd_link_used(l, (size_t)used);
    }
    return why;
}

static const char *why_ended(const struct wd_link *l, int error)
{
    if (l->failure)
        return l->failure;
    if (error && error != ECONNRESET) /* which is the end, with something unread */
        return strerror(error);
    if (l->stage == WD_LINK_UP)
        return "connection closed";
    return l->stage > WD_LINK_PROOF ? "went away in the handshake" : "went away without proof";
}

void wd_peers_read(struct wd_peers *p, struct wd_link *l)
{
    const char *why = NULL;
    int rc = 1;
    for (int i = 0; i < READ_MAX && !why && l->fd >= 0 && rc > 0; i++) {
        rc = wd_link_read(l);
        if (rc < 0)
            why = why_ended(l, errno);
        if (rc > 0) {
            l->heard = wd_peers_now();
            why = take_input(p, l);
        }
    }
    if (why && l->fd >= 0)
        wd_peers_drop(p, l, why);
}
