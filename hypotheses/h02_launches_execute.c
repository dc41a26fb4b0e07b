/*
 * H2: a launch runs every thread once, with its own indices.
 *
 * `tollens explain H2` prints the text below.
 */
#include "harness/attack.h"
#include "harness/claim.h"
#include "harness/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

HYP_WORDS(
    2,
    .claim = "A launch of any allowed shape runs each of its threads exactly once, with that "
             "thread's own indices, and writes nothing else. A shape that is not allowed is "
             "rejected before it reaches the driver.",
    .prediction = "0 violations: every element holds the value computed from its thread's six "
                  "indices, the total equals the number of threads, and the guard words are "
                  "unchanged.",
    .falsified_if = "an element or the total has another value, a guard word changes, or the "
                    "driver is called with an empty shape or one beyond a limit.",
    .method = "Run the kernel stamp over 1-D, 2-D and 3-D grids, with every block size from 1 to "
              "1024, prime sizes and random shapes, into memory that is poisoned before each "
              "launch; and 200,000 small launches (20,000 in quick mode on the soft device, "
              "100,000 on a GPU) almost without waits, each into its own words; and graphs whose "
              "node changes. Launch with all shared memory that the device reports, and as many "
              "blocks at once as it reports.",
    .control = "The poison is not a value that stamp writes for these seeds, and each launch has "
               "its own seed, so an old result cannot pass for a new one.",
    .confounders = "A wrong formula on the host would blame the device. The hash mixes in one "
                   "index at a time, so swapped or constant indices change it.")

enum { GUARD_WORDS = 1024, POISON = 0xa5, WARP = 32 };

struct stage {
    struct tol_stream *stream;
    struct tol_kernel *stamp;
    struct tol_buffer *out;   /* guard, elements, guard */
    struct tol_buffer *total; /* guard, one word, guard */
    size_t words_max;
    unsigned *host;
    unsigned seed;
};

static bool h02_launches_execute_begin(struct hyp_attack *attack, struct stage *stage,
                                       size_t words_max) {
    memset(stage, 0, sizeof *stage);
    stage->words_max = words_max;
    stage->host = malloc((words_max + (size_t)2 * GUARD_WORDS) * sizeof *stage->host);
    cr_assert(stage->host != NULL, "no memory for %zu words", words_max);
    stage->stamp = hyp_attack_kernel(attack, "stamp");
    return stage->stamp != NULL &&
           HYP_OK(attack, tol_stream_create(attack->context, NULL, &stage->stream)) &&
           HYP_OK(attack, tol_buffer_create(attack->context, words_max + (size_t)2 * GUARD_WORDS,
                                            sizeof(unsigned), &stage->out)) &&
           HYP_OK(attack, tol_buffer_create(attack->context, 2 * GUARD_WORDS + 1, sizeof(unsigned),
                                            &stage->total));
}

static void h02_launches_execute_end(struct stage *stage) {
    tol_buffer_destroy(stage->out);
    tol_buffer_destroy(stage->total);
    tol_stream_destroy(stage->stream);
    free(stage->host);
}

/* The formula of kernels/basics/stamp.cu, reimplemented on the host. */
static unsigned launches_mix(unsigned hash, unsigned value) {
    hash = (hash ^ value) * 0x9e3779b1u;
    return hash ^ hash >> 15;
}

static const unsigned poison_word = POISON * 0x01010101u;

static bool launches_check_guard(struct hyp_attack *attack, const unsigned *words, size_t count,
                                 const char *what) {
    for (size_t i = 0; i < count; i++) {
        if (words[i] != poison_word) {
            return HYP_CHECK(attack, false, "word %zu of the guard %s was changed to %#x", i, what,
                             words[i]);
        }
    }
    return true;
}

/* Compares all elements and reports the first that differs. */
static bool check_elements(struct hyp_attack *attack, const struct tol_launch_shape *s,
                           unsigned seed, const unsigned *words) {
    for (unsigned bz = 0; bz < s->grid_z; bz++)
        for (unsigned by = 0; by < s->grid_y; by++)
            for (unsigned bx = 0; bx < s->grid_x; bx++)
                for (unsigned tz = 0; tz < s->block_z; tz++)
                    for (unsigned ty = 0; ty < s->block_y; ty++) {
                        for (unsigned tx = 0; tx < s->block_x; tx++, words++) {
                            unsigned hash =
                                launches_mix(launches_mix(launches_mix(seed, tx), ty), tz);
                            hash = launches_mix(launches_mix(launches_mix(hash, bx), by), bz);
                            if (*words == hash) continue;
                            return HYP_CHECK(
                                attack, false,
                                "grid (%u,%u,%u) of blocks (%u,%u,%u): thread "
                                "(%u,%u,%u) of block (%u,%u,%u) wrote %#x, expected %#x",
                                s->grid_x, s->grid_y, s->grid_z, s->block_x, s->block_y, s->block_z,
                                tx, ty, tz, bx, by, bz, *words, hash);
                        }
                    }
    return HYP_CHECK(attack, true, "%s", "");
}

