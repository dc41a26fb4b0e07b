/*
 * Handles: a handle is an index in a table and a generation, so that an old handle is recognised.
 */
#include "tollens/vram.h"

#include "core/nvtx.h"
#include "core/residence.h"
#include "tollens/health.h"
#include "tollens/transfer.h"
#include "once.h"

#include <stdlib.h>

struct handle_slot {
    uint32_t generation; /* of the handle that has it or will have it next; never 0 */
    uint32_t next_free;  /* the index of another slot that is free + 1 */
    CUdeviceptr address; /* 0: it is free */
    size_t bytes;
    const void *site; /* the call that allocated it */
    bool is_ending;   /* someone frees it right now */
};

struct tol_vram_context {
    struct tol_context *context;
    struct tol_holder holder;
    struct tol_once *once;
    struct tol_transfer *transfer;
    size_t limit;
    pthread_mutex_t lock; /* guards all below */
    struct handle_slot *slots;
    uint32_t count, room, free; /* free: the index of one + 1 */
    size_t used, used_peak, allocations;
};

/* What is being freed may have no memory any more. */
static void vram_handle_report(struct tol_holder *holder, tol_held_visit *visit, void *user) {
    struct tol_vram_context *vram =
        (void *)((char *)holder - offsetof(struct tol_vram_context, holder));
    pthread_mutex_lock(&vram->lock);
    for (uint32_t i = 0; i < vram->count; i++) {
        const struct handle_slot *slot = &vram->slots[i];
        if (slot->address == 0 || slot->is_ending) continue;
        visit(user, &(struct tol_held){.kind = TOL_HELD_VRAM,
                                       .address = slot->address,
                                       .bytes = slot->bytes,
                                       .tag = "",
                                       .site = slot->site});
    }
    pthread_mutex_unlock(&vram->lock);
}

