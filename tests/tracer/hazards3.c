/*
 * Still more things that break tracers: forks in the wrong moment, threads that libc starts, system
 * calls that are not allowed; one for each name on the command line.  t-hazards.sh says what must
 * be in the trace. As a library (LIBRARY) it does I/O in each forked child, before anybody else.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
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

/*
 * The same at any moment, also in the midst of the tracer.  The child goes on with what was
 * interrupted, too.
 */
static void in_writes(int fd)
{
    char buf[64] = "";
    for (int n = 0; n < 1000; n++)
        if (pwrite(fd, buf, sizeof(buf), 0) != sizeof(buf))
            abort();
}

static void in_looks(int fd)
{
    struct stat st;
    (void)fd;
    for (int n = 0; n < 300; n++)
        if (!stat(n % 3 == 2 ? "neither" : "nothing", &st))
            abort();
}

static void in_polls(int fd)
{
    int ends[2];
    if (pipe(ends))
        abort();
    struct pollfd nobody = {.fd = ends[0], .events = POLLIN};
    for (int n = 0; n < 300; n++) {
        if (poll(&nobody, 1, 0) > 0)
            abort();
        if (n % 10 == 0 && pwrite(fd, "poll", 4, 0) != 4)
            abort();
    }
    close(ends[0]);
    close(ends[1]);
}

static void in_lines(int fd)
{
    char line[64];
    FILE *f = fopen("lines", "w+");
    (void)fd;
    for (int n = 0; n < 500; n++) {
        fwrite("of ten ch\n", 1, 10, f);
        fputc('.', f);
    }
    rewind(f);
    while (fgets(line, sizeof(line), f))
        ;
    fclose(f);
}

static void in_opens(int fd)
{
    struct stat st;
    for (int n = 0; n < 100; n++) {
        int copy = dup(fd), again = open("main", O_RDONLY);
        if (fstat(again, &st) || close(copy) || close(again))
            abort();
    }
}

static void end_child(void)
{
    if (getpid() == first)
        return;
    touch("child");
    _exit(0);
}

static void *in_thread(void *arg)
{
    (void)arg;
    close(open("main", O_RDONLY));
    end_child();
    return NULL;
}

static void in_creations(int fd)
{
    pthread_t thread;
    (void)fd;
    for (int n = 0; n < 10; n++)
        if (pthread_create(&thread, NULL, in_thread, NULL) || pthread_join(thread, NULL))
            abort();
}

static int hazard_at_any_moment(void)
{
    static void (*const works[])(int) = {in_writes, in_looks, in_polls,
                                         in_lines,  in_opens, in_creations};
    struct sigaction action = {.sa_handler = fork_in_handler, .sa_flags = SA_RESTART};
    int bad = 0;
    first = getpid();
    sigaction(SIGALRM, &action, NULL);
    for (int i = 0; i < 600; i++) {
        struct itimerval timer = {{0, 0}, {0, 50 + i % 100 * 3}};
        int status, fd = open("main", O_RDWR | O_CREAT, 0600);
        if (i % 100 == 0)
            works[i / 100](fd); /* libc has its memory then: a handler that meets it there hangs */
        setitimer(ITIMER_REAL, &timer, NULL);
        works[i / 100](fd);
        while (getpid() == first && waitpid(-1, &status, 0) < 0)
            usleep(100); /* it has not forked yet */
        end_child();
        bad += status != 0;
        close(fd);
    }
    return bad;
}

/* ---- threads ------------------------------------------------------------------------------ */

/* libc starts a thread each time that the timer has run out. */
static atomic_int times;

static void at_time(union sigval value)
{
    (void)value;
    touch("timer");
    atomic_fetch_add(&times, 1);
}

static int hazard_timer(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = at_time};
    struct itimerspec often = {{0, 200000}, {0, 200000}}, never = {{0, 0}, {0, 0}};
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &often, NULL))
        return 1;
    while (atomic_load(&times) < 2500)
        usleep(1000);
    timer_settime(timer, 0, &never, NULL);
    usleep(100000); /* for those under way */
    FILE *f = fopen("times", "w");
    fprintf(f, "%d", atomic_load(&times));
    fclose(f);
    return 0;
}

