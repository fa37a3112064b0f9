/*
 * The memory that tracers and watchdog share, and how a tracer gets it.
 *
 * The watchdog makes one memfd for the whole host and step.  It starts with a
 * pt_memory, which every traced process maps, followed by `nslots` slots of
 * `slot_size` bytes, each a pt_ring and its data.  A thread claims a slot by
 * writing its pid where a zero was, and maps just that slot, or nothing if it is one of
 * the first, which are mapped with the pt_memory; memory that nobody touches costs
 * nothing.  Nobody has to be asked, so that a process that lives for a millisecond is
 * not twice as slow.
 *
 * A tracer opens the memfd through the watchdog's entry in /proc.  Where that cannot
 * be seen (a container with its own process ids) the watchdog hands it over an
 * abstract Unix socket.
 *
 * A ring has one producer (a thread of the application) and one consumer (the
 * watchdog).  head and tail count bytes and never wrap.  Records are whole words
 * and contiguous; PT_REC_PAD fills the end of the ring where one does not fit.  A ring
 * serves one thread after another of its process: PT_REC_BEGIN says whose turn it is.
 */
#ifndef PT_RING_H
#define PT_RING_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/filter.h"
#include "common/trace.h"

#define PT_MEMORY_MAGIC   0x50545348u /* PTSH */
#define PT_MEMORY_VERSION 10
#define PT_PROGRAMS_SIZE  12288 /* bytes */
#define PT_MAX_SLOTS      4096  /* threads at a time on one host */
#define PT_MAX_RANKS      1024  /* on one host; a power of two */
#define PT_PAGE           4096
#define PT_KNOWN_PROGRAMS 64
#define PT_MAX_COMING     64 /* processes between their creation and their first call */

/* ---- records --------------------------------------------------------------- */

/* In place of an op. */
enum {
    PT_REC_PAD = 0xffff,   /* skip so many words as the flags say; may be one word itself */
    PT_REC_LOSS = 0xfffe,  /* begin: number of events lost */
    PT_REC_BEGIN = 0xfffd, /* begin: when, dur: number of the thread from here on, flags: its id */
    PT_REC_END = 0xfffc,   /* begin: when, dur: CPU time in the gap before, ns; more may follow */
};

enum {
    PT_RECF_INNER = PT_EV_INNER,
    PT_RECF_SYNC = PT_EV_SYNC,
    PT_RECF_FAILED = 1 << 2, /* an errno word follows */
    PT_RECF_CPU = 1 << 3,    /* a CPU time word follows */
    PT_RECF_HELD = 1 << 4,   /* a hold time word follows */
    PT_RECF_BUSY = 1 << 6,   /* a word follows: CPU time of the call, else its duration */
    PT_RECF_POLLS = 1 << 7,  /* two words follow: unsuccessful polls in this event, and how long
                                they took before `begin` (0 if they are the event) */
    PT_RECF_IDLE = PT_EV_IDLE,
};

/*
 * A record: this head, then a word for each of: errno, CPU, hold, busy, polls (two), result (as
 * the flags say), then the row's fields in their order.  A string is a length word
 * and its bytes, padded to words.
 */
struct pt_rec {
    uint16_t op;
    uint16_t words; /* of the whole record */
    uint32_t flags;
    uint64_t begin; /* in the units of pt_memory.tsc */
    uint64_t dur;
};

/*
 * The short form, for the many: rows with the fields FD and LEN.  It is told by PT_SHORT in the
 * place of the words.  Where less went through than was asked for, the op says so by PT_PART, and
 * `len` is both: PT_PARTS.
 */
struct pt_short {
    uint16_t op;
    uint16_t dur;   /* PT_SHORT | ticks */
    uint32_t begin; /* low half, less than 2^31 ticks from the end of the record before */
    uint32_t file;  /* PT_SHORT_FILE */
    uint32_t len;
};

#define PT_PART               0x4000u
#define PT_PART_MAX           0xffffu
#define PT_PARTS(asked, went) ((uint32_t)(asked) << 16 | (uint32_t)(went))
#define PT_PART_ASKED(len)    ((len) >> 16)
#define PT_PART_WENT(len)     ((len)&PT_PART_MAX)

#define PT_SHORT                0x8000u
#define PT_SHORT_MAX_FD         (1u << 12)
#define PT_SHORT_MAX_HANDLE     (1u << 20)
#define PT_SHORT_FILE(fd, hand) ((uint32_t)(hand) << 12 | (uint32_t)(fd))
#define PT_SHORT_WORD(file)     PT_FD_WORD((file) & (PT_SHORT_MAX_FD - 1), (file) >> 12)

/*
 * The tiny form, one word, for what compilers write by the ten thousand: a few bytes that have
 * only gone into the buffer of the stream that the last short form was about, after `inlined`
 * bytes that putc_unlocked has put there without a call, which are an event before it.  It took no
 * time.  The word is, from the lowest bit: PT_TINY | op, 9 bits LEN, 10 bits `inlined`, and the
 * lowest 29 of when it began, less than 2^28 ticks from the end of the record before.
 */
