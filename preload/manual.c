/*
 * Wrappers that the table of calls cannot describe.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <wchar.h>

#include "preload/record.h"
#include "preload/sys.h"

#define REAL(name)    ((__typeof__(&name))real(&real_##name, #name))
#define DECLARE(name) static void *_Atomic real_##name

static void *real(void *_Atomic *pointer, const char *name)
{
    void *p = atomic_load_explicit(pointer, memory_order_relaxed);
    if (PT_UNLIKELY(!p)) {
        p = pt_real(name);
        atomic_store_explicit(pointer, p, memory_order_relaxed);
    }
    return p;
}

/* Begins a pass of that class, or returns 0 if the thread is not traced or cls < 0. */
static int pass_begin(struct pt_thread *t, struct pt_pass *pass, int cls, uint16_t op)
{
    if (cls < 0)
        return 0;
    pass->cls = (enum pt_class)cls;
    pt_pass_begin(t, pass, op);
    return 1;
}

/* Ends it with numbers only, in the order of the row's fields. */
static void pass_end(struct pt_thread *t, struct pt_pass *pass, uint16_t op, int64_t ret, int err,
                     unsigned n, const int64_t *fields)
{
    uint64_t *w = pt_pass_end(t, pass, op, n, ret, err);
    for (unsigned i = 0; w && i < n; i++)
        w[i] = (uint64_t)fields[i];
    if (w)
        pt_pass_commit(t);
    pt_pass_done(t, pass);
}

#define FIELDS(...)                                                 \
    sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]) \
    {                                                               \
        __VA_ARGS__                                                 \
    }

/* ---- descriptors ------------------------------------------------------------------------ */

DECLARE(fcntl);
DECLARE(close_range);
DECLARE(closefrom);

static int is_copy(int cmd)
{
    return cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC;
}

static int is_lock(int cmd)
{
    return cmd == F_SETLK || cmd == F_SETLKW || cmd == F_OFD_SETLK || cmd == F_OFD_SETLKW;
}

/* Copies are recorded as dup, locks as sync; the rest is no I/O. */
PT_EXPORT int fcntl(int fd, int cmd, ...)
{
    struct pt_thread *t = &pt_self;
    struct pt_pass pass = {0};
    va_list ap;

    va_start(ap, cmd);
    void *arg = va_arg(ap, void *);
    va_end(ap);
    int wanted = is_copy(cmd) || is_lock(cmd);
    int cls = wanted && pt_thread_traced(t) ? pt_fds_class(t, fd, &pass) : -1;
    if (cls >= 0 && is_lock(cmd))
        cls = PT_CLASS_SYNC;
    uint16_t op = is_copy(cmd) ? PT_OP_dup : PT_OP_fcntl;
    int traced = pass_begin(t, &pass, cls, op);
    int ret = REAL(fcntl)(fd, cmd, arg), error = errno;
    int64_t copy = is_copy(cmd) && ret >= 0 && !pt_vforked ? pt_fds_copied(pass.fd, ret) : -1;
    if (traced)
        pass_end(t, &pass, op, ret, ret < 0 ? error : 0,
                 FIELDS(pass.fd, is_copy(cmd) ? copy : cmd));
    errno = error;
    return ret;
}

extern __typeof__(fcntl) fcntl64_alias __asm__("fcntl64")
    __attribute__((alias("fcntl"), visibility("default")));
extern __typeof__(fcntl) __fcntl_alias __asm__("__fcntl")
    __attribute__((alias("fcntl"), visibility("default")));

/* Each traced descriptor in the range is closed for itself, so that the trace says which. */
static void close_traced(unsigned first, unsigned last)
{
    struct pt_thread *t = &pt_self;
    for (unsigned fd = first; fd <= last && fd < 65536; fd++) {
        struct pt_pass pass = {0};
        if (!pt_thread_traced(t))
            break;
        if (pass_begin(t, &pass, pt_fds_closing(t, (int)fd, &pass), PT_OP_close))
            pass_end(t, &pass, PT_OP_close, 0, 0, FIELDS(pass.fd));
    }
}

