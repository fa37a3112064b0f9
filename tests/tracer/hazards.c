/*
 * Things that break tracers, one for each name on the command line.  Each prints the
 * trace it expects; a line "..." stands for a node's part whose calls are not listed.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void touch(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT, 0600);
    if (write(fd, name, 1) != 1 || close(fd))
        abort();
}

/* Prints what touch() looks like; descriptors are 3 in a program that closed all others. */
static void expect_touch(FILE *f, const char *name, int fd)
{
    fprintf(f, "open(\"%s\", O_WRONLY|O_CREAT, 0600) = %d\nwrite(%d, 1) = 1\nclose(%d) = 0\n", name,
            fd, fd, fd);
}

/* A signal handler that does I/O while the program sleeps. */
static volatile sig_atomic_t handled;

static void on_alarm(int sig)
{
    (void)sig;
    touch("handler");
    handled = 1;
}

static void hazard_signal(void)
{
    signal(SIGALRM, on_alarm);
    alarm(1);
    while (!handled)
        usleep(10000);
    touch("after");
    expect_touch(stdout, "handler", 3);
    expect_touch(stdout, "after", 3);
}

/* A child of fork has its own node and does not write into its parent's ring. */
static void hazard_fork(void)
{
    touch("parent");
    pid_t pid = fork();
    if (!pid) {
        touch("child");
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    touch("again");
    expect_touch(stdout, "parent", 3);
    expect_touch(stdout, "again", 3);
    printf("node 0.1.0\n");
    expect_touch(stdout, "child", 3);
}

/* exec: the same process, another program. */
static void hazard_exec(char *self)
{
    touch("before");
    execl(self, self, "after-exec", NULL);
    abort();
}

static void hazard_after_exec(void)
{
    touch("after");
    expect_touch(stdout, "before", 3);
    printf("node 0.1.0\n");
    expect_touch(stdout, "after", 3);
}

static void hazard_closeall(void)
{
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    touch("file");
    expect_touch(stdout, "file", 3);
}

/* Killed without a chance to say goodbye: nothing may be lost. */
static void hazard_kill(void)
{
    for (int i = 0; i < 1000; i++)
        touch("file");
    for (int i = 0; i < 1000; i++)
        expect_touch(stdout, "file", 3);
    fflush(stdout);
    kill(getpid(), SIGKILL);
}

static void hazard__exit(void)
{
    touch("file");
    expect_touch(stdout, "file", 3);
    fflush(stdout);
    _exit(0);
}

static void *thread_main(void *arg)
{
    touch(arg);
    return NULL;
}

/* Threads are nodes, numbered in the order of their creation. */
static void hazard_threads(void)
{
    static const char *const names[] = {"t1", "t2", "t3"};
    pthread_t thread;
    touch("t0");
    for (int i = 0; i < 3; i++) {
        pthread_create(&thread, NULL, thread_main, (void *)names[i]);
        pthread_join(thread, NULL);
    }
    expect_touch(stdout, "t0", 3);
    for (int i = 0; i < 3; i++) {
        printf("node 0.0.%d\n", i + 1);
        expect_touch(stdout, names[i], 3);
    }
}

/* errno is the program's. */
static void hazard_errno(void)
{
    errno = 1234;
    touch("file");
    if (errno != 1234)
        abort();
    expect_touch(stdout, "file", 3);
}

/* More events than the ring holds. */
static void hazard_full(void)
{
    for (int i = 0; i < 20000; i++)
        touch("file");
    for (int i = 0; i < 20000; i++)
        expect_touch(stdout, "file", 3);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    setvbuf(stdout, NULL, _IOFBF, 1 << 22);
    if (!strcmp(what, "signal"))
        hazard_signal();
    else if (!strcmp(what, "fork"))
        hazard_fork();
    else if (!strcmp(what, "exec"))
        hazard_exec(argv[0]);
    else if (!strcmp(what, "after-exec"))
        hazard_after_exec();
    else if (!strcmp(what, "closeall"))
        hazard_closeall();
    else if (!strcmp(what, "kill"))
        hazard_kill();
    else if (!strcmp(what, "_exit"))
        hazard__exit();
    else if (!strcmp(what, "threads"))
        hazard_threads();
    else if (!strcmp(what, "errno"))
        hazard_errno();
    else if (!strcmp(what, "full"))
        hazard_full();
    else
        return 2;
    return 0;
}