/* Poisons the memory, launches, and compares everything. */
static void launches_stamp(struct hyp_attack *attack, struct stage *stage,
                           struct tol_launch_shape shape) {
    size_t threads = (size_t)shape.grid_x * shape.grid_y * shape.grid_z * shape.block_x *
                     shape.block_y * shape.block_z;
    size_t words = threads + (size_t)2 * GUARD_WORDS;
    unsigned totals[2 * GUARD_WORDS + 1];
    CUdeviceptr out = tol_buffer_address(stage->out) + GUARD_WORDS * sizeof(unsigned);
    CUdeviceptr total = tol_buffer_address(stage->total) + GUARD_WORDS * sizeof(unsigned);
    struct tol_hdr *series = hyp_attack_series(attack, "launch_and_synchronize");
    unsigned seed = (unsigned)hyp_random(attack);
    cr_assert(threads <= stage->words_max, "%zu threads do not fit the stage", threads);

    HYP_NEED(attack, tol_buffer_fill_at(stage->out, 0, poison_word, 4, words));
    HYP_NEED(attack, tol_buffer_fill_at(stage->total, 0, poison_word, 4, 2 * GUARD_WORDS + 1));
    HYP_NEED(attack, tol_buffer_fill_at(stage->total, GUARD_WORDS * sizeof(unsigned), 0, 4, 1));
    uint64_t begin_ns = hyp_clock_ns();
    HYP_NEED(attack,
             tol_launch(stage->stream, stage->stamp, shape, TOL_ARGUMENTS(out, total, seed)));
    HYP_NEED(attack, tol_stream_synchronize(stage->stream));
    tol_hdr_record(series, (int64_t)(hyp_clock_ns() - begin_ns));
    HYP_NEED(attack, tol_buffer_read_at(stage->out, 0, stage->host, words * sizeof(unsigned)));
    HYP_NEED(attack, tol_buffer_read_at(stage->total, 0, totals, sizeof totals));

    check_elements(attack, &shape, seed, stage->host + GUARD_WORDS);
    launches_check_guard(attack, stage->host, GUARD_WORDS, "before the elements");
    launches_check_guard(attack, stage->host + GUARD_WORDS + threads, GUARD_WORDS,
                         "after the elements");
    launches_check_guard(attack, totals, GUARD_WORDS, "before the total");
    launches_check_guard(attack, totals + GUARD_WORDS + 1, GUARD_WORDS, "after the total");
    HYP_CHECK(attack, totals[GUARD_WORDS] == threads,
              "grid (%u,%u,%u) of blocks (%u,%u,%u): %u threads ran, expected %zu", shape.grid_x,
              shape.grid_y, shape.grid_z, shape.block_x, shape.block_y, shape.block_z,
              totals[GUARD_WORDS], threads);
}

HYP_ATTACK(h02, every_block_size_runs_every_thread) {
    struct stage stage;
    if (h02_launches_execute_begin(attack, &stage, 8 * 1024)) {
        for (unsigned block = 1; block <= 1024; block++) {
            unsigned grid = 1 + (unsigned)hyp_random_below(attack, 7);
            launches_stamp(attack, &stage, (struct tol_launch_shape){grid, 1, 1, block, 1, 1, 0});
            hyp_attack_progress(attack, block / 1024.0);
        }
    }
    h02_launches_execute_end(&stage);
}

