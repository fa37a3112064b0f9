/*
 * The real functions, behind ours in the search order.
 *
 * dlsym(RTLD_NEXT) would find them, but it takes a microsecond a name, locks, and may allocate,
 * and an allocator's first act may be a call that we wrap.  So the symbol tables of the objects
 * behind us are read here, up to libc's: these are there from the beginning and stay to the end.
 * What is not found that way, or not for certain, is left to dlsym.
 */
#include "config.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>

#include "preload/tracer.h"

struct object {
    ElfW(Addr) base;
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Half) * versions; /* NULL: none */
    const uint32_t *hash;        /* the GNU linker's table */
    const char *name;            /* "": none */
};

#define HIDDEN 0x8000 /* of a version: not the one that a plain name means */

enum { UNKNOWN, KNOWN };

/* The first object behind us, and libc; NULL: they cannot be read. */
static PT_NEAR const struct link_map *first, *libc;
static PT_NEAR _Atomic int state; /* UNKNOWN, KNOWN; who comes too early finds out the same */

/* ---- the objects ------------------------------------------------------------------------ */

/* An address in a dynamic section; the loader has relocated it, but for a few objects. */
static const void *address(const struct link_map *map, ElfW(Addr) p)
{
    return (const void *)(p < map->l_addr ? p + map->l_addr : p);
}

static int read_object(const struct link_map *map, struct object *o)
{
    ElfW(Xword) name = 0;
    *o = (struct object){.base = map->l_addr};
    for (const ElfW(Dyn) *d = map->l_ld; d && d->d_tag != DT_NULL; d++) {
        const void *at = address(map, d->d_un.d_ptr);
        if (d->d_tag == DT_SYMTAB)
            o->symbols = at;
        else if (d->d_tag == DT_STRTAB)
            o->strings = at;
        else if (d->d_tag == DT_VERSYM)
            o->versions = at;
        else if (d->d_tag == DT_GNU_HASH)
            o->hash = at;
        else if (d->d_tag == DT_SONAME)
            name = d->d_un.d_val;
    }
    if (!o->symbols || !o->strings || !o->hash || !o->hash[0])
        return -1;
    o->name = name ? o->strings + name : "";
    return 0;
}

#pragma weak _r_debug /* the loader's; it is always there and needs not be asked for */

static const struct link_map *find_ourselves(void)
{
    const struct link_map *map = &_r_debug ? _r_debug.r_map : NULL;
    while (map && map->l_ld != _DYNAMIC)
        map = map->l_next;
    return map;
}

int pt_real_is_in_front(void)
{
    static const char libc_name[] = "/libc.so.6";
    const struct link_map *ours = find_ourselves();
    for (const struct link_map *map = ours ? _r_debug.r_map : NULL; map != ours;
         map = map->l_next) {
        const char *base = map->l_name ? strrchr(map->l_name, '/') : NULL;
        if (base && !strcmp(base, libc_name))
            return 1;
    }
    return 0;
}

#define KEPT_OBJECTS 8

static PT_NEAR struct object kept[KEPT_OBJECTS]; /* what the first ones behind us are */

static void find_objects(void)
{
    const struct link_map *map = find_ourselves(), *found = NULL;
    struct object o;
    first = map ? map->l_next : NULL;
    map = first;
    for (int i = 0; map && !found && !read_object(map, &o); i++, map = map->l_next) {
        if (i < KEPT_OBJECTS)
            kept[i] = o;
        if (!strcmp(o.name, "libc.so.6"))
            found = map;
    }
    libc = found;
    atomic_store_explicit(&state, KNOWN, memory_order_release);
}

/* ---- symbols ---------------------------------------------------------------------------- */

static uint32_t hash_of(const char *name)
{
    uint32_t h = 5381;
    for (; *name; name++)
        h = h * 33 + (unsigned char)*name;
    return h;
}

