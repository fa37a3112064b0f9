#include "config.h"

#include <confuse.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/conf.h"
#include "common/spec.h"

#define FILE_MAX 65536

/* ---- checks --------------------------------------------------------------- */

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

/* The level of that name, or -1. */
static int find_level(const char *name)
{
    static const char *const names[] = {
        [PT_LOG_ERROR] = "error", [PT_LOG_INFO] = "info", [PT_LOG_DEBUG] = "debug"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0)
            return i;
    }
    return -1;
}

static int check_level(const char *value, struct pt_err *err)
{
    if (find_level(value) < 0)
        return pt_err_set(err, "'%s' is not error, info or debug", value);
    return 0;
}

/* ---- libconfuse ------------------------------------------------------------ */

static const struct directive {
    const char *name;
    int (*check)(const char *value, struct pt_err *err);
    unsigned max; /* values */
} directives[] = {
    {"default_spec", check_spec, 1},
    {"preload_library", pt_conf_check_path, 1},
    {"watchdog", pt_conf_check_path, 1},
    {"period", check_period, 1},
    {"buffer", check_buffer, 1},
    {"output", check_output, 1},
    {"exclude_paths", check_path_glob, PT_SPEC_GLOBS},
    {"exclude_programs", check_program_glob, PT_SPEC_GLOBS},
    {"log_level", check_level, 1},
};

/* libconfuse hands no argument of ours to its callbacks. */
static struct pt_err *load_err;

static void on_error(cfg_t *cfg, const char *fmt, va_list ap)
{
    static const char unknown[] = "no such option ";
    char text[300];

    vsnprintf(text, sizeof(text), fmt, ap);
    if (strncmp(text, unknown, strlen(unknown)) == 0)
        pt_err_set(load_err, "%s:%d: directive %s: unknown", cfg->filename, cfg->line,
                   text + strlen(unknown));
    else
        pt_err_set(load_err, "%s:%d: %s", cfg->filename, cfg->line, text);
}

static int on_value(cfg_t *cfg, cfg_opt_t *opt)
{
    const struct directive *d = directives;
    struct pt_err reason;

    while (strcmp(d->name, opt->name) != 0)
        d++;
    if (cfg_opt_size(opt) > d->max) {
        cfg_error(cfg, "directive '%s': more than %u values", d->name, d->max);
        return -1;
    }
    for (unsigned i = 0; i < cfg_opt_size(opt); i++) {
        if (d->check(cfg_opt_getnstr(opt, i), &reason) < 0) {
            cfg_error(cfg, "directive '%s': %s", d->name, reason.text);
            return -1;
        }
    }
    return 0;
}

/* A copy of the value, or NULL if it is not set or empty; -1 if out of memory. */
static int get_string(cfg_t *cfg, const char *name, char **copy)
{
    const char *value = cfg_getstr(cfg, name);

    *copy = value && *value ? strdup(value) : NULL;
    return value && *value && !*copy ? -1 : 0;
}

static int get_list(cfg_t *cfg, const char *name, struct pt_conf_list *list)
{
    unsigned n = cfg_size(cfg, name);

    list->item = calloc(n + 1, sizeof(*list->item));
    if (!list->item)
        return -1;
    for (; list->n < n; list->n++) {
        list->item[list->n] = strdup(cfg_getnstr(cfg, name, list->n));
        if (!list->item[list->n])
            return -1;
    }
    return 0;
}

static int get_all(cfg_t *cfg, struct pt_conf *conf)
{
    conf->log_level = find_level(cfg_getstr(cfg, "log_level"));
    conf->quiet = cfg_getbool(cfg, "quiet");
    if (get_string(cfg, "default_spec", &conf->default_spec) < 0 ||
        get_string(cfg, "preload_library", &conf->preload_library) < 0 ||
        get_string(cfg, "watchdog", &conf->watchdog) < 0 ||
        get_string(cfg, "period", &conf->period) < 0 ||
        get_string(cfg, "buffer", &conf->buffer) < 0 ||
        get_string(cfg, "output", &conf->output) < 0 ||
        get_list(cfg, "exclude_paths", &conf->exclude_paths) < 0 ||
        get_list(cfg, "exclude_programs", &conf->exclude_programs) < 0)
        return -1;
    return 0;
}

