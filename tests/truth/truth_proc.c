/*
 * Nodes are processes without MPI: the first, which only starts the others and waits for
 * their end, and its children.
 */
#define _GNU_SOURCE
#include "tests/truth/truth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { END_READ, END_WRITE };

static int link_fds[TRUTH_NODES][TRUTH_NODES][2]; /* [from][to] */

/* ---- one byte from node to node -------------------------------------------------------- */

/* A byte fits in any pipe or socket: the writer does not wait. */
static void means_send(struct truth_node *n, int to)
{
    truth_post(n, truth_channel(CHANNEL_MESSAGE, n->id, to));
}

static void means_receive(struct truth_node *n, int from)
{
    truth_wait(n, truth_channel(CHANNEL_MESSAGE, from, n->id));
}

static void send_to(struct truth_node *n, int to)
{
    means_send(n, to);
    if (truth_running && write(link_fds[n->id][to][END_WRITE], "", 1) != 1)
        truth_die("cannot write to node %d", to);
}

static void receive_from(struct truth_node *n, int from)
{
    char byte;

    means_receive(n, from);
    if (truth_running && read(link_fds[from][n->id][END_READ], &byte, 1) != 1)
        truth_die("cannot read from node %d", from);
}

static void socket_send_to(struct truth_node *n, int to)
{
    means_send(n, to);
    if (truth_running && send(link_fds[n->id][to][END_WRITE], "", 1, 0) != 1)
        truth_die("cannot send to node %d", to);
}

static void socket_receive_from(struct truth_node *n, int from)
{
    char byte;

    means_receive(n, from);
    if (truth_running && recv(link_fds[from][n->id][END_READ], &byte, 1, 0) != 1)
        truth_die("cannot receive from node %d", from);
}

static void poll_until(int fd, int timeout)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    while (poll(&p, 1, timeout) == 0)
        ;
}

static void poll_from(struct truth_node *n, int from)
{
    if (truth_running)
        poll_until(link_fds[from][n->id][END_READ], -1);
    receive_from(n, from);
}

static void timed_poll_from(struct truth_node *n, int from)
{
    if (truth_running)
        poll_until(link_fds[from][n->id][END_READ], 2);
    receive_from(n, from);
}

/* Child k writes, and then k + 1 may. */
static void chain_by(struct truth_node *n, void (*send)(struct truth_node *, int),
                     void (*receive)(struct truth_node *, int))
{
    for (int i = 0; i < truth_rounds; i++) {
        if (n->id > 1)
            receive(n, n->id - 1);
        truth_write(n);
        if (n->id + 1 < truth_nodes)
            send(n, n->id + 1);
    }
}

static void pipes(struct truth_node *n)
{
    chain_by(n, send_to, receive_from);
}

static void sockets(struct truth_node *n)
{
    chain_by(n, socket_send_to, socket_receive_from);
}

static void polls(struct truth_node *n)
{
    chain_by(n, send_to, poll_from);
}

static void timed_polls(struct truth_node *n)
{
    chain_by(n, send_to, timed_poll_from);
}

/* ---- locks: to give one up is to pass a token -------------------------------------------- */

/*
 * Before the start each child takes the locks that it will pass on, one for each round,
 * so who gets a lock next is never a matter of luck.
 */
static int lock_fds[TRUTH_NODES * 64];

static int lock_number(int owner, int round)
{
    return owner * 64 + round;
}

static void byte_lock(int number, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = number, .l_len = 1};

    if (fcntl(lock_fds[0], F_SETLKW, &lock))
        truth_die("cannot lock byte %d", number);
}

static int open_locks(struct truth_node *n, const char *path)
{
    int fd = -1;

    truth_event(n);
    if (truth_running && (fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644)) < 0)
        truth_die("cannot open '%s'", path);
    return fd;
}

static void prepare_bytes(struct truth_node *n)
{
    lock_fds[0] = open_locks(n, "locks");
    for (int i = 0; truth_running && i < truth_rounds; i++)
        byte_lock(lock_number(n->id, i), F_WRLCK);
}

