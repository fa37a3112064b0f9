/*
 * More things that break tracers, one for each name on the command line; t-hazards.sh
 * says what must be in the trace.  What a program prints is its own account of what it
 * did.  Built in several ways: as it is, static, with a sanitizer, and with OWN_MALLOC
 * or as a library (LIBRARY) that does I/O before main and after it.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void touch(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT, 0600);
    if (write(fd, name, 1) != 1 || close(fd))
        abort();
}

#ifdef LIBRARY

__attribute__((constructor)) static void before_main(void)
{
    touch("constructor");
}

__attribute__((destructor)) static void after_main(void)
{
    touch("destructor");
}

#else

#ifdef OWN_MALLOC
/* An allocator that reads its settings with the very calls that a tracer wraps. */
static char *arena, *arena_end;

static void arena_begin(void)
{
    char buf[64];
    int fd = open("allocator.conf", O_RDONLY);
    if (fd >= 0) {
        if (read(fd, buf, sizeof(buf)) < 0)
            abort();
        close(fd);
    }
    fd = open("arena", O_RDWR | O_CREAT, 0600);
    if (ftruncate(fd, 64 << 20))
        abort();
    arena = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    close(fd);
    if (arena == MAP_FAILED)
        abort();
    arena_end = arena + (64 << 20);
}

void *malloc(size_t n)
{
    if (!arena)
        arena_begin();
    n = (n + 31) & ~(size_t)15; /* the size in front */
    if ((size_t)(arena_end - arena) < n) {
        errno = ENOMEM;
        return NULL;
    }
    char *p = arena;
    arena += n;
    *(size_t *)p = n - 16;
    return p + 16;
}

void free(void *p)
{
    (void)p;
}

void *calloc(size_t n, size_t size)
{
    return malloc(n * size); /* a new arena is zero, and nothing is used twice */
}

void *realloc(void *old, size_t n)
{
    void *p = malloc(n);
    if (p && old)
        memcpy(p, old, ((size_t *)old)[-2] < n ? ((size_t *)old)[-2] : n);
    return p;
}
#endif

static void *start(void *(*routine)(void *), long arg)
{
    pthread_t thread;
    int rc = pthread_create(&thread, NULL, routine, (void *)arg);
    if (rc) {
        fprintf(stderr, "pthread_create: %s\n", strerror(rc));
        abort();
    }
    return (void *)thread;
}

static void join(void *thread)
{
    if (pthread_join((pthread_t)thread, NULL))
        abort();
}

/* ---- one process ------------------------------------------------------------------ */

static int hazard_plain(void)
{
    char *p = NULL;
    touch("first");
    for (int i = 1; i < 1000; i++)
        p = realloc(p, (size_t)i * 10);
    free(p);
    touch("second");
    puts("plain");
    return 3;
}

static int handler_fd;
static volatile long handled;

static void on_timer(int sig)
{
    int saved = errno;
    (void)sig;
    if (pwrite(handler_fd, "h", 1, handled) == 1)
        handled++;
    errno = saved;
}

/* A handler that does I/O ten thousand times a second, in the midst of I/O. */
static int io_and_signals(FILE *stream)
{
    struct itimerval timer = {{0, 100}, {0, 100}};
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    struct timespec from, now;
    char buf[64] = "";
    long done = 0;
    int fd = open("main", O_RDWR | O_CREAT, 0600);
    handler_fd = open("handler", O_RDWR | O_CREAT, 0600);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    clock_gettime(CLOCK_MONOTONIC, &from);
    do {
        for (int i = 0; i < 100; i++, done++)
            if (stream ? fwrite(buf, sizeof(buf), 1, stream) != 1
                       : pwrite(fd, buf, sizeof(buf), done % 1000 * 64) != sizeof(buf))
                abort();
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - from.tv_sec + (now.tv_nsec - from.tv_nsec) / 1e9 < 0.7);
    memset(&timer, 0, sizeof(timer));
    setitimer(ITIMER_REAL, &timer, NULL);
    printf("main %ld\nhandler %ld\n", done, handled);
    return 0;
}

static int hazard_signals(void)
{
    return io_and_signals(NULL);
}

static int hazard_signals_stream(void)
{
    return io_and_signals(fopen("stream", "w"));
}

/*
 * A handler that ends its process, in one way or another, at any moment, also in the midst of the
 * tracer: what it does before, and what is done at exit, is in the trace.
 */
static void at_exit(void)
{
    touch("atexit");
}

