/*
 * What the watchdogs say to each other about holds.  The judge of each host looks at the
 * nodes there; the referee, on the step's first host, decides who is held and when
 * everybody is at rest.  On one host the two talk by function calls, between hosts over
 * peers.h, in the same words.
 *
 *   judge    ASK      a node wants its next I/O to be held
 *   referee  REFUSED  not now: somebody else is held
 *   referee  LOOK     to all: say when your nodes are at rest (GATHER), whether they have
 *                     been so ever since and are again (CONFIRM), or how they are (NOW)
 *   judge    STATE    how the nodes are; MOVED: not at rest any more
 *   referee  RESULT   to the held node's host: where everybody is; the node may go on
 *   referee  END      to the others: stop looking
 *   judge    GONE     the held node has ended
 *
 * Two rounds: a message that is on its way while the first one is answered, between two hosts or
 * from a node to one that was seen to wait before it was sent, moves somebody before the
 * second.  Integers are little-endian, as on all
 * processors that the tracer knows.
 */
#ifndef PT_VERDICT_H
#define PT_VERDICT_H

#include <stddef.h>
#include <stdint.h>

#include "common/trace.h"

enum wd_verdict_type {
    WD_SAY_ASK = 1,
    WD_SAY_REFUSED,
    WD_SAY_LOOK,
    WD_SAY_STATE,
    WD_SAY_RESULT,
    WD_SAY_END,
    WD_SAY_GONE,
};

enum wd_look_kind { WD_LOOK_GATHER, WD_LOOK_CONFIRM, WD_LOOK_NOW };

/*
 * Calls whose end the launcher's server tells each rank, after all have come there.  One of them
 * has come out: then the others are about to, however still they are until that server, which we
 * do not see, has had a CPU.
 */
enum wd_served { WD_SERVED_INIT = 1, WD_SERVED_FINALIZE = 2 };

/* ASK, REFUSED, GONE: a node. */
struct wd_say_node {
    struct pt_name name;
    uint32_t passed; /* ASK: enum wd_served that it has come out of */
    uint64_t io_event;
};

/* LOOK, END. */
struct wd_say_look {
    uint32_t hold, round; /* which one; answers carry the same */
    uint32_t kind;        /* enum wd_look_kind */
    struct pt_name held;
    uint32_t passed; /* by that one, enum wd_served */
};

/* STATE, RESULT: this head and `count` peers; `more`: another part follows. */
struct wd_say_state {
    uint32_t hold, round;
    uint32_t moved;     /* STATE: ask again, there are no peers */
    uint32_t timed_out; /* RESULT */
    uint32_t more, count;
    struct pt_name held; /* RESULT */
    uint32_t pad;
    uint64_t io_event; /* RESULT */
};

struct wd_say_peer {
    struct pt_name name;
    uint32_t state; /* enum pt_hold_state */
    uint64_t io_done;
};

#define WD_SAY_PEERS 2000 /* in one part */

/* Peers that come in parts. */
struct wd_peer_list {
    struct pt_hold_peer *peers;
    size_t n, room;
};

/* Appends the peers of a STATE or RESULT; -1 if it makes no sense or there is no memory. */
int wd_peer_list_add(struct wd_peer_list *list, const void *payload, size_t len);
int wd_peer_list_append(struct wd_peer_list *list, const struct pt_hold_peer *peers, size_t n);
void wd_peer_list_free(struct wd_peer_list *list);

/* Says all of it, in parts; `say` gets each. */
typedef void wd_say_fn(void *arg, uint16_t type, const void *payload, size_t len);
void wd_say_peers(const struct wd_say_state *head, uint16_t type, const struct pt_hold_peer *peers,
                  size_t n, wd_say_fn *say, void *arg);

#endif
