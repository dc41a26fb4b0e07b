/*
 * Devices, areas and comparisons. What is compared was read by the device that owns the memory, by
 * the runtime's transfers, in pieces, so that 8 GiB need no 8 GiB of the host.
 */
#include "peer_stage.h"

#include "peer_faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_BYTES = 32 << 20 };

/* ---- devices ---- */

/* The one interposer of a process: the saboteur's hooks, and what denies peer access. */
static struct {
    struct tol_interpose_options saboteur;
    const bool *denies;
} hooks;

static void peer_stage_before(struct tol_interpose_call *call, void *user) {
    if (hooks.saboteur.before != NULL) hooks.saboteur.before(call, user);
}

static void peer_stage_after(struct tol_interpose_call *call, void *user) {
    if (hooks.saboteur.after != NULL) hooks.saboteur.after(call, user);
    if (call->index == TOL_DRIVER_INDEX_cuDeviceCanAccessPeer && *hooks.denies) {
        **(int *const *)call->arguments[0] = 0;
    }
}

/* A context keeps the table that it was created with, so the attack's is created again. */
static bool peer_stage_interpose(struct peer_stage *stage) {
    struct hyp_attack *attack = stage->attack;
    const struct tol_interpose_options options = {.before = peer_stage_before,
                                                  .after = peer_stage_after};
    hooks.denies = &stage->goes_through_host;
    const char *sabotage = attack->session.sabotage;
    if (!HYP_CHECK(attack, sabotage == NULL || hyp_sabotage_hooks(sabotage, &hooks.saboteur),
                   "the fault %s is unknown", sabotage)) {
        return false;
    }
    tol_context_destroy(attack->context);
    attack->context = NULL;
    tol_interpose_remove(attack->driver);
    return HYP_OK(attack, tol_interpose_install(attack->driver, &options)) &&
           HYP_OK(attack,
                  tol_context_create(attack->driver, attack->session.ordinal, &attack->context));
}

static bool peer_stage_load(struct peer_stage *stage, struct peer_device *device, const char *name,
                            struct tol_module **module, struct tol_kernel **kernel) {
    char path[128];
    size_t bytes = 0;
    snprintf(path, sizeof path, "fixtures/ptx/kernels/%s.ptx", name);
    char *text = hyp_attack_file(stage->attack, path, &bytes);
    const bool ok =
        text != NULL &&
        HYP_OK(stage->attack, tol_module_load(device->context, text, bytes, NULL, module)) &&
        HYP_OK(stage->attack, tol_module_kernel(*module, name, kernel));
    free(text);
    return ok;
}

static bool peer_stage_begin_device(struct peer_stage *stage, size_t index) {
    struct peer_device *device = &stage->devices[index];
    struct hyp_attack *attack = stage->attack;
    if (!HYP_OK(attack, tol_context_create(attack->driver, (int)index, &device->context)) ||
        !HYP_OK(attack, tol_stream_create(device->context, NULL, &device->stream)) ||
        !HYP_OK(attack, tol_transfer_create(device->context, NULL, &device->transfer)) ||
        !peer_stage_load(stage, device, "peer_move", &device->move_module, &device->move) ||
        !peer_stage_load(stage, device, "peer_flip", &device->flip_module, &device->flip) ||
        !HYP_OK(attack, tol_context_bind(device->context))) {
        return false;
    }
    return HYP_CHECK(attack, stage->functions->cuCtxGetCurrent(&device->handle) == CUDA_SUCCESS,
                     "device %zu has no context", index);
}

/* Finds the pairs with access; the others are noted, and their kernels' ways are not tried. */
static bool enable_pair(struct peer_stage *stage, size_t user, size_t owner) {
    int can = 0, atomics = 0;
    const struct peer_driver *driver = &stage->driver;
    if (driver->cuDeviceCanAccessPeer(&can, (CUdevice)user, (CUdevice)owner) != CUDA_SUCCESS ||
        can == 0) {
        hyp_attack_note(stage->attack,
                        "not tested: the driver reports that device %zu cannot access the "
                        "memory of device %zu",
                        user, owner);
        return true;
    }
    if (!HYP_OK(stage->attack, tol_context_bind(stage->devices[user].context))) return false;
    const CUresult result = driver->cuCtxEnablePeerAccess(stage->devices[owner].handle, 0);
    if (!HYP_CHECK(stage->attack,
                   result == CUDA_SUCCESS || result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
                   "enabling device %zu to access device %zu: CUDA error %d", user, owner,
                   (int)result)) {
        return false;
    }
    stage->reaches[user][owner] = true;
    stage->has_atomics[user][owner] =
        driver->cuDeviceGetP2PAttribute(&atomics, PEER_P2P_ATOMICS_SUPPORTED, (CUdevice)user,
                                        (CUdevice)owner) == CUDA_SUCCESS &&
        atomics != 0;
    if (!stage->has_atomics[user][owner]) {
        hyp_attack_note(stage->attack,
                        "not tested: atomic operations of device %zu on device %zu: the driver "
                        "reports none for the link",
                        user, owner);
    }
    return true;
}

