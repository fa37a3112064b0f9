/*
 * Calls about names and attributes: looking, linking, renaming, modes, owners, times,
 * extended attributes.  Prints the trace it expects.  Run in an empty directory.
 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include "tests/tracer/expect.h"

ssize_t __readlink_chk(const char *path, char *buf, size_t n, size_t size);
ssize_t __readlinkat_chk(int dirfd, const char *path, char *buf, size_t n, size_t size);
int __xmknod(int version, const char *path, mode_t mode, dev_t *dev);
int __xmknodat(int version, int dirfd, const char *path, mode_t mode, dev_t *dev);
char *__realpath_chk(const char *path, char *out, size_t size);

static int file, dir; /* descriptors of "a" and "d" */

static void prepare(void)
{
    file = open("a", O_RDWR | O_CREAT, 0644);
    expect(file, "open(\"a\", O_RDWR|O_CREAT, 0644)");
    expect(mkdir("d", 0755), "mkdir(\"d\", 0755)");
    dir = open("d", O_RDONLY | O_DIRECTORY);
    expect(dir, "open(\"d\", O_RDONLY|O_DIRECTORY)");
    expect(openat(dir, "no", O_RDONLY), "openat(%d, \"no\", O_RDONLY)", dir);
}

/* ---- looking ---------------------------------------------------------------------------- */

static void stats(void)
{
    struct stat st;
    struct stat64 st64;
    struct statx sx;
    expect(stat("a", &st), "stat(\"a\")");
    expect(stat("no", &st), "stat(\"no\")");
    expect(stat64("a", &st64), "stat(\"a\")");
    expect(lstat("a", &st), "lstat(\"a\")");
    expect(lstat("no", &st), "lstat(\"no\")");
    expect(lstat64("a", &st64), "lstat(\"a\")");
    expect(fstat(file, &st), "fstat(%d)", file);
    expect(fstat64(dir, &st64), "fstat(%d)", dir);
    expect(fstatat(AT_FDCWD, "a", &st, 0), "fstatat(\"a\", 0)");
    expect(fstatat(dir, "../a", &st, AT_SYMLINK_NOFOLLOW), "fstatat(%d, \"../a\", %#x)", dir,
           AT_SYMLINK_NOFOLLOW);
    expect(fstatat64(dir, "no", &st64, 0), "fstatat(%d, \"no\", 0)", dir);
    expect(statx(AT_FDCWD, "a", 0, STATX_BASIC_STATS, &sx), "statx(\"a\", 0)");
    expect(statx(file, "", AT_EMPTY_PATH, STATX_SIZE, &sx), "statx(%d, \"\", %#x)", file,
           AT_EMPTY_PATH);
    expect(statx(dir, "no", 0, STATX_SIZE, &sx), "statx(%d, \"no\", 0)", dir);
}

/* What stat was in older releases: programs built with them still call it. */
static void old_stats(void)
{
    struct stat st;
    int (*xstat)(int, const char *, struct stat *), (*lxstat)(int, const char *, struct stat *);
    int (*fxstat)(int, int, struct stat *);
    int (*fxstatat)(int, int, const char *, struct stat *, int);
    const int version = 1;
    *(void **)&xstat = dlsym(RTLD_DEFAULT, "__xstat");
    *(void **)&lxstat = dlsym(RTLD_DEFAULT, "__lxstat");
    *(void **)&fxstat = dlsym(RTLD_DEFAULT, "__fxstat");
    *(void **)&fxstatat = dlsym(RTLD_DEFAULT, "__fxstatat");
    if (!xstat || !lxstat || !fxstat || !fxstatat)
        abort();
    expect(xstat(version, "a", &st), "__xstat(\"a\")");
    expect(xstat(version, "no", &st), "__xstat(\"no\")");
    expect(lxstat(version, "a", &st), "__lxstat(\"a\")");
    expect(fxstat(version, file, &st), "__fxstat(%d)", file);
    expect(fxstatat(version, dir, "../a", &st, 0), "__fxstatat(%d, \"../a\", 0)", dir);
}

