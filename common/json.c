#include "config.h"

#include "common/json.h"

/* Bytes beyond ASCII go through as they are if they form UTF-8; names need not. */
static int utf8_length(const unsigned char *p)
{
    int n = *p >= 0xf0 && *p < 0xf5 ? 4 : *p >= 0xe0 ? 3 : *p >= 0xc2 ? 2 : 0;
    if (*p >= 0xf5)
        return 0;
    for (int i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

void pt_json_string(FILE *f, const char *s)
{
    if (!s) {
        fputs("null", f);
        return;
    }
    fputc('"', f);
    for (const unsigned char *p = (const unsigned char *)s; *p; p++) {
        int n;
        if (*p == '"' || *p == '\\') {
            fprintf(f, "\\%c", *p);
        } else if (*p < 0x20 || *p == 0x7f) {
            fprintf(f, "\\u%04x", *p);
        } else if (*p < 0x80) {
            fputc(*p, f);
        } else if ((n = utf8_length(p))) {
            fwrite(p, 1, (size_t)n, f);
            p += n - 1;
        } else {
            fprintf(f, "\\u%04x", 0xdc00 + *p); /* as Python's surrogateescape does */
        }
    }
    fputc('"', f);
}
