// Text and bytes in local memory; see text.h.
#include "text.h"

extern "C" __global__ void text(struct text_record *records, const int32_t *values,
                                uint32_t count) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) text_fill(&records[i], values[i]);
}

// The longest word of each line, by its place and length.
extern "C" __global__ void longest(const char *text, uint32_t line_bytes, uint32_t *places) {
    const char *line = text + threadIdx.x * line_bytes;
    uint32_t best = 0, best_at = 0, at = 0;
    while (line[at] != '\0') {
        uint32_t begin = at;
        while (line[at] != '\0' && line[at] != ' ') at++;
        if (at - begin > best) {
            best = at - begin;
            best_at = begin;
        }
        while (line[at] == ' ') at++;
    }
    places[threadIdx.x] = best_at << 16 | best;
}
