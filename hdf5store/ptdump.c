/*
 * ptdump: a store or a run file as text.
 */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/trace_codec.h"
#include "hdf5store/dump.h"

static const char usage[] =
    "Usage: ptdump [--node N] [--events A:B] [--paths] [--json] FILE\n"
    "Prints a store or a run file as text, in the style of strace.\n"
    "\n"
    "  -n, --node=N      only this node: RANK or RANK.PROCESS.THREAD\n"
    "  -e, --events=A:B  only its events A to B, from 0; A: and :B are fine, too\n"
    "  -y, --paths       print the file behind each descriptor\n"
    "      --json        print JSON\n"
    "  -h, --help        print this\n"
    "  -V, --version     print the version\n";

static int wrong_usage(const char *what, const char *object)
{
    fprintf(stderr, "ptdump: %s '%s'\nTry 'ptdump --help'.\n", what, object);
    return 2;
}

static int parse_number(const char **text, uint64_t *value)
{
    char *end;

    if (**text < '0' || **text > '9')
        return -1;
    errno = 0;
    *value = strtoull(*text, &end, 10);
    *text = end;
    return errno ? -1 : 0;
}

static int parse_events(const char *text, struct dump_options *o)
{
    if (*text != ':' && parse_number(&text, &o->first) < 0)
        return -1;
    if (*text == '\0') {
        o->last = o->first;
        return 0;
    }
    if (*text++ != ':')
        return -1;
    if (*text && parse_number(&text, &o->last) < 0)
        return -1;
    return *text || o->last < o->first ? -1 : 0;
}

static int parse_node(const char *text, struct dump_options *o)
{
    int32_t *parts[] = {&o->node.rank, &o->node.process, &o->node.thread};
    size_t n = 0;

    for (; n < 3; n++) {
        char *end;
        long value = strtol(text, &end, 10);
        if (end == text || value < INT32_MIN || value > INT32_MAX)
            return -1;
        *parts[n] = value;
        text = end;
        if (*text != '.')
            break;
        text++;
    }
    o->one_node = 1;
    return *text || n == 1 || n == 3 ? -1 : 0;
}

/* -1: go on, else the exit status. */
static int parse_options(int argc, char **argv, struct dump_options *o)
{
    static const struct option longs[] = {
        {"node", required_argument, NULL, 'n'},
        {"events", required_argument, NULL, 'e'},
        {"paths", no_argument, NULL, 'y'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    int c;

    *o = (struct dump_options){.last = UINT64_MAX};
    while ((c = getopt_long(argc, argv, "n:e:yhV", longs, NULL)) != -1) {
        switch (c) {
        case 'n':
            if (parse_node(optarg, o) < 0)
                return wrong_usage("not a node (RANK or RANK.PROCESS.THREAD)", optarg);
            break;
        case 'e':
            if (parse_events(optarg, o) < 0)
                return wrong_usage("not a range of events (A:B)", optarg);
            break;
        case 'y':
            o->paths = 1;
            break;
        case 'j':
            o->json = 1;
            break;
        case 'h':
            fputs(usage, stdout);
            return 0;
        case 'V':
            puts("ptdump " PACKAGE_VERSION);
            return 0;
        default:
            return wrong_usage("wrong option", argv[optind - 1]);
        }
    }
    if (argc - optind != 1)
        return wrong_usage("one FILE is needed, not", optind < argc ? argv[optind + 1] : "none");
    o->file = argv[optind];
    return -1;
}

enum kind { UNREADABLE = -1, UNKNOWN, STORE, RUN };

static enum kind recognise(const char *path, struct pt_err *err)
{
    static const char hdf5[8] = "\211HDF\r\n\032\n";
    char head[8] = "";
    FILE *in = fopen(path, "rb");
    size_t n;

    if (!in) {
        pt_err_errno(err, "cannot open '%s'", path);
        return UNREADABLE;
    }
    n = fread(head, 1, sizeof(head), in);
    if (ferror(in)) {
        pt_err_errno(err, "cannot read '%s'", path);
        fclose(in);
        return UNREADABLE;
    }
    fclose(in);
    if (n == sizeof(head) && !memcmp(head, hdf5, sizeof(head)))
        return STORE;
    if (n == sizeof(head) && !memcmp(head, PT_RUN_MAGIC, PT_RUN_MAGIC_LEN))
        return RUN;
    pt_err_set(err, "cannot dump '%s': neither a store nor a run file%s", path,
               n < sizeof(head) ? " (too short)" : "");
    return UNKNOWN;
}

static int dump(const struct dump_options *o, struct pt_err *err)
{
    switch (recognise(o->file, err)) {
    case STORE:
        return dump_store(o, stdout, err);
    case RUN:
        return dump_run(o, stdout, err);
    default:
        return -1;
    }
}

int main(int argc, char **argv)
{
    struct dump_options o;
    struct pt_err err = {""};
    int rc = parse_options(argc, argv, &o);

    if (rc >= 0)
        return rc;
    rc = dump(&o, &err);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (errno != EPIPE)
            fprintf(stderr, "ptdump: cannot write: %s\n", strerror(errno));
        return 1;
    }
    if (rc < 0)
        fprintf(stderr, "ptdump: %s\n", err.text);
    return rc < 0;
}
