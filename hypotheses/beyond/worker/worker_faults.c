/*
 * The faults. Kernels are known by the names that the runtime looked up; their one argument is a
 * struct of a file *_arguments.h, and the launch gets a changed copy of it.
 */
#include "worker_faults.h"

#include "decode/decode_arguments.h"
#include "decode/draw_arguments.h"
#include "decode/halves_arguments.h"
#include "quantised/formats/linear_arguments.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* The argument at a position, as a type. */
#define ARGUMENT(call, position, type) (*(type *)(call)->arguments[position])

/* ---- kernels by name ---- */

enum { KERNELS = 256, NAME_BYTES = 48 };

static struct {
    pthread_mutex_t lock;
    size_t count;
    struct {
        CUfunction function;
        char name[NAME_BYTES];
    } known[KERNELS];
} kernels = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void note_kernel(const struct tol_interpose_call *call) {
    if (call->index != TOL_DRIVER_INDEX_cuModuleGetFunction || call->result != CUDA_SUCCESS) return;
    pthread_mutex_lock(&kernels.lock);
    if (kernels.count < KERNELS) {
        kernels.known[kernels.count].function = *ARGUMENT(call, 0, CUfunction *);
        snprintf(kernels.known[kernels.count++].name, NAME_BYTES, "%s",
                 ARGUMENT(call, 2, const char *));
    }
    pthread_mutex_unlock(&kernels.lock);
}

static void note_kernels(struct tol_interpose_call *call, void *user) {
    (void)user;
    note_kernel(call);
}

/* Whether the call launches a kernel whose name has this prefix. */
static bool worker_faults_launches(const struct tol_interpose_call *call, const char *beginning) {
    bool is_so = false;
    const bool is_ex = call->index == TOL_DRIVER_INDEX_cuLaunchKernelEx; /* with PDL */
    if (!is_ex && call->index != TOL_DRIVER_INDEX_cuLaunchKernel) return false;
    const CUfunction function = ARGUMENT(call, is_ex ? 1 : 0, CUfunction);
    pthread_mutex_lock(&kernels.lock);
    for (size_t i = 0; i < kernels.count; i++) {
        is_so |= kernels.known[i].function == function &&
                 strncmp(kernels.known[i].name, beginning, strlen(beginning)) == 0;
    }
    pthread_mutex_unlock(&kernels.lock);
    return is_so;
}

/* A copy of the kernel's struct, which the launch has in its place. The driver copies it before
 * the call returns. */
static void *worker_faults_replaced(struct tol_interpose_call *call, size_t bytes) {
    static _Thread_local union {
        uint64_t aligned;
        char bytes[512];
    } copy;
    static _Thread_local void *parameters[1];
    const int at = call->index == TOL_DRIVER_INDEX_cuLaunchKernelEx ? 2 : 9;
    memcpy(copy.bytes, ARGUMENT(call, at, void **)[0], bytes);
    parameters[0] = &copy;
    ARGUMENT(call, at, void **) = parameters;
    return &copy;
}

/* The blocks along one dimension of the grid, 1 or 2, which may be changed likewise. */
static unsigned *worker_faults_blocks_of(struct tol_interpose_call *call, int dimension) {
    static _Thread_local CUlaunchConfig copy;
    if (call->index == TOL_DRIVER_INDEX_cuLaunchKernel) {
        return &ARGUMENT(call, 1 + dimension, unsigned);
    }
    copy = *ARGUMENT(call, 0, const CUlaunchConfig *);
    ARGUMENT(call, 0, const CUlaunchConfig *) = &copy;
    return dimension == 1 ? &copy.gridDimY : &copy.gridDimZ;
}

/* ---- decoding ---- */

static void shift_rope(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (!worker_faults_launches(call, "heads_")) return;
    struct heads_arguments *x = worker_faults_replaced(call, sizeof *x);
    x->frequencies += sizeof(float);
}

