#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "replay/session.h"

#define PROBE PREPARE_MARKER ".probe"

/* ---- what the trace needs --------------------------------------------------------- */

static enum prepare_need need_of(const struct pt_store_file *f, uint64_t word)
{
    if (plan_file_is_special(f) || f->made == PT_MADE_UNKNOWN)
        return NEED_NOTHING;
    if (word != PLAN_UNTOUCHED && PLAN_TOUCH(word) == TOUCH_MKDIR)
        return NEED_MADE_DIR;
    if (f->made == PT_MADE_BY_TRACE)
        return f->dir == PT_KIND_DIR ? NEED_MADE_DIR : NEED_MADE;
    if (word != PLAN_UNTOUCHED && PLAN_TOUCH(word) == TOUCH_ABSENT)
        return NEED_ABSENT;
    if (f->dir == PT_KIND_LINK)
        return NEED_LINK;
    if (f->dir || (word != PLAN_UNTOUCHED && PLAN_TOUCH(word) == TOUCH_DIR))
        return NEED_DIR;
    return NEED_FILE;
}

/* The files of the store with their needs, from what all ranks' events say. */
static int find_needs(struct session *s, struct pt_err *err)
{
    size_t n = pt_store_nfiles(s->store);
    uint64_t *words = malloc((n + 1) * sizeof(*words));
    int rc;

    s->files = calloc(n + 1, sizeof(*s->files));
    rc = words && s->files ? 0 : pt_err_errno(err, "cannot prepare %zu files", n);
    rc = team_agree(&s->team, rc, err);
    if (rc == 0) {
        plan_first_touch(&s->plan, words);
        team_min(words, n);
        for (size_t i = 0; i < n; i++) {
            const struct pt_store_file *f = pt_store_file(s->store, i);

            s->files[i] = (struct prepare_file){
                .name = s->plan.paths[i], .size = f->size, .need = need_of(f, words[i])};
        }
        prepare_init(&s->prepare, s->root, s->files, n);
    }
    free(words);
    return rc;
}

/*
 * Where order is not kept, a node may come before the one that makes its file.  So what
 * one node makes and another uses is made beforehand, and stays until the end.
 */
static int make_shared(struct session *s, struct pt_err *err)
{
    size_t n = pt_store_nfiles(s->store);
    uint64_t *users = malloc((n + 1) * sizeof(*users));
    uint64_t *extents = malloc((n + 1) * sizeof(*extents));
    bool *made = calloc(n + 1, sizeof(*made));
    int rc = users && extents && made ? 0 : pt_err_errno(err, "cannot prepare %zu files", n);

    rc = team_agree(&s->team, rc, err);
    if (rc == 0) {
        plan_use(&s->plan, users, extents);
        team_sum(users, n);
        team_max(extents, n);
        for (size_t i = 0; i < n; i++) {
            made[i] = s->files[i].need == NEED_MADE && users[i] > 1;
            if (made[i]) {
                s->files[i].need = NEED_FILE;
                s->files[i].size = extents[i];
            }
        }
        plan_relax(&s->plan, made);
    }
    free(users);
    free(extents);
    free(made);
    return rc;
}

/* ---- the root ----------------------------------------------------------------------- */

static int write_probe(const struct root *root, bool direct, struct pt_err *err)
{
    int fd;

    if (root_unlink(root, PROBE) < 0 && errno != ENOENT)
        return pt_err_errno(err, "cannot write in root '%s'", root_path(root));
    fd = root_open(root, PROBE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return pt_err_errno(err, "cannot write in root '%s'", root_path(root));
    close(fd);
    if (!direct)
        return 0;
    fd = root_open(root, PROBE, O_RDONLY | O_DIRECT | O_CLOEXEC, 0);
    if (fd >= 0) {
        close(fd);
        return 0;
    }
    if (errno == EINVAL)
        return pt_err_set(err,
                          "cannot replay in root '%s': the trace opens files with O_DIRECT, "
                          "which this file system refuses",
                          root_path(root));
    return pt_err_errno(err, "cannot read in root '%s'", root_path(root));
}

static uint64_t probe_identity(const struct root *root)
{
    struct stat st;

    return root_stat(root, PROBE, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

static int compare_probe(const struct session *s, uint64_t identity, struct pt_err *err)
{
    char host[256] = "?";

    if (identity != 0 && probe_identity(s->root) == identity)
        return 0;
    gethostname(host, sizeof(host) - 1);
    return pt_err_set(err,
                      "cannot use root '%s': on host '%s' it is another directory than on "
                      "the first rank's; a file system that all share is needed",
                      root_path(s->root), host);
}

/* All ranks must see the same root, and O_DIRECT must work if the trace uses it. */
static int probe_root(struct session *s, struct pt_err *err)
{
    uint64_t direct = s->plan.direct;
    int rc = 0;

    team_sum(&direct, 1);
    if (s->team.rank == 0)
        rc = write_probe(s->root, direct > 0, err);
    rc = team_agree(&s->team, rc, err);
    if (rc == 0)
        rc = team_agree(&s->team, compare_probe(s, team_share(probe_identity(s->root)), err), err);
    if (s->team.rank == 0)
        root_unlink(s->root, PROBE);
    return rc;
}

static int take_root(struct session *s, struct pt_err *err)
{
    int rc;

    s->root = root_create(s->options->root, err);
    if (team_agree(&s->team, s->root ? 0 : -1, err) < 0 || find_needs(s, err) < 0)
        return -1;
    if (s->options->mode != MODE_CAUSAL && make_shared(s, err) < 0)
        return -1;
    rc = s->team.rank == 0 ? prepare_claim(&s->prepare, s->options->force, err) : 0;
    if (team_agree(&s->team, rc, err) < 0)
        return -1;
    s->owned = true;
    return probe_root(s, err);
}

/* ---- the files ---------------------------------------------------------------------- */

static int make_files(struct session *s, struct pt_err *err)
{
    int rc = s->team.rank == 0 ? prepare_tree(&s->prepare, err) : 0;

    if (team_agree(&s->team, rc, err) < 0)
        return -1;
    rc = prepare_data(&s->prepare, (size_t)s->team.rank, (size_t)s->team.size, err);
    return team_agree(&s->team, rc, err);
}

static int verify_files(struct session *s, struct pt_err *err)
{
    int rc = prepare_verify(&s->prepare, (size_t)s->team.rank, (size_t)s->team.size, err);

    return team_agree(&s->team, rc, err);
}

int session_prepare(struct session *s, struct pt_err *err)
{
    if (take_root(s, err) < 0)
        return -1;
    return s->options->prepare ? make_files(s, err) : verify_files(s, err);
}

void session_clean(struct session *s)
{
    if (s->options->keep || !s->owned)
        return;
    prepare_clean_data(&s->prepare);
    team_barrier();
    if (s->team.rank == 0)
        prepare_clean_tree(&s->prepare);
}
