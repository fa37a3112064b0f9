/*
 * What wrappers that are written out by hand have in common.
 */
#ifndef PT_HAND_H
#define PT_HAND_H

#include "preload/poll.h"
#include "preload/record.h"

/* REAL(name)(...) calls the real function; DECLARE(name) has to stand before. */
#define REAL(name)         ((__typeof__(&name))pt_real_cached(&real_##name, #name))
#define DECLARE(name)      static PT_FAR void *_Atomic real_##name
#define DECLARE_NEAR(name) static PT_NEAR void *_Atomic real_##name /* small programs call it */

static inline void *pt_real_cached(void *_Atomic *pointer, const char *name)
{
    void *p = atomic_load_explicit(pointer, memory_order_relaxed);
    if (PT_UNLIKELY(!p)) {
        p = pt_real(name);
        atomic_store_explicit(pointer, p, memory_order_relaxed);
    }
    return p;
}

/* The class of a call on a name, -1: it is not traced. */
static inline int pt_class_of_name(const char *path)
{
    return pt_filter_path(path, pt_string_length(path)) ? PT_CLASS_IO : -1;
}

/* Begins a pass of that class, or returns 0 if cls < 0: the call is not traced. */
static inline int pass_begin(struct pt_thread *t, struct pt_pass *pass, int cls, uint16_t op)
{
    if (cls < 0)
        return 0;
    pass->cls = (enum pt_class)cls;
    pt_pass_begin(t, pass, op, pass->cls == PT_CLASS_SYNC);
    return 1;
}

/* Ends it with numbers only, in the order of the row's fields. */
static inline void pass_end(struct pt_thread *t, struct pt_pass *pass, uint16_t op, int64_t ret,
                            int err, unsigned n, const int64_t *fields)
{
    int vain = err && pt_ask_in_vain(t, pass->cls, err);
    uint64_t *w =
        vain ? pt_poll_failed(t, pass, op, n, ret, err) : pt_pass_end(t, pass, op, n, ret, err);
    for (unsigned i = 0; w && i < n; i++)
        w[i] = (uint64_t)fields[i];
    if (vain) {
        pt_poll_kept(t);
        return;
    }
    pt_pass_close(t, pass, op, w);
}

/* Ends an open: PATH FLAGS MODE IDENT. */
static inline void pass_end_open(struct pt_thread *t, struct pt_pass *pass, uint16_t op, int64_t fd,
                                 int err, int64_t dir, const char *path, int64_t flags,
                                 int64_t mode)
{
    size_t n = pt_string_length(path);
    uint64_t *w = pt_pass_end(t, pass, op, 7 + pt_string_words(n), fd, err);
    if (w) {
        *w++ = (uint64_t)dir;
        w = pt_put_string(w, path, n);
        *w++ = (uint64_t)flags;
        *w++ = (uint64_t)mode;
        pt_put_ident(w, pass);
    }
    pt_pass_close(t, pass, op, w);
}

#define FIELDS(...)                                                 \
    sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]) \
    {                                                               \
        __VA_ARGS__                                                 \
    }

#endif
