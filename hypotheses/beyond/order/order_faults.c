/*
 * The faults. A name that ends with "_one_in" occurs in one of that many calls of its kind, which
 * the seed and the attack select; the others occur in a fixed share of them.
 */
#include "order_faults.h"

#include "pool/pool_state.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* The argument at a position, as a type. */
#define ARGUMENT(call, position, type) (*(type *)(call)->arguments[position])

#define IS(call, function) ((call)->index == TOL_DRIVER_INDEX_##function)

static void order_faults_skip(struct tol_interpose_call *call) {
    call->forward = false;
    call->result = CUDA_SUCCESS;
}

/* Whether a call of some kind has the fault: one in an amount, or, if the name has none, one in
 * `usual`. */
static bool order_faults_is_now(unsigned usual) {
    static _Atomic unsigned calls;
    return hyp_sabotage_given() > 0 ? hyp_sabotage_now() : ++calls % usual == 0;
}

/* ---- Q1: events and streams ---- */

/* The stream where this thread began a capture that it has not ended; NULL: none. */
static _Thread_local CUstream order_faults_first;

static void order_faults_note_capture(const struct tol_interpose_call *call) {
    if (IS(call, cuStreamBeginCapture_v2)) order_faults_first = ARGUMENT(call, 0, CUstream);
    if (IS(call, cuStreamEndCapture)) order_faults_first = NULL;
}

/* A wait or a recording that is part of a capture is left to another fault. */
static void order_faults_drop_wait(struct tol_interpose_call *call, void *user) {
    (void)user;
    order_faults_note_capture(call);
    if (IS(call, cuStreamWaitEvent) && order_faults_first == NULL && order_faults_is_now(4)) {
        order_faults_skip(call);
    }
}

static void order_faults_drop_record(struct tol_interpose_call *call, void *user) {
    (void)user;
    order_faults_note_capture(call);
    if (IS(call, cuEventRecord) && order_faults_first == NULL && order_faults_is_now(4)) {
        order_faults_skip(call);
    }
}

/* An idle stream, which ends with the process. */
static void order_faults_move_record(struct tol_interpose_call *call, void *user) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static CUstream idle;
    (void)user;
    order_faults_note_capture(call);
    if (!IS(call, cuEventRecord) || order_faults_first != NULL || !order_faults_is_now(4)) return;
    pthread_mutex_lock(&lock);
    if (idle == NULL) (void)call->driver->cuStreamCreate(&idle, CU_STREAM_NON_BLOCKING);
    if (idle != NULL) ARGUMENT(call, 1, CUstream) = idle;
    pthread_mutex_unlock(&lock);
}

static void order_faults_answer_early(struct tol_interpose_call *call, void *user) {
    (void)user;
    if ((IS(call, cuEventQuery) || IS(call, cuEventSynchronize)) && order_faults_is_now(5)) {
        order_faults_skip(call);
    }
}

static void order_faults_answer_stream_early(struct tol_interpose_call *call, void *user) {
    (void)user;
    if ((IS(call, cuStreamQuery) || IS(call, cuStreamSynchronize)) && order_faults_is_now(5)) {
        order_faults_skip(call);
    }
}

static void order_faults_ignore_legacy(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (IS(call, cuStreamCreateWithPriority)) ARGUMENT(call, 1, unsigned) |= CU_STREAM_NON_BLOCKING;
}

/* ---- Q1: host functions and graphs ---- */

static void order_faults_call_early(struct tol_interpose_call *call, void *user) {
    (void)user;
    order_faults_note_capture(call);
    if (!IS(call, cuLaunchHostFunc) || order_faults_first != NULL || !order_faults_is_now(4))
        return;
    ARGUMENT(call, 1, CUhostFn)(ARGUMENT(call, 2, void *));
    order_faults_skip(call);
}

static void order_faults_lose_edge(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (!IS(call, cuGraphAddKernelNode_v2)) return;
    size_t *count = &ARGUMENT(call, 3, size_t);
    if (*count > 0 && order_faults_is_now(4)) --*count;
}

/* Not one that takes a stream into the capture, nor one of the stream where it began, which joins
 * the others: without these the capture would fail, and not only lose a dependence. */
static void order_faults_lose_dependence(struct tol_interpose_call *call, void *user) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    (void)user;
    order_faults_note_capture(call);
    if (!IS(call, cuStreamWaitEvent) || order_faults_first == NULL) return;
    const CUstream stream = ARGUMENT(call, 0, CUstream);
    if (stream == order_faults_first ||
        call->driver->cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS) {
        return;
    }
    if (status != CU_STREAM_CAPTURE_STATUS_NONE && order_faults_is_now(4)) order_faults_skip(call);
}

/* ---- Q2: what the pool hears of the driver, and what it does ---- */

/* The name of the fault; NULL: no attack of Q2 or Q3 has begun. */
static const char *_Atomic sabotage;
static atomic_bool is_compacting;

void order_fault_begin(const struct hyp_attack *attack) {
    atomic_store(&sabotage, attack->session.sabotage);
}

bool order_fault_now(const char *base) {
    return hyp_sabotage_turn(atomic_load(&sabotage), base);
}