tol_status tol_vram_context_create(struct tol_context *context, size_t limit_bytes,
                                   struct tol_vram_context **result) {
    tol_status status = TOL_OK;
    struct tol_vram_context *vram = NULL;
    TOL_CHECK(context != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_vram_context_create: an argument is NULL");
    vram = calloc(1, sizeof *vram);
    TOL_CHECK(vram != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a VRAM context");
    pthread_mutex_init(&vram->lock, NULL);
    vram->context = context;
    vram->limit = limit_bytes;
    TOL_TRY(tol_once_create(context, 0, &vram->once));
    TOL_TRY(tol_transfer_create(context, NULL, &vram->transfer));
    tol_context_add_holder(context, &vram->holder, vram_handle_report);
    *result = vram;
    vram = NULL;
out:
    tol_vram_context_destroy(vram);
    return status;
}

void tol_vram_context_destroy(struct tol_vram_context *vram) {
    if (vram == NULL) return;
    tol_context_drop_holder(vram->context, &vram->holder);
    /* The context is theirs as well: it lives until the last of them has ended. */
    tol_transfer_destroy(vram->transfer);
    tol_once_destroy(vram->once);
    pthread_mutex_destroy(&vram->lock);
    free(vram->slots);
    free(vram);
}

/* ---- names ---- */

static struct tol_vram vram_handle_name_of(uint32_t index, uint32_t generation) {
    return (struct tol_vram){(uint64_t)generation << 32 | index};
}

/* The slot of a handle that is alive; NULL: it is not. The caller locks. */
static struct handle_slot *vram_handle_slot_of(struct tol_vram_context *vram,
                                               struct tol_vram memory) {
    const uint32_t index = (uint32_t)memory.name;
    if (index >= vram->count) return NULL;
    struct handle_slot *slot = &vram->slots[index];
    bool alive =
        slot->address != 0 && !slot->is_ending && slot->generation == (uint32_t)(memory.name >> 32);
    return alive ? slot : NULL;
}

/* A free slot; one whose generations are used up is never free again. */
static tol_status take_slot(struct tol_vram_context *vram, uint32_t *index) {
    tol_status status = TOL_OK;
    if (vram->free != 0) {
        *index = vram->free - 1;
        vram->free = vram->slots[*index].next_free;
        return TOL_OK;
    }
    if (vram->count == vram->room) {
        uint32_t room = 2 * vram->room + 16;
        struct handle_slot *more =
            room > vram->room ? realloc(vram->slots, (size_t)room * sizeof *more) : NULL;
        TOL_CHECK(more != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a table of %u handles",
                  room);
        vram->slots = more;
        vram->room = room;
    }
    *index = vram->count++;
    vram->slots[*index] = (struct handle_slot){.generation = 1};
out:
    return status;
}

static void give_slot(struct tol_vram_context *vram, uint32_t index) {
    struct handle_slot *slot = &vram->slots[index];
    *slot = (struct handle_slot){.generation = slot->generation + 1, .next_free = vram->free};
    if (slot->generation != 0) vram->free = index + 1;
}

/* ---- the calls ---- */

tol_status tol_vram_allocate(struct tol_vram_context *vram, size_t bytes, struct tol_vram *memory) {
    TOL_RANGE("tol_vram_allocate", bytes);
    tol_status status = TOL_OK;
    CUdeviceptr address = 0;
    uint32_t index = 0;
    bool is_charged = false, has_slot = false;
    TOL_CHECK(vram != NULL && memory != NULL, TOL_INVALID_ARGUMENT,
              "tol_vram_allocate: an argument is NULL");
    TOL_CHECK(bytes > 0, TOL_INVALID_ARGUMENT, "the size of an allocation is 0");
    /* Charged before the driver is called, so that two threads cannot pass the limit together. */
    pthread_mutex_lock(&vram->lock);
    if (vram->limit != 0 && (bytes > vram->limit || vram->used > vram->limit - bytes)) {
        status =
            tol_fail(__FILE__, __LINE__, TOL_OUT_OF_DEVICE_MEMORY,
                     "%zu more bytes would exceed the limit of %zu bytes, of which %zu are in use",
                     bytes, vram->limit, vram->used);
    } else if (bytes > SIZE_MAX - vram->used) {
        status = tol_fail(__FILE__, __LINE__, TOL_OUT_OF_DEVICE_MEMORY,
                          "%zu bytes in addition to %zu do not fit a size_t", bytes, vram->used);
    } else {
        vram->used += bytes;
        is_charged = true;
        status = take_slot(vram, &index);
        has_slot = status == TOL_OK;
    }
    pthread_mutex_unlock(&vram->lock);
    if (status == TOL_OK) status = tol_once_allocate(vram->once, bytes, &address);
    if (status == TOL_OK) {
        status = tol_context_refuse_astray(vram->context, address, "the new VRAM block");
        enum tol_once_kind kind = TOL_ONCE_FOREIGN;
        if (status != TOL_OK) (void)tol_once_free(vram->once, address, &kind);
    }
    pthread_mutex_lock(&vram->lock);
    if (status == TOL_OK) {
        struct handle_slot *slot = &vram->slots[index];
        slot->address = address;
        slot->bytes = bytes;
        slot->site = __builtin_return_address(0);
        vram->allocations++;
        if (vram->used > vram->used_peak) vram->used_peak = vram->used;
        *memory = vram_handle_name_of(index, slot->generation);
    } else {
        if (has_slot) give_slot(vram, index);
        if (is_charged) vram->used -= bytes;
    }
    pthread_mutex_unlock(&vram->lock);
out:
    return status;
}

static tol_status vram_handle_refuse(struct tol_vram memory) {
    return tol_fail(__FILE__, __LINE__, TOL_INVALID_ARGUMENT,
                    "the handle %#llx was freed, or belongs to another context",
                    (unsigned long long)memory.name);
}

tol_status tol_vram_free(struct tol_vram_context *vram, struct tol_vram memory) {
    TOL_RANGE("tol_vram_free", 0);
    tol_status status = TOL_OK;
    enum tol_once_kind kind = TOL_ONCE_FOREIGN;
    CUdeviceptr address = 0;
    TOL_CHECK(vram != NULL, TOL_INVALID_ARGUMENT, "tol_vram_free: an argument is NULL");
    pthread_mutex_lock(&vram->lock);
    struct handle_slot *slot = vram_handle_slot_of(vram, memory);
    if (slot != NULL) {
        slot->is_ending = true;
        address = slot->address;
    }
    pthread_mutex_unlock(&vram->lock);
    if (address == 0) return vram_handle_refuse(memory);
    status = tol_once_free(vram->once, address, &kind);
    bool lives = tol_once_kind_of(vram->once, address) == TOL_ONCE_LIVE;
    pthread_mutex_lock(&vram->lock);
    slot = &vram->slots[(uint32_t)memory.name];
    slot->is_ending = false;
    if (!lives) {
        vram->used -= slot->bytes;
        vram->allocations--;
        give_slot(vram, (uint32_t)memory.name);
    }
    pthread_mutex_unlock(&vram->lock);
out:
    return status;
}

/* Holds a handle's memory against being freed under a copy. */
static tol_status vram_handle_hold(struct tol_vram_context *vram, struct tol_vram memory,
                                   struct tol_place *place) {
    pthread_mutex_lock(&vram->lock);
    const struct handle_slot *slot = vram_handle_slot_of(vram, memory);
    bool held =
        slot != NULL && tol_once_hold(vram->once, slot->address, &place->address, &place->bytes);
    pthread_mutex_unlock(&vram->lock);
    return held ? TOL_OK : vram_handle_refuse(memory);
}

tol_status tol_vram_write_at(struct tol_vram_context *vram, struct tol_vram memory, size_t offset,
                             const void *source, size_t bytes) {
    TOL_RANGE("tol_vram_write_at", bytes);
    tol_status status = TOL_OK;
    struct tol_place place = {0};
    TOL_CHECK(vram != NULL, TOL_INVALID_ARGUMENT, "tol_vram_write_at: an argument is NULL");
    TOL_TRY(vram_handle_hold(vram, memory, &place));
    status = tol_transfer_write(vram->transfer, place, offset, source, bytes);
    tol_once_release(vram->once, place.address);
out:
    return status;
}

tol_status tol_vram_read_at(struct tol_vram_context *vram, struct tol_vram memory, size_t offset,
                            void *destination, size_t bytes) {
    TOL_RANGE("tol_vram_read_at", bytes);
    tol_status status = TOL_OK;
    struct tol_place place = {0};
    TOL_CHECK(vram != NULL, TOL_INVALID_ARGUMENT, "tol_vram_read_at: an argument is NULL");
    TOL_TRY(vram_handle_hold(vram, memory, &place));
    status = tol_transfer_read(vram->transfer, place, offset, destination, bytes);
    tol_once_release(vram->once, place.address);
out:
    return status;
}

size_t tol_vram_bytes(struct tol_vram_context *vram, struct tol_vram memory) {
    if (vram == NULL) return 0;
    pthread_mutex_lock(&vram->lock);
    const struct handle_slot *slot = vram_handle_slot_of(vram, memory);
    size_t bytes = slot != NULL ? slot->bytes : 0;
    pthread_mutex_unlock(&vram->lock);
    return bytes;
}

tol_status tol_vram_info(struct tol_vram_context *vram, struct tol_vram_info *info) {
    tol_status status = TOL_OK;
    struct tol_vram_info now = {0};
    TOL_CHECK(vram != NULL && info != NULL, TOL_INVALID_ARGUMENT,
              "tol_vram_info: an argument is NULL");
    TOL_TRY(tol_context_memory(vram->context, &now.free_bytes, &now.total_bytes));
    now.device = vram->context->device.ordinal;
    pthread_mutex_lock(&vram->lock);
    now.limit_bytes = vram->limit;
    now.used_bytes = vram->used;
    now.used_peak = vram->used_peak;
    now.allocations = vram->allocations;
    pthread_mutex_unlock(&vram->lock);
    *info = now;
out:
    return status;
}
