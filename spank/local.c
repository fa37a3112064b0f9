/*
 * srun, sbatch and salloc: refuse a wrong SPEC, where it costs nothing.
 */
#include "config.h"

#include "spank/contexts.h"
#include "spank/log.h"
#include "spank/options.h"

static struct pt_options options;

int pt_local_init(int argc, char **argv)
{
    struct pt_err err;

    pt_options_init(&options);
    for (int i = 0; i < argc; i++) {
        if (pt_options_argument(&options, argv[i], &err) < 0)
            pt_log(PT_LOG_ERROR, "%s", err.text);
    }
    return 0;
}

int pt_local_option(const char *spec)
{
    struct pt_err err;

    /* A submit host may have another file than the compute hosts, or none. */
    if (!options.conf && pt_options_load(&options, &err) < 0)
        pt_log(PT_LOG_ERROR, "%s", err.text);
    if (pt_options_request(&options, spec, &err) < 0) {
        pt_log(PT_LOG_ERROR, "--ptrace: %s", err.text);
        return -1;
    }
    return 0;
}

int pt_local_exit(void)
{
    pt_options_clear(&options);
    return 0;
}
