/*
 * The memory that the traced processes of this host share with us: made and filled before
 * the first of them comes, found by them through our entry in /proc or handed out here.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/env.h"
#include "watchdog/watchdog.h"

/* Launchers are not the application. */
static const char *const launchers[] = {"srun",  "mpirun*", "mpiexec*", "orterun*",
                                        "orted", "prterun", "prted",    "hydra_pmi_proxy"};

/* Nor are, in a batch script's step, the shell that runs it and what it asks Slurm with. */
static const char *const script_programs[] = {
    "sh",    "bash",   "dash",     "ksh*",   "mksh",       "zsh*",   "csh",
    "tcsh",  "fish",   "scontrol", "sbatch", "scancel",    "squeue", "sinfo",
    "sacct", "salloc", "sbcast",   "sstat",  "ptcampaign",
};

/* Where nobody's data are; a path= of the user replaces the list. */
static const char *const default_filters[] = {
    "!/dev/shm/*", "-/dev/*",      "-/proc/*",           "-/sys/*",
    "-*.so",       "-*.so.*",      "-/usr/lib/locale/*", "-/usr/share/locale/*",
    "-*/gconv/*",  "-/etc/ld.so*", "-*/ompi.*",
};

#define KEPT_BYTES  (512 << 10) /* of a ring that is left; more is given back to the system */
#define READY_SLOTS 8           /* free ones that have memory before somebody comes */
#define READY_BYTES (256 << 10) /* of each */

/* Longer than hosts take to find each other and a referee waits for the last answers. */
#define HOLD_GRACE_NS 30000000000u

#define GREETINGS 64 /* answered in a row */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct list {
    char *at;
    const char *end;
};

static void add(struct list *list, char sign, const char *glob)
{
    size_t n = strlen(glob);
    if (!n || (size_t)(list->end - list->at) < n + 3)
        return;
    *list->at = sign;
    memcpy(list->at + 1, glob, n + 1);
    list->at += n + 2;
}

static void add_all(struct list *list, char sign, const struct pt_globs *globs)
{
    for (unsigned i = 0; i < globs->n; i++)
        add(list, sign, globs->glob[i]);
}

static void fill_filters(const struct pt_spec *spec, char *filters)
{
    struct list list = {filters, filters + PT_FILTERS_SIZE};
    add_all(&list, '-', &spec->nopath);
    add_all(&list, '+', &spec->path);
    for (size_t i = 0; !spec->path.n && i < COUNT(default_filters); i++)
        add(&list, default_filters[i][0], default_filters[i] + 1);
}

static void fill_programs(const struct wd *wd, char *programs)
{
    const struct pt_spec *spec = &wd->spec;
    struct list list = {programs, programs + PT_PROGRAMS_SIZE};
    add_all(&list, '-', &spec->noexe);
    add_all(&list, '+', &spec->exe);
    for (size_t i = 0; !spec->exe.n && i < COUNT(launchers); i++)
        add(&list, '-', launchers[i]);
    for (size_t i = 0; wd->opt.script && !spec->exe.n && i < COUNT(script_programs); i++)
        add(&list, '-', script_programs[i]);
}

static uint64_t pages(uint64_t bytes)
{
    return (bytes + PT_PAGE - 1) / PT_PAGE * PT_PAGE;
}

/* Whom to hold, said before the program runs: its very first I/O may be one to hold. */
static void fill_holds(const struct wd *wd, struct pt_memory *m)
{
    m->throttle = (uint32_t)wd->spec.throttle;
    m->victim = (struct pt_name){wd->spec.node[0], wd->spec.node[1], wd->spec.node[2]};
    m->period = wd->spec.period;
    m->hold_limit = wd->spec.hold_max + HOLD_GRACE_NS;
    m->plan_start = pages(sizeof(struct pt_memory));
    m->plan_count = (uint32_t)wd->nplan;
}

static void fill(const struct wd *wd, struct pt_memory *m)
{
    m->magic = PT_MEMORY_MAGIC;
    m->version = PT_MEMORY_VERSION;
    m->nslots = wd->nslots;
    m->ring_size = wd->ring_size;
    m->slot_size = wd->slot_size;
    m->first_slot = wd->first_slot;
    m->full = wd->spec.full;
    m->match_mpi = wd->spec.discover != PT_DISCOVER_HOLD;
    m->tsc = (uint32_t)wd->clock.tsc;
    m->tick_mult = wd->clock.mult;
    m->watchdog = getpid();
    m->user = geteuid();
    strncpy(m->socket, wd->opt.socket, sizeof(m->socket) - 1);
    fill_filters(&wd->spec, m->filter_list);
    pt_filters_prepare(&m->filters, m->filter_list);
    fill_programs(wd, m->programs);
    m->exact_programs = wd->spec.exe.n || wd->spec.noexe.n || wd->opt.script;
    fill_holds(wd, m);
}