static void drop_bias(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (!worker_faults_launches(call, "linear_")) return;
    struct linear_bytes_arguments *x = worker_faults_replaced(
        call, worker_faults_launches(call, "linear_bytes_") ? sizeof *x : sizeof x->linear);
    x->linear.bias = 0;
}

static void double_rows(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (!worker_faults_launches(call, "halves_norm_")) return;
    struct halves_rows_arguments *x = worker_faults_replaced(call, sizeof *x);
    x->scale *= 2;
}

static void lose_token(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (!worker_faults_launches(call, "heads_")) return;
    unsigned *rows = worker_faults_blocks_of(call, 1);
    if (*rows > 1) --*rows;
}

/* The addresses of pages go to the tables one at a time. */
static void keep_page(struct tol_interpose_call *call, void *user) {
    static uint64_t before;
    static unsigned uploads;
    static const uint64_t *stale = &before;
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuMemcpyHtoDAsync_v2) return;
    const void **source = &ARGUMENT(call, 1, const void *);
    if (ARGUMENT(call, 2, size_t) != sizeof before) return;
    if (++uploads % 2 == 0) {
        *source = stale;
    } else {
        memcpy(&before, *source, sizeof before);
    }
}

/* ---- the same seed ---- */

/* Every third launch of attention has a scale whose last bit differs, as a sum that is added in
 * another order has. */
static void reorder_sums(struct tol_interpose_call *call, void *user) {
    static _Atomic unsigned counted;
    (void)user;
    if (!worker_faults_launches(call, "paged_span") || ++counted % 3 != 0) return;
    struct paged_arguments *x = worker_faults_replaced(call, sizeof *x);
    uint32_t bits = 0;
    memcpy(&bits, &x->scale_log2, sizeof bits);
    bits ^= 1;
    memcpy(&x->scale_log2, &bits, sizeof bits);
}

/* Every row of a pass sees the pages of the first session. */
static void leak_batch(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (!worker_faults_launches(call, "paged_span") || *worker_faults_blocks_of(call, 2) < 2)
        return;
    struct paged_arguments *x = worker_faults_replaced(call, sizeof *x);
    x->cache.pages_max = 0;
}

/* Every row of a step is sampled with the parameters of the first session. */
static void draw_by_first(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (!worker_faults_launches(call, "draw_")) return;
    struct draw_arguments *x = worker_faults_replaced(call, sizeof *x);
    x->row_stride = 0;
}

/* The list of penalised tokens is read from its second one on. */
static void shift_penalties(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (!worker_faults_launches(call, "draw_largest")) return;
    struct draw_arguments *x = worker_faults_replaced(call, sizeof *x);
    x->tokens += sizeof(uint32_t);
}

/* ---- health ---- */

static void call_resident(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuPointerGetAttribute) return;
    const CUpointer_attribute asked = ARGUMENT(call, 1, CUpointer_attribute);
    unsigned *answer = ARGUMENT(call, 0, unsigned *);
    call->result = CUDA_SUCCESS;
    if (asked == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) *answer = CU_MEMORYTYPE_DEVICE;
    if (asked == CU_POINTER_ATTRIBUTE_IS_MANAGED) *(unsigned char *)answer = 0;
}

/* The driver's ledger (ledger.h) sees what was allocated, and the runtime what it requested. */
static void worker_faults_add_block(struct tol_interpose_call *call, void *user) {
    enum { BLOCK_BYTES = 512 };
    static _Atomic unsigned allocations;
    (void)user;
    if (call->index == TOL_DRIVER_INDEX_cuMemAlloc_v2 && ++allocations % 2 == 1) {
        ARGUMENT(call, 1, size_t) += BLOCK_BYTES;
    }
}

static void hide_error(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->result == CUDA_ERROR_ILLEGAL_ADDRESS) call->result = CUDA_SUCCESS;
}

