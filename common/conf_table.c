#include "config.h"

#include <stdio.h>
#include <string.h>

#include "common/conf_table.h"
#include "common/hosts.h"
#include "common/spec.h"

#define NAME_LENGTH   256
#define NAMES_MAX     256          /* in a list */
#define SIZE_SMALLEST (1ULL << 20) /* of max_size: what every run file begins with fits well */

/* ---- single values ---------------------------------------------------------------- */

int pt_conf_check_path(const char *path, struct pt_err *err)
{
    if (path[0] != '/')
        return pt_err_set(err, "'%s' is not an absolute path", path);
    if (strpbrk(path, " \t\n:")) /* LD_PRELOAD cannot quote them */
        return pt_err_set(err, "'%s' contains a blank or colon", path);
    return 0;
}

/* Tries the value as "ITEMvalue" in a SPEC. */
static int check_item(const char *item, const char *value, struct pt_err *err)
{
    char text[PT_SPEC_MAX];
    struct pt_spec spec;

    if ((size_t)snprintf(text, sizeof(text), "%s%s", item, value) >= sizeof(text))
        return pt_err_set(err, "too long");
    if (strchr(value, ',') && *item)
        return pt_err_set(err, "'%s' contains a comma", value);
    pt_spec_init(&spec);
    return pt_spec_parse(&spec, text, err);
}

static int check_spec(const char *value, struct pt_err *err)
{
    return check_item("", value, err);
}

static int check_period(const char *value, struct pt_err *err)
{
    return check_item("period=", value, err);
}

static int check_buffer(const char *value, struct pt_err *err)
{
    return check_item("buffer=", value, err);
}

static int check_output(const char *value, struct pt_err *err)
{
    return check_item("out=", value, err);
}

static int check_path_glob(const char *value, struct pt_err *err)
{
    return check_item("nopath=", value, err);
}

static int check_program_glob(const char *value, struct pt_err *err)
{
    return check_item("noexe=", value, err);
}

static int check_absolute(const char *value, struct pt_err *err)
{
    return value[0] == '/' ? 0 : pt_err_set(err, "'%s' is not an absolute path", value);
}

/* Absolute, without "..", and with no other pattern than %u. */
static int check_root(const char *value, struct pt_err *err)
{
    if (check_absolute(value, err) < 0)
        return -1;
    if (strlen(value) >= PT_SPEC_OUT_MAX)
        return pt_err_set(err, "is longer than %d characters", PT_SPEC_OUT_MAX - 1);
    if (pt_conf_climbs(value))
        return pt_err_set(err, "'%s' contains '..'", value);
    for (const char *s = value; *s; s++) {
        if ((unsigned char)*s < ' ' || *s == 0x7f)
            return pt_err_set(err, "contains a control character");
        if (*s == '%' && *++s != 'u' && *s != '%')
            return pt_err_set(err, "'%s': the only pattern here is %%u", value);
    }
    return 0;
}

static int check_name(const char *value, struct pt_err *err)
{
    const char *name = value[0] == '!' ? value + 1 : value;

    if (*name == '\0')
        return pt_err_set(err, "'%s' is no name", value);
    if (strlen(name) >= NAME_LENGTH)
        return pt_err_set(err, "'%.40s...' is too long for a name", value);
    for (const char *s = name; *s; s++) {
        if ((unsigned char)*s <= ' ' || *s == 0x7f || *s == ',')
            return pt_err_set(err,
                              "'%s' is no name: blanks, commas and control characters are "
                              "not part of one",
                              value);
    }
    return 0;
}

/* Groups are looked up by their names, so these are no patterns. */
static int check_group(const char *value, struct pt_err *err)
{
    if (check_name(value, err) < 0)
        return -1;
    if (strpbrk(value, "*?"))
        return pt_err_set(err, "'%s': a group cannot be a pattern", value);
    return 0;
}

static int check_ports(const char *value, struct pt_err *err)
{
    struct pt_ports ports;

    return pt_hosts_ports(value, &ports, err);
}

static int check_munge(const char *value, struct pt_err *err)
{
    enum pt_munge munge;

    return pt_hosts_munge(value, &munge, err);
}

static int read_file_size(const char *value, uint64_t *bytes, struct pt_err *err)
{
    if (pt_spec_size(value, bytes, err) < 0)
        return -1;
    return *bytes < SIZE_SMALLEST ? pt_err_set(err, "must be 1M at least") : 0;
}

/* ---- the table ---------------------------------------------------------------------- */

static const char *const booleans[] = {"false", "true", "no", "yes", "off", "on", NULL};
static const char *const levels[] = {
    [PT_LOG_ERROR] = "error", [PT_LOG_INFO] = "info", [PT_LOG_DEBUG] = "debug", NULL};
static const char *const anonymities[] = {
    [PT_ANONYMISE_NO] = "no", [PT_ANONYMISE_USER] = "user", [PT_ANONYMISE_SITE] = "site", NULL};

#define ROW(name_, kind_, ...)                                                                  \
    {                                                                                           \
        .name = #name_, .kind = PT_DIRECTIVE_##kind_, .field = offsetof(struct pt_conf, name_), \
        __VA_ARGS__                                                                             \
    }