static bool begin_stage(struct hyp_attack *attack, struct peer_stage *stage, bool is_timed) {
    int count = 0;
    *stage = (struct peer_stage){.attack = attack};
    if (!HYP_OK(attack, tol_device_count(attack->driver, &count))) return false;
    if (count < 2) {
        hyp_attack_not_tested(attack, "one_device", "peers need two devices, and the driver has %d",
                              count);
        return false;
    }
    stage->count = count < PEER_DEVICES_MAX ? (size_t)count : PEER_DEVICES_MAX;
    if (!HYP_CHECK(attack, peer_driver_open(tol_driver_path(attack->driver), &stage->driver) >= 0,
                   "%s cannot be opened again", tol_driver_path(attack->driver)) ||
        (!is_timed && !peer_stage_interpose(stage))) {
        return false;
    }
    stage->functions = tol_context_functions(attack->context);
    bool ok = true;
    for (size_t i = 0; ok && i < stage->count; i++) ok = peer_stage_begin_device(stage, i);
    for (size_t i = 0; ok && i < stage->count * stage->count; i++) {
        if (i / stage->count == i % stage->count) continue;
        ok = enable_pair(stage, i / stage->count, i % stage->count);
    }
    return ok;
}

bool peer_stage_begin(struct hyp_attack *attack, struct peer_stage *stage) {
    return begin_stage(attack, stage, false);
}

bool peer_stage_begin_timed(struct hyp_attack *attack, struct peer_stage *stage) {
    return begin_stage(attack, stage, true);
}

void peer_stage_end(struct peer_stage *stage) {
    for (size_t i = 0; i < stage->count; i++) {
        struct peer_device *device = &stage->devices[i];
        tol_module_destroy(device->move_module);
        tol_module_destroy(device->flip_module);
        tol_transfer_destroy(device->transfer);
        tol_stream_destroy(device->stream);
        tol_context_destroy(device->context);
    }
}

/* ---- areas ---- */

static size_t whole_bytes(const struct peer_area *area) {
    return area->bytes + 2 * PEER_GUARD;
}

static struct tol_place peer_stage_place_of(const struct peer_area *area) {
    return (struct tol_place){area->address - PEER_GUARD, whole_bytes(area)};
}

bool peer_area_create(struct peer_stage *stage, size_t device, size_t bytes,
                      struct peer_area *area) {
    enum { SLACK = 16 };
    *area = (struct peer_area){.device = &stage->devices[device], .bytes = bytes + SLACK};
    if (!HYP_OK(stage->attack,
                tol_buffer_create(area->device->context, whole_bytes(area), 1, &area->buffer))) {
        return false;
    }
    area->address = tol_buffer_address(area->buffer) + PEER_GUARD;
    return true;
}

void peer_area_destroy(struct peer_stage *stage, struct peer_area *area) {
    tol_buffer_destroy(area->buffer);
    if (area->buffer == NULL && area->device != NULL) {
        (void)tol_context_synchronize(area->device->context, TOL_DEADLINE_MS);
        peer_mapping_end(&stage->driver, &area->mapping);
    }
    *area = (struct peer_area){.bytes = 0};
}

bool peer_area_poison(struct peer_stage *stage, const struct peer_area *area, unsigned char byte) {
    struct hyp_attack *attack = stage->attack;
    if (!HYP_OK(attack, tol_context_bind(area->device->context))) return false;
    const CUresult result =
        stage->functions->cuMemsetD8Async(area->address - PEER_GUARD, byte, whole_bytes(area),
                                          tol_stream_handle(area->device->stream));
    return HYP_CHECK(attack, result == CUDA_SUCCESS, "a fill ended with CUDA error %d",
                     (int)result) &&
           HYP_OK(attack, tol_stream_synchronize_for(area->device->stream, 60000));
}

