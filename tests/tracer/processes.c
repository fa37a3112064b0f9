/*
 * Ways to make processes, one for each name on the command line; t-processes.sh says which nodes
 * must be in the trace, and under which names.  Each process touches a file that tells which it is.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
extern pid_t _Fork(void) __attribute__((weak)); /* since glibc 2.34 */
static char *self;

#define WRITES 300

static int touch(const char *name, int writes)
{
    int fd = open(name, O_WRONLY | O_CREAT, 0600);
    for (int i = 0; i < writes; i++)
        if (write(fd, "x", 1) != 1)
            abort();
    if (close(fd))
        abort();
    return 0;
}

static void wait_for_all(void)
{
    int status;
    while (wait(&status) > 0 || errno == EINTR)
        if (status)
            abort();
}

static _Noreturn void be_child(const char *name)
{
    touch(name, WRITES);
    _exit(0);
}

/* ---- every way, parent and children at work at the same time --------------------------------- */

static int cloned(void *name)
{
    be_child(name);
}

static int execs(void *name)
{
    execl(self, self, "touch", (char *)name, (char *)NULL);
    _exit(1);
}

static char stack[2][65536] __attribute__((aligned(64)));

static int ways(void)
{
    static char by_clone[] = "clone", by_clone_vm[] = "clone-vfork";
    struct clone_args args = {.exit_signal = SIGCHLD};
    if (!fork())
        be_child("fork");
    if (!(_Fork ? _Fork() : fork()))
        be_child("_Fork");
    if (clone(cloned, stack[0] + sizeof(stack[0]), SIGCHLD, by_clone) < 0)
        abort();
    if (clone(execs, stack[1] + sizeof(stack[1]), CLONE_VM | CLONE_VFORK | SIGCHLD, by_clone_vm) <
        0)
        abort();
#ifdef SYS_fork
    if (!syscall(SYS_fork))
#else
    if (!fork())
#endif
        be_child("SYS_fork");
    if (!syscall(SYS_clone, SIGCHLD, 0L, 0L, 0L, 0L))
        be_child("SYS_clone");
    long pid = syscall(SYS_clone3, &args, sizeof(args));
    if (!pid || (pid < 0 && !fork())) /* not everywhere */
        be_child("SYS_clone3");
    touch("parent", WRITES);
    wait_for_all();
    return 0;
}

/* ---- programs, none of which is waited for ----------------------------------------------- */

static int spawns(void)
{
    char name[24], *argv[] = {self, (char *)"touch", name, NULL};
    pid_t pid;
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof(name), "spawn%d", i);
        if (posix_spawn(&pid, self, NULL, NULL, argv, environ))
            abort();
    }
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof(name), "vfork%d", i);
        if (!vfork()) {
            execv(self, argv);
            _exit(1);
        }
    }
    if (!posix_spawn(&pid, "/nonexistent", NULL, NULL, argv, environ))
        abort();
    snprintf(name, sizeof(name), "last");
    if (posix_spawn(NULL, self, NULL, NULL, argv, environ))
        abort();
    wait_for_all();
    return 0;
}

/* Shells, one after the other: libc starts them where it cannot be seen. */
static int shells(void)
{
    char command[512];
    for (int i = 0; i < 3; i++) {
        snprintf(command, sizeof(command), "'%s' touch system%d; :", self, i);
        if (system(command))
            abort();
        snprintf(command, sizeof(command), "'%s' touch popen%d; :", self, i);
        FILE *f = popen(command, "r");
        if (!f || pclose(f))
            abort();
    }
    return 0;
}

/* ---- a tree, all of it at the same time -------------------------------------------------- */

static void grow(char *name, size_t n)
{
    touch(name, 1);
    for (int i = 0; n < 4 && i < 3; i++) {
        name[n] = (char)('a' + i);
        name[n + 1] = 0;
        if (fork())
            continue;
        if (i == 2) { /* becomes another program before it goes on */
            execl(self, self, "tree", name, (char *)NULL);
            abort();
        }
        grow(name, n + 1);
        _exit(0);
    }
    wait_for_all();
}

static int tree(const char *root)
{
    char name[16];
    snprintf(name, sizeof(name), "%s", root);
    grow(name, strlen(name));
    return 0;
}

/* ---- more than have a place in the tree ------------------------------------------------------ */

static int many(void)
{
    for (int i = 0; i < 10020; i++) {
        if (!fork()) {
            touch("many", 1);
            _exit(0);
        }
        if (i % 20 == 19)
            wait_for_all();
    }
    return 0;
}

/* ---- other ids than the watchdog sees -------------------------------------------------------- */

static int namespace(void)
{
    if (unshare(CLONE_NEWPID))
        return 77;
    if (!fork()) {
        for (int i = 0; i < 120; i++) {
            if (!fork())
                be_child("inside");
            if (i % 4 == 3)
                wait_for_all();
        }
        _exit(0);
    }
    wait_for_all();
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } all[] = {
        {"ways", ways}, {"spawns", spawns},       {"shells", shells},
        {"many", many}, {"namespace", namespace},
    };
    self = argv[0];
    if (argc == 3 && !strcmp(argv[1], "touch"))
        return touch(argv[2], WRITES);
    if (argc == 3 && !strcmp(argv[1], "tree"))
        return tree(argv[2]);
    for (size_t i = 0; argc == 2 && i < sizeof(all) / sizeof(all[0]); i++)
        if (!strcmp(argv[1], all[i].name))
            return all[i].run();
    fprintf(stderr, "usage: processes NAME\n");
    return 2;
}
