#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/env.h"
#include "common/spec.h"
#include "preload/lineage.h"
#include "preload/process.h"
#include "preload/sys.h"
#include "preload/table.h"
#include "preload/tracer.h"

#define MAX_RINGS 1024 /* threads of one process at a time */
#define FEW_RINGS 4    /* most processes have no more */

enum { NEVER, RUNNING, DONE };

static PT_NEAR _Atomic int connected; /* NEVER, RUNNING (another thread is at it), DONE */
static PT_NEAR struct pt_memory *_Atomic memory;
static PT_NEAR const struct pt_plan_entry *plan;

/* This process; a forked child gets its own when it needs it. */
static PT_NEAR struct pt_name process_name;
static PT_NEAR _Atomic int32_t process_pid; /* as the watchdog sees it; 0: it has no name yet */
static PT_NEAR int32_t process_pid_seen;    /* the same, as soon as it is known */
static PT_NEAR int32_t process_pid_here;    /* as we see it ourselves */
static PT_NEAR const char *process_exe;
static PT_NEAR char short_exe[128]; /* process_exe is in one of these */
static PT_FAR char long_exe[PT_PROCESS_PATH];
static PT_NEAR uint64_t process_start;
static PT_NEAR int32_t given_number;     /* by the parent that has forked us; 0: by none */
static PT_NEAR _Atomic uint32_t threads; /* numbered so far */
static PT_NEAR int arguments;            /* of the program, as far as they are known */
static PT_NEAR char **argument;

enum ring_state { RING_NONE, RING_USED, RING_FREE };

struct ring_entry {
    _Atomic int state;
    struct pt_ring *ring;
};

static PT_NEAR struct ring_entry few_rings[FEW_RINGS];
static PT_FAR pt_table more_rings;
static PT_NEAR _Atomic int nrings; /* how many of them were ever used */

/* NULL: there is no memory for so many. */
static struct ring_entry *ring_entry(int i)
{
    if (i < FEW_RINGS)
        return &few_rings[i];
    struct ring_entry *more = pt_table_make(&more_rings, (MAX_RINGS - FEW_RINGS) * sizeof(*more));
    return more ? more + (i - FEW_RINGS) : NULL;
}

static PT_NEAR int holds; /* a copy: a forked child need not look at the memory */

int pt_process_holds(void)
{
    return holds;
}

struct pt_memory *pt_process_memory(void)
{
    return atomic_load_explicit(&memory, memory_order_acquire);
}

/* A whole number, or -1. */
static int32_t number(const char *s)
{
    int64_t v = 0;
    if (!s || !*s)
        return -1;
    for (; *s; s++) {
        if (*s < '0' || *s > '9' || v > INT32_MAX / 10 - 1)
            return -1;
        v = v * 10 + (*s - '0');
    }
    return (int32_t)v;
}

/* The MPI library knows better than Slurm: under mpirun one task may start many ranks. */
static int32_t find_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                        "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        int32_t rank = number(getenv(names[i]));
        if (rank >= 0)
            return rank;
    }
    return 0;
}

/* ---- the memory's descriptor ---------------------------------------------------------- */

/* The watchdog's entry in /proc, which only its own user may use; -1: it has none. */
static int path_in_proc(char path[PT_PROC_PATH])
{
    int32_t watchdog = number(getenv(PT_ENV_WATCHDOG));
    if (watchdog < 0)
        return -1;
    pt_proc_path(path, "/proc/", (uint32_t)watchdog, "/fd/", PT_MEMORY_FD);
    return 0;
}

