/*
 * Waiting by asking, for t-polls.sh: one way for each name on the command line.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void make(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT, 0600);
    if (write(fd, name, 1) != 1 || close(fd))
        abort();
}

/* Looks three times in vain. */
static void look(const char *name)
{
    struct stat st;
    for (int i = 0; i < 3; i++)
        if (stat(name, &st) == 0)
            abort();
}

static void ask(void)
{
    struct pollfd none = {.fd = -1};
    for (int i = 0; i < 3;) {
        int ret = poll(&none, 1, 0);
        if (ret && (ret != -1 || errno != EINTR))
            abort();
        i += !ret;
    }
}

/* ---- ends with polls that nobody has answered ---------------------------------------------- */

static void *thread_main(void *arg)
{
    look(arg);
    return NULL;
}

static atomic_int asked;

static void *thread_asks(void *arg)
{
    ask();
    asked = 1;
    pause();
    return arg;
}

static void end_threads(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, thread_main, "thread");
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, thread_asks, NULL); /* is there when the process ends */
    while (!asked)                                    /* no call that would be traced */
        ;
    look("main");
}

static void end_fork(void)
{
    look("parent");
    pid_t pid = fork();
    if (!pid) {
        look("child");
        _exit(0);
    }
    look("parent");
    waitpid(pid, NULL, 0);
}

/* A signal handler that asks, while the program asks. */
static void on_alarm(int sig)
{
    struct stat st;
    int error = errno;
    (void)sig;
    stat("handler", &st);
    ask();
    errno = error;
}

static void end_signals(void)
{
    struct itimerval every = {{0, 200}, {0, 200}}, off = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct stat st;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    for (int i = 0; i < 100000; i++) {
        if (stat("main", &st) == 0 || errno != ENOENT)
            abort();
        ask();
    }
    setitimer(ITIMER_REAL, &off, NULL);
    make("after");
}

/* ---- waits for another process -------------------------------------------------------------- */

static void wait_for(const char *name)
{
    while (access(name, R_OK))
        usleep(100);
}

/* Says to the other that it may begin.  The name is left out of the trace. */
static void say_here(void)
{
    close(open("here", O_WRONLY | O_CREAT, 0600));
}

/* Asks once, and computes for half a second of CPU time. */
static void ask_once(void)
{
    struct stat st;
    stat("nothing", &st);
    say_here();
    while (clock() < CLOCKS_PER_SEC / 2)
        ;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    const char *name = argc > 2 ? argv[2] : "";
    if (!strcmp(what, "kill")) {
        look("missing");
        kill(getpid(), SIGKILL);
    } else if (!strcmp(what, "kill-sync")) {
        ask();
        kill(getpid(), SIGKILL);
    } else if (!strcmp(what, "exec")) {
        look("missing");
        execl(argv[0], argv[0], "_exit", NULL);
        abort();
    } else if (!strcmp(what, "_exit")) {
        ask();
        _exit(0);
    } else if (!strcmp(what, "threads")) {
        end_threads();
    } else if (!strcmp(what, "fork")) {
        end_fork();
    } else if (!strcmp(what, "signals")) {
        end_signals();
    } else if (!strcmp(what, "make")) { /* after a while, so that others look in vain */
        wait_for("here");
        usleep((useconds_t)(argc > 3 ? atoi(argv[3]) : 1) * 1000);
        make(name);
    } else if (!strcmp(what, "wait")) {
        say_here();
        make("first");
        wait_for(name);
        make("last");
    } else if (!strcmp(what, "once")) {
        ask_once();
    } else {
        return 2;
    }
    return 0;
}
