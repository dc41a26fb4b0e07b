/*
 * Each way is one call of the runtime, or one of the driver through the table that saboteurs
 * change.
 */
#include "peer_ways.h"

static const char *const names[PEER_WAYS] = {
    [PEER_ENGINE] = "copy engine",   [PEER_PUSH] = "copy engine, pushed",
    [PEER_LOAD] = "kernel load",     [PEER_STORE] = "kernel store",
    [PEER_ATOMIC] = "atomics",       [PEER_MAPPED] = "mapping",
    [PEER_HOST] = "through the host"};

const char *peer_way_name(enum peer_way way) {
    return names[way];
}

bool peer_way_is_open(const struct peer_stage *stage, enum peer_way way, size_t from, size_t to) {
    switch (way) {
    case PEER_LOAD:
        return stage->reaches[to][from];
    case PEER_STORE:
        return stage->reaches[from][to];
    case PEER_ATOMIC:
        return stage->has_atomics[from][to];
    case PEER_MAPPED:
        return stage->reaches[from][to];
    default:
        return true;
    }
}

struct tol_stream *peer_way_stream(const struct peer_trial *trial, enum peer_way way) {
    const bool is_source =
        way == PEER_PUSH || way == PEER_STORE || way == PEER_ATOMIC || way == PEER_MAPPED;
    return trial->stage->devices[is_source ? trial->from : trial->to].stream;
}

/* A transfer remembers which devices it reached, so those that go through the host are new. */
static bool by_runtime(const struct peer_trial *t, bool through_host) {
    struct peer_stage *stage = t->stage;
    struct hyp_attack *attack = stage->attack;
    const struct peer_device *to = &stage->devices[t->to], *from = &stage->devices[t->from];
    struct tol_transfer *transfer = NULL;
    struct tol_transfer_stats stats = {0};
    bool ok = HYP_OK(attack, tol_transfer_create(to->context, NULL, &transfer));
    stage->goes_through_host = through_host;
    ok = ok &&
         HYP_OK(attack, tol_transfer_peer(transfer,
                                          (struct tol_place){t->target->address, t->target->bytes},
                                          t->target_offset, from->transfer,
                                          (struct tol_place){t->source->address, t->source->bytes},
                                          t->source_offset, t->bytes)) &&
         HYP_OK(attack, tol_transfer_stats(transfer, &stats));
    stage->goes_through_host = false;
    tol_transfer_destroy(transfer);
    /* A pair without peer access goes through the host in either case. */
    return ok && HYP_CHECK(attack,
                           (stats.peer_through_host > 0) ==
                               (through_host || !stage->reaches[t->to][t->from]),
                           "a copy from device %zu to device %zu went %s", t->from, t->to,
                           stats.peer_through_host > 0 ? "through the host" : "directly");
}

static bool by_engine(const struct peer_trial *t, struct tol_stream *stream) {
    struct peer_stage *stage = t->stage;
    if (!HYP_OK(stage->attack, tol_context_bind(tol_stream_context(stream)))) return false;
    const CUresult result = stage->functions->cuMemcpyPeerAsync(
        t->target->address + t->target_offset, stage->devices[t->to].handle,
        t->source->address + t->source_offset, stage->devices[t->from].handle, t->bytes,
        tol_stream_handle(stream));
    return HYP_CHECK(stage->attack, result == CUDA_SUCCESS,
                     "cuMemcpyPeerAsync of %zu bytes from device %zu to device %zu: CUDA error %d",
                     t->bytes, t->from, t->to, (int)result);
}

/* Enough threads for the largest copies to loop, and for small ones to leave no block idle. */
static struct tol_launch_shape shape_for(size_t bytes) {
    enum { BLOCK = 256, THREADS_MAX = 256 * 2048 };
    const size_t threads = bytes / 4 + 1;
    return tol_launch_linear(threads < THREADS_MAX ? threads : THREADS_MAX, BLOCK);
}

static bool by_kernel(const struct peer_trial *t, enum peer_way way, struct tol_stream *stream) {
    const struct peer_device *device = &t->stage->devices[way == PEER_LOAD ? t->to : t->from];
    const CUdeviceptr to = t->target->address + t->target_offset;
    const CUdeviceptr from = t->source->address + t->source_offset;
    const unsigned long long bytes = t->bytes;
    if (way == PEER_ATOMIC) {
        enum { EACH_MAX = 4096 };
        const unsigned was = t->poison, each = bytes <= EACH_MAX;
        return HYP_OK(t->stage->attack, tol_launch(stream, device->flip, shape_for(t->bytes),
                                                   TOL_ARGUMENTS(to, from, bytes, was, each)));
    }
    return HYP_OK(t->stage->attack, tol_launch(stream, device->move, shape_for(t->bytes),
                                               TOL_ARGUMENTS(to, from, bytes)));
}

bool peer_way_queue(const struct peer_trial *trial, enum peer_way way, struct tol_stream *stream) {
    switch (way) {
    case PEER_ENGINE:
        return by_runtime(trial, false);
    case PEER_HOST:
        return by_runtime(trial, true);
    case PEER_PUSH:
        return by_engine(trial, stream);
    default:
        return by_kernel(trial, way, stream);
    }
}

bool peer_way_run(const struct peer_trial *trial, enum peer_way way) {
    struct tol_stream *stream = peer_way_stream(trial, way);
    return peer_way_queue(trial, way, stream) &&
           HYP_OK(trial->stage->attack, tol_stream_synchronize_for(stream, 60000));
}

bool peer_area_map(struct peer_stage *stage, size_t to, size_t from, size_t bytes,
                   struct peer_area *area, bool *is_skipped) {
    const struct peer_driver *driver = &stage->driver;
    *area = (struct peer_area){.device = &stage->devices[to]};
    *is_skipped = false;
    if (!HYP_OK(stage->attack, tol_context_bind(area->device->context))) return false;
    CUresult result =
        peer_mapping_create(driver, (int)to, bytes + 2 * PEER_GUARD + 16, false, &area->mapping);
    if (result == CUDA_SUCCESS) {
        result =
            peer_mapping_allow(driver, &area->mapping, (int)to, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    }
    if (result == CUDA_SUCCESS) {
        result = peer_mapping_allow(driver, &area->mapping, (int)from,
                                    CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    }
    if (result == CUDA_ERROR_NOT_SUPPORTED) {
        *is_skipped = true;
        hyp_attack_note(stage->attack,
                        "not tested: memory of device %zu mapped for device %zu: the driver says "
                        "that it does not support it",
                        to, from);
        return false;
    }
    area->address = area->mapping.address + PEER_GUARD;
    area->bytes = area->mapping.bytes - 2 * PEER_GUARD;
    return HYP_CHECK(stage->attack, result == CUDA_SUCCESS,
                     "mapping memory of device %zu for device %zu: CUDA error %d", to, from,
                     (int)result);
}
