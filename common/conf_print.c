#include "config.h"

#include <string.h>

#include "common/conf.h"
#include "common/conf_table.h"
#include "common/json.h"
#include "common/spec.h"

/* The value as text, "" if there is none; not of a list. */
static const char *get_text(const struct pt_conf *conf, const struct pt_directive *d,
                            char buf[PT_SPEC_NUMBER])
{
    const void *field = (const char *)conf + d->field;
    const char *value = NULL;
    uint64_t number = 0;

    if (d->kind == PT_DIRECTIVE_STRING)
        value = *(char *const *)field;
    else if (d->kind == PT_DIRECTIVE_CHOICE)
        value = d->words[*(const int *)field];
    else
        number = *(const uint64_t *)field;
    if (number && d->kind == PT_DIRECTIVE_TIME)
        value = pt_spec_format_time(buf, number);
    else if (number && d->kind == PT_DIRECTIVE_SIZE)
        value = pt_spec_format_size(buf, number);
    else if (number) {
        snprintf(buf, PT_SPEC_NUMBER, "%llu", (unsigned long long)number);
        value = buf;
    }
    if (!value)
        value = d->standard;
    return value ? value : "";
}

static int is_standard(const struct pt_conf *conf, const struct pt_directive *d)
{
    char buf[PT_SPEC_NUMBER];

    if (d->kind == PT_DIRECTIVE_LIST)
        return !((const struct pt_conf_list *)((const char *)conf + d->field))->set;
    return strcmp(get_text(conf, d, buf), d->standard ? d->standard : "") == 0;
}

/* In quotes, as libconfuse reads them. */
static void put_string(FILE *f, const char *s)
{
    fputc('"', f);
    for (; *s; s++) {
        if (*s == '"' || *s == '\\' || *s == '$')
            fputc('\\', f);
        fputc(*s, f);
    }
    fputc('"', f);
}

static void put_list(FILE *f, const struct pt_conf_list *list, void (*put)(FILE *f, const char *s),
                     const char *brackets)
{
    fputc(brackets[0], f);
    for (unsigned i = 0; i < list->n; i++) {
        fputs(i ? ", " : "", f);
        put(f, list->item[i]);
    }
    fputc(brackets[1], f);
}

void pt_conf_print(const struct pt_conf *conf, FILE *f)
{
    char buf[PT_SPEC_NUMBER];

    for (int i = 0; i < PT_DIRECTIVES; i++) {
        const struct pt_directive *d = &pt_directives[i];
        const struct pt_conf_list *list =
            (const struct pt_conf_list *)((const char *)conf + d->field);

        fprintf(f, "%s%s = ", is_standard(conf, d) ? "# " : "", d->name);
        if (d->kind == PT_DIRECTIVE_LIST)
            put_list(f, list, put_string, "{}");
        else
            put_string(f, get_text(conf, d, buf));
        fputc('\n', f);
    }
}

void pt_conf_print_json(const struct pt_conf *conf, FILE *f)
{
    char buf[PT_SPEC_NUMBER];

    for (int i = 0; i < PT_DIRECTIVES; i++) {
        const struct pt_directive *d = &pt_directives[i];
        const struct pt_conf_list *list =
            (const struct pt_conf_list *)((const char *)conf + d->field);

        fprintf(f, "%s\"%s\": ", i ? ", " : "{", d->name);
        if (d->kind != PT_DIRECTIVE_LIST)
            pt_json_string(f, get_text(conf, d, buf));
        else if (list->set)
            put_list(f, list, pt_json_string, "[]");
        else
            fputs("null", f);
    }
    fputs("}", f);
}
