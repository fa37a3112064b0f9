/*
 * Streams: calls that the table cannot describe, and the second names of those it can.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "preload/hand.h"
#include "preload/stream.h"
#include "preload/sys.h"
#include "preload/table.h"

#define A_FEW_BYTES 256

/* ---- inlined calls: see stream.h ---------------------------------------------------------- */

PT_NEAR struct pt_stream_note pt_near_notes[PT_NEAR_STREAMS];
static PT_NEAR pt_table far_notes; /* those behind */
static PT_NEAR _Atomic int nnotes; /* no stream has a higher descriptor */

struct pt_stream_note *pt_stream_far_note(int fd)
{
    if (fd < PT_NEAR_STREAMS || fd >= PT_MAX_STREAMS)
        return NULL;
    struct pt_stream_note *notes =
        pt_table_make(&far_notes, (PT_MAX_STREAMS - PT_NEAR_STREAMS) * sizeof(*notes));
    return notes ? notes + (fd - PT_NEAR_STREAMS) : NULL;
}

/* How far the buffer's pointer is behind the mark; 0 if the mark is in another buffer. */
static int64_t moved_since(const FILE *f, const char *mark)
{
    const char *base = f->_flags & PT_IO_PUTTING ? f->_IO_write_base : f->_IO_read_base;
    const char *place = pt_stream_place(f);
    return mark && mark >= base && mark < place ? place - mark : 0;
}

/* They took no time of their own that we could know. */
static void record_inlined(struct pt_thread *t, const FILE *f, int64_t n)
{
    struct pt_pass pass;
    uint16_t op = f->_flags & PT_IO_PUTTING ? PT_OP_putc_unlocked : PT_OP_getc_unlocked;
    int cls = pt_fds_class(t, pt_stream_fd(f), &pass);
    pass.cls = (enum pt_class)cls;
    if (cls == PT_CLASS_IO && !pt_pass_clock(t, &pass)) {
        t->end = pass.begin;
        if (pt_put_short(t, op, pass.fd, n, n, pass.begin, 0)) {
            pt_pass_done(t, &pass);
            return;
        }
    }
    if (pass_begin(t, &pass, cls, op))
        pass_end(t, &pass, op, n, 0, FIELDS(pass.fd, n));
}

PT_COLD void pt_stream_look(struct pt_thread *t, FILE *f, struct pt_stream_note *note)
{
    uintptr_t none = 0;
    if (pt_stream_is_mine(t, f, note)) {
        int64_t n = moved_since(f, note->mark);
        /* Still mine: nobody else was in a call while the pointers were read. */
        if (n && pt_stream_is_mine(t, f, note))
            record_inlined(t, f, n);
    } else if (atomic_compare_exchange_strong(&note->owner, &none, (uintptr_t)t)) {
        note->mark = NULL;
        note->file = f;
        if (pt_stream_fd(f) >= atomic_load(&nnotes)) /* a race of two costs the last bytes of one */
            atomic_store(&nnotes, pt_stream_fd(f) + 1);
    } else {
        atomic_store(&note->owner, PT_STREAM_SHARED);
    }
}

static void record_last(struct pt_thread *t, FILE *f, const struct pt_stream_note *note)
{
    uintptr_t owner = atomic_load(&note->owner);
    int64_t n = owner > PT_STREAM_SHARED && note->file == f ? moved_since(f, note->mark) : 0;
    if (n && pt_thread_traced(t))
        record_inlined(t, f, n);
}

void pt_stream_close(FILE *f)
{
    struct pt_stream_note *note = pt_stream_note_of(pt_stream_fd(f));
    if (!note || pt_vforked || note->file != f)
        return;
    record_last(&pt_self, f, note);
    note->file = NULL;
    note->mark = NULL;
    atomic_store(&note->owner, 0);
}

