/*
 * Sorts within one thread: with an explicit stack, and by insertion.
 */
#ifndef CORPUS_SORTING_H
#define CORPUS_SORTING_H

#include "corpus.h"

enum { SORTING_COUNT = 40 };

CORPUS_FN void sorting_insert(int32_t *values, int32_t low, int32_t high) {
    for (int32_t i = low + 1; i <= high; i++) {
        int32_t value = values[i], at = i;
        while (at > low && values[at - 1] > value) {
            values[at] = values[at - 1];
            at--;
        }
        values[at] = value;
    }
}

CORPUS_FN void sorting_quick(int32_t *values, int32_t count) {
    struct {
        int16_t low, high;
    } stack[16];
    int32_t depth = 0, low = 0, high = count - 1;
    for (;;) {
        while (high - low > 6) {
            int32_t pivot = values[(low + high) / 2], i = low, j = high;
            while (i <= j) {
                while (values[i] < pivot) i++;
                while (values[j] > pivot) j--;
                if (i > j) break;
                int32_t kept = values[i];
                values[i++] = values[j];
                values[j--] = kept;
            }
            /* The larger part is postponed, so that the stack remains small. */
            if (j - low > high - i) {
                stack[depth].low = (int16_t)low;
                stack[depth++].high = (int16_t)j;
                low = i;
            } else {
                stack[depth].low = (int16_t)i;
                stack[depth++].high = (int16_t)high;
                high = j;
            }
        }
        sorting_insert(values, low, high);
        if (depth == 0) return;
        low = stack[--depth].low;
        high = stack[depth].high;
    }
}

CORPUS_FN void sorting_fill(int32_t *values, uint32_t seed) {
    for (uint32_t i = 0; i < SORTING_COUNT; i++) {
        values[i] = (int32_t)(corpus_mix(seed * 1000 + i) % 200) - 100;
    }
}

#endif
