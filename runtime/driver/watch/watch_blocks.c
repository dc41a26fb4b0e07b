/*
 * The watched blocks, sorted by address.
 */
#include "core/check.h"
#include "watch_state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct watch_block *watch_block_from(struct tol_watch *watch, CUdeviceptr address, size_t *index) {
    size_t low = 0, high = watch->block_count;
    *index = 0;
    if (high == 0) return NULL;
    if (address < watch->lowest) return watch->blocks[0]; /* as numbers that are no addresses */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (watch->ends[middle] <= address)
            low = middle + 1;
        else
            high = middle;
    }
    *index = low;
    return *index < watch->block_count ? watch->blocks[*index] : NULL;
}

bool watch_label_fits(const char *pattern, const char *label) {
    const size_t length = strlen(pattern);
    if (length > 0 && pattern[length - 1] == '*') return strncmp(pattern, label, length - 1) == 0;
    return strcmp(pattern, label) == 0;
}

/* ---- counts ---------------------------------------------------------------------------------- */

static void watch_blocks_insert(struct watch_set *set, uint64_t member) {
    if (member == 0) return;
    for (unsigned i = 0; i < TOL_WATCH_MEMBERS; i++) {
        uint64_t there = atomic_load_explicit(&set->member[i], memory_order_relaxed);
        if (there == member) return;
        if (there == 0 && atomic_compare_exchange_strong(&set->member[i], &there, member)) return;
        if (there == member) return; /* another thread put the same one there */
    }
}

static unsigned watch_blocks_size_of(struct watch_set *set) {
    unsigned count = 0;
    while (count < TOL_WATCH_MEMBERS && atomic_load(&set->member[count]) != 0) count++;
    return count;
}

static uint64_t this_thread(void) {
    static _Thread_local uint64_t number;
    if (number == 0) number = (uint64_t)syscall(SYS_gettid);
    return number;
}

static void watch_blocks_add(_Atomic uint64_t *count, uint64_t more) {
    atomic_fetch_add_explicit(count, more, memory_order_relaxed);
}

void watch_count(const struct watch_deed *deed, const struct watch_found *found, bool takes_back) {
    struct watch_block *block = found->block;
    const uint64_t more = takes_back ? -found->bytes : found->bytes,
                   times = takes_back ? -found->count : found->count;
    switch (found->effect) {
    case WATCH_IN:
        watch_blocks_add(&block->bytes_in, more);
        watch_blocks_add(&block->copies_in, times);
        break;
    case WATCH_OUT:
        watch_blocks_add(&block->bytes_out, more);
        watch_blocks_add(&block->copies_out, times);
        break;
    case WATCH_WRITTEN:
        watch_blocks_add(&block->bytes_written, more);
        break;
    case WATCH_READ:
        watch_blocks_add(&block->bytes_read, more);
        break;
    case WATCH_LAUNCHED:
        watch_blocks_add(&block->launches, times);
        break;
    case WATCH_LOADED:
        watch_blocks_add(&block->bytes_loaded, more);
        break;
    case WATCH_STORED:
        watch_blocks_add(&block->bytes_stored, more);
        break;
    case WATCH_SHARED:
        watch_blocks_add(&block->shares, times);
        break;
    case WATCH_EFFECTS:
        break;
    }
    if (takes_back) return;
    uint64_t none = atomic_load_explicit(&block->first_ns, memory_order_relaxed);
    if (none == 0) atomic_compare_exchange_strong(&block->first_ns, &none, deed->now_ns);
    atomic_store_explicit(&block->last_ns, deed->now_ns, memory_order_relaxed);
    if (deed->call == NULL) return; /* the thread that waits may execute the kernel */
    watch_blocks_insert(&block->threads, this_thread());
    watch_blocks_insert(&block->streams, (uint64_t)(uintptr_t)deed->stream);
}

/* ---- adding, dropping, asking ---------------------------------------------------------------- */