/* The note of that descriptor, if its stream is still the one that was noted. */
static const struct pt_stream_note *noted(int fd)
{
    const struct pt_stream_note *note = pt_stream_note_of(fd);
    return note && note->file && pt_stream_fd(note->file) == fd ? note : NULL;
}

void pt_streams_end(void)
{
    for (int fd = 0, n = atomic_load(&nnotes); fd < n; fd++) {
        const struct pt_stream_note *note = noted(fd);
        if (note)
            record_last(&pt_self, note->file, note);
    }
}

void pt_streams_enter(struct pt_thread *t)
{
    for (int fd = 0, n = atomic_load(&nnotes); fd < n; fd++) {
        const struct pt_stream_note *note = noted(fd);
        if (note && pt_stream_is_mine(t, note->file, note))
            record_last(t, note->file, note);
    }
}

void pt_streams_leave(const struct pt_thread *t)
{
    for (int fd = 0, n = atomic_load(&nnotes); fd < n; fd++) {
        const struct pt_stream_note *note = noted(fd);
        if (note)
            pt_stream_leave(t, note->file);
    }
}

/* ---- a call --------------------------------------------------------------------------- */

int pt_stream_begin(FILE *f, uint16_t op, struct pt_pass *pass)
{
    struct pt_thread *t = &pt_self;
    if (!pt_thread_traced(t))
        return -1;
    pass->fd = 0;
    int cls = pt_stream_enter(t, f, pass);
    return pass_begin(t, pass, cls, op) ? cls : -1;
}

/*
 * Takes a note of where the call has left the buffer.  1: it has moved a few bytes there and
 * done no more, which takes less time than to look at the clock.
 */
static int leave_buffer(const struct pt_thread *t, const FILE *f, int64_t moved)
{
    struct pt_stream_note *note = pt_stream_note_of(pt_stream_fd(f));
    if (!note || !pt_stream_is_mine(t, f, note))
        return 0;
    const char *from = note->mark;
    note->mark = pt_stream_place(f);
    return from && moved <= A_FEW_BYTES &&
           (uintptr_t)note->mark - (uintptr_t)from == (uint64_t)moved;
}

void pt_stream_end(const FILE *f, struct pt_pass *pass, uint16_t op, int64_t ret, int err,
                   unsigned shape, const int64_t *fields)
{
    struct pt_thread *t = &pt_self;
    int no_time = leave_buffer(t, f, ret);
    if (PT_LIKELY(shape == PT_SHAPE_FD_LEN && ret >= 0 && !err && !pass->flags &&
                  pass->cls == PT_CLASS_IO)) {
        uint64_t now = no_time ? pass->begin : pt_now(), dur = now - pass->begin;
        t->end = now;
        if (PT_LIKELY(pt_put_short(t, op, fields[0], fields[1], ret, pass->begin, dur))) {
            t->short_time += dur;
            pt_pass_done(t, pass);
            return;
        }
    }
    pass_end(t, pass, op, ret, err, PT_SHAPE_WORDS(shape), fields);
}

/* May a call on the stream that only moves a few bytes in its buffer go the short way? */
static inline int may_be_short(const struct pt_thread *t, const FILE *f,
                               const struct pt_stream_note *note)
{
    return note && f->_mode < 0 && pt_stream_is_mine(t, f, note) && note->mark &&
           t->state == PT_THREAD_READY && !t->below_mpi && !t->inner && !t->polls && !pt_vforked &&
           atomic_load_explicit(&t->ring->io_done, memory_order_relaxed) + 2 <= t->hold_next;
}

/* A short record at this time; 1: there it is. */
static inline int put_few(struct pt_thread *t, uint16_t op, int64_t fd_word, int64_t asked,
                          int64_t n)
{
    if (!pt_put_short(t, op, fd_word, asked, n, t->end, 0))
        return 0;
    pt_count(&t->ring->io_done);
    pt_count(&t->ring->events);
    return 1;
}

