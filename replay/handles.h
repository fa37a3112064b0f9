/*
 * The handles of the trace and the live descriptors they stand for.
 *
 * A handle numbers an open of a process, so the pair (process, handle) never means
 * two files.  Each pair has a slot; slots are given out while planning, so that the
 * replay itself neither searches nor allocates.  Threads of one process share their
 * slots: who uses a handle that another thread opens waits for that open, and a
 * close waits for the uses that came before it in the trace.
 */
#ifndef PT_REPLAY_HANDLES_H
#define PT_REPLAY_HANDLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HANDLE_NO_SLOT UINT32_MAX

enum handle_fate {
    HANDLE_MISSING, /* nobody opens it */
    HANDLE_OPENED,  /* some event opens it */
    HANDLE_IGNORED, /* a terminal, a pipe, a device: not replayed */
};

struct handles;

/* NULL and errno if there is no memory. */
struct handles *handles_create(void);

/* Closes what is still open. */
void handles_destroy(struct handles *h);

/*
 * The slot of a handle, the same each time it is asked for; HANDLE_NO_SLOT for handle
 * 0, which stands for none, and, with errno ENOMEM, if there is no memory.
 */
uint32_t handles_slot(struct handles *h, uint32_t process, uint32_t handle);
size_t handles_count(const struct handles *h);

void handles_set_fate(struct handles *h, uint32_t slot, enum handle_fate fate);
enum handle_fate handles_fate(const struct handles *h, uint32_t slot);

/* ---- while replaying, by any thread ------------------------------------------- */

/* The slot's open is done: with that descriptor, or, if fd is -1, in vain. */
void handles_set(struct handles *h, uint32_t slot, int fd);

/* Adds a second descriptor of the same open file to an open slot. */
void handles_add(struct handles *h, uint32_t slot, int fd);

/*
 * The slot's descriptor; waits while its open is still to come.  -1 and EBADF if it is
 * closed or its open failed.
 */
int handles_get(struct handles *h, uint32_t slot);

/* A use of the slot is over. */
void handles_used(struct handles *h, uint32_t slot);

/*
 * Takes a descriptor out of the slot for the caller to close, once `uses` uses are
 * over.  -1 and EBADF as handles_get.
 */
int handles_take(struct handles *h, uint32_t slot, uint32_t uses);

#endif