/*
 * Blanks the comments out: libconfuse 3.3 counts their lines more than once and
 * stumbles over those within a list.
 */
static void blank_comments(char *text)
{
    char quote = '\0';

    for (char *p = text; *p; p++) {
        if (quote) {
            if (*p == '\\' && p[1])
                p++;
            else if (*p == quote)
                quote = '\0';
        } else if (*p == '"' || *p == '\'') {
            quote = *p;
        } else if (*p == '#') {
            size_t n = strcspn(p, "\n");

            memset(p, ' ', n);
            p += n - 1;
        }
    }
}

static int read_file(const char *path, char *text, size_t size, struct pt_err *err)
{
    FILE *fp = fopen(path, "re");
    size_t n;
    int failed;

    if (!fp)
        return pt_err_errno(err, "%s", path);
    n = fread(text, 1, size - 1, fp);
    failed = ferror(fp);
    fclose(fp);
    if (failed)
        return pt_err_errno(err, "%s", path);
    if (n == size - 1 || memchr(text, '\0', n)) {
        errno = EINVAL;
        return pt_err_set(err, "%s: not a configuration file", path);
    }
    text[n] = '\0';
    return 0;
}

static int parse_file(cfg_t *cfg, const char *path, struct pt_err *err)
{
    char text[FILE_MAX];
    FILE *fp;
    int rc;

    if (read_file(path, text, sizeof(text), err) < 0)
        return -1;
    blank_comments(text);
    if (*text == '\0')
        return 0;
    fp = fmemopen(text, strlen(text), "r");
    if (!fp)
        return pt_err_errno(err, "%s", path);
    cfg->filename = strdup(path);
    pt_err_set(err, "%s: cannot be understood", path);
    load_err = err;
    rc = cfg_parse_fp(cfg, fp);
    load_err = NULL;
    fclose(fp);
    errno = EINVAL;
    return rc == CFG_SUCCESS ? 0 : -1;
}

int pt_conf_load(const char *path, struct pt_conf **conf, struct pt_err *err)
{
    cfg_opt_t opts[] = {
        CFG_STR("default_spec", NULL, CFGF_NONE),
        CFG_STR("preload_library", NULL, CFGF_NONE),
        CFG_STR("watchdog", NULL, CFGF_NONE),
        CFG_STR("period", NULL, CFGF_NONE),
        CFG_STR("buffer", NULL, CFGF_NONE),
        CFG_STR("output", NULL, CFGF_NONE),
        CFG_STR_LIST("exclude_paths", NULL, CFGF_NONE),
        CFG_STR_LIST("exclude_programs", NULL, CFGF_NONE),
        CFG_STR("log_level", "info", CFGF_NONE),
        CFG_BOOL("quiet", cfg_false, CFGF_NONE),
        CFG_END(),
    };
    struct pt_conf *c = calloc(1, sizeof(*c));
    cfg_t *cfg = cfg_init(opts, CFGF_NONE);
    int rc = -1, saved;

    *conf = NULL;
    if (!c || !cfg) {
        pt_err_errno(err, "%s", path ? path : "configuration");
        goto out;
    }
    cfg_set_error_function(cfg, on_error);
    for (size_t i = 0; i < sizeof(directives) / sizeof(directives[0]); i++)
        cfg_set_validate_func(cfg, directives[i].name, on_value);
    if (path && parse_file(cfg, path, err) < 0)
        goto out;
    if (get_all(cfg, c) < 0) {
        pt_err_errno(err, "%s", path ? path : "configuration");
        goto out;
    }
    *conf = c;
    c = NULL;
    rc = 0;
out:
    saved = errno;
    pt_conf_destroy(c);
    if (cfg)
        cfg_free(cfg);
    errno = saved;
    return rc;
}

static void free_list(struct pt_conf_list *list)
{
    for (unsigned i = 0; i < list->n; i++)
        free(list->item[i]);
    free(list->item);
}

void pt_conf_destroy(struct pt_conf *conf)
{
    int saved = errno;

    if (!conf)
        return;
    free(conf->default_spec);
    free(conf->preload_library);
    free(conf->watchdog);
    free(conf->period);
    free(conf->buffer);
    free(conf->output);
    free_list(&conf->exclude_paths);
    free_list(&conf->exclude_programs);
    free(conf);
    errno = saved;
}