PT_EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    int closes = !(flags & CLOSE_RANGE_CLOEXEC);
    int ret = REAL(close_range)(first, last, flags), error = errno;
    if (ret == 0 && closes && !pt_vforked) {
        close_traced(first, last);
        pt_fds_closed_range(first, last);
    }
    errno = error;
    return ret;
}

PT_EXPORT void closefrom(int first)
{
    REAL(closefrom)(first);
    if (pt_vforked)
        return;
    close_traced(first < 0 ? 0 : (unsigned)first, ~0u);
    pt_fds_closed_range(first < 0 ? 0 : (unsigned)first, ~0u);
}

/* ---- mapped files ------------------------------------------------------------------------- */

/* The file mappings that were recorded: only their end is the program's I/O. */
#define MAX_MAPPINGS 4096

DECLARE(mmap);
DECLARE(msync);

static void *_Atomic mappings[MAX_MAPPINGS];

static void mapping_add(void *addr)
{
    for (int i = 0; i < MAX_MAPPINGS; i++) {
        void *none = NULL;
        if (atomic_compare_exchange_strong(&mappings[i], &none, addr))
            return;
    }
}

static _Atomic(void *) *mapping_find(void *addr)
{
    for (int i = 0; i < MAX_MAPPINGS; i++)
        if (atomic_load_explicit(&mappings[i], memory_order_relaxed) == addr)
            return &mappings[i];
    return NULL;
}

static _Atomic int nmappings;

PT_EXPORT void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
    struct pt_thread *t = &pt_self;
    struct pt_pass pass = {0};
    int file = fd >= 0 && !(flags & MAP_ANONYMOUS);
    int cls = file && pt_thread_traced(t) ? pt_fds_class(t, fd, &pass) : -1;
    int traced = pass_begin(t, &pass, cls == PT_CLASS_IO ? cls : -1, PT_OP_mmap);
    void *ret;
    if (traced) {
        ret = REAL(mmap)(addr, len, prot, flags, fd, off);
    } else { /* allocators come here before anything can be resolved */
        long rc = pt_sys(SYS_mmap, addr, len, prot, flags, fd, off);
        if (rc < 0 && rc > -4096)
            errno = (int)-rc;
        return rc < 0 && rc > -4096 ? MAP_FAILED : (void *)rc;
    }
    int error = errno, failed = ret == MAP_FAILED;
    if (!failed) {
        mapping_add(ret);
        atomic_fetch_add(&nmappings, 1);
    }
    pass_end(t, &pass, PT_OP_mmap, failed ? -1 : 0, failed ? error : 0,
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
    _Atomic(void *) *mapping =
        atomic_load_explicit(&nmappings, memory_order_relaxed) ? mapping_find(addr) : NULL;
    int traced = mapping && pt_thread_traced(t) && pass_begin(t, &pass, PT_CLASS_IO, PT_OP_munmap);
    long rc = pt_sys(SYS_munmap, addr, len);
    if (mapping && rc == 0 && !pt_vforked) {
        atomic_store(mapping, NULL);
        atomic_fetch_sub(&nmappings, 1);
    }
    if (traced)
        pass_end(t, &pass, PT_OP_munmap, rc < 0 ? -1 : 0, (int)-rc,
                 FIELDS((intptr_t)addr, (int64_t)len));
    if (rc < 0)
        errno = (int)-rc;
    return rc < 0 ? -1 : 0;
}

extern __typeof__(munmap) __munmap_alias __asm__("__munmap")
    __attribute__((alias("munmap"), visibility("default")));

PT_EXPORT int msync(void *addr, size_t len, int flags)
{
    struct pt_thread *t = &pt_self;
    struct pt_pass pass = {0};
    int traced = pt_thread_traced(t) && atomic_load(&nmappings) &&
                 pass_begin(t, &pass, PT_CLASS_IO, PT_OP_msync);
    int ret = REAL(msync)(addr, len, flags), error = errno;
    if (traced)
        pass_end(t, &pass, PT_OP_msync, ret, ret < 0 ? error : 0,
                 FIELDS((intptr_t)addr, (int64_t)len, flags));
    errno = error;
    return ret;
}

