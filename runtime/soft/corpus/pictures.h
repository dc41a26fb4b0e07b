/*
 * The Mandelbrot set, and Conway's life. Products and sums are written with fma where the compilers
 * would differ in joining them.
 */
#ifndef CORPUS_PICTURES_H
#define CORPUS_PICTURES_H

#include "corpus.h"
#include <math.h>

CORPUS_FN uint32_t pictures_escape(float cx, float cy, uint32_t limit) {
    float x = 0, y = 0;
    uint32_t n = 0;
    for (; n < limit; n++) {
        float yy = y * y;
        if (fmaf(x, x, yy) > 4.0f) break;
        float next = fmaf(x, x, cx - yy);
        y = fmaf(2.0f * x, y, cy);
        x = next;
    }
    return n;
}

CORPUS_FN uint32_t pictures_escape_double(double cx, double cy, uint32_t limit) {
    double x = 0, y = 0;
    uint32_t n = 0;
    for (; n < limit; n++) {
        double yy = y * y;
        if (fma(x, x, yy) > 4.0) break;
        double next = fma(x, x, cx - yy);
        y = fma(2.0 * x, y, cy);
        x = next;
    }
    return n;
}

CORPUS_FN uint8_t pictures_lives(uint8_t alive, uint32_t neighbours) {
    return neighbours == 3 || (alive && neighbours == 2);
}

#endif
