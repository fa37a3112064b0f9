#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/glob.h"
#include "watchdog/watchdog.h"

/* Threads a process may have traced; memory is used only by those that come. */
#define SLOTS 256

/* Launchers are not the application. */
static const char *const launchers[] = {"srun",  "mpirun",  "mpiexec", "orterun",
                                        "orted", "prterun", "prted",   "hydra_pmi_proxy"};

/* Where nobody's data are; a path= of the user replaces the list. */
static const char *const default_filters[] = {
    "!/dev/shm/*", "-/dev/*",      "-/proc/*",           "-/sys/*",
    "-*.so",       "-*.so.*",      "-/usr/lib/locale/*", "-/usr/share/locale/*",
    "-*/gconv/*",  "-/etc/ld.so*", "-*/ompi.*",
};

static int any_glob(const struct pt_globs *globs, const char *path)
{
    const char *base = strrchr(path, '/');
    for (unsigned i = 0; i < globs->n; i++)
        if (pt_glob_match(globs->glob[i], path) ||
            (base && pt_glob_match(globs->glob[i], base + 1)))
            return 1;
    return 0;
}

static int wanted_program(const struct wd *wd, const char *exe)
{
    const char *base = strrchr(exe, '/');
    base = base ? base + 1 : exe;
    if (any_glob(&wd->spec.noexe, exe))
        return 0;
    if (wd->spec.exe.n)
        return any_glob(&wd->spec.exe, exe);
    for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++)
        if (!strcmp(base, launchers[i]))
            return 0;
    return 1;
}

static char *add_filter(char *at, const char *end, char sign, const char *glob)
{
    size_t n = strlen(glob);
    if (!n || (size_t)(end - at) < n + 3)
        return at;
    *at = sign;
    memcpy(at + 1, glob, n + 1);
    return at + n + 2;
}

static void fill_filters(const struct pt_spec *spec, char *filters)
{
    char *at = filters;
    const char *end = filters + PT_SHM_FILTERS;
    for (unsigned i = 0; i < spec->nopath.n; i++)
        at = add_filter(at, end, '-', spec->nopath.glob[i]);
    for (unsigned i = 0; i < spec->path.n; i++)
        at = add_filter(at, end, '+', spec->path.glob[i]);
    if (spec->path.n)
        return;
    for (size_t i = 0; i < sizeof(default_filters) / sizeof(default_filters[0]); i++)
        at = add_filter(at, end, default_filters[i][0], default_filters[i] + 1);
}

/* Whom to hold, said before the program runs: its very first I/O may be one to hold. */
static void fill_holds(const struct wd *wd, struct pt_shm *shm)
{
    const int32_t *node = wd->spec.node;
    if (wd->opt.nhosts > 1 || wd->spec.throttle == PT_THROTTLE_NONE)
        return; /* who is stuck on other hosts cannot be seen from here */
    if (wd->spec.throttle == PT_THROTTLE_NODE &&
        (shm->name.rank != node[0] || shm->name.process != node[1]))
        return;
    shm->hold_period = wd->spec.period;
    shm->hold_thread = wd->spec.throttle == PT_THROTTLE_NODE ? node[2] : -1;
}

static void init_nodes(struct wd_proc *proc)
{
    for (uint32_t i = 0; i < proc->nslots; i++) {
        struct wd_node *node = &proc->nodes[i];
        node->proc = proc;
        node->name = (struct pt_name){proc->name.rank, proc->name.process, (int32_t)i};
        node->ring = pt_shm_ring(proc->shm, i);
        node->stat_fd = node->sched_fd = -1;
    }
}

