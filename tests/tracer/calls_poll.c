/*
 * Calls that ask in vain, again and again: a loop of them is one event, with their number.
 * Prints the trace it expects.  Run in an empty directory.
 */
#include "config.h"

#include <aio.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "tests/tracer/expect.h"

#define TIMES 1000

static char buf[64];
static sem_t sem, marks;
static const struct timespec past = {1, 0}, no_time = {0, 0};

#define AT(object) (unsigned long)&object

/* The loop `call`, of which each one returns `ret`, is one event. */
#define expect_loop(call, ret, ...)        \
    do {                                   \
        for (int i_ = 0; i_ < TIMES; i_++) \
            if ((call) != (ret))           \
                abort();                   \
        expect_sync(ret, __VA_ARGS__);     \
        expect_count(TIMES);               \
        mark();                            \
    } while (0)

/* An event that is no poll, so that the next polls are others. */
static void mark(void)
{
    expect_sync(sem_post(&marks), "sem_post(%#lx)", AT(marks));
}

/* ---- descriptors ------------------------------------------------------------------------ */

static void channels(void)
{
    int p[2], s[2], ep = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN}, found;
    if (pipe2(p, O_NONBLOCK) || socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, s) ||
        epoll_ctl(ep, EPOLL_CTL_ADD, p[0], &event))
        abort();
    struct pollfd fd = {.fd = p[0], .events = POLLIN};
    expect_loop(read(p[0], buf, 1), -1, "read(%d, 1)", p[0]);
    expect_loop(recv(s[0], buf, 1, 0), -1, "recv(%d, 1)", s[0]);
    expect_loop(poll(&fd, 1, 0), 0, "poll(1)");
    expect_loop(ppoll(&fd, 1, &no_time, NULL), 0, "ppoll(1)");
    expect_loop(epoll_wait(ep, &found, 1, 0), 0, "epoll_wait(%d, 1)", ep);
    expect_loop(epoll_pwait(ep, &found, 1, 0, NULL), 0, "epoll_pwait(%d, 1)", ep);
    expect_loop(epoll_pwait2(ep, &found, 1, &no_time, NULL), 0, "epoll_pwait2(%d, 1)", ep);
    for (int i = 0; i < TIMES; i++) {
        struct timeval no_time_us = {0, 0};
        fd_set in;
        FD_ZERO(&in);
        FD_SET(p[0], &in);
        if (i % 2 ? select(p[0] + 1, &in, NULL, NULL, &no_time_us)
                  : pselect(p[0] + 1, &in, NULL, NULL, &no_time, NULL))
            abort();
    }
    expect_sync(0, "pselect(%d)", p[0] + 1);
    expect_count(TIMES);
    mark();
    while (write(p[1], expected, sizeof(expected)) > 0) /* into the pipe until it is full */
        expect_sync((long)1 << 16, "write(%d, %zu)", p[1], sizeof(expected));
    expect_sync(-1, "write(%d, %zu)", p[1], sizeof(expected));
    expect_count(1);
    mark();
    close(p[0]);
    close(p[1]);
    close(s[0]);
    close(s[1]);
    close(ep);
}

static void connections(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(addr);
    int server = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (bind(server, (struct sockaddr *)&addr, len) || listen(server, 1) ||
        getsockname(server, (struct sockaddr *)&addr, &len))
        abort();
    expect_loop(accept(server, NULL, NULL), -1, "accept(%d)", server);
    expect_sync(connect(client, (struct sockaddr *)&addr, len), "connect(%d)", client);
    if (errno == EINPROGRESS)
        expect_count(1);
    mark();
    close(client);
    close(server);
}

/* ---- processes and file locks ------------------------------------------------------------ */

