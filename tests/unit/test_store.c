/*
 * Stores: what is written is read, nothing that is no store does any harm, and
 * nothing half-written is left.
 */
#include "config.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <hdf5.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hdf5store/store_write.h"
#include "tests/unit/run.h"

#define NEVENTS   200000 /* more than a chunk */
#define MUTATIONS 2000

static char dir[] = "/tmp/test_store.XXXXXX";
static char path[64];

static void setup(void)
{
    strcpy(dir + strlen(dir) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/s.h5", dir);
}

static void teardown(void)
{
    unlink(path);
    rmdir(dir);
}

static struct pt_store_event make_event(uint64_t i)
{
    return (struct pt_store_event){
        .op = i % 2,
        .begin_ns = i * 1000,
        .dur_ns = i,
        .compute0_ns = i * 3,
        .idle2_ns = i * 5,
        .fd = i % 7 ? 5 : -1,
        .handle = i,
        .file = i % 3 ? 0 : PT_NO_FILE,
        .file2 = PT_NO_FILE,
        .off = -(int64_t)i,
        .len = 65536,
        .ret = i % 5 ? 65536 : -1,
        .err = i % 5 ? 0 : 2,
    };
}

static struct pt_call_desc make_call(int op)
{
    struct pt_call_desc call = {
        .cls = pt_calls[op].cls, .replay = pt_calls[op].replay, .nfields = pt_calls[op].nfields};
    strcpy(call.name, pt_calls[op].name);
    for (int i = 0; i < call.nfields; i++)
        call.fields[i] = pt_calls[op].fields[i];
    return call;
}

/* A store of two nodes with `n` events in all, half of them each. */
static struct pt_store_writer *write_all(uint64_t n)
{
    struct pt_call_desc calls[] = {make_call(PT_OP_pwrite), make_call(PT_OP_open)};
    struct pt_store_node nodes[] = {
        {.name = {0, 0, 0}, .host = "n0", .exe = "/bin/a", .first = 0, .count = n / 2},
        {.name = {1, 2, 3}, .host = "n1", .first = n / 2, .count = n - n / 2, .start_ns = 77},
    };
    struct pt_store_file files[] = {{.path = "/x/y", .dev = 1, .ino = 2, .size = 3, .made = 1},
                                    {.path = "/x", .dir = 1}};
    struct pt_store_edge edges[] = {{0, 1, 1, 2, PT_BY_HOLD}, {0, 1, 3, 9, PT_BY_MPI}};
    struct pt_store_member members[] = {{0, 4}, {1, 5}};
    struct pt_store_barrier barrier = {2, members, PT_BY_MPI};
    struct pt_store_run run = {"run1", "throttle:none", "n0,n1", 7, 1, 1, 0};
    struct pt_err err;
    struct pt_store_writer *w = pt_store_create(path, 12345, &err);

    ck_assert_msg(w != NULL, "%s", err.text);
    ck_assert_int_eq(pt_store_write_calls(w, calls, 2, &err), 0);
    ck_assert_int_eq(pt_store_write_nodes(w, nodes, 2, &err), 0);
    ck_assert_int_eq(pt_store_write_files(w, files, 2, &err), 0);
    ck_assert_int_eq(pt_store_write_edges(w, edges, 2, &err), 0);
    ck_assert_int_eq(pt_store_write_barrier(w, &barrier, &err), 0);
    ck_assert_int_eq(pt_store_write_runs(w, &run, 1, &err), 0);
    for (uint64_t i = 0; i < n; i++) {
        struct pt_store_event e = make_event(i);
        ck_assert_int_eq(pt_store_write_events(w, &e, 1, &err), 0);
    }
    return w;
}

static void write_store(uint64_t n)
{
    struct pt_err err = {""};
    int rc = pt_store_commit(write_all(n), &err);

    ck_assert_msg(rc == 0, "%s", err.text);
}

static size_t files_in_dir(void)
{
    DIR *d = opendir(dir);
    size_t n = 0;

    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static int same_event(const struct pt_store_event *a, const struct pt_store_event *b)
{
#define COLUMN(type, name)  \
    if (a->name != b->name) \
        return 0;
    PT_STORE_EVENT_COLUMNS(COLUMN)
#undef COLUMN
    return 1;
}

START_TEST(round_trip)
{
    struct pt_err err = {""};
    struct pt_store_event *events = calloc(NEVENTS, sizeof(*events));
    struct pt_store *s;

    write_store(NEVENTS);
    ck_assert_uint_eq(files_in_dir(), 1);
    s = pt_store_open(path, &err);
    ck_assert_msg(s != NULL, "%s", err.text);
    ck_assert_uint_eq(pt_store_nnodes(s), 2);
    ck_assert_str_eq(pt_store_node(s, 1)->host, "n1");
    ck_assert_str_eq(pt_store_node(s, 0)->exe, "/bin/a");
    ck_assert_int_eq(pt_store_node(s, 1)->name.thread, 3);
    ck_assert_uint_eq(pt_store_node(s, 1)->start_ns, 77);
    ck_assert_str_eq(pt_store_file(s, 0)->path, "/x/y");
    ck_assert_uint_eq(pt_store_file(s, 0)->size, 3);
    ck_assert_uint_eq(pt_store_file(s, 1)->dir, 1);
    ck_assert_str_eq(pt_store_call(s, 1)->name, "open");
    ck_assert_int_eq(pt_store_call(s, 0)->replay, PT_REPLAY_PWRITE);
    ck_assert_int_eq(pt_store_call(s, 0)->nfields, pt_calls[PT_OP_pwrite].nfields);
    ck_assert_int_eq(pt_store_call(s, 0)->fields[2], PT_F_OFF);
    ck_assert_uint_eq(pt_store_nedges(s), 2);
    ck_assert_uint_eq(pt_store_edges(s)[1].dst_event, 9);
    ck_assert_uint_eq(pt_store_barrier(s, 0)->nmembers, 2);
    ck_assert_uint_eq(pt_store_barrier(s, 0)->members[1].event, 5);
    ck_assert_uint_eq(pt_store_barrier(s, 0)->by, PT_BY_MPI);
    ck_assert_str_eq(pt_store_run(s, 0)->spec, "throttle:none");
    ck_assert_int_eq(pt_store_read_events(s, 0, 0, NEVENTS / 2, events, &err), 0);
    ck_assert_int_eq(pt_store_read_events(s, 1, 0, NEVENTS / 2, events + NEVENTS / 2, &err), 0);
    for (uint64_t i = 0; i < NEVENTS; i++) {
        struct pt_store_event e = make_event(i);
        ck_assert(same_event(&e, &events[i]));
    }
    ck_assert_int_eq(pt_store_read_events(s, 1, 10, NEVENTS / 2 - 9, events, &err), -1);
    ck_assert_int_eq(pt_store_read_events(s, 2, 0, 1, events, &err), -1);
    pt_store_close(s);
    free(events);
}
END_TEST

START_TEST(abort_leaves_nothing)
{
    pt_store_abort(write_all(20));
    ck_assert_uint_eq(files_in_dir(), 0);
    pt_store_abort(NULL);
}
END_TEST

/* Disk full: a reason, no store, no temporary file; the old store stays. */
START_TEST(full_disk)
{
    struct rlimit limit = {100000, 100000};
    struct pt_err err = {""};
    int status;

    write_store(20);
    if (fork() == 0) {
        struct pt_store_event e = {.file = 1, .file2 = 1};
        struct pt_store_writer *w;
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        w = pt_store_create(path, 0, &err);
        srand(1);
        for (int i = 0; w && i < 500000; i++) {
            e.begin_ns = (uint64_t)rand() << 32 | rand();
            if (pt_store_write_events(w, &e, 1, &err) < 0)
                break;
        }
        if (w && err.text[0])
            pt_store_abort(w);
        else if (w)
            pt_store_commit(w, &err);
        _exit(strstr(err.text, "File too large") && !strchr(err.text, '\n') ? 0 : 1);
    }
    wait(&status);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(files_in_dir(), 1);
    struct pt_store *s = pt_store_open(path, &err);
    ck_assert_ptr_nonnull(s);
    pt_store_close(s);
}
END_TEST

static void refused(const char *reason)
{
    struct pt_err err = {""};

    ck_assert_ptr_null(pt_store_open(path, &err));
    ck_assert_msg(strstr(err.text, "cannot open store '") && strstr(err.text, reason), "%s",
                  err.text);
}

START_TEST(foreign_files)
{
    refused("No such file");
    int fd = open(path, O_CREAT | O_WRONLY, 0644);
    refused("not an HDF5 file");
    ck_assert_int_eq(write(fd, "hello, world", 12), 12);
    refused("not an HDF5 file");
    close(fd);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    refused("not a paratrace store");
    write_store(20);
    ck_assert_int_eq(truncate(path, 5000), 0);
    refused("truncated file");
}
END_TEST

static void set_version(uint32_t version)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t attr = H5Aopen(file, "version", H5P_DEFAULT);

    ck_assert_int_ge(H5Awrite(attr, H5T_NATIVE_UINT32, &version), 0);
    H5Aclose(attr);
    H5Fclose(file);
}

START_TEST(newer_version)
{
    write_store(20);
    set_version(PT_STORE_VERSION + 1);
    refused("version 2; this program reads up to 1");
    set_version(0);
    refused("version");
}
END_TEST

/* Overwrites the first value of a dataset. */
static void damage(const char *name, uint64_t value)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    hid_t space = H5Dget_space(set), memory;
    hsize_t zero = 0, one = 1;

    ck_assert_int_ge(set, 0);
    memory = H5Screate_simple(1, &one, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &zero, NULL, &one, NULL);
    ck_assert_int_ge(H5Dwrite(set, H5T_NATIVE_UINT64, memory, space, H5P_DEFAULT, &value), 0);
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
}

