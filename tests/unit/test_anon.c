/*
 * Anonymous names: what they hide and what they keep.
 */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/anon.h"
#include "tests/unit/run.h"

static struct pt_anon_key key = {"a key of 16 byte"}, other = {"another such key"};

static const char *hide(const char *path)
{
    static char out[8][4096];
    static int turn;

    turn = (turn + 1) % 8;
    pt_anon_path(&key, path, out[turn], sizeof(out[turn]));
    return out[turn];
}

START_TEST(structure)
{
    static const char *const kept[] = {"",           "/",         "//",       ".",
                                       "..",         "/dev/null", "/dev/shm", "./../.",
                                       "/proc/self", "/tmp//",    "/usr/lib/"};
    char joined[200];

    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        ck_assert_str_eq(hide(kept[i]), kept[i]);
    /* Name by name: a path is its directory and its name, wherever it is cut. */
    snprintf(joined, sizeof(joined), "/%s/%s//%s", hide("proj"), hide("run7"), hide("x.dat"));
    ck_assert_str_eq(hide("/proj/run7//x.dat"), joined);
    snprintf(joined, sizeof(joined), "/home/%s", hide("ada"));
    ck_assert_str_eq(hide("/home/ada"), joined);
}
END_TEST

START_TEST(distinct)
{
    enum { N = 20000 };
    static char all[N][16];
    char name[32];

    ck_assert_str_ne(hide("a"), hide("b"));
    ck_assert_str_ne(hide("x.dat"), hide("y.dat"));
    ck_assert_str_ne(hide("x.dat"), hide("x.txt"));
    ck_assert_str_ne(hide("null "), hide("null"));
    ck_assert_str_eq(hide("a/b"), hide("a/b"));
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof(name), "file_%d", i);
        ck_assert_uint_eq(strlen(hide(name)), 12);
        strcpy(all[i], hide(name));
    }
    qsort(all, N, sizeof(all[0]), (int (*)(const void *, const void *))strcmp);
    for (int i = 1; i < N; i++)
        ck_assert_str_ne(all[i - 1], all[i]);
}
END_TEST

static void extension(const char *name, const char *kept)
{
    const char *hidden = hide(name);

    ck_assert_msg(strcmp(hidden + strcspn(hidden, "."), kept) == 0, "%s: %s", name, hidden);
}

START_TEST(extensions)
{
    extension("secret.h5", ".h5");
    extension("secret.tar.gz", ".gz");
    extension("restart.0001", ".0001");
    extension("secret.12345678", ".12345678");
    extension("secret.123456789", "");
    extension("secret.", "");
    extension("secret.a b", "");
    extension("secret", "");
    ck_assert_int_eq(hide(".bashrc")[0], '.');
    ck_assert_uint_eq(strlen(hide(".bashrc")), 13);
    ck_assert_ptr_null(strstr(hide(".bashrc"), "bashrc"));
    ck_assert_ptr_null(strstr(hide("/home/ada/secret.plan/x"), "secret"));
}
END_TEST

START_TEST(keys)
{
    struct pt_anon_key user, again;
    char hex[PT_ANON_HEX], with_other[100];

    pt_anon_path(&other, "name", with_other, sizeof(with_other));
    ck_assert_str_ne(with_other, hide("name"));
    pt_anon_user_key(&key, 1000, &user);
    pt_anon_user_key(&key, 1001, &again);
    ck_assert_mem_ne(&user, &again, sizeof(user));
    ck_assert_mem_ne(&user, &key, sizeof(user));
    again = key;
    pt_anon_user_key(&again, 1000, &again);
    ck_assert_mem_eq(&user, &again, sizeof(user));
    pt_anon_format_key(&key, hex);
    ck_assert_int_eq(pt_anon_parse_key(hex, &again), 0);
    ck_assert_mem_eq(&key, &again, sizeof(key));
    ck_assert_int_eq(pt_anon_parse_key("", &again), -1);
    ck_assert_int_eq(pt_anon_parse_key("0123456789abcdef0123456789abcdeg", &again), -1);
    ck_assert_int_eq(pt_anon_parse_key("0123456789abcdef0123456789abcdef0", &again), -1);
}
END_TEST

