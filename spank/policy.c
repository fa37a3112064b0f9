#include "config.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/glob.h"
#include "spank/policy.h"

#define GROUP_BUF_MAX (4 << 20) /* for the members of a large group, whom we do not need */

void pt_who_set_user(struct pt_who *who, uid_t uid)
{
    struct passwd pw, *found = NULL;
    char buf[4096];

    who->uid = uid;
    if (getpwuid_r(uid, &pw, buf, sizeof(buf), &found) == 0 && found)
        snprintf(who->user, sizeof(who->user), "%s", pw.pw_name);
    else
        snprintf(who->user, sizeof(who->user), "%u", (unsigned)uid);
}

/* ---- lists ------------------------------------------------------------------------ */

/* What a list says of somebody: its first item that fits decides. */
enum answer { NOT_NAMED, NO, YES };

/* "!NAME" and "NAME". */
static enum answer answer_of(const char *item)
{
    return item[0] == '!' ? NO : YES;
}

static const char *name_of(const char *item)
{
    return item[0] == '!' ? item + 1 : item;
}

/* `number`: the same one's id as text, NULL: it has none. */
static enum answer ask_names(const struct pt_conf_list *list, const char *name, const char *number)
{
    for (unsigned i = 0; *name && i < list->n; i++) {
        const char *pattern = name_of(list->item[i]);

        if (pt_glob_match(pattern, name) || (number && strcmp(pattern, number) == 0))
            return answer_of(list->item[i]);
    }
    return NOT_NAMED;
}

/* The group's id: by its name or its number; -1 if there is no such group. */
static int find_group(const char *name, gid_t *gid)
{
    struct group gr, *found = NULL;
    char *end, *buf = NULL;
    unsigned long number;
    int rc = ERANGE;

    for (size_t size = 4096; rc == ERANGE && size <= GROUP_BUF_MAX; size *= 4) {
        char *more = realloc(buf, size);

        if (!more)
            break;
        buf = more;
        rc = getgrnam_r(name, &gr, buf, size, &found);
    }
    if (rc == 0 && found)
        *gid = gr.gr_gid;
    free(buf);
    if (rc == 0 && found)
        return 0;
    errno = 0;
    number = strtoul(name, &end, 10);
    if (errno || end == name || *end || number >= UINT_MAX)
        return -1;
    *gid = number;
    return 0;
}

static int is_in_group(const struct pt_who *who, gid_t gid)
{
    if (who->gid == gid)
        return 1;
    for (int i = 0; i < who->ngroups; i++) {
        if (who->groups[i] == gid)
            return 1;
    }
    return 0;
}

static enum answer ask_groups(const struct pt_conf_list *list, const struct pt_who *who)
{
    for (unsigned i = 0; i < list->n; i++) {
        gid_t gid;

        if (find_group(name_of(list->item[i]), &gid) == 0 && is_in_group(who, gid))
            return answer_of(list->item[i]);
    }
    return NOT_NAMED;
}

/* Users decide before groups. */
static enum answer ask_people(const struct pt_conf_list *users, const struct pt_conf_list *groups,
                              const struct pt_who *who)
{
    enum answer answer;
    char number[16];

    snprintf(number, sizeof(number), "%u", (unsigned)who->uid);
    answer = ask_names(users, who->user, number);
    return answer == NOT_NAMED ? ask_groups(groups, who) : answer;
}

/* Where neither list is set, everybody may. */
static int may(const struct pt_conf_list *users, const struct pt_conf_list *groups,
               const struct pt_who *who)
{
    if (!users->set && !groups->set)
        return 1;
    return who && ask_people(users, groups, who) == YES;
}

/* ---- what is traced unasked ---------------------------------------------------------- */

static int names_somebody(const struct pt_conf *conf)
{
    return conf->always_users.set || conf->always_groups.set || conf->always_accounts.set ||
           conf->always_partitions.set;
}

int pt_policy_has_unasked(const struct pt_conf *conf)
{
    return conf->default_spec || names_somebody(conf);
}

