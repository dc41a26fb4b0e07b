// Lines of 8 bytes in the memory of callers, which is aligned to elements of 2 or 4 bytes. The last
// line of a range may be shorter.
#pragma once

#include "collective_arguments.h"

static __device__ inline unsigned long long load_line(unsigned long long at, unsigned bytes) {
    if (at % COLLECTIVE_LINE_BYTES == 0 && bytes == COLLECTIVE_LINE_BYTES) {
        return *(const unsigned long long *)at;
    }
    unsigned long long line = 0;
#pragma unroll
    for (int i = 0; i < COLLECTIVE_LINE_BYTES / 2; i++) {
        if (2 * i < bytes) {
            line |= (unsigned long long)((const unsigned short *)at)[i] << 16 * i;
        }
    }
    return line;
}

static __device__ inline void store_line(unsigned long long at, unsigned bytes,
                                         unsigned long long line) {
    if (at % COLLECTIVE_LINE_BYTES == 0 && bytes == COLLECTIVE_LINE_BYTES) {
        *(unsigned long long *)at = line;
        return;
    }
#pragma unroll
    for (int i = 0; i < COLLECTIVE_LINE_BYTES / 2; i++) {
        if (2 * i < bytes) ((unsigned short *)at)[i] = (unsigned short)(line >> 16 * i);
    }
}

// The bytes of the line that begins at byte `at`, of `bytes`.
static __device__ inline unsigned line_bytes(unsigned long long at, unsigned long long bytes) {
    return bytes - at < COLLECTIVE_LINE_BYTES ? (unsigned)(bytes - at)
                                              : (unsigned)COLLECTIVE_LINE_BYTES;
}
