/*
 * Example 4, pipeline: blocks are copied in, worked on and copied out, all three at once.
 *
 * The program gives three functions: one that fills a block, one that queues the work, and one that
 * takes what came back. Streams, events and pinned memory are the pipeline's.
 */
#include <stdio.h>
#include <tollens.h>

#define TRY(call)                                                                                  \
    if ((call) != TOL_OK) return fprintf(stderr, "%s\n", tol_message()), 1

static const char ptx[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
                          ".visible .entry twice(.param .u64 data) {\n"
                          "  .reg .b32 %i<5>; .reg .b64 %p<2>;\n"
                          "  mov.u32 %i0, %ctaid.x;  mov.u32 %i1, %ntid.x;  mov.u32 %i2, %tid.x;\n"
                          "  mad.lo.u32 %i3, %i0, %i1, %i2;\n"
                          "  ld.param.u64 %p0, [data];  mad.wide.u32 %p1, %i3, 4, %p0;\n"
                          "  ld.global.u32 %i4, [%p1];\n"
                          "  shl.b32 %i4, %i4, 1;\n"
                          "  st.global.u32 [%p1], %i4;\n"
                          "  ret;\n}\n";

enum { BLOCKS = 20, WORDS = 1 << 14 };

struct program {
    struct tol_kernel *twice;
    unsigned long long sum;
};

static tol_status fill(void *user, unsigned long long index, void *data) {
    (void)user;
    if (index == BLOCKS) return TOL_NOT_FOUND; /* there are no more */
    for (unsigned i = 0; i < WORDS; i++) ((unsigned *)data)[i] = (unsigned)index + i;
    return TOL_OK;
}

static tol_status work(void *user, struct tol_stream *stream,
                       const struct tol_pipeline_block *block) {
    struct program *program = user;
    return tol_launch(stream, program->twice, tol_launch_linear(WORDS, 256),
                      TOL_ARGUMENTS(tol_buffer_address(block->input)));
}

static tol_status take(void *user, unsigned long long index, const void *data) {
    struct program *program = user;
    (void)index;
    for (int i = 0; i < WORDS; i++) program->sum += ((const unsigned *)data)[i];
    return TOL_OK;
}

int main(void) {
    tol_auto_driver struct tol_driver *driver = NULL;
    tol_auto_context struct tol_context *context = NULL;
    tol_auto_module struct tol_module *module = NULL;
    tol_auto_pipeline struct tol_pipeline *pipeline = NULL;
    struct program program = {0};
    const struct tol_pipeline_options options = {
        .input_bytes = 4 * WORDS, .fill = fill, .work = work, .take = take, .user = &program};
    unsigned long long blocks = 0, expected = 0;
    TRY(tol_driver_open(NULL, &driver));
    TRY(tol_context_create(driver, 0, &context));
    TRY(tol_module_load(context, ptx, sizeof ptx - 1, NULL, &module));
    TRY(tol_module_kernel(module, "twice", &program.twice));
    TRY(tol_pipeline_create(context, &options, &pipeline));
    TRY(tol_pipeline_run(pipeline, &blocks));
    for (unsigned long long n = 0; n < BLOCKS; n++) {
        for (unsigned i = 0; i < WORDS; i++) expected += 2 * (n + i);
    }
    printf("%llu blocks came back with a sum of %llu, as expected %llu\n", blocks, program.sum,
           expected);
    return program.sum != expected;
}