static void on_end(int sig)
{
    touch("handler");
    if (sig == SIGALRM)
        exit(0);
    kill(getpid(), SIGKILL);
}

static void write_until_end(int microseconds, int sig)
{
    struct itimerval timer = {{0, 0}, {0, microseconds}};
    char buf[64] = "";
    int fd = open("main", O_RDWR | O_CREAT, 0600);
    atexit(at_exit);
    signal(sig, on_end);
    setitimer(sig == SIGALRM ? ITIMER_REAL : ITIMER_PROF, &timer, NULL);
    for (;;)
        if (pwrite(fd, buf, sizeof(buf), 0) != sizeof(buf))
            abort();
}

static int hazard_ends(void)
{
    for (int i = 0; i < 400; i++) {
        pid_t pid = fork();
        if (!pid)
            write_until_end(300 + i, i % 2 ? SIGALRM : SIGPROF);
        waitpid(pid, NULL, 0);
    }
    return 0;
}

/* The same for a thread that may be cancelled at any moment. */
static void cancelled(void *arg)
{
    (void)arg;
    touch("cancelled");
}

static void *write_until_cancelled(void *arg)
{
    char buf[64] = "";
    int fd = *(int *)arg;
    pthread_cleanup_push(cancelled, NULL);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (;;)
        if (pwrite(fd, buf, sizeof(buf), 0) != sizeof(buf))
            abort();
    pthread_cleanup_pop(0);
    return NULL;
}

static int hazard_cancel(void)
{
    int fd = open("main", O_RDWR | O_CREAT, 0600);
    for (int i = 0; i < 1000; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, write_until_cancelled, &fd))
            abort();
        usleep(300);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
    }
    return 0;
}

/*
 * A handler that leaves by siglongjmp, at any moment, also in the midst of the tracer.  The
 * calls go deeper from round to round, so that no frame that was left is met again.
 */
#define MAX_JUMPS 3000
static sigjmp_buf outside;
static volatile long jumps;

static void on_jump(int sig)
{
    (void)sig;
    jumps++;
    siglongjmp(outside, 1);
}

/* Writes until it is interrupted. */
static __attribute__((noinline)) void write_deep(int fd, int depth)
{
    volatile char room[256];
    room[0] = 0;
    if (depth > 0)
        write_deep(fd, depth - 1);
    while (jumps < MAX_JUMPS) /* each of them ends it before */
        if (pwrite(fd, (const char *)room, 1, 0) != 1)
            abort();
}

static int hazard_jumps(const char *own_stack)
{
    static char stack[65536];
    stack_t own = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct itimerval timer = {{0, 0}, {0, 100}}, off = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = on_jump, .sa_flags = own_stack ? SA_ONSTACK : 0};
    int fd = open("main", O_RDWR | O_CREAT, 0600);
    if (own_stack && sigaltstack(&own, NULL))
        abort();
    sigaction(SIGALRM, &action, NULL);
    while (jumps < MAX_JUMPS) {
        sigsetjmp(outside, 1);
        if (jumps == MAX_JUMPS)
            break;
        timer.it_value.tv_usec = 50 + jumps * 7 % 100; /* at another place each time */
        setitimer(ITIMER_REAL, &timer, NULL);
        write_deep(fd, (int)(jumps % 100));
    }
    setitimer(ITIMER_REAL, &off, NULL);
    for (int i = 0; i < 1000; i++)
        touch("after");
    puts("jumped");
    return 0;
}

static int hazard_atexit(void)
{
    atexit(at_exit);
    touch("main");
    puts("atexit");
    return 4;
}

static int hazard_closerange(void)
{
    for (int i = 0; i < 5; i++)
        if (open("before", O_WRONLY | O_CREAT, 0600) != 3 + i)
            abort();
    if (close_range(3, ~0U, 0))
        abort();
    touch("after");
    puts("closed");
    return 0;
}

static void *exit_from_thread(void *arg)
{
    (void)arg;
    touch("thread");
    _exit(7);
}

static int hazard__exit(void)
{
    touch("main");
    puts("leaving");
    fflush(stdout);
    join(start(exit_from_thread, 0));
    return 0;
}

/* ---- many threads ------------------------------------------------------------------- */

#define MANY 300
static pthread_barrier_t all_here;

static void *many_main(void *arg)
{
    char name[32];
    pthread_barrier_wait(&all_here);
    snprintf(name, sizeof(name), "many%ld", (long)arg);
    touch(name);
    pthread_barrier_wait(&all_here);
    return NULL;
}

