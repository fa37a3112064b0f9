/*
 * The plan: which nodes there are, and which run holds whom.
 */
#ifndef PT_CAMPAIGN_PLAN_H
#define PT_CAMPAIGN_PLAN_H

#include "campaign/campaign.h"
#include "common/trace.h"

struct plan_node {
    struct pt_name name;
    uint64_t io; /* I/O events, those below MPI-IO not counted */
};

struct plan {
    struct plan_node *nodes; /* by name */
    size_t n;
    long ranks;
};

/* Reads all run files of the baseline's directory. */
int plan_read(struct plan *p, const char *rundir, struct pt_err *err);
void plan_clear(struct plan *p);

/* Adds what one run file holds; `step` (at first NULL) is that of all files. */
int plan_add_file(struct plan *p, const char *path, char **step, struct pt_err *err);

/* --nodes: "all" or a list such as 0,2,5 or 0.0.1; -1 and err if it is neither. */
int plan_check_nodes(const char *nodes, struct pt_err *err);

/*
 * Gives the campaign one run for each node that is asked for and does I/O, and notes
 * about those that are asked for and do not.  -1 and err if none of those asked for does.
 */
int plan_make_runs(const struct plan *p, struct campaign *c, struct pt_err *err);

/* --spec: items that leave the campaign's own ones alone; -1 and err. */
int plan_check_spec(const char *items, struct pt_err *err);

/* The SPEC of run k, for free(); NULL and err if it would be wrong. */
char *plan_spec(const struct campaign *c, size_t k, struct pt_err *err);

#endif
