#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "campaign/command.h"
#include "campaign/jobs.h"
#include "campaign/plan.h"
#include "campaign/script.h"
#include "campaign/slurm.h"
#include "campaign/spawn.h"
#include "common/spec.h"

#define SCRIPT_MAX ((size_t)16 << 20)
#define NAME_LEN   100 /* of the job's name within that of the directory */

static const char help[] =
    "Usage: ptcampaign submit [OPTIONS] JOB.sh [ARGS]\n\n"
    "JOB.sh is an ordinary batch script; its #SBATCH lines are honoured and its first srun\n"
    "is traced.  It runs once as it is and once for each node, with that node held.\n\n"
    "  -d, --dir=DIR          the campaign's directory (default campaign.JOBNAME.N)\n"
    "      --period=P         hold every P-th I/O of a node (default the site's)\n"
    "      --nodes=all|LIST   nodes to hold, such as 0,2,5 (default all that do I/O)\n"
    "      --max-parallel=M   throttled runs at a time (default 1)\n"
    "      --spec=ITEMS       further items of the SPEC, see paratrace(7)\n"
    "  -S, --sbatch=OPTION    one word for sbatch's command line; may be repeated\n"
    "      --replay=ROOT      at the end replay the store below ROOT\n"
    "      --help\n";

struct request {
    const char *dir;  /* NULL: make up a name */
    const char *path; /* of the script */
    char *text;
    struct script script;
    struct campaign *c;
};

/* ---- the command line -------------------------------------------------------- */

static int set_option(struct request *r, int option, const char *value, struct pt_err *err)
{
    struct campaign *c = r->c;
    uint64_t period;
    struct pt_err why;

    switch (option) {
    case 'd':
        r->dir = value;
        return *value ? 0 : pt_err_set(err, "wrong directory '': must have a name");
    case 'S':
        list_add(&c->sbatch, value);
        return 0;
    case 'p':
        if (pt_spec_period(value, &period, &why))
            return pt_err_set(err, "wrong period '%s': %s", value, why.text);
        c->period = (long)period;
        return 0;
    case 'm':
        if (parse_number(value, 1, 10000, &c->max_parallel))
            return pt_err_set(err, "wrong --max-parallel '%s': must be from 1 to 10000", value);
        return 0;
    case 'n':
        if (plan_check_nodes(value, &why))
            return pt_err_set(err, "wrong --nodes '%s': %s", value, why.text);
        free(c->nodes);
        c->nodes = xstrdup(value);
        return 0;
    case 's':
        if (plan_check_spec(value, &why))
            return pt_err_set(err, "wrong --spec '%s': %s", value, why.text);
        free(c->spec);
        c->spec = xstrdup(value);
        return 0;
    case 'r':
        free(c->replay);
        c->replay = xstrdup(value);
        return *value ? 0 : pt_err_set(err, "wrong --replay '': must name a directory");
    default:
        return -1;
    }
}

