/*
 * Attention table: makes the tables of variants of all operations of attention from the lines of
 * attention_table.def. Internal.
 *
 *     static const struct kn_variant rows[] = {
 *     #define PACKED(...) ATTENTION_ROWS(attention_packed, packed_refuse, NULL, __VA_ARGS__)
 *     #include "attention/attention_table.def"
 *     #undef PACKED
 *     };
 */
#ifndef KN_ATTENTION_TABLE_H
#define KN_ATTENTION_TABLE_H

#include "attention/attention_shapes.h"
#include "choose/variant.h"
#include "number.h"

/* What a kernel needs of a problem besides its type: bits. */
enum {
    ATTENTION_OF_SIZE = 1,  /* heads have the size of the row */
    ATTENTION_OF_16 = 2,    /* each row begins at a multiple of 16 bytes */
    ATTENTION_BY_ROW = 4,   /* up to 8 rows of q and no window; blocks share the keys of a row */
    ATTENTION_BY_HEAD = 8,  /* up to 16 rows share a head of k and v, and no window; blocks share
                               the keys of a head */
    ATTENTION_BY_MAPS = 16, /* tensor maps can describe the operands */
    ATTENTION_TO_SUMS = 32, /* the workspace has sums, to which blocks add gradients in turn */
    ATTENTION_PDL = 64      /* nothing of the problem: it is launched by PDL */
};
#define ATTENTION_NEEDS_NOTHING 0
#define ATTENTION_NEEDS_PDL ATTENTION_PDL
#define ATTENTION_NEEDS_SIZE ATTENTION_OF_SIZE
#define ATTENTION_NEEDS_ALIGNED (ATTENTION_OF_SIZE | ATTENTION_OF_16)
#define ATTENTION_NEEDS_FEW_ROWS (ATTENTION_NEEDS_ALIGNED | ATTENTION_BY_ROW)
#define ATTENTION_NEEDS_ONE_TILE (ATTENTION_NEEDS_ALIGNED | ATTENTION_BY_HEAD)
#define ATTENTION_NEEDS_MAPS ATTENTION_BY_MAPS
#define ATTENTION_NEEDS_SIZE_MAPS (ATTENTION_NEEDS_ALIGNED | ATTENTION_BY_MAPS)
#define ATTENTION_NEEDS_SUMS (ATTENTION_NEEDS_SIZE_MAPS | ATTENTION_TO_SUMS)

/* Whether the row takes the type, heads of this size and this alignment: NULL, or why not. What
 * else a row needs, its operation checks. */
const char *attention_row_refuse(const struct kn_variant *row, enum kn_type type, size_t head_size,
                                 bool is_aligned);

/* All rows of a line. */
#define ATTENTION_ROWS(operation, refuse, decline, name, image, capability, types, sizes, ...)     \
    ATTENTION_TYPES_##types(ATTENTION_SIZES_##sizes, operation, refuse, decline, name, image,      \
                            capability, __VA_ARGS__)

#define ATTENTION_TYPES_FLOATS(SIZES, ...) SIZES(f32, F32, __VA_ARGS__)
#define ATTENTION_TYPES_HALVES(SIZES, ...)                                                         \
    SIZES(f16, F16, __VA_ARGS__) SIZES(bf16, BF16, __VA_ARGS__)
#define ATTENTION_TYPES_ALL(SIZES, ...)                                                            \
    ATTENTION_TYPES_FLOATS(SIZES, __VA_ARGS__) ATTENTION_TYPES_HALVES(SIZES, __VA_ARGS__)

#define ATTENTION_SIZES_ANY(...) ATTENTION_ROW(0, "", __VA_ARGS__)
#define ATTENTION_SIZES_64(...) ATTENTION_ROW(64, "_64", __VA_ARGS__)
#define ATTENTION_SIZES_80(...) ATTENTION_ROW(80, "_80", __VA_ARGS__)
#define ATTENTION_SIZES_96(...) ATTENTION_ROW(96, "_96", __VA_ARGS__)
#define ATTENTION_SIZES_128(...) ATTENTION_ROW(128, "_128", __VA_ARGS__)
#define ATTENTION_SIZES_256(...) ATTENTION_ROW(256, "_256", __VA_ARGS__)
#define ATTENTION_SIZES_64_128(...) ATTENTION_SIZES_64(__VA_ARGS__) ATTENTION_SIZES_128(__VA_ARGS__)
#define ATTENTION_SIZES_64_128_256(...)                                                            \
    ATTENTION_SIZES_64_128(__VA_ARGS__) ATTENTION_SIZES_256(__VA_ARGS__)
#define ATTENTION_SIZES_64_96_128_256(...)                                                         \
    ATTENTION_SIZES_64(__VA_ARGS__)                                                                \
    ATTENTION_SIZES_96(__VA_ARGS__) ATTENTION_SIZES_128(__VA_ARGS__)                               \
        ATTENTION_SIZES_256(__VA_ARGS__)
#define ATTENTION_SIZES_64_80_96_128_256(...)                                                      \
    ATTENTION_SIZES_64(__VA_ARGS__)                                                                \
    ATTENTION_SIZES_80(__VA_ARGS__) ATTENTION_SIZES_96(__VA_ARGS__)                                \
        ATTENTION_SIZES_128(__VA_ARGS__) ATTENTION_SIZES_256(__VA_ARGS__)

#define ATTENTION_ROW(d, suffix, type, TYPE, operation, refuse, decline, name, image, capability,  \
                      needs, shape)                                                                \
    ATTENTION_VARIANT(#name, #operation "_" #name "_" #type suffix, operation##_##image,           \
                      capability, TYPE, d, needs, shape, refuse, decline)

/* A row with a planted defect, which is otherwise that of this type, size and shape. */
#define ATTENTION_DEFECT(operation, refuse, which, image, capability, TYPE, d, needs, shape)       \
    ATTENTION_VARIANT(#which, #operation "_" #which, operation##_##image, capability, TYPE, d,     \
                      needs, shape, refuse, NULL)

#define ATTENTION_VARIANT(name_, entry_, image, capability, TYPE, d, needs_, shape, refuse_,       \
                          decline_)                                                                \
    {.name = name_,                                                                                \
     .entry = entry_,                                                                              \
     .images = kn_images_##image,                                                                  \
     .compute_capability_min = capability,                                                         \
     .types = 1u << KN_##TYPE,                                                                     \
     .needs = ATTENTION_NEEDS_##needs_,                                                            \
     .size = d,                                                                                    \
     .refuse = refuse_,                                                                            \
     .decline = decline_,                                                                          \
     ATTENTION_SHAPE_##shape(d),                                                                   \
     .cluster = (ATTENTION_NEEDS_##needs_ & ATTENTION_BY_MAPS) != 0 ? 1 : 0,                       \
     .pdl = (ATTENTION_NEEDS_##needs_ & ATTENTION_PDL) != 0},

#endif
