/*
 * Feeds the reader of paratrace.conf with anything (libFuzzer; bench/fuzz builds and runs
 * it).  What it accepts must mean the same when it is printed and read again.
 */
#include "config.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct pt_conf *load(const void *data, size_t size, struct pt_err *err)
{
    static int fd = -1;
    static char path[64];
    struct pt_conf *conf;

    if (fd < 0) {
        fd = memfd_create("conf", 0);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    }
    if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
        abort();
    if (pt_conf_load(path, &conf, err) < 0 && strncmp(err->text, path, strlen(path)) != 0)
        abort(); /* whoever is wrong is named */
    return conf;
}

static char *print(const struct pt_conf *conf, size_t *n)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, n);

    if (!f)
        abort();
    pt_conf_print_json(conf, f);
    fputc('\n', f);
    pt_conf_print(conf, f);
    if (fclose(f))
        abort();
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pt_err err;
    struct pt_conf *conf = load(data, size, &err), *again;
    char *first, *second, *file;
    size_t n;

    if (!conf)
        return 0;
    first = print(conf, &n);
    pt_conf_destroy(conf);
    file = strchr(first, '\n') + 1;
    again = load(file, n - (size_t)(file - first), &err);
    if (!again) {
        fprintf(stderr, "%s in:\n%s", err.text, file);
        abort();
    }
    second = print(again, &n);
    if (strcmp(first, second) != 0) {
        fprintf(stderr, "printed:\n%s\nthen:\n%s", first, second);
        abort();
    }
    pt_conf_destroy(again);
    free(first);
    free(second);
    return 0;
}
