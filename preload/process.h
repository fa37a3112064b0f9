/*
 * The process' connection to its watchdog.
 */
#ifndef PT_PROCESS_H
#define PT_PROCESS_H

#include "common/ring.h"

struct pt_bell *pt_process_bell(void);

/* Connects, once in a process' life; a failure is final. */
void pt_process_begin(void);

/* Takes a slot for a new thread; NULL if there is none. */
struct pt_ring *pt_process_slot(uint32_t *number);

#endif
