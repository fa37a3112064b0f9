/*
 * What tracer and merge have to know of the MPI library without its mpi.h: Open MPI's
 * constants and the layout of its status.  Handles are pointers.
 */
#ifndef PT_MPI_ABI_H
#define PT_MPI_ABI_H

#include <stddef.h>

enum {
    PT_MPI_ANY = -1, /* source or tag */
    PT_MPI_PROC_NULL = -2,
    PT_MPI_ROOT = -4, /* the root of an intercommunicator's collective says so of itself */
    PT_MPI_UNDEFINED = -32766,
};

/* In place of the source that completed a request. */
enum {
    PT_MPI_AS_ASKED = -100, /* no receive, or one without wildcards */
    PT_MPI_CANCELLED = -101,
};

enum { PT_MPI_MULTIPLE = 3 }; /* level of thread support */

enum { PT_MPI_WORLD = 0, PT_MPI_SELF = 1 }; /* numbers of communicators; the others follow */

/* The completion of a standard send of no more bytes than this is not recorded. */
#define PT_MPI_SMALL 4096

struct pt_mpi_status {
    int source, tag, error;
    int cancelled;
    size_t bytes;
};

#endif
