/*
 * New processes that run in this one's image: fork and its kin, and vfork, whose child runs in its
 * parent's memory.
 */
#include "config.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "preload/fork.h"
#include "preload/hand.h"
#include "preload/lineage.h"
#include "preload/sandbox.h"

/* ---- fork -------------------------------------------------------------------------------- */

/*
 * One that has been nothing itself becomes a node when it has children.  If it cannot yet, they
 * are numbered as they come.
 */
void pt_forking(void)
{
    struct pt_thread *t = &pt_self;
    if (t->forked)
        pt_thread_begin(t);
    t->number = t->forked ? 0 : pt_lineage_next();
}

/* For calls that are not the child's: see below. */
static PT_FAR char nobodys_ring[sizeof(struct pt_ring)] __attribute__((aligned(64)));

/*
 * The calls that are on the stack stay: in one of MPI's all else is the library's own.  And they
 * may be about to look where pointers lead.
 */
void pt_thread_forget(struct pt_thread *t)
{
    struct pt_thread as_new = {.number = t->number,
                               .pmpi = t->pmpi,
                               .below_mpi = t->below_mpi,
                               .inner = t->inner,
                               .mpi_frame = t->mpi_frame,
                               .start = t->start,
                               .scratch = t->scratch,
                               .scratch_bytes = t->scratch_bytes,
                               .ring = (struct pt_ring *)nobodys_ring,
                               .poll.row = (uint64_t *)nobodys_ring,
                               .hold_next = UINT64_MAX};
    *t = as_new;
}

static int is_in_call(const struct pt_thread *t)
{
    enum pt_phase phase = PT_PHASE_OF(atomic_load_explicit(&t->ring->phase, memory_order_relaxed));
    return phase != PT_PHASE_COMPUTE && phase != PT_PHASE_POLL;
}

/*
 * Where I/Os are held the child must be known at once: it may be what the others wait for.  So it
 * must if it is about to have a second thread.  Otherwise it is if it makes a call, most only call
 * exec.  Those touch no page for us but the one that the C library has written to anyway.
 *
 * A signal handler may have forked in the midst of a call, and the child comes back to it.  That
 * call is the parent's event; in the child it ends where nobody looks.  If that was in the midst
 * of the tracer, the child leaves it as the parent does, with all that the parent knew, in memory
 * of its own: what it calls before that, in the handler, cannot be told.
 */
void pt_forked(void)
{
    struct pt_thread *t = &pt_self;
    int ready = t->state == PT_THREAD_READY, in_tracer = ready && pt_is_in_tracer(t);
    if (ready && !pt_sandboxed && (in_tracer || pt_process_holds() || is_in_call(t)))
        pt_process_leave_ring(t->ring);
    if (in_tracer) {
        t->forked = PT_FORKED_IN_TRACER;
    } else if (t->forked <= PT_FORKED) {
        pt_thread_forget(t);
        t->poll.busy = 1;
        t->forked = PT_FORKED;
    }
    t->state = pt_sandboxed ? PT_THREAD_OFF : PT_THREAD_NEW;
    if (t->forked == PT_FORKED && !pt_sandboxed && (pt_process_holds() || t->start))
        pt_thread_begin(t);
}

/* ---- with libc's handlers -------------------------------------------------------------------- */

int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                      void *library);
DECLARE(__register_atfork);

/* All that is needed of the compiler's start files. */
extern void *const __dso_handle __attribute__((visibility("hidden")));
void *const __dso_handle = (void *)&__dso_handle;

void pt_fork_watch(void)
{
    static PT_NEAR _Atomic int watched;
    if (pt_process_memory() && !atomic_exchange(&watched, 1))
        REAL(__register_atfork)(pt_forking, NULL, pt_forked, __dso_handle);
}

/*
 * What pthread_atfork() calls.  A child calls its handlers in the order in which they were given,
 * and the constructors of most libraries come before ours: what they do there would be taken for
 * the parent's.
 */
