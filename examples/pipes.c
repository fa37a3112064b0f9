/*
 * pipes: a pipeline of processes; each tells the next one by a pipe which block it may take.
 *
 * Stage 0 writes the blocks of pipes.0. Each later stage r waits for a token, reads that block
 * of pipes.(r-1), writes it to pipes.r, and passes the token on: all stages work at the same
 * time, on different blocks.
 */
#define _GNU_SOURCE
#include "common.h"
#include "group.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static const char *dir = ".";
static unsigned procs, count = 32;
static size_t block = 64 << 10;
static double compute, timeout = 60;
static bool verify, remove_files;

static const struct ex_opt opts[] = {
    GROUP_OPTS(procs, timeout),
    {"dir", EX_TEXT, &dir, "directory of the files pipes.*"},
    {"block", EX_SIZE, &block, "size of one access"},
    {"count", EX_COUNT, &count, "blocks that go through the pipeline"},
    {"compute", EX_TIME, &compute, "CPU time used per block and stage"},
    {"verify", EX_FLAG, &verify, "check what is read"},
    {"remove", EX_FLAG, &remove_files, "remove the files at the end"},
    {0},
};

/*
 * Wait for the token of block 'i'. Tokens are smaller than PIPE_BUF and of one size, so one read()
 * always gets one token, however they were scheduled.
 */
static void receive(const struct group *g, int fd, uint64_t i)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    uint64_t token;
    int rc;

    do
        rc = poll(&p, 1, g->timeout > INT_MAX / 1000 ? -1 : (int)(g->timeout * 1000));
    while (rc < 0 && errno == EINTR);
    if (rc == 0)
        group_timed_out(g, "the previous stage");
    if (rc < 0 || read(fd, &token, sizeof(token)) != sizeof(token))
        ex_die("stage %d: the previous stage ended too early", g->rank);
    if (token != i)
        ex_die("stage %d: the previous stage is out of step", g->rank);
}

static void run_stage(const struct group *g, int from, int to)
{
    struct file in, out;
    char *buf = ex_buffer(block);

    file_name(&in, dir, "pipes.%d", g->rank - 1);
    file_name(&out, dir, "pipes.%d", g->rank);
    file_open(&out, O_WRONLY | O_CREAT | O_TRUNC);
    for (uint64_t i = 0; i < count; i++) {
        off_t off = (off_t)(i * block);
        if (g->rank == 0) {
            ex_pattern(buf, block, off);
        } else {
            receive(g, from, i);
            if (i == 0)
                file_open(&in, O_RDONLY); /* with the first token the file is there */
            file_pread(&in, buf, block, off);
            if (verify)
                ex_verify(&in, buf, block, off);
        }
        ex_burn(compute);
        file_pwrite(&out, buf, block, off);
        if (to >= 0 && write(to, &i, sizeof(i)) != sizeof(i))
            ex_fail("write to", "the next stage");
    }
    file_close(&out);
    if (g->rank > 0 && count > 0)
        file_close(&in);
    free(buf);
}

int main(int argc, char **argv)
{
    struct group g;
    int(*pipes)[2];
    double start;

    group_begin("pipes");
    ex_parse(argc, argv, "A pipeline of processes, joined by pipes.", opts);
    group_plan_forked(&g, procs, timeout);
    signal(SIGPIPE, SIG_IGN); /* a stage that died is an error to be told */
    pipes = ex_buffer(sizeof(*pipes) * (size_t)g.size);
    for (int i = 0; i + 1 < g.size; i++)
        if (pipe2(pipes[i], O_CLOEXEC) < 0)
            ex_fail("make", "a pipe");

    group_fork(&g);
    start = ex_now();
    /* Keep the two ends that are this stage's: else a stage that ends would not be noticed. */
    for (int i = 0; i + 1 < g.size; i++) {
        if (i != g.rank - 1)
            close(pipes[i][0]);
        if (i != g.rank)
            close(pipes[i][1]);
    }
    run_stage(&g, g.rank > 0 ? pipes[g.rank - 1][0] : -1,
              g.rank + 1 < g.size ? pipes[g.rank][1] : -1);
    free(pipes);
    group_join(&g);

    /* Only rank 0 comes here, and after the last stage has ended. */
    ex_report(g.size, ex_now() - start);
    for (int r = 0; remove_files && r < g.size; r++) {
        struct file f;
        file_name(&f, dir, "pipes.%d", r);
        file_remove(&f);
    }
    return 0;
}