const char *pt_policy_unasked(const struct pt_conf *conf, const struct pt_who *who)
{
    enum answer answer;

    if (!names_somebody(conf))
        return conf->default_spec;
    if (!who)
        return NULL;
    answer = ask_people(&conf->always_users, &conf->always_groups, who);
    if (answer == NOT_NAMED)
        answer = ask_names(&conf->always_accounts, who->account, NULL);
    if (answer == NOT_NAMED)
        answer = ask_names(&conf->always_partitions, who->partition, NULL);
    if (answer != YES)
        return NULL;
    return conf->default_spec ? conf->default_spec : "on";
}

/* ---- what is asked for ------------------------------------------------------------------ */

static int judge_who(const struct pt_conf *conf, const struct pt_who *who,
                     const struct pt_spec *spec, struct pt_err *err)
{
    const char *user = who ? who->user : "?";

    if (!may(&conf->allow_users, &conf->allow_groups, who))
        return pt_err_set(err,
                          "user '%s' may not trace here (the site's allow_users, allow_groups); "
                          "only off is valid",
                          user);
    if (spec->throttle != PT_THROTTLE_NONE &&
        !may(&conf->throttle_users, &conf->throttle_groups, who))
        return pt_err_set(err,
                          "throttle: user '%s' may not hold here (the site's throttle_users, "
                          "throttle_groups); only throttle:none is valid",
                          user);
    return 0;
}

static int judge_limits(const struct pt_conf *conf, const struct pt_spec *spec, struct pt_err *err)
{
    char is[PT_SPEC_NUMBER], max[PT_SPEC_NUMBER];

    if (spec->period < conf->min_period)
        return pt_err_set(err, "period=%llu: the site's smallest is %llu (min_period)",
                          (unsigned long long)spec->period, (unsigned long long)conf->min_period);
    if (conf->max_period && spec->period > conf->max_period)
        return pt_err_set(err, "period=%llu: the site's greatest is %llu (max_period)",
                          (unsigned long long)spec->period, (unsigned long long)conf->max_period);
    if (conf->max_buffer && spec->buffer > conf->max_buffer)
        return pt_err_set(err, "buffer=%s: the site's greatest is %s (max_buffer)",
                          pt_spec_format_size(is, spec->buffer),
                          pt_spec_format_size(max, conf->max_buffer));
    if (conf->max_hold && spec->hold_max > conf->max_hold)
        return pt_err_set(err, "hold-max=%s: the site's longest is %s (max_hold)",
                          pt_spec_format_time(is, spec->hold_max),
                          pt_spec_format_time(max, conf->max_hold));
    return 0;
}

/* As far as it can be told before there is a job: the other patterns are no directories. */
static int judge_place(const struct pt_conf *conf, const struct pt_who *who,
                       const struct pt_spec *spec, struct pt_err *err)
{
    const struct pt_spec_ids ids = {.user = who ? who->user : "", .name = "job"};
    char out[PATH_MAX], root[PATH_MAX], path[2 * PATH_MAX];

    if (!conf->output_confined)
        return 0;
    if (pt_spec_expand(spec->out, &ids, out, sizeof(out), err) < 0 ||
        pt_policy_root(conf, ids.user, "/", root, err) < 0)
        return -1;
    snprintf(path, sizeof(path), "%s%s%s", out[0] == '/' ? "" : root, out[0] == '/' ? "" : "/",
             out);
    return pt_policy_place(conf, root, path, err);
}

int pt_policy_judge(const struct pt_conf *conf, const struct pt_who *who,
                    const struct pt_spec *spec, struct pt_err *err)
{
    if (judge_who(conf, who, spec, err) < 0 || judge_limits(conf, spec, err) < 0 ||
        judge_place(conf, who, spec, err) < 0)
        return -1;
    return 0;
}

int pt_policy_root(const struct pt_conf *conf, const char *user, const char *cwd,
                   char root[PATH_MAX], struct pt_err *err)
{
    if (conf->output_root)
        return pt_conf_root(conf, user, root, PATH_MAX, err);
    if (snprintf(root, PATH_MAX, "%s", cwd) >= PATH_MAX)
        return pt_err_set(err, "the path of the working directory is too long");
    return 0;
}

int pt_policy_place(const struct pt_conf *conf, const char *root, const char *path,
                    struct pt_err *err)
{
    if (!conf->output_confined || pt_conf_is_below(root, path))
        return 0;
    return pt_err_set(err, "out=%.100s: must be below '%.200s' here (output_confined)", path, root);
}
