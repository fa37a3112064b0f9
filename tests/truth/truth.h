/*
 * Programs whose dependencies are known by construction.
 *
 * A scenario is one function, called for each node.  It is made of primitives (an I/O,
 * a message, a lock) that do two things, each at its time: in a run they make the real
 * call, and with --edges they only write down what the call means: a post to a channel,
 * or a wait for one.  From these the true order between all I/O events is computed, so a
 * program and its truth cannot drift apart.  What a primitive means is the one thing
 * that has to be thought about, and stands with the primitive.
 *
 *   PROGRAM SCENARIO [ROUNDS]            runs it in the working directory
 *   PROGRAM SCENARIO [ROUNDS] --edges    prints "node NAME EVENTS" for each node, then
 *                                        "A:I -> B:J": J of B must not start before I of
 *                                        A is done; for each event and node the last one
 *   PROGRAM --list                       prints the scenarios
 */
#ifndef PT_TRUTH_H
#define PT_TRUTH_H

#include <stddef.h>

#define TRUTH_NODES 8

struct truth_node {
    int id;
    int fd;
    unsigned writes;
};

struct truth_scenario {
    const char *name;
    int nodes;
    void (*play)(struct truth_node *n);
};

extern int truth_rounds;  /* how often a scenario does what it does */
extern int truth_nodes;   /* of the scenario */
extern int truth_running; /* 1: make the calls, 0: write down what they mean */

__attribute__((noreturn, format(printf, 1, 2))) void truth_die(const char *fmt, ...);

/* ---- I/O: each call is one event of the node ---------------------------------------- */

void truth_open(struct truth_node *n); /* a file of its own, named by the node */
void truth_write(struct truth_node *n);
void truth_close(struct truth_node *n);
/* An event that the caller makes itself. */
void truth_event(struct truth_node *n);

/* ---- meaning: nothing happens in a run ------------------------------------------------ */

/*
 * A post carries what the node has done and what it knows of others.  The k-th wait of a
 * node on a channel is for the channel's k-th post; several nodes may wait for one post.
 */
void truth_post(struct truth_node *n, int channel);
void truth_wait(struct truth_node *n, int channel);
/*
 * The k-th such wait of the node is for k posts to any of the channels [first, first +
 * number), each of which gets `each` posts in all.  What must have happened: of one
 * channel as many posts as all posts of the others do not make up for.
 */
void truth_wait_any(struct truth_node *n, int first, int number, int each);

/* Channels that all programs use; those from CHANNEL_OWN on have the meaning they are given. */
int truth_channel(int kind, int from, int to);
enum { CHANNEL_MESSAGE, CHANNEL_TAKEN, CHANNEL_MEET, CHANNEL_FROM, CHANNEL_REPLY, CHANNEL_OWN };

/* Everybody of a group (a bit for each node) comes before anybody leaves. */
void truth_meet(struct truth_node *n, unsigned group);
unsigned truth_all(void);

/* ---- the program ------------------------------------------------------------------------ */

struct truth_program {
    const struct truth_scenario *scenarios; /* the last has no name */
    const char *name_format;                /* of nodes but the first: "%d", "0.%d.0" */
    void (*run)(const struct truth_scenario *s);
    /* What `run` has all nodes do around play(); NULL: nothing. */
    void (*play)(struct truth_node *n, const struct truth_scenario *s);
};

int truth_main(int argc, char **argv, const struct truth_program *p);
/* The scenario, from opening the node's file to closing it. */
void truth_play(struct truth_node *n, const struct truth_scenario *s);

/* Uses that much CPU time. */
void truth_compute(double seconds);

#endif
