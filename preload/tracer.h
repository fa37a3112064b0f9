/*
 * Inside the tracer.  Nothing here ends, prints to, or changes errno of the
 * application; nothing allocates.  When something fails the thread or the process
 * goes on untraced.
 */
#ifndef PT_TRACER_H
#define PT_TRACER_H

#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "common/ring.h"
#include "preload/sys.h"

#define PT_EXPORT __attribute__((visibility("default")))
/*
 * Small data that many processes touch lie together: to a process that lives for a
 * millisecond each page that it touches costs more than what it is touched for.
 */
#define PT_NEAR        __attribute__((section(".data.near")))
#define PT_FAR         __attribute__((section(".data1"))) /* and behind them what few touch */
#define PT_LIKELY(x)   __builtin_expect(!!(x), 1)
#define PT_UNLIKELY(x) __builtin_expect(!!(x), 0)

/*
 * A gap or call longer than this is also measured with the thread's CPU clock; a shorter one is
 * taken to have been on the CPU throughout.  A gap may be longer than a call: in a gap the program
 * only stands still because another has the CPU, and gets that for most of a millisecond.
 */
#define PT_LONG_NS     50000
#define PT_LONG_GAP_NS 200000
/*
 * To ask the kernel for that clock takes a microsecond and more after a wait for a disk, so not
 * every I/O that is longer is followed by it: so long may they take together, and so wrong may be
 * how much of a gap behind them was spent on the CPU.
 */
#define PT_UNMEASURED_NS 500000

enum pt_thread_state { PT_THREAD_NEW, PT_THREAD_READY, PT_THREAD_OFF };

/* A child that is no node yet: see fork.c. */
enum pt_forked {
    PT_NOT_FORKED,
    PT_FORKED,
    PT_FORKED_IN_TRACER, /* and has not left it yet: all is still as in the parent */
    PT_UNSEEN_IN_TRACER, /* and has made calls that were not seen */
};

/* One call on its way through a wrapper. */
struct pt_pass {
    enum pt_class cls;
    uint32_t flags; /* PT_RECF_*: which of the following are known */
    int64_t fd;     /* PT_FD_WORD of an FDIO call */
    uint64_t begin;
    uint64_t cpu; /* of the gap before */
    uint64_t hold;
    uint64_t busy;          /* CPU time of the call */
    uint64_t polls, waited; /* those before this call, and ticks since the first began */
    struct {                /* of an open */
        uint32_t handle;
        uint64_t dev, ino, size;
    } ident;
};

/*
 * A record that is being written: a signal handler that interrupts this may leave by
 * siglongjmp, and then nobody would ever end it (jump.c).
 */
struct pt_open {
    const char *frame; /* of the wrapper that writes it; NULL: just begun, or ended */
    uint64_t from;     /* the ring's end before it */
    uint64_t at;       /* its place, PT_NO_PLACE: perhaps just taken, PT_NONE_TAKEN: not yet */
    uint64_t bytes;
};

#define PT_NO_PLACE   UINT64_MAX
#define PT_NONE_TAKEN (UINT64_MAX - 1)