static void file_systems(void)
{
    struct statfs fs;
    struct statvfs vfs;
    expect(statfs("a", &fs), "statfs(\"a\")");
    expect(statfs("no", &fs), "statfs(\"no\")");
    expect(fstatfs(file, &fs), "fstatfs(%d)", file);
    expect(statvfs(".", &vfs), "statvfs(\".\")");
    expect(statvfs("no", &vfs), "statvfs(\"no\")");
    expect(fstatvfs(dir, &vfs), "fstatvfs(%d)", dir);
}

static void accesses(void)
{
    expect(access("a", R_OK | W_OK), "access(\"a\", %#x)", R_OK | W_OK);
    expect(access("no", F_OK), "access(\"no\", 0)");
    expect(euidaccess("a", R_OK), "euidaccess(\"a\", %#x)", R_OK);
    expect(eaccess("no", R_OK), "euidaccess(\"no\", %#x)", R_OK);
    expect(faccessat(dir, "../a", R_OK, AT_EACCESS), "faccessat(%d, \"../a\", %#x)", dir, R_OK);
    expect(faccessat(AT_FDCWD, "no", F_OK, 0), "faccessat(\"no\", 0)");
}

static void canonical(void)
{
    char *name = canonicalize_file_name("a");
    expect(name ? 0 : -1, "canonicalize_file_name(\"a\")");
    free(name);
    expect(canonicalize_file_name("no") ? 0 : -1, "canonicalize_file_name(\"no\")");
}

static void links_read(void)
{
    char buf[PATH_MAX];
    struct {
        struct file_handle head;
        char room[MAX_HANDLE_SZ];
    } handle = {.head.handle_bytes = MAX_HANDLE_SZ};
    int mount;
    expect(symlink("a", "s"), "symlink(\"s\", \"a\")");
    expect(symlink("a", "s"), "symlink(\"s\", \"a\")");
    expect(symlinkat("../a", dir, "s"), "symlinkat(%d, \"s\", \"../a\")", dir);
    expect(readlink("s", buf, 100), "readlink(\"s\", 100)");
    expect(readlink("a", buf, 100), "readlink(\"a\", 100)");
    expect(__readlink_chk("s", buf, 100, sizeof(buf)), "__readlink_chk(\"s\", 100)");
    expect(readlinkat(dir, "s", buf, 50), "readlinkat(%d, \"s\", 50)", dir);
    expect(readlinkat(AT_FDCWD, "no", buf, 50), "readlinkat(\"no\", 50)");
    expect(__readlinkat_chk(dir, "s", buf, 50, sizeof(buf)), "__readlinkat_chk(%d, \"s\", 50)",
           dir);
    expect(realpath("s", buf) ? 0 : -1, "realpath(\"s\")");
    expect(realpath("no", buf) ? 0 : -1, "realpath(\"no\")");
    expect(__realpath_chk("d/s", buf, sizeof(buf)) ? 0 : -1, "__realpath_chk(\"d/s\")");
    expect(name_to_handle_at(dir, "../a", &handle.head, &mount, 0),
           "name_to_handle_at(%d, \"../a\", 0)", dir);
    expect(name_to_handle_at(AT_FDCWD, "no", &handle.head, &mount, AT_SYMLINK_FOLLOW),
           "name_to_handle_at(\"no\", %#x)", AT_SYMLINK_FOLLOW);
}

/* ---- changing names --------------------------------------------------------------------- */

