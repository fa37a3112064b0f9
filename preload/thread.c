#include "config.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <threads.h>

#include "preload/fork.h"
#include "preload/mpi.h"
#include "common/spec.h"
#include "preload/process.h"
#include "preload/stream.h"
#include "preload/sys.h"
#include "preload/record.h"
#include "preload/table.h"

__thread struct pt_thread pt_self __attribute__((tls_model("initial-exec"), aligned(64)));
struct pt_ticks pt_ticks = PT_TICKS_ARE_NS;

static void ring_begin(struct pt_thread *t, struct pt_ring *ring, uint32_t number)
{
    t->ring = ring;
    t->data = ring->data;
    t->mask = pt_process_memory()->ring_size - 1;
    t->reserved = atomic_load(&ring->head); /* a thread before us may have used it */
    t->told = t->told_file = 0;
    pt_record_ring(t);
    t->end = pt_now();
    pt_cpu_look(t);
    struct pt_name name = {ring->name.rank, ring->name.process, (int32_t)number};
    pt_hold_prepare(t, &name);
    atomic_store(&ring->tid, pt_process_thread_id());
    atomic_store(&ring->thread, (int32_t)number);
    atomic_store(&ring->io_done, 0);
    pt_set_phase(t, PT_PHASE_COMPUTE, 0);
    t->state = PT_THREAD_READY;
    pt_record_thread(t, number);
    atomic_store_explicit(&ring->state, PT_SLOT_LIVE, memory_order_release);
}

/*
 * The thread's ring can serve the next one when no destructor of the thread's data can do
 * I/O any more: those are called several times, as long as there are new data, so we hold
 * out to the last.
 */
static PT_FAR pthread_key_t last_key;
static PT_FAR _Atomic int last_key_state; /* NO_KEY, MAKING_KEY, HAVE_KEY */

enum { NO_KEY, MAKING_KEY, HAVE_KEY };

static void thread_gone(void *turn)
{
    intptr_t next = (intptr_t)turn + 1;
    if (next < PTHREAD_DESTRUCTOR_ITERATIONS && !pthread_setspecific(last_key, (void *)next))
        return;
    if (pt_self.state != PT_THREAD_READY)
        return;
    pt_record_exit(&pt_self);
    pt_self.state = PT_THREAD_NEW; /* the last thread has to do what is to be done at exit */
    pt_process_ring_done(pt_self.ring);
}

/* For the second thread: most programs have only one. */
static void make_last_key(void)
{
    int no = NO_KEY;
    if (!atomic_compare_exchange_strong(&last_key_state, &no, MAKING_KEY))
        return;
    /* A key beyond the first 32 would make the C library allocate in every thread. */
    if (!pthread_key_create(&last_key, thread_gone) && last_key < 32)
        atomic_store(&last_key_state, HAVE_KEY);
}

static void hold_out(void)
{
    if (atomic_load(&last_key_state) == HAVE_KEY)
        pthread_setspecific(last_key, (void *)1);
}

/* A handler that forks would leave the child with half a thread. */
struct signals {
    long rc;
    uint64_t mask;
};

static struct signals block_signals(void)
{
    uint64_t all = ~(uint64_t)0;
    struct signals old;
    old.rc = pt_sys(SYS_rt_sigprocmask, SIG_BLOCK, &all, &old.mask, sizeof(all));
    return old;
}

static void unblock_signals(const struct signals *old)
{
    if (!old->rc)
        pt_sys(SYS_rt_sigprocmask, SIG_SETMASK, &old->mask, NULL, sizeof(old->mask));
}

static void forget_parent(struct pt_thread *t);

static void begin_quietly(struct pt_thread *t)
{
    uint32_t number;
    if (t->forked)
        forget_parent(t);
    t->state = PT_THREAD_OFF; /* until it has its ring: we may be called again below */
    int fd = pt_process_begin();
    struct pt_ring *ring = pt_process_ring(fd, &number);
    if (fd >= 0)
        pt_sys(SYS_close, fd);
    if (!ring)
        return;
    ring_begin(t, ring, number);
    if (number) { /* libc has made it, for SIGEV_THREAD: a timer makes thousands */
        make_last_key();
        hold_out();
    }
    pt_exec_say_rest(t);
}

void pt_thread_begin(struct pt_thread *t)
{
    /* It was forked there, and has still to come back to it and to what it holds. */
    if (PT_UNLIKELY(t->forked > PT_FORKED) && pt_is_in_tracer(t)) {
        if (t->forked != PT_UNSEEN_IN_TRACER)
            pt_process_untraced();
        t->forked = PT_UNSEEN_IN_TRACER;
        return;
    }
    struct signals old = block_signals();
    begin_quietly(t);
    unblock_signals(&old);
}

/* ---- new threads --------------------------------------------------------------- */

/*
 * A thread gets its number from its creator, so that threads are numbered in the
 * order of their creation and not in that of their first I/O.  What the new
 * thread has to know waits in a table: allocating is not ours.
 */
#define MAX_STARTS 4096

struct pt_start {
    _Atomic int taken;
    void *(*routine)(void *);
    thrd_start_t c11_routine; /* of a thread of C11's, in place of routine */
    void *arg;
    struct pt_ring *ring; /* NULL: not traced (a thread of the MPI library) */
    uint32_t number;
    int by_itself; /* in a child, which has forked meanwhile: they were the parent's */
};

static PT_FAR pt_table start_table;
static PT_NEAR _Atomic int nstarts; /* how many of them were ever used */