/* Each dimension up to its limit, primes, and warps that straddle rows. */
HYP_ATTACK(h02, planes_and_volumes_know_their_indices) {
    static const struct tol_launch_shape shapes[] = {
        {1, 1, 1, 1, 1, 1, 0},     {1, 1, 1, 1024, 1, 1, 0},  {1, 1, 1, 1, 1024, 1, 0},
        {1, 1, 1, 1, 1, 64, 0},    {1, 1, 1, 16, 1, 64, 0},   {1, 1, 1, 4, 4, 64, 0},
        {1, 1, 1, 32, 32, 1, 0},   {1, 1, 1, 10, 10, 10, 0},  {7, 1, 1, 31, 33, 1, 0},
        {5, 3, 1, 7, 11, 1, 0},    {3, 5, 7, 5, 3, 2, 0},     {2, 3, 5, 13, 7, 11, 0},
        {1, 65535, 1, 1, 1, 1, 0}, {1, 1, 65535, 1, 1, 1, 0}, {65537, 1, 1, 1, 1, 1, 0},
        {17, 19, 23, 3, 1, 1, 0},  {11, 1, 13, 1, 37, 1, 0},  {97, 3, 1, 2, 3, 5, 0},
        {1, 89, 2, 33, 2, 1, 0},   {2, 2, 2, 8, 8, 16, 0},
    };
    struct stage stage;
    enum { SHAPES = sizeof shapes / sizeof shapes[0] };
    if (h02_launches_execute_begin(attack, &stage, 70000)) {
        for (size_t i = 0; i < SHAPES; i++) {
            launches_stamp(attack, &stage, shapes[i]);
            hyp_attack_progress(attack, (double)(i + 1) / SHAPES);
        }
    }
    h02_launches_execute_end(&stage);
}

/* Draws three numbers of at least 1 with a product of at most limit. */
static void launches_draw(struct hyp_attack *attack, unsigned limit, unsigned z_max,
                          unsigned xyz[3]) {
    xyz[2] = 1 + (unsigned)hyp_random_below(attack, hyp_random(attack) % 2 != 0 ? z_max : 2);
    xyz[1] = 1 + (unsigned)hyp_random_below(attack, limit / xyz[2]);
    if (hyp_random(attack) % 3 == 0) xyz[1] = 1;
    xyz[0] = 1 + (unsigned)hyp_random_below(attack, limit / xyz[2] / xyz[1]);
}

HYP_ATTACK(h02, shapes_drawn_at_random_run_every_thread) {
    struct stage stage;
    unsigned turns = attack->session.full ? 4000 : 300, blocks_max = 64;
    if (h02_launches_execute_begin(attack, &stage, blocks_max * 1024)) {
        for (unsigned turn = 0; turn < turns; turn++) {
            unsigned grid[3], block[3];
            launches_draw(attack, 1024, 64, block);
            launches_draw(attack, blocks_max, 8, grid);
            launches_stamp(attack, &stage,
                           (struct tol_launch_shape){grid[0], grid[1], grid[2], block[0], block[1],
                                                     block[2], 0});
            hyp_attack_progress(attack, (turn + 1.0) / turns);
        }
    }
    h02_launches_execute_end(&stage);
}

HYP_ATTACK(h02, large_grids_lose_no_block) {
    struct stage stage;
    unsigned blocks = attack->session.full ? 1000003 : 10007;
    if (h02_launches_execute_begin(attack, &stage, (size_t)blocks * 64)) {
        launches_stamp(attack, &stage, (struct tol_launch_shape){blocks, 1, 1, 64, 1, 1, 0});
        launches_stamp(attack, &stage,
                       (struct tol_launch_shape){blocks / 256, 256, 1, 63, 1, 1, 0});
        launches_stamp(attack, &stage, (struct tol_launch_shape){7, blocks / 77, 11, 1, 61, 1, 0});
        /* More blocks than 16 bits can count, in quick mode as well. */
        launches_stamp(attack, &stage, (struct tol_launch_shape){65539, 1, 1, 3, 1, 1, 0});
    }
    h02_launches_execute_end(&stage);
}

/* ---- many launches --------------------------------------------------------------------------- */

enum {
    WAIT_EVERY = 4096,
    SMALL_BLOCKS = 3,
    SMALL_THREADS = 2,
    SMALL_WORDS = SMALL_BLOCKS * SMALL_THREADS
};

/* Small launches almost without waits between them, each into its own words: a lost block leaves
 * poison, and a launch that is made twice makes the total too large. */
