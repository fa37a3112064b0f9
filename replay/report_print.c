#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "replay/histogram.h"
#include "replay/report.h"

static const char *const time_names[NTIMES] = {
    [SUM_IO] = "io",
    [SUM_COMPUTE] = "compute",
    [SUM_IDLE] = "idle",
    [SUM_WAIT] = "wait",
};

static const char *const count_names[NSUMS] = {
    [SUM_BYTES_READ] = "bytes_read",
    [SUM_BYTES_WRITTEN] = "bytes_written",
    [SUM_MISMATCHES] = "mismatches",
    [SUM_ERRORS] = "errors",
};

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static const uint64_t *histogram_of(const struct report *r, size_t op)
{
    return &r->buckets[op * HISTOGRAM_BUCKETS];
}

void report_print_table(const struct report *r, FILE *out)
{
    fprintf(out, "%-14s %s\n%-14s %s\n", "store", r->store_path, "mode", mode_names[r->mode]);
    fprintf(out, "%-14s %zu\n%-14s %d\n", "nodes", pt_store_nnodes(r->store), "ranks", r->ranks);
    fprintf(out, "%-14s %" PRIu64 "\n", "events", r->sums[SUM_EVENTS]);
    fprintf(out, "%-14s %.6f s\n\n", "elapsed", seconds(r->elapsed));
    fprintf(out, "%-14s %14s %14s\n", "seconds", "all ranks", "longest rank");
    for (int i = 0; i < NTIMES; i++)
        fprintf(out, "%-14s %14.6f %14.6f\n", time_names[i], seconds(r->sums[i]),
                seconds(r->max[i]));
    fputc('\n', out);
    for (int i = NTIMES; i < NSUMS; i++)
        if (count_names[i])
            fprintf(out, "%-14s %14" PRIu64 "\n", count_names[i], r->sums[i]);
    fprintf(out, "\n%-14s %14s %14s %14s\n", "operation", "count", "p50 us", "p99 us");
    for (size_t op = 0; op < pt_store_ncalls(r->store); op++) {
        const uint64_t *h = histogram_of(r, op);
        uint64_t n = histogram_count(h);

        if (n > 0)
            fprintf(out, "%-14s %14" PRIu64 " %14.1f %14.1f\n", pt_store_call(r->store, op)->name,
                    n, histogram_quantile(h, 0.5) / 1e3, histogram_quantile(h, 0.99) / 1e3);
    }
}

static void print_operations(const struct report *r, FILE *out)
{
    const char *comma = "";

    fputs("  \"operations\": {", out);
    for (size_t op = 0; op < pt_store_ncalls(r->store); op++) {
        const uint64_t *h = histogram_of(r, op);
        uint64_t n = histogram_count(h);

        if (n == 0)
            continue;
        fprintf(out, "%s\n    ", comma);
        pt_json_string(out, pt_store_call(r->store, op)->name);
        fprintf(out, ": {\"count\": %" PRIu64 ", \"p50_us\": %.3f, \"p99_us\": %.3f}", n,
                histogram_quantile(h, 0.5) / 1e3, histogram_quantile(h, 0.99) / 1e3);
        comma = ",";
    }
    fputs(*comma ? "\n  }\n" : "}\n", out);
}

void report_print_json(const struct report *r, FILE *out)
{
    fputs("{\n  \"store\": ", out);
    pt_json_string(out, r->store_path);
    fprintf(out, ",\n  \"mode\": \"%s\",\n", mode_names[r->mode]);
    fprintf(out, "  \"nodes\": %zu,\n  \"ranks\": %d,\n", pt_store_nnodes(r->store), r->ranks);
    fprintf(out, "  \"events\": %" PRIu64 ",\n", r->sums[SUM_EVENTS]);
    fprintf(out, "  \"elapsed_s\": %.9f,\n", seconds(r->elapsed));
    for (int i = 0; i < NTIMES; i++)
        fprintf(out, "  \"%s_s\": %.9f,\n", time_names[i], seconds(r->sums[i]));
    for (int i = NTIMES; i < NSUMS; i++)
        if (count_names[i])
            fprintf(out, "  \"%s\": %" PRIu64 ",\n", count_names[i], r->sums[i]);
    print_operations(r, out);
    fputs("}\n", out);
}

/* The whole result in memory; NULL if there is none. */
static char *format(const struct report *r, bool json, size_t *size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, size);

    if (!out)
        return NULL;
    (json ? report_print_json : report_print_table)(r, out);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static int write_stream(FILE *out, const char *text, size_t size)
{
    return fwrite(text, 1, size, out) == size && fflush(out) == 0 ? 0 : -1;
}

static int write_and_close(FILE *out, const char *text, size_t size)
{
    int rc = write_stream(out, text, size) == 0 && fsync(fileno(out)) == 0 ? 0 : -1;

    return fclose(out) == 0 ? rc : -1;
}

/* Under a temporary name first. */
static int write_file(const char *path, const char *text, size_t size)
{
    char temporary[PATH_MAX];
    FILE *out;
    int saved;

    if (snprintf(temporary, sizeof(temporary), "%s.%d.tmp", path, (int)getpid()) >=
        (int)sizeof(temporary)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    out = fopen(temporary, "wxe");
    if (!out)
        return -1;
    if (write_and_close(out, text, size) == 0 && rename(temporary, path) == 0)
        return 0;
    saved = errno;
    unlink(temporary);
    errno = saved;
    return -1;
}

int report_write(const struct report *r, const struct options *o, struct pt_err *err)
{
    sigset_t ends, before;
    size_t size;
    char *text = format(r, o->json, &size);
    int rc;

    if (!text)
        return pt_err_errno(err, "cannot write the result");
    /* Nobody ends us between the first byte and the last. */
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, &before);
    rc = o->output ? write_file(o->output, text, size) : write_stream(stdout, text, size);
    if (rc < 0)
        pt_err_errno(err, "cannot write result '%s'", o->output ? o->output : "stdout");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    free(text);
    return rc;
}
