/*
 * ptwatchd: started by the SPANK plugin before the first task of a step on a host,
 * as the user.  With a COMMAND it starts that itself: tracing without Slurm.
 */
#include "config.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "watchdog/watchdog.h"

/* When to look at the rings if nobody rings the bell: very much is going on, much, nothing. */
#define DRAIN_AT_ONCE_MS 2
#define DRAIN_SOON_MS    5
#define DRAIN_MS         100
#define DRAIN_YOUNG_MS   20   /* at most, while there are young processes */
#define DRAIN_VERY_MANY  1024 /* events in between that are very much */
#define DRAIN_MANY       256  /* much */
#define FLUSH_NS         1000000000u
#define WAIT_NS          1000000000u /* how often the plugin is asked to wait for other hosts */
#define LEFT_NS          200000000u  /* what the tasks have left behind may take to end */
#define TICK_NS          200000      /* how often a held node is judged */

static struct wd wd;

static uint64_t clock_ns(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t wd_now(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static int listen_on(const char *name, struct pt_err *err)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    size_t len = strlen(name);
    if (len + 1 > sizeof(addr.sun_path))
        return pt_err_set(err, "cannot listen on '%s': the name is too long", name);
    memcpy(addr.sun_path + 1, name, len);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 ||
        bind(fd, (struct sockaddr *)&addr,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)) ||
        listen(fd, 256)) {
        if (fd >= 0)
            close(fd);
        return pt_err_errno(err, "cannot listen on '%s'", name);
    }
    return fd;
}

static int watch(int fd, void *what)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = what};
    return epoll_ctl(wd.epoll, EPOLL_CTL_ADD, fd, &ev);
}

/* Descriptors other than pidfds are told apart by the address of where they are kept. */
static int signal_fd = -1;

/*
 * We need descriptors for each process, for each thread that is judged and for each host, and
 * the usual limit is 1024.
 */
static void raise_limit(void)
{
    if (getrlimit(RLIMIT_NOFILE, &wd.files))
        return;
    struct rlimit most = {wd.files.rlim_max, wd.files.rlim_max};
    setrlimit(RLIMIT_NOFILE, &most);
}

static int begin(struct pt_err *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    /* Calls that fail tell us enough.  Not ignored: a command would inherit that. */
    sigset_t quiet;
    sigemptyset(&quiet);
    sigaddset(&quiet, SIGPIPE);
    sigaddset(&quiet, SIGXFSZ);
    sigprocmask(SIG_BLOCK, &quiet, NULL);

    raise_limit();
    wd_clock_begin(&wd.clock);
    wd.started = wd_now();
    wd.started_real = clock_ns(CLOCK_REALTIME);
    if (wd_site_begin(&wd, err) || wd_plan_read(&wd, err) || wd_rundir_begin(&wd, err) ||
        wd_memory_begin(&wd, err) || wd_bell_begin(&wd, err))
        return -1;
    wd.listen_fd = listen_on(wd.opt.socket, err);
    if (wd.listen_fd < 0)
        return -1;
    if (wd_hosts_create(&wd, err))
        return -1;
    wd.judge = wd_judge_create(&wd);
    wd.epoll = epoll_create1(EPOLL_CLOEXEC);
    wd.young = epoll_create1(EPOLL_CLOEXEC);
    wd.tick_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (!wd.judge || wd.epoll < 0 || wd.young < 0 || wd.tick_fd < 0 || signal_fd < 0 ||
        watch(wd.listen_fd, &wd.listen_fd) || watch(wd.bell_fd, &wd.bell_fd) ||
        watch(wd.tick_fd, &wd.tick_fd) || watch(signal_fd, &signal_fd) ||
        (wd.opt.control >= 0 && watch(wd.opt.control, &wd.opt.control)))
        return pt_err_errno(err, "cannot start");
    return 0;
}

static void set_tick(int on)
{
    static int is_on;
    if (on == is_on)
        return;
    is_on = on;
    struct itimerspec spec = {{0, on ? TICK_NS : 0}, {0, on ? TICK_NS : 0}};
    timerfd_settime(wd.tick_fd, 0, &spec, NULL);
}

/* Of tasks whose number is not their rank. */
static struct alias {
    int task, rank;
} * aliases;
static size_t naliases;