static void launches_launch_many(struct hyp_attack *attack, struct stage *stage,
                                 unsigned launches) {
    const struct tol_launch_shape shape = {SMALL_BLOCKS, 1, 1, SMALL_THREADS, 1, 1, 0};
    const size_t words = (size_t)launches * SMALL_WORDS;
    const CUdeviceptr out = tol_buffer_address(stage->out) + GUARD_WORDS * sizeof(unsigned);
    const CUdeviceptr total = tol_buffer_address(stage->total);
    const unsigned seed = (unsigned)hyp_random(attack);
    unsigned ran = 0;
    HYP_NEED(attack,
             tol_buffer_fill_at(stage->out, 0, poison_word, 4, words + (size_t)2 * GUARD_WORDS));
    HYP_NEED(attack, tol_buffer_fill_at(stage->total, 0, 0, 4, 1));
    for (unsigned i = 0; i < launches; i++) {
        const CUdeviceptr own = out + (CUdeviceptr)i * SMALL_WORDS * sizeof(unsigned);
        tol_status status =
            tol_launch(stage->stream, stage->stamp, shape, TOL_ARGUMENTS(own, total, seed + i));
        if (status != TOL_OK) HYP_NEED(attack, status);
        if (i % WAIT_EVERY > 0) continue;
        /* What is queued must be done within a deadline, on a slow machine as well. */
        HYP_NEED(attack, tol_stream_synchronize(stage->stream));
        hyp_attack_progress(attack, 0.9 * i / launches);
    }
    HYP_NEED(attack, tol_stream_synchronize(stage->stream));
    HYP_NEED(attack, tol_buffer_read_at(stage->out, 0, stage->host,
                                        (words + (size_t)2 * GUARD_WORDS) * sizeof(unsigned)));
    HYP_NEED(attack, tol_buffer_read_at(stage->total, 0, &ran, sizeof ran));
    for (unsigned i = 0; i < launches; i++) {
        if (!check_elements(attack, &shape, seed + i,
                            stage->host + GUARD_WORDS + (size_t)i * SMALL_WORDS)) {
            break; /* the others say nothing new */
        }
    }
    launches_check_guard(attack, stage->host, GUARD_WORDS, "before the elements");
    launches_check_guard(attack, stage->host + GUARD_WORDS + words, GUARD_WORDS,
                         "after the elements");
    HYP_CHECK(attack, ran == words, "%u launches of %d threads: %u threads ran, expected %zu",
              launches, SMALL_WORDS, ran, words);
}

HYP_ATTACK(h02, many_small_launches_are_each_made_once) {
    struct stage stage;
    const bool is_soft = attack->kind == HYP_DEVICE_SOFT;
    /* These launches would fill the trace. */
    const bool is_traced = attack->session.trace != NULL;
    const unsigned launches = is_traced              ? 100
                              : attack->session.full ? 200000
                              : is_soft              ? 20000
                                                     : 100000;
    if (h02_launches_execute_begin(attack, &stage, (size_t)launches * SMALL_WORDS)) {
        launches_launch_many(attack, &stage, launches);
    }
    h02_launches_execute_end(&stage);
}

/* ---- graphs that change ---------------------------------------------------------------------- */

enum { NODE_THREADS = 96 };

/* Launches the instance, and expects the words that stamp writes for the seed. */
static bool launches_replay(struct hyp_attack *attack, struct stage *stage,
                            struct tol_graph_exec *exec, unsigned seed) {
    const struct tol_launch_shape shape = tol_launch_linear(NODE_THREADS, 32);
    const size_t at = GUARD_WORDS * sizeof(unsigned);
    return HYP_OK(attack, tol_buffer_fill_at(stage->out, at, poison_word, 4, NODE_THREADS)) &&
           HYP_OK(attack, tol_graph_launch(exec, stage->stream)) &&
           HYP_OK(attack, tol_stream_synchronize(stage->stream)) &&
           HYP_OK(attack, tol_buffer_read_at(stage->out, at, stage->host,
                                             NODE_THREADS * sizeof(unsigned))) &&
           check_elements(attack, &shape, seed, stage->host);
}

