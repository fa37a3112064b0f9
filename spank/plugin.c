/*
 * The entry points that Slurm calls.  They only switch on the context.
 */
#include "config.h"

/* Everything else in the plugin is hidden. */
#pragma GCC visibility push(default)
#include <slurm/spank.h>
SPANK_PLUGIN(paratrace, 1)
#pragma GCC visibility pop

#include "common/spec.h"
#include "spank/contexts.h"

/* Slurm may call this more than once with the same value. */
static int on_option(int val, const char *arg, int remote)
{
    if (!arg)
        arg = "";
    return remote ? pt_remote_option(arg) : pt_local_option(arg);
}

static struct spank_option option = {
    .name = "ptrace",
    .arginfo = "SPEC",
    .usage = "trace the file I/O of the job's steps; SPEC is one or more of " PT_SPEC_ITEMS
             ", separated by commas; see paratrace(7)",
    .has_arg = 1,
    .cb = on_option,
};

int slurm_spank_init(spank_t sp, int argc, char **argv)
{
    switch (spank_context()) {
    case S_CTX_LOCAL:
    case S_CTX_ALLOCATOR:
        pt_local_init(argc, argv);
        break;
    case S_CTX_REMOTE:
        pt_remote_init(argc, argv);
        break;
    case S_CTX_JOB_SCRIPT:
        break;
    default:
        return 0;
    }
    if (spank_option_register(sp, &option) != ESPANK_SUCCESS)
        slurm_error("paratrace: cannot register the option --ptrace");
    return 0;
}

int slurm_spank_init_post_opt(spank_t sp, int argc, char **argv)
{
    return spank_context() == S_CTX_REMOTE ? pt_remote_init_post_opt(sp) : 0;
}

int slurm_spank_local_user_init(spank_t sp, int argc, char **argv)
{
    return pt_local_user_init(sp);
}

int slurm_spank_user_init(spank_t sp, int argc, char **argv)
{
    return pt_remote_user_init(sp);
}

int slurm_spank_task_init(spank_t sp, int argc, char **argv)
{
    return pt_remote_task_init(sp);
}

int slurm_spank_task_exit(spank_t sp, int argc, char **argv)
{
    return pt_remote_task_exit(sp);
}

int slurm_spank_exit(spank_t sp, int argc, char **argv)
{
    switch (spank_context()) {
    case S_CTX_LOCAL:
    case S_CTX_ALLOCATOR:
        return pt_local_exit();
    case S_CTX_REMOTE:
        return pt_remote_exit();
    default:
        return 0;
    }
}
