/*
 * Times the variants for problems on a device, and keeps the fastest in a file.
 *
 *     kn-tune --out FILE [--commit TEXT] [--library PATH] PROBLEM...
 *
 * A PROBLEM is one of
 *
 *     gemm:TYPE:OP:MxNxK               gemm:bf16:nt:4096x4096x4096
 *     grouped:TYPE:OP:MxNxK:GROUPS     grouped:e4m3:nt:8192x2048x4096:8
 *     softmax:TYPE:ROWSxCOLUMNS        softmax:bf16:1024x32000; also layernorm and rmsnorm
 *     attention:TYPE:MASK:BxHxK:RxNxD  attention:bf16:causal:1x32x8:4096x4096x128
 *
 * B is batches, H and K are heads of q and of k and v, R rows, N keys, D elements of a head; MASK
 * is full or causal.
 * OP says for A and B whether they are transposed (t) or not (n). C has the type of A and B; that
 * of e4m3 is bf16. Matrices are aligned and without gaps; gemm and attention get the workspace that
 * they can use. Norms have a weight of the rows' type, and layernorm a bias.
 * A FILE of this device, driver and library is added to; one that is damaged, or of others, is
 * refused and stays as it is. Exit codes: 0 measured and written, 1 not, 2 wrong usage.
 */
#include "tune/tune.h"

#include "core/any_driver.h"
#include "core/check.h"
#include "inputs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tune_scene {
    struct tol_context *context;
    struct kn_kernels *kernels;
    struct tol_stream *stream;
    struct kn_tuning *tuning;
};

struct tune_operands {
    struct tol_buffer *a, *b, *c, *more, *workspace; /* more: where groups begin, or v */
};

static void tune_destroy(struct tune_operands *o) {
    struct tol_buffer *all[] = {o->a, o->b, o->c, o->more, o->workspace};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) tol_buffer_destroy(all[i]);
}

/* Uniform numbers from -1 to 1; the same piece again and again. */
static tol_status tune_make(struct tol_context *context, enum kn_grouped_type type, size_t count,
                            struct tol_buffer **buffer) {
    enum { VALUES = 1 << 16 };
    static float values[VALUES];
    static unsigned char bytes[VALUES * sizeof(float)];
    tol_status status = TOL_OK;
    uint64_t state = count;
    const size_t element = kn_grouped_type_bytes(type);
    kn_inputs_draw(KN_UNIFORM, &state, 1, values, VALUES);
    for (size_t i = 0; i < VALUES && element == 1; i++) bytes[i] = kn_e4m3_of(values[i]);
    if (element != 1) {
        const enum kn_type wide = type == KN_GROUPED_F32   ? KN_F32
                                  : type == KN_GROUPED_F16 ? KN_F16
                                                           : KN_BF16;
        kn_numbers_store(wide, values, VALUES, bytes);
    }
    TOL_TRY(tol_buffer_create(context, count, element, buffer));
    for (size_t at = 0; at < count; at += VALUES) {
        const size_t now = count - at < VALUES ? count - at : VALUES;
        TOL_TRY(tol_buffer_write_at(*buffer, at * element, bytes, now * element));
    }
out:
    return status;
}

static int tune_find(const char *name, const char *const *names, int count) {
    for (int i = 0; i < count; i++) {
        if (strcmp(name, names[i]) == 0) return i;
    }
    return -1;
}

