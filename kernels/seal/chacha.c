/*
 * ChaCha on the host, eight blocks at a time, so that the compiler makes vectors of the loops.
 */
#include "seal/chacha.h"

#include <string.h>

enum { BLOCKS = 8 };

/* Word i of each block. */
typedef uint32_t state[16][BLOCKS];

static uint32_t chacha_load(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void chacha_mix(uint32_t *x, const uint32_t *y, uint32_t *z, int bits) {
    for (int i = 0; i < BLOCKS; i++) {
        x[i] += y[i];
        z[i] ^= x[i];
        z[i] = z[i] << bits | z[i] >> (32 - bits);
    }
}

static void chacha_quarter(uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d) {
    chacha_mix(a, b, d, 16);
    chacha_mix(c, d, b, 12);
    chacha_mix(a, b, d, 8);
    chacha_mix(c, d, b, 7);
}

bool kn_chacha_has(unsigned rounds) {
    return rounds == 20 || rounds == 12 || rounds == 8;
}

void kn_chacha_begin(const uint8_t key[KN_CHACHA_KEY_BYTES],
                     const uint8_t nonce[KN_CHACHA_NONCE_BYTES], struct seal_stream *stream) {
    static const uint8_t sigma[] = "expand 32-byte k";
    state x;
    memset(stream, 0, sizeof *stream);
    for (int i = 0; i < 4; i++) stream->words[i] = chacha_load(sigma + 4 * i);
    for (int i = 0; i < 8; i++) stream->words[4 + i] = chacha_load(key + 4 * i);
    for (int i = 0; i < 3; i++) stream->words[13 + i] = chacha_load(nonce + 4 * i);
    for (int i = 0; i < 16; i++) {
        for (int j = 0; j < BLOCKS; j++) x[i][j] = stream->words[i];
    }
    for (int column = 1; column < 4; column++) {
        chacha_quarter(x[column], x[4 + column], x[8 + column], x[12 + column]);
        for (int row = 0; row < 4; row++) {
            stream->begun[4 * column - 4 + row] = x[4 * row + column][0];
        }
    }
    explicit_bzero(x, sizeof x);
}

/* The key stream of the blocks from a counter on. */
static void chacha_make(const struct seal_stream *stream, unsigned rounds, uint32_t counter,
                        uint8_t out[BLOCKS * SEAL_UNIT_BYTES]) {
    state x;
    for (int i = 0; i < 16; i++) {
        for (int j = 0; j < BLOCKS; j++) x[i][j] = stream->words[i];
    }
    for (unsigned j = 0; j < BLOCKS; j++) x[12][j] = counter + j;
    for (unsigned round = 0; round < rounds; round += 2) {
        for (int i = 0; i < 4; i++) chacha_quarter(x[i], x[4 + i], x[8 + i], x[12 + i]);
        for (int i = 0; i < 4; i++) {
            chacha_quarter(x[i], x[4 + (i + 1) % 4], x[8 + (i + 2) % 4], x[12 + (i + 3) % 4]);
        }
    }
    for (int i = 0; i < 16; i++) {
        for (unsigned j = 0; j < BLOCKS; j++) {
            const uint32_t word = x[i][j] + (i == 12 ? counter + j : stream->words[i]);
            uint8_t *p = out + j * SEAL_UNIT_BYTES + 4 * i;
            for (int byte = 0; byte < 4; byte++) p[byte] = (uint8_t)(word >> 8 * byte);
        }
    }
    explicit_bzero(x, sizeof x);
}

void kn_chacha_add(const struct seal_stream *stream, unsigned rounds, uint32_t counter,
                   const void *in, void *out, size_t bytes) {
    uint8_t made[BLOCKS * SEAL_UNIT_BYTES];
    const uint8_t *from = in;
    uint8_t *to = out;
    for (size_t done = 0; done < bytes; done += sizeof made) {
        const size_t now = bytes - done < sizeof made ? bytes - done : sizeof made;
        chacha_make(stream, rounds, counter + (uint32_t)(done / SEAL_UNIT_BYTES), made);
        for (size_t i = 0; i < now; i++) {
            to[done + i] = (uint8_t)(made[i] ^ (from != NULL ? from[done + i] : 0));
        }
    }
    explicit_bzero(made, sizeof made);
}
