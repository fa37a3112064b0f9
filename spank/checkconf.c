/*
 * ptcheckconf: is this paratrace.conf right, and what does it mean?  For the admin, before
 * the file goes to the hosts: there a wrong one only shows in that nothing is traced.
 */
#include "config.h"

#include <getopt.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/anon.h"
#include "common/json.h"
#include "spank/options.h"

#define WARNINGS_MAX 64

static void usage(FILE *f)
{
    fputs("usage: ptcheckconf [--json] [FILE]\n"
          "Checks a paratrace.conf (by default the installed one) and prints what it means.\n\n"
          "  --json     print that as JSON\n"
          "  --help, --version\n\n"
          "Exit status: 0 the file is right, 1 it is not, 2 wrong use.\n",
          f);
}

/* ---- what is right and yet may not work on this host ------------------------------------ */

static char *warnings[WARNINGS_MAX];
static unsigned nwarnings;

static void __attribute__((format(printf, 1, 2))) warn(const char *fmt, ...)
{
    char *text;
    va_list ap;

    va_start(ap, fmt);
    if (nwarnings < WARNINGS_MAX && vasprintf(&text, fmt, ap) >= 0)
        warnings[nwarnings++] = text;
    va_end(ap);
}

static void look_at_file(const char *directive, const char *path, int mode)
{
    if (access(path, mode) < 0)
        warn("%s: '%s': %m", directive, path);
}

static void look_at_groups(const char *directive, const struct pt_conf_list *list)
{
    for (unsigned i = 0; i < list->n; i++) {
        const char *name = list->item[i] + (list->item[i][0] == '!');

        if (!getgrnam(name) && strspn(name, "0123456789") != strlen(name))
            warn("%s: there is no group '%s'", directive, name);
    }
}

/* Where users' directories are to be made, everybody must be able to make one. */
static void look_at_root(const struct pt_conf *conf)
{
    char root[PATH_MAX], *slash;
    struct stat st;

    if (!conf->output_root || pt_conf_root(conf, "USER", root, sizeof(root), NULL) < 0 ||
        !strcmp(root + strspn(root, "/"), "USER") || strstr(conf->output_root, "%u/"))
        return;
    slash = strrchr(root, '/');
    *slash = '\0';
    if (stat(root, &st) < 0 || !S_ISDIR(st.st_mode))
        warn("output_root: there is no directory '%s'", root);
    else if ((st.st_mode & 01002) == 0002)
        warn("output_root: in '%s' users can remove each other's directories: no sticky bit", root);
}

static void look_around(const struct pt_options *o)
{
    struct pt_anon_key key;
    struct pt_err err;
    char text[PT_SPEC_MAX];

    if (pt_options_combine(o, o->conf->default_spec, text, &err) < 0)
        warn("default_spec, with the site's other items: %s", err.text);
    look_at_file("preload_library", pt_options_preload(o), R_OK);
    look_at_file("watchdog", pt_options_watchdog(o), X_OK);
    look_at_groups("always_groups", &o->conf->always_groups);
    look_at_groups("allow_groups", &o->conf->allow_groups);
    look_at_groups("throttle_groups", &o->conf->throttle_groups);
    look_at_root(o->conf);
    if (o->conf->anonymise != PT_ANONYMISE_NO &&
        pt_anon_read_key(o->conf->anonymise_key, &key, &err) < 0)
        warn("anonymise_key: %s", err.text);
}

/* ---- what it means ----------------------------------------------------------------------- */

static int has_any(const struct pt_conf_list *a, const struct pt_conf_list *b)
{
    return a->set || b->set;
}

static const char *whom(const struct pt_conf_list *users, const struct pt_conf_list *groups)
{
    if (!has_any(users, groups))
        return "everybody";
    return users->n + groups->n ? "those named" : "nobody";
}

static void explain(const char *path, const struct pt_conf *c, const char *items)
{
    const char *spec = c->default_spec ? c->default_spec : "on";

    printf("# %s is right.\n", path);
    if (has_any(&c->always_users, &c->always_groups) ||
        has_any(&c->always_accounts, &c->always_partitions))
        printf("# Traced unasked: steps of those that always_* name, with '%s'.\n", spec);
    else if (c->default_spec)
        printf("# Traced unasked: all steps, with '%s'.\n", spec);
    else
        puts("# Traced unasked: nothing.");
    printf("# Who may trace: %s.  Who may hold: %s, of these.\n",
           whom(&c->allow_users, &c->allow_groups), whom(&c->throttle_users, &c->throttle_groups));
    if (*items)
        printf("# Every SPEC begins with: %s\n", items);
    if (c->output_root)
        printf("# Run directories: below '%s'%s, %s.\n", c->output_root,
               strstr(c->output_root, "%u") ? "" : ", one directory for each user",
               c->output_confined ? "nowhere else" : "or where out= says");
    if (c->anonymise != PT_ANONYMISE_NO)
        printf("# Names: anonymous, the same in all runs of %s.\n",
               c->anonymise == PT_ANONYMISE_USER ? "a user" : "the site");
    putchar('\n');
    pt_conf_print(c, stdout);
}

static void print_json(const char *path, const struct pt_conf *conf, const char *items,
                       const char *error)
{
    fputs("{\"file\": ", stdout);
    pt_json_string(stdout, path);
    printf(", \"right\": %s, \"error\": ", error ? "false" : "true");
    pt_json_string(stdout, error);
    fputs(", \"items\": ", stdout);
    pt_json_string(stdout, items);
    fputs(", \"warnings\": [", stdout);
    for (unsigned i = 0; i < nwarnings; i++) {
        fputs(i ? ", " : "", stdout);
        pt_json_string(stdout, warnings[i]);
    }
    fputs("], \"settings\": ", stdout);
    if (conf)
        pt_conf_print_json(conf, stdout);
    else
        fputs("null", stdout);
    puts("}");
}

/* ---- the program ---------------------------------------------------------------------------- */

static int check(const char *path, int json)
{
    struct pt_options options;
    struct pt_err err;
    char items[PT_SPEC_MAX];

    pt_options_init(&options);
    if (pt_conf_load(path, &options.conf, &err) < 0) {
        fprintf(stderr, "ptcheckconf: %s\n", err.text);
        if (json)
            print_json(path, NULL, NULL, err.text);
        return 1;
    }
    pt_options_combine(&options, "", items, NULL);
    look_around(&options);
    for (unsigned i = 0; i < nwarnings; i++)
        fprintf(stderr, "ptcheckconf: warning: %s\n", warnings[i]);
    if (json)
        print_json(path, options.conf, items, NULL);
    else
        explain(path, options.conf, items);
    pt_options_clear(&options);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option long_options[] = {{"json", no_argument, NULL, 'j'},
                                                 {"help", no_argument, NULL, 'h'},
                                                 {"version", no_argument, NULL, 'v'},
                                                 {0}};
    int c, json = 0, status;

    while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        switch (c) {
        case 'j':
            json = 1;
            break;
        case 'h':
            usage(stdout);
            return 0;
        case 'v':
            puts("ptcheckconf " PACKAGE_VERSION);
            return 0;
        default:
            usage(stderr);
            return 2;
        }
    }
    if (argc - optind > 1) {
        usage(stderr);
        return 2;
    }
    status = check(optind < argc ? argv[optind] : pt_options_conf_path(NULL), json);
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "ptcheckconf: cannot write: %m\n");
        return 1;
    }
    return status;
}
