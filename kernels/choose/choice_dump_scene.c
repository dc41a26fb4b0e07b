/*
 * A soft device with an interposer that allocates addresses, launches nothing, and writes down
 * what it was to launch.
 */
#include "choice_dump_scene.h"

#include "choice_problems_scene.h"
#include "core/check.h"
#include "fnv.h"
#include "interpose.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FUNCTIONS_MAX = 1024, KIB = 1 << 10, TEXT_BYTES = 4096 };
static const size_t buffer_bytes = (size_t)1 << 42;

/* From compute capability 9.0 on a block may have 227 KiB, of an A100 163, of an Ada GPU 99. */
const struct choice_device choice_devices[CHOICE_DEVICES] = {
    {"compute_75", 75, 40, 64 * KIB, 64 * KIB},
    {"compute_80", 80, 108, 163 * KIB, 164 * KIB},
    {"compute_89", 89, 142, 99 * KIB, 100 * KIB},
    {"compute_90", 90, 4, 227 * KIB, 228 * KIB},
    {"NVIDIA H100 80GB HBM3", 90, 132, 227 * KIB, 228 * KIB},
    {"NVIDIA H200", 90, 132, 227 * KIB, 228 * KIB}};

static choice_call *const calls[CHOICE_OPERATIONS] = {
    choice_gemm,  choice_grouped, choice_attention, choice_backward, choice_packed,
    choice_paged, choice_e4m3,    choice_softmax,   choice_norm,     choice_argmax,
    choice_top_k, choice_quant,   choice_linear};
const char *const choice_operations[CHOICE_OPERATIONS] = {
    "gemm",    "grouped", "attention", "backward", "packed", "paged", "e4m3",
    "softmax", "norm",    "argmax",    "top_k",    "quant",  "linear"};

static struct choice_log {
    struct {
        CUfunction handle;
        char name[96];
    } functions[FUNCTIONS_MAX];
    size_t function_count;
    CUdeviceptr next; /* address */
    uint64_t maps;    /* hash of the tensor maps of a call */
    char text[TEXT_BYTES];
    size_t used;
} seen;

struct choice_dump {
    struct tol_driver *driver;
    struct tol_context *context;
    struct tol_stream *stream;
    struct tol_buffer *buffers[CHOICE_BUFFERS];
    struct kn_kernels *kernels[CHOICE_DEVICES];
};

/* ---- the interposer -------------------------------------------------------------------------- */

static void note_function(const struct tol_interpose_call *call) {
    if (call->result != CUDA_SUCCESS || seen.function_count == FUNCTIONS_MAX) return;
    seen.functions[seen.function_count].handle = **(CUfunction *const *)call->arguments[0];
    snprintf(seen.functions[seen.function_count].name, sizeof seen.functions[0].name, "%s",
             *(const char *const *)call->arguments[2]);
    seen.function_count++;
}

static const char *name_of(CUfunction handle) {
    for (size_t i = seen.function_count; i-- > 0;) {
        if (seen.functions[i].handle == handle) return seen.functions[i].name;
    }
    return "?";
}

static void note_launch(CUfunction handle, const unsigned shape[7], unsigned attributes) {
    const int length = snprintf(seen.text + seen.used, sizeof seen.text - seen.used,
                                " %s[%u,%u,%u/%u,%u,%u/%u/%u]", name_of(handle), shape[0], shape[1],
                                shape[2], shape[3], shape[4], shape[5], shape[6], attributes);
    if (length > 0 && seen.used + (size_t)length < sizeof seen.text) seen.used += (size_t)length;
}

static void note_config(const CUlaunchConfig *c, CUfunction handle) {
    const unsigned shape[7] = {c->gridDimX,  c->gridDimY,  c->gridDimZ,      c->blockDimX,
                               c->blockDimY, c->blockDimZ, c->sharedMemBytes};
    note_launch(handle, shape, c->numAttrs);
}

static void note_numbers(const struct tol_interpose_call *call) {
    unsigned shape[7];
    for (int i = 0; i < 7; i++) shape[i] = *(const unsigned *)call->arguments[i + 1];
    note_launch(*(const CUfunction *)call->arguments[0], shape, 0);
}

/* All but the map and the address: type, rank, sizes, strides, box and the rest. */
static void note_map(const struct tol_interpose_call *call) {
    const unsigned rank = *(const unsigned *)call->arguments[2];
    const cuuint64_t *const sizes = *(const cuuint64_t *const *)call->arguments[4];
    const cuuint64_t *const strides = *(const cuuint64_t *const *)call->arguments[5];
    const cuuint32_t *const box = *(const cuuint32_t *const *)call->arguments[6];
    seen.maps = kn_fnv(seen.maps, call->arguments[1], sizeof(int));
    seen.maps = kn_fnv(seen.maps, sizes, rank * sizeof *sizes);
    seen.maps = kn_fnv(seen.maps, strides, (rank - 1) * sizeof *strides);
    seen.maps = kn_fnv(seen.maps, box, rank * sizeof *box);
    for (unsigned i = 8; i < 12; i++)
        seen.maps = kn_fnv(seen.maps, call->arguments[i], sizeof(int));
}

