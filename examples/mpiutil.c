/* What the MPI examples share; see mpiutil.h. */
#include "mpiutil.h"
#include "common.h"

#include <stdlib.h>

/* A failed rank must not leave the others waiting; a usage error is found by all of them alike. */
static void leave(int code)
{
    if (code == 1)
        MPI_Abort(MPI_COMM_WORLD, code);
    MPI_Finalize();
    exit(code);
}

void mpi_begin(int *argc, char ***argv, const char *name, int *rank, int *size)
{
    ex_name = name;
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, size);
    ex_quiet = *rank != 0;
    ex_leave = leave;
}

double mpi_start_clock(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    return ex_now();
}

void mpi_report(double start)
{
    double mine = ex_now() - start, slowest = 0;
    int rank, size;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        ex_report(size, slowest);
}
