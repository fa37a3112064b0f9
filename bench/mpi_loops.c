/*
 * Loops over MPI calls, for bench/tracer; 2 ranks.  Prints like loops.c: the time and
 * the CPU time a call takes in a rank, then the time of a call in each piece (rank 0).
 */
#include "config.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define SIZE   64
#define SPAN   1024
#define PIECES 100

static int rank;
static double from, piece_from;
static long piece_turns;
static size_t npieces;
static double pieces[PIECES];

static double cpu_used(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)use.ru_utime.tv_sec + (double)use.ru_stime.tv_sec +
           ((double)use.ru_utime.tv_usec + (double)use.ru_stime.tv_usec) * 1e-6;
}

static void begin(long turns)
{
    piece_turns = turns < PIECES ? 1 : turns / PIECES;
    MPI_Barrier(MPI_COMM_WORLD);
    from = piece_from = MPI_Wtime();
}

static inline void turn(long turns)
{
    if (turns % piece_turns || npieces == PIECES)
        return;
    double to = MPI_Wtime();
    pieces[npieces++] = (to - piece_from) / (double)piece_turns;
    piece_from = to;
}

static void die(const char *what)
{
    fprintf(stderr, "mpi_loops: cannot %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Each returns the seconds that the loop took, without what comes before and after it. */

static double loop_pingpong(long turns, const char *path)
{
    char buf[8] = {0};
    (void)path;
    begin(turns);
    for (long i = 0; i < turns; turn(++i)) {
        if (rank == 0)
            MPI_Send(buf, sizeof(buf), MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(buf, sizeof(buf), MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1)
            MPI_Send(buf, sizeof(buf), MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
    return MPI_Wtime() - from;
}

static double loop_test(long turns, const char *path)
{
    char in[8], out[8] = {0};
    int flag = 0;
    MPI_Request req;
    (void)path;
    MPI_Irecv(in, sizeof(in), MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, &req);
    begin(turns);
    for (long i = 0; i < turns; turn(++i)) {
        MPI_Test(&req, &flag, MPI_STATUS_IGNORE);
        if (flag)
            die("test: the message came too early");
    }
    double took = MPI_Wtime() - from;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(out, sizeof(out), MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD);
    MPI_Wait(&req, MPI_STATUS_IGNORE);
    return took;
}

static double loop_file(long turns, const char *path)
{
    char buf[SIZE] = {1}, own[4096];
    MPI_File f;
    snprintf(own, sizeof(own), "%s.%d", path, rank);
    if (MPI_File_open(MPI_COMM_SELF, own, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &f))
        die("open the file");
    begin(turns);
    for (long i = 0; i < turns; turn(++i))
        if (MPI_File_write_at(f, i % SPAN * SIZE, buf, SIZE, MPI_CHAR, MPI_STATUS_IGNORE))
            die("write the file");
    double took = MPI_Wtime() - from;
    MPI_File_close(&f);
    return took;
}

static const struct {
    const char *name;
    double (*run)(long turns, const char *path);
    int calls; /* a turn and rank */
} loops[] = {
    {"pingpong", loop_pingpong, 2},
    {"test", loop_test, 1},
    {"file", loop_file, 1},
};

static void run(size_t loop, long turns, const char *path)
{
    double used[2], sum[2], calls = (double)turns * loops[loop].calls;
    double cpu = cpu_used();
    used[0] = loops[loop].run(turns, path);
    used[1] = cpu_used() - cpu;
    MPI_Reduce(used, sum, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank)
        return;
    printf("%.1f %.1f\n", sum[0] / 2 / calls * 1e9, sum[1] / 2 / calls * 1e9);
    for (size_t i = 0; i < npieces; i++)
        printf("%.1f\n", pieces[i] / loops[loop].calls * 1e9);
}

int main(int argc, char **argv)
{
    int size, found = 0;
    long turns;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc == 4 && size == 2 && (turns = atol(argv[2])) > 0)
        for (size_t i = 0; i < sizeof(loops) / sizeof(loops[0]); i++)
            if (!strcmp(loops[i].name, argv[1])) {
                run(i, turns, argv[3]);
                found = 1;
            }
    if (!found && rank == 0)
        fprintf(stderr, "usage: mpirun -n 2 mpi_loops pingpong|test|file TURNS FILE\n");
    MPI_Finalize();
    return found ? 0 : 2;
}