/* What every event needs comes first, and together. */
struct pt_thread {
    /*
     * Between vfork and exec the child runs in the parent's memory: set, nothing is traced.
     * The first member: it is set where no C can be (exec.c).
     */
    int vforked;
    enum pt_thread_state state;
    int pmpi;      /* the MPI call about to begin has the name that tools use */
    int below_mpi; /* depth of MPI calls we are in: calls there are the library's */
    int inner;     /* in an MPI-IO call: what comes is kept, but not the program's own */
    int writing;   /* records being written: more than one if a signal came in between */
    struct pt_ring *ring;
    unsigned char *data; /* the ring's */
    uint64_t mask;       /* its size less 1 */
    uint64_t limit;      /* up to where there is room, as far as we know */
    uint64_t reserved;   /* the ring's end as we see it; published when nothing is written */
    uint64_t end;        /* of the last event */
    uint64_t told;       /* of the last record that is in the ring, or earlier */
    uint64_t short_time; /* ticks since cpu_at in gaps and calls too short to read the CPU clock */
    uint64_t lost;       /* events dropped since the last one written */
    uint64_t hold_next;  /* number of the next I/O to be held */
    uint64_t polls;      /* unsuccessful so far and not over, 0: none */
    uint64_t unmeasured; /* ticks since cpu_at in long I/O calls */
    struct pt_open open[PT_MAX_OPEN]; /* the records being written, the outermost first */
    uint64_t cpu_at;                  /* the CPU clock when it was read last */
    struct {                          /* see hold.c */
        uint32_t number;              /* of the request */
        unsigned looks;               /* so many since then */
        uint64_t cpu, until; /* the CPU clock at its beginning, the end if we keep the CPU */
    } linger;
    uint64_t ready;     /* so many bytes of the ring have their pages in place */
    uint32_t told_file; /* of the last short form that is in the ring; 0: there is none */
    enum pt_forked forked;
    int32_t number; /* that child's (lineage.h); in a thread that forks, the child's to come */
    const struct pt_plan_entry *plan, *plan_end; /* the holds after that, if there is a plan */
    struct {                                     /* polls that are not over: poll.c */
        uint16_t op;                             /* of the first */
        int look;                                /* at a name: an I/O event, otherwise a sync one */
        int busy;                  /* being changed: not for a signal handler to touch */
        unsigned serial, compared; /* of what is pending; of that which the next call is like */
        unsigned words;            /* of the pending record */
        uint64_t end;              /* of the last */
        uint64_t *counts, *row;    /* in the record: CPU time, polls, waited; the row's */
        struct pt_pass first;
        struct pt_pass sleep; /* after the last poll, if slept is not 0 */
        uint16_t sleep_op;
        unsigned sleep_words;
        uint64_t slept, slept_cpu; /* ticks, ns */
    } poll;
    const char *mpi_frame;  /* of the wrapper of the MPI call we are in */
    struct pt_start *start; /* of the thread that is being created: thread.c */
    void *scratch;          /* of mpi.c, for calls with many requests */
    size_t scratch_bytes;
};

extern __thread struct pt_thread pt_self __attribute__((tls_model("initial-exec"), aligned(64)));

#define pt_vforked (pt_self.vforked)

static inline uint64_t pt_timespec_ns(const struct timespec *ts)
{
    return (uint64_t)ts->tv_sec * 1000000000u + (uint64_t)ts->tv_nsec;
}

static inline uint64_t pt_monotonic(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return pt_timespec_ns(&ts);
}

/* libc could do no more than ask the kernel, by way of pages that may not be there yet. */
static inline uint64_t pt_cpu_clock(void)
{
    struct timespec ts;
    pt_sys(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &ts);
    return pt_timespec_ns(&ts);
}

/*
 * Time as it is recorded: the processor's counter where the watchdog has found it good,
 * which takes half the time of a clock; else CLOCK_MONOTONIC, ns.
 */
struct pt_ticks {
    int tsc;
    uint64_t long_time, long_gap, unmeasured; /* PT_*_NS in ticks */
    uint64_t mult;                            /* ns = ticks * mult >> 32 */
};

/* Times are ns. */
#define PT_TICKS_ARE_NS                                    \
    {                                                      \
        0, PT_LONG_NS, PT_LONG_GAP_NS, PT_UNMEASURED_NS, 0 \
    }

extern struct pt_ticks pt_ticks __attribute__((visibility("hidden")));

static inline uint64_t pt_now(void)
{
#if defined(__x86_64__)
    if (PT_LIKELY(pt_ticks.tsc))
        return __builtin_ia32_rdtsc();
#endif
    return pt_monotonic();
}

static inline uint64_t pt_to_ns(uint64_t ticks)
{
    return pt_ticks.tsc ? (uint64_t)((unsigned __int128)ticks * pt_ticks.mult >> 32) : ticks;
}

