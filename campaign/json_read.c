#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "campaign/json_read.h"
#include "campaign/util.h"

struct reader {
    const char *text, *p, *end;
    const char *wrong; /* why it was given up */
    unsigned depth;
};

static int read_value(struct reader *r, struct json *j);

static int refuse(struct reader *r, const char *why)
{
    if (!r->wrong)
        r->wrong = why;
    return -1;
}

static void skip_space(struct reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
        r->p++;
}

static int peek(const struct reader *r)
{
    return r->p < r->end ? (unsigned char)*r->p : -1;
}

/* ---- strings ------------------------------------------------------------- */

static int read_hex(struct reader *r, unsigned *value)
{
    *value = 0;
    for (int i = 0; i < 4; i++) {
        int c = peek(r);
        if (c >= '0' && c <= '9')
            c -= '0';
        else if (c >= 'a' && c <= 'f')
            c -= 'a' - 10;
        else if (c >= 'A' && c <= 'F')
            c -= 'A' - 10;
        else
            return refuse(r, "wrong \\u escape");
        *value = *value << 4 | (unsigned)c;
        r->p++;
    }
    return 0;
}

static char *put_utf8(char *out, unsigned c)
{
    if (c < 0x80) {
        *out++ = (char)c;
    } else if (c < 0x800) {
        *out++ = (char)(0xc0 | c >> 6);
        *out++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *out++ = (char)(0xe0 | c >> 12);
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    } else {
        *out++ = (char)(0xf0 | c >> 18);
        *out++ = (char)(0x80 | (c >> 12 & 0x3f));
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    }
    return out;
}

/* Behind "\u".  Never writes more than the escape's own length. */
static int read_unicode(struct reader *r, char **out)
{
    unsigned c, low;

    if (read_hex(r, &c))
        return -1;
    if (c == 0)
        return refuse(r, "NUL in a string");
    if (c >= 0xdc80 && c <= 0xdcff) {
        *(*out)++ = (char)(c - 0xdc00);
        return 0;
    }
    if (c >= 0xd800 && c < 0xdc00) {
        if (r->end - r->p < 2 || r->p[0] != '\\' || r->p[1] != 'u')
            return refuse(r, "lone surrogate");
        r->p += 2;
        if (read_hex(r, &low))
            return -1;
        if (low < 0xdc00 || low > 0xdfff)
            return refuse(r, "lone surrogate");
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    } else if (c >= 0xdc00 && c < 0xe000) {
        return refuse(r, "lone surrogate");
    }
    *out = put_utf8(*out, c);
    return 0;
}

static int read_escape(struct reader *r, char **out)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    int c = peek(r);
    const char *name = c > 0 ? strchr(names, c) : NULL;

    if (c == 'u') {
        r->p++;
        return read_unicode(r, out);
    }
    if (!name)
        return refuse(r, "wrong escape in a string");
    r->p++;
    *(*out)++ = values[name - names];
    return 0;
}

static int read_string(struct reader *r, char **result)
{
    if (peek(r) != '"')
        return refuse(r, "string expected");
    const char *close = ++r->p; /* an escape never reaches beyond it */
    while (close < r->end && *close != '"')
        close += *close == '\\' && close + 1 < r->end ? 2 : 1;
    if (close >= r->end)
        return refuse(r, "string without an end");
    char *s = xcalloc((size_t)(close - r->p) + 1, 1), *out = s;
    while (r->p < close) {
        int c = peek(r);
        if (c < 0x20) {
            refuse(r, "control character in a string");
            break;
        }
        r->p++;
        if (c != '\\')
            *out++ = (char)c;
        else if (read_escape(r, &out))
            break;
    }
    if (r->wrong) {
        free(s);
        return -1;
    }
    *out = '\0';
    r->p++;
    *result = s;
    return 0;
}

/* ---- other values -------------------------------------------------------- */

static size_t digits(struct reader *r)
{
    const char *from = r->p;
    while (r->p < r->end && *r->p >= '0' && *r->p <= '9')
        r->p++;
    return (size_t)(r->p - from);
}

static int read_number(struct reader *r, struct json *j)
{
    char buf[64];
    const char *from = r->p;
    int fraction = 0;

    if (peek(r) == '-')
        r->p++;
    int zero = peek(r) == '0';
    size_t n = digits(r);
    if (n == 0 || (zero && n > 1))
        return refuse(r, "wrong number");
    if (peek(r) == '.') {
        fraction = 1;
        r->p++;
        if (!digits(r))
            return refuse(r, "wrong number");
    }
    if (peek(r) == 'e' || peek(r) == 'E') {
        fraction = 1;
        r->p++;
        if (peek(r) == '+' || peek(r) == '-')
            r->p++;
        if (!digits(r))
            return refuse(r, "wrong number");
    }
    if ((size_t)(r->p - from) >= sizeof(buf))
        return refuse(r, "number too long");
    memcpy(buf, from, (size_t)(r->p - from));
    buf[r->p - from] = '\0';
    j->type = JSON_NUMBER;
    j->number = strtod(buf, NULL);
    if (!isfinite(j->number))
        return refuse(r, "number too large");
    errno = 0;
    j->integer = fraction ? 0 : strtoll(buf, NULL, 10);
    j->whole = !fraction && !errno;
    return 0;
}