#define PT_TINY               0x8000u /* in an op; not those above that are none */
#define PT_TINY_MAX_LEN       511
#define PT_TINY_MAX_INLINED   1023
#define PT_TINY_TIME_BITS     29
#define PT_IS_TINY(op)        ((op)&PT_TINY && (op) < PT_REC_END)
#define PT_TINY_OP(word)      ((uint16_t)((word) & (PT_TINY - 1)))
#define PT_TINY_LEN(word)     ((word) >> 16 & PT_TINY_MAX_LEN)
#define PT_TINY_INLINED(word) ((word) >> 25 & PT_TINY_MAX_INLINED)
#define PT_TINY_BEGIN(word)   ((word) >> 35)

static inline uint64_t pt_tiny_word(uint16_t op, uint64_t len, uint64_t inlined, uint64_t begin)
{
    return PT_TINY | op | len << 16 | inlined << 25 | begin << 35;
}

#define PT_REC_MAX_WORDS 2048 /* 16 KiB: two longest names and all fields */
#define PT_STRING_MAX    4096 /* a longer name is cut */

#define PT_PROCESS_PATH 1024

/* ---- a node's ring ---------------------------------------------------------- */

enum pt_phase {
    PT_PHASE_COMPUTE,
    PT_PHASE_IO,
    PT_PHASE_SYNC,
    PT_PHASE_IDLE,
    PT_PHASE_HELD,
    PT_PHASE_POLL,   /* has asked in vain, and will ask again if it waits */
    PT_PHASE_INSIDE, /* in an I/O that may itself wait for others, as MPI's collective ones */
};

/* A request to linger: its number, and the CPU time in microseconds. */
#define PT_LINGER(number, us) ((uint64_t)(number) << 32 | (uint32_t)(us))
#define PT_LINGER_NUMBER(w)   ((uint32_t)((w) >> 32))
#define PT_LINGER_US(w)       ((uint32_t)(w))

#define PT_PHASE_WORD(phase, op) ((uint32_t)(phase) << 16 | (uint32_t)(op))
#define PT_PHASE_OF(word)        ((word) >> 16)
#define PT_PHASE_OP(word)        ((word)&0xffff)

enum pt_slot_state {
    PT_SLOT_FREE,
    PT_SLOT_LIVE,
    PT_SLOT_ENDED,
    PT_SLOT_COMING, /* for a thread that was created and has not run yet */
};

enum pt_hold_word { PT_HOLD_NONE, PT_HOLD_ASKED, PT_HOLD_RELEASED };

#define PT_PENDING_NEAR 192 /* words */
#define PT_MAX_OPEN     8   /* a power of two; so many signals in one another are not met */

struct pt_ring {
    /* written by the tracer */
    _Alignas(64) _Atomic uint64_t head;
    _Atomic uint64_t events;   /* completed, but for sleeps: moves with every progress */
    _Atomic uint64_t io_done;  /* completed I/O events of the present thread */
    _Atomic uint32_t phase;    /* PT_PHASE_WORD */
    _Atomic uint32_t state;    /* enum pt_slot_state */
    _Atomic uint64_t transfer; /* bytes of the largest message so far that MPI may be moving */
    _Atomic uint64_t polls;    /* unsuccessful ones that have returned: no progress */
    _Atomic uint32_t lingered; /* the last request that it has complied with */
    /*
     * 1 + the head for which the record at pt_ring_pending() holds: polls that have not come to
     * an end.  Whatever is published later takes their place.
     */
    _Atomic uint64_t pending_head;
    /*
     * Where the head would be if the records that a signal handler has interrupted were ended, and
     * their places.  If the process ends there they never are, and the handler's are all the same.
     */
    _Atomic uint64_t nested_head;
    struct {
        uint64_t at, bytes; /* 0 bytes: none */
    } interrupted[PT_MAX_OPEN];
    _Atomic uint64_t dropped;    /* events, in all: those of the last loss may have no record */
    _Atomic int32_t tid, thread; /* of the present thread: its id, its number in the process */

    /* written by the watchdog */
    _Alignas(64) _Atomic uint64_t tail;

    /*
     * PT_LINGER: the thread is to keep its CPU where MPI, waiting, would give it away, until it
     * has used so much of it; 0: it may do as it likes.
     */
    _Atomic uint64_t linger;

    /* written by both: futex, enum pt_hold_word */
    _Alignas(64) _Atomic uint32_t hold;

    /* the process, written by the tracer before the state says LIVE */
    _Alignas(64) int32_t pid;
    uint32_t arrival;          /* which greeting on this host it was */
    struct pt_name name;       /* of the process' first thread */
    uint32_t first;            /* this is the ring of that thread */
    uint64_t start;            /* when the process came, in the units of pt_memory.tsc */
    char exe[PT_PROCESS_PATH]; /* as exec was given it, or as /proc has it */
    char cwd[PT_PROCESS_PATH];

