/*
 * SHA-256, CRC-32 and the Philox generator of random numbers.
 * Sources: FIPS 180-4; ITU-T V.42; Salmon and others, "Parallel random numbers: as easy as 1, 2, 3"
 * (2011), of which Philox4x32-10 is one.
 */
#ifndef CORPUS_HASHES_H
#define CORPUS_HASHES_H

#include "corpus.h"

CORPUS_FN uint32_t hashes_rotate(uint32_t x, uint32_t by) {
    return x >> by | x << (32 - by);
}

/* The first digits of the cube roots of the first primes, and of their square roots. */
#define HASHES_CUBES                                                                               \
    {                                                                                              \
        0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u, \
            0xab1c5ed5u, 0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u,          \
            0x80deb1feu, 0x9bdc06a7u, 0xc19bf174u, 0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u,          \
            0x240ca1ccu, 0x2de92c6fu, 0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau, 0x983e5152u,          \
            0xa831c66du, 0xb00327c8u, 0xbf597fc7u, 0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u,          \
            0x14292967u, 0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu, 0x53380d13u, 0x650a7354u,          \
            0x766a0abbu, 0x81c2c92eu, 0x92722c85u, 0xa2bfe8a1u, 0xa81a664bu, 0xc24b8b70u,          \
            0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u, 0x19a4c116u,          \
            0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu,          \
            0x682e6ff3u, 0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau,          \
            0xa4506cebu, 0xbef9a3f7u, 0xc67178f2u                                                  \
    }
#define HASHES_SQUARES                                                                             \
    {                                                                                              \
        0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au, 0x510e527fu, 0x9b05688cu, 0x1f83d9abu, \
            0x5be0cd19u                                                                            \
    }

/* One block of sixteen words into the state. */
CORPUS_FN void hashes_sha256_block(uint32_t state[8], const uint32_t words[16],
                                   const uint32_t cubes[64]) {
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++) w[i] = words[i];
    for (int i = 16; i < 64; i++) {
        uint32_t x = w[i - 15], y = w[i - 2];
        w[i] = w[i - 16] + (hashes_rotate(x, 7) ^ hashes_rotate(x, 18) ^ x >> 3) + w[i - 7] +
               (hashes_rotate(y, 17) ^ hashes_rotate(y, 19) ^ y >> 10);
    }
    for (int i = 0; i < 8; i++) s[i] = state[i];
    for (int i = 0; i < 64; i++) {
        uint32_t one = hashes_rotate(s[4], 6) ^ hashes_rotate(s[4], 11) ^ hashes_rotate(s[4], 25);
        uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
        uint32_t first = s[7] + one + choice + cubes[i] + w[i];
        uint32_t zero = hashes_rotate(s[0], 2) ^ hashes_rotate(s[0], 13) ^ hashes_rotate(s[0], 22);
        uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        for (int k = 7; k > 0; k--) s[k] = s[k - 1];
        s[4] += first;
        s[0] = first + zero + majority;
    }
    for (int i = 0; i < 8; i++) state[i] += s[i];
}

/* Of a message of less than 56 bytes. */
CORPUS_FN void hashes_sha256(const uint8_t *message, uint32_t length, uint32_t digest[8],
                             const uint32_t cubes[64]) {
    const uint32_t squares[8] = HASHES_SQUARES;
    uint8_t block[64];
    uint32_t words[16];
    for (uint32_t i = 0; i < 64; i++) block[i] = i < length ? message[i] : 0;
    block[length] = 0x80;
    block[62] = (uint8_t)(8 * length >> 8);
    block[63] = (uint8_t)(8 * length);
    for (int i = 0; i < 16; i++) {
        words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                   (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    }
    for (int i = 0; i < 8; i++) digest[i] = squares[i];
    hashes_sha256_block(digest, words, cubes);
}

CORPUS_FN uint32_t hashes_crc_entry(uint32_t i) {
    for (int bit = 0; bit < 8; bit++) i = i & 1 ? i >> 1 ^ 0xedb88320u : i >> 1;
    return i;
}

CORPUS_FN uint32_t hashes_crc(const uint8_t *bytes, uint32_t count, const uint32_t table[256]) {
    uint32_t crc = ~0u;
    for (uint32_t i = 0; i < count; i++) crc = table[(crc ^ bytes[i]) & 0xff] ^ crc >> 8;
    return ~crc;
}

CORPUS_FN void hashes_philox(uint32_t counter[4], uint32_t key0, uint32_t key1) {
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = 0xd2511f53ull * counter[0], p1 = 0xcd9e8d57ull * counter[2];
        counter[0] = (uint32_t)(p1 >> 32) ^ counter[1] ^ key0;
        counter[1] = (uint32_t)p1;
        counter[2] = (uint32_t)(p0 >> 32) ^ counter[3] ^ key1;
        counter[3] = (uint32_t)p0;
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
}

#endif