/* The main thread ends before the other, which then ends the process. */
static void at_exit(void)
{
    touch("atexit");
}

static void *last_main(void *arg)
{
    usleep(50000);
    touch("last");
    return arg;
}

static int hazard_last(void)
{
    pthread_t thread;
    atexit(at_exit);
    if (pthread_create(&thread, NULL, last_main, NULL))
        return 1;
    pthread_exit(NULL);
}

/* ---- files -------------------------------------------------------------------------------- */

/* From a file that is not traced to one that is. */
static int hazard_copies(void)
{
    char buf[1000] = "";
    off64_t to = 500;
    int from = open("in.so", O_RDWR | O_CREAT, 0600), fd = open("out", O_RDWR | O_CREAT, 0600);
    if (write(from, buf, sizeof(buf)) != sizeof(buf) || lseek(from, 0, SEEK_SET))
        return 1;
    return copy_file_range(from, NULL, fd, NULL, 300, 0) != 300 ||
           copy_file_range(from, NULL, fd, &to, 200, 0) != 200 ||
           sendfile(fd, from, NULL, 100) != 100;
}

/* ---- descriptors that were there before ------------------------------------------------------ */

/* Each is used in another way than to read or write: 6 and 9 are "in", 5, 7, 10 where it is. */
static int hazard_inherited(void)
{
    struct open_how how = {.flags = O_RDONLY};
    struct stat st;
    int fd = openat(7, "in", O_RDONLY);
    return flock(6, LOCK_SH) || sendfile(8, fd, NULL, 4) != 4 ||
           fstatat(9, "", &st, AT_EMPTY_PATH) || !S_ISREG(st.st_mode) ||
           syscall(SYS_openat2, 10, "in", &how, sizeof(how)) < 0 || fchdir(5);
}

/* ---- a sandbox ---------------------------------------------------------------------------- */

/* After a while of work, and in many events, a tracer wants to ask the kernel for something. */
static void work_in_sandbox(int fd)
{
    char byte = 0;
    for (volatile int i = 0; i < 10000000; i++) /* without a clock: strict mode has none */
        ;
    for (int i = 0; i < 20000; i++)
        if (write(fd, &byte, 1) != 1)
            syscall(SYS_exit, 1);
    if (write(1, "sandbox\n", 8) != 8)
        syscall(SYS_exit, 1);
}

static int hazard_strict(void)
{
    int fd = open("before", O_WRONLY | O_CREAT, 0600);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL); /* fails */
    touch("failed");
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
        return 77;
    work_in_sandbox(fd);
    syscall(SYS_exit, 3);
    return 1;
}

/* By a filter that allows what this program and its child need, and nothing else. */
static int hazard_filter(void)
{
    static const int needed[] = {SYS_read, SYS_write,      SYS_openat, SYS_close,
                                 SYS_exit, SYS_exit_group, SYS_clone,  SYS_set_robust_list,
                                 SYS_wait4};
    enum { NEEDED = sizeof(needed) / sizeof(needed[0]) };
    struct sock_filter code[NEEDED + 3];
    struct sock_fprog filter = {NEEDED + 3, code};
    int status, fd = open("before", O_WRONLY | O_CREAT, 0600);
    code[0] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < NEEDED; i++)
        code[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)needed[i],
                                                   (unsigned char)(NEEDED - i), 0);
    code[1 + NEEDED] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    code[2 + NEEDED] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter))
        return 77;
    pid_t pid = fork();
    if (!pid) {
        touch("child");
        _exit(0);
    }
    work_in_sandbox(fd);
    touch("within");
    return waitpid(pid, &status, 0) != pid || status ? 1 : 3;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    static const struct {
        const char *name;
        int (*run)(void);
    } hazards[] = {
        {"fork", hazard_fork},
        {"timer", hazard_timer},
        {"last", hazard_last},
        {"copies", hazard_copies},
        {"inherited", hazard_inherited},
        {"strict", hazard_strict},
        {"filter", hazard_filter},
        {"in-handler", hazard_in_handler},
        {"at-any-moment", hazard_at_any_moment},
    };
    for (size_t i = 0; i < sizeof(hazards) / sizeof(hazards[0]); i++)
        if (!strcmp(what, hazards[i].name))
            return hazards[i].run();
    return 2;
}

#endif
