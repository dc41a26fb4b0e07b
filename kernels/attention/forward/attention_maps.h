/*
 * The tensor maps that kernels of attention take besides their arguments: when one can be made of
 * an operand, and the four of attention_hopper.cuh. Internal.
 */
#ifndef KN_ATTENTION_MAPS_H
#define KN_ATTENTION_MAPS_H

#include "attention/forward/attention_problem.h"
#include "boxes.h"

/* What a tensor map describes: the elements of a row, rows, heads and batches of an operand. */
struct attention_tensor {
    const char *name; /* for messages */
    CUdeviceptr address;
    const struct attention_strides *by;
    size_t heads, rows;
};

/* Whether a map can describe it. Elements have the type's size, or are bytes. */
bool attention_tensor_serves(const struct kn_attention *x, const struct attention_tensor *tensor);

/* Makes the map of boxes of box_rows rows. is_bytes: elements have 8 bits. Fails as
 * kn_tensor_map_make does. */
tol_status attention_tensor_make(struct tol_context *context, const struct kn_attention *x,
                                 const struct attention_tensor *tensor, int box_rows, bool is_bytes,
                                 CUtensorMap *map);

/* The maps in the order of a kernel's parameters. Rows of q and out come in boxes of 64; the box of
 * a tile of keys or values has attention_box_keys rows. */
enum { ATTENTION_MAP_Q, ATTENTION_MAP_K, ATTENTION_MAP_V, ATTENTION_MAP_OUT, ATTENTION_MAPS };
enum { ATTENTION_BOX_ROWS = 64 };
int attention_box_keys(const struct kn_attention *x);

/* Why the kernel of attention_hopper.cuh for heads of up to head_size elements cannot compute the
 * problem, whose type is the kernel's; NULL: it can. */
const char *attention_maps_refuse(const struct attention_problem *problem, size_t head_size);

/* Makes the maps. is_bytes: elements of q, k and v have 8 bits. Fails as kn_tensor_map_make
 * does. */
tol_status attention_maps_make(struct tol_context *context, const struct attention_problem *problem,
                               bool is_bytes, CUtensorMap maps[ATTENTION_MAPS]);

#endif
