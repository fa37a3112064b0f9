/*
 * ptmerge: merges the runs of one campaign into a store.
 */
#include "config.h"

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/mpi_abi.h"
#include "hdf5store/format.h"
#include "hdf5store/merge_campaign.h"

struct options {
    const char *output;
    struct merge_options merge;
    int json;
    char **dirs;
    size_t ndirs;
};

static const char usage[] =
    "Usage: ptmerge [--strict] [--rendezvous=SIZE] [--json] -o STORE.h5 RUNDIR...\n"
    "Merges the runs of one campaign into a store.\n"
    "\n"
    "  -o, --output=STORE.h5  the store to write; appears when it is complete\n"
    "      --strict           fail if a run is incomplete or lost events\n"
    "      --rendezvous=SIZE  MPI sends of more than SIZE bytes (K, M) wait for their\n"
    "                         receive; 0: none does; default 64K\n"
    "      --json             print the summary as JSON\n"
    "  -h, --help             print this\n"
    "  -V, --version          print the version\n";

static int wrong_usage(const char *what)
{
    fprintf(stderr, "ptmerge: %s\nTry 'ptmerge --help'.\n", what);
    return 2;
}

/* Smaller sends are not followed to their end. */
static int parse_size(const char *text, uint64_t *bytes)
{
    char *end;
    unsigned long long v = strtoull(text, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;

    if (*text < '0' || *text > '9' || v > (1u << 30) >> shift || end[shift ? 1 : 0])
        return -1;
    *bytes = v << shift;
    return *bytes && *bytes < PT_MPI_SMALL ? -1 : 0;
}

/* -1: go on, else the exit status. */
static int parse_options(int argc, char **argv, struct options *o)
{
    static const struct option longs[] = {
        {"output", required_argument, NULL, 'o'},
        {"strict", no_argument, NULL, 's'},
        {"json", no_argument, NULL, 'j'},
        {"rendezvous", required_argument, NULL, 'r'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    int c;

    *o = (struct options){.merge.rendezvous = MERGE_RENDEZVOUS};
    while ((c = getopt_long(argc, argv, "o:hV", longs, NULL)) != -1) {
        switch (c) {
        case 'o':
            o->output = optarg;
            break;
        case 's':
            o->merge.strict = 1;
            break;
        case 'r':
            if (parse_size(optarg, &o->merge.rendezvous) < 0)
                return wrong_usage("--rendezvous: must be 0, or a size from 4K to 1G");
            break;
        case 'j':
            o->json = 1;
            break;
        case 'h':
            fputs(usage, stdout);
            return 0;
        case 'V':
            puts("ptmerge " PACKAGE_VERSION);
            return 0;
        default:
            return wrong_usage("unknown option");
        }
    }
    o->dirs = argv + optind;
    o->ndirs = argc - optind;
    if (!o->output)
        return wrong_usage("no output: -o STORE.h5 is needed");
    if (!o->ndirs)
        return wrong_usage("no run directory");
    return -1;
}

/* ---- the store ------------------------------------------------------------------- */

/* What a signal has to remove. */
static char temporary[4096];

static void remove_and_die(int sig)
{
    unlink(temporary);
    signal(sig, SIG_DFL);
    raise(sig);
}

static void remove_on_signal(const struct pt_store_writer *w)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGXCPU};
    struct sigaction action = {.sa_handler = remove_and_die};

    snprintf(temporary, sizeof(temporary), "%s", pt_store_temporary(w));
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        sigaction(signals[i], &action, NULL);
}

/* No signal comes between making the temporary file and knowing how to remove it. */
static struct pt_store_writer *create_store(const char *path, uint64_t epoch, struct pt_err *err)
{
    struct pt_store_writer *w;
    sigset_t all, before;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    w = pt_store_create(path, epoch, err);
    if (w)
        remove_on_signal(w);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return w;
}

static int write_store(const struct merge_campaign *c, const char *path, struct pt_err *err)
{
    struct pt_store_writer *w = create_store(path, merge_campaign_epoch(c), err);

    if (!w)
        return -1;
    if (merge_campaign_write(c, w, err) < 0) {
        pt_store_abort(w);
        return -1;
    }
    return pt_store_commit(w, err);
}

/* ---- the summary -------------------------------------------------------------------- */

static void print_text(const struct merge_campaign *c, const char *store)
{
    printf("%s: %zu run%s, %zu nodes, %" PRIu64 " events, %zu files\n", store, c->nruns,
           c->nruns == 1 ? "" : "s", c->base->nnodes, merge_campaign_events(c), c->nfiles);
    printf("edges: %zu, %zu after reduction: %zu in %zu barriers, %zu others\n", c->nunited,
           c->nreduced, c->nreduced - c->nedges, c->barriers.nbarriers, c->nedges);
}

static void print_json_run(const struct pt_store_run *run)
{
    fputs("{\"dir\":", stdout);
    pt_json_string(stdout, run->dir);
    fputs(",\"spec\":", stdout);
    pt_json_string(stdout, run->spec);
    fputs(",\"hosts\":", stdout);
    pt_json_string(stdout, run->host);
    printf(",\"job\":%" PRIu64 ",\"step\":%" PRIu64 ",\"complete\":%s,\"lost\":%" PRIu64 "}",
           run->job, run->step, run->complete ? "true" : "false", run->lost);
}

static void print_json(const struct merge_campaign *c, const char *store)
{
    fputs("{\"store\":", stdout);
    pt_json_string(stdout, store);
    printf(",\"nodes\":%zu,\"events\":%" PRIu64 ",\"files\":%zu,\"edges_before\":%zu,"
           "\"edges_after\":%zu,\"edges\":%zu,\"barriers\":%zu,\"runs\":[",
           c->base->nnodes, merge_campaign_events(c), c->nfiles, c->nunited, c->nreduced, c->nedges,
           c->barriers.nbarriers);
    for (size_t i = 0; i < c->nruns; i++) {
        fputs(i ? "," : "", stdout);
        print_json_run(&c->runs[i]);
    }
    fputs("],\"warnings\":[", stdout);
    for (size_t i = 0; i < c->nwarnings; i++) {
        fputs(i ? "," : "", stdout);
        pt_json_string(stdout, c->warnings[i]);
    }
    puts("]}");
}

static void print_warnings(const struct merge_campaign *c)
{
    for (size_t i = 0; i < c->nwarnings; i++)
        fprintf(stderr, "ptmerge: warning: %s\n", c->warnings[i]);
}

int main(int argc, char **argv)
{
    struct options o;
    struct merge_campaign c;
    struct pt_err err = {""};
    int rc = parse_options(argc, argv, &o);

    if (rc >= 0)
        return rc;
    rc = 1;
    if (merge_campaign_load(&c, o.dirs, o.ndirs, &o.merge, &err) < 0) {
        print_warnings(&c);
        fprintf(stderr, "ptmerge: %s\n", err.text);
    } else {
        print_warnings(&c);
        if (write_store(&c, o.output, &err) < 0) {
            fprintf(stderr, "ptmerge: cannot write store '%s': %s\n", o.output, err.text);
        } else {
            (o.json ? print_json : print_text)(&c, o.output);
            rc = fflush(stdout) == 0 ? 0 : 1;
        }
    }
    merge_campaign_free(&c);
    return rc;
}
