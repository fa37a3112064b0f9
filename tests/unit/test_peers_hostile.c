/*
 * Who does not belong to the step, or does not keep to the rules, gets nowhere with the
 * hub, is counted, and disturbs nobody.
 */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef HAVE_MUNGE
#include <munge.h>
#endif

#include "tests/unit/peers_kit.h"
#include "tests/unit/run.h"

#define NOBODY 65534

static struct side hub, friend; /* the friend is host 2 */
static unsigned char frame[WD_WIRE_HEAD + 2000 + WD_WIRE_CODE];

static void set_up(void)
{
    kit_begin();
    kit_start(&hub, 0, &kit_conf);
}

static int friend_is_up(void *arg)
{
    return hub.ups[2] && friend.ups[0];
}

/* After whatever has happened, one of us gets in and is heard. */
static void expect_hub_serves(void)
{
    if (!friend.p)
        kit_start(&friend, 2, &kit_conf);
    ck_assert_msg(kit_until(8000, friend_is_up, NULL), "a good client does not get in: %s",
                  friend.reason[0]);
    ck_assert_int_eq(wd_peers_send(friend.p, 0, (uint16_t)hub.messages[2], NULL, 0), 0);
    kit_work(100);
    ck_assert_int_eq(hub.messages[2], 1);
    ck_assert_int_eq(hub.downs[2], 0);
}

/* The hub has closed this one, counted it, and nobody was let in as host 1. */
static void expect_refused(struct raw *r, const char *reason)
{
    struct wd_peers_stats stats;
    ck_assert_msg(raw_is_closed(r), "not closed");
    raw_close(r);
    wd_peers_stats(hub.p, &stats);
    ck_assert_uint_ge(stats.refused, 1);
    ck_assert_msg(strstr(stats.refusal, reason) != NULL, "refused for '%s', not '%s'",
                  stats.refusal, reason);
    ck_assert_int_eq(hub.ups[1], 0);
    ck_assert_int_eq(hub.messages[1], 0);
}

/* ---- before the handshake is over ------------------------------------------------------ */

START_TEST(wrong_secret)
{
    struct wd_peers_conf conf = kit_conf;
    struct side other;
    conf.secret[15] ^= 0x80;
    kit_start(&other, 1, &conf);
    kit_work(1000);
    ck_assert_int_eq(hub.ups[1] + other.ups[0], 0);
    ck_assert_uint_ge(kit_refused(&hub), 1);
    kit_stop(&other);
    expect_hub_serves();
}
END_TEST

/* One that does not care whether the hub is its own. */
START_TEST(wrong_secret_and_insists)
{
    struct raw r;
    unsigned char hello[WD_WIRE_HELLO + WD_WIRE_HEAD + WD_WIRE_CODE];
    raw_open(&r, 1);
    r.wire.step.secret[0] ^= 1;
    raw_send(&r, wd_wire_hello(&r.wire), WD_WIRE_HELLO);
    ck_assert_uint_eq(raw_receive(&r, hello, sizeof(hello)), sizeof(hello));
    ck_assert_ptr_null(wd_wire_take_hello(&r.wire, hello));
    raw_send(&r, frame, wd_wire_put(&r.wire, frame, WD_WIRE_PROOF, NULL, 0));
    expect_refused(&r, "not of this step");
    expect_hub_serves();
}
END_TEST

/* The same secret, but a client of another step: what distinguishes steps is in the key. */
START_TEST(another_step)
{
    struct raw r;
    unsigned char hello[WD_WIRE_HELLO];
    raw_open(&r, 1);
    r.wire.step.step++;
    raw_send(&r, wd_wire_hello(&r.wire), WD_WIRE_HELLO);
    ck_assert_uint_eq(raw_receive(&r, hello, sizeof(hello)), sizeof(hello));
    ck_assert_ptr_null(wd_wire_take_hello(&r.wire, hello));
    raw_send(&r, frame, wd_wire_put(&r.wire, frame, WD_WIRE_PROOF, NULL, 0));
    expect_refused(&r, "not of this step");
}
END_TEST

static const struct {
    size_t at;
    unsigned char value;
    const char *reason;
} wrong_hellos[] = {
    {0, 'q', "not a watchdog"},      {6, WD_WIRE_VERSION + 1, "another version"},
    {7, 1, "another version"},       {8, WD_WIRE_HUB, "not in its place"},
    {8, 77, "not in its place"},     {12, 0, "no such host"},
    {12, KIT_HOSTS, "no such host"}, {15, 0x80, "no such host"},
};