static tol_status tune_gemm(struct tune_scene *s, struct tune_operands *o, const char *type,
                            const char *op, const size_t size[3], struct kn_tuned *tuned) {
    static const char *const names[] = {"f32", "tf32", "f16", "bf16", "f32_tensor"};
    tol_status status = TOL_OK;
    size_t workspace = 0;
    const int precision = tune_find(type, names, KN_GEMM_PRECISIONS);
    TOL_CHECK(precision >= 0, TOL_INVALID_ARGUMENT, "gemm has no type %s", type);
    struct kn_gemm gemm = {.precision = (enum kn_gemm_precision)precision,
                           .transpose_a = op[0] == 't',
                           .transpose_b = op[1] == 't',
                           .m = size[0],
                           .n = size[1],
                           .k = size[2],
                           .alpha = 1};
    gemm.c_type = kn_gemm_input_type(gemm.precision);
    const enum kn_grouped_type in = gemm.c_type == KN_F32   ? KN_GROUPED_F32
                                    : gemm.c_type == KN_F16 ? KN_GROUPED_F16
                                                            : KN_GROUPED_BF16;
    TOL_TRY(tune_make(s->context, in, size[0] * size[2], &o->a));
    TOL_TRY(tune_make(s->context, in, size[1] * size[2], &o->b));
    TOL_TRY(tune_make(s->context, in, size[0] * size[1], &o->c));
    gemm.a.buffer = o->a, gemm.b.buffer = o->b, gemm.c.buffer = o->c;
    TOL_TRY(kn_gemm_workspace(s->kernels, &gemm, &workspace));
    if (workspace > 0) TOL_TRY(tol_buffer_create(s->context, workspace, 1, &o->workspace));
    gemm.workspace = o->workspace;
    status = kn_tune_gemm(s->kernels, s->stream, &gemm, s->tuning, tuned);
out:
    return status;
}

static tol_status tune_grouped(struct tune_scene *s, struct tune_operands *o, const char *type,
                               const char *op, const size_t size[4], struct kn_tuned *tuned) {
    static const char *const names[] = {"f32", "f16", "bf16", "e4m3"};
    enum { GROUPS_MAX = 1024 };
    tol_status status = TOL_OK;
    int32_t begins[GROUPS_MAX + 1];
    const int kind = tune_find(type, names, 4);
    TOL_CHECK(kind > 0, TOL_INVALID_ARGUMENT, "grouped has no type %s", type);
    TOL_CHECK(size[3] >= 1 && size[3] <= GROUPS_MAX, TOL_INVALID_ARGUMENT, "%zu groups", size[3]);
    struct kn_grouped grouped = {.type = (enum kn_grouped_type)kind,
                                 .c_type =
                                     kind == KN_GROUPED_F16 ? KN_GROUPED_F16 : KN_GROUPED_BF16,
                                 .transpose_b = op[1] == 't',
                                 .m = size[0],
                                 .n = size[1],
                                 .k = size[2],
                                 .groups = size[3],
                                 .alpha = 1};
    TOL_CHECK(op[0] == 'n', TOL_INVALID_ARGUMENT, "grouped does not transpose a");
    TOL_TRY(tune_make(s->context, grouped.type, size[0] * size[2], &o->a));
    TOL_TRY(tune_make(s->context, grouped.type, size[1] * size[2] * size[3], &o->b));
    TOL_TRY(tune_make(s->context, grouped.c_type, size[0] * size[1], &o->c));
    for (size_t i = 0; i <= size[3]; i++) begins[i] = (int32_t)(size[0] * i / size[3]);
    TOL_TRY(tol_buffer_create(s->context, size[3] + 1, sizeof begins[0], &o->more));
    TOL_TRY(tol_buffer_write(o->more, begins, (size[3] + 1) * sizeof begins[0]));
    grouped.a.buffer = o->a, grouped.b.buffer = o->b, grouped.c.buffer = o->c;
    grouped.b.batch_stride = size[1] * size[2], grouped.begins.buffer = o->more;
    status = kn_tune_grouped(s->kernels, s->stream, &grouped, s->tuning, tuned);
out:
    return status;
}

static tol_status find_type(const char *operation, const char *type, enum kn_type *found) {
    static const char *const names[KN_TYPES] = {"f32", "f16", "bf16"};
    tol_status status = TOL_OK;
    const int kind = tune_find(type, names, KN_TYPES);
    TOL_CHECK(kind >= 0, TOL_INVALID_ARGUMENT, "%s has no type %s", operation, type);
    *found = (enum kn_type)kind;
out:
    return status;
}