/* ---- streams and directories -------------------------------------------------------------- */

DECLARE(rewind);
DECLARE(rewinddir);
DECLARE(seekdir);

PT_EXPORT void rewind(FILE *f)
{
    struct pt_thread *t = &pt_self;
    struct pt_pass pass = {0};
    int cls = pt_thread_traced(t) ? pt_fds_class(t, f->_fileno, &pass) : -1;
    int traced = pass_begin(t, &pass, cls, PT_OP_rewind);
    REAL(rewind)(f);
    int error = errno;
    if (traced)
        pass_end(t, &pass, PT_OP_rewind, 0, 0, FIELDS(pass.fd, 0, SEEK_SET));
    errno = error;
}

PT_EXPORT void rewinddir(DIR *dir)
{
    struct pt_thread *t = &pt_self;
    struct pt_pass pass = {0};
    int cls = pt_thread_traced(t) ? pt_fds_class(t, dirfd(dir), &pass) : -1;
    int traced = pass_begin(t, &pass, cls, PT_OP_rewinddir);
    REAL(rewinddir)(dir);
    if (traced)
        pass_end(t, &pass, PT_OP_rewinddir, 0, 0, FIELDS(pass.fd));
}

PT_EXPORT void seekdir(DIR *dir, long pos)
{
    struct pt_thread *t = &pt_self;
    struct pt_pass pass = {0};
    int cls = pt_thread_traced(t) ? pt_fds_class(t, dirfd(dir), &pass) : -1;
    int traced = pass_begin(t, &pass, cls, PT_OP_seekdir);
    REAL(seekdir)(dir, pos);
    if (traced)
        pass_end(t, &pass, PT_OP_seekdir, 0, 0, FIELDS(pass.fd, pos));
}

/* The variadic forms are their va_list forms, and are recorded as those. */
int __vfprintf_chk(FILE *f, int flag, const char *fmt, va_list ap);
int __isoc99_vfscanf(FILE *f, const char *fmt, va_list ap);
int __fprintf_chk(FILE *f, int flag, const char *fmt, ...);
int __printf_chk(int flag, const char *fmt, ...);
int __vprintf_chk(int flag, const char *fmt, va_list ap);
int __isoc99_fscanf(FILE *f, const char *fmt, ...);

#define FORWARD(call)  \
    va_list ap;        \
    va_start(ap, fmt); \
    int ret = call;    \
    va_end(ap);        \
    return ret

PT_EXPORT int fprintf(FILE *f, const char *fmt, ...)
{
    FORWARD(vfprintf(f, fmt, ap));
}

PT_EXPORT int __fprintf_chk(FILE *f, int flag, const char *fmt, ...)
{
    FORWARD(__vfprintf_chk(f, flag, fmt, ap));
}

PT_EXPORT int printf(const char *fmt, ...)
{
    FORWARD(vfprintf(stdout, fmt, ap));
}

PT_EXPORT int vprintf(const char *fmt, va_list ap)
{
    return vfprintf(stdout, fmt, ap);
}

PT_EXPORT int __printf_chk(int flag, const char *fmt, ...)
{
    FORWARD(__vfprintf_chk(stdout, flag, fmt, ap));
}

PT_EXPORT int __vprintf_chk(int flag, const char *fmt, va_list ap)
{
    return __vfprintf_chk(stdout, flag, fmt, ap);
}

PT_EXPORT int __isoc99_fscanf(FILE *f, const char *fmt, ...)
{
    FORWARD(__isoc99_vfscanf(f, fmt, ap));
}

/* The forms of before C99, which the headers hide behind the newer ones. */
int old_vfscanf(FILE *f, const char *fmt, va_list ap) __asm__("vfscanf");
int old_fscanf(FILE *f, const char *fmt, ...) __asm__("fscanf");

int64_t pt_position(FILE *f)
{
    static off_t (*real)(FILE *);
    if (!real)
        real = (off_t(*)(FILE *))pt_real("ftello");
    int error = errno;
    int64_t at = real(f);
    errno = error;
    return at < 0 ? 0 : at;
}

