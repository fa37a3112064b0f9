/*
 * The parts of ptcampaign that need no Slurm: JSON reader, #SBATCH lines, quoting, the
 * plan, campaign.json, squeue's output and the states that follow.
 */
#include "config.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "campaign/campaign.h"
#include "campaign/jobs.h"
#include "campaign/json_read.h"
#include "campaign/plan.h"
#include "campaign/script.h"
#include "campaign/slurm.h"
#include "campaign/spawn.h"
#include "campaign/state.h"
#include "common/json.h"
#include "tests/unit/run.h"

static struct pt_err err;
static char dir[] = "/tmp/test_campaign.XXXXXX", made[sizeof(dir)];

static void set_up(void)
{
    strcpy(made, dir);
    ck_assert_ptr_nonnull(mkdtemp(made));
    err.text[0] = '\0';
}

static void tear_down(void)
{
    char *argv[] = {"rm", "-rf", made, NULL};
    ck_assert_int_eq(spawn_run(argv, NULL, NULL, &err), 0);
}

/* ---- JSON --------------------------------------------------------------------- */

static struct json *parse(const char *text)
{
    struct json *j = json_parse(text, strlen(text), &err);
    ck_assert_msg(j != NULL, "'%s' refused: %s", text, err.text);
    return j;
}

static void refuse(const char *text, size_t len)
{
    /* In memory of exactly that size, for a sanitizer to see. */
    char *copy = malloc(len ? len : 1);
    memcpy(copy, text, len);
    ck_assert_msg(json_parse(copy, len, &err) == NULL, "'%s' accepted", text);
    ck_assert_ptr_nonnull(strstr(err.text, "not JSON: "));
    free(copy);
}

START_TEST(json_values)
{
    struct json *j = parse(" {\"a\": [1, -2.5e1, true, false, null], \"s\": \"x\\n\\u00e4\\\"\","
                           "\"big\": 1763300000123456789, \"o\": {}, \"e\": []} ");
    const struct json *a = json_get(j, "a");
    ck_assert_uint_eq(a->n, 5);
    ck_assert_int_eq(a->items[0].integer, 1);
    ck_assert(a->items[1].number == -25 && !a->items[1].whole);
    ck_assert_int_eq(a->items[2].type, JSON_TRUE);
    ck_assert_int_eq(a->items[4].type, JSON_NULL);
    ck_assert_str_eq(json_get_string(j, "s", ""), "x\n\xc3\xa4\"");
    ck_assert_int_eq(json_get_integer(j, "big", 0), 1763300000123456789);
    ck_assert_int_eq(json_get_integer(j, "s", -7), -7);
    ck_assert_str_eq(json_get_string(j, "none", "?"), "?");
    ck_assert_int_eq(json_get_bool(j, "a", 3), 3);
    ck_assert_ptr_null(json_get(NULL, "a"));
    json_destroy(j);
}
END_TEST

