/*
 * quake: the three phases of an earthquake simulation, after Quake of Carnegie Mellon.
 *
 * 1. Each rank builds the mesh of its region in a database on disk that all ranks share (etree.h).
 * 2. Rank 0 collects the mesh from all ranks and writes it.
 * 3. A wave travels through the region; the ranks exchange the rims of their parts in each step,
 *    and every few steps all of them write their part of the state.
 */
#define _GNU_SOURCE
#include "common.h"
#include "etree.h"
#include "mpiutil.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static const char *dir = ".";
static unsigned pages = 256, ops = 400, steps = 60, output_every = 5;
static double compute = 0.015, op_compute = 0.0002;
static size_t block = 256 << 10;
static bool osync, direct, split_output, remove_files;

static const struct ex_opt opts[] = {
    {"dir", EX_TEXT, &dir, "directory of the files quake.*"},
    {"pages", EX_COUNT, &pages, "phase 1: pages of the database per rank"},
    {"ops", EX_COUNT, &ops, "phase 1: operations on the database per rank"},
    {"op-compute", EX_TIME, &op_compute, "phase 1: CPU time used per operation"},
    {"steps", EX_COUNT, &steps, "phase 3: time steps"},
    {"compute", EX_TIME, &compute, "phase 3: CPU time used per step"},
    {"output-every", EX_COUNT, &output_every, "phase 3: steps from one output to the next"},
    {"block", EX_SIZE, &block, "phase 3: size of one output of one rank"},
    {"split", EX_FLAG, &split_output, "phase 3: one output file per rank, quake.out.R"},
    {"osync", EX_FLAG, &osync, "synchronous writes (O_SYNC)"},
    {"direct", EX_FLAG, &direct, "direct I/O (O_DIRECT), not for the mesh"},
    {"remove", EX_FLAG, &remove_files, "remove the files at the end"},
    {0},
};

static int rank, size;

/* A fixed sequence for each rank: xorshift from a seed of its own. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Anding two random numbers gathers the octants in one corner: the mesh is finer there. */
static uint64_t random_code(uint64_t *state)
{
    uint64_t a = next_random(state) >> 20, b = next_random(state) >> 20;

    return (a & (b | 0x249249)) & ((UINT64_C(1) << (3 * ETREE_LEVELS)) - 1);
}

/* Phase 1: three updates, then a look-up of the octant updated last. */
static void build_mesh(struct etree *t)
{
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(rank + 1), code = 0;

    for (unsigned i = 0; i < ops; i++) {
        if (i % 4 == 3) {
            if (!etree_find(t, code) && t->used + 8 <= t->pages)
                ex_die("cannot read '%s': an octant is lost", t->file.path);
        } else {
            code = random_code(&state);
            etree_update(t, code, (double)i);
        }
        ex_burn(op_compute);
    }
    file_sync(&t->file);
}

/* Phase 2: the octants of all ranks, in rank order, are gathered and written by rank 0. */
static void write_mesh(struct etree *t, struct file *mesh)
{
    size_t n;
    struct octant *mine = etree_collect(t, &n), *all = NULL;
    int bytes = (int)(n * sizeof(*mine)), total = 0;
    int *counts = NULL, *starts = NULL;

    if (rank == 0) {
        counts = ex_buffer(sizeof(int) * (size_t)size);
        starts = ex_buffer(sizeof(int) * (size_t)size);
    }
    MPI_Gather(&bytes, 1, MPI_INT, counts, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        for (int r = 0; r < size; r++) {
            if (counts[r] > INT_MAX - total)
                ex_die("the mesh is too large to gather; use fewer --pages");
            starts[r] = total;
            total += counts[r];
        }
        all = ex_buffer((size_t)total);
    }
    MPI_Gatherv(mine, bytes, MPI_BYTE, all, counts, starts, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        file_open(mesh, O_WRONLY | O_CREAT | O_TRUNC | (osync ? O_SYNC : 0));
        for (int r = 0; r < size; r++)
            file_write(mesh, (char *)all + starts[r], (size_t)counts[r]);
        file_sync(mesh);
        file_close(mesh);
    }
    free(mine);
    free(all);
    free(counts);
    free(starts);
}