/* The bytes that inlined calls have moved since the last call, up to `place`. */
static inline int64_t inlined_upto(const FILE *f, const char *mark, const char *place)
{
    const char *base = f->_flags & PT_IO_PUTTING ? f->_IO_write_base : f->_IO_read_base;
    return PT_LIKELY(mark >= base && mark <= place) ? place - mark : 0; /* else of another buffer */
}

/*
 * So many of the bytes that were asked for have been moved.  What has come through inlined calls
 * before is an event before that.
 */
static inline void record_few(struct pt_thread *t, FILE *f, struct pt_stream_note *note,
                              uint16_t op, int64_t asked, int64_t n, uint64_t begin)
{
    struct pt_pass pass;
    uint64_t gap = begin - t->end;
    int putting = f->_flags & PT_IO_PUTTING;
    const char *place = pt_stream_place(f);
    int64_t inlined = inlined_upto(f, note->mark, place - n);
    int cls = pt_fds_class(t, pt_stream_fd(f), &pass);
    note->mark = place;
    if (PT_LIKELY(gap <= pt_ticks.long_gap && cls == PT_CLASS_IO)) {
        t->short_time += gap;
        t->end = begin;
        if (putting && PT_LIKELY(pt_put_tiny(t, op, pass.fd, n, inlined, begin))) {
            pt_count_more(&t->ring->io_done, 1 + !!inlined);
            pt_count_more(&t->ring->events, 1 + !!inlined);
            return;
        }
        uint16_t inlined_op = putting ? PT_OP_putc_unlocked : PT_OP_getc_unlocked;
        if (inlined && put_few(t, inlined_op, pass.fd, inlined, inlined))
            inlined = 0;
        if (!inlined && put_few(t, op, pass.fd, asked, n))
            return;
    }
    if (inlined)
        record_inlined(t, f, inlined);
    if (pass_begin(t, &pass, cls, op))
        pass_end(t, &pass, op, n, 0, FIELDS(pass.fd, asked));
}

/*
 * Not if the program wants each line to leave the buffer.  libc finds out itself when wide
 * characters are written.
 */
static inline int takes_few(const FILE *f, int64_t n)
{
    const int flags = PT_IO_PUTTING | PT_IO_LINES | PT_IO_UNBUFFERED;
    return n > 0 && n <= A_FEW_BYTES && (f->_flags & flags) == PT_IO_PUTTING &&
           f->_IO_write_end - f->_IO_write_ptr >= n;
}

int pt_stream_put(FILE *f, uint16_t op, const void *bytes, int64_t n)
{
    struct pt_thread *t = &pt_self;
    struct pt_stream_note *note = pt_stream_note_of(pt_stream_fd(f));
    if (!takes_few(f, n) || !may_be_short(t, f, note))
        return 0;
    uint64_t begin = pt_now();
    memcpy(f->_IO_write_ptr, bytes, (size_t)n);
    f->_IO_write_ptr += n;
    record_few(t, f, note, op, n, n, begin);
    return 1;
}

/* How many bytes of a line, of at most that many, are in the buffer up to where it ends; or 0. */
static inline int64_t line_in_buffer(const FILE *f, int64_t most)
{
    if (f->_flags & (PT_IO_PUTTING | PT_IO_UNBUFFERED | PT_IO_BACKUP))
        return 0;
    const char *from = f->_IO_read_ptr;
    int64_t have = f->_IO_read_end - from;
    if (have > A_FEW_BYTES)
        have = A_FEW_BYTES;
    if (most <= 0 || have <= 0)
        return 0;
    const char *end = memchr(from, '\n', (size_t)(have < most ? have : most));
    return end ? end + 1 - from : most <= have ? most : 0;
}

int pt_stream_line(FILE *f, uint16_t op, char *s, int64_t n)
{
    struct pt_thread *t = &pt_self;
    struct pt_stream_note *note = pt_stream_note_of(pt_stream_fd(f));
    if (!may_be_short(t, f, note))
        return 0;
    uint64_t begin = pt_now();
    int64_t have = line_in_buffer(f, n - 1);
    if (!have)
        return 0;
    memcpy(s, f->_IO_read_ptr, (size_t)have);
    s[have] = 0;
    f->_IO_read_ptr += have;
    record_few(t, f, note, op, n, have, begin);
    return 1;
}

