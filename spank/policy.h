/*
 * What the site wants (paratrace.conf) of one user's request.  No Slurm in here.
 *
 * Judged in srun, sbatch and salloc, where a refusal costs nothing, and again in
 * slurmstepd, where the user can change neither the file nor the ids.
 */
#ifndef PT_POLICY_H
#define PT_POLICY_H

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/conf.h"
#include "common/err.h"
#include "common/spec.h"

#define PT_WHO_NAME 256

/*
 * Whose step it is.  Partition and account ("" : not known) are Slurm's variables in the
 * job's environment, which the user can change: good enough for what is traced unasked,
 * since a user may always decline, but not for what somebody may do.
 */
struct pt_who {
    uid_t uid;
    char user[PT_WHO_NAME];
    gid_t gid;
    const gid_t *groups; /* besides gid */
    int ngroups;
    char partition[PT_WHO_NAME], account[PT_WHO_NAME];
};

/* Fills in uid and the user's name, or the number as text if there is no name. */
void pt_who_set_user(struct pt_who *who, uid_t uid);

/* Is anything traced unasked?  If not, nobody needs to be looked up for most steps. */
int pt_policy_has_unasked(const struct pt_conf *conf);

/*
 * SPEC of a step for which nobody gave one, NULL: it is not traced.  Without always_*
 * that is default_spec, for everybody; else default_spec or "on", for those named.
 */
const char *pt_policy_unasked(const struct pt_conf *conf, const struct pt_who *who);

/*
 * May this user (NULL: not known) have this?  -1 and err, which names the item and the
 * directive, if not.
 */
int pt_policy_judge(const struct pt_conf *conf, const struct pt_who *who,
                    const struct pt_spec *spec, struct pt_err *err);

/*
 * Where run directories with a relative name are: the user's own directory of output_root,
 * or cwd if there is no such directive.  -1 and err if that becomes too long.
 */
int pt_policy_root(const struct pt_conf *conf, const char *user, const char *cwd,
                   char root[PATH_MAX], struct pt_err *err);

/* May a run directory, an absolute path, be there?  -1 and err if not. */
int pt_policy_place(const struct pt_conf *conf, const char *root, const char *path,
                    struct pt_err *err);

#endif
