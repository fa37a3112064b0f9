#include "config.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "campaign/script.h"

/* ---- options of sbatch that we have to know ------------------------------- */

enum meaning { NAME, PLACEMENT, ARRAY, PTRACE };

static const struct option {
    const char *name;
    char letter;
    enum meaning meaning;
} options[] = {
    {"job-name", 'J', NAME},       {"account", 'A', PLACEMENT},
    {"partition", 'p', PLACEMENT}, {"qos", 'q', PLACEMENT},
    {"reservation", 0, PLACEMENT}, {"array", 'a', ARRAY},
    {"ptrace", 0, PTRACE},         {NULL, 0, NAME},
};

/*
 * The row of an option word, and its value: within the word, or NULL if it is the
 * next one.  NULL for other words.
 */
static const struct option *find_option(const char *word, const char **value)
{
    for (const struct option *o = options; o->name; o++) {
        size_t n = strlen(o->name);
        if (o->letter && word[0] == '-' && word[1] == o->letter) {
            *value = word[2] ? word + 2 : NULL;
            return o;
        }
        if (strncmp(word, "--", 2) || strncmp(word + 2, o->name, n))
            continue;
        if (word[2 + n] == '=' || word[2 + n] == '\0') {
            *value = word[2 + n] ? word + 2 + n + 1 : NULL;
            return o;
        }
    }
    return NULL;
}

static void set_placement(struct script *s, const char *name, const char *value)
{
    char *word = xasprintf("--%s=%s", name, value);
    size_t n = strlen(name) + 3;

    for (size_t i = 0; i < s->placement.n; i++) {
        if (strncmp(s->placement.v[i], word, n) == 0) {
            free(s->placement.v[i]);
            s->placement.v[i] = word;
            return;
        }
    }
    list_take(&s->placement, word);
}

static int use_words(struct script *s, const struct list *words, struct pt_err *err)
{
    for (size_t i = 0; i < words->n; i++) {
        const char *value;
        const struct option *o = find_option(words->v[i], &value);
        if (!o)
            continue;
        if (!value)
            value = i + 1 < words->n ? words->v[++i] : "";
        if (o->meaning == ARRAY)
            return pt_err_set(err, "it asks for a job array, which a campaign cannot trace");
        if (o->meaning == NAME) {
            free(s->name);
            s->name = xstrdup(value);
        } else if (o->meaning == PLACEMENT) {
            set_placement(s, o->name, value);
        }
    }
    return 0;
}

/* ---- lines ---------------------------------------------------------------- */

/* Splits as sbatch does: blanks, quotes, a '#' that begins a comment. */
static void split_words(const char *line, struct list *words)
{
    char *word = xcalloc(strlen(line) + 1, 1);
    const char *p = line;

    for (;;) {
        size_t n = 0;
        char quote = 0;
        while (isspace((unsigned char)*p))
            p++;
        if (!*p || *p == '#')
            break;
        for (; *p && (quote || !isspace((unsigned char)*p)); p++) {
            if (quote ? *p == quote : *p == '"' || *p == '\'')
                quote = quote ? 0 : *p;
            else if (*p == '\\' && p[1] && quote != '\'')
                word[n++] = *++p;
            else
                word[n++] = *p;
        }
        word[n] = '\0';
        list_add(words, word);
    }
    free(word);
}

/* One #SBATCH line; keep: it has to stand in our script. */
static int use_line(struct script *s, const char *text, bool *keep, struct pt_err *err)
{
    struct list words = {0};
    const char *value;

    split_words(text, &words);
    int rc = use_words(s, &words, err);
    if (!rc && words.n && (!strcmp(words.v[0], "hetjob") || !strcmp(words.v[0], "packjob")))
        rc = pt_err_set(err, "it is a heterogeneous job, which a campaign cannot trace");
    /* What is traced, and how, is the campaign's. */
    const struct option *o = words.n ? find_option(words.v[0], &value) : NULL;
    *keep = !(o && o->meaning == PTRACE && words.n == (value ? 1 : 2));
    list_clear(&words);
    return rc;
}

static bool is_comment(const char *line)
{
    line += strspn(line, " \t\r\f\v");
    return *line == '#' || *line == '\0';
}

/* Takes the line at *text off; without its newline, for free(). */
static char *next_line(const char **text)
{
    size_t n = strcspn(*text, "\n");
    char *line = xasprintf("%.*s", (int)n, *text);
    *text += n + ((*text)[n] == '\n');
    return line;
}

int script_read(struct script *s, const char *text, const struct list *extra, struct pt_err *err)
{
    static const char *const magic[] = {"#SBATCH", "#PBS"};
    int rc = 0;

    *s = (struct script){0};
    if (strncmp(text, "#!", 2))
        return pt_err_set(err, "it is no batch script: its first line must begin with '#!'");
    while (*text && !rc) {
        char *line = next_line(&text);
        bool keep = false, more = is_comment(line);
        for (size_t i = 0; i < sizeof(magic) / sizeof(magic[0]) && !rc; i++) {
            size_t n = strlen(magic[i]);
            if (strncmp(line, magic[i], n) == 0)
                rc = use_line(s, line + n, &keep, err);
        }
        if (keep && !rc)
            list_add(&s->lines, line);
        free(line);
        if (!more)
            break;
    }
    if (!rc)
        rc = use_words(s, extra, err);
    if (rc)
        script_clear(s);
    return rc;
}

void script_clear(struct script *s)
{
    list_clear(&s->lines);
    list_clear(&s->placement);
    free(s->name);
    *s = (struct script){0};
}

/* ---- quoting --------------------------------------------------------------- */

/* Puts `before` before each of the characters `special`. */
static char *escape(const char *s, const char *special, const char *const before[])
{
    char *out = xcalloc(strlen(s) * 2 + 1, 1), *p = out;

    for (; *s; s++) {
        const char *hit = strchr(special, *s);
        if (hit)
            p = stpcpy(p, before[hit - special]);
        *p++ = *s;
    }
    return out;
}

char *script_pattern(const char *s)
{
    return escape(s, "%", (const char *const[]){"%"});
}

char *script_spec_value(const char *s)
{
    return escape(s, "%,", (const char *const[]){"%", "\\"});
}

char *script_quote(const char *s)
{
    char *out = xcalloc(strlen(s) * 4 + 3, 1), *p = out;

    *p++ = '\'';
    for (; *s; s++) {
        if (*s == '\'')
            p = stpcpy(p, "'\\''");
        else
            *p++ = *s;
    }
    *p = '\'';
    return out;
}

char *script_make(const struct list *lines, const char *const words[])
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    if (!f)
        return NULL;
    fputs("#!/bin/bash\n", f);
    for (size_t i = 0; lines && i < lines->n; i++)
        fprintf(f, "%s\n", lines->v[i]);
    fputs("# Made by ptcampaign.\nexec", f);
    for (; *words; words++) {
        char *quoted = script_quote(*words);
        fprintf(f, " %s", quoted);
        free(quoted);
    }
    fputs(" \"$@\"\n", f);
    if (fclose(f)) {
        free(text);
        return NULL;
    }
    return text;
}
