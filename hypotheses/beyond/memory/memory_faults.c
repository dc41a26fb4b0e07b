/*
 * The faults. Sealed memory is changed after a copy to the host, such as that of a verification's
 * tags, so the next verification must find the change.
 */
#include "memory_faults.h"

#include <string.h>

/* The argument at a position, as a type. */
#define ARGUMENT(call, position, type) (*(type *)(call)->arguments[position])

enum { CHUNK = 16384, LEFT_BYTES = 4096 };

static struct {
    const char *plain;
    size_t plain_bytes;
    struct tol_place sealed;
    unsigned copies; /* to the host, since the place was set */
} target;

void memory_fault_on(const void *plain, size_t bytes) {
    target.plain = plain;
    target.plain_bytes = bytes;
}

void memory_fault_at(struct tol_place place) {
    target.sealed = place;
    target.copies = 0;
}

CUresult memory_write(const struct tol_driver_table *cu, CUdeviceptr at, const void *bytes,
                      size_t count) {
    const CUresult result = cu->cuMemcpyHtoD_v2(at, bytes, count);
    return result == CUDA_SUCCESS ? cu->cuStreamSynchronize(NULL) : result;
}

/* ---- a block left plain ---- */

static void memory_faults_enlarge(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (call->index == TOL_DRIVER_INDEX_cuMemAlloc_v2) ARGUMENT(call, 1, size_t) += LEFT_BYTES;
}

static void leave_plain(struct tol_interpose_call *call, void *user) {
    enum { PIECE = 64 };
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuMemAlloc_v2 || call->result != CUDA_SUCCESS) return;
    if (target.plain_bytes < PIECE) return;
    const CUdeviceptr end = *ARGUMENT(call, 0, CUdeviceptr *) + ARGUMENT(call, 1, size_t);
    (void)memory_write(call->driver, end - PIECE, target.plain, PIECE);
}

/* ---- changes ---- */

/* Every third copy to the host. */
static bool memory_faults_is_time(const struct tol_interpose_call *call) {
    return call->index == TOL_DRIVER_INDEX_cuMemcpyDtoH_v2 && target.sealed.address != 0 &&
           ++target.copies % 3 == 1;
}

static void change_bit(struct tol_interpose_call *call, void *user) {
    unsigned char byte = 0;
    (void)user;
    if (!memory_faults_is_time(call)) return;
    const CUdeviceptr at = target.sealed.address + target.sealed.bytes / 2;
    (void)call->driver->cuMemcpyDtoH_v2(&byte, at, 1);
    byte ^= 8;
    (void)memory_write(call->driver, at, &byte, 1);
}

static void swap_chunks(struct tol_interpose_call *call, void *user) {
    static char chunks[2][CHUNK];
    (void)user;
    if (!memory_faults_is_time(call) || target.sealed.bytes < sizeof chunks) return;
    const CUdeviceptr at = target.sealed.address;
    (void)call->driver->cuMemcpyDtoH_v2(chunks, at, sizeof chunks);
    (void)memory_write(call->driver, at, chunks[1], CHUNK);
    (void)memory_write(call->driver, at + CHUNK, chunks[0], CHUNK);
}

/* ---- a verification that sees nothing ---- */

/* Small copies to the host have the bytes that the first of them from the same place had. */
static void replay_tags(struct tol_interpose_call *call, void *user) {
    enum { PLACES = 256, TAGS = 256 };
    static struct {
        CUdeviceptr from;
        size_t bytes;
        char first[TAGS];
    } seen[PLACES];
    static size_t count;
    (void)user;
    if (call->index != TOL_DRIVER_INDEX_cuMemcpyDtoH_v2) return;
    void *to = ARGUMENT(call, 0, void *);
    const CUdeviceptr from = ARGUMENT(call, 1, CUdeviceptr);
    const size_t bytes = ARGUMENT(call, 2, size_t);
    if (bytes > TAGS) return;
    for (size_t i = 0; i < count; i++) {
        if (seen[i].from != from || seen[i].bytes != bytes) continue;
        memcpy(to, seen[i].first, bytes);
        return;
    }
    if (count == PLACES) return;
    seen[count].from = from;
    seen[count].bytes = bytes;
    memcpy(seen[count++].first, to, bytes);
}

const struct hyp_fault memory_faults[] = {
    {.name = "block_left_plain",
     .sentence = "64 plain bytes are left after each allocation of device memory",
     .before = memory_faults_enlarge,
     .after = leave_plain},
    {.name = "sealed_bit_changed",
     .sentence = "a bit of sealed memory changes between two calls",
     .after = change_bit},
    {.name = "sealed_chunks_swapped",
     .sentence = "the first two chunks of sealed memory change places between two calls",
     .after = swap_chunks},
    {.name = "verification_blind",
     .sentence = "the tags that a verification reads back are those of the first",
     .after = replay_tags},
    {.name = "key_stream_reused",
     .sentence = "a second sealing is encrypted with the key stream of the first"},
    {.name = "manifest_changed",
     .sentence = "a number in the manifest of a packed file differs from the one that was written"},
    {.name = "watch_rule_lost", .sentence = "one of the rules is missing"},
    {.name = "watch_copy_lost", .sentence = "the watch does not see one of the ways to copy"},
    {.name = "watch_graph_lost", .sentence = "the watch does not see launches of graphs"},
    {.name = "watch_kernel_lost",
     .sentence = "the watch sees no launches of kernels, nor what they access"},
    {.name = "watch_share_lost", .sentence = "the watch sees no handles and no mappings"},
    {.name = "watch_limit_tenfold",
     .sentence = "the limit on copied bytes is ten times the requested one"},
    {.name = "watch_alarm_lost", .sentence = "every third alarm is lost"},
    {.name = "watch_block_mistaken", .sentence = "alarms name another block"},
    {.name = "watch_refusal_ignored",
     .sentence = "a call that a rule refuses is executed, and the caller still gets the error"},
    {.name = "watch_false_alarm",
     .sentence = "each asynchronous copy from the host raises an alarm"},
    {.name = NULL}};

bool memory_fault_is(const struct hyp_attack *attack, const char *name) {
    return attack->session.sabotage != NULL && strcmp(attack->session.sabotage, name) == 0;
}

void memory_fault_hooks(const struct hyp_attack *attack, struct tol_interpose_options *options) {
    for (const struct hyp_fault *f = memory_faults; f->name != NULL; f++) {
        if (!memory_fault_is(attack, f->name)) continue;
        options->before = f->before;
        options->after = f->after;
    }
}

/* ---- the claims: their text and their saboteurs are in beyond.toml ---- */

#define MEMORY_SABOTEURS(id, ...)                                                                  \
    static const struct hyp_saboteur saboteurs_of_##id[] = {__VA_ARGS__};
#include "beyond.def"

static const struct hyp_plugin_claim claims[] = {
#define MEMORY_CLAIM(id, ...) {__VA_ARGS__, .saboteurs = saboteurs_of_##id},
#include "beyond.def"
    {.id = NULL}};

HYP_PLUGIN(.name = "memory", .version = "1", .claims = claims, .faults = memory_faults);
