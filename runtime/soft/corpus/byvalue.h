/*
 * Structures by value: parameters and results of several sizes and alignments, and a union.
 */
#ifndef CORPUS_BYVALUE_H
#define CORPUS_BYVALUE_H

#include "corpus.h"

struct small {
    int8_t a;
    uint16_t b;
};

struct turn { /* a rational complex number */
    int64_t re, im;
};

struct mixed {
    uint8_t tag;
    int16_t s;
    uint32_t u;
    double d;
    char text[5];
    struct small inner;
};

union either {
    float f;
    uint32_t u;
    uint8_t bytes[4];
};

CORPUS_CALLED struct small small_add(struct small x, struct small y) {
    struct small sum;
    sum.a = (int8_t)(x.a + y.a);
    sum.b = (uint16_t)(x.b * 3 + y.b);
    return sum;
}

CORPUS_CALLED struct turn turn_by(struct turn x, struct turn y) {
    struct turn product;
    product.re = x.re * y.re - x.im * y.im;
    product.im = x.re * y.im + x.im * y.re;
    return product;
}

CORPUS_CALLED struct mixed mixed_next(struct mixed m, uint32_t by) {
    struct small step;
    step.a = (int8_t)by;
    step.b = (uint16_t)(by * 7);
    m.inner = small_add(m.inner, step);
    m.tag = (uint8_t)(m.tag + by);
    m.s = (int16_t)(m.s - m.tag);
    m.u = m.u * 5 + (uint32_t)m.s;
    m.d = m.d / 2 + m.inner.b;
    m.text[by % 5] = (char)('a' + by % 26);
    return m;
}

CORPUS_CALLED union either either_of(uint32_t i) {
    union either e;
    if (i % 2) {
        e.f = (float)i;
    } else {
        e.u = i * 0x01020408u;
    }
    e.bytes[i & 3] ^= 1;
    return e;
}

CORPUS_FN uint32_t byvalue_run(uint32_t i) {
    struct mixed m = {1, -2, i, 0.5, {'a', 'b', 'c', 'd', 'e'}, {3, 4}};
    struct turn t = {1, 0}, quarter = {3, (int64_t)i};
    for (uint32_t n = 0; n < 1 + i % 7; n++) {
        m = mixed_next(m, i + n);
        t = turn_by(t, quarter);
    }
    uint32_t hash = m.tag + (uint32_t)m.s * 3u + m.u * 5u + (uint32_t)m.d * 7u;
    for (int k = 0; k < 5; k++) hash = hash * 31 + (uint32_t)m.text[k];
    hash = hash * 31 + (uint32_t)(uint8_t)m.inner.a;
    hash = hash * 31 + m.inner.b;
    hash ^= (uint32_t)t.re ^ (uint32_t)(t.im >> 7);
    return hash ^ either_of(i).u;
}

#endif
