/*
 * Mapped files.  Which parts of memory are files that are traced stands in a table: a
 * program may unmap a part of a mapping, or several at once, or map something else over
 * it, and only what was a file is I/O.
 */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>

#include "preload/hand.h"
#include "preload/sys.h"
#include "preload/table.h"

/* ---- the table ---------------------------------------------------------------------------- */

/*
 * A range of pages is one word, first page and number, so that it changes in one step: no
 * lock, and a signal handler or another thread always sees a valid table.  A mapping that
 * does not fit is several ranges.
 */
#define MAX_RANGES  4096
#define PAGE_SHIFT  12
#define COUNT_BITS  28
#define MAX_COUNT   ((UINT64_C(1) << COUNT_BITS) - 1)
#define MAX_PAGE    ((UINT64_C(1) << (64 - COUNT_BITS)) - 1)
#define RANGE(p, n) ((uint64_t)(p) << COUNT_BITS | (n))
#define FIRST(r)    ((r) >> COUNT_BITS)
#define END(r)      (FIRST(r) + ((r)&MAX_COUNT))

static PT_NEAR pt_table table;           /* of MAX_RANGES words, 0: free */
static PT_NEAR _Atomic unsigned nranges; /* no range is behind these */
static PT_NEAR _Atomic int nlive;

static uint64_t first_page(const void *addr)
{
    return (uintptr_t)addr >> PAGE_SHIFT;
}

static uint64_t end_page(const void *addr, size_t len)
{
    return ((uintptr_t)addr + len + (1 << PAGE_SHIFT) - 1) >> PAGE_SHIFT;
}

static void range_add(uint64_t range)
{
    _Atomic uint64_t *ranges = pt_table_make(&table, MAX_RANGES * sizeof(*ranges));
    for (unsigned i = 0; ranges && i < MAX_RANGES; i++) {
        uint64_t none = 0;
        if (!atomic_compare_exchange_strong(&ranges[i], &none, range))
            continue;
        unsigned n = atomic_load(&nranges);
        while (n <= i && !atomic_compare_exchange_weak(&nranges, &n, i + 1))
            ;
        atomic_fetch_add(&nlive, 1);
        return;
    }
}

static void table_add(const void *addr, size_t len)
{
    uint64_t page = first_page(addr), end = end_page(addr, len);
    if (end > MAX_PAGE)
        return;
    while (page < end) {
        uint64_t n = end - page < MAX_COUNT ? end - page : MAX_COUNT;
        range_add(RANGE(page, n));
        page += n;
    }
}

/* Is a part of it a file? */
static int table_has(const void *addr, size_t len)
{
    if (!atomic_load_explicit(&nlive, memory_order_relaxed))
        return 0;
    const _Atomic uint64_t *ranges = pt_table_get(&table);
    uint64_t page = first_page(addr), end = end_page(addr, len);
    for (unsigned i = 0, n = atomic_load(&nranges); i < n; i++) {
        uint64_t r = atomic_load_explicit(&ranges[i], memory_order_relaxed);
        if (r && FIRST(r) < end && page < END(r))
            return 1;
    }
    return 0;
}

/* Takes the pages out of one range; what is left before and behind stays. */
static void range_cut(_Atomic uint64_t *range, uint64_t page, uint64_t end)
{
    uint64_t r = atomic_load(range), before, behind;
    do {
        if (!r || FIRST(r) >= end || page >= END(r))
            return;
        before = page > FIRST(r) ? RANGE(FIRST(r), page - FIRST(r)) : 0;
        behind = end < END(r) ? RANGE(end, END(r) - end) : 0;
    } while (!atomic_compare_exchange_weak(range, &r, before));
    if (!before)
        atomic_fetch_sub(&nlive, 1);
    if (behind)
        range_add(behind);
}

static void table_cut(const void *addr, size_t len)
{
    if (!atomic_load(&nlive))
        return;
    _Atomic uint64_t *ranges = pt_table_get(&table);
    for (unsigned i = 0, n = atomic_load(&nranges); i < n; i++)
        range_cut(&ranges[i], first_page(addr), end_page(addr, len));
}

/* ---- the calls ------------------------------------------------------------------------------ */

DECLARE_NEAR(mmap);
DECLARE(msync);

static int failed(long rc)
{
    return rc < 0 && rc > -4096;
}

/* As libc returns it. */
static void *mapped_at(long rc)
{
    if (failed(rc))
        errno = (int)-rc;
    return failed(rc) ? MAP_FAILED : (void *)rc;
}

