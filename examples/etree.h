/*
 * A small on-disk octree database, in the spirit of the etree library that Quake builds upon.
 *
 * The file consists of pages of 4 KiB. Page 0 describes the database; then each region (one per
 * rank) has the same number of pages, the first of which is the root of the region's octree. A
 * leaf page holds octants; a leaf that is full is split into eight, one for each octant of space.
 * Each operation reads the pages from the root to the leaf and writes back what it changed: there
 * is no page cache, so what the file sees is what the tree does. Regions are independent
 * of each other; ranks that keep to their own regions need no locks.
 */
#ifndef EXAMPLES_ETREE_H
#define EXAMPLES_ETREE_H

#include "common.h"

enum { ETREE_PAGE = 4096, ETREE_LEVELS = 10 };

/* One octant of the mesh; its code has three bits a level, the topmost level first. */
struct octant {
    uint64_t code;
    double value[7];
};

struct etree {
    struct file file;
    uint32_t root;  /* first page of this region */
    uint32_t pages; /* pages of this region */
    uint32_t used;  /* pages of it in use; not stored, because each run builds its tree anew */
    void *buf[9];   /* aligned pages: the current one and the eight that a split makes */
};

/* Make the file and write page 0. Done by one rank, before any etree_open(). */
void etree_create(struct file *f, uint32_t regions, uint32_t pages);

/* Open with the extra open(2) flags 'flags', check page 0, and write an empty root for 'region'. */
void etree_open(struct etree *t, int flags, uint32_t region);

/* Add 'value' to the octant with this code, and make the octant first if there is none. */
void etree_update(struct etree *t, uint64_t code, double value);

/* Is there an octant with this code? */
bool etree_find(struct etree *t, uint64_t code);

/* Read all leaves in the order of space. Returns the octants, for free(), and their number. */
struct octant *etree_collect(struct etree *t, size_t *n);

void etree_close(struct etree *t);

#endif
