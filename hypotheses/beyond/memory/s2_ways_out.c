/*
 * Attacks on S2, calls: every way in which a call reads weights out, copies them, changes them or
 * gives their memory away must raise the alarm of its rule, with the block and the bytes, and must
 * not happen where the rule refuses.
 */
#include "watch_stage.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A piece of the weights, in four rows of a quarter where a way copies rows. */
struct hidden_piece {
    size_t at, bytes, row, pitch;
};

static struct hidden_piece ways_draw_piece(struct watch_stage *s) {
    struct hidden_piece piece = {.bytes =
                                     4 * (1 + (size_t)hyp_random_below(s->attack, s->bytes / 16))};
    piece.at = 4 * (size_t)hyp_random_below(s->attack, s->bytes / 8 / 4);
    piece.row = piece.bytes / 4;
    piece.pitch = piece.row + (size_t)hyp_random_below(s->attack, s->bytes / 16);
    return piece;
}

typedef CUresult way(struct watch_stage *s, const struct hidden_piece *piece);

static CUdeviceptr ways_from(const struct watch_stage *s, const struct hidden_piece *piece) {
    return tol_buffer_address(s->weights) + piece->at;
}

static CUdeviceptr ways_target(const struct watch_stage *s) {
    return tol_buffer_address(s->target);
}

/* The host's memory by its address on the device. */
static CUdeviceptr ways_mapped(const struct watch_stage *s) {
    return (CUdeviceptr)(uintptr_t)s->host;
}

static CUstream ways_stream(const struct watch_stage *s) {
    return tol_stream_handle(s->stream);
}

static CUcontext ways_context(const struct watch_stage *s) {
    CUcontext current = NULL;
    (void)s->cu->cuCtxGetCurrent(&current);
    return current;
}

#define WAY(name) static CUresult name(struct watch_stage *s, const struct hidden_piece *p)

/* ---- out to the host ------------------------------------------------------------------------- */

WAY(out_sync) {
    return s->cu->cuMemcpyDtoH_v2(s->host, ways_from(s, p), p->bytes);
}
WAY(out_async) {
    return s->cu->cuMemcpyDtoHAsync_v2(s->host, ways_from(s, p), p->bytes, ways_stream(s));
}
WAY(out_second) {
    return s->cu->cuMemcpyDtoHAsync_v2(s->host, ways_from(s, p), p->bytes,
                                       tol_stream_handle(s->second));
}
WAY(out_unified) {
    return s->cu->cuMemcpy(ways_mapped(s), ways_from(s, p), p->bytes);
}
WAY(out_unified_async) {
    return s->cu->cuMemcpyAsync(ways_mapped(s), ways_from(s, p), p->bytes, ways_stream(s));
}
WAY(out_mapped) {
    return s->cu->cuMemcpyDtoD_v2(ways_mapped(s), ways_from(s, p), p->bytes);
}
WAY(out_mapped_async) {
    return s->cu->cuMemcpyDtoDAsync_v2(ways_mapped(s), ways_from(s, p), p->bytes, ways_stream(s));
}

static CUDA_MEMCPY2D rows_out(const struct watch_stage *s, const struct hidden_piece *p) {
    return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = ways_from(s, p),
                           .srcPitch = p->pitch,
                           .dstMemoryType = CU_MEMORYTYPE_HOST,
                           .dstHost = s->host,
                           .dstPitch = p->row,
                           .WidthInBytes = p->row,
                           .Height = 4};
}
WAY(out_rows) {
    const CUDA_MEMCPY2D copy = rows_out(s, p);
    return s->cu->cuMemcpy2D_v2(&copy);
}
WAY(out_rows_unaligned) {
    const CUDA_MEMCPY2D copy = rows_out(s, p);
    return s->cu->cuMemcpy2DUnaligned_v2(&copy);
}
WAY(out_rows_async) {
    const CUDA_MEMCPY2D copy = rows_out(s, p);
    return s->cu->cuMemcpy2DAsync_v2(&copy, ways_stream(s));
}
WAY(out_rows_unified) {
    CUDA_MEMCPY2D copy = rows_out(s, p);
    copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.dstDevice = ways_mapped(s);
    return s->cu->cuMemcpy2DAsync_v2(&copy, ways_stream(s));
}

