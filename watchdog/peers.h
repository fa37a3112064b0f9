/*
 * The watchdogs of one step on several hosts, connected: a star.  The one on the step's
 * first host, the hub, listens; each other one connects to it and stays.  A client talks
 * to the hub only.  Who takes part has proved that it knows the step's secret and, where
 * munge is there, that it is of the same user; see peer_wire.h.
 *
 * Nothing here ever waits.  A host that is lost is said to be lost, and the step goes on.
 */
#ifndef PT_PEERS_H
#define PT_PEERS_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/hosts.h"
#include "watchdog/peer_wire.h"

struct wd_peers;

struct wd_peers_conf {
    int hostid, nhosts;  /* hostid 0 is the hub */
    const char *address; /* of the hub: name or number; clients only */
    struct pt_ports ports;
    uint32_t job, step;
    unsigned char secret[WD_WIRE_SECRET]; /* the same on all hosts, nobody else's */
    enum pt_munge munge;
    const char *munge_socket; /* NULL: munge's own */

    /*
     * Called from wd_peers_work().  They may send, but not destroy.  `reason` is NULL for
     * a host that has ended in good order.  A client is told of the hub's ups and downs,
     * and of each other host that was lost; a hub that could not be reached is down.
     */
    void (*message)(void *arg, int host, uint16_t type, const void *payload, size_t len);
    void (*up)(void *arg, int host);
    void (*down)(void *arg, int host, const char *reason);
    void *arg;
};

/* For the record. */
struct wd_peers_stats {
    uint64_t refused;  /* connections, before they were anybody's */
    char refusal[160]; /* why, the first of them */
    int up;            /* hosts that are connected now */
    int munge;         /* credentials were checked */
};

/* NULL and err on failure.  conf is copied, with its strings. */
struct wd_peers *wd_peers_create(const struct wd_peers_conf *conf, struct pt_err *err);

/* Tells the others that we end in good order, as far as that goes without waiting. */
void wd_peers_destroy(struct wd_peers *p);

/* One descriptor for the caller's epoll; when it is readable, there is work. */
int wd_peers_fd(const struct wd_peers *p);
void wd_peers_work(struct wd_peers *p);

/*
 * Queues a message of a type below WD_WIRE_OURS and at most WD_WIRE_MAX bytes; it leaves
 * at once if it can.  -1 if that host is not connected, or has not read for so long that
 * it is given up.
 */
int wd_peers_send(struct wd_peers *p, int host, uint16_t type, const void *payload, size_t len);

/*
 * Is every host connected, or has been and has ended in good order?  A client hears of
 * the others from the hub, and is not complete without it.
 */
int wd_peers_complete(const struct wd_peers *p);

void wd_peers_stats(const struct wd_peers *p, struct wd_peers_stats *stats);

#endif
