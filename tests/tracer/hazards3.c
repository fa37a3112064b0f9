/*
 * Still more things that break tracers: ways to fork and to start threads that are not libc's
 * usual ones, one for each name on the command line.  t-hazards.sh says what must be in the trace.
 * As a library (LIBRARY) it does I/O in each forked child, before anybody else.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMES 100

static void touch(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT, 0600);
    if (write(fd, name, 1) != 1 || close(fd))
        abort();
}

static void touch_often(const char *name)
{
    for (int i = 0; i < TIMES; i++)
        touch(name);
}

#ifdef LIBRARY

static void in_child(void)
{
    touch_often("child");
}

__attribute__((constructor)) static void before_main(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

#else

/* ---- ways to fork ------------------------------------------------------------------------- */

/* What the library has the child do is enough. */
static int hazard_fork(void)
{
    int status;
    pid_t pid = fork();
    if (!pid)
        _exit(0);
    touch_often("parent");
    return waitpid(pid, &status, 0) != pid || status;
}

/* A handler that forks, and both come back to the call that was interrupted. */
static pid_t first;

static void fork_in_handler(int sig)
{
    (void)sig;
    fork();
}

static int hazard_in_handler(void)
{
    struct sigaction action = {.sa_handler = fork_in_handler};
    struct itimerval timer = {{0, 0}, {0, 50000}};
    int status, ends[2];
    char c;
    first = getpid();
    if (pipe(ends))
        return 1;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    if (read(ends[0], &c, 1) != -1 || errno != EINTR)
        return 1;
    if (getpid() != first) {
        touch_often("child");
        _exit(0);
    }
    touch_often("parent");
    return wait(&status) < 0 || status;
}

/* The same at any moment, also in the midst of the tracer. */
static int hazard_at_any_moment(void)
{
    struct sigaction action = {.sa_handler = fork_in_handler, .sa_flags = SA_RESTART};
    int bad = 0;
    first = getpid();
    sigaction(SIGALRM, &action, NULL);
    for (int i = 0; i < 200; i++) {
        struct itimerval timer = {{0, 0}, {0, 100 + i}};
        int status, fd = open("main", O_RDWR | O_CREAT, 0600);
        char buf[64] = "";
        setitimer(ITIMER_REAL, &timer, NULL);
        for (int n = 0; n < 1000; n++)
            if (pwrite(fd, buf, sizeof(buf), 0) != sizeof(buf))
                abort();
        while (getpid() == first && waitpid(-1, &status, 0) < 0)
            usleep(100); /* it has not forked yet */
        if (getpid() != first) {
            touch("child");
            _exit(0);
        }
        bad += status != 0;
        close(fd);
    }
    return bad;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    static const struct {
        const char *name;
        int (*run)(void);
    } hazards[] = {
        {"fork", hazard_fork},
        {"in-handler", hazard_in_handler},
        {"at-any-moment", hazard_at_any_moment},
    };
    for (size_t i = 0; i < sizeof(hazards) / sizeof(hazards[0]); i++)
        if (!strcmp(what, hazards[i].name))
            return hazards[i].run();
    return 2;
}

#endif
