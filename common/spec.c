#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/spec.h"

#define PERIOD_MAX   1000000000ULL
#define BUFFER_MIN   (64ULL << 10)
#define BUFFER_MAX   (1ULL << 30)
#define BYTES_MAX    (1ULL << 50)
#define NS_PER_S     1000000000ULL
#define TIME_MAX     (7ULL * 24 * 3600 * NS_PER_S)
#define ITEM_SHOWN   60 /* characters of a wrong item in a message */
#define DEFAULT_OUT  "ptrace.%j.%s"
#define OUT_PATTERNS "%j %A %a %s %u %x %%"

void pt_spec_init(struct pt_spec *spec)
{
    *spec = (struct pt_spec){
        .throttle = PT_THROTTLE_NONE,
        .period = 100,
        .discover = PT_DISCOVER_BOTH,
        .out = DEFAULT_OUT,
        .buffer = 1 << 20,
        .full = PT_FULL_WAIT,
        .hold_max = 60 * NS_PER_S,
    };
}

/* ---- values ------------------------------------------------------------- */

/* Reads digits; returns what follows them, or NULL if there are none or too many. */
static const char *read_number(const char *s, uint64_t *value)
{
    uint64_t v = 0;
    const char *p = s;

    for (; *p >= '0' && *p <= '9'; p++) {
        unsigned digit = *p - '0';
        if (v > (UINT64_MAX - digit) / 10)
            return NULL;
        v = v * 10 + digit;
    }
    *value = v;
    return p == s ? NULL : p;
}

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit size_units[] = {
    {"", 1}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {"T", 1ULL << 40}, {NULL, 0},
};