/* Makes it at least that; tables are walked up to such a mark, not to their end. */
static inline void pt_raise(_Atomic int *mark, int value)
{
    int old = atomic_load_explicit(mark, memory_order_relaxed);
    while (old < value && !atomic_compare_exchange_weak(mark, &old, value))
        ;
}

/* ---- process.c, thread.c --------------------------------------------------- */

/* The memory shared with the watchdog; NULL: not traced. */
struct pt_memory *pt_process_memory(void);

/* Gives the calling thread its ring; afterwards its state is READY or OFF. */
void pt_thread_begin(struct pt_thread *t);

/* Is this thread traced, and is this call the application's own? */
static inline int pt_thread_traced(struct pt_thread *t)
{
    if (PT_UNLIKELY(t->state == PT_THREAD_NEW) && !pt_vforked)
        pt_thread_begin(t);
    return PT_LIKELY(t->state == PT_THREAD_READY) && !t->below_mpi && !pt_vforked;
}

/* In a forked child: its number (lineage.h), and forgets the parent's rings. */
void pt_process_forked(int32_t number);
/* In a forked child: that one becomes memory of its own, where calls of the parent's may end. */
void pt_process_leave_ring(struct pt_ring *ring);
/* A thread that cannot be traced; the run says so. */
void pt_process_untraced(void);
/* Is anybody held in this run? */
int pt_process_holds(void);

/* ---- real.c ---- */

/* The real function of that name, behind us in the search order. */
void *pt_real(const char *name);
void *pt_real_mpi(const char *name);
/* Whose function that is. */
enum pt_whose { PT_UNKNOWN, PT_LIBCS, PT_ANOTHERS };
enum pt_whose pt_real_whose(const char *name);
/* Does libc come before us, so that it gets the program's calls? */
int pt_real_is_in_front(void);

/* ---- record.c (the frequent part is in record.h) ------------------------------------------- */

/* Reads the CPU clock: what is measured from now on begins here. */
void pt_cpu_look(struct pt_thread *t);
/* Says which thread writes into the ring from now on. */
void pt_record_thread(struct pt_thread *t, uint32_t number);
/* The thread has got its ring: nothing is known yet about room in it. */
void pt_record_ring(struct pt_thread *t);
/* Records the thread's end; events may follow all the same. */
void pt_record_exit(struct pt_thread *t);
/* Records a descriptor that was there before us. */
void pt_record_identity(struct pt_thread *t, const struct pt_pass *about);
void pt_record_inherited(struct pt_thread *t, const char *path, int flags,
                         const struct pt_pass *pass);

/* Records that something will not be seen: why, and of which program. */
void pt_record_blind(struct pt_thread *t, const char *reason, const char *path);

/* ---- jump.c ---- */

/* Gives up what this thread was writing when it was interrupted: it will not come back to it. */
void pt_abandon_records(struct pt_thread *t);

/* ---- exec.c ---- */

/* Says of this program what will not be seen of it. */
void pt_exec_say_program(struct pt_thread *t);
/* Records what could not be recorded before this thread had a ring. */
void pt_exec_say_rest(struct pt_thread *t);

/* ---- syscall.c --------------------------------------------------------------- */

/* Says once that this process' I/O goes where it cannot be followed. */
void pt_say_blind(const char *reason);

/* ---- hold.c ------------------------------------------------------------------ */

/* Finds out which I/Os of this node are to be held. */
void pt_hold_prepare(struct pt_thread *t, const struct pt_name *name);
/* Steps to the next of them behind that one. */
void pt_hold_advance(struct pt_thread *t, uint64_t io_event);

/* Waits until the watchdog lets this I/O go; returns how long, ns. */
uint64_t pt_hold(struct pt_thread *t, uint16_t op);
/* Wakes the watchdog. */
void pt_bell_ring(void);
/* Is the watchdog's process still there? */
int pt_watchdog_alive(void);