static tol_status watch_blocks_make_room(struct tol_watch *watch) {
    tol_status status = TOL_OK;
    if (watch->block_count < watch->block_room) return TOL_OK;
    const size_t room = watch->block_room == 0 ? 64 : 2 * watch->block_room;
    struct watch_block **more = realloc(watch->blocks, room * sizeof *more);
    TOL_CHECK(more != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for %zu watched blocks", room);
    watch->blocks = more;
    CUdeviceptr *ends = realloc(watch->ends, room * sizeof *ends);
    TOL_CHECK(ends != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for %zu watched blocks", room);
    watch->ends = ends;
    watch->block_room = room;
out:
    return status;
}

tol_status tol_watch_add(struct tol_watch *watch, CUdeviceptr address, size_t bytes,
                         const char *label) {
    tol_status status = TOL_OK;
    struct watch_block *block = NULL;
    size_t index = 0;
    bool is_locked = false;
    TOL_CHECK(watch != NULL && label != NULL, TOL_INVALID_ARGUMENT, "watch or label is NULL");
    TOL_CHECK(bytes > 0 && address + bytes > address, TOL_INVALID_ARGUMENT,
              "%zu bytes at %#llx are not a range", bytes, (unsigned long long)address);
    TOL_CHECK(strlen(label) < TOL_WATCH_LABEL_BYTES, TOL_INVALID_ARGUMENT,
              "the label has %zu bytes; %d are allowed", strlen(label), TOL_WATCH_LABEL_BYTES - 1);
    block = calloc(1, sizeof *block);
    TOL_CHECK(block != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a watched block");
    memcpy(block->label, label, strlen(label));
    block->begin = address;
    block->end = address + bytes;
    for (size_t i = 0; i < watch->rule_count; i++) {
        if (watch_label_fits(watch->rules[i].blocks, label)) block->rules |= (uint64_t)1 << i;
    }
    watch_lock_write(&watch->lock);
    is_locked = true;
    TOL_TRY(watch_blocks_make_room(watch));
    const struct watch_block *next = watch_block_from(watch, address, &index);
    TOL_CHECK(next == NULL || next->begin >= block->end, TOL_INVALID_ARGUMENT,
              "%zu bytes at %#llx overlap \"%s\", which is watched", bytes,
              (unsigned long long)address, next->label);
    memmove(watch->blocks + index + 1, watch->blocks + index,
            (watch->block_count - index) * sizeof *watch->blocks);
    memmove(watch->ends + index + 1, watch->ends + index,
            (watch->block_count - index) * sizeof *watch->ends);
    watch->blocks[index] = block;
    watch->ends[index] = block->end;
    watch->block_count++;
    watch->lowest = watch->blocks[0]->begin;
    atomic_fetch_add(&watch->generation, 1);
    block = NULL;
out:
    if (is_locked) watch_lock_write_end(&watch->lock);
    free(block);
    return status;
}

tol_status tol_watch_drop(struct tol_watch *watch, CUdeviceptr address) {
    tol_status status = TOL_OK;
    size_t index = 0;
    watch_lock_write(&watch->lock);
    struct watch_block *block = watch_block_from(watch, address, &index);
    TOL_CHECK(block != NULL && block->begin == address, TOL_NOT_FOUND,
              "no watched block begins at %#llx", (unsigned long long)address);
    watch->block_count--;
    atomic_fetch_add(&watch->generation, 1);
    memmove(watch->blocks + index, watch->blocks + index + 1,
            (watch->block_count - index) * sizeof *watch->blocks);
    memmove(watch->ends + index, watch->ends + index + 1,
            (watch->block_count - index) * sizeof *watch->ends);
    if (watch->block_count > 0) watch->lowest = watch->blocks[0]->begin;
    free(block);
out:
    watch_lock_write_end(&watch->lock);
    return status;
}

static struct tol_watch_block watch_blocks_describe(struct watch_block *block) {
    struct tol_watch_block result = {
        .address = block->begin,
        .bytes = block->end - block->begin,
        .bytes_in = atomic_load(&block->bytes_in),
        .copies_in = atomic_load(&block->copies_in),
        .bytes_out = atomic_load(&block->bytes_out),
        .copies_out = atomic_load(&block->copies_out),
        .bytes_written = atomic_load(&block->bytes_written),
        .bytes_read = atomic_load(&block->bytes_read),
        .launches = atomic_load(&block->launches),
        .bytes_loaded = atomic_load(&block->bytes_loaded),
        .bytes_stored = atomic_load(&block->bytes_stored),
        .shares = atomic_load(&block->shares),
        .first_ns = atomic_load(&block->first_ns),
        .last_ns = atomic_load(&block->last_ns),
        .threads = watch_blocks_size_of(&block->threads),
        .streams = watch_blocks_size_of(&block->streams),
        .alarms = atomic_load(&block->alarms),
    };
    memcpy(result.label, block->label, sizeof result.label);
    return result;
}

tol_status tol_watch_find(struct tol_watch *watch, CUdeviceptr address,
                          struct tol_watch_block *result) {
    tol_status status = TOL_OK;
    size_t index = 0;
    watch_lock_read(&watch->lock);
    struct watch_block *block = watch_block_from(watch, address, &index);
    TOL_CHECK(block != NULL && block->begin <= address, TOL_NOT_FOUND,
              "no watched block contains %#llx", (unsigned long long)address);
    *result = watch_blocks_describe(block);
out:
    watch_lock_read_end(&watch->lock);
    return status;
}

void tol_watch_each(struct tol_watch *watch,
                    void (*use)(const struct tol_watch_block *block, void *user), void *user) {
    watch_lock_read(&watch->lock);
    for (size_t i = 0; i < watch->block_count; i++) {
        const struct tol_watch_block block = watch_blocks_describe(watch->blocks[i]);
        use(&block, user);
    }
    watch_lock_read_end(&watch->lock);
}
