#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "replay/mappings.h"

struct mapping {
    uint32_t process;
    uint64_t addr;
    size_t len;
    char *live;
};

struct mappings {
    pthread_mutex_t lock;
    size_t n, size;
    struct mapping *list;
};

struct mappings *mappings_create(void)
{
    struct mappings *m = calloc(1, sizeof(*m));

    if (m)
        pthread_mutex_init(&m->lock, NULL);
    return m;
}

void mappings_destroy(struct mappings *m)
{
    int saved = errno;

    if (!m)
        return;
    for (size_t i = 0; i < m->n; i++)
        munmap(m->list[i].live, m->list[i].len);
    free(m->list);
    pthread_mutex_destroy(&m->lock);
    free(m);
    errno = saved;
}

static int grow(struct mappings *m)
{
    size_t size = m->size ? 2 * m->size : 64;
    struct mapping *list = realloc(m->list, size * sizeof(*list));

    if (!list)
        return -1;
    m->list = list;
    m->size = size;
    return 0;
}

int mappings_add(struct mappings *m, uint32_t process, uint64_t addr, size_t len, void *live)
{
    int rc = 0;

    pthread_mutex_lock(&m->lock);
    if (m->n == m->size)
        rc = grow(m);
    if (rc == 0)
        m->list[m->n++] = (struct mapping){process, addr, len, live};
    pthread_mutex_unlock(&m->lock);
    return rc;
}

/* The newest comes first: addresses are used again. */
static struct mapping *find(struct mappings *m, uint32_t process, uint64_t addr)
{
    for (size_t i = m->n; i-- > 0;) {
        struct mapping *p = &m->list[i];

        if (p->process == process && addr >= p->addr && addr - p->addr < p->len)
            return p;
    }
    return NULL;
}

void *mappings_find(struct mappings *m, uint32_t process, uint64_t addr, size_t *len)
{
    const struct mapping *p;
    void *live = NULL;

    pthread_mutex_lock(&m->lock);
    p = find(m, process, addr);
    if (p) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE), into = (size_t)(addr - p->addr);

        into -= into % page;
        live = p->live + into;
        *len = p->len - into;
    }
    pthread_mutex_unlock(&m->lock);
    return live;
}

/* Takes [from, to) of the trace's addresses out of list[i]; what is left on both sides stays. */
static int cut(struct mappings *m, size_t i, uint64_t from, uint64_t to)
{
    struct mapping whole = m->list[i], behind = whole;
    uint64_t end = whole.addr + whole.len;

    if (from < whole.addr)
        from = whole.addr;
    if (to > end)
        to = end;
    if (from > whole.addr && to < end && m->n == m->size && grow(m))
        return -1;
    behind.addr = to;
    behind.len = (size_t)(end - to);
    behind.live = whole.live + (to - whole.addr);
    if (from > whole.addr) {
        m->list[i].len = (size_t)(from - whole.addr);
        if (behind.len)
            m->list[m->n++] = behind;
    } else if (behind.len) {
        m->list[i] = behind;
    } else {
        memmove(&m->list[i], &m->list[i + 1], (m->n - i - 1) * sizeof(whole));
        m->n--;
    }
    return munmap(whole.live + (from - whole.addr), (size_t)(to - from));
}

int mappings_cut(struct mappings *m, uint32_t process, uint64_t addr, size_t len)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), to = addr + (len + page - 1) / page * page;
    int rc = 0;

    pthread_mutex_lock(&m->lock);
    for (size_t i = m->n; i-- > 0;) {
        const struct mapping *p = &m->list[i];

        if (p->process == process && addr < p->addr + p->len && p->addr < to)
            rc |= cut(m, i, addr, to);
    }
    pthread_mutex_unlock(&m->lock);
    return rc;
}
