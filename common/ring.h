/*
 * The memory that tracer and watchdog share, and how the tracer gets it.
 *
 * The watchdog creates one memfd a process and hands it over an abstract Unix
 * socket.  It starts with a pt_shm, followed by `nslots` slots of `slot_size`
 * bytes, each a pt_ring and its data.  Memory that nobody touches costs nothing,
 * so slots are plenty.  A second memfd, one for the whole host, is the bell: a
 * futex word by which tracers wake the watchdog.
 *
 * A ring has one producer (a thread of the application) and one consumer (the
 * watchdog).  head and tail count bytes and never wrap.  Records are whole words
 * and contiguous; PT_REC_PAD fills the end of the ring where one does not fit.
 */
#ifndef PT_RING_H
#define PT_RING_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/trace.h"

#define PT_SHM_MAGIC   0x50545348u /* PTSH */
#define PT_SHM_VERSION 1
#define PT_SHM_FILTERS 8192

/* ---- records --------------------------------------------------------------- */

enum { PT_REC_PAD = 0xffff, PT_REC_LOSS = 0xfffe }; /* in place of an op; PAD: skip its words */

enum {
    PT_RECF_INNER = PT_EV_INNER,
    PT_RECF_SYNC = PT_EV_SYNC,
    PT_RECF_FAILED = 1 << 2, /* an errno word follows */
    PT_RECF_CPU = 1 << 3,    /* a CPU time word follows */
    PT_RECF_HELD = 1 << 4,   /* a hold time word follows */
    PT_RECF_BUSY = 1 << 6,   /* a word follows: CPU time of the call, else its duration */
    PT_RECF_POLLS = 1 << 7,  /* a word follows: unsuccessful polls in this event */
    PT_RECF_FULL = 1 << 5,   /* result == LEN: no result word */
};

/*
 * A record: this head, then a word for each of: errno, CPU, hold, busy, polls, result (as the
 * flags say), then the row's fields in their order.  A string is a length word
 * and its bytes, padded to words.
 */
struct pt_rec {
    uint16_t op;
    uint16_t words; /* of the whole record */
    uint32_t flags;
    uint64_t begin; /* in the units of pt_shm.tsc; PT_REC_LOSS: number of events lost */
    uint64_t dur;
};

#define PT_REC_MAX_WORDS 2048 /* 16 KiB: two longest names and all fields */
#define PT_STRING_MAX    4096 /* a longer name is cut */

/* ---- a node's ring ---------------------------------------------------------- */

enum pt_phase {
    PT_PHASE_COMPUTE,
    PT_PHASE_IO,
    PT_PHASE_SYNC,
    PT_PHASE_IDLE,
    PT_PHASE_HELD,
};

#define PT_PHASE_WORD(phase, op) ((uint32_t)(phase) << 16 | (uint32_t)(op))
#define PT_PHASE_OF(word)        ((word) >> 16)

enum pt_slot_state { PT_SLOT_FREE, PT_SLOT_LIVE, PT_SLOT_ENDED };

enum pt_hold_word { PT_HOLD_NONE, PT_HOLD_ASKED, PT_HOLD_RELEASED };

struct pt_ring {
    /* written by the tracer */
    _Alignas(64) _Atomic uint64_t head;
    _Atomic uint64_t events;  /* completed, of any class: moves with every progress */
    _Atomic uint64_t io_done; /* completed I/O events */
    _Atomic uint32_t phase;   /* PT_PHASE_WORD */
    _Atomic uint32_t state;   /* enum pt_slot_state */
    _Atomic uint64_t dropped; /* events, in all: those of the last loss may have no record */
    uint64_t exit_begin;      /* when the node ended, 0: it has not; later events are possible */
    uint64_t exit_cpu;        /* CPU time in the gap before that, ns */
    int32_t tid;
    int32_t thread;       /* number within the process */
    uint64_t hold_period; /* of pt_shm, if this is the one; 0: it is not held */
    uint64_t start;       /* where the first think time begins */

    /* written by the watchdog */
    _Alignas(64) _Atomic uint64_t tail;

    /* written by both: futex, enum pt_hold_word */
    _Alignas(64) _Atomic uint32_t hold;

    _Alignas(64) unsigned char data[];
};

/* ---- a process' memory --------------------------------------------------------- */

struct pt_shm {
    uint32_t magic, version;
    uint32_t nslots;
    uint32_t ring_size;   /* bytes of data, a power of two */
    uint64_t slot_size;   /* bytes, ring head and data */
    uint64_t first_slot;  /* offset of slot 0 */
    uint32_t full;        /* enum pt_full */
    uint32_t tsc;         /* times are ticks of the processor's counter; 0: CLOCK_MONOTONIC, ns */
    uint64_t tick_mult;   /* ns = ticks * tick_mult >> 32 */
    int32_t watchdog;     /* its pid: is it still there? */
    struct pt_name name;  /* of the process' first thread */
    uint64_t hold_period; /* of the nodes that are held, 0: none is */
    int32_t hold_thread;  /* the only one, -1: all */
    _Atomic uint32_t next_slot;        /* how many are taken; the others are not even looked at */
    _Atomic uint32_t untraced_threads; /* threads that found no slot */
    /* "+GLOB", "-GLOB" and "!GLOB" strings (preload/filter.c), an empty one last */
    char filters[PT_SHM_FILTERS];
};

static inline struct pt_ring *pt_shm_ring(struct pt_shm *shm, uint32_t slot)
{
    return (struct pt_ring *)((char *)shm + shm->first_slot + slot * shm->slot_size);
}

struct pt_bell {
    _Atomic uint32_t rung;     /* futex */
    _Atomic uint32_t sleeping; /* the watchdog waits on it: a wake-up is needed */
};

/* ---- the greeting --------------------------------------------------------------- */

#define PT_HELLO_MAGIC 0x50544849u /* PTHI */
#define PT_HELLO_PATH  1024

struct pt_hello {
    uint32_t magic, version;
    int32_t rank; /* -1: not known */
    int32_t pid;
    uint64_t start;
    char exe[PT_HELLO_PATH];
    char cwd[PT_HELLO_PATH];
};

/* The answer; with accept != 0 it carries two descriptors: memory and bell. */
struct pt_welcome {
    uint32_t magic, version;
    uint32_t accept;
    uint32_t pad;
    uint64_t shm_size;
};

#endif
