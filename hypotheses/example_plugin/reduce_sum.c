/*
 * Each thread sums the numbers at a stride of the whole grid and adds its sum to one total.
 */
#include "reduce_sum.h"

#include <stdlib.h>

static const char ptx[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
                          ".visible .entry sum(.param .u64 values, .param .u32 count,\n"
                          "                    .param .u64 total) {\n"
                          "  .reg .pred %done; .reg .b32 %i<7>; .reg .b64 %d<5>;\n"
                          "  mov.u32 %i0, %ctaid.x;  mov.u32 %i1, %ntid.x;  mov.u32 %i2, %tid.x;\n"
                          "  mad.lo.u32 %i3, %i0, %i1, %i2;\n"
                          "  mov.u32 %i4, %nctaid.x;  mul.lo.u32 %i4, %i4, %i1;\n"
                          "  ld.param.u32 %i5, [count];  ld.param.u64 %d0, [values];\n"
                          "  mov.u64 %d1, 0;\n"
                          "next:\n"
                          "  setp.ge.u32 %done, %i3, %i5;\n"
                          "  @%done bra last;\n"
                          "  mad.wide.u32 %d2, %i3, 4, %d0;\n"
                          "  ld.global.u32 %i6, [%d2];\n"
                          "  cvt.u64.u32 %d3, %i6;\n"
                          "  add.u64 %d1, %d1, %d3;\n"
                          "  add.u32 %i3, %i3, %i4;\n"
                          "  bra next;\n"
                          "last:\n"
                          "  ld.param.u64 %d4, [total];\n"
                          "  red.global.add.u64 [%d4], %d1;\n"
                          "  ret;\n}\n";

enum { BLOCK = 128, BLOCKS_MAX = 32 };

struct reduce_sum {
    struct tol_module *module;
    struct tol_kernel *kernel;
    struct tol_buffer *total;
};

tol_status reduce_sum_create(struct tol_context *context, struct reduce_sum **reduce) {
    struct reduce_sum *made = calloc(1, sizeof *made);
    if (made == NULL) return TOL_OUT_OF_HOST_MEMORY;
    tol_status status = tol_module_load(context, ptx, sizeof ptx - 1, NULL, &made->module);
    if (status == TOL_OK) status = tol_module_kernel(made->module, "sum", &made->kernel);
    if (status == TOL_OK) status = tol_buffer_create(context, 1, sizeof(uint64_t), &made->total);
    if (status == TOL_OK) {
        *reduce = made;
    } else {
        reduce_sum_destroy(made);
    }
    return status;
}

void reduce_sum_destroy(struct reduce_sum *reduce) {
    if (reduce == NULL) return;
    tol_buffer_destroy(reduce->total);
    tol_module_destroy(reduce->module);
    free(reduce);
}

tol_status reduce_sum_run(struct reduce_sum *reduce, struct tol_stream *stream,
                          const struct tol_buffer *values, uint32_t first, uint32_t count,
                          uint64_t *sum) {
    uint64_t held = tol_buffer_bytes(values) / sizeof(uint32_t);
    if (first > held || count > held - first) return TOL_OUT_OF_RANGE;
#ifdef REDUCE_SUM_LOSES_TAIL /* a typical bug, to see the claim falsified */
    count -= count % 32;
#endif
    tol_status status = tol_buffer_fill_at(reduce->total, 0, 0, 1, sizeof *sum);
    if (status == TOL_OK && count > 0) {
        struct tol_launch_shape shape = tol_launch_linear(count, BLOCK);
        if (shape.grid_x > BLOCKS_MAX) shape.grid_x = BLOCKS_MAX;
        status = tol_launch(stream, reduce->kernel, shape,
                            TOL_ARGUMENTS(tol_buffer_address(values) + first * sizeof(uint32_t),
                                          count, tol_buffer_address(reduce->total)));
    }
    if (status == TOL_OK) status = tol_stream_synchronize(stream);
    if (status == TOL_OK) status = tol_buffer_read(reduce->total, sum, sizeof *sum);
    return status;
}