/* Changes the node in the graph, updates the instance, then changes the node in the instance. */
HYP_ATTACK(h02, graphs_launch_what_their_node_was_last_changed_to) {
    struct stage stage;
    struct tol_graph *graph = NULL;
    struct tol_graph_exec *exec = NULL;
    const struct tol_launch_shape shape = tol_launch_linear(NODE_THREADS, 32);
    unsigned seed = (unsigned)hyp_random(attack), node = 0;
    bool ok = h02_launches_execute_begin(attack, &stage, NODE_THREADS);
    const CUdeviceptr total = tol_buffer_address(stage.total),
                      out = tol_buffer_address(stage.out) + GUARD_WORDS * sizeof(unsigned);
    ok = ok && HYP_OK(attack, tol_graph_create(attack->context, &graph)) &&
         HYP_OK(attack, tol_graph_add_kernel(graph, stage.stamp, shape,
                                             TOL_ARGUMENTS(out, total, seed), NULL, 0, &node)) &&
         HYP_OK(attack, tol_graph_instantiate(graph, &exec)) &&
         HYP_OK(attack, tol_buffer_fill_at(stage.total, 0, 0, 4, 1)) &&
         launches_replay(attack, &stage, exec, seed);
    for (unsigned turn = 0; ok && turn < 10; turn++) {
        seed++;
        ok = HYP_OK(attack, tol_graph_set_kernel(graph, node, stage.stamp, shape,
                                                 TOL_ARGUMENTS(out, total, seed))) &&
             HYP_OK(attack, tol_graph_exec_update(exec, graph)) &&
             launches_replay(attack, &stage, exec, seed);
        seed++;
        ok = ok &&
             HYP_OK(attack, tol_graph_exec_set_kernel(exec, node, stage.stamp, shape,
                                                      TOL_ARGUMENTS(out, total, seed))) &&
             launches_replay(attack, &stage, exec, seed);
    }
    tol_graph_exec_destroy(exec);
    tol_graph_destroy(graph);
    h02_launches_execute_end(&stage);
}

/* ---- shared memory --------------------------------------------------------------------------- */

HYP_ATTACK(h02, a_block_gets_the_shared_memory_that_the_device_reports_and_no_more) {
    struct stage stage;
    const unsigned bytes =
        (unsigned)tol_context_device(attack->context)->shared_bytes_per_block_optin;
    if (h02_launches_execute_begin(attack, &stage, 1024)) {
        const CUresult result =
            tol_context_functions(attack->context)
                ->cuFuncSetAttribute(tol_kernel_handle(stage.stamp),
                                     CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                     (int)bytes + 1);
        HYP_CHECK(attack, result != CUDA_SUCCESS,
                  "the driver allows %u bytes of shared memory per block, and reports %u",
                  bytes + 1, bytes);
        if (HYP_OK(attack, tol_kernel_allow_shared(stage.stamp, bytes))) {
            launches_stamp(attack, &stage, (struct tol_launch_shape){5, 1, 1, 32, 1, 1, bytes});
        }
    }
    h02_launches_execute_end(&stage);
}

/* ---- all blocks at once ---------------------------------------------------------------------- */

/* A cooperative launch of a grid of blocks of a warp, by the driver's own call. */
static CUresult launches_cooperate(struct hyp_attack *attack, struct stage *stage,
                                   unsigned blocks) {
    CUdeviceptr out = tol_buffer_address(stage->out) + GUARD_WORDS * sizeof(unsigned);
    CUdeviceptr total = tol_buffer_address(stage->total) + GUARD_WORDS * sizeof(unsigned);
    void *arguments[] = {&out, &total, &stage->seed};
    return tol_context_functions(attack->context)
        ->cuLaunchCooperativeKernel(tol_kernel_handle(stage->stamp), blocks, 1, 1, WARP, 1, 1, 0,
                                    tol_stream_handle(stage->stream), arguments);
}

/* The device says how many multiprocessors it has, and how many blocks each holds at once, if
 * they are small, as these are. A cooperative grid needs all of its blocks at once. */
HYP_ATTACK(h02, the_device_holds_as_many_blocks_as_it_reports_and_no_more) {
    const struct tol_device *device = tol_context_device(attack->context);
    const unsigned each = (unsigned)device->multiprocessor_blocks_max;
    const unsigned blocks = each * (unsigned)device->multiprocessors;
    struct stage stage;
    unsigned total = 0;
    if (!device->cooperative_launch) {
        hyp_attack_not_tested(attack, "no_cooperation", "the device has no cooperative launches");
        return;
    }
    if (h02_launches_execute_begin(attack, &stage, (size_t)(blocks + 1) * WARP)) {
        HYP_NEED(attack, tol_buffer_fill_at(stage.total, GUARD_WORDS * sizeof(unsigned), 0, 4, 1));
        const CUresult held = launches_cooperate(attack, &stage, blocks);
        HYP_CHECK(attack, held == CUDA_SUCCESS,
                  "%d multiprocessors hold %u blocks each, but a cooperative grid of %u gives %d",
                  device->multiprocessors, each, blocks, held);
        const CUresult more = launches_cooperate(attack, &stage, blocks + 1);
        HYP_CHECK(attack, more == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
                  "%d multiprocessors hold %u blocks each, but a cooperative grid of %u gives %d",
                  device->multiprocessors, each, blocks + 1, more);
        HYP_NEED(attack, tol_stream_synchronize(stage.stream));
        HYP_NEED(attack, tol_buffer_read_at(stage.total, GUARD_WORDS * sizeof(unsigned), &total,
                                            sizeof total));
        HYP_CHECK(attack, held != CUDA_SUCCESS || total == blocks * WARP,
                  "%u threads of a cooperative grid ran, expected %u", total, blocks * WARP);
    }
    h02_launches_execute_end(&stage);
}

