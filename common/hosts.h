/*
 * How the watchdogs of a step on several hosts find and trust each other, in the words of
 * paratrace.conf.
 */
#ifndef PT_HOSTS_H
#define PT_HOSTS_H

#include <stdint.h>

#include "common/err.h"

/*
 * Above those that Linux hands out by itself (up to 60999) and those that Slurm's manual
 * proposes for SrunPortRange.
 */
#define PT_HOSTS_PORTS "63001-64999"

struct pt_ports {
    uint16_t begin, end; /* both included */
};

/* Credentials of munge: never, where munged answers, or no connection without. */
enum pt_munge { PT_MUNGE_NO, PT_MUNGE_AUTO, PT_MUNGE_YES };

/* "BEGIN-END".  -1 and err if it is none. */
int pt_hosts_ports(const char *text, struct pt_ports *ports, struct pt_err *err);

/* "no", "auto" or "yes". */
int pt_hosts_munge(const char *text, enum pt_munge *munge, struct pt_err *err);

/* The path of munged's socket: absolute, and it fits. */
int pt_hosts_munge_socket(const char *path, struct pt_err *err);

#endif