static CUDA_MEMCPY3D layers_out(const struct watch_stage *s, const struct hidden_piece *p) {
    return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = ways_from(s, p),
                           .srcPitch = p->pitch,
                           .srcHeight = 2,
                           .dstMemoryType = CU_MEMORYTYPE_HOST,
                           .dstHost = s->host,
                           .dstPitch = p->row,
                           .dstHeight = 2,
                           .WidthInBytes = p->row,
                           .Height = 2,
                           .Depth = 2};
}
WAY(out_layers) {
    const CUDA_MEMCPY3D copy = layers_out(s, p);
    return s->cu->cuMemcpy3D_v2(&copy);
}
WAY(out_layers_async) {
    const CUDA_MEMCPY3D copy = layers_out(s, p);
    return s->cu->cuMemcpy3DAsync_v2(&copy, ways_stream(s));
}

static const struct {
    const char *call;
    way *go;
} ways_out[] = {{"cuMemcpyDtoH_v2", out_sync},
                {"cuMemcpyDtoHAsync_v2", out_async},
                {"cuMemcpyDtoHAsync_v2", out_second},
                {"cuMemcpy", out_unified},
                {"cuMemcpyAsync", out_unified_async},
                {"cuMemcpyDtoD_v2", out_mapped},
                {"cuMemcpyDtoDAsync_v2", out_mapped_async},
                {"cuMemcpy2D_v2", out_rows},
                {"cuMemcpy2DUnaligned_v2", out_rows_unaligned},
                {"cuMemcpy2DAsync_v2", out_rows_async},
                {"cuMemcpy2DAsync_v2", out_rows_unified},
                {"cuMemcpy3D_v2", out_layers},
                {"cuMemcpy3DAsync_v2", out_layers_async}};

/* ---- to other memory of a device ------------------------------------------------------------- */

WAY(aside) {
    return s->cu->cuMemcpyDtoD_v2(ways_target(s), ways_from(s, p), p->bytes);
}
WAY(aside_async) {
    return s->cu->cuMemcpyDtoDAsync_v2(ways_target(s), ways_from(s, p), p->bytes, ways_stream(s));
}
WAY(aside_unified) {
    return s->cu->cuMemcpyAsync(ways_target(s), ways_from(s, p), p->bytes, ways_stream(s));
}
WAY(aside_peer) {
    return s->cu->cuMemcpyPeer(ways_target(s), ways_context(s), ways_from(s, p), ways_context(s),
                               p->bytes);
}
WAY(aside_peer_async) {
    return s->cu->cuMemcpyPeerAsync(ways_target(s), ways_context(s), ways_from(s, p),
                                    ways_context(s), p->bytes, ways_stream(s));
}
WAY(aside_rows) {
    CUDA_MEMCPY2D copy = rows_out(s, p);
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = ways_target(s);
    return s->cu->cuMemcpy2DAsync_v2(&copy, ways_stream(s));
}

static CUDA_MEMCPY3D_PEER layers_aside(const struct watch_stage *s, const struct hidden_piece *p) {
    return (CUDA_MEMCPY3D_PEER){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                .srcDevice = ways_from(s, p),
                                .srcPitch = p->pitch,
                                .srcHeight = 2,
                                .srcContext = ways_context(s),
                                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                .dstDevice = ways_target(s),
                                .dstPitch = p->row,
                                .dstHeight = 2,
                                .dstContext = ways_context(s),
                                .WidthInBytes = p->row,
                                .Height = 2,
                                .Depth = 2};
}
WAY(aside_layers_peer) {
    const CUDA_MEMCPY3D_PEER copy = layers_aside(s, p);
    return s->cu->cuMemcpy3DPeer(&copy);
}
WAY(aside_layers_peer_async) {
    const CUDA_MEMCPY3D_PEER copy = layers_aside(s, p);
    return s->cu->cuMemcpy3DPeerAsync(&copy, ways_stream(s));
}

