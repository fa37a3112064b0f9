#include "config.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "common/env.h"
#include "preload/process.h"
#include "preload/sys.h"
#include "preload/tracer.h"

enum { NEVER, RUNNING, DONE };

static _Atomic int connected; /* NEVER, RUNNING (another thread is at it), DONE */
static struct pt_shm *_Atomic shm;
static struct pt_bell *bell;

struct pt_shm *pt_process_shm(void)
{
    return atomic_load_explicit(&shm, memory_order_acquire);
}

struct pt_bell *pt_process_bell(void)
{
    return bell;
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
    return -1;
}

static void fill_hello(struct pt_hello *hello)
{
    memset(hello, 0, sizeof(*hello));
    hello->magic = PT_HELLO_MAGIC;
    hello->version = PT_SHM_VERSION;
    hello->rank = find_rank();
    hello->pid = (int32_t)pt_sys(SYS_getpid);
    hello->start = pt_clock(CLOCK_MONOTONIC);
    pt_sys(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", hello->exe, sizeof(hello->exe) - 1);
    if (pt_sys(SYS_getcwd, hello->cwd, sizeof(hello->cwd)) < 0)
        hello->cwd[0] = 0;
}

static int connect_socket(const char *name)
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
    /* Anybody may take an abstract name: only our own user's watchdog is trusted. */
    if (pt_sys(SYS_connect, fd, &addr, len) < 0 ||
        pt_sys(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0 ||
        (cred.uid != (uid_t)pt_sys(SYS_geteuid) && cred.uid != 0)) {
        pt_sys(SYS_close, fd);
        return -1;
    }
    return (int)fd;
}

static int receive(int sock, struct pt_welcome *welcome, int fds[2])
{
    struct iovec iov = {welcome, sizeof(*welcome)};
    union {
        char buf[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.buf,
                         .msg_controllen = sizeof(control.buf)};
    if (pt_sys(SYS_recvmsg, sock, &msg, MSG_CMSG_CLOEXEC) != (long)sizeof(*welcome) ||
        welcome->magic != PT_HELLO_MAGIC || welcome->version != PT_SHM_VERSION || !welcome->accept)
        return -1;
    struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
    if (!cmsg || cmsg->cmsg_type != SCM_RIGHTS || cmsg->cmsg_len != CMSG_LEN(2 * sizeof(int)))
        return -1;
    memcpy(fds, CMSG_DATA(cmsg), 2 * sizeof(int));
    return 0;
}

static void *map(int fd, size_t size)
{
    long p = pt_sys(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return p < 0 && p > -4096 ? NULL : (void *)p;
}

/* The mapping stays, no descriptor does: programs close what they do not know. */
static void use(const struct pt_welcome *welcome, const int fds[2])
{
    struct pt_shm *memory = map(fds[0], welcome->shm_size);
    bell = map(fds[1], sizeof(struct pt_bell));
    pt_sys(SYS_close, fds[0]);
    pt_sys(SYS_close, fds[1]);
    if (!memory || !bell || memory->magic != PT_SHM_MAGIC || memory->version != PT_SHM_VERSION)
        return;
    if (memory->tsc)
        pt_ticks = (struct pt_ticks){
            .tsc = 1,
            .long_time = ((uint64_t)PT_LONG_NS << 32) / memory->tick_mult,
            .mult = memory->tick_mult,
        };
    pt_filter_prepare(memory);
    atomic_store_explicit(&shm, memory, memory_order_release);
}

static void introduce(const char *name)
{
    struct pt_hello hello;
    struct pt_welcome welcome;
    int fds[2];

    int sock = connect_socket(name);
    if (sock < 0)
        return;
    fill_hello(&hello);
    if (pt_sys(SYS_sendto, sock, &hello, sizeof(hello), MSG_NOSIGNAL, 0, 0) ==
            (long)sizeof(hello) &&
        !receive(sock, &welcome, fds))
        use(&welcome, fds);
    pt_sys(SYS_close, sock);
}

/* Slurm's task prolog and epilog inherit the environment but are not the job. */
static int is_slurm_script(void)
{
    const char *context = getenv("SLURM_SCRIPT_CONTEXT");
    return context && (!strcmp(context, "prolog_task") || !strcmp(context, "epilog_task"));
}

void pt_process_begin(void)
{
    int never = NEVER;
    if (!atomic_compare_exchange_strong(&connected, &never, RUNNING)) {
        while (atomic_load(&connected) == RUNNING)
            pt_sys(SYS_sched_yield);
        return;
    }
    const char *name = getenv(PT_ENV_SOCKET);
    if (name && *name && !is_slurm_script())
        introduce(name);
    atomic_store(&connected, DONE);
}

struct pt_ring *pt_process_slot(uint32_t *number)
{
    struct pt_shm *memory = pt_process_shm();
    if (!memory)
        return NULL;
    *number = atomic_fetch_add(&memory->next_slot, 1);
    if (*number >= memory->nslots) {
        atomic_fetch_add(&memory->untraced_threads, 1);
        return NULL;
    }
    return pt_shm_ring(memory, *number);
}

void pt_process_forked(void)
{
    /* The parent's memory stays mapped: unmapping could meet a signal handler at work. */
    atomic_store(&shm, NULL);
    atomic_store(&connected, NEVER);
}