/* In the order of etc/paratrace.conf. */
const struct pt_directive pt_directives[PT_DIRECTIVES] = {
    ROW(default_spec, STRING, .check = check_spec),
    ROW(always_users, LIST, .max = NAMES_MAX, .check = check_name),
    ROW(always_groups, LIST, .max = NAMES_MAX, .check = check_group),
    ROW(always_accounts, LIST, .max = NAMES_MAX, .check = check_name),
    ROW(always_partitions, LIST, .max = NAMES_MAX, .check = check_name),
    ROW(allow_users, LIST, .max = NAMES_MAX, .check = check_name),
    ROW(allow_groups, LIST, .max = NAMES_MAX, .check = check_group),
    ROW(throttle_users, LIST, .max = NAMES_MAX, .check = check_name),
    ROW(throttle_groups, LIST, .max = NAMES_MAX, .check = check_group),
    ROW(min_period, NUMBER, .read = pt_spec_period),
    ROW(max_period, NUMBER, .read = pt_spec_period),
    ROW(max_hold, TIME, .read = pt_spec_time),
    ROW(max_buffer, SIZE, .read = pt_spec_buffer),
    ROW(max_size, SIZE, .read = read_file_size),
    ROW(max_time, TIME, .read = pt_spec_time),
    ROW(period, STRING, .check = check_period, .standard = "100"),
    ROW(buffer, STRING, .check = check_buffer, .standard = "1M"),
    ROW(output, STRING, .check = check_output, .standard = "ptrace.%j.%s"),
    ROW(output_root, STRING, .check = check_root),
    ROW(output_confined, CHOICE, .words = booleans, .standard = "false"),
    ROW(exclude_paths, LIST, .max = PT_SPEC_GLOBS, .check = check_path_glob),
    ROW(exclude_programs, LIST, .max = PT_SPEC_GLOBS, .check = check_program_glob),
    ROW(anonymise, CHOICE, .words = anonymities, .standard = "no"),
    ROW(anonymise_key, STRING, .check = check_absolute),
    ROW(preload_library, STRING, .check = pt_conf_check_path),
    ROW(watchdog, STRING, .check = pt_conf_check_path),
    ROW(ports, STRING, .check = check_ports, .standard = PT_HOSTS_PORTS),
    ROW(munge, STRING, .check = check_munge, .standard = "auto"),
    ROW(munge_socket, STRING, .check = pt_hosts_munge_socket),
    ROW(log_level, CHOICE, .words = levels, .standard = "info"),
    ROW(quiet, CHOICE, .words = booleans, .standard = "false"),
};

int pt_directive_choose(const struct pt_directive *d, const char *word, struct pt_err *err)
{
    for (int i = 0; d->words[i]; i++) {
        if (strcmp(word, d->words[i]) == 0)
            return d->words == booleans ? i % 2 : i;
    }
    if (d->words == booleans)
        return pt_err_set(err, "'%s' is not true or false", word);
    return pt_err_set(err, "'%s' is not %s, %s or %s", word, d->words[0], d->words[1], d->words[2]);
}

/* ---- several together ------------------------------------------------------------------ */

int pt_conf_climbs(const char *path)
{
    for (const char *s = path; *s; s += strcspn(s, "/")) {
        s += strspn(s, "/");
        if (s[0] == '.' && s[1] == '.' && (s[2] == '/' || s[2] == '\0'))
            return 1;
    }
    return 0;
}

int pt_conf_is_below(const char *root, const char *path)
{
    size_t n = strlen(root);

    while (n && root[n - 1] == '/')
        n--;
    return !pt_conf_climbs(path) && strncmp(path, root, n) == 0 && path[n] == '/' &&
           path[n + strspn(path + n, "/")];
}

int pt_conf_root(const struct pt_conf *conf, const char *user, char *root, size_t size,
                 struct pt_err *err)
{
    const struct pt_spec_ids ids = {.user = user, .name = ""};
    char pattern[PT_SPEC_OUT_MAX + 4];

    snprintf(pattern, sizeof(pattern), "%s%s", conf->output_root,
             strstr(conf->output_root, "%u") ? "" : "/%u");
    return pt_spec_expand(pattern, &ids, root, size, err);
}

static const struct pt_directive *find(const char *name)
{
    const struct pt_directive *d = pt_directives;

    while (strcmp(d->name, name) != 0)
        d++;
    return d;
}

/* Are the site's own defaults within its limits? */
static const char *check_limits(const struct pt_conf *c, struct pt_err *err)
{
    uint64_t period = 0, buffer = 0;

    if (c->period)
        pt_spec_period(c->period, &period, NULL);
    if (c->buffer)
        pt_spec_buffer(c->buffer, &buffer, NULL);
    if (c->min_period && c->max_period && c->min_period > c->max_period) {
        pt_err_set(err, "is greater than max_period");
        return "min_period";
    }
    if (period && (period < c->min_period || (c->max_period && period > c->max_period))) {
        pt_err_set(err, "is not between min_period and max_period");
        return "period";
    }
    if (buffer && c->max_buffer && buffer > c->max_buffer) {
        pt_err_set(err, "is greater than max_buffer");
        return "buffer";
    }
    return NULL;
}

static const char *check_places(const struct pt_conf *c, struct pt_err *err)
{
    char root[2 * PT_SPEC_OUT_MAX];

    if (c->output_confined && !c->output_root) {
        pt_err_set(err, "needs an output_root");
        return "output_confined";
    }
    if (c->output && c->output_confined && pt_conf_root(c, "%u", root, sizeof(root), NULL) == 0 &&
        (c->output[0] == '/' ? !pt_conf_is_below(root, c->output) : pt_conf_climbs(c->output))) {
        pt_err_set(err, "'%s' is not below output_root", c->output);
        return "output";
    }
    if (c->anonymise != PT_ANONYMISE_NO && !c->anonymise_key) {
        pt_err_set(err, "needs an anonymise_key");
        return "anonymise";
    }
    return NULL;
}

int pt_conf_check_whole(const struct pt_conf *conf, const struct pt_directive **wrong,
                        struct pt_err *err)
{
    const char *name = check_limits(conf, err);

    if (!name)
        name = check_places(conf, err);
    if (!name)
        return 0;
    *wrong = find(name);
    return -1;
}