void order_fault_compaction(bool is_under_way) {
    atomic_store(&is_compacting, is_under_way);
}

/* Only the copies of the pass itself, on the legacy stream, are waited for. What other streams
 * write between a copy and the new mapping is lost, so there is time for that. */
static void order_faults_compaction_early(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (!atomic_load(&is_compacting)) return;
    if (IS(call, cuMemUnmap)) usleep(1500);
    if (IS(call, cuStreamQuery) && ARGUMENT(call, 0, CUstream) != NULL) {
        order_faults_skip(call);
    }
}

/* A mapping gets the memory of the one before it, if that has the same size. */
static void order_faults_page_twice(struct tol_interpose_call *call, void *user) {
    static _Thread_local CUmemGenericAllocationHandle before;
    static _Thread_local size_t bytes;
    (void)user;
    if (!IS(call, cuMemMap)) return;
    CUmemGenericAllocationHandle *handle = &ARGUMENT(call, 3, CUmemGenericAllocationHandle);
    const CUmemGenericAllocationHandle own = *handle;
    if (before != 0 && bytes == ARGUMENT(call, 1, size_t) &&
        order_fault_now("page_mapped_twice_one_in")) {
        *handle = before;
    }
    before = own;
    bytes = ARGUMENT(call, 1, size_t);
}

/* The legacy stream orders nothing with the runtime's streams. */
static void order_faults_graph_astray(struct tol_interpose_call *call, void *user) {
    (void)user;
    if (IS(call, cuGraphLaunch) && order_fault_now("graph_astray_one_in")) {
        ARGUMENT(call, 1, CUstream) = NULL;
    }
}

/* The places of streams whose frees are all done. The caller holds the pool's lock. */
static uint64_t order_faults_done(const struct tol_pool *pool) {
    uint64_t done = 0;
    for (unsigned i = 0; i < TOL_TICKET_STREAMS; i++) {
        const struct tol_ticket_stream *place = &pool->tickets.streams[i];
        if (place->done >= place->last) done |= (uint64_t)1 << i;
    }
    return done;
}

tol_status order_fault_free(struct tol_pool *pool, struct tol_block block,
                            struct tol_stream *stream) {
    const char *name = atomic_load(&sabotage);
    if (name == NULL || strcmp(name, "ticket_off_by_one") != 0) {
        return tol_pool_free(pool, block, stream);
    }
    pthread_mutex_lock(&pool->lock);
    const uint64_t done = order_faults_done(pool);
    pthread_mutex_unlock(&pool->lock);
    const tol_status status = tol_pool_free(pool, block, stream);
    pthread_mutex_lock(&pool->lock);
    for (uint64_t rest = done & ~order_faults_done(pool); rest != 0; rest &= rest - 1) {
        struct tol_ticket_stream *place = &pool->tickets.streams[__builtin_ctzll(rest)];
        place->done = place->last;
    }
    pthread_mutex_unlock(&pool->lock);
    return status;
}

/* ---- Q3: calls that the driver does not get; below the interposer ---- */

static struct tol_driver_table real;

/* A function that says success and does nothing, when it is its turn. */
#define LOST_LOSES(fault, function, parameters, names)                                             \
    static CUresult CUDAAPI order_lost_##function parameters {                                     \
        return order_fault_now(fault) ? CUDA_SUCCESS : real.function names;                        \
    }
#define LOST_FUNCTIONS(LOSES)                                                                      \
    LOSES("free_lost_one_in", cuMemFree_v2, (CUdeviceptr at), (at))                                \
    LOSES("release_lost_one_in", cuMemRelease, (CUmemGenericAllocationHandle handle), (handle))    \
    LOSES("unmap_lost_one_in", cuMemUnmap, (CUdeviceptr at, size_t bytes), (at, bytes))            \
    LOSES("addresses_lost_one_in", cuMemAddressFree, (CUdeviceptr at, size_t bytes), (at, bytes))  \
    LOSES("pinned_lost_one_in", cuMemFreeHost, (void *at), (at))                                   \
    LOSES("driver_pool_lost_one_in", cuMemPoolDestroy, (CUmemoryPool pool), (pool))                \
    LOSES("unload_lost_one_in", cuModuleUnload, (CUmodule module), (module))                       \
    LOSES("stream_lost_one_in", cuStreamDestroy_v2, (CUstream stream), (stream))                   \
    LOSES("event_lost_one_in", cuEventDestroy_v2, (CUevent event), (event))                        \
    LOSES("graph_lost_one_in", cuGraphDestroy, (CUgraph graph), (graph))                           \
    LOSES("instance_lost_one_in", cuGraphExecDestroy, (CUgraphExec exec), (exec))                  \
    LOSES("context_lost_one_in", cuDevicePrimaryCtxRelease_v2, (CUdevice device), (device))
LOST_FUNCTIONS(LOST_LOSES)

static CUresult CUDAAPI order_stale_memory_info(size_t *free_bytes, size_t *total) {
    static size_t first_free;
    const CUresult result = real.cuMemGetInfo_v2(free_bytes, total);
    if (result != CUDA_SUCCESS) return result;
    if (first_free == 0) first_free = *free_bytes;
    *free_bytes = first_free;
    return result;
}