static int open_in_proc(void)
{
    char path[PT_PROC_PATH];
    return path_in_proc(path) ? -1 : (int)pt_sys(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
}

/* Could it be opened?  To follow the way there takes half of the time of opening it. */
static int is_in_proc(void)
{
    char path[PT_PROC_PATH];
    struct stat st;
    return !path_in_proc(path) && pt_sys(SYS_newfstatat, AT_FDCWD, path, &st, 0) >= 0;
}

/* Also says whose the watchdog is. */
static int connect_socket(const char *name, uid_t *owner)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    struct timeval patience = {5, 0}; /* a watchdog that hangs must not hang the program */
    size_t len = strlen(name);
    struct ucred cred;
    socklen_t size = sizeof(cred);

    if (len + 1 > sizeof(addr.sun_path))
        return -1;
    memcpy(addr.sun_path + 1, name, len);
    long fd = pt_sys(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    len += offsetof(struct sockaddr_un, sun_path) + 1;
    pt_sys(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    pt_sys(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (pt_sys(SYS_connect, fd, &addr, len) < 0 ||
        pt_sys(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0) {
        pt_sys(SYS_close, fd);
        return -1;
    }
    *owner = cred.uid;
    return (int)fd;
}

static int receive(int sock, struct pt_welcome *welcome)
{
    struct iovec iov = {welcome, sizeof(*welcome)};
    union {
        char buf[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.buf,
                         .msg_controllen = sizeof(control.buf)};
    int fd;
    if (pt_sys(SYS_recvmsg, sock, &msg, MSG_CMSG_CLOEXEC) != (long)sizeof(*welcome) ||
        welcome->magic != PT_HELLO_MAGIC || welcome->version != PT_MEMORY_VERSION)
        return -1;
    struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
    if (!cmsg || cmsg->cmsg_type != SCM_RIGHTS || cmsg->cmsg_len != CMSG_LEN(sizeof(fd)))
        return -1;
    memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
    return fd;
}

static int ask_watchdog(const char *socket, int32_t *pid)
{
    struct pt_hello hello = {PT_HELLO_MAGIC, PT_MEMORY_VERSION};
    struct pt_welcome welcome;
    uid_t owner;
    int fd = -1, sock = connect_socket(socket, &owner);
    if (sock < 0)
        return -1;
    /* Anybody may take an abstract name: only our own user's watchdog is trusted. */
    if ((owner == (uid_t)pt_sys(SYS_geteuid) || owner == 0) &&
        pt_sys(SYS_sendto, sock, &hello, sizeof(hello), MSG_NOSIGNAL, 0, 0) == (long)sizeof(hello))
        fd = receive(sock, &welcome);
    pt_sys(SYS_close, sock);
    if (fd >= 0)
        *pid = welcome.pid;
    return fd;
}

/* A descriptor that is not one of the watchdog's memory could shrink under our feet. */
static int is_sealed(int fd)
{
    long seals = pt_sys(SYS_fcntl, fd, F_GET_SEALS);
    return seals >= 0 && seals & F_SEAL_SHRINK;
}

/*
 * Whether our own view is not the watchdog's: the socket tells its.  So does the /proc through
 * which we have found it.
 */
static PT_NEAR int by_socket;

static int32_t pid_in_proc(void)
{
    char link[16];
    long n = pt_sys(SYS_readlinkat, AT_FDCWD, "/proc/self", link, sizeof(link) - 1);
    link[n > 0 ? n : 0] = 0;
    int32_t pid = number(link);
    return pid > 0 ? pid : (int32_t)pt_sys(SYS_getpid);
}

/* The memory, and our pid as the watchdog sees it; -1: it cannot be had. */
static int open_memory(int32_t *pid)
{
    const char *socket = getenv(PT_ENV_SOCKET);
    int fd = open_in_proc();
    if (fd >= 0 && is_sealed(fd)) {
        *pid = pid_in_proc();
        return fd;
    }
    if (fd >= 0)
        pt_sys(SYS_close, fd);
    fd = socket && *socket ? ask_watchdog(socket, pid) : -1;
    by_socket = 1;
    if (fd >= 0 && !is_sealed(fd)) {
        pt_sys(SYS_close, fd);
        return -1;
    }
    return fd;
}

/*
 * It need not do so in the way that we did: it may be in other namespaces, and an exec takes away
 * what another user was still allowed to do.
 */
int pt_process_is_found(void)
{
    const struct pt_memory *m = pt_process_memory();
    uid_t user = (uid_t)pt_sys(SYS_geteuid), owner;
    if (!m)
        return 1;
    if (m->user == user && is_in_proc())
        return 1;
    int fd = connect_socket(m->socket, &owner);
    if (fd >= 0)
        pt_sys(SYS_close, fd);
    return fd >= 0 && owner == user; /* both as this namespace of users counts */
}

static void *map(int fd, size_t size, uint64_t offset)
{
    long p = pt_sys(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
    return p < 0 && p > -4096 ? NULL : (void *)p;
}

/*
 * To map something takes as long as twenty system calls that do nothing, and to unmap it when the
 * process ends takes as long again.  So the first slots are mapped together with the head: they
 * serve all processes where few run at a time, their forked children, and their first threads.
 */
#define TOGETHER (8 << 20)

static PT_NEAR uint64_t mapped; /* from the memory's beginning */

/* To keep it out of a core takes a quarter of the time that it took to map it. */
static int may_dump_core(void)
{
    struct rlimit limit;
    return pt_sys(SYS_prlimit64, 0, RLIMIT_CORE, NULL, &limit) < 0 || limit.rlim_cur;
}

static struct pt_memory *map_head(int fd)
{
    mapped = TOGETHER;
    struct pt_memory *m = map(fd, mapped, 0);
    if (!m) { /* the program may have only a little memory */
        mapped = sizeof(*m);
        m = map(fd, mapped, 0);
    }
    if (m && may_dump_core())
        pt_sys(SYS_madvise, m, mapped, MADV_DONTDUMP);
    return m;
}

static int is_mapped(uint64_t offset, uint64_t size)
{
    return size <= mapped && offset <= mapped - size;
}

/* A part of the memory that begins there; `fd` is needed if it is not mapped yet. */
static void *map_part(struct pt_memory *m, int fd, uint64_t offset, uint64_t size)
{
    return is_mapped(offset, size) ? (char *)m + offset : map(fd, size, offset);
}

#define LOOK_BYTES (64 << 10)

/*
 * A page fault that reads makes the kernel map the pages around it, too, if the memory has them
 * already, and the first slots' have been touched by the watchdog.  One that writes, or
 * MADV_POPULATE_WRITE, goes page by page.
 */
static void look_at(const void *at)
{
    (void)*(const volatile char *)at;
}

void pt_map_pages(const void *at, size_t bytes)
{
    for (size_t done = 0; done < bytes; done += LOOK_BYTES)
        look_at((const char *)at + done);
}

/* ---- the process ------------------------------------------------------------------------ */

/* The memory of another step lies there if process ids were reused. */
static int is_ours(const struct pt_memory *m)
{
    const char *socket = getenv(PT_ENV_SOCKET);
    return m->magic == PT_MEMORY_MAGIC && m->version == PT_MEMORY_VERSION && socket &&
           !strncmp(m->socket, socket, sizeof(m->socket));
}

static void map_plan(int fd, struct pt_memory *m)
{
    if (m->plan_count)
        plan = map_part(m, fd, m->plan_start, m->plan_count * sizeof(*plan));
}

static void use(struct pt_memory *m)
{
    if (m->tsc)
        pt_ticks = (struct pt_ticks){
            .tsc = 1,
            .long_time = ((uint64_t)PT_LONG_NS << 32) / m->tick_mult,
            .long_gap = ((uint64_t)PT_LONG_GAP_NS << 32) / m->tick_mult,
            .unmeasured = ((uint64_t)PT_UNMEASURED_NS << 32) / m->tick_mult,
            .mult = m->tick_mult,
        };
    holds = m->throttle != PT_THROTTLE_NONE;
    pt_filter_use(&m->filters, m->filter_list);
    atomic_store_explicit(&memory, m, memory_order_release);
}

void pt_process_arguments(int argc, char **argv)
{
    arguments = argc;
    argument = argv;
}

#define STACK_MOST (8 << 20) /* of a program's arguments, environment and names */

/*
 * A library whose constructor comes before ours may make the first call.  The kernel puts the
 * arguments, with their number in front, before the environment and the program's name behind it;
 * if that is where the environment still is, they are there.
 */
static void find_arguments(const char *name)
{
    char **env = environ;
    if (arguments || !env || (uintptr_t)name - (uintptr_t)env > STACK_MOST || env[-1])
        return;
    char **least = __builtin_frame_address(0); /* below it the stack is nobody's to read */
    for (intptr_t n = 0; env - 2 - n > least; n++)
        if ((intptr_t)env[-2 - n] == n) {
            pt_process_arguments((int)n, env - 1 - n);
            return;
        }
}

/*
 * The program's path as exec was given it; NULL if that may be another file's: of a script it is
 * the script, which is then among the arguments, behind at most five interpreters and as many
 * options.
 */
static const char *executed_as(void)
{
    static const char *const not_names[] = {"/dev/fd/", "/proc/"};
    const char *path = (const char *)getauxval(AT_EXECFN);
    if (path)
        find_arguments(path);
    if (!path || !arguments)
        return NULL;
    for (size_t i = 0; i < sizeof(not_names) / sizeof(not_names[0]); i++)
        if (!strncmp(path, not_names[i], strlen(not_names[i])))
            return NULL;
    for (int i = 1; i < arguments && i <= 10; i++)
        if (!strcmp(argument[i], path))
            return NULL;
    return path;
}

/* To ask /proc takes longer than all else here; the watchdog makes the same name of the other. */
static const char *find_exe(const struct pt_memory *m)
{
    const char *path = m->exact_programs ? NULL : executed_as();
    size_t size = sizeof(long_exe);
    long n = path ? (long)strnlen(path, size - 1)
                  : pt_sys(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", long_exe, size - 1);
    char *exe = path && n < (long)sizeof(short_exe) ? short_exe : long_exe;
    if (path)
        memcpy(exe, path, (size_t)n);
    exe[n > 0 ? n : 0] = 0;
    return exe;
}

/* The mapping stays; returns its descriptor. */
static int join(void)
{
    int fd = open_memory(&process_pid_seen);
    if (fd < 0)
        return -1;
    struct pt_memory *m = map_head(fd);
    if (m && is_ours(m)) {
        const struct pt_rank_entry *rank = pt_rank_entry(m, find_rank()); /* seen, wanted or not */
        process_exe = find_exe(m);
        map_plan(fd, m);
        if (pt_filter_program(m->programs, process_exe))
            use(m);
        else if (rank)
            pt_lineage_drop(m, rank);
    }
    return fd;
}

/* Has the task still to become the user's program?  /proc tells its name to everybody. */
static int is_before_exec(int32_t task)
{
    static const char daemon[] = "slurmstepd";
    char path[PT_PROC_PATH], name[sizeof(daemon)] = "";
    pt_proc_path(path, "/proc/", (uint32_t)task, "/comm", -1);
    long fd = pt_sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    long n = pt_sys(SYS_read, fd, name, sizeof(name) - 1);
    pt_sys(SYS_close, fd);
    return n > 0 && !strcmp(name, daemon);
}

/*
 * Slurm's task prolog and epilog inherit the environment but are not the job.  After a
 * prolog Slurm leaves the mark for the task to inherit: a prolog is what runs while the
 * task itself waits for it.
 */
static int is_slurm_script(void)
{
    const char *context = getenv("SLURM_SCRIPT_CONTEXT");
    int32_t task = number(getenv("SLURM_TASK_PID"));
    if (!context)
        return 0;
    if (!strcmp(context, "epilog_task"))
        return 1;
    return !strcmp(context, "prolog_task") && task > 0 && task != pt_sys(SYS_getpid) &&
           is_before_exec(task);
}

int pt_process_begin(void)
{
    int never = NEVER, fd = -1;
    if (!atomic_compare_exchange_strong(&connected, &never, RUNNING)) {
        while (atomic_load(&connected) == RUNNING)
            pt_sys(SYS_sched_yield);
        return -1;
    }
    if (getenv(PT_ENV_SOCKET) && !is_slurm_script())
        fd = join();
    atomic_store(&connected, DONE);
    return fd;
}

/* ---- rings ---------------------------------------------------------------------------------- */

static int32_t claim_slot(struct pt_memory *m, int32_t pid)
{
    for (uint32_t i = 0; i < m->nslots && i < PT_MAX_SLOTS; i++) {
        int32_t nobody = 0;
        if (!atomic_load_explicit(&m->owner[i], memory_order_relaxed) &&
            atomic_compare_exchange_strong(&m->owner[i], &nobody, pid))
            return (int32_t)i;
    }
    return -1;
}

/* The watchdog has not yet seen the end of those that had the slots before. */
static int32_t claim_slot_patiently(struct pt_memory *m, int32_t pid)
{
    struct timespec nap = {0, 1000000};
    int32_t slot = claim_slot(m, pid);
    for (int naps = 0; slot < 0 && m->nslots && naps < 500; naps++) {
        pt_bell_ring();
        pt_sys(SYS_nanosleep, &nap, 0);
        slot = claim_slot(m, pid);
    }
    return slot;
}

/* The first ring of a process gives it its name: rank, and its number in the rank. */
static void name_process(struct pt_memory *m, int32_t pid)
{
    int32_t rank = find_rank();
    struct pt_rank_entry *entry = pt_rank_entry(m, rank);
    process_name = (struct pt_name){rank, 0, 0};
    if (entry)
        process_name.process = pt_lineage_begin(m, entry, given_number);
    process_start = pt_now();
    process_pid_here = (int32_t)pt_sys(SYS_getpid);
    atomic_store(&process_pid, pid);
}

static void introduce(struct pt_memory *m, struct pt_ring *ring, int32_t pid)
{
    ring->first = !atomic_load(&process_pid);
    if (ring->first) {
        name_process(m, pid);
        memcpy(ring->exe, process_exe, strlen(process_exe) + 1);
        if (pt_sys(SYS_getcwd, ring->cwd, sizeof(ring->cwd)) < 0)
            ring->cwd[0] = 0;
    }
    ring->pid = pid;
    ring->name = process_name;
    ring->start = process_start;
    ring->arrival = atomic_fetch_add(&m->arrivals, 1);
}

/* A slot for a thread of that process. */
static struct pt_ring *take_slot(struct pt_memory *m, int fd, int32_t pid)
{
    int32_t slot = claim_slot_patiently(m, pid), seen;
    if (slot < 0)
        return NULL;
    uint64_t offset = pt_slot_offset(m, (uint32_t)slot);
    int opened = fd < 0 && !is_mapped(offset, m->slot_size) ? open_memory(&seen) : -1;
    struct pt_ring *ring = map_part(m, fd < 0 ? opened : fd, offset, m->slot_size);
    if (opened >= 0)
        pt_sys(SYS_close, opened);
    if (ring) {
        look_at(ring);
        introduce(m, ring, pid);
    } else {
        atomic_store(&m->owner[slot], 0);
    }
    return ring;
}

/* `fd`: a descriptor of the memory, if there is one. */
static struct pt_ring *new_ring(struct pt_memory *m, int fd)
{
    int opened = -1;
    if (!process_pid_seen && by_socket) {
        fd = opened = open_memory(&process_pid_seen);
        if (fd < 0)
            return NULL;
    }
    if (!process_pid_seen)
        process_pid_seen = (int32_t)pt_sys(SYS_getpid);
    struct pt_ring *ring = take_slot(m, fd, process_pid_seen);
    if (opened >= 0)
        pt_sys(SYS_close, opened);
    return ring;
}

/* One that a thread before has left, or a new one. */
static struct pt_ring *get_ring(struct pt_memory *m, int fd)
{
    for (int i = 0; i < MAX_RINGS; i++) {
        struct ring_entry *entry = ring_entry(i);
        if (!entry)
            break;
        int state = atomic_load(&entry->state);
        if (state == RING_USED || !atomic_compare_exchange_strong(&entry->state, &state, RING_USED))
            continue;
        if (state == RING_NONE) {
            entry->ring = new_ring(m, fd);
            pt_raise(&nrings, i + 1);
        }
        if (!entry->ring)
            atomic_store(&entry->state, RING_NONE);
        return entry->ring;
    }
    return NULL;
}

struct pt_ring *pt_process_ring(int fd, uint32_t *number)
{
    struct pt_memory *m = pt_process_memory();
    if (!m)
        return NULL;
    struct pt_ring *ring = get_ring(m, fd);
    *number = atomic_fetch_add(&threads, 1);
    if (!ring)
        pt_process_untraced();
    return ring;
}

void pt_process_untraced(void)
{
    atomic_fetch_add(&pt_process_memory()->untraced_threads, 1);
}

void pt_process_ring_done(const struct pt_ring *ring)
{
    for (int i = 0; i < atomic_load(&nrings); i++)
        if (ring_entry(i)->ring == ring)
            atomic_store(&ring_entry(i)->state, RING_FREE);
}

int32_t pt_process_thread_id(void)
{
    int32_t tid = (int32_t)pt_sys(SYS_gettid);
    return tid == process_pid_here ? process_pid_seen : tid;
}

uint32_t pt_process_plan(const struct pt_name *name, const struct pt_plan_entry **first)
{
    const struct pt_memory *m = pt_process_memory();
    uint32_t from = 0, n = plan && m ? m->plan_count : 0, count = 0;
    while (from < n && pt_name_compare(&plan[from].name, name) < 0)
        from++;
    while (from + count < n && !pt_name_compare(&plan[from + count].name, name))
        count++;
    *first = plan + from;
    return count;
}

void pt_process_leave_ring(struct pt_ring *ring)
{
    struct pt_memory *m = pt_process_memory();
    uint64_t offset = (uint64_t)((char *)ring - (char *)m);
    if (is_mapped(offset, m->slot_size))
        mapped = offset; /* the slot may be this process' own one day */
    pt_sys(SYS_mmap, ring, m->slot_size, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

void pt_process_forked(int32_t number)
{
    given_number = number;
    if (!pt_sys(SYS_getppid)) /* the parent is in another namespace of process ids */
        by_socket = 1;
    /* The parent's rings stay mapped: there may be calls on the stack that use one. */
    for (int i = 0; i < atomic_load(&nrings); i++) {
        ring_entry(i)->ring = NULL;
        atomic_store(&ring_entry(i)->state, RING_NONE);
    }
    atomic_store(&nrings, 0);
    atomic_store(&process_pid, 0);
    process_pid_seen = 0;
    atomic_store(&threads, 0);
    int running = RUNNING; /* by a thread that does not exist here */
    atomic_compare_exchange_strong(&connected, &running, NEVER);
}
