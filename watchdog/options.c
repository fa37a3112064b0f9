#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "watchdog/watchdog.h"

static void usage(FILE *f)
{
    fputs("usage: ptwatchd [OPTIONS] [-- COMMAND [ARGUMENT...]]\n"
          "Collects the traces of one step on one host; the SPANK plugin starts it.\n"
          "With a COMMAND, runs it and traces it, without Slurm.\n\n"
          "  --spec=SPEC       what to trace, see paratrace(7)\n"
          "  --out=DIR         run directory\n"
          "  --preload=FILE    the tracer\n"
          "  --socket=NAME     abstract socket to listen on\n"
          "  --host=NAME       name of this host\n"
          "  --control=FD      descriptor that leads to the plugin\n"
          "  --hostid=N --nhosts=N --ntasks=N --job=N --step=N --array-job=N\n"
          "  --array-task=N --restart=N --user=NAME   about the step, for the record\n"
          "  --claim=KEY       names the step: others do not share its run directory\n"
          "  --script          the step is a batch script's: no shells, no empty run\n"
          "  --rather=DIR      the run directory's name if no other step has taken that\n"
          "  --ports=BEGIN-END --munge=yes|no|auto --munge-socket=PATH\n"
          "                    for the connection with the step's other hosts\n"
          "  --root=DIR        the user's own directory, made before that of the run\n"
          "  --anonymise, --anonymise-key=FILE\n"
          "                    write no names: with a key from the plugin, or from FILE\n"
          "  --max-size=SIZE, --max-time=TIME\n"
          "                    stop recording there\n"
          "  --help, --version\n",
          f);
}

static int whole_number(const char *option, const char *text)
{
    char *end;
    errno = 0;
    long v = strtol(text, &end, 10);
    if (errno || end == text || *end || v < 0 || v > INT32_MAX) {
        fprintf(stderr, "ptwatchd: --%s: '%s' is not a whole number\n", option, text);
        exit(2);
    }
    return (int)v;
}

static struct pt_ports ports(const char *text)
{
    struct pt_ports range;
    struct pt_err err;
    if (pt_hosts_ports(text, &range, &err)) {
        fprintf(stderr, "ptwatchd: --ports: %s\n", err.text);
        exit(2);
    }
    return range;
}

static enum pt_munge munge(const char *text)
{
    enum pt_munge mode;
    struct pt_err err;
    if (pt_hosts_munge(text, &mode, &err)) {
        fprintf(stderr, "ptwatchd: --munge: %s\n", err.text);
        exit(2);
    }
    return mode;
}

/* A size or time in the words of SPEC. */
static uint64_t quantity(const char *option, const char *text,
                         int (*read)(const char *text, uint64_t *value, struct pt_err *err))
{
    uint64_t value;
    struct pt_err err;
    if (read(text, &value, &err)) {
        fprintf(stderr, "ptwatchd: --%s: %s\n", option, err.text);
        exit(2);
    }
    return value;
}

/* What the plugin tells and the command line need not. */
static void fill_defaults(struct wd_options *o)
{
    static char host[256], socket[64];
    uint64_t nonce = 0;
    if (!o->host) {
        gethostname(host, sizeof(host) - 1);
        o->host = host;
    }
    if (!o->socket) {
        if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce))
            nonce = wd_now();
        snprintf(socket, sizeof(socket), "paratrace.%d.%016lx", getpid(), nonce);
        o->socket = socket;
    }
    if (!o->user) {
        const struct passwd *pw = getpwuid(geteuid());
        o->user = pw ? pw->pw_name : NULL;
    }
}