static const struct {
    const char *call;
    way *go;
} ways_aside[] = {{"cuMemcpyDtoD_v2", aside},
                  {"cuMemcpyDtoDAsync_v2", aside_async},
                  {"cuMemcpyAsync", aside_unified},
                  {"cuMemcpyPeer", aside_peer},
                  {"cuMemcpyPeerAsync", aside_peer_async},
                  {"cuMemcpy2DAsync_v2", aside_rows},
                  {"cuMemcpy3DPeer", aside_layers_peer},
                  {"cuMemcpy3DPeerAsync", aside_layers_peer_async}};

/* A piece of one value is as good as none: what came must be the weights', what was refused must
 * not have come. */
static void check_came(struct watch_stage *s, const struct hidden_piece *p, const char *what) {
    const unsigned char *content = s->content + p->at;
    const bool is_there = memcmp(s->host, content, p->row) == 0;
    HYP_CHECK(s->attack, is_there != s->refuses || p->row < 8, "%s of %zu bytes %s", what, p->bytes,
              is_there ? "was refused, but the bytes arrived" : "did not happen");
    memset(s->host, 0xa5, s->bytes);
}

static void try_out(struct watch_stage *s, size_t which) {
    const struct hidden_piece p = ways_draw_piece(s);
    const char *call = ways_out[which].call;
    const CUresult result = ways_out[which].go(s, &p);
    HYP_CHECK(s->attack, result == (s->refuses ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS),
              "%s of %zu bytes: error %d", call, p.bytes, (int)result);
    watch_stage_settle(s);
    watch_stage_expect(s, call,
                       WANTED({TOL_WATCH_NO_READ_BACK, "weights.0", call, (double)p.bytes},
                              {TOL_WATCH_NO_COPY, "weights.0", call, (double)p.bytes}),
                       2);
    check_came(s, &p, call);
}

static void try_aside(struct watch_stage *s, size_t which) {
    const struct hidden_piece p = ways_draw_piece(s);
    const char *call = ways_aside[which].call;
    const CUresult result = ways_aside[which].go(s, &p);
    HYP_CHECK(s->attack, result == (s->refuses ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS),
              "%s of %zu bytes: error %d", call, p.bytes, (int)result);
    watch_stage_settle(s);
    watch_stage_expect(s, call, WANTED({TOL_WATCH_NO_COPY, "weights.0", call, (double)p.bytes}), 1);
    /* And out from there, which is allowed: the alarm came before. */
    (void)s->attack->raw->cuMemcpyDtoH_v2(s->host, ways_target(s), p.bytes);
    check_came(s, &p, call);
    watch_stage_clear(s);
}

static void all_ways(struct hyp_attack *attack, bool refuses) {
    enum {
        OUT = sizeof ways_out / sizeof ways_out[0],
        ASIDE = sizeof ways_aside / sizeof ways_aside[0]
    };
    const unsigned rounds = attack->session.full ? 20 : 3;
    struct watch_stage *s = malloc(sizeof *s);
    if (!HYP_CHECK(attack, s != NULL, "no host memory")) return;
    if (watch_stage_begin(attack, s, refuses)) {
        for (unsigned round = 0; round < rounds; round++) {
            for (size_t i = 0; i < OUT; i++) try_out(s, i);
            for (size_t i = 0; i < ASIDE; i++) try_aside(s, i);
            hyp_attack_progress(attack, (round + 1.0) / rounds);
        }
        watch_stage_unchanged(s, true, "after copies");
    }
    watch_stage_end(s);
    free(s);
}

HYP_ATTACK(s2, every_copy_is_noticed) {
    all_ways(attack, false);
}

HYP_ATTACK(s2, every_copy_is_refused_where_rules_refuse) {
    all_ways(attack, true);
}

/* ---- in small pieces, slowly ----------------------------------------------------------------- */

