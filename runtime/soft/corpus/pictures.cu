// Iterations whose number differs from point to point, and a game of life on a torus.
#include "pictures.h"

extern "C" __global__ void mandelbrot(uint32_t *out, uint32_t width, uint32_t height,
                                      uint32_t limit) {
    uint32_t x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    out[y * width + x] =
        pictures_escape(fmaf((float)x, 0.0625f, -2.0f), fmaf((float)y, 0.0625f, -1.25f), limit);
}

extern "C" __global__ void mandelbrot_double(uint32_t *out, uint32_t width, uint32_t height,
                                             uint32_t limit) {
    uint32_t x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    out[y * width + x] =
        pictures_escape_double(fma((double)x, 0.001, -0.75), fma((double)y, 0.001, 0.1), limit);
}

extern "C" __global__ void life(const uint8_t *from, uint8_t *to, uint32_t side) {
    uint32_t x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= side || y >= side) return;
    uint32_t around = 0;
    for (uint32_t dy = side - 1; dy <= side + 1; dy++) {
        for (uint32_t dx = side - 1; dx <= side + 1; dx++) {
            if (dx == side && dy == side) continue;
            around += from[(y + dy) % side * side + (x + dx) % side];
        }
    }
    to[y * side + x] = pictures_lives(from[y * side + x], around);
}