static void names(void)
{
    char template[] = "temp.XXXXXX", no_template[] = "temp";
    expect(link("a", "l"), "link(\"a\", \"l\")");
    expect(link("no", "l"), "link(\"no\", \"l\")");
    expect(linkat(AT_FDCWD, "s", dir, "l", AT_SYMLINK_FOLLOW), "linkat(\"s\", %d, \"l\", %#x)", dir,
           AT_SYMLINK_FOLLOW);
    expect(linkat(dir, "no", AT_FDCWD, "l2", 0), "linkat(%d, \"no\", \"l2\", 0)", dir);
    expect(rename("l", "l2"), "rename(\"l\", \"l2\")");
    expect(rename("no", "l2"), "rename(\"no\", \"l2\")");
    expect(renameat(AT_FDCWD, "l2", dir, "l2"), "renameat(\"l2\", %d, \"l2\")", dir);
    expect(renameat(dir, "no", dir, "l2"), "renameat(%d, \"no\", %d, \"l2\")", dir, dir);
    expect(renameat2(dir, "l2", AT_FDCWD, "l3", RENAME_NOREPLACE),
           "renameat2(%d, \"l2\", \"l3\", %#x)", dir, RENAME_NOREPLACE);
    expect(renameat2(dir, "l", AT_FDCWD, "l3", RENAME_NOREPLACE),
           "renameat2(%d, \"l\", \"l3\", %#x)", dir, RENAME_NOREPLACE);
    expect(mkdirat(dir, "e", 0700), "mkdirat(%d, \"e\", 0700)", dir);
    expect(mkdirat(dir, "e", 0700), "mkdirat(%d, \"e\", 0700)", dir);
    expect(mkdtemp(template) ? 0 : -1, "mkdtemp(\"%s\", 0700)", template);
    expect(mkdtemp(no_template) ? 0 : -1, "mkdtemp(\"temp\", 0700)");
    expect(rmdir(template), "rmdir(\"%s\")", template);
    expect(unlinkat(dir, "e", AT_REMOVEDIR), "unlinkat(%d, \"e\", %#x)", dir, AT_REMOVEDIR);
    expect(unlinkat(dir, "l", 0), "unlinkat(%d, \"l\", 0)", dir);
    expect(unlinkat(dir, "l", 0), "unlinkat(%d, \"l\", 0)", dir);
    expect(unlink("l3"), "unlink(\"l3\")");
    expect(mkdir("e", 0700), "mkdir(\"e\", 0700)");
    expect(remove("e"), "remove(\"e\")");
    expect(remove("d/s"), "remove(\"d/s\")");
    expect(remove("no"), "remove(\"no\")");
    expect(rmdir("no"), "rmdir(\"no\")");
    expect_name(fchdir(dir), "fchdir(%d)", dir);
    expect_name(chdir(".."), "chdir(\"..\")");
    expect_name(chdir("no"), "chdir(\"no\")");
    expect_name(fchdir(file), "fchdir(%d)", file);
}

/* ---- attributes ------------------------------------------------------------------------- */

/* Pipes have names, too; what is in them is not I/O. */
static void special(void)
{
    __typeof__(__xmknod) *old_mknod = (__typeof__(old_mknod))dlsym(RTLD_DEFAULT, "__xmknod");
    __typeof__(__xmknodat) *old_mknodat =
        (__typeof__(old_mknodat))dlsym(RTLD_DEFAULT, "__xmknodat");
    dev_t none = 0;
    expect_name(mkfifo("p1", 0600), "mkfifo(\"p1\", 0600)");
    expect_name(mkfifo("p1", 0600), "mkfifo(\"p1\", 0600)");
    expect_name(mkfifoat(dir, "p2", 0600), "mkfifoat(%d, \"p2\", 0600)", dir);
    expect_name(mknod("p3", S_IFIFO | 0600, 0), "mknod(\"p3\", 010600)");
    expect_name(mknodat(dir, "p4", S_IFIFO | 0600, 0), "mknodat(%d, \"p4\", 010600)", dir);
    expect_name(old_mknod(0, "p5", S_IFIFO | 0600, &none), "__xmknod(\"p5\", 010600)");
    expect_name(old_mknodat(0, dir, "p6", S_IFIFO | 0600, &none), "__xmknodat(%d, \"p6\", 010600)",
                dir);
}

static void modes(void)
{
    expect(lchmod("a", 0644), "lchmod(\"a\", 0644)");
    expect(chmod("a", 0600), "chmod(\"a\", 0600)");
    expect(chmod("no", 0600), "chmod(\"no\", 0600)");
    expect(fchmod(file, 0640), "fchmod(%d, 0640)", file);
    expect(fchmodat(dir, "../a", 0644, 0), "fchmodat(%d, \"../a\", 0644, 0)", dir);
    expect(fchmodat(AT_FDCWD, "no", 0644, 0), "fchmodat(\"no\", 0644, 0)");
}