HYP_ATTACK(s2, few_bytes_at_a_time_are_noticed) {
    const unsigned pieces = attack->session.full ? 2000 : 150;
    struct watch_stage *s = malloc(sizeof *s);
    if (!HYP_CHECK(attack, s != NULL, "no host memory")) return;
    bool ok = watch_stage_begin(attack, s, false);
    for (unsigned i = 0; ok && i < pieces; i++) {
        const size_t bytes = 1 + (size_t)hyp_random_below(attack, 16);
        const CUdeviceptr at =
            tol_buffer_address(s->weights) + hyp_random_below(attack, s->bytes - bytes + 1);
        watch_stage_wait_ns(1000000000u + hyp_random_below(attack, 1u << 30));
        ok = HYP_CHECK(attack, s->cu->cuMemcpyDtoH_v2(s->host, at, bytes) == CUDA_SUCCESS,
                       "a copy of %zu bytes failed", bytes) &&
             watch_stage_expect(s, "a few bytes",
                                WANTED({TOL_WATCH_NO_READ_BACK, "weights.0", NULL, (double)bytes},
                                       {TOL_WATCH_NO_COPY, "weights.0", NULL, (double)bytes}),
                                2);
    }
    watch_stage_end(s);
    free(s);
}

/* ---- changes --------------------------------------------------------------------------------- */

WAY(in_sync) {
    return s->cu->cuMemcpyHtoD_v2(ways_from(s, p), s->host, p->bytes);
}
WAY(in_async) {
    return s->cu->cuMemcpyHtoDAsync_v2(ways_from(s, p), s->host, p->bytes, ways_stream(s));
}
WAY(in_device) {
    return s->cu->cuMemcpyDtoDAsync_v2(ways_from(s, p), ways_target(s), p->bytes, ways_stream(s));
}
WAY(in_mapped) {
    return s->cu->cuMemcpyDtoD_v2(ways_from(s, p), ways_mapped(s), p->bytes);
}
WAY(in_unified) {
    return s->cu->cuMemcpy(ways_from(s, p), ways_mapped(s), p->bytes);
}
WAY(in_rows) {
    const CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                .srcHost = s->host,
                                .srcPitch = p->row,
                                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                .dstDevice = ways_from(s, p),
                                .dstPitch = p->pitch,
                                .WidthInBytes = p->row,
                                .Height = 4};
    return s->cu->cuMemcpy2DAsync_v2(&copy, ways_stream(s));
}
WAY(fill_8) {
    return s->cu->cuMemsetD8_v2(ways_from(s, p), 7, p->bytes);
}
WAY(fill_16) {
    return s->cu->cuMemsetD16Async(ways_from(s, p), 7, p->bytes / 2, ways_stream(s));
}
WAY(fill_32) {
    return s->cu->cuMemsetD32Async(ways_from(s, p), 7, p->bytes / 4, ways_stream(s));
}
WAY(fill_rows) {
    return s->cu->cuMemsetD2D8_v2(ways_from(s, p), p->pitch, 7, p->row, 4);
}

static const struct {
    const char *call;
    way *go;
} ways_in[] = {{"cuMemcpyHtoD_v2", in_sync},
               {"cuMemcpyHtoDAsync_v2", in_async},
               {"cuMemcpyDtoDAsync_v2", in_device},
               {"cuMemcpyDtoD_v2", in_mapped},
               {"cuMemcpy", in_unified},
               {"cuMemcpy2DAsync_v2", in_rows},
               {"cuMemsetD8_v2", fill_8},
               {"cuMemsetD16Async", fill_16},
               {"cuMemsetD32Async", fill_32},
               {"cuMemsetD2D8_v2", fill_rows}};

static void all_changes(struct hyp_attack *attack, bool refuses) {
    const unsigned rounds = attack->session.full ? 20 : 3;
    struct watch_stage *s = malloc(sizeof *s);
    if (!HYP_CHECK(attack, s != NULL, "no host memory")) return;
    bool ok = watch_stage_begin(attack, s, refuses);
    for (size_t i = 0; ok && i < rounds * (sizeof ways_in / sizeof ways_in[0]); i++) {
        const size_t which = i % (sizeof ways_in / sizeof ways_in[0]);
        const struct hidden_piece p = ways_draw_piece(s);
        const char *call = ways_in[which].call;
        const CUresult result = ways_in[which].go(s, &p);
        const double seen = (double)(s->written + p.bytes);
        ok = HYP_CHECK(attack, result == (refuses ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS),
                       "%s of %zu bytes: error %d", call, p.bytes, (int)result);
        watch_stage_settle(s);
        watch_stage_expect(s, call, WANTED({TOL_WATCH_WRITTEN_ONCE, "weights.0", call, seen}), 1);
        watch_stage_unchanged(s, refuses, call);
        if (!refuses) s->written += p.bytes;
    }
    watch_stage_end(s);
    free(s);
}

