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

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define HANDLE_NO_SLOT UINT32_MAX

enum handle_fate {
    HANDLE_MISSING, /* nobody opens it */
    HANDLE_OPENED,  /* some event opens it */
    HANDLE_IGNORED, /* a terminal, a pipe, a device: not replayed */
};

/* What an open handle stands for. */
struct handle_live {
    int fd;
    FILE *stream; /* of fd, or NULL */
    DIR *dir;     /* of fd, or NULL */
    char *buffer; /* of the stream, if it is not libc's: freed after the stream */
};

/* What a call needs besides the descriptor. */
enum handle_form { HANDLE_FD, HANDLE_STREAM, HANDLE_DIR };

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

/* The same with a stream or a directory; what `live` holds is the slot's from now on. */
void handles_set_live(struct handles *h, uint32_t slot, const struct handle_live *live);

/* Adds a second descriptor of the same open file to an open slot. */
void handles_add(struct handles *h, uint32_t slot, int fd);

/*
 * The slot's descriptor; waits while its open is still to come.  -1 and EBADF if it is
 * closed or its open failed.
 */
int handles_get(struct handles *h, uint32_t slot);

/*
 * All that the slot stands for, waiting as handles_get; a stream or directory that is asked
 * for is made of the descriptor if there is none yet (fdopen, fdopendir).  -1 and errno.
 */
int handles_live(struct handles *h, uint32_t slot, enum handle_form form, struct handle_live *live);

/* A buffer for the slot's stream, which lives as long; NULL without memory. */
char *handles_buffer(struct handles *h, uint32_t slot, size_t size);

/* fdopen's mode for an open descriptor. */
const char *handles_stream_mode(int fd);

/* A use of the slot is over. */
void handles_used(struct handles *h, uint32_t slot);

/*
 * Takes a descriptor, with its stream or directory, out of the slot for the caller to
 * close, once `uses` uses are over.  0, or -1 and EBADF as handles_get.
 */
int handles_take(struct handles *h, uint32_t slot, uint32_t uses, struct handle_live *live);

#endif
