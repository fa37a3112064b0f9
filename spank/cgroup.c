#include "config.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "spank/cgroup.h"

#define MOUNT "/sys/fs/cgroup" /* Slurm's CgroupMountpoint, unless a site has changed it */

struct text {
    char *at;
    size_t left;
    int full;
};

static void add(struct text *t, const char *s, size_t n)
{
    if (t->full || n >= t->left) {
        t->full = 1;
        return;
    }
    memcpy(t->at, s, n);
    t->at += n;
    t->left -= n;
    *t->at = '\0';
}

/* Is the memory controller in "cpu,memory,..."?  Only that one counts against a job. */
static int has_memory(const char *list, const char *end)
{
    static const char memory[] = "memory";

    while (list < end) {
        size_t n = strcspn(list, ",:");

        if (n == sizeof(memory) - 1 && memcmp(list, memory, n) == 0)
            return 1;
        list += n + 1;
    }
    return 0;
}

/*
 * Version 1:  "4:memory:/slurm/uid_7/job_8/step_0" -> MOUNT/memory/slurm
 * Version 2:  "0::/system.slice/slurmstepd.scope/job_8/step_0/slurm"
 *                                      -> MOUNT/system.slice/slurmstepd.scope/system
 */
int pt_cgroup_way_out(const char *line, char *file, size_t size)
{
    struct text t = {.at = file, .left = size};
    const char *list = strchr(line, ':');
    const char *path = list ? strchr(list + 1, ':') : NULL;
    const char *job = path ? strstr(path, "/job_") : NULL;
    int v2 = path == list + 1;

    if (!job || path[1] != '/')
        return -1;
    if (!v2) {
        job = strstr(path, "/uid_");
        if (!job || !has_memory(list + 1, path))
            return -1;
    }
    path++;
    add(&t, MOUNT, strlen(MOUNT));
    if (!v2)
        add(&t, "/memory", strlen("/memory"));
    add(&t, path, job - path);
    if (v2)
        add(&t, "/system", strlen("/system"));
    add(&t, "/cgroup.procs", strlen("/cgroup.procs"));
    return t.full ? -1 : 0;
}

static void leave(const char *line)
{
    char file[1024];
    int fd =
        pt_cgroup_way_out(line, file, sizeof(file)) < 0 ? -1 : open(file, O_WRONLY | O_CLOEXEC);

    if (fd >= 0) {
        ssize_t ignored = write(fd, "0", 1); /* who writes it */
        (void)ignored;
        close(fd);
    }
}

void pt_cgroup_leave(void)
{
    char text[4096];
    int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return;
    text[n] = '\0';
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        leave(line);
    }
}