static void byte_take(int number)
{
    byte_lock(number, F_WRLCK);
}

static void byte_pass(int number)
{
    byte_lock(number, F_UNLCK);
}

static int neighbour(const struct truth_node *n, int by)
{
    int children = truth_nodes - 1;

    return 1 + (n->id - 1 + by + children) % children;
}

/* flock() locks a whole file, so there is a file for each. */
static void prepare_files(struct truth_node *n)
{
    for (int k = -1; k <= 0; k++) {
        for (int i = 0; i < truth_rounds; i++) {
            int owner = neighbour(n, k), number = lock_number(owner, i);
            char path[32];
            snprintf(path, sizeof(path), "lock.%d", number);
            lock_fds[number] = open_locks(n, path);
            if (truth_running && owner == n->id && flock(lock_fds[number], LOCK_EX))
                truth_die("cannot lock '%s'", path);
        }
    }
}

static void file_take(int number)
{
    if (flock(lock_fds[number], LOCK_EX))
        truth_die("cannot take lock %d", number);
}

static void file_pass(int number)
{
    if (flock(lock_fds[number], LOCK_UN))
        truth_die("cannot pass lock %d", number);
}

/* The token goes round: child k waits for k - 1, the first one for the last of the round before. */
static void token_by(struct truth_node *n, void (*take)(int), void (*pass)(int))
{
    int before = neighbour(n, -1);

    for (int i = 0; i < truth_rounds; i++) {
        int round = n->id == 1 ? i - 1 : i;
        if (round >= 0) {
            truth_wait(n, CHANNEL_OWN * TRUTH_NODES * TRUTH_NODES + lock_number(before, round));
            if (truth_running)
                take(lock_number(before, round));
        }
        truth_write(n);
        truth_post(n, CHANNEL_OWN * TRUTH_NODES * TRUTH_NODES + lock_number(n->id, i));
        if (truth_running)
            pass(lock_number(n->id, i));
    }
}

static void byte_locks(struct truth_node *n)
{
    token_by(n, byte_take, byte_pass);
}

static void file_locks(struct truth_node *n)
{
    token_by(n, file_take, file_pass);
}

/* ---- a file appears ------------------------------------------------------------------------ */

static void make_file(struct truth_node *n, int round)
{
    char path[32];
    int fd;

    truth_event(n); /* open */
    truth_post(n, truth_channel(CHANNEL_MESSAGE, 1, 0));
    truth_event(n); /* close */
    if (!truth_running)
        return;
    snprintf(path, sizeof(path), "go.%d", round);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 || close(fd))
        truth_die("cannot make '%s'", path);
}

/* The calls that look in vain are one event with the one that finds it. */
static void await_file(struct truth_node *n, int round)
{
    struct stat st;
    char path[32];

    truth_wait(n, truth_channel(CHANNEL_MESSAGE, 1, 0));
    truth_event(n);
    snprintf(path, sizeof(path), "go.%d", round);
    while (truth_running && stat(path, &st))
        usleep(1000);
}

static void files(struct truth_node *n)
{
    for (int i = 0; i < truth_rounds; i++) {
        if (n->id > 1)
            await_file(n, i);
        truth_write(n);
        if (n->id == 1)
            make_file(n, i);
    }
}

/* ---- shared memory ----------------------------------------------------------------------- */

static _Atomic int *arrived; /* of each child: in which round it is, or its pid */

static void prepare_memory(void)
{
    arrived = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (arrived == MAP_FAILED)
        truth_die("cannot map memory");
}

static void spin(struct truth_node *n)
{
    for (int i = 1; i <= truth_rounds; i++) {
        truth_write(n);
        truth_meet(n, truth_all() & ~1u);
        if (!truth_running)
            continue;
        atomic_store(&arrived[n->id], i);
        for (int k = 1; k < truth_nodes; k++)
            while (atomic_load(&arrived[k]) < i)
                ;
    }
}