static struct pt_start *start_get(void)
{
    struct pt_start *starts = pt_table_make(&start_table, MAX_STARTS * sizeof(*starts));
    for (int i = 0; starts && i < MAX_STARTS; i++) {
        int no = 0;
        if (atomic_compare_exchange_strong(&starts[i].taken, &no, 1)) {
            pt_raise(&nstarts, i + 1);
            return &starts[i];
        }
    }
    return NULL;
}

/* Also called when the thread ends by pthread_exit or is cancelled. */
static void thread_end(void *arg)
{
    (void)arg;
    pt_record_exit(&pt_self);
    pt_mpi_thread_end(&pt_self);
}

static void give_back(struct pt_ring *ring)
{
    atomic_store(&ring->state, PT_SLOT_ENDED);
    pt_process_ring_done(ring);
}

/* A signal handler may have been here before: it has made a call, or forked, and this is the child.
 */
static void become(struct pt_thread *t, const struct pt_start *start)
{
    if (t->state == PT_THREAD_READY && start->ring) {
        give_back(start->ring);
    } else if (t->state == PT_THREAD_NEW && !t->forked && !start->by_itself) {
        if (start->ring) {
            ring_begin(t, start->ring, start->number);
            hold_out();
        } else {
            t->state = PT_THREAD_OFF;
        }
    }
}

/* In the new thread: takes over what its creator left in the table. */
static struct pt_start start_take(void *arg)
{
    struct signals old = block_signals();
    struct pt_start start = *(struct pt_start *)arg;
    atomic_store(&((struct pt_start *)arg)->taken, 0);
    become(&pt_self, &start);
    unblock_signals(&old);
    return start;
}

static void *thread_main(void *arg)
{
    struct pt_start start = start_take(arg);
    void *ret;

    pthread_cleanup_push(thread_end, NULL);
    ret = start.routine(start.arg);
    pthread_cleanup_pop(1);
    return ret;
}

static int c11_thread_main(void *arg)
{
    struct pt_start start = start_take(arg);
    int ret;

    pthread_cleanup_push(thread_end, NULL);
    ret = start.c11_routine(start.arg);
    pthread_cleanup_pop(1);
    return ret;
}

/* NULL if there is nothing to tell the new thread. */
static struct pt_start *make_quietly(struct pt_thread *t, void *arg)
{
    int traced = pt_thread_traced(t); /* first: the table may still be the parent's */
    struct pt_start *start = pt_process_memory() ? start_get() : NULL;
    if (!start)
        return NULL;
    make_last_key();
    start->arg = arg;
    start->by_itself = 0;
    start->ring = traced ? pt_process_ring(-1, &start->number) : NULL;
    if (start->ring) {
        atomic_store(&start->ring->thread, (int32_t)start->number);
        atomic_store(&start->ring->state, PT_SLOT_COMING);
    }
    return start;
}

/* In the creator: numbers the new thread. */
static struct pt_start *start_make(void *arg)
{
    struct signals old = block_signals();
    struct pt_start *start = make_quietly(&pt_self, arg);
    pt_self.start = start;
    unblock_signals(&old);
    return start;
}

/* There is the new thread, or none because of that error. */
static void start_done(struct pt_start *start, int rc)
{
    pt_self.start = NULL;
    if (!rc)
        return;
    if (start->ring)
        give_back(start->ring);
    atomic_store(&start->taken, 0);
}

PT_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                             void *(*routine)(void *), void *arg);

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*routine)(void *),
                   void *arg)
{
    static PT_FAR int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!real)
        real = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))pt_real(
            "pthread_create");
    struct pt_start *start = start_make(arg);
    if (!start)
        return real(thread, attr, routine, arg);
    start->routine = routine;
    int rc = real(thread, attr, thread_main, start);
    start_done(start, rc);
    return rc;
}

/* libc's does not go through pthread_create where we could see it. */
PT_EXPORT int thrd_create(thrd_t *thread, thrd_start_t routine, void *arg)
{
    static PT_FAR int (*real)(thrd_t *, thrd_start_t, void *);
    if (!real)
        real = (int (*)(thrd_t *, thrd_start_t, void *))pt_real("thrd_create");
    struct pt_start *start = start_make(arg);
    if (!start)
        return real(thread, routine, arg);
    start->c11_routine = routine;
    int rc = real(thread, c11_thread_main, start);
    start_done(start, rc != thrd_success);
    return rc;
}

/* ---- the process' life ----------------------------------------------------------- */

static void forget_parent(struct pt_thread *t)
{
    struct pt_start *starts = pt_table_get(&start_table);
    pt_thread_forget(t);
    pt_process_forked(t->number);
    pt_fds_forked();
    for (int i = 0; i < atomic_load(&nstarts); i++) {
        starts[i].by_itself |= starts[i].ring != NULL;
        starts[i].ring = NULL;
        if (&starts[i] != t->start) /* in which a signal handler has forked */
            atomic_store(&starts[i].taken, 0);
    }
}

__attribute__((constructor)) static void begin(int argc, char **argv)
{
    pt_process_arguments(argc, argv);
    if (pt_self.state == PT_THREAD_NEW)
        pt_thread_begin(&pt_self);
    pt_exec_say_program(&pt_self);
    pt_fork_watch();
}

__attribute__((destructor)) static void end(void)
{
    pt_streams_end();
    pt_record_exit(&pt_self);
}
