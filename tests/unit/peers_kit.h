/*
 * For the tests of the connected watchdogs: sides that note what happens to them, driven
 * in one process; and a client made by hand, which can misbehave.
 */
#ifndef PEERS_KIT_H
#define PEERS_KIT_H

#include "watchdog/peers.h"

#define KIT_HOSTS 3   /* of the step, unless the test says otherwise */
#define KIT_MAX   120 /* it may say */

/* One watchdog. */
struct side {
    struct wd_peers *p;
    int ups[KIT_MAX], downs[KIT_MAX];
    char reason[KIT_MAX][300]; /* of the last down; "": in good order */
    int messages[KIT_MAX];
    uint16_t type[KIT_MAX]; /* of the last message */
    size_t len[KIT_MAX];
    int disordered;
};

/* The step of this test: everybody who knows it belongs to it. */
extern struct wd_peers_conf kit_conf;

/* A free port, a secret, no munge. */
void kit_begin(void);

/* Starts the watchdog of a host; `conf` differs from kit_conf or is that. */
void kit_start(struct side *s, int host, const struct wd_peers_conf *conf);
void kit_stop(struct side *s);

/* All sides that are started work for up to `ms`, until cond(arg) holds; whether it does. */
int kit_until(int ms, int (*cond)(void *arg), void *arg);
void kit_work(int ms);

/* Starts hub and clients and waits until all know that they are complete. */
void kit_connect(struct side *hub, struct side *clients, int nclients);

uint64_t kit_refused(const struct side *s);

/* In a process of its own, until it is killed: the watchdog of a host. */
int kit_fork(int host);

/* ---- a client by hand, munge = no -------------------------------------------------- */

struct raw {
    int fd;
    struct wd_wire wire;
    unsigned char sent[2048]; /* all that was sent */
    size_t nsent;
};

/* Connects; begins as that host. */
void raw_open(struct raw *r, int host);
void raw_close(struct raw *r);
void raw_send(struct raw *r, const void *bytes, size_t len);

/* Up to `len` bytes; how many came before the end or 3 s.  The sides work meanwhile. */
size_t raw_receive(struct raw *r, void *bytes, size_t len);

/* Is the connection closed by the hub within 4 s? */
int raw_is_closed(struct raw *r);

/* Exchanges the hellos and takes the hub's proof. */
void raw_hello(struct raw *r);

/* The whole handshake. */
void raw_join(struct raw *r);

#endif