START_TEST(key_files)
{
    char path[] = "/tmp/test_anon.XXXXXX", fifo[64];
    int fd = mkstemp(path);
    struct pt_anon_key a, b;
    struct pt_err err;

    ck_assert_int_eq(pt_anon_read_key("/no/such/key", &a, &err), -1);
    ck_assert_str_eq(err.text, "/no/such/key: No such file or directory");
    ck_assert_int_eq(write(fd, "0123456789abcde", 15), 15);
    ck_assert_int_eq(pt_anon_read_key(path, &a, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.text, "shorter than 16 bytes"));
    ck_assert_int_eq(write(fd, "f", 1), 1);
    ck_assert_int_eq(pt_anon_read_key(path, &a, &err), 0);
    ck_assert_int_eq(write(fd, "g", 1), 1);
    ck_assert_int_eq(pt_anon_read_key(path, &b, &err), 0);
    ck_assert_mem_ne(&a, &b, sizeof(a));
    fchmod(fd, 0640);
    ck_assert_int_eq(pt_anon_read_key(path, &a, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.text, "others than its owner"));
    fchmod(fd, 0600);
    if (geteuid() == 0) {
        ck_assert_int_eq(fchown(fd, 4000007, 0), 0);
        ck_assert_int_eq(pt_anon_read_key(path, &a, &err), -1);
        ck_assert_ptr_nonnull(strstr(err.text, "belongs to another user"));
    }
    unlink(path);
    close(fd);
    snprintf(fifo, sizeof(fifo), "/tmp/test_anon.%d", getpid());
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    ck_assert_int_eq(pt_anon_read_key(fifo, &a, &err), -1); /* and does not wait */
    unlink(fifo);
}
END_TEST

/* Even where hidden names are longer than the names, all paths stay different. */
START_TEST(long_paths)
{
    char path[4096], a[4096], b[100], c[100];

    for (int i = 0; i < 4094; i += 2)
        memcpy(path + i, "a/", 3);
    pt_anon_path(&key, path, a, sizeof(a));
    ck_assert_uint_lt(strlen(a), sizeof(a));
    pt_anon_path(&key, path, b, sizeof(b));
    ck_assert_uint_lt(strlen(b), sizeof(b));
    path[4092] = 'b';
    pt_anon_path(&key, path, c, sizeof(c));
    ck_assert_str_ne(b, c);
    memset(path, 'x', sizeof(path) - 1);
    path[4095] = '\0';
    ck_assert_uint_eq(strlen(hide(path)), 12);
    for (size_t size = 100; size < 200; size++) {
        memset(c, '#', sizeof(c));
        pt_anon_path(&key,
                     "/usr/lib/usr/lib/usr/lib/usr/lib/usr/lib/usr/lib/usr/lib/usr/lib/"
                     "usr/lib/usr/lib/urandom/urandom/urandom/urandom/x",
                     a, size);
        ck_assert_uint_lt(strlen(a), size);
    }
}
END_TEST

START_TEST(attributes)
{
    char out[300];

    pt_anon_attribute(&key, "user.secret", out, sizeof(out));
    ck_assert_int_eq(strncmp(out, "user.", 5), 0);
    ck_assert_ptr_null(strstr(out, "secret"));
    pt_anon_attribute(&key, "security.selinux", out, sizeof(out));
    ck_assert_str_eq(out, "security.selinux");
    pt_anon_attribute(&key, "user.", out, sizeof(out));
    ck_assert_str_eq(out, "user.");
}
END_TEST

START_TEST(specs)
{
    static const struct {
        const char *spec, *left;
    } cases[] = {
        {"", ""},
        {"on", "on"},
        {"out=/home/ada", ""},
        {"period=3,out=/home/ada,throttle:1", "period=3,throttle:1"},
        {"out=x,note=a\\,b,path=/p,nopath=q,exe=e,noexe=f,plan=g,on", "note=a\\,b,on"},
        {"note=out=x,buffer=1M", "note=out=x,buffer=1M"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[200];

        strcpy(text, cases[i].spec);
        pt_anon_spec(text);
        ck_assert_str_eq(text, cases[i].left);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("anon");
    TCase *tc = tcase_create("anon");

    tcase_add_test(tc, structure);
    tcase_add_test(tc, distinct);
    tcase_add_test(tc, extensions);
    tcase_add_test(tc, keys);
    tcase_add_test(tc, key_files);
    tcase_add_test(tc, long_paths);
    tcase_add_test(tc, attributes);
    tcase_add_test(tc, specs);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