static void before(struct tol_interpose_call *call, void *user) {
    (void)user;
    call->forward = false;
    switch (call->index) {
    case TOL_DRIVER_INDEX_cuMemAlloc_v2:
        **(CUdeviceptr *const *)call->arguments[0] = seen.next;
        seen.next += (*(const size_t *)call->arguments[1] + (1 << 21)) >> 21 << 21;
        break;
    case TOL_DRIVER_INDEX_cuMemFree_v2:
        break;
    case TOL_DRIVER_INDEX_cuLaunchKernel:
        note_numbers(call);
        break;
    case TOL_DRIVER_INDEX_cuLaunchKernelEx:
        note_config(*(const CUlaunchConfig *const *)call->arguments[0],
                    *(const CUfunction *)call->arguments[1]);
        break;
    case TOL_DRIVER_INDEX_cuTensorMapEncodeTiled:
        memset(*(CUtensorMap *const *)call->arguments[0], 0, sizeof(CUtensorMap));
        note_map(call);
        break;
    default:
        call->forward = true;
    }
    if (!call->forward) call->result = CUDA_SUCCESS;
}

static void after(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index == TOL_DRIVER_INDEX_cuModuleGetFunction) note_function(call);
}

/* ---- the dump -------------------------------------------------------------------------------- */

tol_status choice_dump_open(const char *library, struct choice_dump **dump) {
    static const struct tol_interpose_options options = {.before = before, .after = after};
    tol_status status = TOL_OK;
    struct choice_dump *made = calloc(1, sizeof *made);
    TOL_CHECK(made != NULL, TOL_OUT_OF_HOST_MEMORY, "no memory for a dump");
    seen = (struct choice_log){.next = (CUdeviceptr)1 << 44};
    TOL_TRY(tol_driver_open(library, &made->driver));
    TOL_TRY(tol_interpose_install(made->driver, &options));
    TOL_TRY(tol_context_create(made->driver, 0, &made->context));
    TOL_TRY(tol_stream_create(made->context, NULL, &made->stream));
    for (int i = 0; i < CHOICE_BUFFERS; i++) {
        TOL_TRY(tol_buffer_create(made->context, buffer_bytes, 1, &made->buffers[i]));
    }
    for (int i = 0; i < CHOICE_DEVICES; i++) {
        TOL_TRY(kn_kernels_create(made->context, &made->kernels[i]));
    }
    *dump = made;
    made = NULL;
out:
    choice_dump_close(made);
    return status;
}

void choice_dump_close(struct choice_dump *dump) {
    if (dump == NULL) return;
    for (int i = 0; i < CHOICE_DEVICES; i++) kn_kernels_destroy(dump->kernels[i]);
    for (int i = 0; i < CHOICE_BUFFERS; i++) tol_buffer_destroy(dump->buffers[i]);
    tol_stream_destroy(dump->stream);
    tol_context_destroy(dump->context);
    if (dump->driver != NULL) tol_interpose_remove(dump->driver);
    tol_driver_close(dump->driver);
    free(dump);
}

/* The context's own description of its device, which everything that chooses reads. */
static void pretend(struct choice_dump *dump, const struct choice_device *device) {
    struct tol_device *is = (struct tol_device *)(uintptr_t)tol_context_device(dump->context);
    snprintf(is->name, sizeof is->name, "%s", device->name);
    is->compute_capability = device->compute_capability;
    is->multiprocessors = device->multiprocessors;
    is->shared_bytes_per_block_optin = device->shared_bytes_per_block_optin;
    is->shared_bytes_per_multiprocessor = device->shared_bytes_per_multiprocessor;
}

/* Draws a problem and calls the operation. */
static tol_status call(struct choice_dump *dump, int device, int operation, int index,
                       size_t *workspace) {
    struct choice_place place = {.kernels = dump->kernels[device],
                                 .stream = dump->stream,
                                 .is_regular = index % 3 != 0,
                                 .state = (uint64_t)index * 0x9e3779b97f4a7c15u +
                                          (uint64_t)operation * 0xd1b54a32d192ed03u};
    for (int i = 0; i < CHOICE_BUFFERS; i++) place.buffers[i] = dump->buffers[i];
    seen.used = 0, seen.text[0] = 0, seen.maps = KN_FNV_BEGIN;
    return calls[operation](&place, workspace);
}

tol_status choice_dump_line(struct choice_dump *dump, int device, int operation, int index,
                            char *text, size_t bytes) {
    static char first[TEXT_BYTES];
    size_t workspace = 0, again = 0;
    pretend(dump, &choice_devices[device]);
    kn_kernels_use(dump->kernels[device], NULL); /* forgets plans */
    const tol_status status = call(dump, device, operation, index, &workspace);
    const uint64_t maps = seen.maps;
    memcpy(first, seen.text, sizeof first);
    const bool is_same = call(dump, device, operation, index, &again) == status &&
                         again == workspace && strcmp(first, seen.text) == 0;
    snprintf(text, bytes, "%s %s %d %s %zu%s maps %08x%s%s", choice_devices[device].name,
             choice_operations[operation], index, tol_status_name(status), workspace, first,
             (unsigned)maps, is_same ? "" : " and again", is_same ? "" : seen.text);
    return status;
}