START_TEST(wrong_hello)
{
    struct raw r;
    unsigned char hello[WD_WIRE_HELLO];
    raw_open(&r, 1);
    memcpy(hello, wd_wire_hello(&r.wire), sizeof(hello));
    hello[wrong_hellos[_i].at] = wrong_hellos[_i].value;
    raw_send(&r, hello, sizeof(hello));
    expect_refused(&r, wrong_hellos[_i].reason);
    expect_hub_serves();
}
END_TEST

START_TEST(garbage)
{
    struct raw r;
    unsigned char bytes[2000];
    ck_assert(getrandom(bytes, sizeof(bytes), 0) == sizeof(bytes));
    raw_open(&r, 1);
    raw_send(&r, bytes, sizeof(bytes));
    expect_refused(&r, "not a watchdog");
    raw_open(&r, 1);
    raw_send(&r, "GET / HTTP/1.1\r\nHost: hub\r\nAccept: */*\r\n\r\n", 43);
    expect_refused(&r, "not a watchdog");
    expect_hub_serves();
    ck_assert_uint_eq(kit_refused(&hub), 2);
}
END_TEST

/* More than a few hundred bytes are not taken from somebody who has proved nothing. */
START_TEST(oversized_before_the_proof)
{
    struct raw r;
    unsigned char head[WD_WIRE_HEAD] = {0};
    const unsigned lengths[] = {WD_WIRE_EARLY + 1, WD_WIRE_MAX, 0xffffffffu};
    raw_open(&r, 1);
    raw_hello(&r);
    for (int i = 0; i < 4; i++)
        head[i] = (unsigned char)(lengths[_i] >> 8 * i);
    raw_send(&r, head, sizeof(head));
    expect_refused(&r, "too long");
}
END_TEST

START_TEST(out_of_turn)
{
    const uint16_t types[] = {0, WD_WIRE_WELCOME, WD_WIRE_READY, WD_WIRE_BYE, 0xffff};
    struct raw r;
    raw_open(&r, 1);
    raw_hello(&r);
    raw_send(&r, frame, wd_wire_put(&r.wire, frame, types[_i], NULL, 0));
    expect_refused(&r, "out of turn");
}
END_TEST

/* The hub's own words sent back to it. */
START_TEST(reflected)
{
    struct raw r;
    unsigned char echo[WD_WIRE_HELLO + WD_WIRE_HEAD + WD_WIRE_CODE];
    raw_open(&r, 1);
    raw_send(&r, wd_wire_hello(&r.wire), WD_WIRE_HELLO);
    ck_assert_uint_eq(raw_receive(&r, echo, sizeof(echo)), sizeof(echo));
    raw_send(&r, echo + WD_WIRE_HELLO, sizeof(echo) - WD_WIRE_HELLO);
    expect_refused(&r, "not of this step");
}
END_TEST

/* All that a good client has said, said again. */
START_TEST(an_earlier_session_replayed)
{
    struct raw good, r;
    raw_open(&good, 1);
    raw_join(&good);
    raw_send(&good, frame, wd_wire_put(&good.wire, frame, 0, NULL, 0));
    kit_work(100);
    ck_assert_int_eq(hub.messages[1], 1);
    raw_close(&good);
    kit_work(100);
    ck_assert_int_eq(hub.downs[1], 1);
    hub.ups[1] = hub.messages[1] = 0;
    raw_open(&r, 1);
    raw_send(&r, good.sent, good.nsent);
    expect_refused(&r, "not of this step");
}
END_TEST

/* Connections that say nothing, and some that stop in the middle of a hello. */
START_TEST(many_silent_ones)
{
    struct raw silent[100];
    for (int i = 0; i < 100; i++) {
        raw_open(&silent[i], 1);
        if (i % 3 == 0)
            raw_send(&silent[i], "ptpeer", 6);
        kit_work(0);
    }
    expect_hub_serves();
    for (int i = 0; i < 100; i++) {
        ck_assert_msg(raw_is_closed(&silent[i]), "silent connection %d is not closed", i);
        raw_close(&silent[i]);
    }
    ck_assert_uint_eq(kit_refused(&hub), 100);
    ck_assert_int_eq(hub.downs[2], 0);
}
END_TEST

