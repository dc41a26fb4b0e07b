/*
 * Example 5, graph: a hundred small kernels launched as one.
 *
 * A launch costs the host some microseconds; a node of a graph a fraction of one. A batch makes the
 * graph, and where it is filled again with other arguments, changes it in place.
 */
#include <stdio.h>
#include <tollens.h>

#define TRY(call)                                                                                  \
    if ((call) != TOL_OK) return fprintf(stderr, "%s\n", tol_message()), 1

static const char ptx[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
                          ".visible .entry increase(.param .u64 count, .param .u32 by) {\n"
                          "  .reg .b32 %i<3>; .reg .b64 %p;\n"
                          "  ld.param.u64 %p, [count];\n"
                          "  ld.param.u32 %i0, [by];\n"
                          "  ld.global.u32 %i1, [%p];\n"
                          "  add.u32 %i2, %i1, %i0;\n"
                          "  st.global.u32 [%p], %i2;\n"
                          "  ret;\n}\n";

enum { KERNELS = 100, ROUNDS = 3 };

int main(void) {
    tol_auto_driver struct tol_driver *driver = NULL;
    tol_auto_context struct tol_context *context = NULL;
    tol_auto_stream struct tol_stream *stream = NULL;
    tol_auto_module struct tol_module *module = NULL;
    tol_auto_buffer struct tol_buffer *count = NULL;
    tol_auto_batch struct tol_batch *batch = NULL;
    struct tol_kernel *increase = NULL;
    struct tol_batch_stats stats;
    unsigned found = 0, expected = 0;
    TRY(tol_driver_open(NULL, &driver));
    TRY(tol_context_create(driver, 0, &context));
    TRY(tol_stream_create(context, NULL, &stream));
    TRY(tol_module_load(context, ptx, sizeof ptx - 1, NULL, &module));
    TRY(tol_module_kernel(module, "increase", &increase));
    TRY(tol_buffer_create(context, 1, sizeof found, &count));
    TRY(tol_buffer_write(count, &found, sizeof found));
    TRY(tol_batch_create(context, NULL, &batch)); /* NULL: each runs after the previous one */
    for (unsigned round = 1; round <= ROUNDS; round++) {
        TRY(tol_batch_clear(batch));
        for (unsigned i = 0; i < KERNELS; i++) {
            TRY(tol_batch_add(batch, increase, tol_launch_linear(1, 1),
                              TOL_ARGUMENTS(tol_buffer_address(count), round * i)));
            expected += round * i;
        }
        TRY(tol_batch_launch(batch, stream));
    }
    TRY(tol_stream_synchronize(stream));
    TRY(tol_buffer_read(count, &found, sizeof found));
    TRY(tol_batch_stats(batch, &stats));
    printf("%d kernels in %llu launches: %u, as expected %u; %llu graph was made\n",
           KERNELS * ROUNDS, (unsigned long long)stats.launches, found, expected,
           (unsigned long long)stats.graphs);
    return found != expected;
}