static tol_status tune_rows(struct tune_scene *s, struct tune_operands *o, const char *operation,
                            const char *type, const size_t size[2], struct kn_tuned *tuned) {
    tol_status status = TOL_OK;
    enum kn_type kind = KN_F32;
    TOL_TRY(find_type(operation, type, &kind));
    TOL_TRY(tune_make(s->context, (enum kn_grouped_type)kind, size[0] * size[1], &o->a));
    TOL_TRY(tune_make(s->context, (enum kn_grouped_type)kind, size[0] * size[1], &o->c));
    if (strcmp(operation, "softmax") == 0) {
        const struct kn_softmax softmax = {.type = kind,
                                           .rows = size[0],
                                           .columns = size[1],
                                           .in = {o->a, 0, 0},
                                           .out = {o->c, 0, 0}};
        return kn_tune_softmax(s->kernels, s->stream, &softmax, s->tuning, tuned);
    }
    TOL_TRY(tune_make(s->context, (enum kn_grouped_type)kind, size[1], &o->b));
    const bool is_centred = strcmp(operation, "layernorm") == 0;
    const struct kn_norm norm = {.kind = is_centred ? KN_LAYERNORM : KN_RMSNORM,
                                 .type = kind,
                                 .affine_type = kind,
                                 .rows = size[0],
                                 .columns = size[1],
                                 .in = {o->a, 0, 0},
                                 .out = {o->c, 0, 0},
                                 .weight = {o->b, 0, 0},
                                 .bias = {is_centred ? o->b : NULL, 0, 0},
                                 .epsilon = 1e-5f};
    status = kn_tune_norm(s->kernels, s->stream, &norm, s->tuning, tuned);
out:
    return status;
}

static tol_status tune_attention(struct tune_scene *s, struct tune_operands *o, const char *type,
                                 const char *mask, const size_t size[6], struct kn_tuned *tuned) {
    tol_status status = TOL_OK;
    enum kn_type kind = KN_F32;
    size_t workspace = 0;
    TOL_TRY(find_type("attention", type, &kind));
    const bool is_causal = strcmp(mask, "causal") == 0;
    TOL_CHECK(is_causal || strcmp(mask, "full") == 0, TOL_INVALID_ARGUMENT,
              "attention has no mask %s", mask);
    const size_t rows = size[0] * size[1] * size[3], keys = size[0] * size[2] * size[4];
    TOL_TRY(tune_make(s->context, (enum kn_grouped_type)kind, rows * size[5], &o->a));
    TOL_TRY(tune_make(s->context, (enum kn_grouped_type)kind, keys * size[5], &o->b));
    TOL_TRY(tune_make(s->context, (enum kn_grouped_type)kind, keys * size[5], &o->more));
    TOL_TRY(tune_make(s->context, (enum kn_grouped_type)kind, rows * size[5], &o->c));
    struct kn_attention attention = {.type = kind,
                                     .batch = size[0],
                                     .heads = size[1],
                                     .kv_heads = size[2],
                                     .q_length = size[3],
                                     .kv_length = size[4],
                                     .head_size = size[5],
                                     .causal = is_causal,
                                     .q = {.buffer = o->a},
                                     .k = {.buffer = o->b},
                                     .v = {.buffer = o->more},
                                     .out = {.buffer = o->c}};
    TOL_TRY(kn_attention_workspace(s->kernels, &attention, &workspace));
    if (workspace > 0) TOL_TRY(tol_buffer_create(s->context, workspace, 1, &o->workspace));
    attention.workspace = o->workspace;
    status = kn_tune_attention(s->kernels, s->stream, &attention, s->tuning, tuned);
out:
    return status;
}

static const char *const row_operations[] = {"softmax", "layernorm", "rmsnorm"};