    uint32_t pending_words; /* of the pending record */
    uint64_t pending[PT_PENDING_NEAR];

    _Alignas(PT_PAGE) unsigned char data[];
};

_Static_assert(sizeof(struct pt_ring) == PT_PAGE, "a process touches it and the first data");

/* The place for a pending record: most fit into the page of the others, the slot has room too. */
static inline uint64_t *pt_ring_pending(struct pt_ring *ring, uint64_t ring_size, unsigned words)
{
    return words <= PT_PENDING_NEAR ? ring->pending : (uint64_t *)(ring->data + ring_size);
}

#define PT_PENDING_BYTES (PT_REC_MAX_WORDS * sizeof(uint64_t))

/* ---- the memory's head --------------------------------------------------------- */

struct pt_bell {
    _Atomic uint32_t rung;     /* futex */
    _Atomic uint32_t sleeping; /* the watchdog waits on it: a wake-up is needed */
};

struct pt_rank_entry {
    _Atomic uint32_t rank_plus_1; /* 0: nobody's */
    _Atomic uint32_t processes;   /* the first one and its children, so far: see lineage.h */
    _Atomic uint32_t any;         /* those that are numbered as they come, so far */
};

/* One I/O that is to be held. */
struct pt_plan_entry {
    struct pt_name name;
    uint32_t pad;
    uint64_t io_event;
};

struct pt_memory {
    /* written by the watchdog before anybody comes */
    uint32_t magic, version;
    uint32_t nslots;
    uint32_t ring_size;  /* bytes of data, a power of two */
    uint64_t slot_size;  /* bytes: ring head, data, a large pending record */
    uint64_t first_slot; /* offset of slot 0 */
    uint64_t plan_start; /* offset of the plan, sorted pt_plan_entry */
    uint32_t plan_count;
    uint32_t full;         /* enum pt_full */
    uint32_t tsc;          /* times are ticks of the processor's counter; 0: CLOCK_MONOTONIC, ns */
    int32_t watchdog;      /* its pid: is it still there? */
    uint32_t user;         /* and whose it is */
    uint64_t tick_mult;    /* ns = ticks * tick_mult >> 32 */
    uint32_t throttle;     /* enum pt_throttle: who is held */
    struct pt_name victim; /* PT_THROTTLE_NODE: this one */
    uint64_t period;       /* every so manyth I/O of who is held */
    uint64_t hold_limit;   /* ns: after that a held node goes on, whatever the watchdog does */
    uint32_t exact_programs;   /* `programs` are to be compared with what /proc calls us */
    uint32_t match_mpi;        /* MPI's requests are followed, for discover=mpi or both */
    char socket[108];          /* its name: is this the memory of our step? */
    struct pt_filters filters; /* of files */

    /* written by everybody; no more pages lie between what each process touches than need be */
    _Alignas(64) struct pt_bell bell;
    _Atomic uint32_t arrivals;                          /* greetings so far */
    _Atomic uint32_t untraced_threads;                  /* threads that could not be traced */
    _Atomic uint64_t known_programs[PT_KNOWN_PROGRAMS]; /* see exec.c */
    _Atomic uint64_t coming[PT_MAX_COMING];             /* numbers of processes: lineage.c */
    struct pt_rank_entry ranks[PT_MAX_RANKS];
    _Atomic int32_t owner[PT_MAX_SLOTS]; /* pid of who has claimed the slot; 0: nobody */

    /* "+GLOB", "-GLOB" and "!GLOB" strings, an empty one last */
    char programs[PT_PROGRAMS_SIZE];
    char filter_list[PT_FILTERS_SIZE]; /* of which `filters` were made; seldom read */
};

static inline uint64_t pt_slot_offset(const struct pt_memory *memory, uint32_t slot)
{
    return memory->first_slot + slot * memory->slot_size;
}

/* The entry of that rank, made if there is none; NULL: there is no room. */
static inline struct pt_rank_entry *pt_rank_entry(struct pt_memory *memory, int32_t rank)
{
    uint32_t key = (uint32_t)(rank < 0 ? 0 : rank) + 1;
    for (uint32_t i = 0; i < PT_MAX_RANKS; i++) {
        struct pt_rank_entry *entry = &memory->ranks[(key + i) % PT_MAX_RANKS];
        uint32_t none = 0;
        if (atomic_load(&entry->rank_plus_1) == key ||
            atomic_compare_exchange_strong(&entry->rank_plus_1, &none, key) || none == key)
            return entry;
    }
    return NULL;
}

/* ---- asking for the memory over the socket ------------------------------------------ */

#define PT_HELLO_MAGIC 0x50544849u /* PTHI */

struct pt_hello {
    uint32_t magic, version;
};

/* The answer; it carries the memory's descriptor. */
struct pt_welcome {
    uint32_t magic, version;
    int32_t pid; /* of the process that asks, as the watchdog sees it */
};

#endif
