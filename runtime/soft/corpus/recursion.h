/*
 * Functions that call themselves, and each other.
 */
#ifndef CORPUS_RECURSION_H
#define CORPUS_RECURSION_H

#include "corpus.h"

CORPUS_CALLED uint32_t fibonacci(uint32_t n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

CORPUS_CALLED uint32_t ackermann(uint32_t m, uint32_t n) {
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

/* The number of ways to place queens on the remaining rows, given taken columns and diagonals. */
CORPUS_CALLED uint32_t queens(uint32_t all, uint32_t columns, uint32_t left, uint32_t right) {
    uint32_t ways = 0, free = all & ~(columns | left | right);
    if (columns == all) return 1;
    while (free != 0) {
        uint32_t one = free & (0u - free);
        free ^= one;
        ways += queens(all, columns | one, (left | one) << 1, (right | one) >> 1);
    }
    return ways;
}

struct towers {
    uint8_t disks[3][8], height[3];
    uint32_t moves;
};

CORPUS_CALLED void towers_move(struct towers *t, uint32_t disks, uint32_t from, uint32_t to) {
    uint32_t other = 3 - from - to;
    if (disks == 0) return;
    towers_move(t, disks - 1, from, other);
    t->disks[to][t->height[to]++] = t->disks[from][--t->height[from]];
    t->moves++;
    towers_move(t, disks - 1, other, to);
}

CORPUS_FN uint32_t towers_run(uint32_t disks) {
    struct towers t;
    uint32_t hash = 0;
    for (uint32_t i = 0; i < 3; i++) t.height[i] = 0;
    for (uint32_t i = 0; i < disks; i++) t.disks[0][t.height[0]++] = (uint8_t)(disks - i);
    t.moves = 0;
    towers_move(&t, disks, 0, 2);
    for (uint32_t i = 0; i < disks; i++) hash = hash * 10 + t.disks[2][i];
    return hash + (t.moves << 20);
}

CORPUS_CALLED uint32_t female(uint32_t n);
CORPUS_CALLED uint32_t male(uint32_t n) {
    return n == 0 ? 0 : n - female(male(n - 1));
}
CORPUS_CALLED uint32_t female(uint32_t n) {
    return n == 0 ? 1 : n - male(female(n - 1));
}

#endif
