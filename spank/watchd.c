/*
 * The watchdog is no child of slurmstepd but an orphan in a session of its own: a
 * signal to the step (scancel, the time limit) must not reach it, it has the last
 * events to save.  So its end is seen at the control socket and not by waitpid().
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "spank/cgroup.h"
#include "spank/watchd.h"

#define LONGEST_MS 120000 /* for the end, whatever it says */
#define GRACE_MS   1000   /* between SIGTERM and SIGKILL, and after that */

struct pt_watchd {
    int fd;
    pid_t pid;
    uid_t uid;
    size_t used;
    char buf[PT_WATCHD_LINE]; /* what was read and is not yet a line */
};

/* ---- the child --------------------------------------------------------------- */

/* How far the child came; it says so over a pipe that exec closes. */
enum stage { STAGE_STARTED, STAGE_FORK, STAGE_USER, STAGE_FILES, STAGE_EXEC };

struct report {
    enum stage stage;
    int error;
    pid_t pid;
};

static const char *const stage_failed[] = {
    [STAGE_FORK] = "cannot fork",
    [STAGE_USER] = "cannot become the user",
    [STAGE_FILES] = "cannot set up its descriptors",
    [STAGE_EXEC] = "cannot be executed",
};

/* All of the child's code is async-signal-safe: slurmstepd has threads. */

static void tell(int fd, enum stage stage)
{
    struct report report = {.stage = stage, .error = errno, .pid = getpid()};

    if (write(fd, &report, sizeof(report)) < 0)
        _exit(127);
}

static int reset_signals(void)
{
    struct sigaction dfl = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (int sig = 1; sig < NSIG; sig++)
        sigaction(sig, &dfl, NULL); /* fails for a few, which have no handler */
    sigemptyset(&none);
    return sigprocmask(SIG_SETMASK, &none, NULL);
}

/* slurmstepd may be exempt from the out-of-memory killer; a user's process is not. */
static void reset_oom_score(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd >= 0) {
        ssize_t ignored = write(fd, "0", 1);
        (void)ignored;
        close(fd);
    }
}

/* For good: real, effective and saved ids, and no way back. */
static int become_user(const struct pt_watchd_how *how)
{
    uid_t ruid, euid, suid;
    gid_t rgid, egid, sgid;

    if (getuid() == 0 || geteuid() == 0) {
        if (seteuid(0) < 0)
            return -1;
        reset_oom_score();
        pt_cgroup_leave();
        if (setgroups(how->ngroups, how->groups) < 0 ||
            setresgid(how->gid, how->gid, how->gid) < 0 ||
            setresuid(how->uid, how->uid, how->uid) < 0)
            return -1;
    }
    if (getresuid(&ruid, &euid, &suid) < 0 || getresgid(&rgid, &egid, &sgid) < 0)
        return -1;
    errno = EPERM;
    if (ruid != how->uid || euid != how->uid || suid != how->uid || rgid != how->gid ||
        egid != how->gid || sgid != how->gid)
        return -1;
    if (how->uid != 0 && setuid(0) == 0)
        return -1;
    return 0;
}

static void close_fds(unsigned first, unsigned last)
{
    struct rlimit limit;

    if (first > last)
        return;
#ifdef SYS_close_range
    if (syscall(SYS_close_range, first, last, 0) == 0)
        return;
#endif
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > 1 << 20)
        limit.rlim_cur = 1 << 20;
    for (unsigned fd = first; fd <= last && fd < limit.rlim_cur; fd++)
        close(fd);
}

/* Leaves 0-2 on /dev/null, the control socket, and the report until exec. */
static int set_up_fds(int control, int report)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0)
        return -1;
    for (int fd = 0; fd <= 2; fd++) {
        if ((null == fd ? fcntl(fd, F_SETFD, 0) : dup2(null, fd)) < 0)
            return -1;
    }
    if (dup2(control, PT_WATCHD_CONTROL_FD) < 0)
        return -1;
    close_fds(PT_WATCHD_CONTROL_FD + 1, report - 1);
    close_fds(report + 1, UINT_MAX);
    return 0;
}

