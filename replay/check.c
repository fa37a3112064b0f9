#include "config.h"

#include <inttypes.h>

#include "replay/check.h"

/* Why an event is left out; actions without a reason are no loss. */
static const char *const reasons[NPLAN_ACTIONS] = {
    [PLAN_IGNORED] = "not replayed, on terminals, pipes or devices",
    [PLAN_MPI_IO] = "MPI-IO calls are not replayed",
    [PLAN_FAILED] = "not replayed, failed in the trace",
    [PLAN_UNSUPPORTED] = "cannot be replayed, the replayer does not know this call",
    [PLAN_NO_HANDLE] = "cannot be replayed, the trace does not show where the descriptor is from",
};

size_t check_size(const struct pt_store *store)
{
    return NPLAN_ACTIONS * pt_store_ncalls(store);
}

void check_count(const struct plan *plan, uint64_t *counts)
{
    size_t ncalls = pt_store_ncalls(plan->store);

    for (size_t k = 0; k < plan->nnodes; k++) {
        const struct plan_node *n = &plan->nodes[k];

        for (uint64_t i = 0; i < n->nevents; i++)
            counts[n->steps[i].action * ncalls + n->events[i].op]++;
    }
}

uint64_t check_impossible(const struct pt_store *store, const uint64_t *counts)
{
    size_t ncalls = pt_store_ncalls(store);
    uint64_t sum = 0;

    for (size_t op = 0; op < ncalls; op++)
        sum += counts[PLAN_UNSUPPORTED * ncalls + op] + counts[PLAN_NO_HANDLE * ncalls + op];
    return sum;
}

/* One line for all calls. */
static void print_once(const struct pt_store *store, const uint64_t *counts,
                       enum plan_action action, const char *prefix, FILE *out)
{
    size_t ncalls = pt_store_ncalls(store);
    uint64_t n = 0;

    for (size_t op = 0; op < ncalls; op++)
        n += counts[(size_t)action * ncalls + op];
    if (n > 0)
        fprintf(out, "%s: %s: %" PRIu64 " event%s\n", prefix, reasons[action], n,
                n == 1 ? "" : "s");
}

void check_print(const struct pt_store *store, const uint64_t *counts, const char *prefix,
                 FILE *out)
{
    size_t ncalls = pt_store_ncalls(store);

    for (int action = 0; action < NPLAN_ACTIONS; action++) {
        if (action == PLAN_MPI_IO) {
            print_once(store, counts, (enum plan_action)action, prefix, out);
            continue;
        }
        for (size_t op = 0; op < ncalls && reasons[action]; op++) {
            uint64_t n = counts[(size_t)action * ncalls + op];

            if (n > 0)
                fprintf(out, "%s: %s '%s': %" PRIu64 " event%s\n", prefix, reasons[action],
                        pt_store_call(store, op)->name, n, n == 1 ? "" : "s");
        }
    }
}
