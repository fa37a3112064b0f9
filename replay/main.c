/*
 * ptreplay: runs the I/O of a traced application again.
 */
#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "replay/session.h"

enum { EXIT_USAGE = 2 };

/* Before MPI runs only the launcher's variables tell which of the ranks this is. */
static bool is_first_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                        "SLURM_PROCID"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (getenv(names[i]))
            return !strcmp(getenv(names[i]), "0");
    return true;
}

/* The files stay as they are; no result is written. */
static void on_end_signal(int sig)
{
    static const char text[] = "ptreplay: interrupted: no result, the files stay in the root\n";

    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
        _exit(1);
    raise(sig);
}

static void catch_end_signals(void)
{
    struct sigaction action = {.sa_handler = on_end_signal, .sa_flags = SA_RESETHAND};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static int usage_error(const struct pt_err *err)
{
    if (is_first_rank())
        fprintf(stderr, "ptreplay: %s\n", err->text);
    return EXIT_USAGE;
}

static int print_about(const struct options *o)
{
    if (!is_first_rank())
        return 0;
    if (o->action == OPTIONS_HELP)
        options_help(stdout);
    else
        printf("ptreplay (paratrace) %s\n", PACKAGE_VERSION);
    return fflush(stdout) == 0 ? 0 : 1;
}

static int replay(struct session *s, struct pt_err *err)
{
    int rc = 0;

    if (session_load(s, err) < 0 || session_check(s, err) < 0 || session_prepare(s, err) < 0 ||
        (s->options->replay && session_replay(s, err) < 0))
        rc = -1;
    session_end(s);
    return rc;
}

int main(int argc, char **argv)
{
    struct options options;
    struct session session = {.options = &options};
    struct pt_err err = {""};
    int rc;

    if (options_parse(&options, argc, argv, &err) < 0)
        return usage_error(&err);
    if (options.action != OPTIONS_RUN)
        return print_about(&options);
    team_start(&session.team, &argc, &argv);
    if (session.team.rank == 0)
        catch_end_signals();
    rc = replay(&session, &err);
    if (rc < 0 && session.team.rank == 0)
        fprintf(stderr, "ptreplay: %s\n", err.text);
    team_end();
    /* One rank that fails is enough for the launcher. */
    return rc < 0 && session.team.rank == 0 ? 1 : 0;
}