/* ---- opening anew ------------------------------------------------------------------------- */

DECLARE(freopen);
DECLARE(rewind);

int pt_fopen_flags(const char *mode)
{
    int both = strchr(mode, '+') != NULL;
    int more = (strchr(mode, 'x') ? O_EXCL : 0) | (strchr(mode, 'e') ? O_CLOEXEC : 0);
    switch (*mode) {
    case 'r':
        return (both ? O_RDWR : O_RDONLY) | more;
    case 'w':
        return (both ? O_RDWR : O_WRONLY) | O_CREAT | O_TRUNC | more;
    default:
        return (both ? O_RDWR : O_WRONLY) | O_CREAT | O_APPEND | more;
    }
}

/* Whether it succeeds or not, freopen closes what the stream stood for. */
static void record_close(struct pt_thread *t, FILE *f)
{
    struct pt_pass pass = {0};
    if (pass_begin(t, &pass, pt_fds_closing(t, pt_stream_fd(f), &pass), PT_OP_fclose))
        pass_end(t, &pass, PT_OP_fclose, 0, 0, FIELDS(pass.fd));
}

/* The name of the file behind a stream, for freopen(NULL, ...); empty: none. */
static const char *name_of(const FILE *f, char *room, size_t size)
{
    char link[PT_PROC_PATH];
    pt_proc_path(link, "/proc/self/fd/", (uint32_t)pt_stream_fd(f), "", -1);
    long n = pt_sys(SYS_readlinkat, AT_FDCWD, link, room, size - 1);
    room[n > 0 ? n : 0] = 0;
    return room;
}

PT_EXPORT FILE *freopen(const char *path, const char *mode, FILE *f)
{
    struct pt_thread *t = &pt_self;
    struct pt_pass pass = {0};
    char room[1024];
    int traced = pt_thread_traced(t);
    const char *name = path || !traced ? path : name_of(f, room, sizeof(room));
    pt_stream_close(f);
    if (traced)
        record_close(t, f);
    traced = traced && pass_begin(t, &pass, pt_class_of_name(name), PT_OP_freopen);
    FILE *ret = REAL(freopen)(path, mode, f);
    int error = errno;
    if (traced) {
        if (ret)
            pt_fds_opened(pt_stream_fd(ret), &pass);
        pass_end_open(t, &pass, PT_OP_freopen, ret ? pt_stream_fd(ret) : -1, ret ? 0 : error,
                      AT_FDCWD, name, pt_fopen_flags(mode), 0666);
    } else if (ret && !pt_vforked) {
        pt_fds_ignore(pt_stream_fd(ret), name, pt_string_length(name));
    }
    errno = error;
    return ret;
}

extern __typeof__(freopen) freopen64_alias __asm__("freopen64")
    __attribute__((alias("freopen"), visibility("default")));

PT_EXPORT void rewind(FILE *f)
{
    struct pt_thread *t = &pt_self;
    struct pt_pass pass = {0};
    int cls = pt_thread_traced(t) ? pt_stream_enter(t, f, &pass) : -1;
    int traced = pass_begin(t, &pass, cls, PT_OP_rewind);
    REAL(rewind)(f);
    int error = errno;
    pt_stream_leave(t, f);
    if (traced)
        pass_end(t, &pass, PT_OP_rewind, 0, 0, FIELDS(pass.fd, 0, SEEK_SET));
    errno = error;
}

PT_EXPORT void setbuffer(FILE *f, char *buf, size_t n)
{
    setvbuf(f, buf, buf ? _IOFBF : _IONBF, n);
}

PT_EXPORT void setbuf(FILE *f, char *buf)
{
    setbuffer(f, buf, BUFSIZ);
}

