/* The map from handles of the trace to live descriptors. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "replay/handles.h"
#include "tests/unit/run.h"

static int open_null(void)
{
    return open("/dev/null", O_RDWR | O_CLOEXEC);
}

static int is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static int take(struct handles *h, uint32_t slot, uint32_t uses)
{
    struct handle_live live;

    return handles_take(h, slot, uses, &live) < 0 ? -1 : live.fd;
}

START_TEST(slots_are_by_process_and_handle)
{
    struct handles *h = handles_create();
    uint32_t a = handles_slot(h, 0, 7), b = handles_slot(h, 1, 7);

    ck_assert_uint_ne(a, b);
    ck_assert_uint_eq(handles_slot(h, 0, 0), HANDLE_NO_SLOT);
    for (uint32_t i = 1; i < 5000; i++)
        ck_assert_uint_ne(handles_slot(h, i % 3, i), HANDLE_NO_SLOT);
    ck_assert_uint_eq(handles_slot(h, 0, 7), a);
    ck_assert_uint_eq(handles_slot(h, 1, 7), b);
    handles_destroy(h);
}
END_TEST

START_TEST(what_nobody_opens_is_missing)
{
    struct handles *h = handles_create();
    uint32_t slot = handles_slot(h, 0, 1);

    ck_assert_int_eq(handles_fate(h, slot), HANDLE_MISSING);
    ck_assert_int_eq(handles_fate(h, HANDLE_NO_SLOT), HANDLE_MISSING);
    ck_assert_int_eq(handles_get(h, slot), -1);
    ck_assert_int_eq(errno, EBADF);
    handles_destroy(h);
}
END_TEST

START_TEST(open_use_close)
{
    struct handles *h = handles_create();
    uint32_t slot = handles_slot(h, 0, 1);
    int fd = open_null();

    handles_set_fate(h, slot, HANDLE_OPENED);
    handles_set(h, slot, fd);
    ck_assert_int_eq(handles_get(h, slot), fd);
    handles_used(h, slot);
    ck_assert_int_eq(take(h, slot, 1), fd);
    ck_assert_int_eq(handles_get(h, slot), -1);
    ck_assert_int_eq(take(h, slot, 1), -1);
    close(fd);
    handles_destroy(h);
}
END_TEST

START_TEST(a_failed_open_keeps_nobody_waiting)
{
    struct handles *h = handles_create();
    uint32_t slot = handles_slot(h, 0, 1);

    handles_set_fate(h, slot, HANDLE_OPENED);
    handles_set(h, slot, -1);
    ck_assert_int_eq(handles_get(h, slot), -1);
    ck_assert_int_eq(errno, EBADF);
    handles_destroy(h);
}
END_TEST

START_TEST(a_second_descriptor_outlives_one_close)
{
    struct handles *h = handles_create();
    uint32_t slot = handles_slot(h, 0, 1);
    int fd = open_null(), second = dup(fd);

    handles_set_fate(h, slot, HANDLE_OPENED);
    handles_set(h, slot, fd);
    handles_add(h, slot, second);
    ck_assert_int_eq(take(h, slot, 0), second);
    ck_assert_int_eq(handles_get(h, slot), fd);
    handles_destroy(h);
    ck_assert(!is_open(fd));
    ck_assert(is_open(second));
    close(second);
}
END_TEST

START_TEST(streams_and_directories_are_made_when_needed)
{
    struct handles *h = handles_create();
    uint32_t file = handles_slot(h, 0, 1), dir = handles_slot(h, 0, 2);
    struct handle_live live, again;
    int fd = open_null(), dirfd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    handles_set_fate(h, file, HANDLE_OPENED);
    handles_set_fate(h, dir, HANDLE_OPENED);
    handles_set(h, file, fd);
    handles_set(h, dir, dirfd);
    ck_assert_int_eq(handles_live(h, file, HANDLE_FD, &live), 0);
    ck_assert_ptr_null(live.stream);
    ck_assert_int_eq(handles_live(h, file, HANDLE_STREAM, &live), 0);
    ck_assert_ptr_nonnull(live.stream);
    ck_assert_int_eq(fileno(live.stream), fd);
    ck_assert_int_eq(handles_live(h, file, HANDLE_STREAM, &again), 0);
    ck_assert_ptr_eq(live.stream, again.stream);
    ck_assert_ptr_nonnull(handles_buffer(h, file, 100));
    ck_assert_int_eq(handles_live(h, dir, HANDLE_DIR, &live), 0);
    ck_assert_ptr_nonnull(live.dir);
    ck_assert_int_eq(handles_live(h, file, HANDLE_DIR, &live), -1);
    ck_assert_int_eq(handles_take(h, file, 0, &live), 0);
    ck_assert_ptr_eq(live.stream, again.stream);
    ck_assert_ptr_nonnull(live.buffer);
    ck_assert_int_eq(fclose(live.stream), 0);
    free(live.buffer);
    ck_assert_int_eq(handles_live(h, file, HANDLE_STREAM, &live), -1);
    handles_destroy(h);
    ck_assert(!is_open(dirfd));
}
END_TEST

START_TEST(modes_of_streams)
{
    static const struct {
        int flags;
        const char *mode;
    } modes[] = {
        {O_RDONLY, "r"},           {O_WRONLY, "w"}, {O_RDWR, "r+"}, {O_WRONLY | O_APPEND, "a"},
        {O_RDWR | O_APPEND, "a+"},
    };

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        int fd = open("/dev/null", modes[i].flags | O_CLOEXEC);

        ck_assert_str_eq(handles_stream_mode(fd), modes[i].mode);
        close(fd);
    }
}
END_TEST

struct other {
    struct handles *h;
    uint32_t slot;
    int fd, got;
};

static void *open_later(void *arg)
{
    struct other *o = arg;

    usleep(20000);
    handles_set(o->h, o->slot, o->fd);
    return NULL;
}

static void *use_later(void *arg)
{
    struct other *o = arg;

    o->got = handles_get(o->h, o->slot);
    usleep(20000);
    o->fd = is_open(o->got);
    handles_used(o->h, o->slot);
    return NULL;
}

START_TEST(a_use_waits_for_another_threads_open)
{
    struct other o = {.h = handles_create(), .fd = open_null()};
    pthread_t thread;

    o.slot = handles_slot(o.h, 0, 1);
    handles_set_fate(o.h, o.slot, HANDLE_OPENED);
    pthread_create(&thread, NULL, open_later, &o);
    ck_assert_int_eq(handles_get(o.h, o.slot), o.fd);
    pthread_join(thread, NULL);
    handles_destroy(o.h);
}
END_TEST

START_TEST(a_close_waits_for_another_threads_use)
{
    struct other o = {.h = handles_create()};
    int fd = open_null(), taken;
    pthread_t thread;

    o.slot = handles_slot(o.h, 0, 1);
    handles_set_fate(o.h, o.slot, HANDLE_OPENED);
    handles_set(o.h, o.slot, fd);
    pthread_create(&thread, NULL, use_later, &o);
    taken = take(o.h, o.slot, 1);
    ck_assert_int_eq(taken, fd);
    close(taken);
    pthread_join(thread, NULL);
    ck_assert_int_eq(o.got, fd);
    ck_assert_int_eq(o.fd, 1);
    handles_destroy(o.h);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("handles");
    TCase *tc = tcase_create("handles");

    tcase_add_test(tc, slots_are_by_process_and_handle);
    tcase_add_test(tc, what_nobody_opens_is_missing);
    tcase_add_test(tc, open_use_close);
    tcase_add_test(tc, a_failed_open_keeps_nobody_waiting);
    tcase_add_test(tc, a_second_descriptor_outlives_one_close);
    tcase_add_test(tc, streams_and_directories_are_made_when_needed);
    tcase_add_test(tc, modes_of_streams);
    tcase_add_test(tc, a_use_waits_for_another_threads_open);
    tcase_add_test(tc, a_close_waits_for_another_threads_use);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
