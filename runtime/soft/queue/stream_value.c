/*
 * The operations of a batch.
 */
#include "stream_value.h"

#include <stdlib.h>

enum { BATCH_MAX = 256 };

static bool stream_value_is_sound(const struct soft_stream_value *value) {
    uint64_t bytes = value->wide ? 8 : 4;
    const unsigned known = value->write ? (unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER
                                        : 3u | (unsigned)CU_STREAM_WAIT_VALUE_FLUSH;
    if (value->nothing) return true;
    return (value->flags & ~known) == 0 && value->address % bytes == 0 &&
           soft_range_is_sound(value->address, bytes,
                               value->write ? SOFT_ACCESS_WRITE : SOFT_ACCESS_READ);
}

CUresult soft_values_check(const struct soft_stream_value *items, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        if (!stream_value_is_sound(&items[i])) return CUDA_ERROR_INVALID_VALUE;
        /* Writes of devices to others are never pending here. */
        if ((items[i].flags & CU_STREAM_WAIT_VALUE_FLUSH) != 0 && !items[i].write) {
            return CUDA_ERROR_NOT_SUPPORTED;
        }
    }
    return CUDA_SUCCESS;
}

/* An item of a batch. false: its type is unknown. */
static bool stream_value_read_item(const CUstreamBatchMemOpParams *item,
                                   struct soft_stream_value *value) {
    const int operation = item->operation;
    switch (operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        value->address = item->waitValue.address;
        value->flags = item->waitValue.flags;
        value->wide = operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
        value->value = value->wide ? item->waitValue.value64 : item->waitValue.value;
        return true;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        value->address = item->writeValue.address;
        value->flags = item->writeValue.flags;
        value->write = true;
        value->wide = operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
        value->value = value->wide ? item->writeValue.value64 : item->writeValue.value;
        return true;
    case CU_STREAM_MEM_OP_BARRIER:
        value->nothing = true;
        return item->memoryBarrier.flags <= CU_STREAM_MEMORY_BARRIER_TYPE_GPU;
    default:
        return false;
    }
}

CUresult soft_values_of(const CUstreamBatchMemOpParams *params, unsigned count, unsigned flags,
                        struct soft_stream_value **result) {
    if (params == NULL || count == 0 || count > BATCH_MAX || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct soft_stream_value *items = calloc(count, sizeof *items);
    if (items == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < count; i++) {
        if (!stream_value_read_item(&params[i], &items[i])) {
            free(items);
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    *result = items;
    return CUDA_SUCCESS;
}
