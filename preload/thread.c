#include "config.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

#include "preload/process.h"
#include "preload/sys.h"
#include "preload/tracer.h"

__thread struct pt_thread pt_self __attribute__((tls_model("initial-exec")));
struct pt_ticks pt_ticks = {.long_time = PT_LONG_NS};
__thread int pt_vforked __attribute__((tls_model("initial-exec")));

static void ring_begin(struct pt_thread *t, struct pt_ring *ring, uint32_t number)
{
    t->ring = ring;
    t->data = ring->data;
    t->mask = pt_process_shm()->ring_size - 1;
    t->limit = t->mask + 1;
    t->reserved = 0;
    t->end = pt_now();
    t->cpu_at = pt_clock(CLOCK_THREAD_CPUTIME_ID);
    t->short_time = 0;
    ring->tid = (int32_t)pt_sys(SYS_gettid);
    ring->thread = (int32_t)number;
    ring->start = t->end;
    const struct pt_shm *shm = pt_process_shm();
    if (shm->hold_thread < 0 || shm->hold_thread == (int32_t)number)
        ring->hold_period = shm->hold_period;
    t->state = PT_THREAD_READY;
    atomic_store_explicit(&ring->state, PT_SLOT_LIVE, memory_order_release);
}

void pt_thread_begin(struct pt_thread *t)
{
    uint32_t number;
    t->state = PT_THREAD_OFF; /* until it has its ring: we may be called again below */
    pt_process_begin();
    struct pt_ring *ring = pt_process_slot(&number);
    if (ring)
        ring_begin(t, ring, number);
}

/* ---- new threads --------------------------------------------------------------- */

/*
 * A thread gets its number from its creator, so that threads are numbered in the
 * order of their creation and not in that of their first I/O.  What the new
 * thread has to know waits in a table: allocating is not ours.
 */
#define MAX_STARTS 4096

struct start {
    _Atomic int taken;
    void *(*routine)(void *);
    void *arg;
    struct pt_ring *ring; /* NULL: not traced (a thread of the MPI library) */
    uint32_t number;
};

static struct start starts[MAX_STARTS];

static struct start *start_get(void)
{
    for (int i = 0; i < MAX_STARTS; i++) {
        int no = 0;
        if (atomic_compare_exchange_strong(&starts[i].taken, &no, 1))
            return &starts[i];
    }
    return NULL;
}

/* Also called when the thread ends by pthread_exit or is cancelled. */
static void thread_end(void *arg)
{
    (void)arg;
    pt_record_exit(&pt_self);
}

static void *thread_main(void *arg)
{
    struct start start = *(struct start *)arg;
    void *ret;
    atomic_store(&((struct start *)arg)->taken, 0);

    if (start.ring)
        ring_begin(&pt_self, start.ring, start.number);
    else
        pt_self.state = PT_THREAD_OFF;
    pthread_cleanup_push(thread_end, NULL);
    ret = start.routine(start.arg);
    pthread_cleanup_pop(1);
    return ret;
}

PT_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                             void *(*routine)(void *), void *arg);

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*routine)(void *),
                   void *arg)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!real)
        real = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))pt_real(
            "pthread_create");
    struct start *start = pt_process_shm() ? start_get() : NULL;
    if (!start)
        return real(thread, attr, routine, arg);
    start->routine = routine;
    start->arg = arg;
    start->ring = pt_thread_traced(&pt_self) ? pt_process_slot(&start->number) : NULL;
    int rc = real(thread, attr, thread_main, start);
    if (rc)
        atomic_store(&start->taken, 0);
    return rc;
}

/* ---- the process' life ----------------------------------------------------------- */

static void forked(void)
{
    pt_process_forked();
    pt_fds_forked();
    pt_thread_forked();
}

void pt_thread_forked(void)
{
    memset(&pt_self, 0, sizeof(pt_self));
    for (int i = 0; i < MAX_STARTS; i++)
        atomic_store(&starts[i].taken, 0);
}

__attribute__((constructor)) static void begin(void)
{
    pt_wrap_resolve();
    if (pt_self.state == PT_THREAD_NEW)
        pt_thread_begin(&pt_self);
    if (pt_process_shm())
        pthread_atfork(NULL, NULL, forked);
}

__attribute__((destructor)) static void end(void)
{
    pt_record_exit(&pt_self);
}

/* ---- the real functions ------------------------------------------------------------ */

/* The condition variables of old programs have another layout: ours are the newer. */
void *pt_real(const char *name)
{
#if defined(__x86_64__)
    if (!strncmp(name, "pthread_cond_", 13))
        return dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
#endif
    return dlsym(RTLD_NEXT, name);
}

static int find_libmpi(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    const char *base = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    if (!base || strncmp(base, "/libmpi.so", 10))
        return 0;
    *(const char **)found = info->dlpi_name;
    return 1;
}

/* A program may have loaded libmpi with dlopen, out of RTLD_NEXT's sight. */
void *pt_real_mpi(const char *name)
{
    void *real = dlsym(RTLD_NEXT, name);
    const char *libmpi = NULL;
    if (!real && dl_iterate_phdr(find_libmpi, &libmpi)) {
        void *lib = dlopen(libmpi, RTLD_LAZY | RTLD_NOLOAD);
        real = lib ? dlsym(lib, name) : NULL;
    }
    return real;
}