PT_EXPORT void setlinebuf(FILE *f)
{
    setvbuf(f, NULL, _IOLBF, 0);
}

/* ---- calls that do not say how many bytes they moved ---------------------------------------- */

/* How far the stream's position moves in a call; only a file has one. */
struct motion {
    struct pt_pass pass;
    int traced;
    uint16_t op;
    int64_t from;
};

static int64_t position(FILE *f)
{
    static PT_FAR void *_Atomic real_ftello;
    int error = errno;
    int64_t at = REAL(ftello)(f);
    errno = error;
    return at < 0 ? 0 : at;
}

static void motion_begin(struct motion *m, FILE *f, uint16_t op)
{
    struct pt_thread *t = &pt_self;
    *m = (struct motion){.op = op};
    int cls = pt_thread_traced(t) ? pt_stream_enter(t, f, &m->pass) : -1;
    m->from = cls == PT_CLASS_IO ? position(f) : 0;
    m->traced = pass_begin(t, &m->pass, cls, op);
}

/* `otherwise` bytes if there is no position to tell. */
static void motion_end(struct motion *m, FILE *f, int failed, int64_t otherwise)
{
    struct pt_thread *t = &pt_self;
    int error = errno;
    pt_stream_leave(t, f);
    if (m->traced) {
        int64_t n = m->pass.cls == PT_CLASS_IO ? position(f) - m->from : otherwise;
        pass_end(t, &m->pass, m->op, failed ? -1 : n, failed ? error : 0,
                 FIELDS(m->pass.fd, failed ? 0 : n));
    }
    errno = error;
}

