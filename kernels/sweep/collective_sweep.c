/*
 * Cases of collectives: their kernels on one device, which is source and target of all ranks.
 */
#include "collective/collective_arguments.h"
#include "core/check.h"
#include "kernel_sweep.h"
#include "sweep_matrix.h"

KN_IMAGES(collective_1_direct);
KN_IMAGES(collective_2_flags);
KN_IMAGES(collective_3_columns);
KN_IMAGES(collective_4_early);
KN_IMAGES(collective_5_early);
KN_IMAGES(collective_6_met);
KN_IMAGES(collective_7_early);

#define VARIANT(kind, type, file, least)                                                           \
    {                                                                                              \
        .name = #kind, .entry = #kind "_" #type, .images = kn_images_##file,                       \
        .compute_capability_min = (least), .threads = COLLECTIVE_THREADS                           \
    }
#define VARIANTS(kind, file, least)                                                                \
    static const struct kn_variant kind[KN_TYPES] = {[KN_F32] = VARIANT(kind, f32, file, least),   \
                                                     [KN_F16] = VARIANT(kind, f16, file, least),   \
                                                     [KN_BF16] = VARIANT(kind, bf16, file, least)}
VARIANTS(direct, collective_1_direct, 75);
VARIANTS(flags, collective_2_flags, 75);
VARIANTS(flags_early, collective_5_early, 90);
VARIANTS(met, collective_6_met, 75);
VARIANTS(met_early, collective_7_early, 90);
static const struct kn_variant copies[] = {VARIANT(flags, copy, collective_2_flags, 75),
                                           VARIANT(flags_early, copy, collective_5_early, 90)};

static const struct kn_variant columns[] = {{.name = "columns direct",
                                             .entry = "columns_direct",
                                             .images = kn_images_collective_3_columns,
                                             .compute_capability_min = 75,
                                             .threads = COLLECTIVE_THREADS},
                                            {.name = "columns by flags",
                                             .entry = "columns_flags",
                                             .images = kn_images_collective_3_columns,
                                             .compute_capability_min = 75,
                                             .threads = COLLECTIVE_THREADS},
                                            {.name = "columns by flags, early",
                                             .entry = "columns_flags_early",
                                             .images = kn_images_collective_4_early,
                                             .compute_capability_min = 90,
                                             .threads = COLLECTIVE_THREADS}};

enum { COUNT = 1003, LINES = 500 }; /* of 8 bytes: all of COUNT floats but three */

static CUdeviceptr collective_sweep_address_of(const struct sweep_matrix *matrix) {
    return tol_buffer_address(matrix->guarded.buffer) + matrix->guarded.offset;
}

/* Half of each: what is exact in every type. */
static tol_status launch_direct(struct sweep *sweep, const struct tol_kernel *kernel,
                                const struct sweep_matrix *a, const struct sweep_matrix *b,
                                const struct sweep_matrix *out, unsigned sources) {
    struct collective_direct x = {
        .sources = {collective_sweep_address_of(a), collective_sweep_address_of(b)},
        .targets = {collective_sweep_address_of(out)},
        .count = COUNT,
        .source_count = sources,
        .target_count = 1};
    x.is_wide = (x.sources[0] | x.sources[1] | x.targets[0]) % 16 == 0;
    return tol_launch(sweep->stream, kernel, tol_launch_linear(2 * COLLECTIVE_THREADS, 512),
                      (struct tol_arguments){1, (void *[]){&x}, (const unsigned[]){sizeof x}});
}

/* The same of one rank, which meets nobody, twice: the second finds no count of the first. */
static tol_status collective_sweep_launch_met(struct sweep *sweep, const struct tol_kernel *kernel,
                                              const struct sweep_matrix *a,
                                              const struct sweep_matrix *b,
                                              const struct sweep_matrix *out) {
    tol_status status = TOL_OK;
    struct tol_buffer *words = NULL;
    struct collective_met x = {
        .direct = {.sources = {collective_sweep_address_of(a), collective_sweep_address_of(b)},
                   .targets = {collective_sweep_address_of(out)},
                   .count = COUNT,
                   .source_count = 2,
                   .target_count = 1},
        .ranks = 1,
        .epoch = 1};
    struct collective_words after = {.blocks = 1};
    const struct tol_arguments arguments = {1, (void *[]){&x}, (const unsigned[]){sizeof x}};
    TOL_TRY(tol_buffer_create(kn_kernels_context(sweep->kernels), sizeof after, 1, &words));
    TOL_TRY(tol_buffer_fill_at(words, 0, 0, 1, sizeof after));
    x.words[0] = tol_buffer_address(words);
    for (int i = 0; i < 2; i++) {
        TOL_TRY(tol_launch(sweep->stream, kernel, tol_launch_linear(2 * COLLECTIVE_THREADS, 512),
                           arguments));
    }
    TOL_TRY(tol_stream_synchronize(sweep->stream));
    TOL_TRY(tol_buffer_read_at(words, 0, &after, sizeof after));
    TOL_CHECK(after.blocks == 0, TOL_MISMATCH, "%u blocks are counted", after.blocks);
out:
    tol_buffer_destroy(words);
    return status;
}

