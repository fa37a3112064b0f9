/*
 * Calls that wait for others or sleep: only their class and order matter, but the fields
 * are there too.  Prints the trace it expects.  Run in an empty directory.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "tests/tracer/expect.h"

ssize_t __recv_chk(int fd, void *buf, size_t n, size_t size, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t size, int flags, struct sockaddr *addr,
                       socklen_t *len);
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
                size_t size);

static char buf[64];

/* ---- pipes and sockets ------------------------------------------------------------------ */

static void pipes(void)
{
    int p[2];
    if (pipe(p))
        abort();
    expect_sync(write(p[1], buf, 10), "write(%d, 10)", p[1]);
    expect_sync(read(p[0], buf, 20), "read(%d, 20)", p[0]);
    expect_sync(dup2(p[0], 40), "dup2(%d, 40)", p[0]);
    expect_sync(lseek(40, 0, SEEK_CUR), "lseek(40, 0, SEEK_CUR)");
    close(40);
    close(p[0]);
    close(p[1]);
}

static void events(void)
{
    eventfd_t value = 0;
    int fd = eventfd(0, EFD_NONBLOCK);
    expect_sync(eventfd_write(fd, 7), "eventfd_write(%d)", fd);
    expect_sync(eventfd_read(fd, &value), "eventfd_read(%d)", fd);
    expect_sync(eventfd_read(fd, &value), "eventfd_read(%d)", fd);
    expect_count(1);
    close(fd);
}

static void messages(void)
{
    int s[2];
    struct iovec iov = {buf, 10};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    struct mmsghdr many = {.msg_hdr = msg};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s))
        abort();
    expect_sync(send(s[0], buf, 10, 0), "send(%d, 10)", s[0]);
    expect_sync(recv(s[1], buf, 20, 0), "recv(%d, 20)", s[1]);
    expect_sync(send(s[0], buf, 10, 0), "send(%d, 10)", s[0]);
    expect_sync(__recv_chk(s[1], buf, 20, sizeof(buf), 0), "__recv_chk(%d, 20)", s[1]);
    expect_sync(send(s[0], buf, 10, 0), "send(%d, 10)", s[0]);
    expect_sync(__recvfrom_chk(s[1], buf, 20, sizeof(buf), 0, NULL, NULL), "__recvfrom_chk(%d, 20)",
                s[1]);
    expect_sync(sendto(s[0], buf, 11, 0, NULL, 0), "sendto(%d, 11)", s[0]);
    expect_sync(recvfrom(s[1], buf, 20, 0, NULL, NULL), "recvfrom(%d, 20)", s[1]);
    expect_sync(sendmsg(s[0], &msg, 0), "sendmsg(%d)", s[0]);
    expect_sync(recvmsg(s[1], &msg, 0), "recvmsg(%d)", s[1]);
    expect_sync(write(s[0], buf, 10), "write(%d, 10)", s[0]);
    expect_sync(recvmmsg(s[1], &many, 1, 0, NULL), "recvmmsg(%d)", s[1]);
    expect_sync(sendmmsg(s[0], &many, 1, 0), "sendmmsg(%d)", s[0]);
    expect_sync(recv(s[1], buf, 20, 0), "recv(%d, 20)", s[1]);
    expect_sync(recv(s[1], buf, 20, MSG_DONTWAIT), "recv(%d, 20)", s[1]);
    expect_count(1);
    close(s[0]);
    close(s[1]);
}

static void connections(void)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX}, none = {.sun_family = AF_UNIX};
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                                (size_t)snprintf(addr.sun_path + 1, 50, "pt-calls-%d", getpid()));
    int server = socket(AF_UNIX, SOCK_STREAM, 0), client[2], fd;
    if (bind(server, (struct sockaddr *)&addr, len) || listen(server, 4))
        abort();
    for (int i = 0; i < 2; i++) {
        client[i] = socket(AF_UNIX, SOCK_STREAM, 0);
        expect_sync(connect(client[i], (struct sockaddr *)&addr, len), "connect(%d)", client[i]);
    }
    fd = accept(server, NULL, NULL);
    expect_sync(fd, "accept(%d)", server);
    close(fd);
    fd = accept4(server, NULL, NULL, SOCK_CLOEXEC);
    expect_sync(fd, "accept4(%d)", server);
    close(fd);
    strcpy(none.sun_path, "no");
    expect_sync(connect(server, (struct sockaddr *)&none, sizeof(none)), "connect(%d)", server);
    close(client[0]);
    close(client[1]);
    close(server);
}

