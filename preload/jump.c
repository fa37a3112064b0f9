/*
 * Ways out of a signal handler that has interrupted the tracer at work: siglongjmp, exit, a thread
 * that is cancelled.  The record that was being written will never be ended.  It is made one to be
 * skipped and counted as lost, so that what comes after it is published.  And out of an MPI call,
 * for an error handler as well: what comes after it is not the library's.
 */
#include "config.h"

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>

#include "preload/hand.h"
#include "preload/sys.h"

DECLARE(longjmp);
DECLARE(_longjmp);
DECLARE(siglongjmp);
DECLARE(__longjmp_chk);

void __longjmp_chk(jmp_buf env, int value) __attribute__((noreturn));

/* The stack pointer that a jump would set; libc keeps it scrambled. NULL: not known. */
static const char *target_of(const struct __jmp_buf_tag *env)
{
#if defined(__x86_64__)
    enum { JB_RSP = 6 };
    uint64_t sp = (uint64_t)env->__jmpbuf[JB_RSP], guard;
    __asm__("movq %%fs:0x30, %0" : "=r"(guard));
    sp = (sp >> 17 | sp << 47) ^ guard;
    return (const char *)sp;
#else
    (void)env;
    return NULL;
#endif
}

static int is_on(const stack_t *stack, const char *p)
{
    return stack->ss_flags & SS_ONSTACK && p >= (const char *)stack->ss_sp &&
           p < (const char *)stack->ss_sp + stack->ss_size;
}

/* Will that frame still be there?  The handler may have a stack of its own. */
static int survives(const char *frame, const char *target, const stack_t *own)
{
    if (!frame || !target)
        return 0;
    if (is_on(own, frame) == is_on(own, target))
        return target < frame;
    return is_on(own, target);
}

/* Gives up the innermost record. */
static void abandon(struct pt_thread *t)
{
    const struct pt_open *open = &t->open[(t->writing - 1) & (PT_MAX_OPEN - 1)];
    uint64_t at = open->at == PT_NO_PLACE ? pt_just_taken(t, open) : open->at;
    if (open->frame && at != PT_NONE_TAKEN)
        pt_put_pads(t, at & t->mask, open->bytes);
    t->told = t->told_file = 0; /* perhaps that was it */
    t->lost++;
    pt_count(&t->ring->dropped);
    if (t->writing > 1)
        t->writing--;
    else
        pt_pass_commit(t);
}

PT_COLD void pt_abandon_records(struct pt_thread *t)
{
    while (t->writing > 0)
        abandon(t);
}

/* Goes from the innermost record outwards. */
static void leave_records(struct pt_thread *t, const char *target, const stack_t *own)
{
    while (t->writing > 0 &&
           !survives(t->open[(t->writing - 1) & (PT_MAX_OPEN - 1)].frame, target, own))
        abandon(t);
}

static void leave_mpi(struct pt_thread *t, const char *target, const stack_t *own)
{
    if (!target || survives(t->mpi_frame, target, own))
        return;
    t->below_mpi = t->inner = 0;
    pt_set_phase(t, PT_PHASE_COMPUTE, 0);
}

PT_COLD static void leave(struct pt_thread *t, const struct __jmp_buf_tag *env)
{
    stack_t own = {.ss_flags = SS_DISABLE};
    const char *target = target_of(env);
    pt_sys(SYS_sigaltstack, 0, &own);
    leave_records(t, target, &own);
    if (t->below_mpi || t->inner)
        leave_mpi(t, target, &own);
}

static void jumping(const struct __jmp_buf_tag *env)
{
    struct pt_thread *t = &pt_self;
    if (PT_UNLIKELY(t->writing > 0 || t->below_mpi || t->inner) &&
        (t->state == PT_THREAD_READY || t->forked) && !pt_vforked)
        leave(t, env);
}

#define JUMP(name, type)                     \
    PT_EXPORT void name(type env, int value) \
    {                                        \
        jumping(env);                        \
        REAL(name)(env, value);              \
        __builtin_unreachable();             \
    }

JUMP(longjmp, jmp_buf)
JUMP(_longjmp, jmp_buf)
JUMP(siglongjmp, sigjmp_buf)
JUMP(__longjmp_chk, jmp_buf)
