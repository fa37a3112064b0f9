/* The options of the example programs: a table around getopt_long(); see common.h. */
#define _GNU_SOURCE
#include "common.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPTS = 24, FIRST_LONG = 256 };

void ex_usage(const char *fmt, ...)
{
    char msg[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    /* All ranks get the same command line: one of them saying what is wrong is enough. */
    if (!ex_quiet)
        fprintf(stderr, "%s: %s (see --help)\n", ex_name, msg);
    ex_leave(2);
    abort(); /* not reached: ex_leave() does not return */
}

void ex_check_direct(bool direct, const char *name, size_t size)
{
    if (direct && size % EX_ALIGN != 0)
        ex_usage("--direct needs a --%s that is a multiple of %d", name, EX_ALIGN);
}

int ex_parse_size(const char *s, size_t *size)
{
    static const char units[] = "KMGT";
    char *end;
    const char *u;
    unsigned long long n;
    int shift = 0;

    if (!isdigit((unsigned char)*s))
        return -1;
    errno = 0;
    n = strtoull(s, &end, 10);
    if (*end && (u = strchr(units, toupper((unsigned char)*end)))) {
        shift = 10 * (int)(u - units + 1);
        end++;
    }
    if (errno || *end || n > ((unsigned long long)SSIZE_MAX >> shift))
        return -1;
    *size = (size_t)(n << shift);
    return 0;
}

int ex_parse_time(const char *s, double *seconds)
{
    static const struct {
        const char *name;
        double factor;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
    char *end;
    double n;

    if (!isdigit((unsigned char)*s) && *s != '.')
        return -1;
    n = strtod(s, &end);
    if (end == s || !isfinite(n))
        return -1;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(end, units[i].name) == 0) {
            *seconds = n * units[i].factor;
            return 0;
        }
    }
    return -1;
}

static int parse_count(const char *s, unsigned *count)
{
    char *end;
    unsigned long n;

    if (!isdigit((unsigned char)*s))
        return -1;
    errno = 0;
    n = strtoul(s, &end, 10);
    if (errno || *end || n > INT_MAX)
        return -1;
    *count = (unsigned)n;
    return 0;
}

/* Print a row of the help: the option, what it takes, what it means, its default. */
static void print_opt(const struct ex_opt *o)
{
    static const char *const takes[] = {"", " N", " SIZE", " TIME", " DIR"};
    int n = printf("  --%s%s", o->name, takes[o->kind]);

    printf("%*s%s", n < 24 ? 24 - n : 1, "", o->help);
    switch (o->kind) {
    case EX_FLAG:
        break;
    case EX_COUNT:
        printf(" (%u)", *(const unsigned *)o->value);
        break;
    case EX_SIZE: {
        size_t size = *(const size_t *)o->value;
        if (size % 1024 == 0)
            printf(" (%zuK)", size / 1024);
        else
            printf(" (%zu)", size);
        break;
    }
    case EX_TIME:
        printf(" (%gs)", *(const double *)o->value);
        break;
    case EX_TEXT:
        printf(" (%s)", *(const char *const *)o->value);
        break;
    }
    putchar('\n');
}

static void help(const char *about, const struct ex_opt *opts)
{
    if (!ex_quiet) {
        printf("usage: %s [OPTION]...\n%s\n\n", ex_name, about);
        for (const struct ex_opt *o = opts; o->name; o++)
            print_opt(o);
        printf("  %-22s%s\n", "--help", "show this and end");
        fflush(stdout);
    }
    ex_leave(0);
}

static void set(const struct ex_opt *o, const char *arg)
{
    static const char *const nouns[] = {"", "number", "size", "time", ""};
    int rc = 0;

    switch (o->kind) {
    case EX_FLAG:
        *(bool *)o->value = true;
        break;
    case EX_COUNT:
        rc = parse_count(arg, o->value);
        break;
    case EX_SIZE:
        rc = ex_parse_size(arg, o->value);
        if (rc == 0 && *(size_t *)o->value == 0)
            rc = -1; /* accesses of no bytes would be no I/O at all */
        break;
    case EX_TIME:
        rc = ex_parse_time(arg, o->value);
        break;
    case EX_TEXT:
        *(const char **)o->value = arg;
        break;
    }
    if (rc < 0)
        ex_usage("'%s' is not a %s for --%s", arg, nouns[o->kind], o->name);
}

void ex_parse(int argc, char **argv, const char *about, const struct ex_opt *opts)
{
    struct option longs[MAX_OPTS + 2] = {{0}};
    int n = 0, c;

    for (; opts[n].name && n < MAX_OPTS; n++)
        longs[n] =
            (struct option){opts[n].name, opts[n].kind == EX_FLAG ? no_argument : required_argument,
                            NULL, FIRST_LONG + n};
    longs[n] = (struct option){"help", no_argument, NULL, 'h'};
    opterr = 0; /* only one rank speaks, so the messages are ours */
    while ((c = getopt_long(argc, argv, ":h", longs, NULL)) != -1) {
        if (c >= FIRST_LONG)
            set(&opts[c - FIRST_LONG], optarg);
        else if (c == 'h')
            help(about, opts);
        else if (c == ':')
            ex_usage("option '%s' needs a value", argv[optind - 1]);
        else if (optopt >= FIRST_LONG)
            ex_usage("option '--%s' takes no value", opts[optopt - FIRST_LONG].name);
        else if (optopt)
            ex_usage("unknown option '-%c'", optopt);
        else
            ex_usage("unknown option '%s'", argv[optind - 1]);
    }
    if (optind < argc)
        ex_usage("unexpected argument '%s'", argv[optind]);
}
