/*
 * gated against the definition in double, and what is around its rows.
 */
#include "decode/gated.h"
#include "guarded.h"
#include "inputs.h"
#include "kernel_scene.h"

#include "test/test_device.h"

#include <math.h>
#include <stdlib.h>

TestSuite(gated, .fini = kernel_scene_end);

static void check(size_t rows, size_t columns, size_t gate_stride) {
    const size_t y_count = rows * columns;
    uint64_t state = 5;
    float *gate = malloc((rows * gate_stride + 2 * y_count) * sizeof *gate);
    float *y = gate + rows * gate_stride, *got = y + y_count;
    tol_auto_buffer struct tol_buffer *gates = NULL;
    struct kn_guarded out = {0};
    size_t changed = 1;
    cr_assert(gate != NULL);
    kn_inputs_draw(KN_NORMAL, &state, 8, gate, rows * gate_stride);
    kn_inputs_draw(KN_NORMAL, &state, 3, y, y_count);
    gate[0] = 200, gate[1] = -200, gate[2] = 0;
    MUST(tol_buffer_create(test_context(), rows * gate_stride, sizeof *gate, &gates));
    MUST(tol_buffer_write(gates, gate, rows * gate_stride * sizeof *gate));
    MUST(kn_guarded_create(test_context(), y_count * sizeof *y, 4, &out));
    MUST(kn_guarded_write(&out, y));
    MUST(kn_gated(kernels, stream,
                  &(struct kn_gated){.rows = rows,
                                     .columns = columns,
                                     .gate = kn_place_of(gates, 0),
                                     .y = {tol_buffer_address(out.buffer) + out.offset, out.bytes},
                                     .gate_stride = gate_stride,
                                     .y_stride = columns}));
    MUST(tol_stream_synchronize(stream));
    MUST(kn_guarded_read(&out, got));
    MUST(kn_guarded_check(&out, &changed));
    cr_assert(changed == 0);
    for (size_t i = 0; i < y_count; i++) {
        const double g = (double)gate[i / columns * gate_stride + i % columns];
        const double expected = g / (1 + exp(-g)) * (double)y[i];
        cr_assert(!(fabs((double)got[i] - expected) > 0x1p-21 * fabs(expected) + 1e-37),
                  "element %zu: %g and not %g", i, (double)got[i], expected);
    }
    kn_guarded_destroy(&out);
    free(gate);
}

Test(gated, is_the_definition) {
    kernel_scene_begin();
    check(1, 3, 3);
    check(5, 130, 137);
    check(2, 9000, 9000); /* more than the blocks of a row take at once */
}

Test(gated, what_makes_no_sense_is_refused) {
    kernel_scene_begin();
    struct kn_gated x = {2, 8, {0x1000, 64}, {0x2000, 64}, 8, 8};
    x.y_stride = 7;
    MUST_FAIL(kn_gated(kernels, stream, &x), TOL_INVALID_ARGUMENT, "7 apart");
    x.y_stride = 8, x.gate.bytes--;
    MUST_FAIL(kn_gated(kernels, stream, &x), TOL_OUT_OF_RANGE, "2 rows of gate");
    x.gate = (struct kn_place){0x1002, 64};
    MUST_FAIL(kn_gated(kernels, stream, &x), TOL_INVALID_ARGUMENT, "gate at");
    MUST_FAIL(kn_gated(kernels, stream, NULL), TOL_INVALID_ARGUMENT, "a problem");
    x.rows = 0;
    MUST(kn_gated(kernels, stream, &x));
}