static const struct {
    const char *set;
    uint64_t value;
    const char *reason;
} damages[] = {
    {"/nodes/first", 11, "events beyond"},
    {"/nodes/first", UINT64_MAX, "events beyond"},
    {"/nodes/count", UINT64_MAX, "events beyond"},
    {"/nodes/host", 1 << 20, "/nodes/host"},
    {"/files/path", UINT64_MAX, "/files/path"},
    {"/calls/name", 1 << 20, "/calls/name"},
    {"/calls/class", 0, "/calls"},
    {"/edges/src_node", 2, "edge 0"},
    {"/edges/dst_node", 0, "edge 0"},
    {"/edges/dst_event", 10, "edge 0"},
    {"/edges/src_event", UINT64_MAX, "edge 0"},
    {"/barriers/count", 3, "barrier 0"},
    {"/barriers/count", 1, "barrier 0"},
    {"/barriers/first", UINT64_MAX, "barrier 0"},
    {"/barrier_members/node", 1, "barrier 0"},
    {"/barrier_members/event", 0, "barrier 0"},
    {"/runs/spec", 1 << 20, "/runs/spec"},
};

START_TEST(wrong_index)
{
    write_store(20);
    damage(damages[_i].set, damages[_i].value);
    refused(damages[_i].reason);
}
END_TEST

