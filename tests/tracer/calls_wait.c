/*
 * Calls that wait for others or sleep: only their class and order matter, but the fields
 * are there too.  Prints the trace it expects.  Run in an empty directory.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/tracer/expect.h"

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
    expect_sync(sendto(s[0], buf, 11, 0, NULL, 0), "sendto(%d, 11)", s[0]);
    expect_sync(recvfrom(s[1], buf, 20, 0, NULL, NULL), "recvfrom(%d, 20)", s[1]);
    expect_sync(sendmsg(s[0], &msg, 0), "sendmsg(%d)", s[0]);
    expect_sync(recvmsg(s[1], &msg, 0), "recvmsg(%d)", s[1]);
    expect_sync(write(s[0], buf, 10), "write(%d, 10)", s[0]);
    expect_sync(recvmmsg(s[1], &many, 1, 0, NULL), "recvmmsg(%d)", s[1]);
    expect_sync(recv(s[1], buf, 20, MSG_DONTWAIT), "recv(%d, 20)", s[1]);
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
    fd_set in;
    if (pipe(p) || epoll_ctl(ep, EPOLL_CTL_ADD, p[0], &event))
        abort();
    struct pollfd fds[2] = {{.fd = p[0], .events = POLLIN}, {.fd = p[1], .events = POLLOUT}};
    expect_sync(poll(fds, 2, 0), "poll(2)");
    expect_sync(ppoll(fds, 1, &no_time, NULL), "ppoll(1)");
    FD_ZERO(&in);
    FD_SET(p[0], &in);
    expect_sync(select(p[0] + 1, &in, NULL, NULL, &no_time_us), "select(%d)", p[0] + 1);
    expect_sync(pselect(0, NULL, NULL, NULL, &no_time, NULL), "pselect(0)");
    expect_sync(write(p[1], buf, 1), "write(%d, 1)", p[1]);
    expect_sync(epoll_wait(ep, found, 4, -1), "epoll_wait(%d, 4)", ep);
    expect_sync(epoll_pwait(ep, found, 3, 0, NULL), "epoll_pwait(%d, 3)", ep);
    expect_sync(epoll_wait(p[0], found, 4, 0), "epoll_wait(%d, 4)", p[0]);
    close(p[0]);
    close(p[1]);
    close(ep);
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
    expect_sync(lockf(fd, F_LOCK, 10), "lockf(%d, %d, 10)", fd, F_LOCK);
    expect_sync(fcntl(fd, F_SETLK, &lock), "fcntl(%d, %d)", fd, F_SETLK);
    lock.l_type = F_UNLCK;
    expect_sync(fcntl(fd, F_SETLKW, &lock), "fcntl(%d, %d)", fd, F_SETLKW);
    lock.l_type = F_RDLCK;
    lock.l_pid = 0;
    expect_sync(fcntl(fd, F_OFD_SETLK, &lock), "fcntl(%d, %d)", fd, F_OFD_SETLK);
    lock.l_type = F_WRLCK;
    expect_sync(fcntl(fd2, F_OFD_SETLK, &lock), "fcntl(%d, %d)", fd2, F_OFD_SETLK);
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
    expect_sync(sem_timedwait(&sem, &past), "sem_timedwait(%#lx)", at);
}

/* Sets `ready` and wakes the other, which waits with the mutex released. */
static void *waker(void *arg)
{
    while (pthread_mutex_trylock(&mutex)) /* a lock that waits would be an event */
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
    start(&thread, waker, NULL);
    while (!ready)
        expect_sync(pthread_cond_wait(&cond, &mutex), "pthread_cond_wait(%#lx)", at);
    pthread_mutex_unlock(&mutex);
    expect_sync(pthread_join(thread, NULL), "pthread_join()");
}

/* A lock is an event where one had to wait: the holder lets go when we sleep in it. */
struct holder {
    void (*lock)(void);
    void (*unlock)(void);
};

static void lock_mutex(void)
{
    pthread_mutex_lock(&mutex);
}

static void unlock_mutex(void)
{
    pthread_mutex_unlock(&mutex);
}

static void lock_rwlock(void)
{
    pthread_rwlock_wrlock(&rwlock);
}

static void unlock_rwlock(void)
{
    pthread_rwlock_unlock(&rwlock);
}

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
    struct holder *h = arg;
    h->lock();
    sem_post(&held);
    while (!main_sleeps())
        sched_yield();
    h->unlock();
    return NULL;
}

static void hold_begin(pthread_t *thread, struct holder *h)
{
    start(thread, hold, h);
    expect_sync(sem_wait(&held), "sem_wait(%#lx)", (unsigned long)&held);
}

static void locks(void)
{
    struct holder h = {lock_mutex, unlock_mutex}, rw = {lock_rwlock, unlock_rwlock};
    pthread_t thread;
    hold_begin(&thread, &h);
    expect_sync(pthread_mutex_lock(&mutex), "pthread_mutex_lock(%#lx)", (unsigned long)&mutex);
    unlock_mutex();
    expect_sync(pthread_join(thread, NULL), "pthread_join()");
    hold_begin(&thread, &rw);
    expect_sync(pthread_rwlock_rdlock(&rwlock), "pthread_rwlock_rdlock(%#lx)",
                (unsigned long)&rwlock);
    unlock_rwlock();
    expect_sync(pthread_join(thread, NULL), "pthread_join()");
    hold_begin(&thread, &rw);
    expect_sync(pthread_rwlock_wrlock(&rwlock), "pthread_rwlock_wrlock(%#lx)",
                (unsigned long)&rwlock);
    unlock_rwlock();
    expect_sync(pthread_join(thread, NULL), "pthread_join()");
    pthread_rwlock_rdlock(&rwlock); /* free: no event */
    unlock_rwlock();
    pthread_rwlock_wrlock(&rwlock);
    unlock_rwlock();
}

/* ---- sleeping --------------------------------------------------------------------------- */

static void on_alarm(int sig)
{
    (void)sig;
}

static void sleeps(void)
{
    struct timespec ms = {0, 1000000};
    struct itimerval timer = {{0, 20000}, {0, 20000}}, off = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = on_alarm};
    expect_idle(nanosleep(&ms, NULL), "nanosleep()");
    expect_idle(clock_nanosleep(CLOCK_MONOTONIC, 0, &ms, NULL), "clock_nanosleep()");
    expect_idle(usleep(1000), "usleep()");
    expect_idle(sleep(0), "sleep()");
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    expect_idle(pause(), "pause()");
    setitimer(ITIMER_REAL, &off, NULL);
}

/* What the threads above have done, in the order of their creation: 1 did nothing. */
static void expect_threads(void)
{
    expect_text("node 0.0.2\n");
    expect_sync(0, "pthread_cond_signal(%#lx)", (unsigned long)&cond);
    for (int i = 3; i <= 5; i++) {
        expect_text("node 0.0.%d\n", i);
        expect_sync(0, "sem_post(%#lx)", (unsigned long)&held);
    }
}

int main(void)
{
    if (sem_init(&sem, 0, 0) || sem_init(&held, 0, 0))
        return 1;
    pipes();
    messages();
    connections();
    readiness();
    processes();
    file_locks();
    joins();
    semaphores();
    conditions();
    locks();
    sleeps();
    expect_threads();
    return expect_print(1);
}
