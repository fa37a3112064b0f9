/*
 * Streams, and what can be seen of them between two calls.
 *
 * getc_unlocked and putc_unlocked are inlined into the program: most of them only move a
 * pointer in the stream's buffer.  Calls of getc and putc that do no more than that are
 * treated alike, for there are millions of them.  Where a traced call leaves that pointer is noted;
 * if the next call finds it further on, the bytes in between are recorded as one event of
 * getc_unlocked or putc_unlocked, before the call's own.
 *
 * This is exact as long as one thread uses the stream.  Once a second one comes, a moved
 * pointer may as well be the other's call at work: then only calls are recorded.
 */
#ifndef PT_STREAM_H
#define PT_STREAM_H

#include <stdatomic.h>
#include <stdio.h>

#include "preload/tracer.h"

#define PT_MAX_STREAMS  4096 /* by descriptor */
#define PT_NEAR_STREAMS 16   /* most programs have no others */

struct pt_stream_note {
    _Atomic uintptr_t owner; /* the thread that uses the stream, PT_STREAM_SHARED, 0: none yet */
    FILE *file;
    const char *mark; /* where the last call left it */
};

enum { PT_STREAM_SHARED = 1 };

/* Flags that libc's header does not name. */
#define PT_IO_UNBUFFERED 0x0002
#define PT_IO_BACKUP     0x0100 /* reads what was given back by ungetc */
#define PT_IO_LINES      0x0200
#define PT_IO_PUTTING    0x0800
#define PT_IO_OF_FILE    0x2000

/*
 * The stream's descriptor; negative: it is in memory, or made of functions.  In the first of these
 * cases libc does not set it, and it may be that of whoever had the memory before.
 */
static inline int pt_stream_fd(const FILE *f)
{
    return f->_flags & PT_IO_OF_FILE ? f->_fileno : -1;
}

extern struct pt_stream_note pt_near_notes[PT_NEAR_STREAMS] __attribute__((visibility("hidden")));

/* The note of a descriptor; NULL: there is none. */
struct pt_stream_note *pt_stream_far_note(int fd);

static inline struct pt_stream_note *pt_stream_note_of(int fd)
{
    return PT_LIKELY((unsigned)fd < PT_NEAR_STREAMS) ? &pt_near_notes[fd] : pt_stream_far_note(fd);
}

/* A first use, one of another thread, or inlined calls before this one. */
void pt_stream_look(struct pt_thread *t, FILE *f, struct pt_stream_note *note);

/* Where the program is in the buffer. */
static inline const char *pt_stream_place(const FILE *f)
{
    return f->_flags & PT_IO_PUTTING ? f->_IO_write_ptr : f->_IO_read_ptr;
}

static inline int pt_stream_is_mine(const struct pt_thread *t, const FILE *f,
                                    const struct pt_stream_note *note)
{
    return atomic_load_explicit(&note->owner, memory_order_acquire) == (uintptr_t)t &&
           note->file == f;
}

/* pt_fds_class() of a stream that is about to be used. */
static inline int pt_stream_enter(struct pt_thread *t, FILE *f, struct pt_pass *pass)
{
    int fd = pt_stream_fd(f);
    int cls = pt_fds_class(t, fd, pass);
    if (cls == PT_CLASS_IO) {
        struct pt_stream_note *note = pt_stream_note_of(fd);
        if (PT_LIKELY(note != NULL) && (PT_UNLIKELY(!pt_stream_is_mine(t, f, note)) ||
                                        PT_UNLIKELY(pt_stream_place(f) != note->mark)))
            pt_stream_look(t, f, note);
    }
    return cls;
}

/*
 * Will a character only go through the buffer of a stream that this thread alone uses?  Then
 * it is like an inlined one: a compiler writes millions of them.
 */
static inline int pt_stream_takes_char(const struct pt_thread *t, const FILE *f)
{
    const struct pt_stream_note *note = pt_stream_note_of(pt_stream_fd(f));
    return note && pt_stream_is_mine(t, f, note) && note->mark && f->_flags & PT_IO_PUTTING &&
           f->_IO_write_ptr < f->_IO_write_end;
}

static inline int pt_stream_has_char(const struct pt_thread *t, const FILE *f)
{
    const struct pt_stream_note *note = pt_stream_note_of(pt_stream_fd(f));
    return note && pt_stream_is_mine(t, f, note) && note->mark && !(f->_flags & PT_IO_PUTTING) &&
           f->_IO_read_ptr < f->_IO_read_end;
}

/* The call has returned. */
static inline void pt_stream_leave(const struct pt_thread *t, const FILE *f)
{
    struct pt_stream_note *note = pt_stream_note_of(pt_stream_fd(f));
    if (note && pt_stream_is_mine(t, f, note))
        note->mark = pt_stream_place(f);
}

/*
 * A call on a stream, one way for all of them, out of line: a compiler makes thousands of
 * different ones between two that matter, and what is shared stays in the cache.  The class of
 * the call, or -1: it is not traced, and pt_stream_leave() has to do.
 */
int pt_stream_begin(FILE *f, uint16_t op, struct pt_pass *pass);
/* It has returned; the row's fields, numbers all, in their order. */
void pt_stream_end(const FILE *f, struct pt_pass *pass, uint16_t op, int64_t ret, int err,
                   unsigned shape, const int64_t *fields);

/*
 * The short way for a few bytes that only go into the buffer of a stream that this thread alone
 * uses: they are put there as putc_unlocked does it, inlined, and recorded.  The real function,
 * which would do no more, is not called, so it has to be libc's, and the stream one that needs no
 * lock. 0: the call has to go the long way.
 */
int pt_stream_put(FILE *f, uint16_t op, const void *bytes, int64_t n);

/* The same for the rest of a line, or n - 1 bytes of it, if they are in the buffer. */
int pt_stream_line(FILE *f, uint16_t op, char *s, int64_t n);

/* libc's own sign that there is but one thread. */
#define PT_IO_NEEDS_LOCK 0x80 /* in _flags2 */

static inline int pt_stream_needs_lock(const FILE *f)
{
#if __GLIBC_PREREQ(2, 28)
    return f->_flags2 & PT_IO_NEEDS_LOCK;
#else
    (void)f;
    return 1;
#endif
}

/* A row's shape: how many words its fields take but for the text of names, and whether LEN is
 * there. */
#define PT_SHAPE_LEN          0x101
#define PT_SHAPE_FD_LEN       (1 + PT_SHAPE_LEN)
#define PT_SHAPE_WORDS(shape) ((shape)&0xff)

/* The same for a call on all streams. */
void pt_streams_enter(struct pt_thread *t);
void pt_streams_leave(const struct pt_thread *t);

/* The stream is about to be closed: its last inlined calls, and its note is taken back. */
void pt_stream_close(FILE *f);

/* The program ends: the last inlined calls of all streams that are still open. */
void pt_streams_end(void);

/* The flags that an open with fopen's mode would have. */
int pt_fopen_flags(const char *mode);

#endif