/* ---- children that come late ------------------------------------------------------------- */

/*
 * The last child computes before it makes its first call, and the one before it waits for
 * it.  The first child has nothing to do with that.
 */
static void late(struct truth_node *n)
{
    int last = truth_nodes - 1;

    if (n->id == last - 1)
        receive_from(n, last);
    truth_write(n);
    if (n->id == last)
        send_to(n, last - 1);
    for (int i = 1; i < truth_rounds; i++)
        truth_write(n);
}

/* ---- asleep, but waiting for nobody ---------------------------------------------------------- */

static void nap(struct truth_node *n)
{
    struct timespec ms = {0, 20000000};

    for (int i = 0; i < truth_rounds; i++) {
        if (truth_running && n->id == 1)
            nanosleep(&ms, NULL);
        truth_write(n);
    }
}

/* Old programs sleep like this. */
static void select_nap(struct truth_node *n)
{
    for (int i = 0; i < truth_rounds; i++) {
        struct timeval ms = {0, 20000};
        if (truth_running && n->id == 1)
            select(0, NULL, NULL, NULL, &ms);
        truth_write(n);
    }
}

/* ---- other ways to wait ---------------------------------------------------------------------- */

/* Each side waits in open() until the other has come; that is an I/O in which one waits. */
static void fifo(struct truth_node *n)
{
    int fd;

    truth_write(n);
    truth_event(n);
    if (truth_running) {
        fd = open("fifo", (n->id == 1 ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
        if (fd < 0)
            truth_die("cannot open the fifo");
    }
    truth_meet(n, truth_all() & ~1u);
    truth_write(n);
}

static void signal_to(struct truth_node *n, int to)
{
    means_send(n, to);
    if (truth_running && kill(arrived[to], SIGUSR1))
        truth_die("cannot signal node %d", to);
}

static void signal_from(struct truth_node *n, int from)
{
    sigset_t set;
    int got;

    means_receive(n, from);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    if (truth_running)
        sigwait(&set, &got);
}

static void signals(struct truth_node *n)
{
    if (n->id > 1)
        signal_from(n, n->id - 1);
    truth_write(n);
    if (n->id + 1 < truth_nodes)
        signal_to(n, n->id + 1);
    truth_write(n);
}

static void none(struct truth_node *n)
{
    for (int i = 0; i < truth_rounds; i++)
        truth_write(n);
}

/* ---- the program ----------------------------------------------------------------------------- */

static const struct truth_scenario scenarios[] = {
    {"pipes", 5, pipes},
    {"pipes-8", 8, pipes},
    {"sockets", 4, sockets},
    {"tcp", 4, sockets},
    {"poll", 4, polls},
    {"poll-timeout", 4, timed_polls},
    {"fcntl", 4, byte_locks},
    {"flock", 4, file_locks},
    {"file", 3, files},
    {"spin", 3, spin},
    {"late", 4, late},
    {"nap", 3, nap},
    {"select-nap", 3, select_nap},
    {"fifo", 3, fifo},
    {"signal", 4, signals},
    {"one-by-one", 4, none},
    {"apart", 4, none},
    {NULL, 0, NULL},
};

static int is(const struct truth_scenario *s, const char *name)
{
    return !strcmp(s->name, name);
}

static void connect_tcp(int fds[2])
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(addr);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    fds[END_WRITE] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&addr, len) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&addr, &len) ||
        connect(fds[END_WRITE], (struct sockaddr *)&addr, len) ||
        (fds[END_READ] = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) < 0)
        truth_die("cannot connect");
    close(listener);
}

static void make_links(const struct truth_scenario *s)
{
    for (int i = 0; i < truth_nodes; i++) {
        for (int k = 0; k < truth_nodes; k++) {
            int *fds = link_fds[i][k], failed = 0;
            if (i && k && is(s, "tcp"))
                connect_tcp(fds);
            else if (i && k && is(s, "sockets"))
                failed = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds);
            else
                failed = pipe2(fds, O_CLOEXEC);
            if (failed)
                truth_die("cannot make a pipe");
        }
    }
}

