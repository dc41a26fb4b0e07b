/*
 * Example 6, Q4_K product: a matrix of 4.5 bits an element, as GGUF files hold it, times a vector.
 *
 * The kernels are a library of their own (tollens-kernels): an operation picks the one that serves
 * the device and the problem, and refuses what does not fit before anything is queued.
 */
#include "choose/kernel_set.h"
#include "quantised/product/quant_product.h"
#include "quantised/formats/quantise.h"

#include <math.h>
#include <stdio.h>
#include <tollens.h>

#define TRY(call)                                                                                  \
    if ((call) != TOL_OK) return fprintf(stderr, "%s\n", tol_message()), 1

enum { ROWS = 64, K = 512, BLOCK_BYTES = 144, BYTES = ROWS * K / 256 * BLOCK_BYTES };

int main(void) {
    static float weights[ROWS * K], x[K], y[ROWS];
    static unsigned char blocks[BYTES];
    tol_auto_driver struct tol_driver *driver = NULL;
    tol_auto_context struct tol_context *context = NULL;
    tol_auto_stream struct tol_stream *stream = NULL;
    tol_auto_buffer struct tol_buffer *blocks_there = NULL;
    tol_auto_buffer struct tol_buffer *x_there = NULL;
    tol_auto_buffer struct tol_buffer *y_there = NULL;
    struct kn_kernels *kernels = NULL;
    double worst = 0;
    for (int i = 0; i < ROWS * K; i++) weights[i] = sinf((float)i);
    for (int l = 0; l < K; l++) x[l] = cosf((float)l);
    TRY(kn_quantise(KN_Q4_K, weights, ROWS * K, blocks));
    TRY(tol_driver_open(NULL, &driver));
    TRY(tol_context_create(driver, 0, &context));
    TRY(tol_stream_create(context, NULL, &stream));
    TRY(kn_kernels_create(context, &kernels));
    TRY(tol_buffer_create(context, BYTES, 1, &blocks_there));
    TRY(tol_buffer_create(context, K, sizeof x[0], &x_there));
    TRY(tol_buffer_create(context, ROWS, sizeof y[0], &y_there));
    TRY(tol_buffer_write(blocks_there, blocks, sizeof blocks));
    TRY(tol_buffer_write(x_there, x, sizeof x));
    const struct kn_quant_product product = {.quant = KN_Q4_K,
                                             .arithmetic = KN_QUANT_F32,
                                             .rows = ROWS,
                                             .columns = 1,
                                             .k = K,
                                             .weights = kn_place_of(blocks_there, 0),
                                             .x = kn_place_of(x_there, 0),
                                             .y = kn_place_of(y_there, 0)};
    TRY(kn_quant_product(kernels, stream, &product));
    TRY(tol_stream_synchronize(stream));
    TRY(tol_buffer_read(y_there, y, sizeof y));
    for (int i = 0; i < ROWS; i++) {
        double exact = 0;
        for (int l = 0; l < K; l++) exact += (double)weights[i * K + l] * x[l];
        worst = fmax(worst, fabs(y[i] - exact));
    }
    printf("%d bytes represent %d floats; the worst of %d sums is off by %.2f\n", BYTES, ROWS * K,
           ROWS, worst);
    kn_kernels_destroy(kernels);
    return !(worst < 2);
}
