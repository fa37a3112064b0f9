/* A small on-disk octree database; see etree.h. */
#define _GNU_SOURCE
#include "etree.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC UINT32_C(0x72747465)

enum kind { SUPER = 1, INNER, LEAF };
enum { PER_LEAF = 63, TOP_SHIFT = 3 * (ETREE_LEVELS - 1) };

struct page {
    uint32_t magic;
    uint32_t number; /* its own page number: finds pages written to the wrong place */
    uint32_t kind;
    uint32_t used;     /* LEAF: octants; SUPER: regions */
    uint32_t pages;    /* SUPER: pages per region */
    uint32_t child[8]; /* INNER: page numbers */
    uint32_t pad[3];
    struct octant octants[PER_LEAF]; /* LEAF */
};

_Static_assert(sizeof(struct page) == ETREE_PAGE, "a page has a fixed size");

static void page_write(const struct file *f, const struct page *p)
{
    file_pwrite(f, p, ETREE_PAGE, (off_t)p->number * ETREE_PAGE);
}

static void page_read(const struct file *f, struct page *p, uint32_t number)
{
    file_pread(f, p, ETREE_PAGE, (off_t)number * ETREE_PAGE);
    if (p->magic != MAGIC || p->number != number || (p->kind == LEAF && p->used > PER_LEAF))
        ex_die("cannot read '%s': page %u is damaged", f->path, (unsigned)number);
}

static void page_init(struct page *p, uint32_t number, enum kind kind)
{
    memset(p, 0, sizeof(*p));
    p->magic = MAGIC;
    p->number = number;
    p->kind = kind;
}

static unsigned digit(uint64_t code, unsigned level)
{
    return (unsigned)(code >> (TOP_SHIFT - 3 * level)) & 7;
}

void etree_create(struct file *f, uint32_t regions, uint32_t pages)
{
    struct page *p = ex_buffer(sizeof(*p));

    page_init(p, 0, SUPER);
    p->used = regions;
    p->pages = pages;
    file_open(f, O_WRONLY | O_CREAT | O_TRUNC);
    page_write(f, p);
    file_close(f);
    free(p);
}

void etree_open(struct etree *t, int flags, uint32_t region)
{
    struct page *p;

    for (int i = 0; i < 9; i++)
        t->buf[i] = ex_buffer(ETREE_PAGE);
    p = t->buf[0];
    file_open(&t->file, O_RDWR | flags);
    page_read(&t->file, p, 0);
    if (p->kind != SUPER || region >= p->used)
        ex_die("cannot use '%s': it has no region %u", t->file.path, (unsigned)region);
    t->pages = p->pages;
    t->root = 1 + region * p->pages;
    t->used = 1;
    page_init(p, t->root, LEAF);
    page_write(&t->file, p);
}

/* Turn the full leaf 'p' into an inner page with eight leaves. The children are written first. */
static void split(struct etree *t, struct page *p, unsigned level)
{
    struct page *child;

    for (int i = 0; i < 8; i++)
        page_init(t->buf[1 + i], t->root + t->used + (uint32_t)i, LEAF);
    for (uint32_t i = 0; i < p->used; i++) {
        child = t->buf[1 + digit(p->octants[i].code, level)];
        child->octants[child->used++] = p->octants[i];
    }
    page_init(p, p->number, INNER);
    for (int i = 0; i < 8; i++) {
        child = t->buf[1 + i];
        p->child[i] = child->number;
        page_write(&t->file, child);
    }
    page_write(&t->file, p);
    t->used += 8;
}

/* Read the pages from the root down to the leaf for 'code'. Returns the leaf's level. */
static unsigned descend(struct etree *t, uint64_t code)
{
    struct page *p = t->buf[0];
    unsigned level = 0;

    page_read(&t->file, p, t->root);
    while (p->kind == INNER)
        page_read(&t->file, p, p->child[digit(code, level++)]);
    return level;
}

static struct octant *search(struct page *p, uint64_t code)
{
    for (uint32_t i = 0; i < p->used; i++)
        if (p->octants[i].code == code)
            return &p->octants[i];
    return NULL;
}

void etree_update(struct etree *t, uint64_t code, double value)
{
    struct page *p = t->buf[0];
    unsigned level = descend(t, code);
    struct octant *o = search(p, code);

    while (!o && p->used == PER_LEAF) {
        if (level >= ETREE_LEVELS || t->used + 8 > t->pages) {
            /* The region is full: the mesh gets no finer, a neighbour takes the value. */
            o = &p->octants[code % PER_LEAF];
            break;
        }
        split(t, p, level);
        level = descend(t, code);
    }
    if (!o) {
        o = &p->octants[p->used++];
        *o = (struct octant){.code = code};
    }
    for (int i = 0; i < 7; i++)
        o->value[i] += value * (i + 1);
    page_write(&t->file, p);
}

bool etree_find(struct etree *t, uint64_t code)
{
    descend(t, code);
    return search(t->buf[0], code) != NULL;
}

/* Append the octants below page 'number' to the list, which has room for all pages. */
static void collect(struct etree *t, uint32_t number, struct octant *list, size_t *n)
{
    struct page *p = t->buf[0];
    uint32_t child[8];

    page_read(&t->file, p, number);
    if (p->kind == LEAF) {
        memcpy(list + *n, p->octants, p->used * sizeof(*list));
        *n += p->used;
        return;
    }
    memcpy(child, p->child, sizeof(child)); /* the buffer is used again below */
    for (int i = 0; i < 8; i++)
        collect(t, child[i], list, n);
}

struct octant *etree_collect(struct etree *t, size_t *n)
{
    struct octant *list = ex_buffer((size_t)t->used * PER_LEAF * sizeof(*list));

    *n = 0;
    collect(t, t->root, list, n);
    return list;
}

void etree_close(struct etree *t)
{
    file_close(&t->file);
    for (int i = 0; i < 9; i++)
        free(t->buf[i]);
}
