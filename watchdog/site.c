/*
 * What the site wants of a run: anonymous names, limits, the user's own directory.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "watchdog/watchdog.h"

#define KEY_MS 5000

/* ---- anonymous names --------------------------------------------------------------- */

/* "key HEX\n", the plugin's first line; byte by byte, for what follows is not ours. */
static int hear_key(int fd, struct pt_anon_key *key, struct pt_err *err)
{
    char line[4 + PT_ANON_HEX];
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    size_t n = 0;
    while (n < sizeof(line)) {
        if (poll(&pfd, 1, KEY_MS) != 1 || read(fd, line + n, 1) != 1)
            break;
        if (line[n++] == '\n') {
            line[n - 1] = 0;
            int rc = strncmp(line, "key ", 4) ? -1 : pt_anon_parse_key(line + 4, key);
            explicit_bzero(line, sizeof(line));
            if (!rc)
                return 0;
            break;
        }
    }
    return pt_err_set(err, "no key for anonymous names came from the plugin");
}

char *wd_site_name(const struct wd *wd, const char *path, size_t size)
{
    char *copy = strndup(path, size), *hidden = NULL;
    if (!copy || !wd->anonymous)
        return copy;
    hidden = malloc(PT_STRING_MAX);
    if (hidden)
        pt_anon_path(&wd->key, copy, hidden, PT_STRING_MAX);
    free(copy);
    return hidden;
}

void wd_site_hide(const struct wd *wd, struct pt_event *ev)
{
    static char hidden[PT_NSTRINGS][PT_STRING_MAX + 1];
    const int text = pt_field_string(PT_F_TEXT);
    if (!wd->anonymous)
        return;
    for (int i = 0; i < PT_NSTRINGS; i++) {
        if (!ev->str[i])
            continue;
        if (i != text || pt_calls[ev->op].replay == PT_REPLAY_SYMLINK)
            pt_anon_path(&wd->key, ev->str[i], hidden[i], sizeof(hidden[i]));
        else if (strstr(pt_calls[ev->op].name, "xattr"))
            pt_anon_attribute(&wd->key, ev->str[i], hidden[i], sizeof(hidden[i]));
        else
            continue; /* our own words, or numbers of ranks */
        ev->str[i] = hidden[i];
    }
}

/* What is said of the run: who, and with which SPEC. */
static int hide_options(struct wd *wd, struct pt_err *err)
{
    char *spec = strdup(wd->opt.spec_text);
    char *user = wd->opt.user ? wd_site_name(wd, wd->opt.user, 256) : NULL;
    if (!spec || (wd->opt.user && !user)) {
        free(spec);
        free(user);
        return pt_err_errno(err, "cannot start");
    }
    pt_anon_spec(spec);
    wd->opt.spec_text = spec;
    wd->opt.user = user;
    return 0;
}

/* ---- the user's own directory ---------------------------------------------------------- */

/* Its parent may be everybody's: what somebody else has put there is not used. */
static int make_root(const char *root, struct pt_err *err)
{
    struct stat st;
    if (mkdir(root, 0700) && errno != EEXIST)
        return pt_err_errno(err, "cannot make '%s'", root);
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return pt_err_errno(err, "cannot open '%s'", root);
    int rc = fstat(fd, &st);
    close(fd);
    if (rc || st.st_uid != geteuid())
        return pt_err_set(err, "cannot use '%s': it belongs to another user", root);
    return 0;
}

int wd_site_begin(struct wd *wd, struct pt_err *err)
{
    wd->anonymous = wd->opt.anonymise || wd->opt.key_file;
    if (wd->opt.key_file) {
        if (pt_anon_read_key(wd->opt.key_file, &wd->key, err))
            return -1;
    } else if (wd->anonymous && hear_key(wd->opt.control, &wd->key, err)) {
        return -1;
    }
    if (wd->anonymous && hide_options(wd, err))
        return -1;
    return wd->opt.root ? make_root(wd->opt.root, err) : 0;
}

/* ---- limits ------------------------------------------------------------------------------ */

int wd_site_ends(struct wd *wd, const struct pt_event *ev)
{
    const struct wd_options *opt = &wd->opt;
    if (!wd->limit && opt->max_size && pt_writer_size(wd->writer) >= opt->max_size)
        wd->limit = "max_size";
    if (!wd->limit && opt->max_time && ev->begin > wd->started + opt->max_time)
        wd->limit = "max_time";
    return wd->limit != NULL;
}

void wd_site_reason(const struct wd *wd, char *buf, size_t size)
{
    char number[PT_SPEC_NUMBER];
    int by_size = !strcmp(wd->limit, "max_size");
    snprintf(buf, size, "%lu events came after the site's limit, %s %s", wd->lost, wd->limit,
             by_size ? pt_spec_format_size(number, wd->opt.max_size)
                     : pt_spec_format_time(number, wd->opt.max_time));
}
