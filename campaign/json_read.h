/*
 * Reading JSON: a strict reader of whole, small texts, such as campaign.json and
 * run.json.  Anything that is not JSON is refused, with the position.
 *
 * Strings become C strings: \u0000 is refused, and the lone surrogates that
 * pt_json_string() writes for bytes which are not UTF-8 become those bytes again.
 */
#ifndef PT_CAMPAIGN_JSON_READ_H
#define PT_CAMPAIGN_JSON_READ_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define JSON_DEPTH 32 /* arrays and objects within each other */

enum json_type {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
};

struct json {
    enum json_type type;
    int whole; /* a number that fits into `integer` */
    int64_t integer;
    double number;
    char *string;
    size_t n; /* of an array or object */
    struct json *items;
    char **keys; /* of an object */
};

/* The value, for json_destroy(); NULL and err if the text is not exactly one value. */
struct json *json_parse(const char *text, size_t len, struct pt_err *err);
void json_destroy(struct json *j);

/* The member of that name; NULL if j is NULL, no object or has none. */
const struct json *json_get(const struct json *j, const char *key);

/* Members by name; `missing` if there is none of that type. */
const char *json_get_string(const struct json *j, const char *key, const char *missing);
int64_t json_get_integer(const struct json *j, const char *key, int64_t missing);
double json_get_number(const struct json *j, const char *key, double missing);
int json_get_bool(const struct json *j, const char *key, int missing);

#endif