static void readiness(void)
{
    int p[2], ep = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN}, found[4];
    struct timespec no_time = {0, 0};
    struct timeval no_time_us = {0, 0};
    fd_set out;
    if (pipe(p) || epoll_ctl(ep, EPOLL_CTL_ADD, p[0], &event))
        abort();
    struct pollfd fds[2] = {{.fd = p[0], .events = POLLIN}, {.fd = p[1], .events = POLLOUT}};
    expect_sync(poll(fds, 2, 0), "poll(2)");
    expect_sync(ppoll(fds + 1, 1, &no_time, NULL), "ppoll(1)");
    expect_sync(__poll_chk(fds + 1, 1, 0, sizeof(fds)), "__poll_chk(1)");
    expect_sync(__ppoll_chk(fds + 1, 1, &no_time, NULL, sizeof(fds)), "__ppoll_chk(1)");
    FD_ZERO(&out);
    FD_SET(p[1], &out);
    expect_sync(select(p[1] + 1, NULL, &out, NULL, &no_time_us), "select(%d)", p[1] + 1);
    expect_sync(pselect(p[1] + 1, NULL, &out, NULL, &no_time, NULL), "pselect(%d)", p[1] + 1);
    expect_sync(write(p[1], buf, 1), "write(%d, 1)", p[1]);
    expect_sync(epoll_wait(ep, found, 4, -1), "epoll_wait(%d, 4)", ep);
    expect_sync(epoll_pwait(ep, found, 3, 0, NULL), "epoll_pwait(%d, 3)", ep);
    expect_sync(epoll_pwait2(ep, found, 2, NULL, NULL), "epoll_pwait2(%d, 2)", ep);
    expect_sync(epoll_wait(p[0], found, 4, 0), "epoll_wait(%d, 4)", p[0]);
    close(p[0]);
    close(p[1]);
    close(ep);
}

/* ---- queues and signals ------------------------------------------------------------------ */

static void queues(void)
{
    struct {
        long type;
        char text[8];
    } msg = {1, "text"};
    struct sembuf up = {0, 1, 0}, down = {0, -1, 0};
    struct timespec ms = {0, 1000000};
    int queue = msgget(IPC_PRIVATE, 0600), sems = semget(IPC_PRIVATE, 1, 0600);
    if (queue < 0 || sems < 0)
        abort();
    expect_sync(msgsnd(queue, &msg, 8, 0), "msgsnd(8)");
    expect_sync(msgrcv(queue, &msg, 8, 0, 0), "msgrcv(8)");
    expect_sync(msgrcv(queue, &msg, 8, 0, IPC_NOWAIT), "msgrcv(8)");
    expect_count(1);
    expect_sync(semop(sems, &up, 1), "semop(1)");
    expect_sync(semtimedop(sems, &down, 1, NULL), "semtimedop(1)");
    expect_sync(semtimedop(sems, &down, 1, &ms), "semtimedop(1)");
    expect_count(1);
    msgctl(queue, IPC_RMID, NULL);
    semctl(sems, 0, IPC_RMID);
}

static void posix_queues(void)
{
    struct mq_attr attr = {.mq_maxmsg = 2, .mq_msgsize = sizeof(buf)};
    struct timespec past = {1, 0};
    char name[64];
    snprintf(name, sizeof(name), "/pt-calls-%d", getpid());
    mqd_t mq = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
    if (mq >= 0 && mq_unlink(name))
        abort();
    /* Where the kernel has no queues the calls fail, and are events nevertheless. */
    expect_sync(mq_send(mq, buf, 10, 0), "mq_send(10)");
    expect_sync(mq_receive(mq, buf, sizeof(buf), NULL), "mq_receive(64)");
    expect_sync(mq_timedsend(mq, buf, 11, 0, &past), "mq_timedsend(11)");
    expect_sync(mq_timedreceive(mq, buf, sizeof(buf), NULL, &past), "mq_timedreceive(64)");
    expect_sync(mq_timedreceive(mq, buf, sizeof(buf), NULL, &past), "mq_timedreceive(64)");
    expect_count(1);
    if (mq >= 0)
        mq_close(mq);
}

static void on_signal(int sig)
{
    (void)sig;
}

static void signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    struct timespec no_time = {0, 0};
    siginfo_t info;
    sigset_t set, none;
    int sig;
    sigemptyset(&none);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGUSR1);
    expect_sync(sigwait(&set, &sig), "sigwait()");
    raise(SIGUSR1);
    expect_sync(sigwaitinfo(&set, &info), "sigwaitinfo()");
    raise(SIGUSR1);
    expect_sync(sigtimedwait(&set, &info, NULL), "sigtimedwait()");
    expect_sync(sigtimedwait(&set, &info, &no_time), "sigtimedwait()");
    expect_count(1);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    expect_sync(sigsuspend(&none), "sigsuspend()");
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* ---- processes and locks ---------------------------------------------------------------- */

