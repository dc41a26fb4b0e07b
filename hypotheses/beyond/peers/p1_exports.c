/*
 * The attacks on P1 with what a process exports as a file descriptor: mapped memory, also with the
 * right to read only, pools, and memory whose exporter dies.
 */
#include "peer_child.h"
#include "peer_faults.h"
#include "peer_stage.h"

#include <stdio.h>
#include <unistd.h>

enum { BYTES = 300007 };

/* ---- mapped memory ---- */

/* Mapped memory of device 0 with the pattern, exported as *file. */
static bool export_area(struct peer_stage *stage, struct peer_area *area, struct peer_order *order,
                        int *file) {
    const struct peer_driver *driver = &stage->driver;
    *order = (struct peer_order){.kind = PEER_IMPORT_FD,
                                 .seed = hyp_random(stage->attack),
                                 .bytes = BYTES,
                                 .offset = PEER_GUARD};
    *area = (struct peer_area){.device = &stage->devices[0]};
    if (!HYP_OK(stage->attack, tol_context_bind(area->device->context))) return false;
    CUresult result = peer_mapping_create(driver, 0, BYTES + 2 * PEER_GUARD, true, &area->mapping);
    if (result == CUDA_SUCCESS) {
        result = peer_mapping_allow(driver, &area->mapping, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    }
    if (result == CUDA_SUCCESS) {
        result = driver->cuMemExportToShareableHandle(file, area->mapping.handle,
                                                      PEER_HANDLE_POSIX_FD, 0);
    }
    if (peer_is_unsupported(stage, (int)result, "memory as a file descriptor") ||
        !HYP_CHECK(stage->attack, result == CUDA_SUCCESS, "exporting memory: CUDA error %d",
                   (int)result)) {
        return false;
    }
    area->address = area->mapping.address + PEER_GUARD;
    area->bytes = area->mapping.bytes - 2 * PEER_GUARD;
    order->whole = area->mapping.bytes;
    return peer_area_poison(stage, area, (unsigned char)~peer_byte(order->seed, 0)) &&
           peer_area_send(stage, area, 0, order->seed, BYTES);
}

static void try_file(struct peer_stage *stage, size_t device, bool is_read_only) {
    struct peer_child child;
    struct peer_area area = {0};
    struct peer_order order;
    struct peer_answer answer;
    int file = -1;
    char way[120];
    snprintf(way, sizeof way, "memory of device 0 as a file descriptor, device %zu%s", device,
             is_read_only ? ", to read only" : "");
    if (peer_child_begin(stage, device, &child) && export_area(stage, &area, &order, &file)) {
        order.overwrites = order.has_kernel = true;
        order.is_read_only = is_read_only;
        order.ignores_rights = peer_fault_is(stage->attack, "peer_read_only_ignored");
        if (peer_child_ask(stage, &child, &order, file, &answer, NULL) &&
            peer_answer_check(stage, &answer, way)) {
            HYP_CHECK(stage->attack, !is_read_only || answer.write_result != CUDA_SUCCESS,
                      "%s: a kernel's store was not refused", way);
            peer_area_check(stage, &area, 0, order.seed + (is_read_only ? 0 : 1), BYTES,
                            (unsigned char)~peer_byte(order.seed, 0), way);
        }
    }
    if (file >= 0) close(file);
    peer_child_end(&child, is_read_only);
    peer_area_destroy(stage, &area);
}

HYP_ATTACK_WITH(p1, memory_as_a_file_descriptor_returns, .soft_devices = "3") {
    struct peer_stage stage;
    if (peer_stage_begin(attack, &stage)) {
        for (size_t i = 0; i < stage.count; i++) try_file(&stage, i, false);
    }
    peer_stage_end(&stage);
}

HYP_ATTACK_WITH(p1, memory_to_read_only_is_not_written, .soft_devices = "2") {
    struct peer_stage stage;
    if (peer_stage_begin(attack, &stage)) {
        for (size_t i = 0; i < stage.count; i++) try_file(&stage, i, true);
    }
    peer_stage_end(&stage);
}

/* ---- pools ---- */

struct shared_pool {
    CUmemoryPool pool;
    CUdeviceptr memory;
    int file;
};

static CUresult export_pool(struct peer_stage *stage, struct shared_pool *shared,
                            struct peer_order *order) {
    const struct peer_driver *driver = &stage->driver;
    const CUstream stream = tol_stream_handle(stage->devices[0].stream);
    const CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .handleTypes = PEER_HANDLE_POSIX_FD,
                                       .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUresult result = driver->cuMemPoolCreate != NULL
                          ? driver->cuMemPoolCreate(&shared->pool, &properties)
                          : CUDA_ERROR_NOT_SUPPORTED;
    if (result != CUDA_SUCCESS) return result;
    result = driver->cuMemAllocFromPoolAsync(&shared->memory, BYTES + 2 * PEER_GUARD, shared->pool,
                                             stream);
    if (result == CUDA_SUCCESS) result = driver->cuStreamSynchronize(stream);
    if (result == CUDA_SUCCESS) {
        result = driver->cuMemPoolExportToShareableHandle(&shared->file, shared->pool,
                                                          PEER_HANDLE_POSIX_FD, 0);
    }
    return result == CUDA_SUCCESS ? driver->cuMemPoolExportPointer(&order->memory, shared->memory)
                                  : result;
}

static void end_pool(struct peer_stage *stage, struct shared_pool *shared) {
    const CUstream stream = tol_stream_handle(stage->devices[0].stream);
    if (shared->file >= 0) close(shared->file);
    if (shared->memory != 0) {
        stage->driver.cuMemFreeAsync(shared->memory, stream);
        stage->driver.cuStreamSynchronize(stream);
    }
    if (shared->pool != NULL) stage->driver.cuMemPoolDestroy(shared->pool);
}

static void try_pool(struct peer_stage *stage, size_t device) {
    struct peer_child child;
    struct shared_pool shared = {.file = -1};
    struct peer_order order = {.kind = PEER_IMPORT_POOL,
                               .seed = hyp_random(stage->attack),
                               .bytes = BYTES,
                               .offset = PEER_GUARD,
                               .overwrites = true,
                               .has_kernel = true};
    struct peer_answer answer;
    struct peer_area area = {.device = &stage->devices[0], .bytes = BYTES};
    const unsigned char poison = (unsigned char)~peer_byte(order.seed, 0);
    char way[120];
    snprintf(way, sizeof way, "a block of a pool of device 0, device %zu", device);
    if (peer_child_begin(stage, device, &child) &&
        HYP_OK(stage->attack, tol_context_bind(area.device->context))) {
        const CUresult result = export_pool(stage, &shared, &order);
        area.address = shared.memory + PEER_GUARD;
        if (!peer_is_unsupported(stage, (int)result, "pools for other processes") &&
            HYP_CHECK(stage->attack, result == CUDA_SUCCESS, "exporting a pool: CUDA error %d",
                      (int)result) &&
            peer_area_poison(stage, &area, poison) &&
            peer_area_send(stage, &area, 0, order.seed, BYTES) &&
            peer_child_ask(stage, &child, &order, shared.file, &answer, NULL) &&
            peer_answer_check(stage, &answer, way)) {
            peer_area_check(stage, &area, 0, order.seed + 1, BYTES, poison, way);
        }
    }
    peer_child_end(&child, false);
    end_pool(stage, &shared);
}

HYP_ATTACK_WITH(p1, a_pool_of_another_process_returns, .soft_devices = "2") {
    struct peer_stage stage;
    if (peer_stage_begin(attack, &stage)) {
        for (size_t i = 0; i < stage.count; i++) try_pool(&stage, i);
    }
    peer_stage_end(&stage);
}

/* ---- the exporter dies ---- */

/* Mapped memory exists as long as any process maps it, so it must keep its bytes. */
static void outlive_file(struct peer_stage *stage, size_t device) {
    struct peer_child child;
    struct peer_answer answer;
    int file = -1;
    struct peer_area area = {.device = &stage->devices[device]};
    const struct peer_driver *driver = &stage->driver;
    const struct peer_order order = {
        .kind = PEER_EXPORT_FD, .seed = hyp_random(stage->attack), .bytes = (uint64_t)2 << 20};
    area.mapping.bytes = order.bytes;
    if (peer_child_begin(stage, device, &child) &&
        peer_child_ask(stage, &child, &order, -1, &answer, &file)) {
        answer.is_same = true;
        if (peer_answer_check(stage, &answer, "exporting memory that outlives its process") &&
            HYP_OK(stage->attack, tol_context_bind(area.device->context))) {
            CUresult result = driver->cuMemImportFromShareableHandle(
                &area.mapping.handle, (void *)(intptr_t)file, PEER_HANDLE_POSIX_FD);
            if (result == CUDA_SUCCESS) result = peer_mapping_place(driver, &area.mapping);
            if (result == CUDA_SUCCESS) {
                result = peer_mapping_allow(driver, &area.mapping, (int)device,
                                            CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
            }
            peer_child_end(&child, true);
            if (HYP_CHECK(stage->attack, result == CUDA_SUCCESS,
                          "importing memory of a process: CUDA error %d", (int)result)) {
                /* Without guards: all of the memory is the pattern. */
                area.address = area.mapping.address + PEER_GUARD;
                area.bytes = area.mapping.bytes - 2 * PEER_GUARD;
                peer_area_check_whole(stage, &area, order.seed,
                                      "memory of a process that was killed");
            }
        }
    }
    if (file >= 0) close(file);
    peer_child_end(&child, true);
    peer_area_destroy(stage, &area);
}

/* Memory of a handle is undefined once its exporter is gone, so a third process holds it: what is
 * claimed is that reading it ends, one way or the other; what it gave is noted. */
static void outlive_handle(struct peer_stage *stage, size_t device) {
    struct peer_child exporter, holder = {.process = -1, .socket = -1};
    struct peer_answer answer;
    struct peer_order order = {
        .kind = PEER_EXPORT, .seed = hyp_random(stage->attack), .bytes = 4096};
    if (peer_child_begin(stage, device, &exporter) && peer_child_begin(stage, device, &holder) &&
        peer_child_ask(stage, &exporter, &order, -1, &answer, NULL)) {
        answer.is_same = true;
        order.kind = PEER_HOLD;
        order.memory = answer.memory;
        if (peer_answer_check(stage, &answer, "exporting memory by a handle") &&
            peer_child_ask(stage, &holder, &order, -1, &answer, NULL) &&
            peer_answer_check(stage, &answer, "holding memory of a handle")) {
            order.kind = PEER_READ_HELD;
            peer_child_end(&exporter, true);
            if (peer_child_ask(stage, &holder, &order, -1, &answer, NULL)) {
                hyp_attack_note(stage->attack,
                                "memory of a handle, device %zu, after its process was killed: "
                                "CUDA error %d, %s",
                                device, answer.result,
                                answer.is_same ? "the bytes are intact" : "other bytes");
            }
        }
    }
    peer_child_end(&exporter, true);
    peer_child_end(&holder, true);
}

HYP_ATTACK_WITH(p1, memory_outlives_its_exporter, .soft_devices = "2") {
    struct peer_stage stage;
    if (peer_stage_begin(attack, &stage)) {
        for (size_t i = 0; i < stage.count; i++) {
            outlive_file(&stage, i);
            outlive_handle(&stage, i);
        }
        /* The devices still do their work. */
        struct peer_area area = {0};
        const uint64_t seed = hyp_random(attack);
        if (peer_area_create(&stage, 0, BYTES, &area) && peer_area_poison(&stage, &area, 0x5a) &&
            peer_area_send(&stage, &area, 0, seed, BYTES)) {
            peer_area_check(&stage, &area, 0, seed, BYTES, 0x5a, "after processes were killed");
        }
        peer_area_destroy(&stage, &area);
    }
    peer_stage_end(&stage);
}
