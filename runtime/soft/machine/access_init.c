/*
 * The bytes that a read finds unwritten.
 */
#include "access.h"

#include "taint.h"

static unsigned access_unwritten(const struct soft_place *place, unsigned bytes) {
    unsigned unwritten = 0;
    for (unsigned i = 0; i < bytes; i++) {
        uint64_t at = place->offset + i;
        uint8_t written = __atomic_load_n(&place->shadow[at / 4], __ATOMIC_RELAXED);
        unwritten += (written >> (at % 4) & 1) == 0;
    }
    return unwritten;
}

/* Compilers copy structures with their padding, in words of which half the bytes or more may be
 * padding, and in vectors. What lacks less of a word is no such copy. */
static bool access_is_padded(unsigned unwritten, unsigned bytes) {
    return bytes > 8 || 2 * unwritten >= bytes;
}

static struct soft_tainted_load access_load_of(const struct soft_instruction *in, uint64_t address,
                                               unsigned bytes, unsigned unwritten,
                                               const struct soft_place *place) {
    return (struct soft_tainted_load){.instruction = in,
                                      .address = address,
                                      .bytes = bytes,
                                      .is_partial = unwritten < bytes,
                                      .is_global = place->view.high != 0};
}

void soft_access_check_read(struct soft_warp *warp, const struct soft_instruction *in,
                            uint32_t lane, uint64_t address, unsigned bytes,
                            const struct soft_place *place) {
    const unsigned unwritten = place->shadow != NULL ? access_unwritten(place, bytes) : 0;
    if (unwritten == 0) return;
    if (unwritten < bytes && access_is_padded(unwritten, bytes)) return;
    const struct soft_tainted_load load = access_load_of(in, address, bytes, unwritten, place);
    soft_taint_tell(warp, &load, 1u << lane, NULL);
}

void soft_access_taint(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                       uint64_t address, unsigned bytes, const struct soft_place *place) {
    const unsigned unwritten = place->shadow != NULL ? access_unwritten(place, bytes) : 0;
    if (unwritten == 0) return;
    if (unwritten < bytes &&
        (soft_access_count(in->mode) > 1 || access_is_padded(unwritten, bytes))) {
        return;
    }
    const struct soft_tainted_load load = access_load_of(in, address, bytes, unwritten, place);
    soft_taint_add(warp, &load, lane, 0);
}

void soft_access_taint_end(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                           uint64_t address, unsigned there, const struct soft_place *place) {
    const unsigned bytes = soft_access_bytes(in->mode);
    const struct soft_tainted_load load = {.instruction = in,
                                           .address = address,
                                           .bytes = bytes * soft_access_count(in->mode),
                                           .is_partial = true,
                                           .is_global = true};
    if (place->shadow != NULL) soft_taint_add(warp, &load, lane, there / bytes);
}