/* -1: go on; else the exit status. */
static int parse_args(struct request *r, int argc, char **argv)
{
    static const struct option options[] = {
        {"dir", required_argument, NULL, 'd'},
        {"period", required_argument, NULL, 'p'},
        {"spec", required_argument, NULL, 's'},
        {"nodes", required_argument, NULL, 'n'},
        {"max-parallel", required_argument, NULL, 'm'},
        {"sbatch", required_argument, NULL, 'S'},
        {"replay", required_argument, NULL, 'r'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct pt_err err;
    int option;

    opterr = 0;
    optind = 1;
    while ((option = getopt_long(argc, argv, "+:d:S:h", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return EXIT_DONE;
        }
        if (option == ':')
            return usage_error(argv[0], "missing argument of '%s'", argv[optind - 1]);
        if (option == '?')
            return usage_error(argv[0], "unknown option '%s'", argv[optind - 1]);
        if (set_option(r, option, optarg, &err))
            return usage_error(argv[0], "%s", err.text);
    }
    if (optind == argc)
        return usage_error(argv[0], "submit: the batch script is missing");
    r->path = argv[optind];
    for (int i = optind + 1; i < argc; i++)
        list_add(&r->c->args, argv[i]);
    return -1;
}

/* ---- what is needed ------------------------------------------------------------ */

static int read_script(struct request *r, struct pt_err *err)
{
    struct pt_err why;
    size_t len;

    r->text = file_read(r->path, SCRIPT_MAX, &len, &why);
    if (!r->text)
        return pt_err_set(err, "%s", why.text);
    if (strlen(r->text) != len)
        return pt_err_set(err, "cannot use script '%s': it is not text", r->path);
    if (script_read(&r->script, r->text, &r->c->sbatch, &why))
        return pt_err_set(err, "cannot use script '%s': %s", r->path, why.text);
    return 0;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static int find_programs(struct campaign *c, struct pt_err *err)
{
    if (slurm_check(err))
        return -1;
    c->ptmerge = spawn_find("ptmerge", err);
    if (!c->ptmerge)
        return -1;
    if (!c->replay)
        return 0;
    c->ptreplay = spawn_find("ptreplay", err);
    return c->ptreplay ? 0 : -1;
}

static int prepare(struct request *r, struct pt_err *err)
{
    struct campaign *c = r->c;

    if (read_script(r, err) || find_programs(c, err))
        return -1;
    c->script = realpath(r->path, NULL);
    c->cwd = getcwd(NULL, 0);
    if (!c->script || !c->cwd)
        return pt_err_errno(err, "cannot find out the working directory");
    if (c->replay && *c->replay != '/') {
        char *absolute = xasprintf("%s/%s", c->cwd, c->replay);
        free(c->replay);
        c->replay = absolute;
    }
    c->name = xstrdup(r->script.name && *r->script.name ? r->script.name : base_name(r->path));
    c->created = time(NULL);
    if (!c->nodes)
        c->nodes = xstrdup("all");
    slurm_own_env(&c->env);
    return 0;
}

/* ---- the directory ------------------------------------------------------------- */

/* Slurm's file name patterns cannot express a backslash, and its lines no newline. */
static bool usable(const char *path)
{
    for (; *path; path++)
        if (*path == '\\' || (unsigned char)*path < ' ' || *path == 0x7f)
            return false;
    return true;
}

static int refuse_existing(const char *dir, struct pt_err *err)
{
    char *file = xasprintf("%s/%s", dir, CAMPAIGN_FILE);
    int is_campaign = access(file, F_OK) == 0;

    free(file);
    if (is_campaign)
        return pt_err_set(err,
                          "cannot make campaign '%s': it is one already ('ptcampaign resume' "
                          "goes on with it)",
                          dir);
    return pt_err_set(err, "cannot make campaign '%s': it exists and is no campaign", dir);
}

/* campaign.JOBNAME.N with the first N that is free. */
static char *make_numbered(const char *job, struct pt_err *err)
{
    char *name = xasprintf("%.*s", NAME_LEN, job);

    for (char *p = name; *p; p++)
        if (*p == '/' || !usable((char[]){*p, 0}))
            *p = '_';
    for (int i = 1; i < INT_MAX; i++) {
        char *dir = xasprintf("campaign.%s.%d", name, i);
        if (mkdir(dir, 0777) == 0) {
            free(name);
            return dir;
        }
        if (errno != EEXIST) {
            pt_err_errno(err, "cannot make campaign '%s'", dir);
            free(dir);
            break;
        }
        free(dir);
    }
    free(name);
    return NULL;
}

static int make_dir(struct request *r, struct pt_err *err)
{
    char *dir = NULL;

    if (!r->dir)
        dir = make_numbered(r->c->name, err);
    else if (mkdir(r->dir, 0777) == 0)
        dir = xstrdup(r->dir);
    else if (errno == EEXIST)
        return refuse_existing(r->dir, err);
    else
        return pt_err_errno(err, "cannot make campaign '%s'", r->dir);
    if (!dir)
        return -1;
    r->c->dir = realpath(dir, NULL);
    int rc = r->c->dir ? 0 : pt_err_errno(err, "cannot make campaign '%s'", dir);
    if (!rc && !usable(r->c->dir)) {
        rc = pt_err_set(err,
                        "cannot make campaign '%s': Slurm takes no backslash or control "
                        "character in names",
                        r->c->dir);
        rmdir(r->c->dir);
    }
    free(dir);
    return rc;
}

static int fill_dir(struct request *r, struct pt_err *err)
{
    static const char *const dirs[] = {"runs", "log"};
    struct campaign *c = r->c;
    int rc = 0;

    for (size_t i = 0; i < 2 && !rc; i++) {
        char *path = campaign_path(c, "%s", dirs[i]);
        if (mkdir(path, 0777))
            rc = pt_err_errno(err, "cannot make directory '%s'", path);
        free(path);
    }
    char *copy = campaign_path(c, "job.sh");
    if (!rc)
        rc = file_write(copy, r->text, strlen(r->text), 0755, err);
    free(copy);
    if (!rc)
        rc = jobs_write_scripts(c, &r->script, err);
    if (!rc) { /* is the SPEC one, with this directory in it? */
        char *spec = plan_spec(c, 0, err);
        rc = spec ? campaign_save(c, err) : -1;
        free(spec);
    }
    return rc;
}

/* Nothing was submitted, so leave nothing behind. */
static void remove_dir(const struct campaign *c)
{
    static const char *const names[] = {
        "runs",         "log",           "job.sh",      "run.sbatch", "plan.sbatch",
        "merge.sbatch", "replay.sbatch", CAMPAIGN_FILE, ".lock",      "."};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char *path = campaign_path(c, "%s", names[i]);
        if (strcmp(names[i], ".") == 0)
            path[strlen(path) - 2] = '\0';
        remove(path);
        free(path);
    }
}

/* ---- submitting ------------------------------------------------------------------ */

static int submit(struct request *r, struct pt_err *err)
{
    struct campaign *c = r->c;
    int lock = campaign_lock(c->dir, err), rc = lock < 0 ? -1 : fill_dir(r, err);

    if (!rc)
        rc = jobs_submit_baseline(c, NULL, err);
    if (!rc)
        rc = campaign_save(c, err);
    if (rc && c->runs[0].job.id > 0) {
        struct list ids = {0};
        list_take(&ids, xasprintf("%ld", c->runs[0].job.id));
        if (c->stage[STAGE_PLAN].id > 0)
            list_take(&ids, xasprintf("%ld", c->stage[STAGE_PLAN].id));
        slurm_cancel(&ids, NULL);
        list_clear(&ids);
    }
    if (rc)
        remove_dir(c);
    if (lock >= 0)
        close(lock);
    return rc;
}

int cmd_submit(int argc, char **argv)
{
    struct request r = {.c = campaign_create()};
    struct pt_err err;
    int status = parse_args(&r, argc, argv);

    if (status < 0) {
        status = EXIT_DONE;
        if (prepare(&r, &err) || make_dir(&r, &err) || submit(&r, &err))
            status = complain("%s", err.text);
        else
            printf("campaign '%s': baseline is job %ld, plan is job %ld\n", r.c->dir,
                   r.c->runs[0].job.id, r.c->stage[STAGE_PLAN].id);
    }
    script_clear(&r.script);
    free(r.text);
    campaign_destroy(r.c);
    return status;
}