/* A byte now and then does not buy time. */
START_TEST(a_slow_one)
{
    struct raw r;
    raw_open(&r, 1);
    for (int i = 0; i < 8; i++) {
        raw_send(&r, wd_wire_hello(&r.wire) + i, 1);
        kit_work(400);
    }
    expect_refused(&r, "too long in the handshake");
}
END_TEST

/* ---- one of us that has gone mad --------------------------------------------------------- */

static void join(struct raw *r)
{
    raw_open(r, 1);
    raw_join(r);
    ck_assert_int_eq(hub.ups[1], 1);
}

static void expect_lost(struct raw *r, const char *reason)
{
    ck_assert_msg(raw_is_closed(r), "not closed");
    raw_close(r);
    ck_assert_int_eq(hub.downs[1], 1);
    ck_assert_str_eq(hub.reason[1], reason);
    expect_hub_serves();
}

START_TEST(a_message_repeated)
{
    struct raw r;
    join(&r);
    size_t len = wd_wire_put(&r.wire, frame, 0, NULL, 0);
    raw_send(&r, frame, len);
    raw_send(&r, frame, len);
    expect_lost(&r, "a message out of turn");
    ck_assert_int_eq(hub.messages[1], 1);
}
END_TEST

START_TEST(a_message_left_out)
{
    struct raw r;
    join(&r);
    wd_wire_put(&r.wire, frame, 0, NULL, 0);
    raw_send(&r, frame, wd_wire_put(&r.wire, frame, 0, NULL, 0));
    expect_lost(&r, "a message out of turn");
    ck_assert_int_eq(hub.messages[1], 0);
}
END_TEST

/* In the head (but its length), the payload and the code. */
START_TEST(a_flipped_bit)
{
    const size_t places[] = {4, 6, 8, 15, 16, 24, 31, 32, 47};
    struct raw r;
    unsigned char payload[16] = {0};
    join(&r);
    size_t len = wd_wire_put(&r.wire, frame, 0, payload, sizeof(payload));
    frame[places[_i]] ^= 0x10;
    raw_send(&r, frame, len);
    expect_lost(&r, "not of this step");
    ck_assert_int_eq(hub.messages[1], 0);
}
END_TEST

START_TEST(oversized)
{
    struct raw r;
    unsigned char head[WD_WIRE_HEAD] = {1, 0, 1}; /* WD_WIRE_MAX + 1 */
    join(&r);
    raw_send(&r, head, sizeof(head));
    expect_lost(&r, "a message that is too long");
}
END_TEST

/* Only the hub may say that a host is lost. */
START_TEST(a_client_that_plays_hub)
{
    struct raw r;
    join(&r);
    raw_send(&r, frame, wd_wire_put(&r.wire, frame, WD_WIRE_LOST, "\2\0\0\0", 4));
    expect_lost(&r, "a message that makes no sense");
}
END_TEST

