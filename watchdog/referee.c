#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "watchdog/referee.h"

#define ANSWER_NS 500000000u /* how long to wait for the states when hold-max is over */
#define MAX_TURNS 256        /* nodes whose turns are kept in mind */
#define PATIENCE  64         /* refusals after which a turn that nobody takes is over */

enum status { WAITING, OPEN, CLOSED };

/* Who was held how often: with throttle:auto every node is to have its turn. */
struct turn {
    struct pt_name name;
    uint64_t held;
    uint64_t hungry; /* refused since; counts down what others are refused for its sake */
};

struct place {
    int answered, left;
    struct wd_peer_list list;
};

struct wd_referee {
    struct wd_referee_conf conf;
    enum status status;
    struct place *hosts;
    struct turn turns[MAX_TURNS];
    size_t nturns;

    int active; /* somebody is held, of that host: */
    int host;
    struct wd_say_node held;
    uint32_t hold, round;
    enum wd_look_kind kind;
    uint64_t since, deadline; /* 0: not known before the next tick */

    int waiting; /* who asked before all hosts were there */
    int waiting_host;
    struct wd_say_node waiting_node;
};

struct wd_referee *wd_referee_create(const struct wd_referee_conf *conf)
{
    struct wd_referee *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    r->conf = *conf;
    r->status = conf->nhosts > 1 ? WAITING : OPEN;
    r->hosts = calloc((size_t)conf->nhosts, sizeof(*r->hosts));
    if (!r->hosts) {
        free(r);
        return NULL;
    }
    return r;
}

void wd_referee_destroy(struct wd_referee *r)
{
    if (!r)
        return;
    for (int i = 0; i < r->conf.nhosts; i++)
        wd_peer_list_free(&r->hosts[i].list);
    free(r->hosts);
    free(r);
}

/* ---- turns ------------------------------------------------------------------------------- */

static struct turn *find_turn(struct wd_referee *r, const struct pt_name *name)
{
    for (size_t i = 0; i < r->nturns; i++)
        if (!pt_name_compare(&r->turns[i].name, name))
            return &r->turns[i];
    if (r->nturns == MAX_TURNS)
        return NULL;
    r->turns[r->nturns] = (struct turn){.name = *name};
    return &r->turns[r->nturns++];
}

/* Somebody else has been held less often and was refused; it will soon ask again. */
static int others_first(struct wd_referee *r, const struct turn *mine)
{
    for (size_t i = 0; i < r->nturns; i++) {
        struct turn *other = &r->turns[i];
        if (other != mine && other->hungry && other->held < mine->held) {
            other->hungry--;
            return 1;
        }
    }
    return 0;
}

static int may_hold(struct wd_referee *r, const struct pt_name *name)
{
    struct turn *mine = find_turn(r, name);
    if (!mine) /* too many to keep in mind */
        return !r->active;
    if (r->active || others_first(r, mine)) {
        mine->hungry = PATIENCE;
        return 0;
    }
    mine->held++;
    mine->hungry = 0;
    return 1;
}

/* ---- a hold ---------------------------------------------------------------------------------- */

static void look(struct wd_referee *r, enum wd_look_kind kind)
{
    r->kind = kind;
    r->round++;
    struct wd_say_look say = {r->hold, r->round, kind, r->held.name, r->held.passed};
    for (int i = 0; i < r->conf.nhosts; i++) {
        r->hosts[i].answered = r->hosts[i].left;
        r->hosts[i].list.n = 0;
    }
    uint32_t round = r->round;
    /* An answer may come at once, and with it the end of the round. */
    for (int i = 0; i < r->conf.nhosts && r->active && r->round == round; i++)
        if (!r->hosts[i].left)
            r->conf.say(r->conf.arg, i, WD_SAY_LOOK, &say, sizeof(say));
}

static void begin(struct wd_referee *r, int host, const struct wd_say_node *node)
{
    r->active = 1;
    r->host = host;
    r->held = *node;
    r->since = r->deadline = 0;
    r->hold++;
    look(r, WD_LOOK_GATHER);
}

static void say_result(void *arg, uint16_t type, const void *payload, size_t len)
{
    struct wd_referee *r = arg;
    r->conf.say(r->conf.arg, r->host, type, payload, len);
}