/* The process' memory, sealed so that the program cannot shrink it under our feet. */
static int make_shm(struct wd *wd, struct wd_proc *proc)
{
    struct pt_shm layout = {
        .magic = PT_SHM_MAGIC,
        .version = PT_SHM_VERSION,
        .nslots = SLOTS,
        .ring_size = (uint32_t)wd->spec.buffer,
        .slot_size = sizeof(struct pt_ring) + wd->spec.buffer,
        .first_slot = (sizeof(struct pt_shm) + 4095) / 4096 * 4096,
        .full = wd->spec.full,
        .watchdog = getpid(),
        .tsc = (uint32_t)wd->clock.tsc,
        .tick_mult = wd->clock.mult,
    };
    fill_filters(&wd->spec, layout.filters);
    proc->nslots = layout.nslots;
    proc->ring_size = layout.ring_size;
    proc->shm_size = layout.first_slot + layout.nslots * layout.slot_size;
    int fd = memfd_create("paratrace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    if (ftruncate(fd, (off_t)proc->shm_size) ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        goto fail;
    proc->shm =
        mmap(NULL, proc->shm_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (proc->shm == MAP_FAILED) {
        proc->shm = NULL;
        goto fail;
    }
    memcpy(proc->shm, &layout, sizeof(layout));
    return fd;
fail:
    close(fd);
    return -1;
}

/* The memory of the others would be made by looking at it. */
uint32_t wd_proc_nodes(const struct wd_proc *proc)
{
    uint32_t taken = atomic_load(&proc->shm->next_slot);
    return taken < proc->nslots ? taken : proc->nslots;
}

static void proc_destroy(struct wd_proc *proc)
{
    if (proc->shm)
        munmap(proc->shm, proc->shm_size);
    if (proc->pidfd >= 0)
        close(proc->pidfd);
    if (proc->memfd >= 0)
        close(proc->memfd);
    for (uint32_t i = 0; proc->nodes && i < proc->nslots; i++) {
        if (proc->nodes[i].stat_fd >= 0)
            close(proc->nodes[i].stat_fd);
        if (proc->nodes[i].sched_fd >= 0)
            close(proc->nodes[i].sched_fd);
    }
    free(proc->nodes);
    free(proc->exe);
    free(proc->cwd);
    free(proc);
}

int wd_rank_joined(const struct wd *wd, int rank)
{
    for (size_t i = 0; i < wd->nranks; i++)
        if (wd->ranks[i].rank == rank)
            return 1;
    return 0;
}

static struct wd_rank *get_rank(struct wd *wd, int rank)
{
    for (size_t i = 0; i < wd->nranks; i++)
        if (wd->ranks[i].rank == rank)
            return &wd->ranks[i];
    struct wd_rank *ranks = realloc(wd->ranks, (wd->nranks + 1) * sizeof(*ranks));
    if (!ranks)
        return NULL;
    wd->ranks = ranks;
    wd->ranks[wd->nranks] = (struct wd_rank){.rank = rank};
    return &wd->ranks[wd->nranks++];
}

/* The number of this process among those of its rank, in the order in which they came. */
static int next_process(struct wd *wd, int rank)
{
    struct wd_rank *r = get_rank(wd, rank);
    return r ? r->processes++ : -1;
}

size_t wd_tasks_unseen(const struct wd *wd)
{
    size_t unseen = 0;
    for (size_t i = 0; i < wd->nexits; i++)
        unseen += !wd_rank_joined(wd, wd->exits[i].task);
    return unseen;
}

static struct wd_proc *find_pid(struct wd *wd, pid_t pid)
{
    for (struct wd_proc *proc = wd->procs; proc; proc = proc->next)
        if (proc->pid == pid)
            return proc;
    return NULL;
}

static struct wd_proc *proc_create(struct wd *wd)
{
    struct wd_proc *proc = calloc(1, sizeof(*proc));
    if (!proc)
        return NULL;
    proc->pidfd = -1;
    proc->nodes = calloc(SLOTS, sizeof(*proc->nodes));
    proc->memfd = proc->nodes ? make_shm(wd, proc) : -1;
    if (proc->memfd < 0) {
        proc_destroy(proc);
        return NULL;
    }
    return proc;
}

void wd_proc_prepare(struct wd *wd)
{
    if (!wd->spare)
        wd->spare = proc_create(wd);
}

/* The process that greets, with the memory that was made ready for it; NULL: none can be had. */
static struct wd_proc *proc_add(struct wd *wd, pid_t pid, const struct pt_hello *hello)
{
    struct wd_proc *proc = find_pid(wd, pid);
    if (proc) /* it has called exec: another program, the same pid */
        wd_proc_ended(wd, proc);
    wd_proc_prepare(wd);
    proc = wd->spare;
    if (!proc)
        return NULL;
    wd->spare = NULL;
    proc->pid = pid;
    proc->start = hello->start;
    proc->exe = strdup(hello->exe);
    proc->cwd = strdup(hello->cwd);
    proc->name.rank = hello->rank < 0 ? 0 : hello->rank;
    proc->name.process = next_process(wd, proc->name.rank);
    if (!proc->exe || !proc->cwd || proc->name.process < 0) {
        proc_destroy(proc);
        return NULL;
    }
    proc->shm->name = proc->name;
    fill_holds(wd, proc->shm);
    init_nodes(proc);
    proc->next = wd->procs;
    wd->procs = proc;
    return proc;
}

/* To be told of its end; one that has ended already is taken leave of at once. */
static void proc_watch(struct wd *wd, struct wd_proc *proc)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = proc};
    close(proc->memfd);
    proc->memfd = -1;
    proc->pidfd = (int)syscall(SYS_pidfd_open, proc->pid, 0);
    if (proc->pidfd < 0 || epoll_ctl(wd->epoll, EPOLL_CTL_ADD, proc->pidfd, &ev))
        wd_proc_ended(wd, proc);
}