START_TEST(one_that_does_not_read)
{
    static char bytes[WD_WIRE_MAX];
    struct raw r;
    int n = 0, small = 4096;
    raw_open(&r, 1);
    setsockopt(r.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    raw_join(&r);
    while (n < 1000 && wd_peers_send(hub.p, 1, 0, bytes, sizeof(bytes)) == 0)
        n++;
    ck_assert_msg(n < 1000, "%d messages are queued", n);
    kit_work(100);
    ck_assert_int_eq(hub.downs[1], 1);
    ck_assert_str_eq(hub.reason[1], "does not read what it is sent");
    expect_hub_serves();
    raw_close(&r);
}
END_TEST

START_TEST(a_host_that_comes_twice)
{
    struct raw first, second;
    join(&first);
    raw_open(&second, 1);
    raw_hello(&second);
    raw_send(&second, frame, wd_wire_put(&second.wire, frame, WD_WIRE_PROOF, NULL, 0));
    ck_assert(raw_is_closed(&second));
    raw_close(&second);
    ck_assert_uint_eq(kit_refused(&hub), 1);
    ck_assert_int_eq(hub.downs[1], 0);
    raw_send(&first, frame, wd_wire_put(&first.wire, frame, 0, NULL, 0));
    kit_work(100);
    ck_assert_int_eq(hub.messages[1], 1); /* the first is not disturbed */
    raw_close(&first);
    kit_work(100);
    hub.ups[1] = 0;
    join(&second); /* now it may */
    raw_close(&second);
}
END_TEST

/* ---- munge --------------------------------------------------------------------------------- */

#ifdef HAVE_MUNGE
static char munge_dir[] = "/tmp/pt-munge.XXXXXX", munge_socket[64];
static pid_t munged;

static void run_munged(void)
{
    char key[64], seed[64], socket[80], pid[64], log[64];
    snprintf(key, sizeof(key), "--key-file=%s/key", munge_dir);
    snprintf(seed, sizeof(seed), "--seed-file=%s/seed", munge_dir);
    snprintf(socket, sizeof(socket), "--socket=%s", munge_socket);
    snprintf(pid, sizeof(pid), "--pid-file=%s/pid", munge_dir);
    snprintf(log, sizeof(log), "--log-file=%s/log", munge_dir);
    setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
    execlp("munged", "munged", "--foreground", "--force", key, seed, socket, pid, log, NULL);
    _exit(127);
}

static void start_munged(void)
{
    char path[64], key[1024];
    int null, status;
    ck_assert_ptr_nonnull(mkdtemp(munge_dir));
    chmod(munge_dir, 0755);
    snprintf(munge_socket, sizeof(munge_socket), "%s/socket", munge_dir);
    snprintf(path, sizeof(path), "%s/key", munge_dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0400);
    ck_assert(fd >= 0 && getrandom(key, sizeof(key), 0) == sizeof(key) &&
              write(fd, key, sizeof(key)) == sizeof(key));
    close(fd);
    munged = fork();
    if (munged == 0) {
        null = open("/dev/null", O_RDWR);
        dup2(null, 1);
        dup2(null, 2);
        run_munged();
    }
    for (int i = 0; i < 100 && access(munge_socket, F_OK); i++) {
        ck_assert_msg(waitpid(munged, &status, WNOHANG) == 0, "munged does not start");
        usleep(50000);
    }
    kit_begin();
    kit_conf.munge = PT_MUNGE_YES;
    kit_conf.munge_socket = munge_socket;
    kit_start(&hub, 0, &kit_conf);
}

static void stop_munged(void)
{
    static const char *const files[] = {"key", "seed", "socket", "socket.lock", "pid", "log", ""};
    char path[64];
    kill(munged, SIGTERM);
    waitpid(munged, NULL, 0);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", munge_dir, files[i]);
        remove(path);
    }
}

/* A credential over these bytes, made by that user. */
static void make_cred(uid_t uid, const unsigned char *token, char *cred, size_t size)
{
    int fds[2];
    ck_assert_int_eq(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        munge_ctx_t ctx = munge_ctx_create();
        char *text = NULL;
        munge_ctx_set(ctx, MUNGE_OPT_SOCKET, munge_socket);
        if (setuid(uid) || munge_encode(&text, ctx, token, PT_SIPHASH_LEN) != EMUNGE_SUCCESS ||
            write(fds[1], text, strlen(text)) < 0)
            _exit(1);
        _exit(0);
    }
    close(fds[1]);
    ssize_t n = read(fds[0], cred, size - 1);
    close(fds[0]);
    waitpid(pid, NULL, 0);
    ck_assert_msg(n > 0, "no credential of user %u", (unsigned)uid);
    cred[n] = 0;
}

static void send_cred(struct raw *r, const char *cred)
{
    raw_send(r, frame, wd_wire_put(&r->wire, frame, WD_WIRE_PROOF, cred, strlen(cred)));
}

START_TEST(munge_of_the_same_user)
{
    struct wd_peers_stats stats;
    expect_hub_serves();
    wd_peers_stats(hub.p, &stats);
    ck_assert_int_eq(stats.munge, 1);
    wd_peers_stats(friend.p, &stats);
    ck_assert_int_eq(stats.munge, 1);
}
END_TEST

START_TEST(munge_of_another_user)
{
    struct raw r;
    unsigned char token[PT_SIPHASH_LEN];
    char cred[WD_WIRE_EARLY];
    if (geteuid() != 0)
        return; /* there is no other user to be */
    raw_open(&r, 1);
    raw_hello(&r);
    wd_wire_token(&r.wire, WD_WIRE_CLIENT, token);
    make_cred(NOBODY, token, cred, sizeof(cred));
    send_cred(&r, cred);
    expect_refused(&r, "munge: another user's");
    expect_hub_serves();
}
END_TEST