START_TEST(wrong_event)
{
    static const char *const sets[] = {"/events/op", "/events/file", "/events/file2"};
    struct pt_store_event e;
    struct pt_err err;

    write_store(20);
    damage(sets[_i], 2);
    struct pt_store *s = pt_store_open(path, &err);
    ck_assert_ptr_nonnull(s);
    ck_assert_int_eq(pt_store_read_events(s, 0, 0, 1, &e, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.text, "event 0 of node 0"));
    ck_assert_int_eq(pt_store_read_events(s, 0, 1, 1, &e, &err), 0);
    pt_store_close(s);
}
END_TEST

/* A dataset that is missing, of another type, of another length, or far too long. */
START_TEST(wrong_dataset)
{
    static const char *const reasons[] = {"is missing", "is not of unsigned 64-bit integers",
                                          "has 3 rows, not 2", "more rows than"};
    hid_t file, space, set, plist = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t rows = _i == 2 ? 3 : _i == 3 ? 1ULL << 40 : 2, chunk = 2;

    write_store(20);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    H5Ldelete(file, "/nodes/count", H5P_DEFAULT);
    if (_i > 0) {
        space = H5Screate_simple(1, &rows, NULL);
        H5Pset_chunk(plist, 1, &chunk);
        set = H5Dcreate2(file, "/nodes/count", _i == 1 ? H5T_IEEE_F64LE : H5T_STD_U64LE, space,
                         H5P_DEFAULT, plist, H5P_DEFAULT);
        H5Dclose(set);
        H5Sclose(space);
    }
    H5Fclose(file);
    H5Pclose(plist);
    refused(reasons[_i]);
}
END_TEST