bool peer_area_send(struct peer_stage *stage, const struct peer_area *area, size_t offset,
                    uint64_t seed, size_t bytes) {
    const size_t piece = bytes < PIECE_BYTES ? bytes : PIECE_BYTES;
    unsigned char *host = malloc(piece);
    bool ok = HYP_CHECK(stage->attack, host != NULL, "no memory for %zu bytes", piece);
    for (size_t at = 0; ok && at < bytes; at += piece) {
        const size_t now = bytes - at < piece ? bytes - at : piece;
        peer_pattern_write(seed, at, host, now);
        ok = HYP_OK(stage->attack,
                    tol_transfer_write(area->device->transfer, peer_stage_place_of(area),
                                       PEER_GUARD + offset + at, host, now));
    }
    free(host);
    return ok;
}

/* Every byte of [offset, offset + bytes) of the place is the poison. */
static bool peer_stage_check_guard(struct peer_stage *stage, const struct peer_area *area,
                                   size_t offset, size_t bytes, unsigned char poison,
                                   const char *way, const char *side) {
    unsigned char guard[PEER_GUARD];
    if (!HYP_OK(stage->attack, tol_transfer_read(area->device->transfer, peer_stage_place_of(area),
                                                 offset, guard, bytes))) {
        return false;
    }
    size_t at = 0;
    while (at < bytes && guard[at] == poison) at++;
    return HYP_CHECK(stage->attack, at == bytes,
                     "%s: byte %zu of the %zu %s the target changed from %#04x to %#04x", way, at,
                     bytes, side, poison, at < bytes ? guard[at] : 0);
}

/* offset is in the place, that is, from the guard on. The host's memory is poisoned once: what a
 * read left of the piece before it differs from this piece, as bytes depend on their position. */
static bool peer_stage_check_bytes(struct peer_stage *stage, const struct peer_area *area,
                                   size_t offset, uint64_t seed, size_t bytes, unsigned char poison,
                                   const char *way) {
    const size_t piece = bytes < PIECE_BYTES ? bytes : PIECE_BYTES;
    unsigned char *host = malloc(piece);
    bool ok = HYP_CHECK(stage->attack, host != NULL, "no memory for %zu bytes", piece);
    if (ok) memset(host, poison, piece);
    for (size_t at = 0; ok && at < bytes; at += piece) {
        const size_t now = bytes - at < piece ? bytes - at : piece;
        ok = HYP_OK(stage->attack,
                    tol_transfer_read(area->device->transfer, peer_stage_place_of(area),
                                      offset + at, host, now));
        const uint64_t found = peer_pattern_difference(seed, at, host, now);
        ok = ok && HYP_CHECK(stage->attack, found == at + now,
                             "%s: byte %llu of %zu is %#04x, expected %#04x", way,
                             (unsigned long long)found, bytes,
                             found < at + now ? host[found - at] : 0, peer_byte(seed, found));
    }
    free(host);
    return ok;
}

bool peer_area_check(struct peer_stage *stage, const struct peer_area *area, size_t offset,
                     uint64_t seed, size_t bytes, unsigned char poison, const char *way) {
    const size_t begin = PEER_GUARD + offset, end = begin + bytes;
    const size_t after =
        whole_bytes(area) - end < PEER_GUARD ? whole_bytes(area) - end : PEER_GUARD;
    return peer_stage_check_bytes(stage, area, begin, seed, bytes, poison, way) &&
           peer_stage_check_guard(stage, area, begin - PEER_GUARD, PEER_GUARD, poison, way,
                                  "before") &&
           peer_stage_check_guard(stage, area, end, after, poison, way, "after");
}

bool peer_area_check_whole(struct peer_stage *stage, const struct peer_area *area, uint64_t seed,
                           const char *way) {
    return peer_stage_check_bytes(stage, area, 0, seed, whole_bytes(area), 0, way);
}

/* ---- attacks across processes: codes and answers --------------------------------------------- */

bool peer_is_unsupported(struct peer_stage *stage, int result, const char *what) {
    /* The last: the system does not let one process see the other's memory. */
    if (result != CUDA_ERROR_NOT_SUPPORTED && result != CUDA_ERROR_NOT_PERMITTED &&
        result != CUDA_ERROR_OPERATING_SYSTEM) {
        return false;
    }
    hyp_attack_note(stage->attack, "not tested: %s: the driver answers with CUDA error %d", what,
                    result);
    return true;
}

bool peer_answer_check(struct peer_stage *stage, const struct peer_answer *answer,
                       const char *way) {
    if (answer->is_unsupported) {
        hyp_attack_note(stage->attack, "not tested: %s", answer->text);
        return false;
    }
    if (peer_is_unsupported(stage, answer->result, way)) return false;
    return HYP_CHECK(stage->attack, answer->result == CUDA_SUCCESS, "%s: CUDA error %d from %s",
                     way, answer->result, answer->text) &&
           HYP_CHECK(stage->attack, answer->is_same, "%s: %s", way, answer->text);
}
