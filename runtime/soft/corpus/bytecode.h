/*
 * A machine that interprets bytes: a dense switch in a loop, and registers in an array that is
 * indexed by data.
 */
#ifndef CORPUS_BYTECODE_H
#define CORPUS_BYTECODE_H

#include "corpus.h"

enum { BYTECODE_LENGTH = 48, BYTECODE_STEPS = 200 };

CORPUS_FN uint32_t bytecode_run(const uint8_t *code, uint32_t seed) {
    uint32_t r[8], at = 0;
    for (uint32_t i = 0; i < 8; i++) r[i] = seed * (i + 1);
    for (uint32_t step = 0; step < BYTECODE_STEPS; step++) {
        uint32_t op = code[at] & 15, to = code[at] >> 5, from = code[at + 1] & 7;
        uint32_t a = r[to], b = r[from];
        at = (at + 2) % BYTECODE_LENGTH;
        switch (op) {
        case 0:
            r[to] = a + b;
            break;
        case 1:
            r[to] = a - b;
            break;
        case 2:
            r[to] = a * (b | 1);
            break;
        case 3:
            r[to] = a / (b | 1);
            break;
        case 4:
            r[to] = a % (b | 16);
            break;
        case 5:
            r[to] = a << (b & 31);
            break;
        case 6:
            r[to] = (uint32_t)((int32_t)a >> (b & 31));
            break;
        case 7:
            r[to] = a ^ b;
            break;
        case 8:
            r[to] = a & ~b;
            break;
        case 9:
            r[to] = ~a;
            break;
        case 10:
            r[from] = a;
            break;
        case 11:
            if (a < b) at = (at + 6) % BYTECODE_LENGTH;
            break;
        case 12:
            r[to] = corpus_mix(a + step);
            break;
        case 13:
            r[b & 7] += a;
            break;
        case 14:
            if ((a & 1) != 0) return a + step;
            break;
        default:
            r[to] = (uint32_t)((uint64_t)a * b >> 32);
            break;
        }
    }
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 8; i++) sum = sum * 31 + r[i];
    return sum;
}

#endif