static void finish(struct wd_referee *r, int timed_out)
{
    struct wd_peer_list all = {0};
    struct wd_say_look stop = {r->hold, r->round, 0, r->held.name, 0};
    struct wd_say_state head = {
        .hold = r->hold,
        .timed_out = (uint32_t)timed_out,
        .held = r->held.name,
        .io_event = r->held.io_event,
    };
    r->active = 0;
    for (int i = 0; i < r->conf.nhosts; i++) {
        wd_peer_list_append(&all, r->hosts[i].list.peers, r->hosts[i].list.n);
        if (!r->hosts[i].left)
            r->conf.say(r->conf.arg, i, WD_SAY_END, &stop, sizeof(stop));
    }
    wd_say_peers(&head, WD_SAY_RESULT, all.peers, all.n, say_result, r);
    wd_peer_list_free(&all);
}

static int all_answered(const struct wd_referee *r)
{
    for (int i = 0; i < r->conf.nhosts; i++)
        if (!r->hosts[i].answered)
            return 0;
    return 1;
}

static void next_step(struct wd_referee *r)
{
    if (!r->active || !all_answered(r))
        return;
    if (r->kind == WD_LOOK_GATHER)
        look(r, WD_LOOK_CONFIRM);
    else
        finish(r, r->kind == WD_LOOK_NOW);
}

/* ---- hearing ----------------------------------------------------------------------------- */

static void refuse(struct wd_referee *r, int host, const struct wd_say_node *node)
{
    r->conf.say(r->conf.arg, host, WD_SAY_REFUSED, node, sizeof(*node));
}

static void hear_ask(struct wd_referee *r, int host, const struct wd_say_node *node)
{
    if (r->status == WAITING && !r->waiting) {
        r->waiting = 1;
        r->waiting_host = host;
        r->waiting_node = *node;
    } else if (r->status == OPEN && may_hold(r, &node->name)) {
        begin(r, host, node);
    } else {
        refuse(r, host, node);
    }
}

static void hear_gone(struct wd_referee *r, int host, const struct wd_say_node *node)
{
    if (r->waiting && r->waiting_host == host &&
        !pt_name_compare(&r->waiting_node.name, &node->name))
        r->waiting = 0;
    if (r->active && r->host == host && !pt_name_compare(&r->held.name, &node->name))
        finish(r, 1);
}

static void hear_state(struct wd_referee *r, int host, const void *payload, size_t len)
{
    struct wd_say_state state;
    struct place *place = &r->hosts[host];
    if (len < sizeof(state))
        return;
    memcpy(&state, payload, sizeof(state));
    if (!r->active || state.hold != r->hold || state.round != r->round || place->answered)
        return; /* of a round that is over */
    if (state.moved) {
        look(r, WD_LOOK_GATHER);
        return;
    }
    if (wd_peer_list_add(&place->list, payload, len) || state.more)
        return;
    place->answered = 1;
    next_step(r);
}

void wd_referee_hear(struct wd_referee *r, int host, uint16_t type, const void *payload, size_t len)
{
    struct wd_say_node node;
    if (host < 0 || host >= r->conf.nhosts)
        return;
    if (type == WD_SAY_STATE) {
        hear_state(r, host, payload, len);
        return;
    }
    if (len != sizeof(node))
        return;
    memcpy(&node, payload, sizeof(node));
    if (type == WD_SAY_ASK)
        hear_ask(r, host, &node);
    else if (type == WD_SAY_GONE)
        hear_gone(r, host, &node);
}

/* ---- hosts ----------------------------------------------------------------------------------- */

void wd_referee_open(struct wd_referee *r)
{
    if (r->status != WAITING)
        return;
    r->status = OPEN;
    if (r->waiting) {
        r->waiting = 0;
        hear_ask(r, r->waiting_host, &r->waiting_node);
    }
}

void wd_referee_left(struct wd_referee *r, int host)
{
    r->hosts[host].left = r->hosts[host].answered = 1;
    r->hosts[host].list.n = 0;
    if (r->active && r->host == host)
        r->active = 0;
    next_step(r);
}

void wd_referee_close(struct wd_referee *r)
{
    r->status = CLOSED;
    if (r->waiting)
        refuse(r, r->waiting_host, &r->waiting_node);
    r->waiting = 0;
    if (r->active)
        finish(r, 1);
}

int wd_referee_tick(struct wd_referee *r, uint64_t now)
{
    if (!r->active)
        return 0;
    if (!r->since) {
        r->since = now;
        r->deadline = now + r->conf.hold_max;
    }
    if (now < r->deadline)
        return 1;
    if (r->kind == WD_LOOK_NOW) {
        finish(r, 1); /* somebody does not even answer */
    } else {
        r->deadline = now + ANSWER_NS;
        look(r, WD_LOOK_NOW);
    }
    return r->active;
}
