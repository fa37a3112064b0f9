#include "config.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "watchdog/watchdog.h"

/*
 * Tracers ring by a futex, because they keep no descriptor; the main loop waits on
 * descriptors.  This thread stands between the two.
 */
static void *listen_to_bell(void *arg)
{
    struct wd *wd = arg;
    uint64_t one = 1;
    uint32_t heard = 0; /* rung so often when we last looked: what came since is passed on */
    for (;;) {
        atomic_store(&wd->memory->bell.sleeping, 1);
        syscall(SYS_futex, &wd->memory->bell.rung, FUTEX_WAIT, heard, NULL, NULL, 0);
        uint32_t rung = atomic_load(&wd->memory->bell.rung);
        if (rung != heard && write(wd->bell_fd, &one, sizeof(one)) != sizeof(one))
            return NULL;
        heard = rung;
    }
}

int wd_bell_begin(struct wd *wd, struct pt_err *err)
{
    sigset_t all, old;
    pthread_t thread;
    pthread_attr_t attr;

    wd->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wd->bell_fd < 0)
        return pt_err_errno(err, "cannot make the bell");

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, 64 << 10);
    int rc = pthread_create(&thread, &attr, listen_to_bell, wd);
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    errno = rc;
    return rc ? pt_err_errno(err, "cannot start a thread") : 0;
}