/* ---- rejections ------------------------------------------------------------------------------ */

static void launches_refuse(struct hyp_attack *attack, struct stage *stage,
                            struct tol_launch_shape shape, const char *text) {
    CUdeviceptr nowhere = 0;
    uint64_t before = tol_interpose_count(TOL_DRIVER_INDEX_cuLaunchKernel);
    tol_status status =
        tol_launch(stage->stream, stage->stamp, shape, TOL_ARGUMENTS(nowhere, nowhere, 0u));
    char call[160];
    snprintf(call, sizeof call, "a launch of grid (%u,%u,%u), block (%u,%u,%u), %u shared bytes",
             shape.grid_x, shape.grid_y, shape.grid_z, shape.block_x, shape.block_y, shape.block_z,
             shape.shared_bytes);
    hyp_attack_refused(attack, status, TOL_OVER_LIMIT, text, call);
    HYP_CHECK(attack, tol_interpose_count(TOL_DRIVER_INDEX_cuLaunchKernel) == before,
              "%s reached the driver", call);
}

HYP_COUNTED_ATTACK(h02, empty_and_oversized_shapes_never_reach_the_driver) {
    struct stage stage;
    const struct tol_device *device = tol_context_device(attack->context);
    const unsigned grid_y = (unsigned)device->grid_max[1], grid_z = (unsigned)device->grid_max[2];
    const unsigned shared = (unsigned)device->shared_bytes_per_block;
    if (h02_launches_execute_begin(attack, &stage, 1024)) {
        for (unsigned zero = 0; zero < 6; zero++) {
            unsigned n[6] = {1, 1, 1, 1, 1, 1};
            n[zero] = 0;
            launches_refuse(attack, &stage,
                            (struct tol_launch_shape){n[0], n[1], n[2], n[3], n[4], n[5], 0}, "");
        }
        launches_refuse(attack, &stage, tol_launch_linear(0, 256), "");
        launches_refuse(attack, &stage, (struct tol_launch_shape){1, 1, 1, 1025, 1, 1, 0}, "1025");
        launches_refuse(attack, &stage, (struct tol_launch_shape){1, 1, 1, 1, 1025, 1, 0}, "1025");
        launches_refuse(attack, &stage, (struct tol_launch_shape){1, 1, 1, 1, 1, 65, 0}, "65");
        launches_refuse(attack, &stage, (struct tol_launch_shape){1, 1, 1, 33, 32, 1, 0}, "1056");
        launches_refuse(attack, &stage,
                        (struct tol_launch_shape){1, 1, 1, 1u << 16, 1u << 16, 1, 0}, "");
        launches_refuse(attack, &stage, (struct tol_launch_shape){1, grid_y + 1, 1, 1, 1, 1, 0},
                        "65536");
        launches_refuse(attack, &stage, (struct tol_launch_shape){1, 1, grid_z + 1, 1, 1, 1, 0},
                        "65536");
        launches_refuse(attack, &stage, (struct tol_launch_shape){1u << 31, 1, 1, 1, 1, 1, 0},
                        "2147483648");
        launches_refuse(attack, &stage, (struct tol_launch_shape){1, 1, 1, 1, 1, 1, shared + 1},
                        "");
        launches_refuse(attack, &stage, (struct tol_launch_shape){1, 1, 1, 1, 1, 1, 0xffffffffu},
                        "");
        /* The control: an allowed shape does reach the driver. */
        uint64_t before = tol_interpose_count(TOL_DRIVER_INDEX_cuLaunchKernel);
        launches_stamp(attack, &stage, (struct tol_launch_shape){1, 1, 1, 1024, 1, 1, 0});
        HYP_CHECK(
            attack, tol_interpose_count(TOL_DRIVER_INDEX_cuLaunchKernel) == before + 1,
            "one launch was counted %llu times",
            (unsigned long long)(tol_interpose_count(TOL_DRIVER_INDEX_cuLaunchKernel) - before));
    }
    h02_launches_execute_end(&stage);
}
