/*
 * The rows of a box. Source: PTX ISA 9.0, section 5.5.3 (tiled mode).
 */
#include "tensor_walk.h"

void soft_tensor_walk_begin(struct soft_tensor_walk *walk, const struct soft_tensor_map *map,
                            const int32_t *begin) {
    *walk = (struct soft_tensor_walk){.map = map, .begin = begin, .rows = 1};
    walk->row_bytes = (unsigned)map->box[0] * map->element_bytes;
    for (unsigned i = 1; i < map->rank; i++) walk->rows *= soft_tensor_taken(map, i);
}

/* The part of the row inside the tensor's first dimension, whatever the others are. */
static void find_part(struct soft_tensor_walk *walk) {
    const struct soft_tensor_map *map = walk->map;
    int64_t size = (int64_t)map->last[0] + 1, first = walk->begin[0];
    int64_t from = first < 0 ? -first : 0;
    int64_t end = first + map->box[0] > size ? size - first : map->box[0];
    if (end <= from) return;
    walk->address += (uint64_t)(first + from) * map->element_bytes;
    walk->from = (unsigned)from * map->element_bytes;
    walk->bytes = (unsigned)(end - from) * map->element_bytes;
}

bool soft_tensor_walk_next(struct soft_tensor_walk *walk) {
    const struct soft_tensor_map *map = walk->map;
    if (walk->next == walk->rows) return false;
    walk->at = walk->next++ * walk->row_bytes;
    walk->address = map->address;
    walk->from = walk->bytes = 0;
    bool inside = true;
    for (unsigned i = 1; i < map->rank; i++) {
        int64_t at = (int64_t)walk->begin[i] + (int64_t)walk->index[i] * map->steps[i];
        inside = inside && at >= 0 && at <= (int64_t)map->last[i];
        walk->address += (uint64_t)at * map->strides[i];
    }
    if (inside) find_part(walk);
    for (unsigned i = 1; i < map->rank && ++walk->index[i] == soft_tensor_taken(map, i); i++) {
        walk->index[i] = 0;
    }
    return true;
}
