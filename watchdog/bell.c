#include "config.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
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
    for (;;) {
        uint32_t rung = atomic_load(&wd->bell->rung);
        atomic_store(&wd->bell->sleeping, 1);
        syscall(SYS_futex, &wd->bell->rung, FUTEX_WAIT, rung, NULL, NULL, 0);
        if (atomic_load(&wd->bell->rung) != rung &&
            write(wd->bell_fd, &one, sizeof(one)) != sizeof(one))
            return NULL;
    }
}

int wd_bell_begin(struct wd *wd, struct pt_err *err)
{
    sigset_t all, old;
    pthread_t thread;
    pthread_attr_t attr;

    wd->bell_memfd = memfd_create("paratrace-bell", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    wd->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wd->bell_memfd < 0 || wd->bell_fd < 0 ||
        ftruncate(wd->bell_memfd, (off_t)sizeof(*wd->bell)))
        return pt_err_errno(err, "cannot make the bell");
    wd->bell = mmap(NULL, sizeof(*wd->bell), PROT_READ | PROT_WRITE, MAP_SHARED, wd->bell_memfd, 0);
    if (wd->bell == MAP_FAILED)
        return pt_err_errno(err, "cannot map the bell");

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
