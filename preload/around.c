/*
 * Libraries that make system calls of their own, where no wrapper sees the I/O: liburing and
 * libaio.  Their first call says so; see pt_say_blind().
 */
#include "config.h"

#include <errno.h>

#include "preload/hand.h"

/* They exist in programs that use the libraries; else nobody calls them. */
#define AROUND(name, what, params, args)                  \
    PT_EXPORT int name params;                            \
    DECLARE(name);                                        \
    int name params                                       \
    {                                                     \
        int(*library) params = (int(*) params)REAL(name); \
        pt_say_blind(what);                               \
        return library ? library args : -ENOSYS;          \
    }

AROUND(io_uring_queue_init, "io_uring", (unsigned n, void *ring, unsigned flags), (n, ring, flags))
AROUND(io_uring_queue_init_params, "io_uring", (unsigned n, void *ring, void *params),
       (n, ring, params))
AROUND(io_uring_queue_init_mem, "io_uring",
       (unsigned n, void *ring, void *params, void *room, size_t size),
       (n, ring, params, room, size))
AROUND(io_uring_setup, "io_uring", (unsigned n, void *params), (n, params))
AROUND(io_setup, "kernel AIO (libaio)", (int n, void *context), (n, context))
AROUND(io_queue_init, "kernel AIO (libaio)", (int n, void *context), (n, context))
