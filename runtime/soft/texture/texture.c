/*
 * The table of texture and surface objects: chunks of places, which are used again in the order in
 * which they became free.
 */
#include "texture.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    INDEX_BITS = 20, /* as on a GPU, whose table has a million places */
    PLACES = 1 << INDEX_BITS,
    CHUNK = 1024,
    CHUNKS = PLACES / CHUNK,
    REST = 256 /* this many places stay free before one is reused */
};

struct texture_place {
    struct soft_texture texture;
    _Atomic uint64_t handle; /* the latest one, live or not; 0 while the texture changes */
    _Atomic uint64_t last;   /* the launch that was queued last when it was destroyed */
    uint32_t next_free;
};

static struct {
    pthread_mutex_t lock;
    struct texture_place *_Atomic chunks[CHUNKS];
    uint32_t count; /* places ever used; 0 is none */
    uint32_t first_free, last_free, free;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER, .count = 1};

static struct texture_place *place_at(uint32_t index) {
    struct texture_place *chunk =
        atomic_load_explicit(&table.chunks[index / CHUNK], memory_order_acquire);
    return chunk != NULL ? &chunk[index % CHUNK] : NULL;
}

/* A place for one more; 0: there is none. The caller holds the lock. */
static uint32_t take_place(void) {
    if (table.free > REST || (table.free > 0 && table.count == PLACES)) {
        uint32_t index = table.first_free;
        table.first_free = place_at(index)->next_free;
        table.free--;
        return index;
    }
    if (table.count == PLACES) return 0;
    if (place_at(table.count) == NULL) {
        struct texture_place *chunk = calloc(CHUNK, sizeof *chunk);
        if (chunk == NULL) return 0;
        atomic_store_explicit(&table.chunks[table.count / CHUNK], chunk, memory_order_release);
    }
    return table.count++;
}

/* All but the handle, which tells others whether the rest is there. */
static void texture_put(struct texture_place *place, const struct soft_texture *texture,
                        uint64_t handle) {
    atomic_store(&place->handle, 0);
    atomic_store(&place->texture.handle, 0);
    struct soft_texture copy = *texture;
    atomic_init(&copy.handle, 0);
    place->texture = copy;
    place->handle = handle;
    atomic_store_explicit(&place->texture.handle, handle, memory_order_release);
}

static uint32_t texture_half(uint32_t size, unsigned level) {
    return size >> level > 0 ? size >> level : 1;
}

struct soft_texels soft_texture_level(const struct soft_texture *texture, unsigned level) {
    struct soft_texels texels = texture->texels;
    if (level == 0) return texels;
    texels.address = texture->level_addresses[level];
    texels.width = texture_half(texels.width, level);
    if (texels.dimensions > 1) texels.height = texture_half(texels.height, level);
    if (texels.dimensions > 2) texels.layers = texture_half(texels.layers, level);
    texels.pitch = (uint64_t)texels.width * soft_texel_bytes(&texels);
    texels.slice = texels.pitch * texels.height;
    return texels;
}

uint64_t soft_texture_add(const struct soft_texture *texture) {
    uint64_t handle = 0;
    pthread_mutex_lock(&table.lock);
    uint32_t index = take_place();
    if (index != 0) {
        struct texture_place *place = place_at(index);
        handle = ((place->handle >> INDEX_BITS) + (place->handle != 0)) << INDEX_BITS | index;
        texture_put(place, texture, handle);
    }
    pthread_mutex_unlock(&table.lock);
    return handle;
}

static struct texture_place *texture_live(uint64_t handle) {
    struct texture_place *place = place_at((uint32_t)handle & (PLACES - 1));
    if (place == NULL || handle == 0) return NULL;
    return atomic_load_explicit(&place->texture.handle, memory_order_acquire) == handle ? place
                                                                                        : NULL;
}

bool soft_texture_change(uint64_t handle, const struct soft_texture *texture) {
    pthread_mutex_lock(&table.lock);
    struct texture_place *place = texture_live(handle);
    if (place != NULL) texture_put(place, texture, handle);
    pthread_mutex_unlock(&table.lock);
    return place != NULL;
}

bool soft_texture_copy(uint64_t handle, struct soft_texture *texture) {
    pthread_mutex_lock(&table.lock);
    const struct texture_place *place = texture_live(handle);
    if (place != NULL) *texture = place->texture;
    pthread_mutex_unlock(&table.lock);
    return place != NULL;
}

/* The caller holds the lock. */
static void remove_place(struct texture_place *place, uint64_t last) {
    uint32_t index = (uint32_t)place->handle & (PLACES - 1);
    atomic_store(&place->last, last);
    atomic_store(&place->texture.handle, 0);
    if (table.free > 0) {
        place_at(table.last_free)->next_free = index;
    } else {
        table.first_free = index;
    }
    table.last_free = index;
    table.free++;
}

bool soft_texture_remove(uint64_t handle, uint64_t last) {
    pthread_mutex_lock(&table.lock);
    struct texture_place *place = texture_live(handle);
    if (place != NULL) remove_place(place, last);
    pthread_mutex_unlock(&table.lock);
    return place != NULL;
}

void soft_texture_remove_all(unsigned slot) {
    pthread_mutex_lock(&table.lock);
    for (uint32_t index = 1; index < table.count; index++) {
        struct texture_place *place = place_at(index);
        if (atomic_load(&place->texture.handle) != 0 && place->texture.slot == slot) {
            remove_place(place, 0);
        }
    }
    pthread_mutex_unlock(&table.lock);
}

const struct soft_texture *soft_texture_find(uint64_t handle, uint64_t launch) {
    struct texture_place *place = texture_live(handle);
    if (place != NULL) return &place->texture;
    place = place_at((uint32_t)handle & (PLACES - 1));
    if (place == NULL || handle == 0 || atomic_load(&place->handle) != handle) return NULL;
    return launch <= atomic_load(&place->last) ? &place->texture : NULL;
}

bool soft_texture_was(uint64_t handle) {
    pthread_mutex_lock(&table.lock);
    uint32_t index = (uint32_t)handle & (PLACES - 1);
    const struct texture_place *place = index != 0 && index < table.count ? place_at(index) : NULL;
    bool was = place != NULL && handle >> INDEX_BITS <= place->handle >> INDEX_BITS &&
               atomic_load(&place->texture.handle) != handle;
    pthread_mutex_unlock(&table.lock);
    return was;
}

void soft_texture_each(void (*visit)(const struct soft_texture *texture, void *data), void *data) {
    pthread_mutex_lock(&table.lock);
    for (uint32_t index = 1; index < table.count; index++) {
        const struct texture_place *place = place_at(index);
        if (atomic_load(&place->texture.handle) != 0) visit(&place->texture, data);
    }
    pthread_mutex_unlock(&table.lock);
}