static const struct unit time_units[] = {
    {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", NS_PER_S}, {"m", 60 * NS_PER_S}, {NULL, 0},
};

/* A whole number with a unit behind it; -1 if it is none or greater than max. */
static int read_quantity(const char *s, const struct unit *units, uint64_t max, uint64_t *value)
{
    uint64_t v;
    const char *rest = read_number(s, &v);

    if (!rest)
        return -1;
    for (; units->name; units++) {
        if (strcmp(rest, units->name) == 0) {
            if (v > max / units->factor)
                return -1;
            *value = v * units->factor;
            return 0;
        }
    }
    return -1;
}

int pt_spec_period(const char *text, uint64_t *period, struct pt_err *err)
{
    uint64_t v;
    const char *rest = read_number(text, &v);

    if (!rest || *rest || v < 1 || v > PERIOD_MAX)
        return pt_err_set(err, "must be a whole number from 1 to %llu", PERIOD_MAX);
    *period = v;
    return 0;
}

int pt_spec_buffer(const char *text, uint64_t *bytes, struct pt_err *err)
{
    uint64_t v, rounded = BUFFER_MIN;

    if (read_quantity(text, size_units, BUFFER_MAX, &v) < 0 || v < BUFFER_MIN)
        return pt_err_set(err, "must be a size from 64K to 1G (a number, then K, M or G)");
    while (rounded < v)
        rounded *= 2;
    *bytes = rounded;
    return 0;
}

int pt_spec_time(const char *text, uint64_t *ns, struct pt_err *err)
{
    uint64_t v;

    if (read_quantity(text, time_units, TIME_MAX, &v) < 0 || v == 0)
        return pt_err_set(err, "must be a time from 1ns to 7 days (a number, then ns, us, "
                               "ms, s or m)");
    *ns = v;
    return 0;
}

int pt_spec_size(const char *text, uint64_t *bytes, struct pt_err *err)
{
    uint64_t v;

    if (read_quantity(text, size_units, BYTES_MAX, &v) < 0 || v == 0)
        return pt_err_set(err, "must be a size from 1 to 1024T (a number, then K, M, G or T)");
    *bytes = v;
    return 0;
}

static char *format_quantity(char text[PT_SPEC_NUMBER], uint64_t v, const struct unit *units)
{
    const struct unit *best = units;

    for (; units->name; units++) {
        if (v && v % units->factor == 0)
            best = units;
    }
    snprintf(text, PT_SPEC_NUMBER, "%llu%s", (unsigned long long)(v / best->factor), best->name);
    return text;
}

char *pt_spec_format_time(char text[PT_SPEC_NUMBER], uint64_t ns)
{
    return format_quantity(text, ns, time_units);
}

char *pt_spec_format_size(char text[PT_SPEC_NUMBER], uint64_t bytes)
{
    return format_quantity(text, bytes, size_units);
}

/* ---- items --------------------------------------------------------------- */

/*
 * A row: how the item begins, where its value goes, and who reads the value.  A
 * reader returns -1 and the reason alone; the caller names the item.
 */
struct item {
    const char *name; /* with the ':' or '='; without one the item is a bare word */
    int (*read)(void *field, const char *value, struct pt_err *err);
    size_t field;
};

static int read_on(void *field, const char *value, struct pt_err *err)
{
    *(int *)field = 0;
    return 0;
}

static int read_off(void *field, const char *value, struct pt_err *err)
{
    *(int *)field = 1;
    return 0;
}

/* "K" or "R.P.T" */
static int read_node(int32_t node[3], const char *value)
{
    int32_t part[3] = {0};
    int n = 0;

    for (const char *s = value;; s++) {
        uint64_t v;
        s = read_number(s, &v);
        if (!s || v > INT32_MAX || n == 3)
            return -1;
        part[n++] = v;
        if (*s == '\0')
            break;
        if (*s != '.')
            return -1;
    }
    if (n == 2)
        return -1;
    memcpy(node, part, sizeof(part));
    return 0;
}

static int read_throttle(void *field, const char *value, struct pt_err *err)
{
    struct pt_spec *spec = field;

    if (strcmp(value, "none") == 0)
        spec->throttle = PT_THROTTLE_NONE;
    else if (strcmp(value, "auto") == 0)
        spec->throttle = PT_THROTTLE_AUTO;
    else if (read_node(spec->node, value) == 0)
        spec->throttle = PT_THROTTLE_NODE;
    else
        return pt_err_set(err, "must be none, auto, a rank K or a node RANK.PROCESS.THREAD");
    return 0;
}

static int read_period(void *field, const char *value, struct pt_err *err)
{
    return pt_spec_period(value, field, err);
}

static int read_discover(void *field, const char *value, struct pt_err *err)
{
    enum pt_discover *discover = field;

    if (strcmp(value, "both") == 0)
        *discover = PT_DISCOVER_BOTH;
    else if (strcmp(value, "hold") == 0)
        *discover = PT_DISCOVER_HOLD;
    else if (strcmp(value, "mpi") == 0)
        *discover = PT_DISCOVER_MPI;
    else
        return pt_err_set(err, "must be hold, mpi or both");
    return 0;
}

static int read_out(void *field, const char *value, struct pt_err *err)
{
    static const struct pt_spec_ids nobody = {.user = "", .name = ""};
    char *out = field, expanded[PT_SPEC_OUT_MAX];

    if (*value == '\0')
        return pt_err_set(err, "must name a directory");
    if (strlen(value) >= PT_SPEC_OUT_MAX)
        return pt_err_set(err, "is longer than %d characters", PT_SPEC_OUT_MAX - 1);
    if (pt_spec_expand(value, &nobody, expanded, sizeof(expanded), err) < 0)
        return -1;
    strcpy(out, value);
    return 0;
}

static int read_glob(void *field, const char *value, struct pt_err *err)
{
    struct pt_globs *globs = field;

    if (*value == '\0')
        return pt_err_set(err, "must be a pattern");
    if (strlen(value) >= PT_SPEC_GLOB_MAX)
        return pt_err_set(err, "is longer than %d characters", PT_SPEC_GLOB_MAX - 1);
    if (globs->n == PT_SPEC_GLOBS)
        return pt_err_set(err, "there may be %d of this kind, the site's included", PT_SPEC_GLOBS);
    strcpy(globs->glob[globs->n++], value);
    return 0;
}

static int read_buffer(void *field, const char *value, struct pt_err *err)
{
    return pt_spec_buffer(value, field, err);
}

static int read_full(void *field, const char *value, struct pt_err *err)
{
    enum pt_full *full = field;

    if (strcmp(value, "wait") == 0)
        *full = PT_FULL_WAIT;
    else if (strcmp(value, "drop") == 0)
        *full = PT_FULL_DROP;
    else
        return pt_err_set(err, "must be wait or drop");
    return 0;
}

static int read_judge(void *field, const char *value, struct pt_err *err)
{
    enum pt_judge *judge = field;

    if (strcmp(value, "rest") == 0)
        *judge = PT_JUDGE_REST;
    else if (strcmp(value, "max") == 0)
        *judge = PT_JUDGE_MAX;
    else
        return pt_err_set(err, "must be rest or max");
    return 0;
}

static int read_plan(void *field, const char *value, struct pt_err *err)
{
    if (strlen(value) >= PT_SPEC_OUT_MAX)
        return pt_err_set(err, "is longer than %d characters", PT_SPEC_OUT_MAX - 1);
    strcpy(field, value);
    return 0;
}

static int read_time(void *field, const char *value, struct pt_err *err)
{
    return pt_spec_time(value, field, err);
}

static int read_note(void *field, const char *value, struct pt_err *err)
{
    char *note = field;

    if (strlen(value) >= PT_SPEC_NOTE_MAX)
        return pt_err_set(err, "is longer than %d characters", PT_SPEC_NOTE_MAX - 1);
    strcpy(note, value);
    return 0;
}

/* Keep PT_SPEC_ITEMS in step. */
static const struct item items[] = {
    {"on", read_on, offsetof(struct pt_spec, off)},
    {"off", read_off, offsetof(struct pt_spec, off)},
    {"throttle:", read_throttle, 0},
    {"period=", read_period, offsetof(struct pt_spec, period)},
    {"discover=", read_discover, offsetof(struct pt_spec, discover)},
    {"out=", read_out, offsetof(struct pt_spec, out)},
    {"exe=", read_glob, offsetof(struct pt_spec, exe)},
    {"noexe=", read_glob, offsetof(struct pt_spec, noexe)},
    {"path=", read_glob, offsetof(struct pt_spec, path)},
    {"nopath=", read_glob, offsetof(struct pt_spec, nopath)},
    {"buffer=", read_buffer, offsetof(struct pt_spec, buffer)},
    {"full=", read_full, offsetof(struct pt_spec, full)},
    {"compute-max=", read_time, offsetof(struct pt_spec, compute_max)},
    {"call-max=", read_time, offsetof(struct pt_spec, call_max)},
    {"hold-max=", read_time, offsetof(struct pt_spec, hold_max)},
    {"judge=", read_judge, offsetof(struct pt_spec, judge)},
    {"plan=", read_plan, offsetof(struct pt_spec, plan)},
    {"note=", read_note, offsetof(struct pt_spec, note)},
};

/* The row that `text` is of, and where its value begins; NULL if there is none. */
static const struct item *find_item(const char *text, const char **value)
{
    for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
        size_t n = strlen(items[i].name);
        int bare = strchr(":=", items[i].name[n - 1]) == NULL;

        if (strncmp(text, items[i].name, n) == 0 && (!bare || text[n] == '\0')) {
            *value = text + n;
            return &items[i];
        }
    }
    return NULL;
}

