/* What the MPI examples share: start, clock, end. */
#ifndef EXAMPLES_MPIUTIL_H
#define EXAMPLES_MPIUTIL_H

#include <mpi.h>

/* MPI_Init; set ex_name, and let ex_leave() end all ranks. Call before ex_parse(). */
void mpi_begin(int *argc, char ***argv, const char *name, int *rank, int *size);

/* Barrier, then the time: the moment from which the program's running time counts. */
double mpi_start_clock(void);

/*
 * The slowest rank's time since 'start' is reported by rank 0. When it returns on rank 0, all
 * ranks have come here, so that rank 0 may remove the files.
 */
void mpi_report(double start);

#endif
