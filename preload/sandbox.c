/*
 * Sandboxes.  A thread that has given up all system calls but those that its program needs is
 * killed for any other, also for one of ours: from there on it is not traced, and the run says so.
 */
#include "config.h"

#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>

#include "preload/hand.h"
#include "preload/sandbox.h"

PT_NEAR int pt_sandboxed;

#define ROOM 1024 /* for what is to be said, where no system call may be needed to say it */

static void before(struct pt_thread *t)
{
    pt_polls_end(t);
    pt_make_room(t, ROOM);
}

/* Its children are in there, too. */
static void after(struct pt_thread *t, int traced)
{
    if (traced)
        pt_record_blind(t, "what has made itself a sandbox (seccomp)", "");
    t->state = PT_THREAD_OFF;
    pt_sandboxed = 1;
}

long pt_sandbox(long nr, long op, long a, long b, long c, long d)
{
    struct pt_thread *t = &pt_self;
    int traced = !pt_vforked && pt_thread_traced(t);
    if (traced)
        before(t);
    long ret = pt_sys(nr, op, a, b, c, d);
    if (ret == 0 && !pt_vforked)
        after(t, traced);
    return ret;
}

DECLARE(prctl);

PT_EXPORT int prctl(int op, ...)
{
    va_list ap;
    va_start(ap, op);
    long a = va_arg(ap, long), b = va_arg(ap, long), c = va_arg(ap, long), d = va_arg(ap, long);
    va_end(ap);
    if (op != PR_SET_SECCOMP)
        return REAL(prctl)(op, a, b, c, d);
    long ret = pt_sandbox(SYS_prctl, op, a, b, c, d);
    if (ret < 0)
        errno = (int)-ret;
    return ret < 0 ? -1 : (int)ret;
}