START_TEST(json_refused)
{
    static const char *const texts[] = {
        "",
        " ",
        "{",
        "[",
        "[1,]",
        "[1 2]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "01",
        "1.",
        "-",
        "+1",
        "1e",
        ".5",
        "1e999",
        "nul",
        "truex",
        "\"",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u0000\"",
        "\"\\ud800\"",
        "\"\\ud800\\u0041\"",
        "\"\\udc00\"",
        "\"\n\"",
        "1 2",
        "{} x",
        "[\"a]",
        "{\"a\":1 \"b\":2}",
        "'a'",
        "NaN",
        "\"\\",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        refuse(texts[i], strlen(texts[i]));
    refuse("1\0", 2);
}
END_TEST

START_TEST(json_depth)
{
    char text[2 * (JSON_DEPTH + 1) + 1];
    memset(text, '[', JSON_DEPTH);
    memset(text + JSON_DEPTH, ']', JSON_DEPTH);
    json_destroy(json_parse(text, 2 * JSON_DEPTH, &err));
    ck_assert_str_eq(err.text, "");
    memset(text, '[', JSON_DEPTH + 1);
    refuse(text, JSON_DEPTH + 1);
    ck_assert_ptr_nonnull(strstr(err.text, "nested too deeply"));
}
END_TEST

/* Whatever is cut off or changed: refused or read, never worse. */
START_TEST(json_damaged)
{
    static const char whole[] =
        "{\"a\": [1, \"x\\u00e4\\ud83d\\ude00\", {\"b\": -1.5e3}], \"c\": null}";
    unsigned seed = 1;

    for (size_t n = 0; n < sizeof(whole) - 1; n++)
        refuse(whole, n);
    for (int i = 0; i < 50000; i++) {
        char *text = malloc(sizeof(whole) - 1);
        memcpy(text, whole, sizeof(whole) - 1);
        for (int k = 0; k < 1 + i % 3; k++) {
            seed = seed * 1103515245 + 12345;
            text[(seed >> 8) % (sizeof(whole) - 1)] = "{}[]\",:\\u0e-d8\n\xff"[(seed >> 20) % 17];
        }
        json_destroy(json_parse(text, sizeof(whole) - 1, &err));
        free(text);
    }
}
END_TEST

/* What pt_json_string() writes comes back, also bytes that are not UTF-8. */
START_TEST(json_round_trip)
{
    char all[256], *text;
    size_t size;
    for (int i = 1; i < 256; i++)
        all[i - 1] = (char)i;
    all[255] = '\0';
    FILE *f = open_memstream(&text, &size);
    pt_json_string(f, all);
    fclose(f);
    struct json *j = parse(text);
    ck_assert_str_eq(j->string, all);
    json_destroy(j);
    free(text);
}
END_TEST

/* ---- scripts ------------------------------------------------------------------- */

START_TEST(sbatch_lines)
{
    struct script s;
    struct list options = {0};
    static const char text[] = "#!/bin/bash\n"
                               "# a comment\n"
                               "#SBATCH -n 4 --job-name='my job' # why\n"
                               "\n"
                               "  # indented\n"
                               "#SBATCH --ptrace=period=7\n"
                               "#SBATCH -p fast\n"
                               "#SBATCH --account=acc\n"
                               "##SBATCH --nodes=9\n"
                               "hostname\n"
                               "#SBATCH --nodes=8\n";
    ck_assert_int_eq(script_read(&s, text, &options, &err), 0);
    ck_assert_uint_eq(s.lines.n, 3);
    ck_assert_str_eq(s.lines.v[0], "#SBATCH -n 4 --job-name='my job' # why");
    ck_assert_str_eq(s.lines.v[1], "#SBATCH -p fast");
    ck_assert_str_eq(s.name, "my job");
    ck_assert_uint_eq(s.placement.n, 2);
    ck_assert_str_eq(s.placement.v[0], "--partition=fast");
    script_clear(&s);

    list_add(&options, "--partition=slow");
    list_add(&options, "-J");
    list_add(&options, "other");
    ck_assert_int_eq(script_read(&s, text, &options, &err), 0);
    ck_assert_str_eq(s.placement.v[0], "--partition=slow");
    ck_assert_str_eq(s.placement.v[1], "--account=acc");
    ck_assert_str_eq(s.name, "other");
    script_clear(&s);
    list_clear(&options);
}
END_TEST

START_TEST(sbatch_refused)
{
    static const char *const texts[][2] = {
        {"hostname\n", "'#!'"},
        {"", "'#!'"},
        {"#!/bin/sh\n#SBATCH -a1-3\n", "job array"},
        {"#!/bin/sh\n#SBATCH --array 1-3\n", "job array"},
        {"#!/bin/sh\n#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n1\n", "heterogeneous"},
    };
    struct script s;
    struct list options = {0};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        ck_assert_int_eq(script_read(&s, texts[i][0], &options, &err), -1);
        ck_assert_ptr_nonnull(strstr(err.text, texts[i][1]));
    }
    list_add(&options, "--array=1");
    ck_assert_int_eq(script_read(&s, "#!/bin/sh\n", &options, &err), -1);
    list_clear(&options);
}
END_TEST