static void __attribute__((noreturn))
run_child(const struct pt_watchd_how *how, int control, int report)
{
    static char *const environment[] = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", NULL};
    enum stage stage;

    /* Out of the way of the numbers that are given away below. */
    control = fcntl(control, F_DUPFD_CLOEXEC, PT_WATCHD_CONTROL_FD + 1);
    report = fcntl(report, F_DUPFD_CLOEXEC, PT_WATCHD_CONTROL_FD + 1);
    if (control < 0 || report < 0)
        _exit(127);
    tell(report, STAGE_STARTED);
    stage = STAGE_USER;
    if (become_user(how) < 0)
        goto fail;
    stage = STAGE_FILES;
    if (set_up_fds(control, report) < 0 || reset_signals() < 0)
        goto fail;
    umask(how->umask);
    if (chdir(how->cwd) < 0 && chdir("/") < 0)
        goto fail;
    stage = STAGE_EXEC;
    execve(how->program, how->argv, environment);
fail:
    tell(report, stage);
    _exit(127);
}

/* ---- time and signals ----------------------------------------------------------- */

static long now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000L + ts.tv_nsec / 1000000;
}

/* Until fd can be read: 1, or 0 when the time is over (even if it never stops talking). */
static int wait_readable(int fd, long deadline)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};

    for (;;) {
        long left = deadline - now_ms();
        int n = left > 0 ? poll(&pfd, 1, left) : 0;

        if (n > 0)
            return 1;
        if (n == 0 || errno != EINTR)
            return 0;
    }
}

static void reap(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/*
 * With the user's rights: the number may meanwhile be another process' if the user
 * has ended the watchdog, and that must not be hit with root's.
 */
static void signal_as_user(const struct pt_watchd *w, int sig)
{
    pid_t pid = fork();

    if (pid == 0) {
        if (w->pid > 1 && setresuid(w->uid, w->uid, w->uid) == 0)
            kill(w->pid, sig);
        _exit(0);
    }
    if (pid > 0)
        reap(pid);
}

/* ---- lines ----------------------------------------------------------------------- */

/* Waits for more bytes: 1, 0 at the end, -1 when the time is over. */
static int fill(struct pt_watchd *w, long deadline)
{
    ssize_t n;

    if (w->used == sizeof(w->buf)) /* no line is that long: not ours, forget it */
        w->used = 0;
    do {
        if (!wait_readable(w->fd, deadline))
            return -1;
        n = recv(w->fd, w->buf + w->used, sizeof(w->buf) - w->used, MSG_DONTWAIT);
    } while (n < 0 && (errno == EINTR || errno == EAGAIN));
    if (n <= 0) /* ECONNRESET: it ended with lines of ours unread */
        return 0;
    w->used += n;
    return 1;
}

enum { TOOK_TEXT = 1, TOOK_WAIT = 2 };

/*
 * Takes "WORD TEXT\n" lines out of the buffer; the text of the last one that begins
 * with `word` is copied, without control characters.  Says whether there was one, and
 * whether there was a "wait".  Whatever else there is comes from somebody who has got
 * hold of the user's end.
 */
static int take_lines(struct pt_watchd *w, const char *word, char *text, size_t size)
{
    size_t length = strlen(word);
    char *end;
    int took = 0;

    while ((end = memchr(w->buf, '\n', w->used))) {
        *end = '\0';
        if (strncmp(w->buf, word, length) == 0 && w->buf[length] == ' ') {
            snprintf(text, size, "%s", w->buf + length + 1);
            for (char *p = text; *p; p++) {
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                    *p = '?';
            }
            took |= TOOK_TEXT;
        }
        if (strcmp(w->buf, "wait") == 0)
            took |= TOOK_WAIT;
        w->used -= end + 1 - w->buf;
        memmove(w->buf, end + 1, w->used);
    }
    return took;
}

/* ---- starting --------------------------------------------------------------------- */

/* The orphan's pid, from its own mouth before it gave up our rights. */
static int read_reports(struct pt_watchd *w, const char *program, int fd, long deadline,
                        struct pt_err *err)
{
    struct report report;
    ssize_t n;

    for (;;) {
        if (!wait_readable(fd, deadline))
            return pt_err_set(err, "watchdog '%s': did not start in time", program);
        n = read(fd, &report, sizeof(report));
        if (n < 0 && errno == EINTR)
            continue;
        if (n != sizeof(report))
            break;
        w->pid = report.pid;
        if (report.stage != STAGE_STARTED) {
            errno = report.error;
            return pt_err_errno(err, "watchdog '%s': %s", program, stage_failed[report.stage]);
        }
    }
    return w->pid ? 0 : pt_err_set(err, "watchdog '%s': did not start", program);
}

static int wait_ready(struct pt_watchd *w, const char *program, int timeout_ms, long deadline,
                      struct pt_err *err)
{
    char text[256];
    int n;

    while ((n = fill(w, deadline)) > 0) {
        if (w->buf[0] == 'R') {
            memmove(w->buf, w->buf + 1, --w->used);
            return 0;
        }
        if (take_lines(w, "error", text, sizeof(text)) & TOOK_TEXT)
            return pt_err_set(err, "%s", text);
    }
    if (n < 0)
        return pt_err_set(err, "watchdog '%s': not ready after %d ms", program, timeout_ms);
    return pt_err_set(err, "watchdog '%s': ended before it was ready", program);
}

/* Forks twice, with all signals blocked until the child has no handlers of ours. */
static int spawn(const struct pt_watchd_how *how, int control, int report, struct pt_err *err)
{
    sigset_t all, old;
    pid_t pid;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pid = fork();
    if (pid == 0) {
        setsid();
        pid = fork();
        if (pid == 0)
            run_child(how, control, report);
        if (pid < 0)
            tell(report, STAGE_FORK);
        _exit(0);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (pid < 0)
        return pt_err_errno(err, "cannot fork");
    reap(pid);
    return 0;
}

/* Waits for the end of a watchdog that is to end, and helps. */
static void end_forcibly(struct pt_watchd *w)
{
    static const int signals[] = {SIGTERM, SIGKILL};

    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        long deadline = now_ms() + GRACE_MS;
        int n;

        signal_as_user(w, signals[i]);
        while ((n = fill(w, deadline)) > 0)
            w->used = 0;
        if (n == 0)
            return;
    }
}

struct pt_watchd *pt_watchd_start(const struct pt_watchd_how *how, int timeout_ms,
                                  struct pt_err *err)
{
    long deadline = now_ms() + timeout_ms;
    struct pt_watchd *w = calloc(1, sizeof(*w));
    int control[2] = {-1, -1}, report[2] = {-1, -1}, rc = -1;

    if (!w) {
        pt_err_errno(err, "watchdog");
        return NULL;
    }
    w->uid = how->uid;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) < 0 ||
        pipe2(report, O_CLOEXEC) < 0) {
        pt_err_errno(err, "watchdog: no control socket");
        goto out;
    }
    if (how->first_line &&
        send(control[0], how->first_line, strlen(how->first_line), MSG_NOSIGNAL) < 0) {
        pt_err_errno(err, "watchdog: no control socket");
        goto out;
    }
    if (spawn(how, control[1], report[1], err) < 0)
        goto out;
    w->fd = control[0];
    close(control[1]);
    close(report[1]);
    control[1] = report[1] = -1;
    rc = read_reports(w, how->program, report[0], deadline, err);
    if (rc == 0)
        rc = wait_ready(w, how->program, timeout_ms, deadline, err);
    if (rc < 0 && w->pid)
        end_forcibly(w);
