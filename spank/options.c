#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spank/options.h"

#define DEFAULT_CONF     PT_SYSCONFDIR "/paratrace/paratrace.conf"
#define DEFAULT_PRELOAD  PT_PKGLIBDIR "/libparatrace.so"
#define DEFAULT_WATCHDOG PT_PKGLIBEXECDIR "/ptwatchd"

void pt_options_init(struct pt_options *o)
{
    memset(o, 0, sizeof(*o));
}

void pt_options_clear(struct pt_options *o)
{
    pt_conf_destroy(o->conf);
    pt_options_init(o);
}

int pt_options_argument(struct pt_options *o, const char *arg, struct pt_err *err)
{
    const struct {
        const char *name;
        char *path;
    } known[] = {
        {"conf=", o->conf_path},
        {"preload=", o->preload},
        {"watchdog=", o->watchdog},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        size_t n = strlen(known[i].name);
        struct pt_err reason;

        if (strncmp(arg, known[i].name, n) != 0)
            continue;
        if (strlen(arg + n) >= PATH_MAX)
            return pt_err_set(err, "plugstack.conf: argument '%s': too long", known[i].name);
        if (pt_conf_check_path(arg + n, &reason) < 0)
            return pt_err_set(err, "plugstack.conf: argument '%s': %s", known[i].name, reason.text);
        strcpy(known[i].path, arg + n);
        return 0;
    }
    return pt_err_set(err,
                      "plugstack.conf: unknown argument '%s': valid ones are conf=FILE, "
                      "preload=FILE, watchdog=FILE",
                      arg);
}

const char *pt_options_conf_path(const struct pt_options *o)
{
    return o && o->conf_path[0] ? o->conf_path : DEFAULT_CONF;
}

int pt_options_load(struct pt_options *o, struct pt_err *err)
{
    const char *path = pt_options_conf_path(o);

    pt_conf_destroy(o->conf);
    if (pt_conf_load(path, &o->conf, err) == 0)
        return 0;
    if (errno == ENOENT && !o->conf_path[0])
        return pt_conf_load(NULL, &o->conf, err);
    pt_conf_load(NULL, &o->conf, NULL);
    return -1;
}

/* ---- SPEC ------------------------------------------------------------------ */

struct text {
    char *s;
    size_t used;
    int full;
};

/* Appends "ITEMvalue" (NULL value: nothing), with a comma before it if needed. */
static void add_item(struct text *t, const char *item, const char *value)
{
    int n;

    if (!value || !*value)
        return;
    n = snprintf(t->s + t->used, PT_SPEC_MAX - t->used, "%s%s%s", t->used ? "," : "", item, value);
    t->used += n;
    if (t->used >= PT_SPEC_MAX) {
        t->full = 1;
        t->used = PT_SPEC_MAX - 1;
    }
}

static void add_list(struct text *t, const char *item, const struct pt_conf_list *list)
{
    for (unsigned i = 0; i < list->n; i++)
        add_item(t, item, list->item[i]);
}

/* Defaults that the site has not set, where they lie beyond its limits. */
static void add_limits(struct text *t, const struct pt_conf *conf)
{
    char number[PT_SPEC_NUMBER];
    struct pt_spec standard;
    uint64_t period;

    pt_spec_init(&standard);
    period = standard.period < conf->min_period ? conf->min_period : standard.period;
    if (conf->max_period && period > conf->max_period)
        period = conf->max_period;
    if (!conf->period && period != standard.period) {
        snprintf(number, sizeof(number), "%llu", (unsigned long long)period);
        add_item(t, "period=", number);
    }
    if (!conf->buffer && conf->max_buffer && conf->max_buffer < standard.buffer)
        add_item(t, "buffer=", pt_spec_format_size(number, conf->max_buffer));
    if (conf->max_hold && conf->max_hold < standard.hold_max)
        add_item(t, "hold-max=", pt_spec_format_time(number, conf->max_hold));
}