/* The form of before C99 and the newer one are the same to us. */
#define SCAN(function, symbol, row, type)                                             \
    int function(FILE *f, const type *fmt, va_list ap) __asm__(symbol);               \
    PT_EXPORT int function(FILE *f, const type *fmt, va_list ap)                      \
    {                                                                                 \
        static PT_FAR void *_Atomic real;                                             \
        struct motion m;                                                              \
        motion_begin(&m, f, PT_OP_##row);                                             \
        int ret = ((__typeof__(&function))pt_real_cached(&real, symbol))(f, fmt, ap); \
        motion_end(&m, f, 0, 0); /* how much was taken from a pipe is not known */    \
        return ret;                                                                   \
    }

SCAN(old_vfscanf, "vfscanf", __isoc99_vfscanf, char)
SCAN(new_vfscanf, "__isoc99_vfscanf", __isoc99_vfscanf, char)
SCAN(old_vfwscanf, "vfwscanf", __isoc99_vfwscanf, wchar_t)
SCAN(new_vfwscanf, "__isoc99_vfwscanf", __isoc99_vfwscanf, wchar_t)

int __vfwprintf_chk(FILE *f, int flag, const wchar_t *fmt, va_list ap);
DECLARE(vfwprintf);
DECLARE(__vfwprintf_chk);

/* It returns characters; the file gets bytes. */
PT_EXPORT int vfwprintf(FILE *f, const wchar_t *fmt, va_list ap)
{
    struct motion m;
    motion_begin(&m, f, PT_OP_vfwprintf);
    int ret = REAL(vfwprintf)(f, fmt, ap);
    motion_end(&m, f, ret < 0, ret);
    return ret;
}

PT_EXPORT int __vfwprintf_chk(FILE *f, int flag, const wchar_t *fmt, va_list ap)
{
    struct motion m;
    motion_begin(&m, f, PT_OP___vfwprintf_chk);
    int ret = REAL(__vfwprintf_chk)(f, flag, fmt, ap);
    motion_end(&m, f, ret < 0, ret);
    return ret;
}

/* ---- the variadic forms are their va_list forms, and are recorded as those ---------------- */

#define FORWARD(signature, call) \
    PT_EXPORT int signature      \
    {                            \
        va_list ap;              \
        va_start(ap, fmt);       \
        int ret = call;          \
        va_end(ap);              \
        return ret;              \
    }

int __vfprintf_chk(FILE *f, int flag, const char *fmt, va_list ap);
int __vdprintf_chk(int fd, int flag, const char *fmt, va_list ap);
int __fprintf_chk(FILE *f, int flag, const char *fmt, ...);
int __printf_chk(int flag, const char *fmt, ...);
int __vprintf_chk(int flag, const char *fmt, va_list ap);
int __dprintf_chk(int fd, int flag, const char *fmt, ...);
int __fwprintf_chk(FILE *f, int flag, const wchar_t *fmt, ...);
int __wprintf_chk(int flag, const wchar_t *fmt, ...);
int __vwprintf_chk(int flag, const wchar_t *fmt, va_list ap);

FORWARD(fprintf(FILE *f, const char *fmt, ...), vfprintf(f, fmt, ap))
FORWARD(__fprintf_chk(FILE *f, int flag, const char *fmt, ...), __vfprintf_chk(f, flag, fmt, ap))
FORWARD(printf(const char *fmt, ...), vfprintf(stdout, fmt, ap))
FORWARD(__printf_chk(int flag, const char *fmt, ...), __vfprintf_chk(stdout, flag, fmt, ap))
FORWARD(dprintf(int fd, const char *fmt, ...), vdprintf(fd, fmt, ap))
FORWARD(__dprintf_chk(int fd, int flag, const char *fmt, ...), __vdprintf_chk(fd, flag, fmt, ap))
FORWARD(fwprintf(FILE *f, const wchar_t *fmt, ...), vfwprintf(f, fmt, ap))
FORWARD(__fwprintf_chk(FILE *f, int flag, const wchar_t *fmt, ...),
        __vfwprintf_chk(f, flag, fmt, ap))
FORWARD(wprintf(const wchar_t *fmt, ...), vfwprintf(stdout, fmt, ap))
FORWARD(__wprintf_chk(int flag, const wchar_t *fmt, ...), __vfwprintf_chk(stdout, flag, fmt, ap))

PT_EXPORT int vprintf(const char *fmt, va_list ap)
{
    return vfprintf(stdout, fmt, ap);
}

PT_EXPORT int __vprintf_chk(int flag, const char *fmt, va_list ap)
{
    return __vfprintf_chk(stdout, flag, fmt, ap);
}

PT_EXPORT int vwprintf(const wchar_t *fmt, va_list ap)
{
    return vfwprintf(stdout, fmt, ap);
}

PT_EXPORT int __vwprintf_chk(int flag, const wchar_t *fmt, va_list ap)
{
    return __vfwprintf_chk(stdout, flag, fmt, ap);
}

/* fscanf, scanf and vscanf, in one of the two forms: the headers hide the older. */
#define SCAN_FORMS(form, prefix, char_name, type, vscan)                                   \
    int form##_f##char_name(FILE *f, const type *fmt, ...) __asm__(prefix "f" #char_name); \
    int form##_##char_name(const type *fmt, ...) __asm__(prefix #char_name);               \
    int form##_v##char_name(const type *fmt, va_list ap) __asm__(prefix "v" #char_name);   \
    FORWARD(form##_f##char_name(FILE *f, const type *fmt, ...), vscan(f, fmt, ap))         \
    FORWARD(form##_##char_name(const type *fmt, ...), vscan(stdin, fmt, ap))               \
    PT_EXPORT int form##_v##char_name(const type *fmt, va_list ap)                         \
    {                                                                                      \
        return vscan(stdin, fmt, ap);                                                      \
    }

SCAN_FORMS(old, "", scanf, char, old_vfscanf)
SCAN_FORMS(new, "__isoc99_", scanf, char, new_vfscanf)
SCAN_FORMS(old, "", wscanf, wchar_t, old_vfwscanf)
SCAN_FORMS(new, "__isoc99_", wscanf, wchar_t, new_vfwscanf)