static pid_t child(void)
{
    pid_t pid = fork();
    if (!pid)
        _exit(3);
    return pid;
}

static void processes(void)
{
    struct rusage usage;
    siginfo_t info;
    int status;
    pid_t pid;
    child();
    expect_sync(wait(&status), "wait()");
    pid = child();
    expect_sync(waitpid(pid, &status, 0), "waitpid(%d)", pid);
    child();
    expect_sync(wait3(&status, 0, &usage), "wait3()");
    pid = child();
    expect_sync(wait4(pid, &status, 0, &usage), "wait4(%d)", pid);
    pid = child();
    expect_sync(waitid(P_PID, (id_t)pid, &info, WEXITED), "waitid(%d)", pid);
    expect_sync(waitpid(-1, &status, WNOHANG), "waitpid(-1)");
    expect_sync(system("exit 3"), "system()");
    expect_sync(pclose(popen("exit 4", "r")), "pclose()");
}

static void file_locks(void)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open("a", O_RDWR | O_CREAT, 0600), fd2;
    expect(fd, "open(\"a\", O_RDWR|O_CREAT, 0600)");
    expect_sync(flock(fd, LOCK_EX), "flock(%d, %d)", fd, LOCK_EX);
    fd2 = open("a", O_RDWR);
    expect(fd2, "open(\"a\", O_RDWR)");
    expect_sync(flock(fd2, LOCK_EX | LOCK_NB), "flock(%d, %d)", fd2, LOCK_EX | LOCK_NB);
    expect_count(1);
    expect_sync(lockf(fd, F_LOCK, 10), "lockf(%d, %d, 10)", fd, F_LOCK);
    expect_sync(fcntl(fd, F_SETLK, &lock), "fcntl(%d, %d)", fd, F_SETLK);
    lock.l_type = F_UNLCK;
    expect_sync(fcntl(fd, F_SETLKW, &lock), "fcntl(%d, %d)", fd, F_SETLKW);
    lock.l_type = F_RDLCK;
    lock.l_pid = 0;
    expect_sync(fcntl(fd, F_OFD_SETLK, &lock), "fcntl(%d, %d)", fd, F_OFD_SETLK);
    lock.l_type = F_WRLCK;
    expect_sync(fcntl(fd2, F_OFD_SETLK, &lock), "fcntl(%d, %d)", fd2, F_OFD_SETLK);
    expect_count(1);
    if (fcntl(fd, F_GETLK, &lock)) /* waits for nobody */
        abort();
    expect(close(fd2), "close(%d)", fd2);
    expect(close(fd), "close(%d)", fd);
}

/* ---- threads ---------------------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem, held;
static int ready;

static void *idle_thread(void *arg)
{
    return arg;
}

static void start(pthread_t *thread, void *(*routine)(void *), void *arg)
{
    if (pthread_create(thread, NULL, routine, arg))
        abort();
}

static void joins(void)
{
    pthread_t thread;
    pthread_barrier_t barrier;
    start(&thread, idle_thread, NULL);
    expect_sync(pthread_join(thread, NULL), "pthread_join()");
    pthread_barrier_init(&barrier, NULL, 1);
    errno = ENOENT; /* of something else */
    if (pthread_barrier_wait(&barrier) != PTHREAD_BARRIER_SERIAL_THREAD)
        abort();
    expect_text("sync pthread_barrier_wait() = 1\n"); /* the one that is told apart */
}

static void semaphores(void)
{
    struct timespec past = {1, 0};
    unsigned long at = (unsigned long)&sem;
    expect_sync(sem_post(&sem), "sem_post(%#lx)", at);
    expect_sync(sem_wait(&sem), "sem_wait(%#lx)", at);
    expect_sync(sem_post(&sem), "sem_post(%#lx)", at);
    expect_sync(sem_timedwait(&sem, &past), "sem_timedwait(%#lx)", at);
    expect_sync(sem_post(&sem), "sem_post(%#lx)", at);
    expect_sync(sem_clockwait(&sem, CLOCK_MONOTONIC, &past), "sem_clockwait(%#lx)", at);
    expect_sync(sem_timedwait(&sem, &past), "sem_timedwait(%#lx)", at);
    expect_count(1);
}

/* Sets `ready` and wakes the other, which waits with the mutex released. */
static unsigned long waker_tries; /* in vain */

