#include "config.h"

#include <getopt.h>
#include <string.h>

#include "replay/options.h"

enum {
    OPT_ROOT = 256,
    OPT_MODE,
    OPT_JSON,
    OPT_OUTPUT,
    OPT_PREPARE_ONLY,
    OPT_NO_PREPARE,
    OPT_KEEP,
    OPT_FORCE,
    OPT_IGNORE_ERRORS,
    OPT_HELP,
    OPT_VERSION,
};

static const struct option table[] = {
    {"root", required_argument, NULL, OPT_ROOT},
    {"mode", required_argument, NULL, OPT_MODE},
    {"json", no_argument, NULL, OPT_JSON},
    {"output", required_argument, NULL, OPT_OUTPUT},
    {"prepare-only", no_argument, NULL, OPT_PREPARE_ONLY},
    {"no-prepare", no_argument, NULL, OPT_NO_PREPARE},
    {"keep", no_argument, NULL, OPT_KEEP},
    {"force", no_argument, NULL, OPT_FORCE},
    {"ignore-errors", no_argument, NULL, OPT_IGNORE_ERRORS},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

const char *const mode_names[NMODES] = {
    [MODE_CAUSAL] = "causal",
    [MODE_THINK] = "think",
    [MODE_TIMED] = "timed",
    [MODE_AFAP] = "afap",
};

void options_help(FILE *out)
{
    fputs("Usage: ptreplay --root DIR [OPTION]... STORE.h5\n"
          "Replay the I/O of a traced application; run it with srun or mpirun.\n"
          "\n"
          "      --root DIR       keep every file of the trace under DIR\n"
          "      --mode MODE      causal (default), think, timed or afap\n"
          "      --json           print the result as JSON\n"
          "      --output FILE    write the result to FILE\n"
          "      --prepare-only   make the files that the trace needs, replay nothing\n"
          "      --no-prepare     take the files as they are; implies --keep\n"
          "      --keep           leave the files there after the replay\n"
          "      --force          use a DIR that holds files of others\n"
          "      --ignore-errors  go on with calls that cannot be replayed, and exit 0\n"
          "      --help           print this and exit\n"
          "      --version        print the version and exit\n",
          out);
}

static int parse_mode(enum replay_mode *mode, const char *name, struct pt_err *err)
{
    for (int i = 0; i < NMODES; i++) {
        if (!strcmp(name, mode_names[i])) {
            *mode = (enum replay_mode)i;
            return 0;
        }
    }
    return pt_err_set(err, "unknown mode '%s': causal, think, timed or afap", name);
}

static int parse_option(struct options *o, int opt, char **argv, struct pt_err *err)
{
    switch (opt) {
    case OPT_ROOT:
        o->root = optarg;
        return 0;
    case OPT_MODE:
        return parse_mode(&o->mode, optarg, err);
    case OPT_JSON:
        o->json = true;
        return 0;
    case OPT_OUTPUT:
        o->output = optarg;
        return 0;
    case OPT_PREPARE_ONLY:
        o->replay = false;
        o->keep = true;
        return 0;
    case OPT_NO_PREPARE:
        o->prepare = false;
        o->keep = true;
        return 0;
    case OPT_KEEP:
        o->keep = true;
        return 0;
    case OPT_FORCE:
        o->force = true;
        return 0;
    case OPT_IGNORE_ERRORS:
        o->ignore_errors = true;
        return 0;
    case OPT_HELP:
        o->action = OPTIONS_HELP;
        return 0;
    case OPT_VERSION:
        o->action = OPTIONS_VERSION;
        return 0;
    case ':':
        return pt_err_set(err, "option '%s' needs a value (see --help)", argv[optind - 1]);
    default:
        return pt_err_set(err, "unknown option '%s' (see --help)", argv[optind - 1]);
    }
}

int options_parse(struct options *o, int argc, char **argv, struct pt_err *err)
{
    int opt;

    *o = (struct options){.prepare = true, .replay = true};
    opterr = 0;
    optind = 0;
    while ((opt = getopt_long(argc, argv, ":", table, NULL)) != -1)
        if (parse_option(o, opt, argv, err) < 0)
            return -1;
    if (o->action != OPTIONS_RUN)
        return 0;
    if (!o->prepare && !o->replay)
        return pt_err_set(err, "--prepare-only and --no-prepare exclude each other");
    if (!o->root)
        return pt_err_set(err, "no --root DIR given (see --help)");
    if (argc - optind != 1)
        return pt_err_set(err, argc == optind ? "no store given (see --help)"
                                              : "more than one store given (see --help)");
    o->store = argv[optind];
    return 0;
}
