/*
 * A ring of stream sockets: each rank has a socket to the next rank and one from the previous.
 *
 * Three ways to make it: forked processes inherit a socket pair each; tasks meet at abstract Unix
 * sockets, which need no file; with 'tcp', ranks listen on TCP ports. Forked ones then
 * use the loopback interface; tasks publish host and port in a file in 'dir', which lets the
 * ring cross hosts when they share that directory.
 */
#ifndef EXAMPLES_RING_H
#define EXAMPLES_RING_H

#include "group.h"

struct ring {
    const struct group *group;
    bool tcp;
    const char *dir;
    int *inherited; /* forked: what is made before the fork, two descriptors per rank */
    int next, prev;
};

/* Before group_fork() and after it. */
void ring_prepare(struct ring *r, const struct group *g, bool tcp, const char *dir);
void ring_connect(struct ring *r);

/* Pass a token of one number to the next rank; take the one from the previous rank. */
void ring_send(const struct ring *r, uint64_t token);
uint64_t ring_receive(const struct ring *r);

void ring_close(struct ring *r);

#endif