PT_EXPORT int old_vfscanf(FILE *f, const char *fmt, va_list ap)
{
    static int (*real)(FILE *, const char *, va_list);
    struct pt_thread *t = &pt_self;
    struct pt_pass pass = {0};
    if (!real)
        real = (int (*)(FILE *, const char *, va_list))pt_real("vfscanf");
    int cls = pt_thread_traced(t) ? pt_fds_class(t, f->_fileno, &pass) : -1;
    int64_t from = cls < 0 ? 0 : pt_position(f);
    int traced = pass_begin(t, &pass, cls, PT_OP___isoc99_vfscanf);
    int ret = real(f, fmt, ap);
    if (traced) {
        int64_t moved = pt_position(f) - from;
        pass_end(t, &pass, PT_OP___isoc99_vfscanf, moved, 0, FIELDS(pass.fd, moved));
    }
    return ret;
}

PT_EXPORT int old_fscanf(FILE *f, const char *fmt, ...)
{
    FORWARD(old_vfscanf(f, fmt, ap));
}

PT_EXPORT void setbuffer(FILE *f, char *buf, size_t n)
{
    setvbuf(f, buf, buf ? _IOFBF : _IONBF, n);
}

PT_EXPORT void setbuf(FILE *f, char *buf)
{
    setbuffer(f, buf, BUFSIZ);
}

/* ---- locks: an event only where one had to wait --------------------------------------------- */

DECLARE(pthread_mutex_lock);
DECLARE(pthread_rwlock_rdlock);
DECLARE(pthread_rwlock_wrlock);

#define LOCK(name, try, type)                                                                  \
    PT_EXPORT int name(type *lock)                                                             \
    {                                                                                          \
        struct pt_thread *t = &pt_self;                                                        \
        struct pt_pass pass = {0};                                                             \
        if (t->state != PT_THREAD_READY)                                                       \
            return REAL(name)(lock);                                                           \
        int ret = try(lock);                                                                   \
        if (ret != EBUSY)                                                                      \
            return ret;                                                                        \
        int traced = pt_thread_traced(t) && pass_begin(t, &pass, PT_CLASS_SYNC, PT_OP_##name); \
        ret = REAL(name)(lock);                                                                \
        if (traced)                                                                            \
            pass_end(t, &pass, PT_OP_##name, ret, 0, FIELDS((intptr_t)lock));                  \
        return ret;                                                                            \
    }

LOCK(pthread_mutex_lock, pthread_mutex_trylock, pthread_mutex_t)
LOCK(pthread_rwlock_rdlock, pthread_rwlock_tryrdlock, pthread_rwlock_t)
LOCK(pthread_rwlock_wrlock, pthread_rwlock_trywrlock, pthread_rwlock_t)

/* ---- MPI_File_close: the handle is gone afterwards ---------------------------------------------
 */

int MPI_File_close(void **fh);
int PMPI_File_close(void **fh);

PT_EXPORT int MPI_File_close(void **fh)
{
    static int (*real)(void **);
    struct pt_thread *t = &pt_self;
    struct pt_pass pass = {0};
    void *file = *fh;
    if (!real)
        real = (int (*)(void **))pt_real_mpi("PMPI_File_close");
    if (!pt_thread_traced(t) || t->inner)
        return real(fh);
    pass_begin(t, &pass, PT_CLASS_IO, PT_OP_MPI_File_close);
    t->inner++;
    int ret = real(fh), error = errno;
    t->inner--;
    pass_end(t, &pass, PT_OP_MPI_File_close, 0, ret, FIELDS((intptr_t)file));
    errno = error;
    return ret;
}

PT_EXPORT int PMPI_File_close(void **fh)
{
    return MPI_File_close(fh);
}

/* ---- the end ------------------------------------------------------------------------------------
 */

DECLARE(_exit);

PT_EXPORT void _exit(int status)
{
    if (!pt_vforked)
        pt_record_exit(&pt_self);
    REAL(_exit)(status);
    __builtin_unreachable();
}

PT_EXPORT void _Exit(int status)
{
    _exit(status);
}
