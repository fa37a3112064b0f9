#include "config.h"

#include <confuse.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/conf.h"
#include "common/conf_table.h"

#define FILE_MAX 65536

/* ---- libconfuse ------------------------------------------------------------ */

/* libconfuse hands no argument of ours to its callbacks. */
static struct {
    struct pt_err *err;
    int line[PT_DIRECTIVES]; /* where each was set last */
} loading;

static void on_error(cfg_t *cfg, const char *fmt, va_list ap)
{
    static const char unknown[] = "no such option ";
    char text[300];

    vsnprintf(text, sizeof(text), fmt, ap);
    if (strncmp(text, unknown, strlen(unknown)) == 0)
        pt_err_set(loading.err, "%s:%d: directive %s: unknown", cfg->filename, cfg->line,
                   text + strlen(unknown));
    else
        pt_err_set(loading.err, "%s:%d: %s", cfg->filename, cfg->line, text);
}

static const struct pt_directive *find_directive(const char *name)
{
    const struct pt_directive *d = pt_directives;

    while (strcmp(d->name, name) != 0)
        d++;
    return d;
}

/* Is this value of the directive right? */
static int check_value(const struct pt_directive *d, const char *value, struct pt_err *err)
{
    uint64_t number;

    switch (d->kind) {
    case PT_DIRECTIVE_STRING:
        return *value || d->standard ? d->check(value, err) : 0;
    case PT_DIRECTIVE_LIST:
        return d->check(value, err);
    case PT_DIRECTIVE_NUMBER:
    case PT_DIRECTIVE_SIZE:
    case PT_DIRECTIVE_TIME:
        return *value ? d->read(value, &number, err) : 0;
    case PT_DIRECTIVE_CHOICE:
        return pt_directive_choose(d, value, err) < 0 ? -1 : 0;
    }
    return -1;
}

static int on_value(cfg_t *cfg, cfg_opt_t *opt)
{
    const struct pt_directive *d = find_directive(opt->name);
    struct pt_err reason;

    loading.line[d - pt_directives] = cfg->line;
    if (d->kind == PT_DIRECTIVE_LIST && cfg_opt_size(opt) > d->max) {
        cfg_error(cfg, "directive '%s': more than %u values", d->name, d->max);
        return -1;
    }
    for (unsigned i = 0; i < cfg_opt_size(opt); i++) {
        if (check_value(d, cfg_opt_getnstr(opt, i), &reason) < 0) {
            cfg_error(cfg, "directive '%s': %s", d->name, reason.text);
            return -1;
        }
    }
    return 0;
}

/* A copy of the value, or NULL if it is not set or empty; -1 if out of memory. */
static int get_string(const char *value, char **copy)
{
    *copy = value && *value ? strdup(value) : NULL;
    return value && *value && !*copy ? -1 : 0;
}

static int get_list(cfg_opt_t *opt, struct pt_conf_list *list)
{
    unsigned n = cfg_opt_size(opt);

    list->set = (opt->flags & CFGF_MODIFIED) != 0;
    list->item = calloc(n + 1, sizeof(*list->item));
    if (!list->item)
        return -1;
    for (; list->n < n; list->n++) {
        list->item[list->n] = strdup(cfg_opt_getnstr(opt, list->n));
        if (!list->item[list->n])
            return -1;
    }
    return 0;
}

static int get_value(cfg_t *cfg, const struct pt_directive *d, struct pt_conf *conf)
{
    cfg_opt_t *opt = cfg_getopt(cfg, d->name);
    void *field = (char *)conf + d->field;
    const char *value;

    if (d->kind == PT_DIRECTIVE_LIST)
        return get_list(opt, field);
    value = cfg_opt_getnstr(opt, 0);
    if (d->kind == PT_DIRECTIVE_STRING)
        return get_string(value, field);
    if (d->kind == PT_DIRECTIVE_CHOICE) {
        *(int *)field = pt_directive_choose(d, value ? value : d->standard, NULL);
        return 0;
    }
    return value && *value ? d->read(value, field, NULL) : 0;
}

static int get_all(cfg_t *cfg, struct pt_conf *conf)
{
    for (int i = 0; i < PT_DIRECTIVES; i++) {
        if (get_value(cfg, &pt_directives[i], conf) < 0)
            return -1;
    }
    return 0;
}

/* ---- the file ----------------------------------------------------------------- */

/*
 * Blanks the comments out: libconfuse 3.3 counts their lines more than once and
 * stumbles over those within a list.  Its other kind of comment is refused: one that
 * a pattern such as /proc/ and a star begins, without quotes, hides all that follows.  So
 * is what its scanner does not know, and prints.
 */
