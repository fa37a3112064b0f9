/*
 * ptcampaign: the runs that are needed for one store, as dependent jobs of Slurm.
 */
#include "config.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "campaign/command.h"

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help; /* NULL: called by the campaign's own jobs only */
} commands[] = {
    {"submit", cmd_submit, "submit [OPTIONS] JOB.sh [ARGS]   start a campaign"},
    {"status", cmd_status, "status DIR [--json]              how far it is"},
    {"watch", cmd_watch, "watch DIR [--timeout SECONDS]    wait for its end"},
    {"resume", cmd_resume, "resume DIR                       repeat what failed or is missing"},
    {"cancel", cmd_cancel, "cancel DIR                       end its jobs"},
    {"report", cmd_report, "report DIR [--json]              what came out"},
    {"job", cmd_job, NULL},
    {NULL, NULL, NULL},
};

static void complain_list(const char *fmt, va_list ap)
{
    fflush(stdout);
    fputs("ptcampaign: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
}

int complain(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    complain_list(fmt, ap);
    va_end(ap);
    return EXIT_FAILED;
}

int usage_error(const char *command, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    complain_list(fmt, ap);
    va_end(ap);
    fprintf(stderr, "Try 'ptcampaign %s%s--help'.\n", command, *command ? " " : "");
    return EXIT_USAGE;
}

const char *parse_dir_args(int argc, char **argv, const char *help, int *json, long *timeout,
                           int *status)
{
    enum { HELP = 256, JSON, TIMEOUT };
    static const struct option options[] = {
        {"help", no_argument, NULL, HELP},
        {"json", no_argument, NULL, JSON},
        {"timeout", required_argument, NULL, TIMEOUT},
        {NULL, 0, NULL, 0},
    };
    int option;

    opterr = 0;
    optind = 1;
    while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        if (option == HELP) {
            fputs(help, stdout);
            *status = EXIT_DONE;
            return NULL;
        }
        if (option == JSON && json) {
            *json = 1;
        } else if (option == TIMEOUT && timeout) {
            if (parse_number(optarg, 0, 100000000, timeout) == 0)
                continue;
            *status = usage_error(argv[0], "wrong time '%s': must be a number of seconds", optarg);
            return NULL;
        } else {
            *status = usage_error(argv[0], "%s '%s'",
                                  option == ':' ? "missing argument of" : "unknown option",
                                  argv[optind - 1]);
            return NULL;
        }
    }
    if (argc - optind == 1)
        return argv[optind];
    *status = argc == optind
                  ? usage_error(argv[0], "%s: the campaign's directory is missing", argv[0])
                  : usage_error(argv[0], "%s: too many arguments: '%s'", argv[0], argv[optind + 1]);
    return NULL;
}

static void usage(FILE *f)
{
    fputs("Usage: ptcampaign COMMAND ...\n\n"
          "Makes all runs that are needed for one store: a baseline, then one run for each\n"
          "node that does I/O, in which that node is held; then merges them.\n\n",
          f);
    for (const struct command *c = commands; c->name; c++)
        if (c->help)
            fprintf(f, "  %s\n", c->help);
    fputs("\n'ptcampaign COMMAND --help' tells more; --version prints the version.\n", f);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return usage_error("", "a command is missing");
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        usage(stdout);
        return EXIT_DONE;
    }
    if (!strcmp(argv[1], "--version")) {
        puts("ptcampaign (paratrace) " PACKAGE_VERSION);
        return EXIT_DONE;
    }
    for (const struct command *c = commands; c->name; c++)
        if (!strcmp(argv[1], c->name))
            return c->run(argc - 1, argv + 1);
    return usage_error("", "unknown command '%s'", argv[1]);
}