static void answer(struct wd *wd, int sock, const struct wd_proc *proc)
{
    struct pt_welcome welcome = {.magic = PT_HELLO_MAGIC, .version = PT_SHM_VERSION};
    struct iovec iov = {&welcome, sizeof(welcome)};
    union {
        char buf[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

    if (proc) {
        int fds[2] = {proc->memfd, wd->bell_memfd};
        welcome.accept = 1;
        welcome.shm_size = proc->shm_size;
        msg.msg_control = control.buf;
        msg.msg_controllen = sizeof(control.buf);
        struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(sizeof(fds));
        memcpy(CMSG_DATA(cmsg), fds, sizeof(fds));
    }
    sendmsg(sock, &msg, MSG_NOSIGNAL);
}

/* Only processes of our own user, and only a greeting that makes sense. */
static int receive_hello(int sock, struct pt_hello *hello, pid_t *pid)
{
    struct ucred cred;
    socklen_t len = sizeof(cred);
    struct timeval patience = {0, 200000};

    if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) || cred.uid != geteuid())
        return -1;
    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (recv(sock, hello, sizeof(*hello), 0) != (ssize_t)sizeof(*hello) ||
        hello->magic != PT_HELLO_MAGIC || hello->version != PT_SHM_VERSION)
        return -1;
    hello->exe[sizeof(hello->exe) - 1] = hello->cwd[sizeof(hello->cwd) - 1] = 0;
    *pid = cred.pid;
    return 0;
}

void wd_greet(struct wd *wd)
{
    struct pt_hello hello;
    pid_t pid;
    int sock = accept4(wd->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (sock < 0)
        return;
    if (receive_hello(sock, &hello, &pid)) {
        wd->refused++;
    } else {
        get_rank(wd, hello.rank < 0 ? 0 : hello.rank); /* seen, wanted or not */
        struct wd_proc *proc = wanted_program(wd, hello.exe) ? proc_add(wd, pid, &hello) : NULL;
        answer(wd, sock, proc); /* first: the program waits */
        if (proc)
            proc_watch(wd, proc);
        wd_proc_prepare(wd);
    }
    close(sock);
}

void wd_proc_ended(struct wd *wd, struct wd_proc *proc)
{
    wd_drain_proc(wd, proc);
    for (uint32_t i = 0; i < wd_proc_nodes(proc); i++) {
        wd_node_close(wd, &proc->nodes[i]);
        wd_judge_forget(wd->judge, &proc->nodes[i]);
    }
    wd->untraced_threads += atomic_load(&proc->shm->untraced_threads);
    for (struct wd_proc **p = &wd->procs; *p; p = &(*p)->next)
        if (*p == proc) {
            *p = proc->next;
            break;
        }
    proc_destroy(proc);
}

int wd_proc_known(const struct wd *wd, const struct wd_proc *proc)
{
    for (const struct wd_proc *p = wd->procs; p; p = p->next)
        if (p == proc)
            return 1;
    return 0;
}

void wd_proc_all_ended(struct wd *wd)
{
    while (wd->procs)
        wd_proc_ended(wd, wd->procs);
    if (wd->spare)
        proc_destroy(wd->spare);
    wd->spare = NULL;
}