static int blank_comments(const char *path, char *text, struct pt_err *err)
{
    char quote = '\0';
    int line = 1, quoted = 0;

    for (char *p = text; *p; p++) {
        line += *p == '\n';
        if (quote) {
            if (*p == '\\' && p[1] && p[1] != '\n')
                p++;
            else if (*p == quote)
                quote = '\0';
        } else if (*p == '"' || *p == '\'') {
            quote = *p;
            quoted = line;
        } else if (*p == '/' && p[1] == '*') {
            return pt_err_set(err, "%s:%d: '/*' outside of quotes", path, line);
        } else if (*p == '\\') {
            return pt_err_set(err, "%s:%d: '\\' outside of quotes", path, line);
        } else if (*p == '#') {
            size_t n = strcspn(p, "\n");

            memset(p, ' ', n);
            p += n - 1;
        }
    }
    if (quote)
        return pt_err_set(err, "%s:%d: the string that begins here has no end", path, quoted);
    return 0;
}

/* Reads all of it, but at most size - 1 bytes; -1 and errno. */
static ssize_t read_all(int fd, char *text, size_t size)
{
    size_t used = 0;

    while (used < size - 1) {
        ssize_t n = read(fd, text + used, size - 1 - used);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        used += n;
    }
    return used;
}

/* Only a regular file: nothing that would make a step wait. */
static int read_file(const char *path, char *text, size_t size, struct pt_err *err)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;
    ssize_t n = -1;
    int saved;

    if (fd < 0)
        return pt_err_errno(err, "%s", path);
    if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode)) {
        close(fd);
        errno = EINVAL;
        return pt_err_set(err, "%s: not a regular file", path);
    }
    n = read_all(fd, text, size);
    saved = errno;
    close(fd);
    errno = saved;
    if (n < 0)
        return pt_err_errno(err, "%s", path);
    if ((size_t)n == size - 1 || memchr(text, '\0', n)) {
        errno = EINVAL;
        return pt_err_set(err, "%s: not a configuration file", path);
    }
    text[n] = '\0';
    return 0;
}

static int parse_file(cfg_t *cfg, const char *path, struct pt_err *err)
{
    struct pt_err reason;
    char text[FILE_MAX];
    FILE *fp;
    int rc;

    if (read_file(path, text, sizeof(text), err) < 0)
        return -1;
    errno = EINVAL;
    if (blank_comments(path, text, err) < 0)
        return -1;
    if (*text == '\0')
        return 0;
    fp = fmemopen(text, strlen(text), "r");
    if (!fp)
        return pt_err_errno(err, "%s", path);
    cfg->filename = strdup(path);
    pt_err_set(&reason, "%s: cannot be understood", path);
    loading.err = &reason;
    rc = cfg_parse_fp(cfg, fp);
    loading.err = NULL;
    fclose(fp);
    if (rc != CFG_SUCCESS)
        pt_err_set(err, "%s", reason.text);
    errno = EINVAL;
    return rc == CFG_SUCCESS ? 0 : -1;
}

static int check_whole(const char *path, const struct pt_conf *conf, struct pt_err *err)
{
    const struct pt_directive *wrong = NULL;
    struct pt_err reason;

    if (pt_conf_check_whole(conf, &wrong, &reason) == 0)
        return 0;
    errno = EINVAL;
    return pt_err_set(err, "%s:%d: directive '%s': %s", path, loading.line[wrong - pt_directives],
                      wrong->name, reason.text);
}

int pt_conf_load(const char *path, struct pt_conf **conf, struct pt_err *err)
{
    cfg_opt_t opts[PT_DIRECTIVES + 1];
    struct pt_conf *c = calloc(1, sizeof(*c));
    cfg_t *cfg;
    int rc = -1, saved;

    *conf = NULL;
    memset(&loading, 0, sizeof(loading));
    for (int i = 0; i < PT_DIRECTIVES; i++) {
        const char *name = pt_directives[i].name;

        opts[i] = pt_directives[i].kind == PT_DIRECTIVE_LIST
                      ? (cfg_opt_t)CFG_STR_LIST(name, NULL, CFGF_NONE)
                      : (cfg_opt_t)CFG_STR(name, NULL, CFGF_NONE);
    }
    opts[PT_DIRECTIVES] = (cfg_opt_t)CFG_END();
    cfg = cfg_init(opts, CFGF_NONE);
    if (!c || !cfg) {
        pt_err_errno(err, "%s", path ? path : "configuration");
        goto out;
    }
    cfg_set_error_function(cfg, on_error);
    for (int i = 0; i < PT_DIRECTIVES; i++)
        cfg_set_validate_func(cfg, pt_directives[i].name, on_value);
    if (path && parse_file(cfg, path, err) < 0)
        goto out;
    if (get_all(cfg, c) < 0) {
        pt_err_errno(err, "%s", path ? path : "configuration");
        goto out;
    }
    if (path && check_whole(path, c, err) < 0)
        goto out;
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
    for (int i = 0; i < PT_DIRECTIVES; i++) {
        void *field = (char *)conf + pt_directives[i].field;

        if (pt_directives[i].kind == PT_DIRECTIVE_STRING)
            free(*(char **)field);
        else if (pt_directives[i].kind == PT_DIRECTIVE_LIST)
            free_list(field);
    }
    free(conf);
    errno = saved;
}