static void owners(void)
{
    uid_t uid = getuid();
    gid_t gid = getgid();
    const uid_t same = (uid_t)-1; /* leaves it as it is */
    expect(chown("a", uid, gid), "chown(\"a\", %u, %u)", uid, gid);
    expect(chown("no", same, gid), "chown(\"no\", %u, %u)", same, gid);
    expect(lchown("s", uid, gid), "lchown(\"s\", %u, %u)", uid, gid);
    expect(lchown("no", uid, gid), "lchown(\"no\", %u, %u)", uid, gid);
    expect(fchown(file, uid, gid), "fchown(%d, %u, %u)", file, uid, gid);
    expect(fchownat(dir, "../s", uid, gid, AT_SYMLINK_NOFOLLOW),
           "fchownat(%d, \"../s\", %u, %u, %#x)", dir, uid, gid, AT_SYMLINK_NOFOLLOW);
    expect(fchownat(AT_FDCWD, "no", uid, gid, 0), "fchownat(\"no\", %u, %u, 0)", uid, gid);
}

static void times(void)
{
    struct utimbuf old = {1000000000, 1000000000};
    struct timeval us[2] = {{1000000000, 0}, {1000000000, 0}};
    struct timespec ns[2] = {{1000000000, 0}, {0, UTIME_OMIT}};
    expect(utime("a", &old), "utime(\"a\")");
    expect(utime("no", NULL), "utime(\"no\")");
    expect(utimes("a", us), "utimes(\"a\")");
    expect(utimes("no", us), "utimes(\"no\")");
    expect(futimesat(dir, "../a", us), "futimesat(%d, \"../a\")", dir);
    expect(lutimes("s", us), "lutimes(\"s\")");
    expect(futimes(file, us), "futimes(%d)", file);
    expect(futimens(file, ns), "futimens(%d)", file);
    expect(utimensat(dir, "../a", ns, 0), "utimensat(%d, \"../a\", 0)", dir);
    expect(utimensat(AT_FDCWD, "no", ns, AT_SYMLINK_NOFOLLOW), "utimensat(\"no\", %#x)",
           AT_SYMLINK_NOFOLLOW);
}

/* Where the file system has none, each fails, and the trace shows it. */
static void extended(void)
{
    char buf[256];
    expect(setxattr("a", "user.x", "one", 3, 0), "setxattr(\"a\", \"user.x\", 3)");
    expect(setxattr("no", "user.x", "one", 3, 0), "setxattr(\"no\", \"user.x\", 3)");
    expect(lsetxattr("a", "user.y", "two", 3, XATTR_CREATE), "lsetxattr(\"a\", \"user.y\", 3)");
    expect(fsetxattr(file, "user.z", "four", 4, 0), "fsetxattr(%d, \"user.z\", 4)", file);
    expect(getxattr("a", "user.x", buf, 100), "getxattr(\"a\", \"user.x\", 100)");
    expect(getxattr("a", "user.no", buf, 100), "getxattr(\"a\", \"user.no\", 100)");
    expect(lgetxattr("a", "user.y", buf, 0), "lgetxattr(\"a\", \"user.y\", 0)");
    expect(fgetxattr(file, "user.z", buf, 1), "fgetxattr(%d, \"user.z\", 1)", file);
    expect(listxattr("a", buf, 200), "listxattr(\"a\", 200)");
    expect(llistxattr("a", buf, 200), "llistxattr(\"a\", 200)");
    expect(flistxattr(file, buf, 200), "flistxattr(%d, 200)", file);
    expect(listxattr("no", buf, 200), "listxattr(\"no\", 200)");
    expect(removexattr("a", "user.x"), "removexattr(\"a\", \"user.x\")");
    expect(removexattr("a", "user.x"), "removexattr(\"a\", \"user.x\")");
    expect(lremovexattr("a", "user.y"), "lremovexattr(\"a\", \"user.y\")");
    expect(fremovexattr(file, "user.z"), "fremovexattr(%d, \"user.z\")", file);
}

int main(void)
{
    prepare();
    stats();
    old_stats();
    file_systems();
    accesses();
    canonical();
    links_read();
    names();
    special();
    modes();
    owners();
    times();
    extended();
    return expect_print(1);
}