static int apply_item(struct pt_spec *spec, const char *text, struct pt_err *err)
{
    struct pt_err reason;
    const char *value;
    const struct item *item = find_item(text, &value);

    if (*text == '\0')
        return pt_err_set(err, "empty item: valid items are %s", PT_SPEC_ITEMS);
    if (!item)
        return pt_err_set(err, "unknown item '%.*s': valid items are %s", ITEM_SHOWN, text,
                          PT_SPEC_ITEMS);
    if (strchr(value, ',') && item->read != read_note)
        pt_err_set(&reason, "must not contain a comma");
    else if (item->read((char *)spec + item->field, value, &reason) == 0)
        return 0;
    return pt_err_set(err, "%.*s: %s", ITEM_SHOWN, text, reason.text);
}

/*
 * Copies the item at *text, without its "\," escapes, and moves *text behind it.
 * Returns 0 if it was the last one.
 */
static int next_item(const char **text, char *item)
{
    const char *s = *text;

    for (; *s && *s != ','; s++) {
        if (s[0] == '\\' && s[1] == ',')
            s++;
        *item++ = *s;
    }
    *item = '\0';
    *text = *s ? s + 1 : s;
    return *s == ',';
}

int pt_spec_parse(struct pt_spec *spec, const char *text, struct pt_err *err)
{
    struct pt_spec result = *spec;
    char item[PT_SPEC_MAX];
    int more = *text != '\0';

    if (strlen(text) >= PT_SPEC_MAX)
        return pt_err_set(err, "longer than %d characters", PT_SPEC_MAX - 1);
    for (const char *s = text; *s; s++) {
        if ((unsigned char)*s < ' ' || *s == 0x7f)
            return pt_err_set(err, "control character 0x%02x at position %zu", *s,
                              (size_t)(s - text) + 1);
    }
    while (more) {
        more = next_item(&text, item);
        if (apply_item(&result, item, err) < 0)
            return -1;
    }
    if (result.discover == PT_DISCOVER_MPI && result.throttle != PT_THROTTLE_NONE)
        return pt_err_set(err, "throttle: discover=mpi holds nobody; say discover=both or "
                               "throttle:none");
    *spec = result;
    return 0;
}