/* ---- fds.c: which descriptor stands for what ----------------------------------- */

/* What a descriptor stands for: kind in the low byte, handle in the high half. */
#define PT_MAX_FDS  65536
#define PT_NEAR_FDS 64 /* most programs have no others */

enum pt_fd_kind {
    PT_FD_UNKNOWN,
    PT_FD_FILE,
    PT_FD_CHANNEL,
    PT_FD_IGNORED,
    PT_FD_NEW, /* opened; what it is will be seen when it is used */
};

extern _Atomic uint64_t pt_near_fds[PT_NEAR_FDS] __attribute__((visibility("hidden")));

/* For what is not a file that we know, or a high descriptor. */
int pt_fds_class_slow(struct pt_thread *t, int fd, struct pt_pass *pass);

/*
 * The class of a call on that descriptor (IO for a file, SYNC for a pipe or
 * socket), or -1 if it is not traced; pass->fd gets its word.
 */
static inline int pt_fds_class(struct pt_thread *t, int fd, struct pt_pass *pass)
{
    if (PT_LIKELY((unsigned)fd < PT_NEAR_FDS)) {
        uint64_t entry = atomic_load_explicit(&pt_near_fds[fd], memory_order_acquire);
        if (PT_LIKELY((entry & 0xff) == PT_FD_FILE)) {
            pass->fd = (int64_t)((entry & ~(uint64_t)UINT32_MAX) | (uint32_t)fd);
            return PT_CLASS_IO;
        }
    }
    return pt_fds_class_slow(t, fd, pass);
}
/* Says what a descriptor is that was there before us, if that has not been said yet. */
static inline void pt_fds_know(struct pt_thread *t, int fd)
{
    struct pt_pass about;
    pt_fds_class(t, fd, &about);
}
/* The same of a directory that a name of that length is relative to; without a name it is the file
 * itself. */
static inline void pt_fds_know_dir(struct pt_thread *t, int dir, const char *path, size_t n)
{
    if (dir != AT_FDCWD && (!n || *path != '/'))
        pt_fds_know(t, dir);
}
/* As pt_fds_class(), and forgets the descriptor: it is about to be closed. */
int pt_fds_closing(struct pt_thread *t, int fd, struct pt_pass *pass);
/* A file was opened: numbers the handle and fills pass->ident. */
void pt_fds_opened(int fd, struct pt_pass *pass);
/*
 * The same for an open that many programs follow by an fstat of their own: numbers the handle,
 * and the rest is recorded with the first use.
 */
void pt_fds_opened_just_now(int fd, struct pt_pass *pass);
/* As pt_fds_class(), for an fstat, which tells what a new descriptor is. */
int pt_fds_class_of_stat(struct pt_thread *t, int fd, struct pt_pass *pass);
/* The fstat has succeeded; -1 if it was not about a file. */
int pt_fds_stated(struct pt_thread *t, int fd, const struct stat *st);
/*
 * An open whose name, of that length, is not traced gave this descriptor.  It is not traced either,
 * unless it is another name of one: then it is looked at when it is used.
 */
void pt_fds_ignore(int fd, const char *path, size_t n);
/* The word of a descriptor, whatever it stands for. */
int64_t pt_fds_word(int fd);
/* Forgets a range of descriptors, last included. */
void pt_fds_closed_range(unsigned first, unsigned last);
/* fd2 is a copy of fd; returns its word. */
int64_t pt_fds_copied(int64_t fd_word, int fd2);
void pt_fds_forked(void);

/* ---- filter.c ------------------------------------------------------------------- */

/* The filters of files, before anything is traced. */
void pt_filter_use(const struct pt_filters *prepared, const char *list);
/* Is a program of that name traced? */
int pt_filter_program(const char *list, const char *exe);
/* Is a file of that name traced?  The name is that long. */
int pt_filter_path(const char *path, size_t n);

#endif