static void *waker(void *arg)
{
    for (; pthread_mutex_trylock(&mutex); waker_tries++)
        sched_yield();
    ready = 1;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
    return arg;
}

static void conditions(void)
{
    struct timespec past = {1, 0};
    unsigned long at = (unsigned long)&cond;
    pthread_t thread;
    expect_sync(pthread_cond_signal(&cond), "pthread_cond_signal(%#lx)", at);
    expect_sync(pthread_cond_broadcast(&cond), "pthread_cond_broadcast(%#lx)", at);
    pthread_mutex_lock(&mutex); /* free: no event */
    expect_sync(pthread_cond_timedwait(&cond, &mutex, &past), "pthread_cond_timedwait(%#lx)", at);
    expect_count(1);
    start(&thread, waker, NULL);
    while (!ready)
        expect_sync(pthread_cond_wait(&cond, &mutex), "pthread_cond_wait(%#lx)", at);
    pthread_mutex_unlock(&mutex);
    expect_sync(pthread_join(thread, NULL), "pthread_join()");
}

/* A lock is an event where one had to wait: the holder lets go when we sleep in it. */
static mtx_t mtx;

static int lock_mutex(void)
{
    return pthread_mutex_lock(&mutex);
}

static int unlock_mutex(void)
{
    return pthread_mutex_unlock(&mutex);
}

static int lock_rwlock(void)
{
    return pthread_rwlock_wrlock(&rwlock);
}

static int unlock_rwlock(void)
{
    return pthread_rwlock_unlock(&rwlock);
}

static int lock_mtx(void)
{
    return mtx_lock(&mtx);
}

static int unlock_mtx(void)
{
    return mtx_unlock(&mtx);
}

static struct timespec in_a_minute(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    ts.tv_sec += 60;
    return ts;
}

#define TIMED(name, object)                                  \
    static int wait_##name(void)                             \
    {                                                        \
        struct timespec until = in_a_minute(CLOCK_REALTIME); \
        return name(&object, &until);                        \
    }
#define CLOCKED(name, object)                                 \
    static int wait_##name(void)                              \
    {                                                         \
        struct timespec until = in_a_minute(CLOCK_MONOTONIC); \
        return name(&object, CLOCK_MONOTONIC, &until);        \
    }
#define UNTIMED(name, object)    \
    static int wait_##name(void) \
    {                            \
        return name(&object);    \
    }

UNTIMED(pthread_mutex_lock, mutex)
TIMED(pthread_mutex_timedlock, mutex)
CLOCKED(pthread_mutex_clocklock, mutex)
UNTIMED(pthread_rwlock_rdlock, rwlock)
TIMED(pthread_rwlock_timedrdlock, rwlock)
CLOCKED(pthread_rwlock_clockrdlock, rwlock)
UNTIMED(pthread_rwlock_wrlock, rwlock)
TIMED(pthread_rwlock_timedwrlock, rwlock)
CLOCKED(pthread_rwlock_clockwrlock, rwlock)
UNTIMED(mtx_lock, mtx)
TIMED(mtx_timedlock, mtx)

static const struct contest {
    const char *name;
    int (*wait)(void);
    void *object;
    int (*lock)(void), (*unlock)(void);
} contests[] = {
#define MUTEX(name)                                          \
    {                                                        \
#name, wait_##name, &mutex, lock_mutex, unlock_mutex \
    }
#define RWLOCK(name)                                            \
    {                                                           \
#name, wait_##name, &rwlock, lock_rwlock, unlock_rwlock \
    }
#define MTX(name)                                      \
    {                                                  \
#name, wait_##name, &mtx, lock_mtx, unlock_mtx \
    }
    MUTEX(pthread_mutex_lock),
    MUTEX(pthread_mutex_timedlock),
    MUTEX(pthread_mutex_clocklock),
    RWLOCK(pthread_rwlock_rdlock),
    RWLOCK(pthread_rwlock_timedrdlock),
    RWLOCK(pthread_rwlock_clockrdlock),
    RWLOCK(pthread_rwlock_wrlock),
    RWLOCK(pthread_rwlock_timedwrlock),
    RWLOCK(pthread_rwlock_clockwrlock),
    MTX(mtx_lock),
    MTX(mtx_timedlock),
};

#define NCONTESTS (sizeof(contests) / sizeof(contests[0]))

/* Does the first thread sleep?  /proc is not traced. */
static int main_sleeps(void)
{
    char path[64], text[128], *state;
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", getpid());
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    state = strrchr(text, ')');
    return state && state[2] == 'S';
}