void order_fault_plant(const struct hyp_attack *attack, const struct tol_driver_table *table) {
    struct tol_driver_table *changed = (struct tol_driver_table *)(uintptr_t)table;
    const char *name = attack->session.sabotage;
    order_fault_begin(attack);
    if (name == NULL) return;
    if (real.cuInit == NULL) real = *table; /* the tables of one library are the same */
#define LOST_PLANTS(fault, function, parameters, names)                                            \
    if (hyp_sabotage_amount(name, fault) > 0 && table->function != NULL) {                         \
        changed->function = order_lost_##function;                                                 \
    }
    LOST_FUNCTIONS(LOST_PLANTS)
    if (strcmp(name, "memory_info_stale") == 0) changed->cuMemGetInfo_v2 = order_stale_memory_info;
}

#define LOST(fault, call)                                                                          \
    { fault, "one " call " in this many is lost", NULL, NULL, true, NULL }

const struct hyp_fault order_faults[] = {
    {.name = "wait_dropped",
     .sentence = "every fourth wait of a stream for an event is skipped",
     .before = order_faults_drop_wait},
    {.name = "record_dropped",
     .sentence = "every fourth recording of an event is skipped",
     .before = order_faults_drop_record},
    {.name = "record_elsewhere",
     .sentence = "every fourth event is recorded in an idle stream",
     .before = order_faults_move_record},
    {.name = "event_early",
     .sentence = "every fifth query of an event is answered with done",
     .before = order_faults_answer_early},
    {.name = "stream_early",
     .sentence = "every fifth query of a stream is answered with done",
     .before = order_faults_answer_stream_early},
    {.name = "legacy_ignored",
     .sentence = "streams that should wait for the legacy stream do not",
     .before = order_faults_ignore_legacy},
    {.name = "host_function_early",
     .sentence = "every fourth host function is called as soon as it is queued",
     .before = order_faults_call_early},
    {.name = "edge_lost",
     .sentence = "every fourth node of a graph with edges lacks its last one",
     .before = order_faults_lose_edge},
    {.name = "capture_loosened",
     .sentence = "every fourth wait between captured streams is skipped",
     .before = order_faults_lose_dependence},
    {.name = "wait_dropped_one_in",
     .sentence = "one wait of a stream for an event in this many is skipped",
     .before = order_faults_drop_wait,
     .has_amount = true},
    {.name = "event_early_one_in",
     .sentence = "one query of an event in this many is answered with done",
     .before = order_faults_answer_early,
     .has_amount = true},
    {.name = "stream_early_one_in",
     .sentence = "one query of a stream in this many is answered with done",
     .before = order_faults_answer_stream_early,
     .has_amount = true},
    {.name = "edge_lost_one_in",
     .sentence = "one node with edges in this many lacks its last one",
     .before = order_faults_lose_edge,
     .has_amount = true},
    /* Q2 */
    {"page_mapped_twice_one_in", "one mapping in this many has the memory of the one before it",
     order_faults_page_twice, NULL, true, NULL},
    {"graph_astray_one_in", "one graph in this many is launched on the legacy default stream",
     order_faults_graph_astray, NULL, true, NULL},
    {"compaction_in_use", "compaction does not wait for the work of streams",
     order_faults_compaction_early, NULL, false, NULL},
    {"ticket_off_by_one", "the work of a free counts as done when that of the free before it is",
     NULL, NULL, false, NULL},
    {"block_given_twice_one_in",
     "one block in this many goes back to the pool while its owner has it", NULL, NULL, true, NULL},
    /* Q3 */
    LOST("free_lost_one_in", "free of device memory"),
    LOST("release_lost_one_in", "release of a handle of memory"),
    LOST("unmap_lost_one_in", "unmapping of memory"),
    LOST("addresses_lost_one_in", "free of reserved addresses"),
    LOST("pinned_lost_one_in", "free of pinned host memory"),
    LOST("driver_pool_lost_one_in", "destruction of a driver's pool"),
    LOST("unload_lost_one_in", "unload of a module"),
    LOST("stream_lost_one_in", "destruction of a stream"),
    LOST("event_lost_one_in", "destruction of an event"),
    LOST("graph_lost_one_in", "destruction of a graph"),
    LOST("instance_lost_one_in", "destruction of an instance of a graph"),
    LOST("context_lost_one_in", "release of a context"),
    {"memory_info_stale", "the driver says that as much memory is free as at first", NULL, NULL,
     false, NULL},
    {.name = NULL}};

/* ---- the claims: their text and their saboteurs are in beyond.toml ---- */

#define ORDER_SABOTEURS(id, ...)                                                                   \
    static const struct hyp_saboteur saboteurs_of_##id[] = {__VA_ARGS__};
#include "beyond.def"

static const struct hyp_plugin_claim claims[] = {
#define ORDER_CLAIM(id, ...) {__VA_ARGS__, .saboteurs = saboteurs_of_##id},
#include "beyond.def"
    {.id = NULL}};

HYP_PLUGIN(.name = "order", .version = "1", .claims = claims, .faults = order_faults);
