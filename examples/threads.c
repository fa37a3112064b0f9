/*
 * threads: threads of one process that wait for each other, by a barrier and by queues.
 *
 * Part 1: in each round, each thread writes its block of threads.dat, waits at a barrier, and reads
 * the block of the next thread. Part 2: thread 0 reads the file again, block by block, and hands
 * the blocks to the other threads in turn, each of which writes its blocks to threads.T.
 */
#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *dir = ".";
static unsigned threads = 4, count = 16;
static size_t block = 64 << 10;
static double compute, timeout = 60;
static bool verify, remove_files;

static const struct ex_opt opts[] = {
    {"threads", EX_COUNT, &threads, "number of threads"},
    {"timeout", EX_TIME, &timeout, "give up waiting for another thread after this time"},
    {"dir", EX_TEXT, &dir, "directory of the files threads.*"},
    {"block", EX_SIZE, &block, "size of one access"},
    {"count", EX_COUNT, &count, "rounds"},
    {"compute", EX_TIME, &compute, "CPU time used per block"},
    {"verify", EX_FLAG, &verify, "check what is read"},
    {"remove", EX_FLAG, &remove_files, "remove the files at the end"},
    {0},
};

/*
 * One place for a block for each consumer. A common queue would give the blocks to whoever comes
 * first, and then each run would do different I/O.
 */
struct slot {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool full;
    off_t off;
    char *buf;
};

static struct file data;
static struct slot *slots;
static pthread_barrier_t barrier;
static double start;

/* Called with the lock held: wait until the slot is full, or empty. */
static void await(struct slot *s, bool full)
{
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += (time_t)timeout + 1; /* whole seconds will do */
    while (s->full != full)
        if (pthread_cond_timedwait(&s->changed, &s->lock, &end) == ETIMEDOUT)
            ex_die("a thread gave up waiting for another one after %g s", timeout);
}

static void set(struct slot *s, bool full)
{
    s->full = full;
    pthread_cond_signal(&s->changed);
}

static void rounds(unsigned me, char *buf)
{
    for (unsigned i = 0; i < count; i++) {
        off_t mine = ((off_t)i * threads + me) * (off_t)block;
        off_t theirs = ((off_t)i * threads + (me + 1) % threads) * (off_t)block;

        ex_burn(compute);
        ex_pattern(buf, block, mine);
        file_pwrite(&data, buf, block, mine);
        /* No time limit needed: a thread that fails ends the whole process. */
        pthread_barrier_wait(&barrier);
        file_pread(&data, buf, block, theirs);
        if (verify)
            ex_verify(&data, buf, block, theirs);
    }
}

static void produce(char *buf)
{
    for (unsigned i = 0; i < count * (threads - 1); i++) {
        struct slot *s = &slots[1 + i % (threads - 1)];
        off_t off = (off_t)i * (off_t)block;

        file_pread(&data, buf, block, off);
        pthread_mutex_lock(&s->lock);
        await(s, false);
        memcpy(s->buf, buf, block);
        s->off = off;
        set(s, true);
        pthread_mutex_unlock(&s->lock);
    }
}

static void consume(unsigned me)
{
    struct slot *s = &slots[me];
    struct file out;

    file_name(&out, dir, "threads.%u", me);
    file_open(&out, O_WRONLY | O_CREAT | O_TRUNC);
    for (unsigned i = 0; i < count; i++) {
        pthread_mutex_lock(&s->lock);
        await(s, true);
        if (verify)
            ex_verify(&data, s->buf, block, s->off);
        file_write(&out, s->buf, block);
        ex_burn(compute);
        set(s, false);
        pthread_mutex_unlock(&s->lock);
    }
    file_close(&out);
    if (remove_files)
        file_remove(&out);
}

static void *run(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;
    char *buf = ex_buffer(block);

    pthread_barrier_wait(&barrier);
    if (me == 0)
        start = ex_now();
    rounds(me, buf);
    if (me == 0)
        produce(buf);
    else
        consume(me);
    free(buf);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t *ids;
    double end;

    ex_name = "threads";
    ex_parse(argc, argv, "Threads that wait for each other by a barrier and by queues.", opts);
    if (threads < 2)
        ex_usage("--threads must be at least 2");
    file_name(&data, dir, "threads.dat");
    file_open(&data, O_RDWR | O_CREAT | O_TRUNC);
    ids = ex_buffer(sizeof(*ids) * threads);
    slots = ex_buffer(sizeof(*slots) * threads);
    pthread_barrier_init(&barrier, NULL, threads);
    for (unsigned i = 0; i < threads; i++) {
        pthread_mutex_init(&slots[i].lock, NULL);
        pthread_cond_init(&slots[i].changed, NULL);
        slots[i].buf = ex_buffer(block);
    }

    /* Thread 0 is the first thread of the process. */
    for (unsigned i = 1; i < threads; i++) {
        errno = pthread_create(&ids[i], NULL, run, (void *)(uintptr_t)i);
        if (errno)
            ex_fail("start", "a thread");
    }
    run(NULL);
    for (unsigned i = 1; i < threads; i++)
        pthread_join(ids[i], NULL);
    file_close(&data);
    end = ex_now();

    if (remove_files)
        file_remove(&data);
    ex_report((int)threads, end - start);
    for (unsigned i = 0; i < threads; i++)
        free(slots[i].buf);
    free(slots);
    free(ids);
    return 0;
}