/* One thread after another, more than there are rings, each with data that do I/O at its end. */
static pthread_key_t relay_key;

static void relay_last(void *name)
{
    touch(name);
}

static void *relay_main(void *arg)
{
    (void)arg;
    touch("relay");
    pthread_setspecific(relay_key, "relay-last");
    return NULL;
}

static int hazard_relay(void)
{
    pthread_key_create(&relay_key, relay_last);
    for (int i = 0; i < 5000; i++)
        join(start(relay_main, i));
    puts("relay");
    return 0;
}

static int hazard_many(void)
{
    void *threads[MANY];
    pthread_barrier_init(&all_here, NULL, MANY);
    for (long i = 0; i < MANY; i++)
        threads[i] = start(many_main, i);
    for (int i = 0; i < MANY; i++)
        join(threads[i]);
    touch("main");
    puts("many");
    return 0;
}

/* Threads that share a stream: what one writes is not the other's inlined putc_unlocked. */
static FILE *shared;

static void *print_main(void *arg)
{
    for (int i = 0; i < 5000; i++)
        fprintf(shared, "%04ld %05d\n", (long)arg, i);
    return NULL;
}

static int hazard_stream(void)
{
    void *threads[4];
    shared = fopen("shared", "w");
    for (long i = 0; i < 4; i++)
        threads[i] = start(print_main, i);
    for (int i = 0; i < 4; i++)
        join(threads[i]);
    if (fclose(shared))
        abort();
    puts("stream");
    return 0;
}

/* ---- more processes ------------------------------------------------------------------ */

static _Atomic int stop;
static _Atomic long own_account[4], *written = own_account;

static void *write_until_stop(void *arg)
{
    long me = (long)arg;
    char name[32], buf[128] = "";
    snprintf(name, sizeof(name), "thread%ld", me);
    int fd = open(name, O_WRONLY | O_CREAT, 0600);
    while (!atomic_load(&stop)) {
        if (pwrite(fd, buf, (size_t)(100 + me), written[me] % 100 * 128) != 100 + me)
            abort();
        if (++written[me] > 20000)
            usleep(1000); /* enough to be interrupted in; do not fill the disk */
    }
    close(fd);
    return NULL;
}

/* fork while other threads do I/O. */
static int hazard_fork(void)
{
    void *threads[4];
    int status, bad = 0;
    for (long i = 0; i < 4; i++)
        threads[i] = start(write_until_stop, i);
    for (int i = 0; i < 30; i++) {
        pid_t pid = fork();
        if (!pid) {
            touch("child");
            _exit(0);
        }
        bad += waitpid(pid, &status, 0) != pid || status;
    }
    stop = 1;
    for (int i = 0; i < 4; i++) {
        join(threads[i]);
        printf("thread %d %ld\n", 100 + i, written[i]);
    }
    return bad;
}

/* The child of vfork borrows its parent's memory, but has descriptors of its own. */
static int hazard_vfork(void)
{
    int kept = open("kept", O_WRONLY | O_CREAT, 0600), status;
    int other = open("other", O_WRONLY | O_CREAT, 0600);
    pid_t pid = vfork();
    if (!pid) {
        close(kept);
        dup2(other, 9);
        dup2(other, kept);
        execl("/bin/true", "true", NULL);
        _exit(127);
    }
    if (waitpid(pid, &status, 0) != pid || status)
        return 1;
    if (write(kept, "kept", 4) != 4 || write(other, "other", 5) != 5)
        return 1;
    return close(kept) || close(other);
}

extern char **environ;

static int hazard_spawn(char *self)
{
    posix_spawn_file_actions_t actions;
    char *args[] = {self, "spawned", NULL};
    pid_t pid;
    int status, kept = open("kept", O_WRONLY | O_CREAT, 0600);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addclose(&actions, kept);
    posix_spawn_file_actions_addopen(&actions, 7, "spawned", O_WRONLY | O_CREAT, 0600);
    posix_spawn_file_actions_adddup2(&actions, 7, 1);
    if (posix_spawn(&pid, self, &actions, NULL, args, environ) || waitpid(pid, &status, 0) != pid)
        return 1;
    int wrote = write(kept, "k", 1) == 1;
    printf("%d %d %d\n", WEXITSTATUS(status), wrote, close(kept));
    return 0;
}

static int hazard_spawned(void)
{
    return write(1, "hello\n", 6) == 6 ? 9 : 1;
}