static void *hold(void *arg)
{
    const struct contest *c = arg;
    c->lock();
    sem_post(&held);
    while (!main_sleeps())
        sched_yield();
    c->unlock();
    return NULL;
}

static void locks(void)
{
    for (size_t i = 0; i < NCONTESTS; i++) {
        const struct contest *c = &contests[i];
        pthread_t thread;
        start(&thread, hold, (void *)c);
        expect_sync(sem_wait(&held), "sem_wait(%#lx)", (unsigned long)&held);
        expect_sync(c->wait(), "%s(%#lx)", c->name, (unsigned long)c->object);
        c->unlock();
        expect_sync(pthread_join(thread, NULL), "pthread_join()");
        c->wait(); /* free: no event */
        c->unlock();
    }
}

/* ---- threads of C11 --------------------------------------------------------------------- */

static cnd_t cnd;
static int c11_ready;

static int c11_main(void *arg)
{
    (void)arg;
    while (!main_sleeps())
        sched_yield();
    mtx_lock(&mtx); /* free, as the other sleeps in cnd_wait: no event */
    c11_ready = 1;
    cnd_signal(&cnd);
    mtx_unlock(&mtx);
    return 7;
}

static void c11_threads(void)
{
    struct timespec past = {1, 0};
    unsigned long at = (unsigned long)&cnd;
    thrd_t thread;
    int value;
    expect_sync(cnd_broadcast(&cnd), "cnd_broadcast(%#lx)", at);
    mtx_lock(&mtx);
    expect_sync(cnd_timedwait(&cnd, &mtx, &past), "cnd_timedwait(%#lx)", at);
    expect_count(1);
    if (thrd_create(&thread, c11_main, NULL) != thrd_success)
        abort();
    while (!c11_ready)
        expect_sync(cnd_wait(&cnd, &mtx), "cnd_wait(%#lx)", at);
    mtx_unlock(&mtx);
    expect_sync(thrd_join(thread, &value), "thrd_join()");
    if (value != 7)
        abort();
}

/* ---- sleeping --------------------------------------------------------------------------- */

static void on_alarm(int sig)
{
    (void)sig;
}

static void sleeps(void)
{
    struct timespec ms = {0, 1000000}, wrong = {0, -1};
    struct timeval ms_us = {0, 1000};
    struct itimerval timer = {{0, 20000}, {0, 20000}}, off = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = on_alarm};
    expect_idle(nanosleep(&ms, NULL), "nanosleep()");
    expect_idle(clock_nanosleep(CLOCK_MONOTONIC, 0, &ms, NULL), "clock_nanosleep()");
    errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &wrong, NULL);
    expect_idle(-1, "clock_nanosleep()");
    expect_idle(usleep(1000), "usleep()");
    expect_idle(sleep(0), "sleep()");
    expect_idle(thrd_sleep(&ms, NULL), "thrd_sleep()");
    expect_idle(poll(NULL, 0, 1), "poll(0)"); /* nothing to wait for: a sleep */
    expect_idle(ppoll(NULL, 0, &ms, NULL), "ppoll(0)");
    expect_idle(pselect(0, NULL, NULL, NULL, &ms, NULL), "pselect(0)");
    expect_idle(select(0, NULL, NULL, NULL, &ms_us), "select(0)");
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    expect_sync(pause(), "pause()");
    setitimer(ITIMER_REAL, &off, NULL);
}

/* What the threads above have done, in the order of their creation: 1 did nothing. */
static void expect_threads(void)
{
    expect_text("node 0.0.2\n");
    if (waker_tries) {
        expect_sync(EBUSY, "pthread_mutex_trylock(%#lx)", (unsigned long)&mutex);
        expect_count(waker_tries);
    }
    expect_sync(0, "pthread_cond_signal(%#lx)", (unsigned long)&cond);
    size_t n = 3;
    for (; n < 3 + NCONTESTS; n++) {
        expect_text("node 0.0.%zu\n", n);
        expect_sync(0, "sem_post(%#lx)", (unsigned long)&held);
    }
    expect_text("node 0.0.%zu\n", n);
    expect_sync(0, "cnd_signal(%#lx)", (unsigned long)&cnd);
}

int main(void)
{
    if (sem_init(&sem, 0, 0) || sem_init(&held, 0, 0) || mtx_init(&mtx, mtx_timed) ||
        cnd_init(&cnd))
        return 1;
    pipes();
    events();
    messages();
    connections();
    readiness();
    queues();
    posix_queues();
    signals();
    processes();
    file_locks();
    joins();
    semaphores();
    conditions();
    locks();
    c11_threads();
    sleeps();
    expect_threads();
    return expect_print(1);
}