/* The table: its head, a Bloom filter, the first symbol of each bucket, the symbols' hashes. */
static const ElfW(Sym) * find_in(const struct object *o, const char *name, uint32_t hash)
{
    enum { NBUCKETS, FIRST, NBLOOM, SHIFT, HEAD };
    const unsigned bits = sizeof(ElfW(Addr)) * 8;
    const uint32_t *head = o->hash;
    const ElfW(Addr) *bloom = (const ElfW(Addr) *)(head + HEAD);
    const uint32_t *buckets = (const uint32_t *)(bloom + head[NBLOOM]);
    const uint32_t *chains = buckets + head[NBUCKETS];
    ElfW(Addr) both = (ElfW(Addr))1 << hash % bits | (ElfW(Addr))1 << (hash >> head[SHIFT]) % bits;
    if ((bloom[hash / bits % head[NBLOOM]] & both) != both)
        return NULL;
    uint32_t i = buckets[hash % head[NBUCKETS]];
    if (i < head[FIRST])
        return NULL;
    for (;; i++) {
        uint32_t entry = chains[i - head[FIRST]]; /* its lowest bit ends the chain */
        const ElfW(Sym) *symbol = &o->symbols[i];
        if ((entry | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF && symbol->st_value &&
            !(o->versions && o->versions[i] & HIDDEN) &&
            !strcmp(o->strings + symbol->st_name, name))
            return symbol;
        if (entry & 1)
            return NULL;
    }
}

/* The first one behind us that has the function, up to libc, and where; NULL: there is none. */
static const struct link_map *find_first(const char *name, void **at)
{
    uint32_t hash = hash_of(name);
    struct object o;
    *at = NULL;
    if (atomic_load_explicit(&state, memory_order_acquire) != KNOWN)
        find_objects();
    const struct link_map *map = libc ? first : NULL;
    for (int i = 0; map; i++, map = map->l_next) {
        int unread = i >= KEPT_OBJECTS && read_object(map, &o);
        const struct object *object = i < KEPT_OBJECTS ? &kept[i] : &o;
        const ElfW(Sym) *symbol = unread ? NULL : find_in(object, name, hash);
        if (symbol && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC)
            *at = (void *)(object->base + symbol->st_value);
        if (symbol || map == libc)
            return symbol ? map : NULL;
    }
    return NULL;
}

/* NULL: it is not there, or its address is the loader's to choose. */
static void *find(const char *name)
{
    void *at;
    find_first(name, &at);
    return at;
}

enum pt_whose pt_real_whose(const char *name)
{
    void *at;
    const struct link_map *map = find_first(name, &at);
    return at && map == libc ? PT_LIBCS : PT_ANOTHERS;
}

/* Somebody may have put libc in front of us; what is not there, either, is found as our own. */
static void *find_in_front(const char *name)
{
    Dl_info here, there;
    void *real = dlsym(RTLD_DEFAULT, name);
    int known = real && dladdr(real, &there) && dladdr((void *)_DYNAMIC, &here);
    return known && there.dli_fbase != here.dli_fbase ? real : NULL;
}

/*
 * The condition variables of old programs have another layout: ours are the newer.  Calls on
 * them that came later have only one.
 */
void *pt_real(const char *name)
{
    void *real = find(name);
#if defined(__x86_64__)
    if (!real && !strncmp(name, "pthread_cond_", 13))
        real = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
#endif
    if (!real)
        real = dlsym(RTLD_NEXT, name);
    return real ? real : find_in_front(name);
}

static int find_libmpi(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    const char *base = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    if (!base || strncmp(base, "/libmpi.so", 10))
        return 0;
    *(const char **)found = info->dlpi_name;
    return 1;
}

/* A program may have loaded libmpi with dlopen, out of RTLD_NEXT's sight. */
void *pt_real_mpi(const char *name)
{
    void *real = dlsym(RTLD_NEXT, name);
    const char *libmpi = NULL;
    if (!real && dl_iterate_phdr(find_libmpi, &libmpi)) {
        void *lib = dlopen(libmpi, RTLD_LAZY | RTLD_NOLOAD);
        real = lib ? dlsym(lib, name) : NULL;
    }
    return real;
}