static void note_rank(int task, int rank)
{
    struct alias *more = realloc(aliases, (naliases + 1) * sizeof(*more));
    if (!more)
        return;
    aliases = more;
    aliases[naliases++] = (struct alias){task, rank};
}

static void note_exit(int task, int status)
{
    for (size_t i = 0; i < naliases; i++)
        if (aliases[i].task == task) {
            task = aliases[i].rank;
            break;
        }
    struct wd_exit *exits = realloc(wd.exits, (wd.nexits + 1) * sizeof(*exits));
    if (!exits)
        return;
    wd.exits = exits;
    wd.exits[wd.nexits++] = (struct wd_exit){task, status};
}

static int finishing; /* our own tasks have ended */

static int a_task_failed(void)
{
    for (size_t i = 0; i < wd.nexits; i++)
        if (wd.exits[i].status)
            return 1;
    return 0;
}

/*
 * The referee is here: as long as others may hold their I/Os, the plugin is asked to wait.
 * Not after a failure: srun hears of it when the plugin goes on, and may have to end the
 * others, who wait for one that will not come.
 */
static int stay_for_others(uint64_t now)
{
    static uint64_t asked;
    if (!wd_hosts_need_us(&wd) || a_task_failed())
        return 0;
    if (now - asked > WAIT_NS) {
        asked = now;
        return send(wd.opt.control, "wait\n", 5, MSG_NOSIGNAL | MSG_DONTWAIT) == 5;
    }
    return 1;
}

/* Lines from the plugin; returns 1 when it is time to end. */
static int hear_plugin(void)
{
    static char line[512];
    static size_t have;
    ssize_t n = read(wd.opt.control, line + have, sizeof(line) - 1 - have);
    if (n <= 0) {
        epoll_ctl(wd.epoll, EPOLL_CTL_DEL, wd.opt.control, NULL);
        return 1; /* the step's daemon is gone, and so will be its tasks */
    }
    have += (size_t)n;
    line[have] = 0;
    char *eol;
    int finish = 0, task, status;
    while ((eol = strchr(line, '\n'))) {
        *eol++ = 0;
        if (sscanf(line, "exit %d %d", &task, &status) == 2)
            note_exit(task, status);
        else if (sscanf(line, "rank %d %d", &task, &status) == 2)
            note_rank(task, status);
        else if (!strncmp(line, "peers ", 6))
            wd_hosts_connect(&wd, line + 6);
        finish |= !strcmp(line, "finish");
        have -= (size_t)(eol - line);
        memmove(line, eol, have + 1);
    }
    explicit_bzero(line + have, sizeof(line) - have); /* a secret may have been in it */
    if (have == sizeof(line) - 1)
        have = 0;
    finishing |= finish;
    return 0;
}

/* Returns 1 when the command has ended or we are told to end. */
static int hear_signal(pid_t command)
{
    struct signalfd_siginfo info;
    int end = 0, status;
    while (read(signal_fd, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGCHLD) {
            if (command > 0 && waitpid(command, &status, WNOHANG) == command) {
                note_exit(0, status);
                end = 1;
            }
        } else if (command > 0) {
            kill(command, (int)info.ssi_signo); /* it ends, and then so do we */
        } else {
            end = 1;
        }
    }
    return end;
}

/*
 * Drains, and says when to do it again, ms.  A ring that is drained often is used only in
 * part, which costs the program less memory; nothing of this costs an idle one anything.
 */
static int drain(int busy, int patience)
{
    uint64_t before = wd.events;
    size_t young;
    busy |= wd_procs_young(&wd, &young) > 0; /* where one ends another may begin */
    wd_drain_all(&wd);
    uint64_t drained = wd.events - before;
    if (drained > DRAIN_VERY_MANY)
        return DRAIN_AT_ONCE_MS;
    if (busy || drained > DRAIN_MANY)
        return DRAIN_SOON_MS;
    int most = young ? DRAIN_YOUNG_MS : DRAIN_MS;
    return patience < most / 2 ? 2 * patience : most;
}

