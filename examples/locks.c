/*
 * locks: processes that append to one file under an fcntl() lock.
 *
 * Each takes the lock on locks.count, reads the counter in it, writes it back one higher, appends
 * a record with that number to locks.log, and unlocks. Who comes when is left to chance, but
 * each process makes the same calls in every run: a lock excludes, it does not order.
 */
#define _GNU_SOURCE
#include "common.h"
#include "group.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static const char *dir = ".";
static unsigned procs, count = 32;
static size_t block = 4 << 10;
static double compute, timeout = 60;
static bool verify, remove_files;

static const struct ex_opt opts[] = {
    GROUP_OPTS(procs, timeout),
    {"dir", EX_TEXT, &dir, "directory of the files locks.*"},
    {"block", EX_SIZE, &block, "size of one record"},
    {"count", EX_COUNT, &count, "records per process"},
    {"compute", EX_TIME, &compute, "CPU time used after each record, without the lock"},
    {"verify", EX_FLAG, &verify, "check the counter and the log at the end"},
    {"remove", EX_FLAG, &remove_files, "remove the files at the end"},
    {0},
};

/* ---- the start and the end; semaphores, since they leave no trace in the files ---- */

struct gate {
    const struct group *group;
    sem_t *arrived, *go;
    char name[2][128];
};

static sem_t *open_semaphore(struct gate *t, int i)
{
    sem_t *s;

    snprintf(t->name[i], sizeof(t->name[i]), "/paratrace-locks-%s-%d", t->group->tag, i);
    s = sem_open(t->name[i], O_CREAT, 0600, 0);
    if (s == SEM_FAILED)
        ex_fail("open semaphore", t->name[i]);
    return s;
}

static void gate_unlink(const struct gate *t)
{
    sem_unlink(t->name[0]);
    sem_unlink(t->name[1]);
}

static void gate_open(struct gate *t, const struct group *g)
{
    t->group = g;
    t->arrived = open_semaphore(t, 0);
    t->go = open_semaphore(t, 1);
    if (!g->slurm)
        gate_unlink(t); /* the forked processes inherit them */
}

static void gate_wait(const struct gate *t, sem_t *s)
{
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += (time_t)t->group->timeout + 1; /* whole seconds will do */
    while (sem_timedwait(s, &end) < 0) {
        if (errno == ETIMEDOUT) {
            gate_unlink(t);
            group_timed_out(t->group, "the other ranks");
        }
        if (errno != EINTR)
            ex_fail("wait for", "the other ranks");
    }
}

/* Rank 0 waits for all others; then, at the start, it lets all of them go on. */
static void gate_meet(struct gate *t, bool start)
{
    if (t->group->rank > 0) {
        sem_post(t->arrived);
        if (start)
            gate_wait(t, t->go);
        return;
    }
    for (int r = 1; r < t->group->size; r++)
        gate_wait(t, t->arrived);
    for (int r = 1; start && r < t->group->size; r++)
        sem_post(t->go);
    if (start && t->group->slurm)
        gate_unlink(t); /* all have them open by now */
}

/* ---- the work ---- */

/* Does nothing, but a signal with a handler makes fcntl() return. */
static void on_alarm(int sig)
{
    (void)sig;
}

/* SIGALRM after so many seconds, and then each second in case fcntl() was not yet called. */
static void set_alarm(double seconds)
{
    time_t whole = (time_t)seconds + (seconds > 0);
    struct itimerval t = {.it_value.tv_sec = whole, .it_interval.tv_sec = whole > 0};

    setitimer(ITIMER_REAL, &t, NULL);
}

/* Lock or unlock the counter. */
static void set_lock(const struct group *g, const struct file *f, short type)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_len = sizeof(uint64_t)};
    int rc;

    set_alarm(g->timeout);
    rc = fcntl(f->fd, F_SETLKW, &l);
    if (rc < 0 && errno == EINTR)
        group_timed_out(g, "the lock");
    if (rc < 0)
        ex_fail("lock", f->path);
    set_alarm(0);
}

static void append_record(const struct group *g, const struct file *counter, const struct file *log,
                          char *record)
{
    uint64_t ticket;

    set_lock(g, counter, F_WRLCK);
    file_pread(counter, &ticket, sizeof(ticket), 0);
    snprintf(record, block, "%llu\n", (unsigned long long)ticket);
    ticket++;
    file_pwrite(counter, &ticket, sizeof(ticket), 0);
    file_write(log, record, block);
    set_lock(g, counter, F_UNLCK);
}

/* Each number must have been given once, and the records must be in that order. */
static void check(const struct group *g, struct file *counter, struct file *log, char *record)
{
    uint64_t total = (uint64_t)g->size * count, ticket;

    file_open(counter, O_RDONLY);
    file_pread(counter, &ticket, sizeof(ticket), 0);
    file_close(counter);
    if (ticket != total)
        ex_die("cannot verify '%s': counted to %llu instead of %llu", counter->path,
               (unsigned long long)ticket, (unsigned long long)total);
    file_open(log, O_RDONLY);
    for (uint64_t i = 0; i < total; i++) {
        file_read(log, record, block);
        if (strtoull(record, NULL, 10) != i)
            ex_die("cannot verify '%s': wrong record %llu", log->path, (unsigned long long)i);
    }
    file_close(log);
}

int main(int argc, char **argv)
{
    struct group g;
    struct gate gate;
    struct file counter, log;
    uint64_t zero = 0;
    struct sigaction on = {.sa_handler = on_alarm};
    double start, end;
    char *record;

    group_begin("locks");
    ex_parse(argc, argv, "Processes that append to one file under an fcntl() lock.", opts);
    if (block < 32)
        ex_usage("--block must be at least 32, for the number in the record");
    group_plan(&g, procs, timeout);
    file_name(&counter, dir, "locks.count");
    file_name(&log, dir, "locks.log");
    record = ex_buffer(block);
    sigaction(SIGALRM, &on, NULL);
    gate_open(&gate, &g);
    group_fork(&g);

    if (g.rank == 0) {
        file_open(&counter, O_WRONLY | O_CREAT | O_TRUNC);
        file_write(&counter, &zero, sizeof(zero));
        file_close(&counter);
        file_create(&log);
    }
    gate_meet(&gate, true);
    start = ex_now();
    file_open(&counter, O_RDWR);
    file_open(&log, O_WRONLY | O_APPEND);
    for (unsigned i = 0; i < count; i++) {
        append_record(&g, &counter, &log, record);
        ex_burn(compute);
    }
    file_close(&counter);
    file_close(&log);
    gate_meet(&gate, false);
    end = ex_now();

    group_join(&g);
    if (g.rank == 0) {
        if (verify)
            check(&g, &counter, &log, record);
        if (remove_files) {
            file_remove(&counter);
            file_remove(&log);
        }
        ex_report(g.size, end - start);
    }
    free(record);
    return 0;
}
