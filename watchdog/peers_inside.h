/*
 * The inside of peers.h, for its parts: peers.c (life, time), peer_links.c (links come,
 * prove themselves, speak and go), peer_find.c (how hub and clients find each other).
 */
#ifndef PT_PEERS_INSIDE_H
#define PT_PEERS_INSIDE_H

#include "watchdog/peer_helper.h"
#include "watchdog/peer_link.h"
#include "watchdog/peers.h"

#define WD_PEERS_FAST 10 /* ms between two looks at the clock, while something is expected */
#define WD_PEERS_SLOW 500

enum wd_host_state { HOST_ABSENT, HOST_UP, HOST_ENDED, HOST_LOST };

struct wd_host {
    enum wd_host_state state;
    struct wd_link *link; /* UP */
};

/* A client's search for the hub. */
struct wd_search {
    int over; /* found, or given up */
    uint64_t until, next, pause;
    uint64_t look_up; /* when the name is looked up again; 0: not */
    int naddresses, address;
    struct sockaddr_storage addresses[WD_HELPER_ADDRESSES];
    unsigned port;
    char why[160]; /* it has not been found */
};

struct wd_peers {
    struct wd_peers_conf conf;
    char *address, *munge_socket;
    struct wd_wire_step step;
    int epoll, timer, helper, listener; /* descriptors; -1: none */
    int listening;                      /* the listener is in the epoll */
    int tick_ms;
    uint32_t next_id;
    struct wd_link *links; /* newest first */
    struct wd_host *hosts; /* conf.nhosts */
    int complete;
    struct wd_search search;
    struct wd_peers_stats stats;
};

/* ---- peers.c ------------------------------------------------------------------------ */

uint64_t wd_peers_now(void); /* ms */
int wd_peers_is_hub(const struct wd_peers *p);
int wd_peers_watch(struct wd_peers *p, int fd, void *what);
void wd_peers_set_tick(struct wd_peers *p, int ms);

/* ---- peer_links.c ------------------------------------------------------------------- */

/* Takes over a socket; NULL: it could not, and fd is still the caller's. */
struct wd_link *wd_peers_add(struct wd_peers *p, int fd, enum wd_link_stage stage);

/*
 * Ends a connection and tells whom it concerns; it is freed later, when nobody can have it
 * in hand.  A NULL reason: the other side has taken its leave.
 */
void wd_peers_drop(struct wd_peers *p, struct wd_link *l, const char *reason);

/* There is something to read. */
void wd_peers_read(struct wd_peers *p, struct wd_link *l);

/* The helper had too much to do for this one's question, if it has one. */
void wd_peers_ask_again(struct wd_peers *p, struct wd_link *l);

/* munged has answered. */
void wd_peers_go_on(struct wd_peers *p, const struct wd_helper_answer *a);

/* ---- peer_find.c -------------------------------------------------------------------- */

/* The hub. */
int wd_peers_listen(struct wd_peers *p, struct pt_err *err);
void wd_peers_accept(struct wd_peers *p);

/* A client: begins, is told the addresses, goes on as far as it can now, has connected. */
void wd_peers_search_begin(struct wd_peers *p);
void wd_peers_search_addresses(struct wd_peers *p, const struct wd_helper_answer *a);
void wd_peers_search(struct wd_peers *p);
void wd_peers_connected(struct wd_peers *p, struct wd_link *l);

#endif