START_TEST(quoting)
{
    static const char *const words[] = {"",   "a",  "it's", "a b", "$(x) `y` \\",
                                        "''", "\"", "a\nb", "*"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        char *quoted = script_quote(words[i]), *out = NULL;
        char *command = xasprintf("printf %%s %s", quoted);
        char *argv[] = {"sh", "-c", command, NULL};
        ck_assert_int_eq(spawn_run(argv, NULL, &out, &err), 0);
        ck_assert_str_eq(out, words[i]);
        free(out);
        free(command);
        free(quoted);
    }
    char *s = script_pattern("/a%b,c");
    ck_assert_str_eq(s, "/a%%b,c");
    free(s);
    s = script_spec_value("/a%b,c");
    ck_assert_str_eq(s, "/a%%b\\,c");
    free(s);
}
END_TEST

START_TEST(made_script)
{
    struct list lines = {0};
    const char *const words[] = {"/x/pt campaign", "job", "it's", NULL};
    list_add(&lines, "#SBATCH -n 4");
    char *text = script_make(&lines, words);
    ck_assert_str_eq(text, "#!/bin/bash\n#SBATCH -n 4\n# Made by ptcampaign.\n"
                           "exec '/x/pt campaign' 'job' 'it'\\''s' \"$@\"\n");
    free(text);
    list_clear(&lines);
}
END_TEST

/* ---- the plan ------------------------------------------------------------------- */

static struct campaign *new_campaign(const char *nodes)
{
    struct campaign *c = campaign_create();
    c->dir = xstrdup(made);
    c->name = xstrdup("job");
    c->script = xstrdup("/home/x/job.sh");
    c->cwd = xstrdup("/home/x");
    c->nodes = xstrdup(nodes);
    c->ptmerge = xstrdup("/bin/ptmerge");
    return c;
}

/* A run file with nodes 0, 1 (no I/O), 1.0.1 and 2. */
static void write_run(const char *rundir, const char *name, const char *step)
{
    static const struct pt_name names[] = {{0, 0, 0}, {1, 0, 0}, {1, 0, 1}, {2, 0, 0}};
    int fd = open(rundir, O_RDONLY | O_DIRECTORY);
    char *meta = xasprintf("host=h\nstep=%s\n", step);
    struct pt_writer *w = pt_writer_create(fd, name, meta, &err);
    ck_assert_msg(w != NULL, "%s", err.text);
    for (uint32_t i = 0; i < 4; i++) {
        struct pt_node node = {.name = names[i], .exe = "/x", .cwd = "/"};
        ck_assert_int_eq(pt_writer_node(w, i, &node), 0);
    }
    for (uint32_t i = 0; i < 4; i++) {
        struct pt_event io = {.op = (uint16_t)pt_op_by_name("fsync"), .begin = 10};
        struct pt_event sync = {.op = (uint16_t)pt_op_by_name("MPI_Barrier"), .begin = 20};
        if (i == 1)
            io.flags = PT_EV_INNER;
        ck_assert_int_eq(pt_writer_event(w, i, &io), 0);
        ck_assert_int_eq(pt_writer_event(w, i, &sync), 0);
    }
    ck_assert_int_eq(pt_writer_close(w, "lost=0\n"), 0);
    free(meta);
    close(fd);
}

