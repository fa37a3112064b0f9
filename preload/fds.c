#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "preload/sys.h"
#include "preload/table.h"
#include "preload/tracer.h"

#define UNKNOWN PT_FD_UNKNOWN
#define FILE_FD PT_FD_FILE
#define CHANNEL PT_FD_CHANNEL
#define IGNORED PT_FD_IGNORED
#define NEW     PT_FD_NEW

#define ENTRY(kind, handle) ((uint64_t)(handle) << 32 | (kind))
#define ENTRY_KIND(entry)   ((enum pt_fd_kind)((entry)&0xff))
#define ENTRY_HANDLE(entry) ((uint32_t)((entry) >> 32))

PT_NEAR _Atomic uint64_t pt_near_fds[PT_NEAR_FDS];
static PT_NEAR pt_table far_fds; /* the words of those behind */
static PT_NEAR _Atomic int nfds; /* no descriptor beyond these was ever entered */
static PT_NEAR _Atomic uint32_t handles;

/* NULL: there is none. */
static _Atomic uint64_t *entry_of(int fd)
{
    _Atomic uint64_t *far = fd < PT_NEAR_FDS ? NULL : pt_table_get(&far_fds);
    if (fd < 0 || fd >= PT_MAX_FDS)
        return NULL;
    return fd < PT_NEAR_FDS ? &pt_near_fds[fd] : far ? far + (fd - PT_NEAR_FDS) : NULL;
}

static void entry_set(int fd, enum pt_fd_kind kind, uint32_t handle)
{
    if (fd >= PT_NEAR_FDS && kind != UNKNOWN)
        pt_table_make(&far_fds, (PT_MAX_FDS - PT_NEAR_FDS) * sizeof(uint64_t));
    _Atomic uint64_t *entry = entry_of(fd);
    if (!entry)
        return;
    pt_raise(&nfds, fd + 1);
    atomic_store_explicit(entry, ENTRY(kind, handle), memory_order_release);
}

static uint64_t entry_get(int fd)
{
    const _Atomic uint64_t *entry = entry_of(fd);
    if (entry)
        return atomic_load_explicit(entry, memory_order_acquire);
    return ENTRY(fd < 0 ? IGNORED : UNKNOWN, 0);
}

static uint32_t new_handle(void)
{
    return atomic_fetch_add_explicit(&handles, 1, memory_order_relaxed) + 1;
}

static void take_ident(const struct stat *st, struct pt_pass *pass)
{
    pass->ident.dev = st->st_dev;
    pass->ident.ino = st->st_ino;
    pass->ident.size = (uint64_t)st->st_size;
}

static int fill_ident(int fd, struct pt_pass *pass, mode_t *mode)
{
    struct stat st;
#ifdef SYS_newfstatat
    long rc = pt_sys(SYS_newfstatat, fd, "", &st, AT_EMPTY_PATH);
#else
    long rc = pt_sys(SYS_fstat, fd, &st);
#endif
    if (rc < 0)
        return -1;
    take_ident(&st, pass);
    *mode = st.st_mode;
    return 0;
}

/* Standard output and error that go to a pipe go to the launcher: nobody's I/O. */
static enum pt_fd_kind kind_of(int fd, mode_t mode)
{
    if (S_ISREG(mode) || S_ISDIR(mode) || S_ISBLK(mode))
        return FILE_FD;
    if (S_ISCHR(mode) || fd == 1 || fd == 2)
        return IGNORED;
    return CHANNEL;
}

static uint64_t classify(struct pt_thread *t, int fd)
{
    struct pt_pass pass = {0};
    char link[PT_PROC_PATH], path[1024];
    mode_t mode;

    if (fill_ident(fd, &pass, &mode))
        return ENTRY(IGNORED, 0); /* not open: the call will fail by itself */
    enum pt_fd_kind kind = kind_of(fd, mode);
    if (kind == FILE_FD) {
        pt_proc_path(link, "/proc/self/fd/", (uint32_t)fd, "", -1);
        long n = pt_sys(SYS_readlinkat, AT_FDCWD, link, path, sizeof(path) - 1);
        path[n > 0 ? n : 0] = 0;
        if (pt_filter_path(path, n > 0 ? (size_t)n : 0)) {
            long flags = pt_sys(SYS_fcntl, fd, F_GETFL);
            pass.ident.handle = new_handle();
            pass.fd = PT_FD_WORD(fd, pass.ident.handle);
            pt_record_inherited(t, path, flags < 0 ? 0 : (int)flags, &pass);
        } else {
            kind = IGNORED;
        }
    }
    entry_set(fd, kind, pass.ident.handle);
    return ENTRY(kind, pass.ident.handle);
}

/* A new descriptor is that; says so, also that it is no file after all (by no identity). */
static uint64_t identify(struct pt_thread *t, int fd, uint32_t handle, mode_t mode,
                         struct pt_pass *pass)
{
    enum pt_fd_kind kind = kind_of(fd, mode);
    pass->fd = PT_FD_WORD(fd, handle);
    pass->ident.handle = handle;
    if (kind != FILE_FD)
        pass->ident.dev = pass->ident.ino = pass->ident.size = handle = 0;
    pt_record_identity(t, pass);
    entry_set(fd, kind, handle);
    return ENTRY(kind, handle);
}