/* Four threads do I/O until their process is killed; how far they were is what counts. */
static int hazard_sigkill(void)
{
    int status;
    written = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid = fork();
    if (!pid) {
        for (long i = 0; i < 4; i++)
            start(write_until_stop, i);
        for (;;)
            pause();
    }
    while (!written[0] || !written[1] || !written[2] || !written[3])
        sched_yield();
    usleep(100000);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    for (int i = 0; i < 4; i++)
        printf("thread %d %ld\n", 100 + i, written[i]);
    return WTERMSIG(status);
}

/* ---- the tracer's other side ------------------------------------------------------------ */

static int hazard_loop(const char *count)
{
    char buf[64] = "";
    int fd = open("loop", O_WRONLY | O_CREAT, 0600);
    long n = atol(count);
    for (long i = 0; i < n; i++)
        if (pwrite(fd, buf, sizeof(buf), i % 100 * 64) != sizeof(buf))
            abort();
    close(fd);
    printf("loop %ld\n", n);
    return 6;
}

/* Writes until the file "go" is there, and then a while longer. */
static int hazard_orphan(void)
{
    char buf[64] = "";
    int fd = open("loop", O_WRONLY | O_CREAT, 0600), go = 0;
    for (long i = 0, left = 20000; left > 0; i++) {
        if (pwrite(fd, buf, sizeof(buf), i % 100 * 64) != sizeof(buf))
            abort();
        if (!go && i % 64 == 0)
            go = !syscall(SYS_faccessat, AT_FDCWD, "go", F_OK);
        left -= go;
    }
    close(fd);
    return 6;
}

/* A name that gets shorter and longer while it is used. */
static volatile char changing[] = "name-that-is-longer-than-a-few-words";
static atomic_int name_used;

static void *change_name(void *arg)
{
    size_t end = strlen("name");
    while (!atomic_load(&name_used)) {
        changing[end] = 0;
        changing[end] = '-';
    }
    return arg;
}

static int hazard_changing(void)
{
    struct stat st;
    touch((const char *)changing);
    touch("name");
    void *changer = start(change_name, 0);
    for (int i = 0; i < 50000; i++)
        if (stat((const char *)changing, &st))
            return 1;
    atomic_store(&name_used, 1);
    join(changer);
    return 0;
}

/* Long writes, and after them a gap in which the process is stopped: nobody computes then. */
static int hazard_stopped(void)
{
    static char block[1 << 20];
    struct timespec pause = {0, 300000000};
    atomic_int *over =
        mmap(NULL, sizeof(*over), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t me = getpid();
    int fd = open("blocks", O_WRONLY | O_CREAT, 0600);
    for (int i = 0; i < 20; i++)
        if (pwrite(fd, block, sizeof(block), 0) != sizeof(block))
            return 1;
    if (!fork()) {
        kill(me, SIGSTOP);
        nanosleep(&pause, NULL);
        atomic_store(over, 1);
        kill(me, SIGCONT);
        _exit(0);
    }
    while (!atomic_load(over))
        ;
    touch("stopped");
    return 0;
}

static int hazard_whoami(void)
{
    printf("uid %s euid\n", getuid() == geteuid() ? "is" : "is not");
    return 8;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    static const struct {
        const char *name;
        int (*run)(void);
    } hazards[] = {
        {"plain", hazard_plain},
        {"signals", hazard_signals},
        {"signals-stream", hazard_signals_stream},
        {"ends", hazard_ends},
        {"cancel", hazard_cancel},
        {"atexit", hazard_atexit},
        {"_exit", hazard__exit},
        {"closerange", hazard_closerange},
        {"many", hazard_many},
        {"stopped", hazard_stopped},
        {"changing", hazard_changing},
        {"relay", hazard_relay},
        {"fork", hazard_fork},
        {"vfork", hazard_vfork},
        {"spawned", hazard_spawned},
        {"sigkill", hazard_sigkill},
        {"orphan", hazard_orphan},
        {"whoami", hazard_whoami},
        {"stream", hazard_stream},
    };
    for (size_t i = 0; i < sizeof(hazards) / sizeof(hazards[0]); i++)
        if (!strcmp(what, hazards[i].name))
            return hazards[i].run();
    if (!strcmp(what, "spawn"))
        return hazard_spawn(argv[0]);
    if (!strcmp(what, "jumps"))
        return hazard_jumps(argv[2]);
    if (!strcmp(what, "loop") && argc > 2)
        return hazard_loop(argv[2]);
    return 2;
}

#endif
