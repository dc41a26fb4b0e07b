/*
 * Reach: from a kernel's handle to an object, and from a place in it to its bytes, with all checks.
 */
#ifndef SOFT_TEXTURE_REACH_H
#define SOFT_TEXTURE_REACH_H

#include "lower/texture_mode.h"
#include "machine/access.h"
#include "texture.h"

/* One lane's access. */
struct soft_lookup {
    struct soft_warp *warp;
    const struct soft_instruction *in;
    uint32_t lane;
    uint64_t handle;  /* of the object, once it is found */
    uint64_t address; /* of the place found last */
    const struct soft_texture *texture;
    const struct soft_texels *texels; /* of it, of one level */
    struct soft_texels level;
};

/* Finds the object of a lane's first operand: a handle, or the address of a reference. false: this
 * instruction cannot be used with it; the launch has failed. */
bool soft_lookup_object(struct soft_lookup *lookup, uint32_t slot);

/* The texture of a handle, if it has one level and this instruction can be used with it; else NULL,
 * without a report. */
const struct soft_texture *soft_lookup_common(const struct soft_warp *warp,
                                              const struct soft_instruction *in, uint64_t handle);

/* Selects a level of the object, which must exist; initially the first. */
void soft_lookup_level(struct soft_lookup *lookup, unsigned level);

/* Finds the bytes of a place that is inside: layers, rows and bytes of a row. false: they are not
 * live; the launch has failed. */
bool soft_lookup_place(struct soft_lookup *lookup, uint64_t layer, uint64_t row, uint64_t byte,
                       unsigned bytes, enum soft_access_kind kind, struct soft_place *place);

#endif
