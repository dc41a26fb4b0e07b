/*
 * Example 7, attention: two heads of queries share a head of keys and values, from arrays of the
 * host and back.
 *
 * The result is compared with the formula, evaluated in double: softmax(q k^T / sqrt(size)) v.
 */
#include "attention/forward/attention.h"

#include <math.h>
#include <stdio.h>
#include <tollens.h>

#define TRY(call)                                                                                  \
    if ((call) != TOL_OK) return fprintf(stderr, "%s\n", tol_message()), 1

enum { HEADS = 2, QUERIES = 5, KEYS = 37, SIZE = 64 };

/* The exact element d of a query's row. */
static double exact(const float *query, const float *k, const float *v, int d) {
    double weighted = 0, sum = 0;
    for (int key = 0; key < KEYS; key++) {
        double score = 0;
        for (int i = 0; i < SIZE; i++) score += (double)query[i] * k[key * SIZE + i];
        const double weight = exp(score / sqrt(SIZE));
        weighted += weight * v[key * SIZE + d];
        sum += weight;
    }
    return weighted / sum;
}

int main(void) {
    static float q[HEADS * QUERIES * SIZE], k[KEYS * SIZE], v[KEYS * SIZE];
    static float out[HEADS * QUERIES * SIZE];
    tol_auto_driver struct tol_driver *driver = NULL;
    tol_auto_context struct tol_context *context = NULL;
    tol_auto_stream struct tol_stream *stream = NULL;
    tol_auto_buffer struct tol_buffer *q_there = NULL;
    tol_auto_buffer struct tol_buffer *k_there = NULL;
    tol_auto_buffer struct tol_buffer *v_there = NULL;
    tol_auto_buffer struct tol_buffer *out_there = NULL;
    struct kn_kernels *kernels = NULL;
    double worst = 0;
    for (int i = 0; i < HEADS * QUERIES * SIZE; i++) q[i] = sinf((float)i);
    for (int i = 0; i < KEYS * SIZE; i++) k[i] = cosf((float)i), v[i] = sinf((float)(3 * i));
    TRY(tol_driver_open(NULL, &driver));
    TRY(tol_context_create(driver, 0, &context));
    TRY(tol_stream_create(context, NULL, &stream));
    TRY(kn_kernels_create(context, &kernels));
    TRY(tol_buffer_create(context, sizeof q / sizeof(float), sizeof(float), &q_there));
    TRY(tol_buffer_create(context, sizeof k / sizeof(float), sizeof(float), &k_there));
    TRY(tol_buffer_create(context, sizeof v / sizeof(float), sizeof(float), &v_there));
    TRY(tol_buffer_create(context, sizeof out / sizeof(float), sizeof(float), &out_there));
    TRY(tol_buffer_write(q_there, q, sizeof q));
    TRY(tol_buffer_write(k_there, k, sizeof k));
    TRY(tol_buffer_write(v_there, v, sizeof v));
    const struct kn_attention attention = {.type = KN_F32,
                                           .batch = 1,
                                           .heads = HEADS,
                                           .kv_heads = 1,
                                           .q_length = QUERIES,
                                           .kv_length = KEYS,
                                           .head_size = SIZE,
                                           .q = {.buffer = q_there},
                                           .k = {.buffer = k_there},
                                           .v = {.buffer = v_there},
                                           .out = {.buffer = out_there}};
    TRY(kn_attention(kernels, stream, &attention));
    TRY(tol_stream_synchronize(stream));
    TRY(tol_buffer_read(out_there, out, sizeof out));
    for (int row = 0; row < HEADS * QUERIES; row++) {
        for (int d = 0; d < SIZE; d++) {
            const double difference = out[row * SIZE + d] - exact(&q[row * SIZE], k, v, d);
            worst = fmax(worst, fabs(difference));
        }
    }
    printf("%d rows of %d elements; the worst is off by %.1e\n", HEADS * QUERIES, SIZE, worst);
    kn_kernels_destroy(kernels);
    return !(worst < 1e-5);
}