/* As large as we may: untouched slots cost nothing, but the user may have a file size limit. */
static int size_memory(struct wd *wd, int fd)
{
    wd->ring_size = (uint32_t)wd->spec.buffer;
    wd->slot_size = pages(sizeof(struct pt_ring) + wd->ring_size + PT_PENDING_BYTES);
    wd->first_slot = pages(sizeof(struct pt_memory)) + pages(wd->nplan * sizeof(*wd->plan));
    for (wd->nslots = PT_MAX_SLOTS; wd->nslots; wd->nslots /= 2) {
        if (!ftruncate(fd, (off_t)(wd->first_slot + wd->nslots * wd->slot_size))) {
            wd->memory_error = 0;
            return 0;
        }
        wd->memory_error = errno;
    }
    return ftruncate(fd, (off_t)wd->first_slot); /* then nobody is traced, and that is said */
}

int wd_memory_begin(struct wd *wd, struct pt_err *err)
{
    int fd = memfd_create("paratrace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || size_memory(wd, fd) ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        return pt_err_errno(err, "cannot make the shared memory");
    wd->memory = mmap(NULL, sizeof(*wd->memory), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (wd->memory == MAP_FAILED)
        return pt_err_errno(err, "cannot map the shared memory");
    fill(wd, wd->memory);
    if (wd_plan_write(wd, fd, wd->memory->plan_start))
        return pt_err_errno(err, "cannot keep the plan");
    if (dup3(fd, PT_MEMORY_FD, O_CLOEXEC) < 0)
        return pt_err_errno(err, "cannot keep the shared memory");
    close(fd);
    return 0;
}

struct pt_ring *wd_memory_ring(struct wd *wd, uint32_t slot)
{
    if (!wd->rings[slot]) {
        void *ring = mmap(NULL, wd->slot_size, PROT_READ | PROT_WRITE, MAP_SHARED, PT_MEMORY_FD,
                          (off_t)(wd->first_slot + slot * wd->slot_size));
        wd->rings[slot] = ring == MAP_FAILED ? NULL : ring;
    }
    return wd->rings[slot];
}

/* For the next one: nobody looks at data beyond the head. */
void wd_memory_free(struct wd *wd, uint32_t slot)
{
    struct pt_ring *ring = wd->rings[slot];
    uint64_t used = atomic_load(&ring->head);
    memset((void *)ring, 0, sizeof(*ring));
    if (used > KEPT_BYTES && wd->ring_size > KEPT_BYTES)
        madvise(ring->data + KEPT_BYTES, wd->ring_size - KEPT_BYTES, MADV_REMOVE);
    atomic_store(&wd->memory->owner[slot], 0);
}

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14 */
#endif

/*
 * Pages that have been touched are mapped many at a time by whoever comes; those that were only
 * allocated are not.
 */
static int make_ready(struct wd *wd, uint32_t slot)
{
    size_t bytes = sizeof(struct pt_ring) + READY_BYTES;
    if (bytes > wd->slot_size)
        bytes = wd->slot_size;
    struct pt_ring *ring = wd_memory_ring(wd, slot);
    if (ring && !madvise(ring, bytes, MADV_POPULATE_WRITE))
        return 0;
    return fallocate(PT_MEMORY_FD, 0, (off_t)(wd->first_slot + slot * wd->slot_size), (off_t)bytes);
}

void wd_memory_prepare(struct wd *wd)
{
    uint32_t ready = 0;
    for (uint32_t slot = 0; slot < wd->nslots && ready < READY_SLOTS; slot++) {
        if (atomic_load_explicit(&wd->memory->owner[slot], memory_order_relaxed))
            continue;
        ready++;
        if (slot < wd->prepared)
            continue;
        if (make_ready(wd, slot))
            return; /* then whoever comes does it */
        wd->prepared = slot + 1;
    }
}

/* ---- for those who cannot see us in /proc ------------------------------------------------ */

/* Only processes of our own user, and only a greeting that makes sense. */
static int receive_hello(int sock, pid_t *pid)
{
    struct pt_hello hello;
    struct ucred cred;
    socklen_t len = sizeof(cred);
    struct timeval patience = {0, 200000};

    errno = EPERM;
    if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) || cred.uid != geteuid())
        return -1;
    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (recv(sock, &hello, sizeof(hello), 0) != (ssize_t)sizeof(hello) ||
        hello.magic != PT_HELLO_MAGIC || hello.version != PT_MEMORY_VERSION)
        return -1;
    *pid = cred.pid;
    return 0;
}

static void answer(int sock, pid_t pid)
{
    struct pt_welcome welcome = {PT_HELLO_MAGIC, PT_MEMORY_VERSION, pid};
    struct iovec iov = {&welcome, sizeof(welcome)};
    int fd = PT_MEMORY_FD;
    union {
        char buf[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.buf,
                         .msg_controllen = sizeof(control.buf)};
    struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
    cmsg->cmsg_level = SOL_SOCKET;
    cmsg->cmsg_type = SCM_RIGHTS;
    cmsg->cmsg_len = CMSG_LEN(sizeof(fd));
    memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
    sendmsg(sock, &msg, MSG_NOSIGNAL);
}

/* Many at once: others who fill the queue must not keep our own processes out of it. */
void wd_greet(struct wd *wd)
{
    pid_t pid;
    for (int i = 0; i < GREETINGS; i++) {
        int sock = accept4(wd->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (sock < 0)
            return;
        int refused = receive_hello(sock, &pid), silent = refused && errno == EAGAIN;
        if (refused)
            wd->refused++;
        else
            answer(sock, pid);
        close(sock);
        if (silent) /* one of our own, it has cost us time */
            return;
    }
}
