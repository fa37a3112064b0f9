#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "hdf5store/map.h"

static uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdULL;
    x ^= x >> 33;
    return x;
}

static size_t map_slot(const struct map *m, uint64_t key)
{
    size_t i = mix(key) & (m->size - 1);

    while (m->full[i] && m->keys[i] != key)
        i = (i + 1) & (m->size - 1);
    return i;
}

static void set_slot(struct map *m, uint64_t key, uint64_t value)
{
    size_t i = map_slot(m, key);

    m->n += !m->full[i];
    m->full[i] = 1;
    m->keys[i] = key;
    m->values[i] = value;
}

static int map_grow(struct map *m)
{
    struct map to = {.size = m->size ? m->size * 2 : 64};

    to.keys = malloc(to.size * sizeof(*to.keys));
    to.values = malloc(to.size * sizeof(*to.values));
    to.full = calloc(to.size, 1);
    if (!to.keys || !to.values || !to.full) {
        map_free(&to);
        return -1;
    }
    for (size_t i = 0; i < m->size; i++)
        if (m->full[i])
            set_slot(&to, m->keys[i], m->values[i]);
    map_free(m);
    *m = to;
    return 0;
}

int map_put(struct map *m, uint64_t key, uint64_t value)
{
    if (m->n * 2 >= m->size && map_grow(m) < 0)
        return -1;
    set_slot(m, key, value);
    return 0;
}

uint64_t *map_get(const struct map *m, uint64_t key)
{
    size_t i;

    if (!m->size)
        return NULL;
    i = map_slot(m, key);
    return m->full[i] ? &m->values[i] : NULL;
}

void map_free(struct map *m)
{
    free(m->keys);
    free(m->values);
    free(m->full);
    *m = (struct map){0};
}

static uint64_t hash_text(const char *text)
{
    uint64_t h = 14695981039346656037ULL;

    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211ULL;
    return mix(h);
}

static size_t names_slot(const struct names *names, const char *text)
{
    size_t i = hash_text(text) & (names->nslots - 1);

    while (names->slots[i] && strcmp(names->text[names->slots[i] - 1], text))
        i = (i + 1) & (names->nslots - 1);
    return i;
}

static int names_grow(struct names *names)
{
    uint32_t size = names->size ? names->size * 2 : 64;
    char **text = realloc(names->text, size * sizeof(*text));
    uint32_t *slots;

    if (!text)
        return -1;
    names->text = text;
    slots = calloc(size * (size_t)2, sizeof(*slots));
    if (!slots)
        return -1;
    free(names->slots);
    names->slots = slots;
    names->nslots = size * (size_t)2;
    names->size = size;
    for (uint32_t i = 0; i < names->n; i++)
        slots[names_slot(names, text[i])] = i + 1;
    return 0;
}

uint32_t names_add(struct names *names, const char *text)
{
    size_t slot;
    char *copy;

    if (names->n == names->size && (names->n > UINT32_MAX / 4 || names_grow(names) < 0))
        return NAMES_NONE;
    slot = names_slot(names, text);
    if (names->slots[slot])
        return names->slots[slot] - 1;
    copy = strdup(text);
    if (!copy)
        return NAMES_NONE;
    names->text[names->n] = copy;
    names->slots[slot] = ++names->n;
    return names->n - 1;
}

uint32_t names_find(const struct names *names, const char *text)
{
    return names->nslots ? names->slots[names_slot(names, text)] - 1 : NAMES_NONE;
}

const char *names_text(const struct names *names, uint32_t number)
{
    return number < names->n ? names->text[number] : NULL;
}

void names_free(struct names *names)
{
    for (uint32_t i = 0; i < names->n; i++)
        free(names->text[i]);
    free(names->text);
    free(names->slots);
    *names = (struct names){0};
}