static uint64_t look_at_new(struct pt_thread *t, int fd, uint32_t handle)
{
    struct pt_pass pass = {0};
    mode_t mode;
    if (fill_ident(fd, &pass, &mode))
        return ENTRY(FILE_FD, handle); /* just closed with others, as far as we know a file */
    return identify(t, fd, handle, mode, &pass);
}

int pt_fds_class_of_stat(struct pt_thread *t, int fd, struct pt_pass *pass)
{
    uint64_t entry = entry_get(fd);
    if (ENTRY_KIND(entry) != NEW)
        return pt_fds_class(t, fd, pass);
    pass->fd = PT_FD_WORD(fd, ENTRY_HANDLE(entry));
    return PT_CLASS_IO;
}

int pt_fds_stated(struct pt_thread *t, int fd, const struct stat *st)
{
    struct pt_pass pass = {0};
    uint64_t entry = entry_get(fd);
    if (PT_LIKELY(ENTRY_KIND(entry) != NEW))
        return 0;
    take_ident(st, &pass);
    entry = identify(t, fd, ENTRY_HANDLE(entry), st->st_mode, &pass);
    return ENTRY_KIND(entry) == FILE_FD ? 0 : -1;
}

int pt_fds_class_slow(struct pt_thread *t, int fd, struct pt_pass *pass)
{
    uint64_t entry = entry_get(fd);
    if (ENTRY_KIND(entry) == NEW)
        entry = look_at_new(t, fd, ENTRY_HANDLE(entry));
    else if (PT_UNLIKELY(ENTRY_KIND(entry) == UNKNOWN))
        entry = classify(t, fd);
    pass->fd = PT_FD_WORD(fd, ENTRY_HANDLE(entry));
    switch (ENTRY_KIND(entry)) {
    case FILE_FD:
        return PT_CLASS_IO;
    case CHANNEL:
        return PT_CLASS_SYNC;
    default:
        return -1;
    }
}

int pt_fds_closing(struct pt_thread *t, int fd, struct pt_pass *pass)
{
    /* An unknown one was never used: its close says nothing about the program's I/O. */
    int cls = ENTRY_KIND(entry_get(fd)) == UNKNOWN ? -1 : pt_fds_class(t, fd, pass);
    entry_set(fd, UNKNOWN, 0);
    return cls == PT_CLASS_IO ? cls : -1;
}

void pt_fds_opened(int fd, struct pt_pass *pass)
{
    mode_t mode;
    if (fill_ident(fd, pass, &mode))
        return;
    enum pt_fd_kind kind = kind_of(fd, mode);
    pass->ident.handle = kind == FILE_FD ? new_handle() : 0;
    entry_set(fd, kind, pass->ident.handle);
}

void pt_fds_opened_just_now(int fd, struct pt_pass *pass)
{
    pass->ident.handle = new_handle();
    entry_set(fd, NEW, pass->ident.handle);
}

/* "/dev/stdin", "/dev/fd/3", "/proc/self/fd/3": what is behind it may well be traced. */
static int names_descriptor(const char *path, size_t n)
{
    static const char dev[] = "/dev/", proc[] = "/proc/";
    if (n >= sizeof(dev) && !memcmp(path, dev, sizeof(dev) - 1))
        return !strncmp(path + sizeof(dev) - 1, "std", 3) ||
               !strncmp(path + sizeof(dev) - 1, "fd/", 3);
    return n >= sizeof(proc) && !memcmp(path, proc, sizeof(proc) - 1) &&
           memmem(path, n, "/fd/", 4) != NULL;
}

void pt_fds_ignore(int fd, const char *path, size_t n)
{
    entry_set(fd, PT_UNLIKELY(names_descriptor(path, n)) ? UNKNOWN : IGNORED, 0);
}

int64_t pt_fds_word(int fd)
{
    return PT_FD_WORD(fd, fd < 0 ? 0 : ENTRY_HANDLE(entry_get(fd)));
}

void pt_fds_closed_range(unsigned first, unsigned last)
{
    for (unsigned fd = first; fd <= last && fd < (unsigned)atomic_load(&nfds); fd++)
        if (ENTRY_KIND(entry_get((int)fd)) != UNKNOWN)
            entry_set((int)fd, UNKNOWN, 0);
}

int64_t pt_fds_copied(int64_t fd_word, int fd2)
{
    enum pt_fd_kind kind = ENTRY_KIND(entry_get(PT_FD_OF(fd_word)));
    if (kind == NEW) /* a copy that is not recorded: it is looked at when it is used */
        kind = UNKNOWN;
    uint32_t handle = kind == FILE_FD ? new_handle() : 0;
    entry_set(fd2, kind, handle);
    return PT_FD_WORD(fd2, handle);
}

/* The child's handles are its own: each descriptor is announced again at its first use. */
void pt_fds_forked(void)
{
    for (int fd = 0; fd < atomic_load(&nfds); fd++)
        if (ENTRY_KIND(entry_get(fd)) == FILE_FD || ENTRY_KIND(entry_get(fd)) == NEW)
            entry_set(fd, UNKNOWN, 0);
    atomic_store(&handles, 0);
}