START_TEST(plan_all)
{
    struct plan p;
    struct campaign *c = new_campaign("all");
    write_run(made, "h.ptrun", "0");
    ck_assert_msg(plan_read(&p, made, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(p.n, 4);
    ck_assert_int_eq(p.ranks, 3);
    ck_assert_int_eq(plan_make_runs(&p, c, &err), 0);
    ck_assert_uint_eq(c->nruns, 4);
    ck_assert_str_eq(c->runs[1].node, "0");
    ck_assert_str_eq(c->runs[2].node, "1.0.1");
    ck_assert_str_eq(c->runs[3].node, "2");
    ck_assert_int_eq(c->planned, 1);
    plan_clear(&p);
    campaign_destroy(c);
}
END_TEST

START_TEST(plan_chosen)
{
    struct plan p;
    struct campaign *c = new_campaign("2,0.0.0,1,7,2");
    write_run(made, "h.ptrun", "0");
    ck_assert_int_eq(plan_read(&p, made, &err), 0);
    ck_assert_int_eq(plan_make_runs(&p, c, &err), 0);
    ck_assert_uint_eq(c->nruns, 3);
    ck_assert_str_eq(c->runs[1].node, "2");
    ck_assert_str_eq(c->runs[2].node, "0");
    ck_assert_uint_eq(c->notes.n, 2);
    ck_assert_str_eq(c->notes.v[0], "node 1 does no I/O");
    ck_assert_str_eq(c->notes.v[1], "node 7 is not in the baseline run");
    campaign_destroy(c);
    c = new_campaign("7");
    ck_assert_int_eq(plan_make_runs(&p, c, &err), -1);
    campaign_destroy(c);
    plan_clear(&p);
}
END_TEST

START_TEST(plan_refused)
{
    struct plan p;
    ck_assert_int_eq(plan_read(&p, made, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.text, "no run file"));
    write_run(made, "h.ptrun", "0");
    write_run(made, "i.ptrun", "1");
    ck_assert_int_eq(plan_read(&p, made, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.text, "step"));
    ck_assert_int_eq(plan_read(&p, "/nonexistent", &err), -1);
}
END_TEST

START_TEST(node_lists)
{
    static const char *const right[] = {"all", "0", "0,2,5", "0.0.1,3"};
    static const char *const wrong[] = {
        "",    ",", "0,",   ",0",   "0 1",   "-1",
        "0.1", "x", "auto", "none", "all,1", "99999999999999999999999999999999999999999999999"};
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
        ck_assert_msg(plan_check_nodes(right[i], &err) == 0, "'%s': %s", right[i], err.text);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_msg(plan_check_nodes(wrong[i], &err) == -1, "'%s' accepted", wrong[i]);
}
END_TEST

START_TEST(specs)
{
    struct campaign *c = new_campaign("all");
    campaign_add_run(c, "1.0.2");
    free(c->dir);
    c->dir = xstrdup("/a b/50%");
    char *text = plan_spec(c, 0, &err);
    ck_assert_str_eq(text, "discover=hold,throttle:none,out=/a b/50%%/runs/000");
    free(text);
    c->period = 3;
    c->spec = xstrdup("buffer=2M,discover=both");
    text = plan_spec(c, 1, &err);
    ck_assert_str_eq(text, "discover=hold,buffer=2M,discover=both,throttle:1.0.2,period=3,"
                           "out=/a b/50%%/runs/001");
    free(text);
    free(c->spec);
    c->spec = xstrdup("note=x\\"); /* would take the next item into the note */
    ck_assert_ptr_null(plan_spec(c, 1, &err));
    free(c->spec);
    free(c->dir);
    c->spec = NULL;
    c->dir = xstrdup("/a,b"); /* no SPEC can hold it */
    ck_assert_ptr_null(plan_spec(c, 1, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "comma"));
    campaign_destroy(c);
    ck_assert_int_eq(plan_check_spec("buffer=2M,note=x", &err), 0);
    ck_assert_int_eq(plan_check_spec("off", &err), -1);
    ck_assert_int_eq(plan_check_spec("throttle:1", &err), -1);
    ck_assert_int_eq(plan_check_spec("out=/x", &err), -1);
    ck_assert_int_eq(plan_check_spec("nonsense", &err), -1);
}
END_TEST

START_TEST(ranges)
{
    static const struct {
        long numbers[6];
        size_t n;
        const char *text;
    } cases[] = {
        {{1}, 1, "1"},
        {{1, 2}, 2, "1-2"},
        {{1, 2, 3, 7, 9, 10}, 6, "1-3,7,9-10"},
        {{0}, 0, ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text = jobs_ranges(cases[i].numbers, cases[i].n);
        ck_assert_str_eq(text, cases[i].text);
        free(text);
    }
}
END_TEST

/* ---- campaign.json --------------------------------------------------------------- */

START_TEST(campaign_file)
{
    struct campaign *c = new_campaign("0,1");
    list_add(&c->args, "an \"argument\" with \xff and\nnewline");
    list_add(&c->sbatch, "--time=1");
    campaign_add_run(c, "0");
    c->runs[1].job = (struct job){12, 1};
    c->stage[STAGE_MERGE].id = 13;
    c->planned = 1;
    c->ranks = 2;
    ck_assert_int_eq(campaign_save(c, &err), 0);
    struct campaign *d = campaign_load(made, &err);
    ck_assert_msg(d != NULL, "%s", err.text);
    char *a = campaign_to_json(c), *b = campaign_to_json(d);
    ck_assert_str_eq(a, b);
    ck_assert_uint_eq(d->generation, 1);
    ck_assert_str_eq(d->args.v[0], c->args.v[0]);
    campaign_destroy(d);

    /* Cut off anywhere it is refused. */
    for (size_t n = 0; n < strlen(a) - 2; n++)
        ck_assert_ptr_null(campaign_from_json(a, n, &err));
    /* So is another version or format. */
    char *at = strstr(a, "\"version\": 1");
    at[strlen("\"version\": ")] = '2';
    ck_assert_ptr_null(campaign_from_json(a, strlen(a), &err));
    ck_assert_str_eq(err.text, "version 2, known is 1");
    ck_assert_ptr_null(campaign_from_json("{}", 2, &err));
    free(a);
    free(b);
    campaign_destroy(c);
    ck_assert_ptr_null(campaign_load("/nonexistent", &err));
    ck_assert_ptr_null(campaign_load("/tmp", &err));
    ck_assert_str_eq(err.text, "cannot open campaign '/tmp': no campaign.json in it");
}
END_TEST

/* ---- states ----------------------------------------------------------------------- */

START_TEST(queue)
{
    struct queue q;
    slurm_queue_parse(&q, "12_2|PENDING|JobArrayTaskLimit\n12_1|RUNNING|None\n9|COMPLETED|None\n"
                          "14|PENDING|Dependency\nnonsense\n|||\n3|COMPLETING|None\n");
    ck_assert_uint_eq(q.n, 4);
    ck_assert_int_eq(slurm_queue_find(&q, (struct job){12, 1})->state, QUEUED_RUNNING);
    ck_assert_str_eq(slurm_queue_find(&q, (struct job){12, 2})->reason, "JobArrayTaskLimit");
    ck_assert_ptr_nonnull(slurm_queue_find(&q, (struct job){12, -1}));
    ck_assert_ptr_null(slurm_queue_find(&q, (struct job){12, 3}));
    ck_assert_ptr_null(slurm_queue_find(&q, (struct job){9, -1}));
    ck_assert_ptr_null(slurm_queue_find(&q, (struct job){0, -1}));
    ck_assert_int_eq(slurm_queue_find(&q, (struct job){3, -1})->state, QUEUED_RUNNING);
    slurm_queue_clear(&q);
}
END_TEST

static void put_file(const struct campaign *c, const char *name, const char *text)
{
    char *path = campaign_path(c, "%s", name);
    ck_assert_msg(file_write(path, text, strlen(text), 0644, &err) == 0, "%s", err.text);
    free(path);
}

static void put_dir(const struct campaign *c, const char *name)
{
    char *path = campaign_path(c, "%s", name);
    ck_assert_int_eq(mkdir(path, 0777), 0);
    free(path);
}

#define RUN_JSON(complete, status)                                                                 \
    "{\"format\": \"paratrace-run\", \"started_ns\": 1000000000, \"ended_ns\": 3500000000,"        \
    " \"hosts\": [{\"host\": \"h\", \"events\": 9, \"lost\": 0, \"holds\": 4,"                     \
    " \"holds_timed_out\": 1, \"exits\": {\"0\": 0, \"1\": " status "}}], \"complete\": " complete \
    "}"

START_TEST(states)
{
    struct campaign *c = new_campaign("all");
    struct status s;
    struct queue q;

    put_dir(c, "runs");
    put_dir(c, "log");
    put_dir(c, "runs/000");
    for (int i = 1; i < 6; i++)
        campaign_add_run(c, "0");
    for (size_t k = 0; k < 6; k++)
        c->runs[k].job = (struct job){k ? 12 : 10, k ? (long)k : -1};
    c->runs[5].job.id = 0;
    put_file(c, "runs/000/run.json", RUN_JSON("true", "0"));
    put_file(c, "log/000.exit", "{\"job\": 10, \"task\": -1, \"status\": 0}\n");
    put_dir(c, "runs/001");
    put_file(c, "runs/001/run.json", RUN_JSON("true", "768"));
    put_file(c, "log/001.exit", "{\"job\": 12, \"task\": 1, \"status\": 0}\n");
    put_file(c, "log/002.exit", "{\"job\": 11, \"task\": 2, \"status\": 0}\n"); /* an earlier one */
    slurm_queue_parse(&q, "12_3|RUNNING|None\n12_4|PENDING|JobArrayTaskLimit\n");
    status_find(&s, c, &q);
    ck_assert_int_eq(s.overall, OVERALL_RUNNING);
    ck_assert_int_eq(s.runs[0].state, STATE_DONE);
    ck_assert(s.runs[0].seconds == 2.5);
    ck_assert_int_eq(s.runs[0].holds, 4);
    ck_assert_int_eq(s.runs[1].state, STATE_FAILED);
    ck_assert_str_eq(s.runs[1].why, "task 1: exit status 3");
    ck_assert_int_eq(s.runs[2].state, STATE_FAILED);
    ck_assert_int_eq(s.runs[3].state, STATE_RUNNING);
    ck_assert_int_eq(s.runs[4].state, STATE_PENDING);
    ck_assert_int_eq(s.runs[5].state, STATE_PENDING);
    free(s.runs);
    slurm_queue_clear(&q);

    /* The same with nothing left in the queue; a requeued job's last directory counts. */
    put_dir(c, "runs/000.r1");
    put_file(c, "runs/000.r1/run.json", RUN_JSON("false", "0"));
    status_find(&s, c, &(struct queue){0});
    ck_assert_int_eq(s.overall, OVERALL_FAILED);
    ck_assert_str_eq(s.runs[0].why, "the trace is incomplete (0 events lost)");
    ck_assert_int_eq(s.runs[3].state, STATE_FAILED);
    ck_assert_int_eq(s.runs[5].state, STATE_MISSING);
    s.campaign = NULL;
    status_clear(&s);
    campaign_destroy(c);
}
END_TEST

START_TEST(programs)
{
    char *argv[] = {"sh", "-c", "echo out; exit 3", NULL}, *none[] = {"/nonexistent/x", NULL};
    char *text = NULL, buf[64];
    int status = spawn_run(argv, NULL, &text, &err);
    ck_assert_str_eq(spawn_describe(status, buf), "exit status 3");
    ck_assert_str_eq(text, "out\n");
    free(text);
    ck_assert_int_eq(spawn_run(none, NULL, &text, &err), -1);
    ck_assert_str_eq(err.text, "cannot run '/nonexistent/x': No such file or directory");
    ck_assert_ptr_null(text);
    text = spawn_find("sh", &err);
    ck_assert_ptr_nonnull(text);
    free(text);
    ck_assert_ptr_null(spawn_find("no-such-program", &err));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("campaign");
    TCase *tc = tcase_create("campaign");

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, json_values);
    tcase_add_test(tc, json_refused);
    tcase_add_test(tc, json_depth);
    tcase_add_test(tc, json_damaged);
    tcase_add_test(tc, json_round_trip);
    tcase_add_test(tc, sbatch_lines);
    tcase_add_test(tc, sbatch_refused);
    tcase_add_test(tc, quoting);
    tcase_add_test(tc, made_script);
    tcase_add_test(tc, plan_all);
    tcase_add_test(tc, plan_chosen);
    tcase_add_test(tc, plan_refused);
    tcase_add_test(tc, node_lists);
    tcase_add_test(tc, specs);
    tcase_add_test(tc, ranges);
    tcase_add_test(tc, campaign_file);
    tcase_add_test(tc, queue);
    tcase_add_test(tc, states);
    tcase_add_test(tc, programs);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