const struct hyp_fault worker_faults[] = {
    {.name = "rope_off_by_one",
     .sentence = "each pair of a head is rotated as fast as the next pair should be",
     .before = shift_rope,
     .after = note_kernels},
    {.name = "bias_dropped",
     .sentence = "products omit their biases",
     .before = drop_bias,
     .after = note_kernels},
    {.name = "power_of_two_wrong",
     .sentence = "the fp16 norms of a long prompt are twice as large as they should be",
     .before = double_rows,
     .after = note_kernels},
    {.name = "token_lost",
     .sentence = "the last row of a pass of several does not reach the cache",
     .before = lose_token,
     .after = note_kernels},
    {.name = "kv_page_stale",
     .sentence = "every second page of keys and values is entered under the address of the page "
                 "before it",
     .before = keep_page},
    {.name = "scale_nibble_wrong",
     .sentence = "in a matrix of the file, one nibble of the scales of each Q4_K block is changed"},
    {.name = "token_misspelt", .sentence = "one token of the file's vocabulary has another letter"},
    {.name = "sums_unordered",
     .sentence = "every third launch of attention differs in the last bit of its scale",
     .before = reorder_sums,
     .after = note_kernels},
    {.name = "generator_shared", .sentence = "all sessions draw from one generator"},
    {.name = "batch_leaks",
     .sentence = "in a pass of several rows, all see the pages of the first session",
     .before = leak_batch,
     .after = note_kernels},
    {.name = "draws_by_first",
     .sentence =
         "all tokens of a step are sampled with the first session's parameters and random number",
     .before = draw_by_first,
     .after = note_kernels},
    {.name = "penalty_shifted",
     .sentence = "sampling on the device omits one of the tokens to penalise",
     .before = shift_penalties,
     .after = note_kernels},
    {.name = "residency_always_true",
     .sentence = "every address is reported as device memory",
     .after = call_resident},
    {.name = "ledger_off_by_a_block",
     .sentence = "every second allocation takes 512 bytes more than the runtime records",
     .before = worker_faults_add_block},
    {.name = "poison_hidden",
     .sentence = "an illegal address is reported as success",
     .after = hide_error},
    {.name = "key_ignored_one_in",
     .sentence = "one in this many changed keys is not seen by the worker",
     .has_amount = true},
    {.name = "type_mistaken_one_in",
     .sentence = "one in this many changed types of tensors is taken for the usual one",
     .has_amount = true},
    {.name = "size_not_compared_one_in",
     .sentence = "one in this many changed sizes of tensors is taken for the usual one",
     .has_amount = true},
    {.name = "tensor_ignored_one_in",
     .sentence = "one in this many tensors that are added or missing is not noticed",
     .has_amount = true},
    {.name = "token_rule_ignored_one_in",
     .sentence = "one in this many changed keys of the tokenizer is not seen by the worker",
     .has_amount = true},
    {.name = "value_not_watched_one_in",
     .sentence = "one in this many infinite or NaN values is computed as an ordinary one",
     .has_amount = true},
    {.name = NULL}};

bool worker_fault_is(const struct hyp_attack *attack, const char *name) {
    return attack->session.sabotage != NULL && strcmp(attack->session.sabotage, name) == 0;
}

void worker_fault_hooks(const struct hyp_attack *attack, struct tol_interpose_options *options) {
    for (const struct hyp_fault *f = worker_faults; f->name != NULL; f++) {
        if (!worker_fault_is(attack, f->name)) continue;
        options->before = f->before;
        options->after = f->after;
    }
}

/* ---- the claims: their text and their saboteurs are in beyond.toml ---- */

#define WORKER_SABOTEURS(id, ...)                                                                  \
    static const struct hyp_saboteur saboteurs_of_##id[] = {__VA_ARGS__};
#include "beyond.def"

static const struct hyp_plugin_claim claims[] = {
#define WORKER_CLAIM(id, ...) {__VA_ARGS__, .saboteurs = saboteurs_of_##id},
#include "beyond.def"
    {.id = NULL}};

HYP_PLUGIN(.name = "worker", .version = "1", .claims = claims, .faults = worker_faults);