static void processes(void)
{
    siginfo_t info;
    int go[2], status;
    pid_t pid;
    if (pipe(go) || (pid = fork()) < 0)
        abort();
    if (!pid) { /* ends when it is told to, by a way that is not traced */
        close(go[1]);
        pause();
        _exit(0);
    }
    expect_loop(waitpid(pid, &status, WNOHANG), 0, "waitpid(%d)", pid);
    expect_loop(wait4(pid, &status, WNOHANG, NULL), 0, "wait4(%d)", pid);
    expect_loop(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG), 0, "waitid(%d)", pid);
    kill(pid, SIGKILL);
    expect_sync(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), "waitid(%d)", pid);
    expect_sync(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG), "waitid(%d)", pid);
    close(go[0]);
    close(go[1]);
}

static void file_locks(void)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open("a", O_RDWR | O_CREAT, 0600), fd2;
    expect(fd, "open(\"a\", O_RDWR|O_CREAT, 0600)");
    fd2 = open("a", O_RDWR);
    expect(fd2, "open(\"a\", O_RDWR)");
    expect_sync(flock(fd, LOCK_EX), "flock(%d, %d)", fd, LOCK_EX);
    expect_loop(flock(fd2, LOCK_EX | LOCK_NB), -1, "flock(%d, %d)", fd2, LOCK_EX | LOCK_NB);
    expect_sync(fcntl(fd, F_OFD_SETLK, &lock), "fcntl(%d, %d)", fd, F_OFD_SETLK);
    expect_loop(fcntl(fd2, F_OFD_SETLK, &lock), -1, "fcntl(%d, %d)", fd2, F_OFD_SETLK);
    expect_loop(fcntl(fd2, F_SETLK, &lock), -1, "fcntl(%d, %d)", fd2, F_SETLK);
    expect_loop(lockf(fd2, F_TLOCK, 10), -1, "lockf(%d, %d, 10)", fd2, F_TLOCK);
    expect_loop(lockf(fd2, F_TEST, 10), -1, "lockf(%d, %d, 10)", fd2, F_TEST);
    expect(close(fd2), "close(%d)", fd2);
    expect(close(fd), "close(%d)", fd);
}

/* Requests are asked for right after they were made, until one is not done yet. */
static void requests(void)
{
    static struct aiocb cb;
    int fd = open("a", O_RDWR), late = 0;
    expect(fd, "open(\"a\", O_RDWR)");
    while (!late) {
        const struct aiocb *list[] = {&cb};
        cb = (struct aiocb){.aio_fildes = fd, .aio_buf = expected, .aio_nbytes = 1 << 16};
        cb.aio_sigevent.sigev_notify = SIGEV_NONE;
        expect(aio_write(&cb), "aio_write(%d, %d, 0, %#lx)", fd, 1 << 16, AT(cb));
        late = aio_error(&cb) == EINPROGRESS;
        if (late) {
            expect_sync(EINPROGRESS, "aio_error(%#lx)", AT(cb));
            expect_count(1);
        }
        expect_sync(aio_suspend(list, 1, NULL), "aio_suspend(1)");
        expect_name(aio_return(&cb), "aio_return(%#lx)", AT(cb));
    }
    expect(close(fd), "close(%d)", fd);
}

/* ---- threads ---------------------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spinlock;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static mtx_t mtx;
static cnd_t cnd;

/* Leaves everything locked. */
static void *locker(void *arg)
{
    pthread_mutex_lock(&mutex);
    pthread_rwlock_wrlock(&rwlock);
    pthread_spin_lock(&spinlock);
    mtx_lock(&mtx);
    return arg;
}

static void *sleeper(void *arg)
{
    pause();
    return arg;
}

