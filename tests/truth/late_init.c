/*
 * A tool between a program and the MPI library, whose MPI_Init takes longer on rank 1.  All are
 * there by then, as when the launcher's server tells one of them late that it may go on.
 */
#include "config.h"

#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

int MPI_Init(int *argc, char ***argv)
{
    int rank = 0, rc = PMPI_Init(argc, argv);
    setenv("LATE_INIT", "1", 1);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1)
        usleep(30000);
    return rc;
}