PT_EXPORT int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                                void *library)
{
    if (pt_self.state == PT_THREAD_NEW && !pt_vforked)
        pt_thread_begin(&pt_self);
    pt_fork_watch();
    return REAL(__register_atfork)(prepare, parent, child, library);
}

/* ---- without libc's handlers ----------------------------------------------------------------- */

DECLARE(_Fork);

PT_EXPORT pid_t _Fork(void)
{
    int traced = pt_process_memory() != NULL;
    if (traced)
        pt_forking();
    pid_t pid = REAL(_Fork)();
    if (traced && !pid)
        pt_forked();
    return pid;
}

/* What clone() was given to call; it lies where the child has a copy, or the parent waits. */
struct routine {
    int (*call)(void *);
    void *arg;
};

static int run_as_fork(void *arg)
{
    const struct routine *routine = arg;
    pt_forked();
    return routine->call(routine->arg);
}

static int run_as_vfork(void *arg)
{
    const struct routine *routine = arg;
    pt_vforked = 1;
    return routine->call(routine->arg);
}

DECLARE(clone);

PT_EXPORT int clone(int (*call)(void *), void *stack, int flags, void *arg, ...)
{
    va_list ap;
    va_start(ap, arg);
    pid_t *parent_tid = va_arg(ap, pid_t *);
    void *tls = va_arg(ap, void *);
    pid_t *child_tid = va_arg(ap, pid_t *);
    va_end(ap);
    struct routine routine = {call, arg};
    int (*run)(void *) = NULL;
    if (pt_process_memory() && !(flags & CLONE_SETTLS))
        run = !(flags & CLONE_VM) ? run_as_fork : flags & CLONE_VFORK ? run_as_vfork : NULL;
    if (!run || !call) {
        if (call)
            pt_say_blind("what clone() has started");
        return REAL(clone)(call, stack, flags, arg, parent_tid, tls, child_tid);
    }
    int vforked = pt_vforked;
    if (run == run_as_fork)
        pt_forking();
    int pid = REAL(clone)(run, stack, flags, &routine, parent_tid, tls, child_tid);
    if (run == run_as_vfork)
        pt_vforked = vforked;
    return pid;
}

PT_EXPORT __typeof__(clone) __clone __attribute__((alias("clone")));

/* ---- popen: libc does not tell the child's id ------------------------------------------------ */

DECLARE(popen);

PT_EXPORT FILE *popen(const char *command, const char *mode)
{
    uint64_t left = pt_lineage_leave_to_child();
    FILE *f = REAL(popen)(command, mode);
    if (!f)
        pt_lineage_withdraw(left);
    return f;
}

/* ---- vfork ------------------------------------------------------------------------------- */

/*
 * The child of vfork runs on its parent's stack, thread and memory until it calls exec,
 * and what it does with its descriptors must not be taken for the parent's.  So a flag is
 * set around the system call.  No C function can do that (its frame would be the child's to
 * destroy), but libc's own way works: the return address waits in a register.
 */
_Static_assert(offsetof(struct pt_thread, vforked) == 0, "set below, at the beginning of pt_self");

pid_t pt_vfork_failed(long error) __attribute__((used));

pid_t pt_vfork_failed(long error)
{
    errno = (int)-error;
    return -1;
}

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
        ".globl vfork\n"
        ".type vfork, @function\n"
        ".globl __vfork\n"
        ".type __vfork, @function\n"
        "vfork:\n"
        "__vfork:\n"
        "    popq %rdi\n"
        "    movq pt_self@gottpoff(%rip), %rdx\n"
        "    movl $1, %fs:(%rdx)\n"
        "    movl $58, %eax\n" /* SYS_vfork */
        "    syscall\n"
        "    pushq %rdi\n"
        "    testq %rax, %rax\n"
        "    je 1f\n" /* the child: the flag stays until it is gone */
        "    movl $0, %fs:(%rdx)\n"
        "    js 2f\n"
        "1:  ret\n"
        "2:  movq %rax, %rdi\n"
        "    jmp pt_vfork_failed\n"
        ".size vfork, .-vfork\n"
        ".popsection\n");
#endif
