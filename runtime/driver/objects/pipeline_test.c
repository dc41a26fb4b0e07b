/*
 * Pipelines: every block comes out once, in order and exact; failures end them and leave no harm.
 */
#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>

TestSuite(pipeline, .fini = test_end);

enum { WORDS = 3000 };

struct job {
    struct tol_kernel *add; /* out = in + in, through vector_add */
    unsigned long long blocks, taken;
    unsigned wrong;
    unsigned long long fail_at;
    int fail_in; /* 1: fill, 2: work, 3: take */
};

static float value(unsigned long long block, unsigned i) {
    return (float)((block * 31 + i) % 4099);
}

static tol_status fill(void *user, unsigned long long index, void *data) {
    struct job *job = user;
    if (index == job->blocks) return TOL_NOT_FOUND;
    if (job->fail_in == 1 && index == job->fail_at) return TOL_SIZE_MISMATCH;
    for (unsigned i = 0; i < WORDS; i++) ((float *)data)[i] = value(index, i);
    return TOL_OK;
}

static tol_status work(void *user, struct tol_stream *stream,
                       const struct tol_pipeline_block *block) {
    struct job *job = user;
    if (job->fail_in == 2 && block->index == job->fail_at) return TOL_SIZE_MISMATCH;
    return tol_launch(stream, job->add, tol_launch_linear(WORDS, 256),
                      TOL_ARGUMENTS(tol_buffer_address(block->input),
                                    tol_buffer_address(block->input),
                                    tol_buffer_address(block->output), (unsigned)WORDS));
}

static tol_status take(void *user, unsigned long long index, const void *data) {
    struct job *job = user;
    if (job->fail_in == 3 && index == job->fail_at) return TOL_SIZE_MISMATCH;
    job->wrong += index != job->taken++;
    for (unsigned i = 0; i < WORDS; i++) {
        job->wrong += ((const float *)data)[i] != 2 * value(index, i);
    }
    return TOL_OK;
}

static struct tol_pipeline *new_pipeline(struct job *job, size_t output_bytes, unsigned slots,
                                         bool serial) {
    struct tol_pipeline *pipeline = NULL;
    job->add = test_kernel("vector_add");
    MUST(tol_pipeline_create(test_context(),
                             &(struct tol_pipeline_options){.input_bytes = 4 * WORDS,
                                                            .output_bytes = output_bytes,
                                                            .slots = slots,
                                                            .serial = serial,
                                                            .fill = fill,
                                                            .work = work,
                                                            .take = take,
                                                            .user = job},
                             &pipeline));
    return pipeline;
}

Test(pipeline, every_block_comes_out_once_and_exact) {
    static const unsigned long long counts[] = {0, 1, 2, 3, 4, 5, 23};
    for (unsigned way = 0; way < 6; way++) {
        struct job job = {0};
        /* With an output of its own and in place, with 2, 3 and 4 slots, serial and not. */
        struct tol_pipeline *pipeline =
            new_pipeline(&job, way % 2 == 0 ? 4 * WORDS : 0, 2 + way / 2, way % 3 == 2);
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            unsigned long long blocks = 99;
            job.blocks = counts[i];
            job.taken = 0;
            MUST(tol_pipeline_run(pipeline, &blocks));
            cr_assert(blocks == counts[i] && job.taken == counts[i] && job.wrong == 0,
                      "way %u, %llu blocks: %llu taken, %u wrong", way, counts[i], blocks,
                      job.wrong);
        }
        tol_pipeline_destroy(pipeline);
    }
}

Test(pipeline, says_when_each_step_ran) {
    struct job job = {.blocks = 6};
    struct tol_pipeline *pipeline = new_pipeline(&job, 0, 3, false);
    struct tol_pipeline_times times, before = {{0}, {0}, {0}};
    MUST(tol_pipeline_run(pipeline, NULL));
    MUST_FAIL(tol_pipeline_times(pipeline, 2, &times), TOL_NOT_FOUND, "block 2");
    for (unsigned long long i = 3; i < 6; i++) {
        MUST(tol_pipeline_times(pipeline, i, &times));
        const double order[] = {0,
                                times.to_device[0],
                                times.to_device[1],
                                times.work[0],
                                times.work[1],
                                times.to_host[0],
                                times.to_host[1]};
        for (int k = 1; k < 7; k++)
            cr_assert(order[k] >= order[k - 1], "block %llu, step %d", i, k);
        cr_assert(times.work[0] >= before.work[1] && times.to_host[0] >= before.to_host[1]);
        before = times;
    }
    tol_pipeline_destroy(pipeline);
}

Test(pipeline, a_failure_ends_it_and_it_runs_again) {
    for (int in = 1; in <= 3; in++) {
        struct job job = {.blocks = 9, .fail_at = 5, .fail_in = in};
        struct tol_pipeline *pipeline = new_pipeline(&job, 0, 3, false);
        unsigned long long blocks = 99;
        cr_assert(tol_pipeline_run(pipeline, &blocks) == TOL_SIZE_MISMATCH);
        cr_assert(blocks <= 5 && job.wrong == 0, "%llu blocks", blocks);
        job.fail_in = 0;
        job.taken = 0;
        MUST(tol_pipeline_run(pipeline, &blocks));
        cr_assert(blocks == 9 && job.wrong == 0, "%llu blocks, %u wrong", blocks, job.wrong);
        tol_pipeline_destroy(pipeline);
    }
}

Test(pipeline, refuses_what_makes_no_sense) {
    struct tol_pipeline *pipeline = NULL;
    struct tol_pipeline_options options = {.fill = fill, .work = work, .take = take};
    MUST_FAIL(tol_pipeline_create(test_context(), &options, &pipeline), TOL_INVALID_ARGUMENT,
              "input_bytes is 0");
    options.input_bytes = 4;
    options.slots = 1;
    MUST_FAIL(tol_pipeline_create(test_context(), &options, &pipeline), TOL_INVALID_ARGUMENT,
              "2 to 64");
    options.slots = 0;
    options.take = NULL;
    MUST_FAIL(tol_pipeline_create(test_context(), &options, &pipeline), TOL_INVALID_ARGUMENT,
              "take");
    MUST_FAIL(tol_pipeline_run(NULL, NULL), TOL_INVALID_ARGUMENT, "NULL");
}
