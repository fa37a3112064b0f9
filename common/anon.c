#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/anon.h"

#define KEY_FILE_MIN  16
#define KEY_FILE_MAX  4096
#define HASH_CHARS    12 /* of 5 bits: a million names differ but for one chance in a million */
#define EXTENSION_MAX 8
#define NAME_ROOM     (1 + HASH_CHARS + 1 + EXTENSION_MAX)

/* ---- keys ------------------------------------------------------------------------- */

/* The content of the key's file; -1 and err. */
static ssize_t read_secret(int fd, const char *path, unsigned char *buf, size_t size,
                           struct pt_err *err)
{
    struct stat st;
    ssize_t n;

    if (fstat(fd, &st) < 0)
        return pt_err_errno(err, "%s", path);
    if (!S_ISREG(st.st_mode))
        return pt_err_set(err, "%s: not a regular file", path);
    if (st.st_uid != 0 && st.st_uid != geteuid())
        return pt_err_set(err, "%s: belongs to another user", path);
    if (st.st_mode & 077)
        return pt_err_set(err, "%s: others than its owner have access to it", path);
    n = read(fd, buf, size);
    if (n < 0)
        return pt_err_errno(err, "%s", path);
    if (n < KEY_FILE_MIN)
        return pt_err_set(err, "%s: shorter than %d bytes", path, KEY_FILE_MIN);
    return n;
}

int pt_anon_read_key(const char *path, struct pt_anon_key *key, struct pt_err *err)
{
    static const unsigned char none[PT_SIPHASH_KEY];
    unsigned char buf[KEY_FILE_MAX];
    struct pt_siphash h;
    ssize_t n;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0)
        return pt_err_errno(err, "%s", path);
    n = read_secret(fd, path, buf, sizeof(buf), err);
    close(fd);
    if (n < 0)
        return -1;
    pt_siphash_begin(&h, none);
    pt_siphash_add(&h, buf, n);
    pt_siphash_end(&h, key->bytes);
    explicit_bzero(buf, sizeof(buf));
    explicit_bzero(&h, sizeof(h));
    return 0;
}

void pt_anon_user_key(const struct pt_anon_key *site, uid_t uid, struct pt_anon_key *user)
{
    char text[32];
    struct pt_siphash h;

    snprintf(text, sizeof(text), "paratrace user %u", (unsigned)uid);
    pt_siphash_begin(&h, site->bytes);
    pt_siphash_add(&h, text, strlen(text));
    pt_siphash_end(&h, user->bytes);
    explicit_bzero(&h, sizeof(h));
}

void pt_anon_format_key(const struct pt_anon_key *key, char hex[PT_ANON_HEX])
{
    for (int i = 0; i < PT_SIPHASH_KEY; i++)
        snprintf(hex + 2 * i, 3, "%02x", key->bytes[i]);
}

int pt_anon_parse_key(const char *hex, struct pt_anon_key *key)
{
    if (strlen(hex) != PT_ANON_HEX - 1 || strspn(hex, "0123456789abcdef") != PT_ANON_HEX - 1)
        return -1;
    for (int i = 0; i < PT_SIPHASH_KEY; i++) {
        char byte[3] = {hex[2 * i], hex[2 * i + 1], '\0'};

        key->bytes[i] = strtoul(byte, NULL, 16);
    }
    return 0;
}

/* ---- names ---------------------------------------------------------------------------- */

/* Names of the system that tell nothing about who uses it. */
static int is_common(const char *name, size_t len)
{
    static const char *const names[] = {
        ".",    "..",    "bin",  "dev",     "etc",  "fd",     "full",  "home",
        "lib",  "lib64", "null", "opt",     "proc", "pts",    "ptmx",  "random",
        "root", "run",   "sbin", "self",    "shm",  "stderr", "stdin", "stdout",
        "sys",  "tmp",   "tty",  "urandom", "usr",  "var",    "zero"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strlen(names[i]) == len && memcmp(name, names[i], len) == 0)
            return 1;
    }
    return 0;
}

/* With its dot, or len if the name has none: not at its beginning, and short. */
static size_t find_extension(const char *name, size_t len)
{
    size_t at = len;

    while (at > 1 && isalnum((unsigned char)name[at - 1]) && len - at < EXTENSION_MAX)
        at--;
    return at > 1 && at < len && name[at - 1] == '.' ? at - 1 : len;
}

/* Writes at most NAME_ROOM characters, without a NUL; returns how many. */
static size_t put_name(const struct pt_anon_key *key, const char *name, size_t len, char *out)
{
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
    size_t extension = find_extension(name, len), n = 0;
    unsigned char hash[PT_SIPHASH_LEN];
    struct pt_siphash h;
    uint64_t bits = 0;

    pt_siphash_begin(&h, key->bytes);
    pt_siphash_add(&h, name, len);
    pt_siphash_end(&h, hash);
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | hash[i];
    if (name[0] == '.')
        out[n++] = '.';
    for (int i = 0; i < HASH_CHARS; i++, bits >>= 5)
        out[n++] = digits[bits & 31];
    memcpy(out + n, name + extension, len - extension);
    return n + len - extension;
}

void pt_anon_path(const struct pt_anon_key *key, const char *path, char *out, size_t size)
{
    const char *s = path;
    size_t used = 0;

    while (*s) {
        size_t len = strcspn(s, "/");

        if (used + NAME_ROOM + 2 + NAME_ROOM > size) /* the last one: there must be room for it */
            len = strlen(s);
        if (len == 0)
            out[used++] = *s++;
        else if (is_common(s, len))
            used += (size_t)snprintf(out + used, size - used, "%.*s", (int)len, s);
        else
            used += put_name(key, s, len, out + used);
        s += len;
    }
    out[used] = '\0';
}

void pt_anon_attribute(const struct pt_anon_key *key, const char *name, char *out, size_t size)
{
    size_t space = strcspn(name, ".");

    if (strncmp(name, "user.", 5) != 0 || !name[5]) { /* the others are the system's */
        snprintf(out, size, "%s", name);
        return;
    }
    space = (size_t)snprintf(out, size, "%.*s.", (int)space, name);
    out[space + put_name(key, name + space, strlen(name + space), out + space)] = '\0';
}

/* ---- SPEC -------------------------------------------------------------------------------- */

void pt_anon_spec(char *text)
{
    static const char *const named[] = {"out=", "exe=", "noexe=", "path=", "nopath=", "plan="};
    char *to = text;

    for (const char *s = text; *s;) {
        const char *end = s;
        int keep = 1;

        while (*end && *end != ',')
            end += end[0] == '\\' && end[1] == ',' ? 2 : 1;
        for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
            keep &= strncmp(s, named[i], strlen(named[i])) != 0;
        if (keep) {
            if (to > text)
                *to++ = ',';
            memmove(to, s, (size_t)(end - s));
            to += end - s;
        }
        s = *end ? end + 1 : end;
    }
    *to = '\0';
}
