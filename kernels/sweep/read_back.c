/*
 * FNV-1a over words of eight bytes, which is quick enough beside the oracles.
 */
#include "read_back.h"

#include <string.h>

static const uint64_t PRIME = 1099511628211u, BASIS = 14695981039346656037u;

static uint64_t checksum;
static size_t bytes_read;

void read_back_begin(void) {
    checksum = BASIS;
    bytes_read = 0;
}

static void read_back_add(const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, count - i < 8 ? count - i : 8);
        checksum = (checksum ^ word) * PRIME;
        checksum ^= checksum >> 32;
    }
    bytes_read += count;
}

void read_back_note(const struct tol_interpose_call *call) {
    if (call->index != TOL_DRIVER_INDEX_cuMemcpyDtoH_v2) return;
    read_back_add(*(const unsigned char *const *)call->arguments[0],
                  *(const size_t *)call->arguments[2]);
}

size_t read_back_bytes(void) {
    return bytes_read;
}

uint64_t read_back_checksum(void) {
    return checksum;
}