static void locks(void)
{
    clockid_t clock = CLOCK_MONOTONIC;
    unsigned long m = AT(mutex), rw = AT(rwlock);
    expect_loop(pthread_mutex_trylock(&mutex), EBUSY, "pthread_mutex_trylock(%#lx)", m);
    expect_loop(pthread_mutex_timedlock(&mutex, &past), ETIMEDOUT, "pthread_mutex_timedlock(%#lx)",
                m);
    expect_loop(pthread_mutex_clocklock(&mutex, clock, &past), ETIMEDOUT,
                "pthread_mutex_clocklock(%#lx)", m);
    expect_loop(pthread_rwlock_tryrdlock(&rwlock), EBUSY, "pthread_rwlock_tryrdlock(%#lx)", rw);
    expect_loop(pthread_rwlock_trywrlock(&rwlock), EBUSY, "pthread_rwlock_trywrlock(%#lx)", rw);
    expect_loop(pthread_rwlock_timedrdlock(&rwlock, &past), ETIMEDOUT,
                "pthread_rwlock_timedrdlock(%#lx)", rw);
    expect_loop(pthread_rwlock_timedwrlock(&rwlock, &past), ETIMEDOUT,
                "pthread_rwlock_timedwrlock(%#lx)", rw);
    expect_loop(pthread_rwlock_clockrdlock(&rwlock, clock, &past), ETIMEDOUT,
                "pthread_rwlock_clockrdlock(%#lx)", rw);
    expect_loop(pthread_rwlock_clockwrlock(&rwlock, clock, &past), ETIMEDOUT,
                "pthread_rwlock_clockwrlock(%#lx)", rw);
    expect_loop(pthread_spin_trylock(&spinlock), EBUSY, "pthread_spin_trylock(%#lx)", AT(spinlock));
    expect_loop(mtx_trylock(&mtx), thrd_busy, "mtx_trylock(%#lx)", AT(mtx));
    expect_loop(mtx_timedlock(&mtx, &past), thrd_timedout, "mtx_timedlock(%#lx)", AT(mtx));
}

static void waits(void)
{
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    mtx_t own_mtx;
    mtx_init(&own_mtx, mtx_plain);
    pthread_mutex_lock(&own);
    mtx_lock(&own_mtx);
    expect_loop(pthread_cond_timedwait(&cond, &own, &past), ETIMEDOUT,
                "pthread_cond_timedwait(%#lx)", AT(cond));
    expect_loop(pthread_cond_clockwait(&cond, &own, CLOCK_MONOTONIC, &past), ETIMEDOUT,
                "pthread_cond_clockwait(%#lx)", AT(cond));
    expect_loop(cnd_timedwait(&cnd, &own_mtx, &past), thrd_timedout, "cnd_timedwait(%#lx)",
                AT(cnd));
    expect_loop(sem_trywait(&sem), -1, "sem_trywait(%#lx)", AT(sem));
    expect_loop(sem_timedwait(&sem, &past), -1, "sem_timedwait(%#lx)", AT(sem));
    expect_loop(sem_clockwait(&sem, CLOCK_MONOTONIC, &past), -1, "sem_clockwait(%#lx)", AT(sem));
}

static void joins(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, sleeper, NULL))
        abort();
    expect_loop(pthread_tryjoin_np(thread, NULL), EBUSY, "pthread_tryjoin_np()");
    expect_loop(pthread_timedjoin_np(thread, NULL, &past), ETIMEDOUT, "pthread_timedjoin_np()");
    expect_loop(pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &past), ETIMEDOUT,
                "pthread_clockjoin_np()");
    pthread_cancel(thread);
    expect_sync(pthread_join(thread, NULL), "pthread_join()");
}

static void threads(void)
{
    pthread_t thread;
    pthread_spin_init(&spinlock, 0);
    mtx_init(&mtx, mtx_timed);
    cnd_init(&cnd);
    if (pthread_create(&thread, NULL, locker, NULL))
        abort();
    expect_sync(pthread_join(thread, NULL), "pthread_join()");
    locks();
    waits();
    joins();
}

/* ---- what belongs together ---------------------------------------------------------------- */