/* The tasks have ended; so does the rest, as a rule. */
static int wait_for_rest(uint64_t *until)
{
    size_t young;
    if (!*until)
        *until = wd_now() + LEFT_NS;
    wd_procs_young(&wd, &young);
    wd_procs_look(&wd);
    return wd_procs_running(&wd) && wd_now() < *until;
}

static void run_until_end(pid_t command)
{
    uint64_t count, drained = wd_now(), flushed = drained, left = 0;
    int patience = DRAIN_SOON_MS, ended = 0;
    for (int end = 0; !end || wait_for_rest(&left);) {
        struct epoll_event events[32];
        int n = epoll_wait(wd.epoll, events, 32, end ? DRAIN_SOON_MS : patience), rung = 0;
        for (int i = 0; i < n; i++) {
            void *what = events[i].data.ptr;
            if (what == &wd.listen_fd) {
                wd_greet(&wd);
            } else if (what == &wd.bell_fd || what == &wd.tick_fd) {
                end |= read(*(int *)what, &count, sizeof(count)) < 0 && errno != EAGAIN;
                rung |= what == &wd.bell_fd;
            } else if (what == &signal_fd) {
                end |= hear_signal(command);
            } else if (what == &wd.opt.control) {
                end |= hear_plugin();
            } else if (wd.hosts && what == wd.hosts) {
                wd_hosts_work(&wd);
            } else if (wd_proc_known(&wd, what)) {
                wd_proc_ended(&wd, what);
                ended = 1;
            }
        }
        set_tick(wd_judge_tick(wd.judge));
        uint64_t now = wd_now();
        end |= finishing && !stay_for_others(now);
        if (rung || now - drained >= (uint64_t)patience * 1000000u) {
            patience = drain(rung || ended, patience);
            drained = now;
            ended = 0;
        }
        if (now - flushed > FLUSH_NS) {
            pt_writer_flush(wd.writer);
            flushed = now;
        }
    }
}

static int finish(struct pt_err *err)
{
    char summary[4600], line[4700];
    wd_proc_all_ended(&wd);
    wd_hosts_leave(&wd);
    int rc = wd_rundir_end(&wd, summary, sizeof(summary), err);
    if (wd.opt.control >= 0) {
        int n = snprintf(line, sizeof(line), "summary %s\n", summary);
        if (n > 0 && send(wd.opt.control, line, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            rc = -1;
    } else {
        fprintf(stderr, "ptwatchd: %s\n", summary);
    }
    wd_judge_destroy(wd.judge);
    wd_hosts_destroy(&wd);
    return rc;
}

static int fail(const struct pt_err *err)
{
    fprintf(stderr, "ptwatchd: %s\n", err->text);
    if (wd.opt.control >= 0)
        dprintf(wd.opt.control, "error %s\n", err->text);
    return 1;
}

/* Where nobody is held there is no hurry: the program's processes come first. */
static void step_back(void)
{
    struct sched_param none = {0};
    if (wd.spec.throttle == PT_THROTTLE_NONE)
        sched_setscheduler(0, SCHED_BATCH | SCHED_RESET_ON_FORK, &none);
}

/*
 * A program that its user cannot read is not to be debugged by its user either: through us one
 * would get to where the job's limits do not reach.  Most kernels see to that by themselves.
 */
static void keep_debuggers_out(void)
{
    if (access("/proc/self/exe", R_OK))
        prctl(PR_SET_DUMPABLE, 0);
}

int main(int argc, char **argv)
{
    struct pt_err err = {""};
    pid_t command = 0;

    keep_debuggers_out();
    wd_options_parse(argc, argv, &wd.opt);
    pt_spec_init(&wd.spec);
    if (pt_spec_parse(&wd.spec, wd.opt.spec_text, &err) || begin(&err))
        return fail(&err);
    if (wd.opt.control >= 0 && write(wd.opt.control, "R", 1) != 1)
        return 1;
    if (wd.opt.command && (command = wd_command_start(&wd, &err)) < 0)
        return fail(&err);
    wd_memory_prepare(&wd);
    step_back();
    run_until_end(command);
    int failed = finish(&err) ? fail(&err) : 0;
    if (!wd.opt.command || !wd.nexits)
        return failed;
    /* The command's own, whatever has become of its trace. */
    int status = wd.exits[0].status;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