/* Of the right user, but made for another connection, or the hub's own. */
START_TEST(munge_for_something_else)
{
    struct raw r;
    unsigned char token[PT_SIPHASH_LEN];
    char cred[WD_WIRE_EARLY];
    raw_open(&r, 1);
    raw_hello(&r);
    wd_wire_token(&r.wire, WD_WIRE_HUB, token);
    make_cred(geteuid(), token, cred, sizeof(cred));
    send_cred(&r, cred);
    expect_refused(&r, "munge: made for another connection");
}
END_TEST

START_TEST(munge_nonsense)
{
    const char *const creds[] = {"", "MUNGE:AwQFAAAB:", "hello"};
    struct raw r;
    raw_open(&r, 1);
    raw_hello(&r);
    send_cred(&r, creds[_i]);
    expect_refused(&r, "munge: ");
}
END_TEST

/* Whoever can make credentials wants some: leaving munge out is no way in. */
START_TEST(munge_auto_cannot_be_talked_out_of_it)
{
    struct raw r;
    kit_stop(&hub);
    kit_conf.munge = PT_MUNGE_AUTO;
    kit_start(&hub, 0, &kit_conf);
    raw_open(&r, 1);
    raw_hello(&r);
    send_cred(&r, "");
    expect_refused(&r, "munge: no credential came");
    expect_hub_serves();
}
END_TEST

START_TEST(munge_auto_without_munged)
{
    struct wd_peers_stats stats;
    kit_stop(&hub);
    kit_conf.munge = PT_MUNGE_AUTO;
    kit_conf.munge_socket = "/nonexistent/socket";
    kit_start(&hub, 0, &kit_conf);
    expect_hub_serves();
    wd_peers_stats(hub.p, &stats);
    ck_assert_int_eq(stats.munge, 0);
}
END_TEST

static int munged_is_there(void)
{
    return !access("/usr/sbin/munged", X_OK) || !access("/usr/bin/munged", X_OK);
}

static void add_munge_tests(Suite *suite)
{
    TCase *tcase = tcase_create("munge");
    tcase_add_checked_fixture(tcase, start_munged, stop_munged);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, munge_of_the_same_user);
    tcase_add_test(tcase, munge_of_another_user);
    tcase_add_test(tcase, munge_for_something_else);
    tcase_add_loop_test(tcase, munge_nonsense, 0, 3);
    tcase_add_test(tcase, munge_auto_cannot_be_talked_out_of_it);
    tcase_add_test(tcase, munge_auto_without_munged);
    if (munged_is_there())
        suite_add_tcase(suite, tcase);
    else
        puts("no munged here: its tests are left out");
}
#else
static void add_munge_tests(Suite *suite)
{
    puts("built without munge: its tests are left out");
}
#endif

int main(void)
{
    Suite *suite = suite_create("hostile peers");
    TCase *tcase = tcase_create("hostile");

    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, wrong_secret);
    tcase_add_test(tcase, wrong_secret_and_insists);
    tcase_add_test(tcase, another_step);
    tcase_add_loop_test(tcase, wrong_hello, 0, sizeof(wrong_hellos) / sizeof(wrong_hellos[0]));
    tcase_add_test(tcase, garbage);
    tcase_add_loop_test(tcase, oversized_before_the_proof, 0, 3);
    tcase_add_loop_test(tcase, out_of_turn, 0, 5);
    tcase_add_test(tcase, reflected);
    tcase_add_test(tcase, an_earlier_session_replayed);
    tcase_add_test(tcase, many_silent_ones);
    tcase_add_test(tcase, a_slow_one);
    tcase_add_test(tcase, a_message_repeated);
    tcase_add_test(tcase, a_message_left_out);
    tcase_add_loop_test(tcase, a_flipped_bit, 0, 9);
    tcase_add_test(tcase, oversized);
    tcase_add_test(tcase, a_client_that_plays_hub);
    tcase_add_test(tcase, one_that_does_not_read);
    tcase_add_test(tcase, a_host_that_comes_twice);
    suite_add_tcase(suite, tcase);
    add_munge_tests(suite);
    return run_suite(suite);
}
