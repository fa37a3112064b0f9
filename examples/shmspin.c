/*
 * shmspin: processes that wait for each other by spinning on shared memory.
 *
 * In each round, each rank writes its block of shmspin.dat, waits at a barrier made of two atomic
 * variables, and reads the block that the next rank wrote. No call shows that waiting: it
 * looks like computing.
 */
#define _GNU_SOURCE
#include "common.h"
#include "group.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *dir = ".";
static unsigned procs, count = 16;
static size_t block = 64 << 10;
static double compute, timeout = 60;
static bool yield_cpu, verify, remove_files;

static const struct ex_opt opts[] = {
    GROUP_OPTS(procs, timeout),
    {"dir", EX_TEXT, &dir, "directory of the file shmspin.dat"},
    {"block", EX_SIZE, &block, "size of one access"},
    {"count", EX_COUNT, &count, "rounds"},
    {"compute", EX_TIME, &compute, "CPU time used before each write"},
    {"yield", EX_FLAG, &yield_cpu, "call sched_yield() while spinning"},
    {"verify", EX_FLAG, &verify, "check what is read"},
    {"remove", EX_FLAG, &remove_files, "remove the file at the end"},
    {0},
};

/* All zero is the state at the start, so whichever rank comes first has nothing to set up. */
struct barrier {
    atomic_uint arrived;
    atomic_uint round;
};

static const char *barrier_name(const struct group *g)
{
    static char name[128];

    snprintf(name, sizeof(name), "/paratrace-shmspin-%s", g->tag);
    return name;
}

static void barrier_unlink(const struct group *g)
{
    if (g->slurm)
        shm_unlink(barrier_name(g));
}

/* Memory that the forked processes inherit, or an object that the tasks find by name. */
static struct barrier *barrier_map(const struct group *g)
{
    const char *name = barrier_name(g);
    struct barrier *b;
    int fd = -1;

    if (g->slurm) {
        fd = shm_open(name, O_RDWR | O_CREAT, 0600);
        if (fd < 0 || ftruncate(fd, sizeof(*b)) < 0)
            ex_fail("open shared memory", name);
    }
    b = mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE, MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0),
             fd, 0);
    if (b == MAP_FAILED)
        ex_fail("map shared memory", name);
    if (fd >= 0)
        close(fd);
    return b;
}

static void barrier_wait(const struct group *g, struct barrier *b)
{
    unsigned round = atomic_load(&b->round);
    double end = ex_now() + g->timeout;

    if (atomic_fetch_add(&b->arrived, 1) + 1 == (unsigned)g->size) {
        atomic_store(&b->arrived, 0);
        atomic_fetch_add(&b->round, 1);
        return;
    }
    for (unsigned spins = 1; atomic_load(&b->round) == round; spins++) {
        if (spins % 4096)
            continue;
        if (ex_now() > end) { /* the clock needs no system call */
            barrier_unlink(g);
            group_timed_out(g, "the other ranks");
        }
        if (yield_cpu)
            sched_yield();
    }
}

int main(int argc, char **argv)
{
    struct group g;
    struct barrier *b;
    struct file f;
    char *buf;
    double start, end;

    group_begin("shmspin");
    ex_parse(argc, argv, "Processes that wait for each other by spinning on memory.", opts);
    group_plan(&g, procs, timeout);
    b = barrier_map(&g);
    group_fork(&g);
    file_name(&f, dir, "shmspin.dat");
    buf = ex_buffer(block);

    if (g.rank == 0)
        file_create(&f);
    barrier_wait(&g, b);
    if (g.rank == 0)
        barrier_unlink(&g); /* all have it mapped by now */
    start = ex_now();
    file_open(&f, O_RDWR);
    for (unsigned i = 0; i < count; i++) {
        off_t mine = ((off_t)i * g.size + g.rank) * (off_t)block;
        off_t theirs = ((off_t)i * g.size + (g.rank + 1) % g.size) * (off_t)block;

        ex_burn(compute);
        ex_pattern(buf, block, mine);
        file_pwrite(&f, buf, block, mine);
        barrier_wait(&g, b);
        file_pread(&f, buf, block, theirs);
        if (verify)
            ex_verify(&f, buf, block, theirs);
    }
    file_close(&f);
    barrier_wait(&g, b);
    end = ex_now();

    free(buf);
    group_join(&g);
    if (g.rank == 0) {
        if (remove_files)
            file_remove(&f);
        ex_report(g.size, end - start);
    }
    return 0;
}