/* Something is about to be mapped over files: they are unmapped. */
static void mapped_over(struct pt_thread *t, const void *addr, size_t len)
{
    struct pt_pass pass = {0};
    if (pt_vforked || !table_has(addr, len))
        return;
    if (pt_thread_traced(t) && pass_begin(t, &pass, PT_CLASS_IO, PT_OP_munmap))
        pass_end(t, &pass, PT_OP_munmap, 0, 0, FIELDS((intptr_t)addr, (int64_t)len));
    table_cut(addr, len);
}

PT_EXPORT void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
    struct pt_thread *t = &pt_self;
    struct pt_pass pass = {0};
    int file = fd >= 0 && !(flags & MAP_ANONYMOUS);
    if (flags & MAP_FIXED)
        mapped_over(t, addr, len);
    int cls = file && pt_thread_traced(t) ? pt_fds_class(t, fd, &pass) : -1;
    int traced = pass_begin(t, &pass, cls == PT_CLASS_IO ? cls : -1, PT_OP_mmap);
    if (!traced) /* allocators come here before anything can be resolved */
        return mapped_at(pt_sys(SYS_mmap, addr, len, prot, flags, fd, off));
    void *ret = REAL(mmap)(addr, len, prot, flags, fd, off);
    int error = errno;
    if (ret != MAP_FAILED)
        table_add(ret, len);
    pass_end(t, &pass, PT_OP_mmap, ret == MAP_FAILED ? -1 : 0, ret == MAP_FAILED ? error : 0,
             FIELDS(pass.fd, (int64_t)len, off, prot, (intptr_t)ret));
    errno = error;
    return ret;
}

extern __typeof__(mmap) mmap64_alias __asm__("mmap64")
    __attribute__((alias("mmap"), visibility("default")));
extern __typeof__(mmap) __mmap_alias __asm__("__mmap")
    __attribute__((alias("mmap"), visibility("default")));

PT_EXPORT int munmap(void *addr, size_t len)
{
    struct pt_thread *t = &pt_self;
    struct pt_pass pass = {0};
    int file = table_has(addr, len);
    int traced = file && pt_thread_traced(t) && pass_begin(t, &pass, PT_CLASS_IO, PT_OP_munmap);
    /* Before the call: another thread may get the same addresses right after it. */
    if (file && !pt_vforked)
        table_cut(addr, len);
    long rc = pt_sys(SYS_munmap, addr, len);
    if (traced)
        pass_end(t, &pass, PT_OP_munmap, rc < 0 ? -1 : 0, (int)-rc,
                 FIELDS((intptr_t)addr, (int64_t)len));
    if (rc < 0)
        errno = (int)-rc;
    return rc < 0 ? -1 : 0;
}

extern __typeof__(munmap) __munmap_alias __asm__("__munmap")
    __attribute__((alias("munmap"), visibility("default")));

/* The file stays mapped, but elsewhere or with another size. */
PT_EXPORT void *mremap(void *addr, size_t len, size_t new_len, int flags, ...)
{
    struct pt_thread *t = &pt_self;
    struct pt_pass pass = {0};
    void *to = NULL;
    if (flags & MREMAP_FIXED) {
        va_list ap;
        va_start(ap, flags);
        to = va_arg(ap, void *);
        va_end(ap);
        mapped_over(t, to, new_len);
    }
    /* An old length of 0 makes a second mapping of the same pages. */
    int file = table_has(addr, len ? len : 1);
    int traced = file && pt_thread_traced(t) && pass_begin(t, &pass, PT_CLASS_IO, PT_OP_mremap);
    long rc = pt_sys(SYS_mremap, addr, len, new_len, flags, to);
    if (file && !failed(rc) && !pt_vforked) {
        table_cut(addr, len);
        table_add((void *)rc, new_len);
    }
    if (traced)
        pass_end(t, &pass, PT_OP_mremap, failed(rc) ? -1 : 0, failed(rc) ? (int)-rc : 0,
                 FIELDS(failed(rc) ? (intptr_t)addr : rc, (int64_t)new_len));
    return mapped_at(rc);
}

PT_EXPORT int msync(void *addr, size_t len, int flags)
{
    struct pt_thread *t = &pt_self;
    struct pt_pass pass = {0};
    int traced = table_has(addr, len) && pt_thread_traced(t) &&
                 pass_begin(t, &pass, PT_CLASS_IO, PT_OP_msync);
    int ret = REAL(msync)(addr, len, flags), error = errno;
    if (traced)
        pass_end(t, &pass, PT_OP_msync, ret, ret < 0 ? error : 0,
                 FIELDS((intptr_t)addr, (int64_t)len, flags));
    errno = error;
    return ret;
}