static tol_status tune_one(struct tune_scene *s, const char *text) {
    tol_status status = TOL_OK;
    char type[16] = "", op[3] = "", word[16] = "";
    size_t size[6] = {0};
    int end = 0;
    struct tune_operands operands = {0};
    struct kn_tuned tuned;
    const size_t length = strlen(text);
    if (sscanf(text, "gemm:%15[a-z0-9_]:%2[nt]:%zux%zux%zu%n", type, op, &size[0], &size[1],
               &size[2], &end) == 5 &&
        (size_t)end == length && op[1] != 0) {
        status = tune_gemm(s, &operands, type, op, size, &tuned);
    } else if (sscanf(text, "grouped:%15[a-z0-9]:%2[nt]:%zux%zux%zu:%zu%n", type, op, &size[0],
                      &size[1], &size[2], &size[3], &end) == 6 &&
               (size_t)end == length && op[1] != 0) {
        status = tune_grouped(s, &operands, type, op, size, &tuned);
    } else if (sscanf(text, "attention:%15[a-z0-9]:%15[a-z]:%zux%zux%zu:%zux%zux%zu%n", type, word,
                      &size[0], &size[1], &size[2], &size[3], &size[4], &size[5], &end) == 8 &&
               (size_t)end == length) {
        status = tune_attention(s, &operands, type, word, size, &tuned);
    } else if (sscanf(text, "%15[a-z]:%15[a-z0-9]:%zux%zu%n", word, type, &size[0], &size[1],
                      &end) == 4 &&
               (size_t)end == length && tune_find(word, row_operations, 3) >= 0) {
        status = tune_rows(s, &operands, word, type, size, &tuned);
    } else {
        TOL_CHECK(false, TOL_INVALID_ARGUMENT, "%s is no problem: see the usage", text);
    }
    if (status == TOL_OK) {
        printf("%-44s %-12s %10.2f us, %4.2f of the table's; %d variants\n", text, tuned.variant,
               tuned.us, tuned.us / tuned.table_us, tuned.candidates);
    }
out:
    tune_destroy(&operands);
    return status;
}

/* The file's tuning, or an empty one if there is no file. */
static tol_status open_tuning(struct tune_scene *s, const char *path, const char *commit) {
    tol_status status = TOL_OK;
    struct kn_tuning_identity here;
    TOL_TRY(kn_tune_identity(s->context, commit, &here));
    status = access(path, F_OK) == 0 ? kn_tuning_load(path, &here, &s->tuning)
                                     : kn_tuning_create(&here, &s->tuning);
out:
    return status;
}

int main(int argc, char **argv) {
    tol_status status = TOL_OK;
    struct tol_driver *driver = NULL;
    struct tune_scene s = {0};
    const char *out_path = NULL, *commit = NULL, *library = NULL;
    int first = 1;
    for (; first + 1 < argc && argv[first][0] == '-'; first += 2) {
        const char **value = strcmp(argv[first], "--out") == 0       ? &out_path
                             : strcmp(argv[first], "--commit") == 0  ? &commit
                             : strcmp(argv[first], "--library") == 0 ? &library
                                                                     : NULL;
        if (value == NULL) break;
        *value = argv[first + 1];
    }
    if (out_path == NULL || first >= argc || argv[first][0] == '-') {
        fprintf(stderr, "usage: kn-tune --out FILE [--commit TEXT] [--library PATH] PROBLEM...\n"
                        "PROBLEM: gemm:bf16:nt:4096x4096x4096, grouped:e4m3:nt:8192x2048x4096:8, "
                        "softmax:bf16:1024x32000 (also layernorm, rmsnorm) "
                        "or attention:bf16:causal:1x32x8:4096x4096x128\n");
        return 2;
    }
    TOL_TRY(tol_any_driver_open(library, &driver, NULL));
    TOL_TRY(tol_context_create(driver, 0, &s.context));
    TOL_TRY(tol_stream_create(s.context, NULL, &s.stream));
    TOL_TRY(kn_kernels_create(s.context, &s.kernels));
    TOL_TRY(open_tuning(&s, out_path, commit));
    for (int i = first; i < argc; i++) TOL_TRY(tune_one(&s, argv[i]));
    TOL_TRY(kn_tuning_save(s.tuning, out_path));
    printf("%zu problems in %s\n", kn_tuning_count(s.tuning), out_path);
out:
    if (status != TOL_OK) fprintf(stderr, "kn-tune: %s\n", tol_message());
    kn_tuning_destroy(s.tuning);
    kn_kernels_destroy(s.kernels);
    tol_stream_destroy(s.stream);
    tol_context_destroy(s.context);
    tol_driver_close(driver);
    return status == TOL_OK ? 0 : 1;
}
