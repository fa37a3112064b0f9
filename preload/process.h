/*
 * The process' part of the memory that it shares with its watchdog.
 */
#ifndef PT_PROCESS_H
#define PT_PROCESS_H

#include "common/ring.h"

/*
 * Finds the memory, once in a process' life; a failure is final.  Returns a descriptor of it,
 * for pt_process_ring() and then to be closed (programs close what they do not know), or -1.
 */
int pt_process_begin(void);

/* Would a program that is executed now find it, too? */
int pt_process_is_found(void);

/* The program's arguments, to be said before; without them it works, too, but not as fast. */
void pt_process_arguments(int argc, char **argv);

/* Takes a ring and a number for a new thread of this process; NULL if there is none. */
struct pt_ring *pt_process_ring(int fd, uint32_t *number);
/* Gives the ring back: the next new thread goes on in it. */
void pt_process_ring_done(const struct pt_ring *ring);

#define PT_FIRST_STEP 4096 /* of a ring's data that are in place from the beginning */

/* Maps the pages there that the memory has already, many at a time. */
void pt_map_pages(const void *at, size_t bytes);

/* The calling thread's, as the watchdog sees it (not of a second thread in another namespace). */
int32_t pt_process_thread_id(void);

/* The plan's entries for that node; their number. */
uint32_t pt_process_plan(const struct pt_name *name, const struct pt_plan_entry **first);

#endif