static void prepare(struct truth_node *n, const struct truth_scenario *s)
{
    if (is(s, "fcntl"))
        prepare_bytes(n);
    else if (is(s, "flock"))
        prepare_files(n);
    if (truth_running && is(s, "signal"))
        atomic_store(&arrived[n->id], getpid());
}

/* Once each child is there, they may prepare, and once all have, they may play. */
static void means_gates(struct truth_node *n, const struct truth_scenario *s)
{
    if (n->id)
        prepare(n, s);
    truth_meet(n, truth_all());
}

static int starts_at_once(const struct truth_scenario *s)
{
    return is(s, "late") || is(s, "one-by-one");
}

/* A child's end, and who waits for it. */
static int end_channel(int child)
{
    return truth_channel(CHANNEL_FROM, child, 0);
}

static void means_parent(struct truth_node *n, const struct truth_scenario *s)
{
    if (!starts_at_once(s))
        means_gates(n, s);
    for (int i = 1; i < truth_nodes; i++) {
        truth_post(n, truth_channel(CHANNEL_FROM, 0, i));
        truth_wait(n, end_channel(i));
    }
}

static void play(struct truth_node *n, const struct truth_scenario *s)
{
    if (n->id == 0) {
        means_parent(n, s);
        return;
    }
    if (!starts_at_once(s))
        means_gates(n, s);
    if (is(s, "one-by-one"))
        truth_wait(n, truth_channel(CHANNEL_FROM, 0, n->id));
    truth_play(n, s);
    truth_post(n, end_channel(n->id));
}

static void say_hello(int id)
{
    if (write(link_fds[id][0][END_WRITE], "", 1) != 1)
        truth_die("cannot tell that child %d is here", id);
}

static void pass_gate(int id)
{
    char byte;

    say_hello(id);
    if (read(link_fds[0][id][END_READ], &byte, 1) != 1)
        truth_die("cannot wait for the start");
}

static void child(int id, const struct truth_scenario *s)
{
    struct truth_node n = {.id = id};

    if (is(s, "late") && id == truth_nodes - 1)
        truth_compute(0.2);
    else if (is(s, "late"))
        say_hello(id);
    if (!starts_at_once(s)) {
        pass_gate(id);
        prepare(&n, s);
        pass_gate(id);
    }
    truth_play(&n, s);
    exit(0);
}

static void await_byte(int id)
{
    char byte;

    if (read(link_fds[id][0][END_READ], &byte, 1) != 1)
        truth_die("cannot hear of child %d", id);
}

static void open_gate(void)
{
    for (int i = 1; i < truth_nodes; i++)
        if (write(link_fds[0][i][END_WRITE], "", 1) != 1)
            truth_die("cannot start child %d", i);
}

static void await_end(void)
{
    int status;

    if (wait(&status) < 0 || status)
        truth_die("a child failed");
}

static void block_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

/* The next child is started when the one before has been heard of: that is how they are numbered.
 */
static void run(const struct truth_scenario *s)
{
    make_links(s);
    prepare_memory();
    block_signals();
    if (is(s, "fifo") && mkfifo("fifo", 0644))
        truth_die("cannot make a fifo");
    for (int i = 1; i < truth_nodes; i++) {
        pid_t pid = fork();
        if (pid < 0)
            truth_die("cannot start child %d", i);
        if (pid == 0)
            child(i, s);
        if (is(s, "one-by-one"))
            await_end();
        else if (!is(s, "late") || i + 1 < truth_nodes)
            await_byte(i);
    }
    if (!starts_at_once(s)) {
        open_gate();
        for (int i = 1; i < truth_nodes; i++)
            await_byte(i);
        open_gate();
    }
    for (int i = 1; i < truth_nodes && !is(s, "one-by-one"); i++)
        await_end();
}

int main(int argc, char **argv)
{
    static const struct truth_program program = {scenarios, "0.%d.0", run, play};

    return truth_main(argc, argv, &program);
}
