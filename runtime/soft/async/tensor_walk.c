/*
 * The rows of a box. Source: PTX ISA 9.0, sections 5.5.3 (tiled mode) and 5.5.4 (im2col mode).
 *
 * In im2col mode the filter moves through the bounding box, dimension by dimension from the second
 * on, and then through that of the next image, until it has the requested number of pixels. Each is
 * read at the filter's position plus the offsets.
 */
#include "tensor_walk.h"

void soft_tensor_walk_begin(struct soft_tensor_walk *walk, const struct soft_tensor_map *map,
                            const struct soft_box_place *place, bool writes) {
    *walk = (struct soft_tensor_walk){
        .map = map, .place = place, .whole_units = writes && !map->im2col && map->interleave == 0};
    walk->row_bytes = soft_tensor_row_bytes(map);
    walk->left = (uint32_t)soft_tensor_box_rows(map);
    for (unsigned i = 0; i < map->rank; i++) walk->base[i] = place->begin[i];
}

/* The part of the row inside the tensor's first dimension, regardless of the others. A stored box
 * begins and ends at a unit, so it contains the whole unit in which the tensor's row ends. */
static void find_part(struct soft_tensor_walk *walk) {
    const struct soft_tensor_map *map = walk->map;
    if (map->interleave != 0) { /* a slice is entirely inside or outside */
        walk->bytes = walk->row_bytes;
        return;
    }
    int64_t size = (int64_t)map->last[0] + 1, first = walk->place->begin[0];
    int64_t from = first < 0 ? -first : 0;
    int64_t end = first + map->box[0] > size ? size - first : map->box[0];
    if (end <= from) return;
    walk->address += (uint64_t)(first + from) * map->element_bytes;
    walk->from = (unsigned)from * map->element_bytes;
    walk->bytes = (unsigned)(end - from) * map->element_bytes;
    if (walk->whole_units) walk->behind = -walk->bytes % SOFT_TENSOR_CHUNK;
    walk->bytes += walk->behind;
}

/* The row's coordinate in a dimension after the first. */
static int64_t place_along(const struct soft_tensor_walk *walk, unsigned i) {
    const struct soft_tensor_map *map = walk->map;
    if (!map->im2col) return walk->base[i] + (int64_t)walk->index[i] * map->steps[i];
    unsigned k = i - soft_tensor_first(map);
    return walk->base[i] + (k + 2 < map->rank ? walk->place->offsets[k] : 0);
}

static void step_box(struct soft_tensor_walk *walk) {
    const struct soft_tensor_map *map = walk->map;
    for (unsigned i = soft_tensor_first(map); i < map->rank; i++) {
        if (++walk->index[i] < soft_tensor_taken(map, i)) return;
        walk->index[i] = 0;
    }
}

static void step_filter(struct soft_tensor_walk *walk) {
    const struct soft_tensor_map *map = walk->map;
    for (unsigned k = 0; k + 2 < map->rank; k++) {
        unsigned i = k + soft_tensor_first(map);
        walk->base[i] += map->steps[i];
        if (walk->base[i] <= (int64_t)map->last[i] + map->upper[k]) return;
        walk->base[i] = map->lower[k];
    }
    walk->base[map->rank - 1]++;
}

bool soft_tensor_walk_next(struct soft_tensor_walk *walk) {
    const struct soft_tensor_map *map = walk->map;
    if (walk->left == 0) return false;
    walk->left--;
    walk->at = walk->next;
    walk->next += soft_tensor_row_pitch(map);
    walk->address = map->address;
    walk->from = walk->bytes = walk->behind = 0;
    bool inside = true;
    for (unsigned i = soft_tensor_first(map); i < map->rank; i++) {
        int64_t at = place_along(walk, i);
        inside = inside && at >= 0 && at <= (int64_t)map->last[i];
        walk->address += (uint64_t)at * map->strides[i];
    }
    if (inside) find_part(walk);
    if (map->im2col) {
        step_filter(walk);
    } else {
        step_box(walk);
    }
    return true;
}

bool soft_tensor_is_in_bounds(const struct soft_tensor_map *map, const struct soft_box_place *place,
                              unsigned *dimension) {
    for (unsigned k = 0; k + 2 < map->rank; k++) {
        unsigned i = k + soft_tensor_first(map);
        int64_t at = place->begin[i], upper = (int64_t)map->last[i] + map->upper[k];
        *dimension = i;
        if (at < map->lower[k] || at > upper) return false;
    }
    return true;
}
