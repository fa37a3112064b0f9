/*
 * What the program passes to a call: it may be wrong, and the call refuses it.
 */
#ifndef PT_PASSED_H
#define PT_PASSED_H

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <wchar.h>

#include "preload/tracer.h"

/*
 * Could something be there?  A call refuses a wrong address and the program goes on, and so must
 * we; those that are met are 0, small numbers and -1.  Not a comparison with NULL: the compiler
 * believes the headers, that it never is.
 */
static inline int pt_is_address(const void *p)
{
    return PT_LIKELY((uintptr_t)p - PT_PAGE < UINTPTR_MAX - 2 * PT_PAGE);
}

static inline size_t pt_string_length(const char *s)
{
    return pt_is_address(s) ? strnlen(s, PT_STRING_MAX) : 0;
}

/* The call may have failed before anybody looked at what its pointers point to: so do not we. */
static inline int pt_is_unread(int err)
{
    return PT_UNLIKELY(err) && (err == EFAULT || err == EBADF);
}

/* Where the bytes came from that have moved the offset, or went to; -1: there is no offset. */
static inline int64_t pt_moved_from(const off_t *off, ssize_t ret, int err)
{
    return off && !pt_is_unread(err) ? *off - (ret > 0 ? ret : 0) : -1;
}

static inline int64_t pt_iov_len(const struct iovec *iov, size_t cnt, int err)
{
    int64_t n = 0;
    if (pt_is_unread(err) || cnt > IOV_MAX)
        return 0;
    for (size_t i = 0; i < cnt; i++)
        n += (int64_t)iov[i].iov_len;
    return n;
}

/* How many bytes wide characters are in the file; errno is kept. */
static inline int64_t pt_wide_byte(wint_t c)
{
    char buf[MB_LEN_MAX];
    mbstate_t state = {0};
    int error = errno;
    size_t n = wcrtomb(buf, (wchar_t)c, &state);
    errno = error;
    return n == (size_t)-1 ? 1 : (int64_t)n;
}

static inline int64_t pt_wide_bytes(const wchar_t *s)
{
    int64_t n = 0;
    for (; *s; s++)
        n += pt_wide_byte((wint_t)*s);
    return n;
}

#endif
