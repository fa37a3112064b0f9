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

/* ---- what must be there beforehand ------------------------------------------------- */

/*
 * Where order is not kept, a node may come before the one that makes its file, or the directory
 * that its file is in.  So what one node makes and another uses is made beforehand, and stays
 * until the end.
 */
struct sharing {
    struct plan_users users;
    uint64_t *extents;
    bool *shared;
};

static int sharing_begin(struct sharing *sharing, size_t n, struct pt_err *err)
{
    *sharing = (struct sharing){
        .users = {malloc((n + 1) * sizeof(uint64_t)), malloc((n + 1) * sizeof(uint64_t))},
        .extents = malloc((n + 1) * sizeof(uint64_t)),
        .shared = calloc(n + 1, sizeof(bool)),
    };
    if (sharing->users.first && sharing->users.last && sharing->extents && sharing->shared)
        return 0;
    return pt_err_errno(err, "cannot prepare %zu files", n);
}

static void sharing_end(struct sharing *sharing)
{
    free(sharing->users.first);
    free(sharing->users.last);
    free(sharing->extents);
    free(sharing->shared);
}

/* Who uses a file uses the directories that lead to it. */
static int use_parents(struct session *s, const struct prepare_list *dirs,
                       const struct plan_users *users, size_t file)
{
    char *name = strdup(s->files[file].name), *slash = name;

    if (!name)
        return -1;
    while ((slash = strchr(slash, '/'))) {
        *slash = '\0';
        const struct prepare_file *dir = prepare_find(dirs, name);
        if (dir && users->first[file] < users->first[dir - s->files])
            users->first[dir - s->files] = users->first[file];
        if (dir && users->last[file] > users->last[dir - s->files])
            users->last[dir - s->files] = users->last[file];
        *slash++ = '/';
    }
    free(name);
    return 0;
}

static int use_dirs(struct session *s, const struct plan_users *users, struct pt_err *err)
{
    struct prepare_list dirs = prepare_select(&s->prepare, 1u << NEED_MADE_DIR);
    int rc = dirs.files ? 0 : -1;

    for (size_t i = 0; rc == 0 && dirs.n > 0 && i < s->prepare.nfiles; i++)
        if (users->last[i] > 0)
            rc = use_parents(s, &dirs, users, i);
    free(dirs.files);
    return rc == 0 ? 0 : pt_err_errno(err, "cannot prepare %zu files", s->prepare.nfiles);
}

static void share(struct session *s, struct sharing *sharing)
{
    for (size_t i = 0; i < s->prepare.nfiles; i++) {
        struct prepare_file *f = &s->files[i];

        if (sharing->users.first[i] >= sharing->users.last[i])
            continue;
        sharing->shared[i] = f->need == NEED_MADE || f->need == NEED_MADE_DIR;
        if (f->need == NEED_MADE) {
            f->need = NEED_FILE;
            f->size = sharing->extents[i];
        } else if (f->need == NEED_MADE_DIR) {
            f->need = NEED_DIR;
        }
    }
    plan_relax(&s->plan, sharing->shared);
}

static int make_shared(struct session *s, struct pt_err *err)
{
    size_t n = pt_store_nfiles(s->store);
    struct sharing sharing;
    int rc = team_agree(&s->team, sharing_begin(&sharing, n, err), err);

    if (rc == 0) {
        plan_use(&s->plan, &sharing.users, sharing.extents);
        team_min(sharing.users.first, n);
        team_max(sharing.users.last, n);
        team_max(sharing.extents, n);
        rc = team_agree(&s->team, use_dirs(s, &sharing.users, err), err);
    }
    if (rc == 0)
        share(s, &sharing);
    sharing_end(&sharing);
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
