#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/err.h"

static void set(struct pt_err *err, const char *fmt, va_list ap, int reason)
{
    if (!err)
        return;
    int n = vsnprintf(err->text, sizeof(err->text), fmt, ap);
    if (reason && n >= 0 && (size_t)n < sizeof(err->text))
        snprintf(err->text + n, sizeof(err->text) - n, ": %s", strerror(reason));
}

int pt_err_set(struct pt_err *err, const char *fmt, ...)
{
    int saved = errno;
    va_list ap;

    va_start(ap, fmt);
    set(err, fmt, ap, 0);
    va_end(ap);
    errno = saved;
    return -1;
}

int pt_err_errno(struct pt_err *err, const char *fmt, ...)
{
    int saved = errno;
    va_list ap;

    va_start(ap, fmt);
    set(err, fmt, ap, saved);
    va_end(ap);
    errno = saved;
    return -1;
}
