// What the kernels of attention over numbers of 8 bits share: the scales of a head.
#pragma once

#include "../forward/attention.cuh"
#include "attention_e4m3_arguments.h"

__device__ inline float scale_at(const void *scales, int index) {
    return scales != nullptr ? ((const float *)scales)[index] : 1;
}

__device__ inline int kv_index(const attention_arguments &x, int batch, int head) {
    return batch * (x.heads / x.group) + head / x.group;
}

// The problem of a head: the scale of its scores has those of its q and k.
__device__ inline attention_arguments scaled_for(const attention_e4m3_arguments &p, int batch,
                                                 int head) {
    attention_arguments x = p.x;
    x.scale_log2 *= scale_at(p.q_scales, batch * x.heads + head) *
                    scale_at(p.k_scales, kv_index(x, batch, head));
    return x;
}

__device__ inline float value_scale_of(const attention_e4m3_arguments &p, int batch, int head) {
    return scale_at(p.v_scales, kv_index(p.x, batch, head));
}