/* ---- patterns ------------------------------------------------------------ */

/* Slurm has numbers for those steps that srun does not make; people have names. */
const char *pt_spec_step(uint32_t step, char buf[PT_SPEC_STEP_MAX])
{
    static const struct {
        uint32_t id;
        const char *name;
    } special[] = {
        {PT_SPEC_STEP_BATCH, "batch"},
        {PT_SPEC_STEP_INTERACTIVE, "interactive"},
    };
    for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++) {
        if (step == special[i].id)
            return special[i].name;
    }
    snprintf(buf, PT_SPEC_STEP_MAX, "%u", step);
    return buf;
}

int pt_spec_names_step(const char *pattern)
{
    for (const char *s = strchr(pattern, '%'); s && s[1]; s = strchr(s + 2, '%')) {
        if (s[1] == 's')
            return 1;
    }
    return 0;
}

/* Writes what %c stands for into buf (a name is cut there); -1 if nothing. */
static int expand_one(char c, const struct pt_spec_ids *ids, char *buf, size_t size)
{
    char step[PT_SPEC_STEP_MAX];

    switch (c) {
    case 'j':
        return snprintf(buf, size, "%u", ids->job);
    case 'A':
        return snprintf(buf, size, "%u", ids->array_job);
    case 'a':
        return snprintf(buf, size, "%u", ids->array_task);
    case 's':
        return snprintf(buf, size, "%s", pt_spec_step(ids->step, step));
    case 'u':
        return snprintf(buf, size, "%s", ids->user);
    case 'x':
        return snprintf(buf, size, "%s", ids->name);
    case '%':
        return snprintf(buf, size, "%%");
    default:
        return -1;
    }
}

int pt_spec_expand(const char *pattern, const struct pt_spec_ids *ids, char *out, size_t size,
                   struct pt_err *err)
{
    size_t used = 0;

    for (const char *s = pattern; *s; s++) {
        char buf[NAME_MAX + 1] = {*s};
        int n = 1;

        if (*s == '%') {
            n = expand_one(*++s, ids, buf, sizeof(buf));
            if (n < 0)
                return pt_err_set(err, "unknown pattern '%.2s': valid ones are %s", s - 1,
                                  OUT_PATTERNS);
            for (char *p = buf; *p; p++) {
                if (*p == '/' || (unsigned char)*p < ' ' || *p == 0x7f)
                    *p = '_';
            }
        }
        if ((size_t)n >= sizeof(buf) || used + n >= size)
            return pt_err_set(err, "'%.*s' becomes too long", ITEM_SHOWN, pattern);
        memcpy(out + used, buf, n);
        used += n;
    }
    out[used] = '\0';
    return 0;
}
