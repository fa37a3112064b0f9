/*
 * sockets: a token goes round a ring of processes; who has it, works on the shared file.
 *
 * A rank that gets the token reads the block that the previous rank wrote, writes the next block
 * of sockets.dat, and passes the token on. After that, while the others work, it writes to
 * its own file sockets.R: that write depends on no other rank.
 */
#define _GNU_SOURCE
#include "common.h"
#include "group.h"
#include "ring.h"

#include <fcntl.h>
#include <stdlib.h>

static const char *dir = ".";
static unsigned procs, count = 16;
static size_t block = 64 << 10;
static double compute, timeout = 60;
static bool tcp, verify, remove_files;

static const struct ex_opt opts[] = {
    GROUP_OPTS(procs, timeout),
    {"dir", EX_TEXT, &dir, "directory of the files sockets.*"},
    {"block", EX_SIZE, &block, "size of one access"},
    {"count", EX_COUNT, &count, "laps of the token"},
    {"compute", EX_TIME, &compute, "CPU time used by the holder of the token"},
    {"tcp", EX_FLAG, &tcp, "TCP instead of Unix sockets"},
    {"verify", EX_FLAG, &verify, "check what is read"},
    {"remove", EX_FLAG, &remove_files, "remove the files at the end"},
    {0},
};

/* Send the token once around without any work: it is back when all ranks have come so far. */
static void idle_lap(const struct ring *r, uint64_t token)
{
    if (r->group->rank == 0)
        ring_send(r, token);
    if (ring_receive(r) != token)
        ex_die("the previous rank is out of step");
    if (r->group->rank != 0)
        ring_send(r, token);
}

/* What the holder of the token does; 'place' is the number of blocks written so far. */
static void work(const struct file *f, char *buf, off_t place)
{
    if (place > 0) {
        file_pread(f, buf, block, (place - 1) * (off_t)block);
        if (verify)
            ex_verify(f, buf, block, (place - 1) * (off_t)block);
    }
    ex_burn(compute);
    ex_pattern(buf, block, place * (off_t)block);
    file_pwrite(f, buf, block, place * (off_t)block);
}

int main(int argc, char **argv)
{
    struct group g;
    struct ring ring;
    struct file shared, own;
    char *buf;
    double start, end;

    group_begin("sockets");
    ex_parse(argc, argv, "Processes that take turns by a token in a ring of sockets.", opts);
    group_plan(&g, procs, timeout);
    ring_prepare(&ring, &g, tcp, dir);
    group_fork(&g);
    ring_connect(&ring);
    file_name(&shared, dir, "sockets.dat");
    file_name(&own, dir, "sockets.%d", g.rank);
    buf = ex_buffer(block);

    if (g.rank == 0)
        file_create(&shared);
    idle_lap(&ring, UINT64_MAX);
    start = ex_now();
    file_open(&shared, O_RDWR);
    file_open(&own, O_WRONLY | O_CREAT | O_TRUNC);
    for (unsigned lap = 0; lap < count; lap++) {
        if ((g.rank > 0 || lap > 0) && ring_receive(&ring) != lap - (g.rank == 0))
            ex_die("the previous rank is out of step");
        work(&shared, buf, (off_t)lap * g.size + g.rank);
        ring_send(&ring, lap);
        file_write(&own, buf, block);
    }
    /* The token of the last lap is still on its way to rank 0. */
    if (g.rank == 0 && count > 0)
        ring_receive(&ring);
    file_close(&shared);
    file_close(&own);
    idle_lap(&ring, UINT64_MAX - 1);
    end = ex_now();

    ring_close(&ring);
    if (remove_files) {
        file_remove(&own);
        if (g.rank == 0)
            file_remove(&shared);
    }
    free(buf);
    group_join(&g);
    if (g.rank == 0)
        ex_report(g.size, end - start);
    return 0;
}