static void read_everything(void)
{
    struct pt_err err;
    struct pt_store *s = pt_store_open(path, &err);
    struct pt_store_event e[10];

    for (size_t n = 0; s && n < pt_store_nnodes(s); n++)
        if (pt_store_node(s, n)->count)
            pt_store_read_events(s, n, 0, pt_store_node(s, n)->count < 10 ? 1 : 10, e, &err);
    pt_store_close(s);
}

/*
 * Bytes changed at random, in a child.  HDF5 itself does not survive everything:
 * what kills it inside its own code is counted and told, and fails the test only
 * if it is more than a few; set PT_FUZZ_STRICT to see each as a failure.
 */
START_TEST(mutations)
{
    static unsigned char good[1 << 20], bad[1 << 20];
    size_t crashes = 0, size, most = getenv("PT_FUZZ_STRICT") ? 0 : MUTATIONS / 1000;
    FILE *f;

    write_store(20);
    f = fopen(path, "rb");
    size = fread(good, 1, sizeof(good), f);
    fclose(f);
    srand(4711);
    for (int i = 0; i < MUTATIONS; i++) {
        int status;
        memcpy(bad, good, size);
        for (int k = 1 + rand() % 8; k > 0; k--)
            bad[(rand() % 4 ? rand() % 4096 : rand()) % size] = rand();
        f = fopen(path, "wb");
        ck_assert_uint_eq(fwrite(bad, 1, size, f), size);
        fclose(f);
        if (fork() == 0) {
            struct rlimit limit = {1 << 30, 1 << 30}, core = {0, 0};
            setrlimit(RLIMIT_AS, &limit);
            setrlimit(RLIMIT_CORE, &core);
            alarm(20);
            read_everything();
            _exit(0);
        }
        wait(&status);
        if (WIFSIGNALED(status)) {
            printf("mutation %d: killed by signal %d\n", i, WTERMSIG(status));
            crashes++;
        }
    }
    printf("%d mutations, %zu crashes\n", MUTATIONS, crashes);
    ck_assert_uint_le(crashes, most);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store");
    TCase *tc = tcase_create("store");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, round_trip);
    tcase_add_test(tc, abort_leaves_nothing);
    tcase_add_test(tc, full_disk);
    tcase_add_test(tc, foreign_files);
    tcase_add_test(tc, newer_version);
    tcase_add_loop_test(tc, wrong_index, 0, sizeof(damages) / sizeof(damages[0]));
    tcase_add_loop_test(tc, wrong_event, 0, 3);
    tcase_add_loop_test(tc, wrong_dataset, 0, 4);
    tcase_add_test(tc, mutations);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