/* One rank of one: it waits for nobody. */
static tol_status launch_flags(struct sweep *sweep, const struct tol_kernel *kernel,
                               const struct sweep_matrix *a, const struct sweep_matrix *out,
                               enum kn_type type) {
    struct collective_flags x = {.in = collective_sweep_address_of(a),
                                 .out = collective_sweep_address_of(out),
                                 .bytes = COUNT * kn_type_bytes(type),
                                 .ranks = 1,
                                 .epoch = 1,
                                 .senders = 1};
    return tol_launch(sweep->stream, kernel, tol_launch_linear(COUNT, COLLECTIVE_THREADS),
                      (struct tol_arguments){1, (void *[]){&x}, (const unsigned[]){sizeof x}});
}

static void collective_sweep_run(struct sweep *sweep, const struct kn_variant *variant,
                                 enum kn_type type, unsigned sources, size_t offset) {
    const bool is_direct = variant == &direct[type];
    const bool is_met = variant == &met[type] || variant == &met_early[type];
    const struct tol_kernel *kernel = NULL;
    struct sweep_matrix a = {0}, b = {0}, out = {0};
    double oracle[COUNT];
    struct kn_deviation deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    size_t touched = 0;
    tol_status status = TOL_OK;
    if (!sweep_begin(sweep, "collective %s %s of %u at %zu", variant->entry, kn_type_name(type),
                     sources, offset)) {
        return;
    }
    TOL_TRY(sweep_matrix_make(sweep, type, 1, COUNT, 0, offset, 1, &a));
    TOL_TRY(sweep_matrix_make(sweep, type, 1, COUNT, 0, offset, 1, &b));
    TOL_TRY(sweep_matrix_make(sweep, type, 1, COUNT, 0, offset, 0, &out));
    for (size_t i = 0; i < COUNT; i++) {
        const float sum = sources == 2 ? a.values[i] + b.values[i] : a.values[i];
        uint32_t element = 0;
        float rounded = 0;
        kn_numbers_store(type, &sum, 1, &element);
        kn_numbers_load(type, &element, 1, &rounded);
        oracle[i] = (double)rounded;
    }
    TOL_TRY(kn_kernels_find(sweep->kernels, variant, &kernel));
    TOL_TRY(is_direct ? launch_direct(sweep, kernel, &a, &b, &out, sources)
            : is_met  ? collective_sweep_launch_met(sweep, kernel, &a, &b, &out)
                      : launch_flags(sweep, kernel, &a, &out, type));
    status =
        sweep_matrix_judge(sweep, &out, oracle, (struct kn_tolerance){0, 0}, &deviation, &touched);
out:
    sweep_judge(sweep, status, &deviation, touched);
    sweep_matrix_end(&a);
    sweep_matrix_end(&b);
    sweep_matrix_end(&out);
}

/* The columns of one rank of one, which are a row. */
static void run_columns(struct sweep *sweep, const struct kn_variant *variant, bool is_wide) {
    const struct tol_kernel *kernel = NULL;
    struct sweep_matrix a = {0}, out = {0};
    double oracle[2 * LINES];
    struct kn_deviation deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    size_t touched = 0;
    tol_status status = TOL_OK;
    if (!sweep_begin(sweep, "collective %s%s", variant->name, is_wide ? " in pieces of 16" : "")) {
        return;
    }
    TOL_TRY(sweep_matrix_make(sweep, KN_F32, 1, 2 * LINES, 0, 0, 1, &a));
    TOL_TRY(sweep_matrix_make(sweep, KN_F32, 1, 2 * LINES, 0, 0, 0, &out));
    for (size_t i = 0; i < 2 * LINES; i++) oracle[i] = (double)a.values[i];
    struct collective_columns x = {.in = collective_sweep_address_of(&a),
                                   .out = {collective_sweep_address_of(&out)},
                                   .count = is_wide ? LINES / 2 : LINES,
                                   .row = is_wide ? LINES / 2 : LINES,
                                   .ranks = 1,
                                   .epoch = 1,
                                   .is_wide = is_wide};
    TOL_TRY(kn_kernels_find(sweep->kernels, variant, &kernel));
    TOL_TRY(tol_launch(sweep->stream, kernel, tol_launch_linear(LINES, COLLECTIVE_THREADS),
                       (struct tol_arguments){1, (void *[]){&x}, (const unsigned[]){sizeof x}}));
    status =
        sweep_matrix_judge(sweep, &out, oracle, (struct kn_tolerance){0, 0}, &deviation, &touched);
out:
    sweep_judge(sweep, status, &deviation, touched);
    sweep_matrix_end(&a);
    sweep_matrix_end(&out);
}

void sweep_collective(struct sweep *sweep) {
    const bool has_early =
        tol_context_device(kn_kernels_context(sweep->kernels))->compute_capability >= 90;
    for (enum kn_type type = KN_F32; type < KN_TYPES; type++) {
        collective_sweep_run(sweep, &direct[type], type, 2, 0);
        collective_sweep_run(sweep, &direct[type], type, 1, 1);
        collective_sweep_run(sweep, &flags[type], type, 1, 0);
        collective_sweep_run(sweep, &flags[type], type, 1, 1);
        collective_sweep_run(sweep, &copies[0], type, 1, 0);
        collective_sweep_run(sweep, &copies[0], type, 1, 1);
        collective_sweep_run(sweep, &met[type], type, 2, 0);
        if (has_early) collective_sweep_run(sweep, &met_early[type], type, 2, 1);
        if (has_early) collective_sweep_run(sweep, &flags_early[type], type, 1, 0);
        if (has_early) collective_sweep_run(sweep, &copies[1], type, 1, 1);
    }
    run_columns(sweep, &columns[0], false);
    run_columns(sweep, &columns[0], true);
    run_columns(sweep, &columns[1], false);
    if (has_early) run_columns(sweep, &columns[2], false);
}
