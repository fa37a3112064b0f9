/*
 * Loops over one call, for bench/tracer; with `run`, times a command; with `idle`, waits.
 *
 * The first line printed is the time and the CPU time (user and system) that a call
 * took, in ns; each further line the time of a call in one piece of the run, so that
 * times at which the machine was busy with something else can be told apart.
 */
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIZE    64
#define SPAN    1024 /* the offsets go round within so many */
#define PIECES  100
#define THREADS 4

struct loop {
    const char *name;
    void (*run)(const struct loop *loop, const char *path, long turns, clockid_t clock);
    int calls;   /* traced ones, a turn */
    int threads; /* that share the turns, each with a file of its own */
};

static double now(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static double cpu_of(const struct rusage *use)
{
    return ((double)use->ru_utime.tv_sec + (double)use->ru_stime.tv_sec) * 1e9 +
           ((double)use->ru_utime.tv_usec + (double)use->ru_stime.tv_usec) * 1e3;
}

static double cpu_used(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return cpu_of(&use);
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* The times of the pieces, kept until the end: printing is I/O. */
struct pieces {
    clockid_t clock;
    long turns; /* of a piece */
    double from;
    size_t n;
    double ns[PIECES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double all[THREADS * PIECES];
static size_t nall;

static void piece_begin(struct pieces *p, long turns, clockid_t clock)
{
    p->clock = clock;
    p->turns = turns < PIECES ? 1 : turns / PIECES;
    p->n = 0;
    p->from = now(clock);
}

static inline void piece_turn(struct pieces *p, long turns)
{
    if (turns % p->turns || p->n == PIECES)
        return;
    double to = now(p->clock);
    p->ns[p->n++] = (to - p->from) / (double)p->turns;
    p->from = to;
}

static void piece_end(const struct pieces *p, int calls)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < p->n; i++)
        all[nall++] = p->ns[i] / calls;
    pthread_mutex_unlock(&lock);
}

static int open_file(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0)
        die(path);
    return fd;
}

static void loop_pwrite(const struct loop *loop, const char *path, long turns, clockid_t clock)
{
    char buf[SIZE] = {1};
    struct pieces p;
    int fd = open_file(path);
    piece_begin(&p, turns, clock);
    for (long i = 0; i < turns; piece_turn(&p, ++i))
        if (pwrite(fd, buf, SIZE, i % SPAN * SIZE) != SIZE)
            die("pwrite");
    piece_end(&p, loop->calls);
    close(fd);
}

static void loop_pread(const struct loop *loop, const char *path, long turns, clockid_t clock)
{
    char buf[SIZE];
    struct pieces p;
    int fd = open_file(path);
    if (ftruncate(fd, SPAN * SIZE))
        die("ftruncate");
    piece_begin(&p, turns, clock);
    for (long i = 0; i < turns; piece_turn(&p, ++i))
        if (pread(fd, buf, SIZE, i % SPAN * SIZE) != SIZE)
            die("pread");
    piece_end(&p, loop->calls);
    close(fd);
}

static void loop_fwrite(const struct loop *loop, const char *path, long turns, clockid_t clock)
{
    char buf[SIZE] = {1};
    struct pieces p;
    FILE *f = fopen(path, "w");
    if (!f)
        die(path);
    piece_begin(&p, turns, clock);
    for (long i = 0; i < turns; piece_turn(&p, ++i))
        if (fwrite(buf, SIZE, 1, f) != 1)
            die("fwrite");
    piece_end(&p, loop->calls);
    fclose(f);
}

static void loop_open(const struct loop *loop, const char *path, long turns, clockid_t clock)
{
    struct stat st;
    struct pieces p;
    piece_begin(&p, turns, clock);
    for (long i = 0; i < turns; piece_turn(&p, ++i)) {
        int fd = open_file(path);
        if (fstat(fd, &st) || lseek(fd, 0, SEEK_END) < 0 || close(fd))
            die("open cycle");
    }
    piece_end(&p, loop->calls);
}

static const struct loop loops[] = {
    {"pwrite", loop_pwrite, 1, 1},        {"pread", loop_pread, 1, 1},
    {"fwrite", loop_fwrite, 1, 1},        {"open", loop_open, 4, 1},
    {"threads", loop_pwrite, 1, THREADS},
};

struct task {
    pthread_t thread;
    const struct loop *loop;
    long turns;
    char path[4096];
};

static void *task_main(void *arg)
{
    struct task *task = arg;
    /* Where threads share cores, only their own time says what a call takes. */
    task->loop->run(task->loop, task->path, task->turns, CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

static void run_threads(const struct loop *loop, const char *path, long turns)
{
    static struct task tasks[THREADS];
    for (int i = 0; i < loop->threads; i++) {
        tasks[i].loop = loop;
        tasks[i].turns = turns / loop->threads;
        snprintf(tasks[i].path, sizeof(tasks[i].path), "%s.%d", path, i);
        if (pthread_create(&tasks[i].thread, NULL, task_main, &tasks[i]))
            die("pthread_create");
    }
    for (int i = 0; i < loop->threads; i++)
        pthread_join(tasks[i].thread, NULL);
}

static int run_loop(const struct loop *loop, long turns, const char *path)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int side_by_side = cores < loop->threads ? (int)cores : loop->threads;
    double cpu = cpu_used(), from = now(CLOCK_MONOTONIC);
    if (loop->threads > 1)
        run_threads(loop, path, turns);
    else
        loop->run(loop, path, turns, CLOCK_MONOTONIC);
    double calls = (double)turns * loop->calls;
    double wall = (now(CLOCK_MONOTONIC) - from) * side_by_side;
    printf("%.1f %.1f\n", wall / calls, (cpu_used() - cpu) / calls);
    for (size_t i = 0; i < nall; i++)
        printf("%.1f\n", all[i]);
    return 0;
}

/* ---- idle nodes, for bench/holds ---------------------------------------------------- */

static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void *idle_main(void *path)
{
    char byte;
    int fd = open_file(path); /* a node is one that does I/O */
    if (pread(fd, &byte, 1, 0) < 0)
        die(path);
    pthread_mutex_lock(&lock);
    for (;;)
        pthread_cond_wait(&never, &lock);
    return NULL;
}

/* So many threads that wait until somebody removes the file. */
static int run_idle(long threads, char *path)
{
    int fd = open_file(path);
    pthread_t thread;
    for (long i = 0; i < threads; i++)
        if (pthread_create(&thread, NULL, idle_main, path))
            die("pthread_create");
    for (struct stat st; !fstat(fd, &st) && st.st_nlink;)
        sleep(1);
    return 0;
}

/* Prints the time and the CPU time that a command took, in ns. */
static int run_command(char **argv)
{
    int status;
    struct rusage use;
    double from = now(CLOCK_MONOTONIC);
    pid_t pid = fork();
    if (pid == 0) {
        execvp(argv[0], argv);
        perror(argv[0]);
        _exit(127);
    }
    if (pid < 0 || wait4(pid, &status, 0, &use) < 0)
        die(argv[0]);
    printf("%.0f %.0f\n", now(CLOCK_MONOTONIC) - from, cpu_of(&use));
    return status ? 1 : 0;
}

int main(int argc, char **argv)
{
    long turns;
    if (argc > 2 && !strcmp(argv[1], "run"))
        return run_command(argv + 2);
    if (argc != 4 || (turns = atol(argv[2])) <= 0) {
        fprintf(stderr, "usage: loops pwrite|pread|fwrite|open|threads TURNS FILE\n"
                        "       loops idle THREADS FILE\n"
                        "       loops run COMMAND [ARGUMENT...]\n");
        return 2;
    }
    if (!strcmp(argv[1], "idle"))
        return run_idle(turns, argv[3]);
    for (size_t i = 0; i < sizeof(loops) / sizeof(loops[0]); i++)
        if (!strcmp(loops[i].name, argv[1]))
            return run_loop(&loops[i], turns, argv[3]);
    fprintf(stderr, "loops: unknown loop '%s'\n", argv[1]);
    return 2;
}