/* This rank's part of the ground: ROWS rows, and a row of each neighbour above and below. */
enum { ROWS = 32, COLS = 64 };
typedef double grid[ROWS + 2][COLS];

static void exchange_rims(grid g)
{
    int up = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    int down = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;

    MPI_Sendrecv(g[1], COLS, MPI_DOUBLE, up, 1, g[ROWS + 1], COLS, MPI_DOUBLE, down, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(g[ROWS], COLS, MPI_DOUBLE, down, 2, g[0], COLS, MPI_DOUBLE, up, 2, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

/* One step of the wave equation: 'old' becomes the state after 'now'. */
static void propagate(grid old, grid now)
{
    for (int i = 1; i <= ROWS; i++) {
        for (int j = 0; j < COLS; j++) {
            double left = j > 0 ? now[i][j - 1] : 0, right = j + 1 < COLS ? now[i][j + 1] : 0;
            double bend = now[i - 1][j] + now[i + 1][j] + left + right - 4 * now[i][j];
            old[i][j] = 2 * now[i][j] - old[i][j] + 0.2 * bend;
        }
    }
}

/* The state repeated as often as the block has room: its size is chosen, not that of the grid. */
static void write_state(const struct file *f, char *buf, grid g, unsigned number)
{
    size_t part = sizeof(double) * ROWS * COLS;
    off_t place = split_output ? (off_t)number : (off_t)number * size + rank;

    for (size_t at = 0; at < block; at += part)
        memcpy(buf + at, g[1], block - at < part ? block - at : part);
    file_pwrite(f, buf, block, place * (off_t)block);
}

/* Phase 3. */
static void simulate(struct file *out)
{
    static grid a, b;
    double(*old)[COLS] = a, (*now)[COLS] = b, (*swap)[COLS];
    char *buf = ex_buffer(block);

    if (split_output || rank == 0)
        file_create(out);
    /* No rank may open the file before it is there, nor step on while the mesh is being written. */
    MPI_Barrier(MPI_COMM_WORLD);
    file_open(out, O_WRONLY | (osync ? O_SYNC : 0) | (direct ? O_DIRECT : 0));
    if (rank == 0)
        now[ROWS / 2][COLS / 2] = 1; /* the quake */
    for (unsigned i = 1; i <= steps; i++) {
        exchange_rims(now);
        propagate(old, now);
        swap = old;
        old = now;
        now = swap;
        ex_burn(compute);
        if (output_every && i % output_every == 0)
            write_state(out, buf, now, i / output_every - 1);
    }
    file_close(out);
    free(buf);
}

int main(int argc, char **argv)
{
    struct etree tree;
    struct file mesh, out;
    double start;

    mpi_begin(&argc, &argv, "quake", &rank, &size);
    ex_parse(argc, argv, "Build a mesh on disk, collect it, and simulate waves in it.", opts);
    ex_check_direct(direct, "block", block);
    if (pages < 1 || (uint64_t)pages * (uint64_t)size > UINT32_MAX - 1)
        ex_usage("--pages must be at least 1 and fit into one file");
    file_name(&tree.file, dir, "quake.etree");
    file_name(&mesh, dir, "quake.mesh");
    if (split_output)
        file_name(&out, dir, "quake.out.%d", rank);
    else
        file_name(&out, dir, "quake.out");

    if (rank == 0)
        etree_create(&tree.file, (uint32_t)size, pages);
    start = mpi_start_clock();
    etree_open(&tree, (osync ? O_SYNC : 0) | (direct ? O_DIRECT : 0), (uint32_t)rank);
    build_mesh(&tree);
    write_mesh(&tree, &mesh);
    etree_close(&tree);
    simulate(&out);

    mpi_report(start);
    if (remove_files) {
        if (rank == 0) {
            file_remove(&tree.file);
            file_remove(&mesh);
        }
        if (split_output || rank == 0)
            file_remove(&out);
    }
    MPI_Finalize();
    return 0;
}
