/*
 * Processes that are about to be traced: a child that was forked a moment ago, or calls
 * exec, is not known before its tracer begins, and the others may be waiting for it.
 * One that has not come after a while will not come: it is not traced.
 */
#include "config.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "watchdog/watchdog.h"

#define WHILE_NS 1000000000u

static ssize_t read_file(const char *path, char *buf, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);
    if (fd >= 0)
        close(fd);
    buf[n > 0 ? n : 0] = 0;
    return n;
}

/* When the process began, ns since the system did; 0 if it is not there any more. */
static uint64_t started(pid_t pid)
{
    char path[40], buf[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    if (read_file(path, buf, sizeof(buf)) <= 0)
        return 0;
    const char *at = strrchr(buf, ')'); /* the program's name may hold anything */
    uint64_t ticks;
    char state;
    if (!at ||
        sscanf(at + 1,
               " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
               "%*d %lu",
               &state, &ticks) != 2 ||
        state == 'Z')
        return 0;
    return ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
}

static int is_known(const struct wd *wd, pid_t pid)
{
    for (const struct wd_proc *proc = wd->procs; proc; proc = proc->next)
        if (proc->pid == pid)
            return 1;
    return 0;
}

static int is_young(pid_t pid)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    uint64_t now = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec, began = started(pid);
    return began && now < began + WHILE_NS;
}

static int has_young_child(const struct wd *wd, const struct wd_node *node)
{
    char path[64], buf[4096], *at = buf;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", node->proc->pid,
             atomic_load(&node->ring->tid));
    if (read_file(path, buf, sizeof(buf)) <= 0)
        return 0;
    for (char *end; *at; at = end) {
        pid_t pid = (pid_t)strtol(at, &end, 10);
        if (end == at)
            break;
        if (!is_known(wd, pid) && is_young(pid))
            return 1;
    }
    return 0;
}

int wd_strangers(const struct wd *wd)
{
    for (const struct wd_proc *proc = wd->procs; proc; proc = proc->next)
        for (const struct wd_node *node = proc->nodes; node; node = node->next)
            if (has_young_child(wd, node))
                return 1;
    return 0;
}