void wd_options_parse(int argc, char **argv, struct wd_options *o)
{
    enum {
        OPT_HELP = 256,
        OPT_VERSION,
        OPT_SPEC,
        OPT_OUT,
        OPT_PRELOAD,
        OPT_SOCKET,
        OPT_HOST,
        OPT_ROOT,
        OPT_ANONYMISE,
        OPT_ANONYMISE_KEY,
        OPT_MAX_SIZE,
        OPT_MAX_TIME,
        OPT_CONTROL,
        OPT_HOSTID,
        OPT_NHOSTS,
        OPT_NTASKS,
        OPT_JOB,
        OPT_STEP,
        OPT_ARRAY_JOB,
        OPT_ARRAY_TASK,
        OPT_RESTART,
        OPT_USER,
        OPT_PORTS,
        OPT_MUNGE,
        OPT_MUNGE_SOCKET,
        OPT_CLAIM,
        OPT_SCRIPT,
        OPT_RATHER
    };
    static const struct option options[] = {
        {"help", no_argument, NULL, OPT_HELP},
        {"version", no_argument, NULL, OPT_VERSION},
        {"spec", required_argument, NULL, OPT_SPEC},
        {"out", required_argument, NULL, OPT_OUT},
        {"preload", required_argument, NULL, OPT_PRELOAD},
        {"socket", required_argument, NULL, OPT_SOCKET},
        {"host", required_argument, NULL, OPT_HOST},
        {"root", required_argument, NULL, OPT_ROOT},
        {"anonymise", no_argument, NULL, OPT_ANONYMISE},
        {"anonymise-key", required_argument, NULL, OPT_ANONYMISE_KEY},
        {"max-size", required_argument, NULL, OPT_MAX_SIZE},
        {"max-time", required_argument, NULL, OPT_MAX_TIME},
        {"control", required_argument, NULL, OPT_CONTROL},
        {"hostid", required_argument, NULL, OPT_HOSTID},
        {"nhosts", required_argument, NULL, OPT_NHOSTS},
        {"ntasks", required_argument, NULL, OPT_NTASKS},
        {"job", required_argument, NULL, OPT_JOB},
        {"step", required_argument, NULL, OPT_STEP},
        {"array-job", required_argument, NULL, OPT_ARRAY_JOB},
        {"array-task", required_argument, NULL, OPT_ARRAY_TASK},
        {"restart", required_argument, NULL, OPT_RESTART},
        {"user", required_argument, NULL, OPT_USER},
        {"ports", required_argument, NULL, OPT_PORTS},
        {"munge", required_argument, NULL, OPT_MUNGE},
        {"munge-socket", required_argument, NULL, OPT_MUNGE_SOCKET},
        {"claim", required_argument, NULL, OPT_CLAIM},
        {"script", no_argument, NULL, OPT_SCRIPT},
        {"rather", required_argument, NULL, OPT_RATHER},
        {0},
    };
    int c, index;
    *o = (struct wd_options){.control = -1,
                             .nhosts = 1,
                             .spec_text = "",
                             .out = "ptrace.run",
                             .ports = ports(PT_HOSTS_PORTS),
                             .munge = PT_MUNGE_AUTO,
                             .preload = PKGLIBDIR "/libparatrace.so"};
    while ((c = getopt_long(argc, argv, "+", options, &index)) != -1) {
        switch (c) {
        case OPT_HELP:
            usage(stdout);
            exit(0);
        case OPT_VERSION:
            puts("ptwatchd " PACKAGE_VERSION);
            exit(0);
        case OPT_SPEC:
            o->spec_text = optarg;
            break;
        case OPT_OUT:
            o->out = optarg;
            break;
        case OPT_PRELOAD:
            o->preload = optarg;
            break;
        case OPT_SOCKET:
            o->socket = optarg;
            break;
        case OPT_HOST:
            o->host = optarg;
            break;
        case OPT_ROOT:
            o->root = optarg;
            break;
        case OPT_ANONYMISE:
            o->anonymise = 1;
            break;
        case OPT_ANONYMISE_KEY:
            o->key_file = optarg;
            break;
        case OPT_MAX_SIZE:
            o->max_size = quantity(options[index].name, optarg, pt_spec_size);
            break;
        case OPT_MAX_TIME:
            o->max_time = quantity(options[index].name, optarg, pt_spec_time);
            break;
        case OPT_JOB:
            o->job = optarg;
            break;
        case OPT_STEP:
            o->step = optarg;
            break;
        case OPT_ARRAY_JOB:
            o->array_job = optarg;
            break;
        case OPT_ARRAY_TASK:
            o->array_task = optarg;
            break;
        case OPT_USER:
            o->user = optarg;
            break;
        case OPT_PORTS:
            o->ports = ports(optarg);
            break;
        case OPT_MUNGE:
            o->munge = munge(optarg);
            break;
        case OPT_MUNGE_SOCKET:
            o->munge_socket = optarg;
            break;
        case OPT_CLAIM:
            o->claim = optarg;
            break;
        case OPT_SCRIPT:
            o->script = 1;
            break;
        case OPT_RATHER:
            o->rather = optarg;
            break;
        case OPT_CONTROL:
            o->control = whole_number(options[index].name, optarg);
            break;
        case OPT_HOSTID:
            o->hostid = whole_number(options[index].name, optarg);
            break;
        case OPT_NHOSTS:
            o->nhosts = whole_number(options[index].name, optarg);
            break;
        case OPT_NTASKS:
            o->ntasks = whole_number(options[index].name, optarg);
            break;
        case OPT_RESTART:
            o->restart = whole_number(options[index].name, optarg);
            break;
        default:
            usage(stderr);
            exit(2);
        }
    }
    if (optind < argc)
        o->command = argv + optind;
    if ((!o->command && (!o->socket || o->control < 0)) || (o->anonymise && o->control < 0)) {
        usage(stderr);
        exit(2);
    }
    fill_defaults(o);
}