out:
    if (rc < 0 && control[0] >= 0)
        close(control[0]);
    if (control[1] >= 0)
        close(control[1]);
    if (report[0] >= 0)
        close(report[0]);
    if (report[1] >= 0)
        close(report[1]);
    if (rc < 0) {
        free(w);
        return NULL;
    }
    return w;
}

/* ---- running and ending ------------------------------------------------------------- */

pid_t pt_watchd_pid(const struct pt_watchd *w)
{
    return w->pid;
}

int pt_watchd_send(struct pt_watchd *w, const char *fmt, ...)
{
    char line[400];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    if ((size_t)n >= sizeof(line)) {
        errno = EMSGSIZE;
        return -1;
    }
    return send(w->fd, line, n, MSG_DONTWAIT | MSG_NOSIGNAL) == n ? 0 : -1;
}

int pt_watchd_finish(struct pt_watchd *w, int timeout_ms, char *summary, size_t size,
                     struct pt_err *err)
{
    long begin = now_ms(), deadline = begin + timeout_ms, last = begin + LONGEST_MS;
    int n, found = 0;

    summary[0] = '\0';
    if (pt_watchd_send(w, "finish\n") < 0)
        shutdown(w->fd, SHUT_WR); /* it has not read for long: this it will see */
    while ((n = fill(w, deadline)) > 0) {
        int took = take_lines(w, "summary", summary, size);

        found |= took & TOOK_TEXT;
        if (took & TOOK_WAIT) { /* it says that other hosts still need it */
            deadline = now_ms() + timeout_ms;
            deadline = deadline < last ? deadline : last;
        }
    }
    if (n < 0) {
        end_forcibly(w);
        return pt_err_set(err, "the watchdog did not finish within %d ms and was ended",
                          timeout_ms);
    }
    if (!found)
        return pt_err_set(err, "the watchdog ended early");
    return 0;
}

void pt_watchd_destroy(struct pt_watchd *w)
{
    int saved = errno;

    if (!w)
        return;
    close(w->fd);
    free(w);
    errno = saved;
}
