/*
 * Local memory, fast: the range is the current call's variables, with the same addresses but
 * separate bytes in each lane. A caller's variables, and errors, take the slow path in access.c.
 */
#include "machine/access.h"
#include "op_body.h"

/* The offsets of the lanes that run, where all are inside and aligned; of the others 0, which is
 * inside as well. */
static inline bool local_offsets(const struct soft_warp *warp, const struct soft_instruction *in,
                                 unsigned bytes, uint64_t offsets[SOFT_LANES]) {
    const struct soft_frame *frame = warp->split->frame;
    const uint64_t *address = SLOT(uint64_t, in->a);
    const uint32_t *lane = warp->lane;
    uint64_t size = frame->code->local_bytes, wrong = 0;
    uint64_t shift = (uint64_t)in->u.immediate - frame->local_base;
    if (size < bytes) return false;
    LANES {
        uint64_t offset = lane[i] ? address[i] + shift : 0;
        wrong |= (offset > size - bytes) | (offset & (bytes - 1));
        offsets[i] = offset;
    }
    return wrong == 0;
}

/* Whether the words that the lanes read have been written. */
static inline bool local_written(const struct soft_warp *warp, const uint64_t offsets[SOFT_LANES],
                                 unsigned bytes) {
    const struct soft_frame *frame = warp->split->frame;
    size_t size = frame->code->local_bytes;
    uint8_t all = 0xf;
    if (frame->local_shadow == NULL) return true;
    EACH_LANE(i, warp->mask) {
        const uint8_t *shadow = frame->local_shadow + (i * size + offsets[i]) / 4;
        all &= bytes == 8 ? shadow[0] & shadow[1] : shadow[0];
    }
    return all == 0xf;
}

static inline void local_mark(const struct soft_warp *warp, const uint64_t offsets[SOFT_LANES],
                              unsigned bytes) {
    const struct soft_frame *frame = warp->split->frame;
    size_t size = frame->code->local_bytes;
    if (frame->local_shadow == NULL) return;
    EACH_LANE(i, warp->mask) {
        memset(frame->local_shadow + (i * size + offsets[i]) / 4, 0xf, bytes / 4);
    }
}

#define LOCAL_LOAD(op, T)                                                                          \
    OP_ANY(op) {                                                                                   \
        uint64_t offsets[SOFT_LANES];                                                              \
        if (!local_offsets(warp, in, sizeof(T), offsets) ||                                        \
            !local_written(warp, offsets, sizeof(T))) {                                            \
            return soft_access_load(warp, in);                                                     \
        }                                                                                          \
        const struct soft_frame *frame = warp->split->frame;                                       \
        const uint8_t *from = frame->local;                                                        \
        size_t size = frame->code->local_bytes;                                                    \
        T *d = SLOT(T, in->d);                                                                     \
        EACH_LANE(i, warp->mask) memcpy(&d[i], from + i * size + offsets[i], sizeof(T));           \
        return in + 1;                                                                             \
    }

#define LOCAL_STORE(op, T)                                                                         \
    OP_ANY(op) {                                                                                   \
        uint64_t offsets[SOFT_LANES];                                                              \
        if (!local_offsets(warp, in, sizeof(T), offsets)) return soft_access_store(warp, in);      \
        const struct soft_frame *frame = warp->split->frame;                                       \
        size_t size = frame->code->local_bytes;                                                    \
        const T *d = SLOT(T, in->d);                                                               \
        local_mark(warp, offsets, sizeof(T));                                                      \
        EACH_LANE(i, warp->mask) memcpy(frame->local + i * size + offsets[i], &d[i], sizeof(T));   \
        return in + 1;                                                                             \
    }

LOCAL_LOAD(ld_local_32, uint32_t)
LOCAL_LOAD(ld_local_64, uint64_t)
LOCAL_STORE(st_local_32, uint32_t)
LOCAL_STORE(st_local_64, uint64_t)
