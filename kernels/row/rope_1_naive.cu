// rope: rotary position embedding. For pair i = (a, b) of in[r][h] and the angle
// t = position[r] * scale / base^(2 i / rotated), out gets (a cos t - b sin t, a sin t + b cos t).
//
// The idea: a pair is two neighbours, or an element of the first half and its partner of the
// second. One thread computes both, so out may be in. Elements past `rotated` are copied.
// Owner: block r owns row r; its threads take the pairs, and the copied elements, of all heads.
// Requires: gridDim.x = rows; any alignment.
#include "row.cuh"

template <typename T> __device__ inline void rope(const rope_arguments &x) {
    const long long row = blockIdx.x;
    const float position = (float)((const int *)x.positions)[row] * x.scale;
    const int pairs = x.rotated / 2, per_head = pairs + (x.head_size - x.rotated);
    for (int i = threadIdx.x; i < x.heads * per_head; i += blockDim.x) {
        const int head = i / per_head, j = i % per_head;
        const T *in = (const T *)x.in + row * x.in_stride + (long long)head * x.head_size;
        T *out = (T *)x.out + row * x.out_stride + (long long)head * x.head_size;
        if (j >= pairs) {
            out[x.rotated + j - pairs] = in[x.rotated + j - pairs];
            continue;
        }
        const int first = x.halves ? j : 2 * j, second = x.halves ? j + pairs : 2 * j + 1;
        // Angles grow with the position: sincosf reduces them with all bits, __sincosf does not.
        float sine, cosine;
        const float turn = exp2f(-2.0f * (float)j / (float)x.rotated * x.base_log2);
        sincosf(position * turn, &sine, &cosine);
        const float a = to_float(in[first]), b = to_float(in[second]);
        out[first] = from_float<T>(a * cosine - b * sine);
        out[second] = from_float<T>(a * sine + b * cosine);
    }
}

extern "C" __global__ void rope_f32(rope_arguments x) {
    rope<float>(x);
}
extern "C" __global__ void rope_f16(rope_arguments x) {
    rope<__half>(x);
}
extern "C" __global__ void rope_bf16(rope_arguments x) {
    rope<__nv_bfloat16>(x);
}