/* The site's items, then `request`: parsed into *spec, and as text. */
static int combine(const struct pt_conf *conf, const char *request, struct pt_spec *spec,
                   char text[PT_SPEC_MAX], struct pt_err *err)
{
    struct text t = {.s = text};

    text[0] = '\0';
    if (conf) {
        add_limits(&t, conf);
        add_item(&t, "period=", conf->period);
        add_item(&t, "buffer=", conf->buffer);
        add_item(&t, "out=", conf->output);
        add_list(&t, "nopath=", &conf->exclude_paths);
        add_list(&t, "noexe=", &conf->exclude_programs);
    }
    add_item(&t, "", request);
    if (t.full)
        return pt_err_set(err, "longer than %d characters, the site's items included",
                          PT_SPEC_MAX - 1);
    pt_spec_init(spec);
    return pt_spec_parse(spec, text, err);
}

int pt_options_combine(const struct pt_options *o, const char *request, char text[PT_SPEC_MAX],
                       struct pt_err *err)
{
    struct pt_spec spec;

    return combine(o->conf, request, &spec, text, err);
}

/* Is a user's request in accord with the site's wishes?  off always is. */
static int judge(const struct pt_options *o, const struct pt_spec *spec, struct pt_err *err)
{
    if (!o->conf || spec->off)
        return 0;
    return pt_policy_judge(o->conf, o->who_known ? &o->who : NULL, spec, err);
}

int pt_options_request(struct pt_options *o, const char *text, struct pt_err *err)
{
    struct pt_spec spec;
    char combined[PT_SPEC_MAX];

    if (combine(o->conf, text, &spec, combined, err) < 0 || judge(o, &spec, err) < 0)
        return -1;
    strcpy(o->request, text);
    o->requested = 1;
    return 0;
}

int pt_options_decide(const struct pt_options *o, const char *env, struct pt_spec *spec,
                      char text[PT_SPEC_MAX], struct pt_err *err)
{
    const char *request = o->requested ? o->request : env;
    int asked = request != NULL;

    if (!asked && o->conf)
        request = pt_policy_unasked(o->conf, o->who_known ? &o->who : NULL);
    if (!request)
        return 0;
    if (combine(o->conf, request, spec, text, err) < 0 || (asked && judge(o, spec, err) < 0))
        return -1;
    return !spec->off;
}

/* ---- the other parts --------------------------------------------------------- */

const char *pt_options_preload(const struct pt_options *o)
{
    if (o->preload[0])
        return o->preload;
    return o->conf && o->conf->preload_library ? o->conf->preload_library : DEFAULT_PRELOAD;
}

const char *pt_options_watchdog(const struct pt_options *o)
{
    if (o->watchdog[0])
        return o->watchdog;
    return o->conf && o->conf->watchdog ? o->conf->watchdog : DEFAULT_WATCHDOG;
}

int pt_options_ld_preload(const char *old, const char *library, char *out, size_t size)
{
    static const char separators[] = ": ";
    size_t length = strlen(library);
    int there = 0, n;

    if (!old)
        old = "";
    for (const char *s = old; *s;) {
        size_t span = strcspn(s, separators);

        if (span == length && memcmp(s, library, length) == 0)
            there = 1;
        s += span;
        s += strspn(s, separators);
    }
    n = there ? snprintf(out, size, "%s", old)
              : snprintf(out, size, "%s%s%s", old, *old ? ":" : "", library);
    return (size_t)n < size ? 0 : -1;
}

void pt_options_ld_preload_without(const char *old, const char *library, char *out)
{
    static const char separators[] = ": ";
    size_t length = strlen(library);
    char *end = out;

    for (const char *s = old + strspn(old, separators); *s; s += strspn(s, separators)) {
        size_t span = strcspn(s, separators);

        if (span != length || memcmp(s, library, length) != 0) {
            if (end != out)
                *end++ = ':';
            memcpy(end, s, span);
            end += span;
        }
        s += span;
    }
    *end = '\0';
}