/* One loop may ask several, and sleep in between; a success after it is an event of its own. */
static void mixed(void)
{
    struct timespec us = {0, 1000};
    struct pollfd none = {.fd = -1};
    for (int i = 0; i < 10; i++) {
        poll(&none, 1, 0);
        pthread_mutex_trylock(&mutex);
        sem_trywait(&sem);
        sched_yield();
        usleep(1);
        nanosleep(&us, NULL);
        poll(NULL, 0, 0);
    }
    expect_sync(0, "poll(1)");
    expect_count(30);
    expect_sync(sem_post(&sem), "sem_post(%#lx)", AT(sem));
    for (int i = 0; i < 10; i++) /* what is got at once is no event, and ends the polls */
        pthread_mutex_trylock(&mutex);
    expect_sync(EBUSY, "pthread_mutex_trylock(%#lx)", AT(mutex));
    expect_count(10);
    usleep(1);
    if (sem_trywait(&sem))
        abort();
    for (int i = 0; i < 5; i++)
        pthread_mutex_trylock(&mutex);
    expect_sync(EBUSY, "pthread_mutex_trylock(%#lx)", AT(mutex));
    expect_count(5);
    /* A sleep that no poll follows is one. */
    usleep(1);
    expect_idle(0, "usleep()");
    expect(close(open("a", O_RDONLY)), "open(\"a\", O_RDONLY) = 3\nio close(3)");
}

/* ---- waiting for a file ------------------------------------------------------------------- */

static void *maker(void *arg)
{
    usleep(20000);
    if (mkdir(arg, 0700))
        abort();
    return NULL;
}

static long times; /* in vain */

#define UNTIL(call) for (times = 0; !(call); times++, usleep(100))

static void appear(const char *name, pthread_t *thread)
{
    if (pthread_create(thread, NULL, maker, (void *)name))
        abort();
}

static void expect_found(pthread_t thread)
{
    if (!times)
        abort();
    expect_count((unsigned long)times);
    expect_sync(pthread_join(thread, NULL), "pthread_join()");
}

static void found(void)
{
    struct stat st;
    pthread_t thread;
    DIR *dir;
    appear("d1", &thread);
    UNTIL(stat("d1", &st) == 0);
    expect(0, "stat(\"d1\")");
    expect_found(thread);
    appear("d2", &thread);
    UNTIL(access("d2", R_OK) == 0);
    expect(0, "access(\"d2\", 0x4)");
    expect_found(thread);
    appear("d3", &thread);
    UNTIL(dir = opendir("d3"));
    expect(dirfd(dir), "opendir(\"d3\", 0x10000)");
    expect_found(thread);
    expect(closedir(dir), "closedir(3)");
}

/* Looks that are not one loop, and loops that find nothing. */
static void not_found(void)
{
    struct stat st;
    expect(stat("x", &st), "stat(\"x\")");
    expect(stat("y", &st), "stat(\"y\")");
    expect(lstat("y", &st), "lstat(\"y\")");
    expect(open("y", O_RDONLY), "open(\"y\", O_RDONLY)");
    expect(open("y", O_RDWR), "open(\"y\", O_RDWR)");
    for (int i = 0; i <= TIMES; i++)
        stat("y", &st);
    expect(-1, "stat(\"y\")");
    expect_count(TIMES);
    expect(rename("y", "x"), "rename(\"y\", \"x\")");
    expect(rename("y", "z"), "rename(\"y\", \"z\")");
    mark();
    expect(stat("y", &st), "stat(\"y\")");
    mark();
    expect(stat("y", &st), "stat(\"y\")");
    usleep(1);
    expect_idle(0, "usleep()");
    for (int i = 0; i <= TIMES; i++)
        mkdir("d1", 0700);
    errno = EEXIST;
    expect(-1, "mkdir(\"d1\", 0700)");
    expect_count(TIMES);
}

static void expect_threads(void)
{
    for (int i = 1; i <= 3; i++) {
        expect_text("node 0.0.%d\n", i + 2);
        expect_idle(0, "usleep()");
        expect(0, "mkdir(\"d%d\", 0700)", i);
    }
}

int main(void)
{
    if (sem_init(&sem, 0, 0) || sem_init(&marks, 0, 0))
        return 1;
    channels();
    connections();
    processes();
    file_locks();
    requests();
    threads();
    mixed();
    found();
    not_found();
    expect_threads();
    return expect_print(1);
}
