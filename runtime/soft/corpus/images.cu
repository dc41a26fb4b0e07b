// Textures and surfaces: the results of each way of reading at a list of places.
#include "corpus.h"

#define PLACE uint32_t i = blockIdx.x * blockDim.x + threadIdx.x
#define KERNEL extern "C" __global__ void

KERNEL fetch_1d(float4 *out, cudaTextureObject_t texture, const int *at, uint32_t count) {
    PLACE;
    if (i < count) out[i] = tex1Dfetch<float4>(texture, at[i]);
}

KERNEL fetch_1d_words(uint32_t *out, cudaTextureObject_t texture, const int *at, uint32_t count) {
    PLACE;
    if (i < count) out[i] = tex1Dfetch<unsigned>(texture, at[i]);
}

KERNEL sample_1d(float4 *out, cudaTextureObject_t texture, const float3 *at, uint32_t count) {
    PLACE;
    if (i < count) out[i] = tex1D<float4>(texture, at[i].x);
}

KERNEL sample_2d(float4 *out, cudaTextureObject_t texture, const float3 *at, uint32_t count) {
    PLACE;
    if (i < count) out[i] = tex2D<float4>(texture, at[i].x, at[i].y);
}

KERNEL sample_2d_whole(int4 *out, cudaTextureObject_t texture, const float3 *at, uint32_t count) {
    PLACE;
    if (i < count) out[i] = tex2D<int4>(texture, at[i].x, at[i].y);
}

KERNEL sample_2d_level(float4 *out, cudaTextureObject_t texture, const float3 *at,
                       uint32_t count) {
    PLACE;
    if (i < count) out[i] = tex2DLod<float4>(texture, at[i].x, at[i].y, 0.0f);
}

KERNEL sample_2d_gradient(float4 *out, cudaTextureObject_t texture, const float3 *at,
                          uint32_t count) {
    PLACE;
    float2 d = make_float2(0.0f, 0.0f);
    if (i < count) out[i] = tex2DGrad<float4>(texture, at[i].x, at[i].y, d, d);
}

KERNEL sample_3d(float4 *out, cudaTextureObject_t texture, const float3 *at, uint32_t count) {
    PLACE;
    if (i < count) out[i] = tex3D<float4>(texture, at[i].x, at[i].y, at[i].z);
}

KERNEL sample_layers_1d(float4 *out, cudaTextureObject_t texture, const float3 *at,
                        uint32_t count) {
    PLACE;
    if (i < count) out[i] = tex1DLayered<float4>(texture, at[i].x, (int)at[i].z);
}

KERNEL sample_layers_2d(float4 *out, cudaTextureObject_t texture, const float3 *at,
                        uint32_t count) {
    PLACE;
    if (i < count) out[i] = tex2DLayered<float4>(texture, at[i].x, at[i].y, (int)at[i].z);
}

KERNEL sample_cube(float4 *out, cudaTextureObject_t texture, const float3 *at, uint32_t count) {
    PLACE;
    if (i < count) out[i] = texCubemap<float4>(texture, at[i].x, at[i].y, at[i].z);
}

KERNEL gather(float4 *out, cudaTextureObject_t texture, const float3 *at, uint32_t count) {
    PLACE;
    if (i < count) out[i] = tex2Dgather<float4>(texture, at[i].x, at[i].y, 1);
}

// Surfaces. Each thread reads one element and writes another, so that no two meet.
KERNEL invert_2d(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    uchar4 p = surf2Dread<uchar4>(from, x * 4, y);
    surf2Dwrite(make_uchar4(255 - p.x, 255 - p.y, 255 - p.z, p.w), to, x * 4, y);
}

KERNEL add_3d(cudaSurfaceObject_t surface, int width, int height, int depth) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    for (int z = 0; z < depth; z++) {
        float2 v = surf3Dread<float2>(surface, x * 8, y, z);
        surf3Dwrite(make_float2(v.x + 1.0f, v.y + (float)z), surface, x * 8, y, z);
    }
}

KERNEL copy_layer(cudaSurfaceObject_t surface, int width, int from, int to) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = threadIdx.y;
    if (x >= width) return;
    short v;
    surf2DLayeredread(&v, surface, x * 2, y, from);
    surf2DLayeredwrite((short)(v * 2), surface, x * 2, y, to);
}

KERNEL shift_1d(double2 *out, cudaSurfaceObject_t surface, int first, uint32_t count) {
    PLACE;
    if (i < count) {
        int4 v = surf1Dread<int4>(surface, (first + (int)i) * 16, cudaBoundaryModeZero);
        out[i] = make_double2(v.x, v.w);
    }
}

KERNEL clamp_1d(int *out, cudaSurfaceObject_t surface, int first, uint32_t count) {
    PLACE;
    if (i < count) out[i] = surf1Dread<int>(surface, (first + (int)i) * 4, cudaBoundaryModeClamp);
}

KERNEL write_outside(cudaSurfaceObject_t surface, int first, int mode) {
    int x = (first + (int)threadIdx.x) * 4;
    if (mode == 0) surf1Dwrite((int)threadIdx.x, surface, x, cudaBoundaryModeTrap);
    if (mode == 1) surf1Dwrite((int)threadIdx.x, surface, x, cudaBoundaryModeZero);
}

KERNEL sizes(int *out, cudaTextureObject_t texture, cudaSurfaceObject_t surface) {
    int width, height, depth;
    asm("txq.width.b32 %0, [%1];" : "=r"(width) : "l"(texture));
    asm("txq.height.b32 %0, [%1];" : "=r"(height) : "l"(texture));
    asm("txq.depth.b32 %0, [%1];" : "=r"(depth) : "l"(texture));
    out[0] = width, out[1] = height, out[2] = depth;
    asm("suq.width.b32 %0, [%1];" : "=r"(width) : "l"(surface));
    asm("suq.height.b32 %0, [%1];" : "=r"(height) : "l"(surface));
    asm("suq.depth.b32 %0, [%1];" : "=r"(depth) : "l"(surface));
    out[3] = width, out[4] = height, out[5] = depth;
}

KERNEL reduce(cudaSurfaceObject_t surface, int width) {
    int x = threadIdx.x % width * 4;
    asm volatile("sured.b.add.1d.u32.trap [%0, {%1}], %2;" ::"l"(surface), "r"(x), "r"(1));
    asm volatile("sured.b.max.1d.s32.trap [%0, {%1}], %2;" ::"l"(surface), "r"(width * 4),
                 "r"((int)threadIdx.x - 5));
}