HYP_ATTACK(s2, every_change_is_noticed) {
    all_changes(attack, false);
}

HYP_ATTACK(s2, every_change_is_refused_where_rules_refuse) {
    all_changes(attack, true);
}

/* ---- shares ---------------------------------------------------------------------------------- */

static void try_handles(struct watch_stage *s, CUdeviceptr range, size_t page,
                        CUmemGenericAllocationHandle handle) {
    CUmemGenericAllocationHandle again = 0;
    int file = -1;
    const double bytes = (double)page / 2;
    if (!HYP_OK(s->attack, tol_watch_add(s->watch, range + page / 4, page / 2, "weights.mapped"))) {
        return;
    }
    CUresult result = s->cu->cuMemMap(range + page, page, 0, handle, 0);
    watch_stage_expect(s, "a second mapping",
                       WANTED({TOL_WATCH_NO_SHARE, "weights.mapped", "cuMemMap", bytes}), 1);
    if (result == CUDA_SUCCESS) (void)s->cu->cuMemUnmap(range + page, page);
    result = s->cu->cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(range + page / 2));
    watch_stage_expect(
        s, "a handle of an address",
        WANTED({TOL_WATCH_NO_SHARE, "weights.mapped", "cuMemRetainAllocationHandle", bytes}), 1);
    if (result == CUDA_SUCCESS) (void)s->cu->cuMemRelease(again);
    result = s->cu->cuMemExportToShareableHandle(&file, handle,
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    watch_stage_expect(
        s, "a file of a handle",
        WANTED({TOL_WATCH_NO_SHARE, "weights.mapped", "cuMemExportToShareableHandle", bytes}), 1);
    if (result == CUDA_SUCCESS && file >= 0) close(file);
    (void)tol_watch_drop(s->watch, range + page / 4);
}

static void ways_share(struct hyp_attack *attack, bool refuses) {
    struct watch_stage *s = malloc(sizeof *s);
    if (!HYP_CHECK(attack, s != NULL, "no host memory")) return;
    if (watch_stage_begin(attack, s, refuses)) {
        const CUmemAllocationProp prop = {
            .type = CU_MEM_ALLOCATION_TYPE_PINNED,
            .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = attack->session.ordinal}};
        CUmemGenericAllocationHandle handle = 0;
        CUdeviceptr range = 0;
        size_t page = 0;
        CUipcMemHandle ipc;
        (void)s->cu->cuIpcGetMemHandle(&ipc, tol_buffer_address(s->weights) + s->bytes / 2);
        watch_stage_expect(
            s, "a handle for another process",
            WANTED({TOL_WATCH_NO_SHARE, "weights.0", "cuIpcGetMemHandle", (double)s->bytes}), 1);
        if (HYP_CHECK(attack,
                      s->cu->cuMemGetAllocationGranularity(
                          &page, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) == CUDA_SUCCESS &&
                          s->cu->cuMemAddressReserve(&range, 2 * page, 0, 0, 0) == CUDA_SUCCESS &&
                          s->cu->cuMemCreate(&handle, page, &prop, 0) == CUDA_SUCCESS &&
                          s->cu->cuMemMap(range, page, 0, handle, 0) == CUDA_SUCCESS,
                      "no memory can be mapped")) {
            try_handles(s, range, page, handle);
            (void)s->cu->cuMemUnmap(range, page);
            (void)s->cu->cuMemRelease(handle);
            (void)s->cu->cuMemAddressFree(range, 2 * page);
        }
    }
    watch_stage_end(s);
    free(s);
}

HYP_ATTACK(s2, memory_that_is_given_away_is_noticed) {
    ways_share(attack, false);
}

HYP_ATTACK(s2, memory_is_not_given_away_where_rules_refuse) {
    ways_share(attack, true);
}