static int read_word(struct reader *r, struct json *j)
{
    static const struct {
        const char *word;
        enum json_type type;
    } words[] = {{"null", JSON_NULL}, {"false", JSON_FALSE}, {"true", JSON_TRUE}};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t n = strlen(words[i].word);
        if ((size_t)(r->end - r->p) >= n && memcmp(r->p, words[i].word, n) == 0) {
            j->type = words[i].type;
            r->p += n;
            return 0;
        }
    }
    return refuse(r, "value expected");
}

/* Room for one more; doubles at powers of two. */
static void grow(struct json *j)
{
    if (j->n & (j->n - 1))
        return;
    size_t size = j->n ? j->n * 2 : 1;
    j->items = xrealloc(j->items, size, sizeof(*j->items));
    if (j->type == JSON_OBJECT)
        j->keys = xrealloc(j->keys, size, sizeof(*j->keys));
}

static int read_member(struct reader *r, struct json *j)
{
    grow(j);
    if (j->type == JSON_OBJECT) {
        skip_space(r);
        if (read_string(r, &j->keys[j->n]))
            return -1;
        skip_space(r);
    }
    j->items[j->n] = (struct json){0};
    j->n++; /* json_destroy() frees what is read of it */
    if (j->type == JSON_OBJECT) {
        if (peek(r) != ':')
            return refuse(r, "':' expected");
        r->p++;
    }
    return read_value(r, &j->items[j->n - 1]);
}

static int read_container(struct reader *r, struct json *j, enum json_type type, int close)
{
    if (r->depth == JSON_DEPTH)
        return refuse(r, "nested too deeply");
    r->depth++;
    r->p++;
    j->type = type;
    skip_space(r);
    if (peek(r) != close) {
        for (;;) {
            if (read_member(r, j))
                return -1;
            skip_space(r);
            if (peek(r) != ',')
                break;
            r->p++;
        }
    }
    if (peek(r) != close)
        return refuse(r, type == JSON_ARRAY ? "',' or ']' expected" : "',' or '}' expected");
    r->p++;
    r->depth--;
    return 0;
}

static int read_value(struct reader *r, struct json *j)
{
    skip_space(r);
    int c = peek(r);
    if (c == '{')
        return read_container(r, j, JSON_OBJECT, '}');
    if (c == '[')
        return read_container(r, j, JSON_ARRAY, ']');
    if (c == '-' || (c >= '0' && c <= '9'))
        return read_number(r, j);
    if (c == '"') {
        if (read_string(r, &j->string))
            return -1;
        j->type = JSON_STRING;
        return 0;
    }
    return read_word(r, j);
}

struct json *json_parse(const char *text, size_t len, struct pt_err *err)
{
    struct reader r = {.text = text, .p = text, .end = text + len};
    struct json *j = xcalloc(1, sizeof(*j));

    if (read_value(&r, j) == 0) {
        skip_space(&r);
        if (r.p == r.end)
            return j;
        refuse(&r, "something follows the value");
    }
    json_destroy(j);
    pt_err_set(err, "not JSON: %s at byte %zu", r.wrong, (size_t)(r.p - text));
    return NULL;
}

static void clear(struct json *j)
{
    free(j->string);
    for (size_t i = 0; i < j->n; i++) {
        clear(&j->items[i]);
        if (j->keys)
            free(j->keys[i]);
    }
    free(j->items);
    free(j->keys);
}

void json_destroy(struct json *j)
{
    int saved = errno;
    if (j)
        clear(j);
    free(j);
    errno = saved;
}

/* ---- access -------------------------------------------------------------- */

const struct json *json_get(const struct json *j, const char *key)
{
    if (!j || j->type != JSON_OBJECT)
        return NULL;
    for (size_t i = 0; i < j->n; i++) {
        if (strcmp(j->keys[i], key) == 0)
            return &j->items[i];
    }
    return NULL;
}

const char *json_get_string(const struct json *j, const char *key, const char *missing)
{
    const struct json *v = json_get(j, key);
    return v && v->type == JSON_STRING ? v->string : missing;
}

int64_t json_get_integer(const struct json *j, const char *key, int64_t missing)
{
    const struct json *v = json_get(j, key);
    return v && v->type == JSON_NUMBER && v->whole ? v->integer : missing;
}

double json_get_number(const struct json *j, const char *key, double missing)
{
    const struct json *v = json_get(j, key);
    return v && v->type == JSON_NUMBER ? v->number : missing;
}

int json_get_bool(const struct json *j, const char *key, int missing)
{
    const struct json *v = json_get(j, key);
    return v && (v->type == JSON_TRUE || v->type == JSON_FALSE) ? v->type == JSON_TRUE : missing;
}
