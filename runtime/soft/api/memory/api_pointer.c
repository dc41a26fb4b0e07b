/*
 * Attributes of pointers. As in "Unified Addressing" of the CUDA Driver API 13.0.
 */
#include "state/contexts.h"
#include "state/driver_state.h"
#include "api/export.h"

#include <string.h>

/* What an answer may need. */
struct question {
    struct soft_context *context; /* the calling thread's; NULL: none */
    CUdeviceptr pointer;
    bool known; /* an allocation was found */
    bool reserved;
    struct soft_allocation found;
};

union answer {
    void *pointer;
    uint64_t number;
    int integer;
    unsigned flag;
    bool truth;
};

static bool pointer_is_of_host(const struct soft_allocation *allocation) {
    return allocation->kind == SOFT_KIND_PINNED || allocation->kind == SOFT_KIND_REGISTERED;
}

static bool is_reached_by_host(const struct soft_allocation *allocation) {
    return pointer_is_of_host(allocation) || allocation->kind == SOFT_KIND_MANAGED;
}

static struct soft_context *owner_of(const struct soft_allocation *allocation) {
    struct soft_context *owner = NULL;
    if (allocation->kind == SOFT_KIND_MAPPED || allocation->kind == SOFT_KIND_POOL) return NULL;
    pthread_mutex_lock(&soft_lock);
    owner = soft_context_of(allocation->slot);
    pthread_mutex_unlock(&soft_lock);
    return owner;
}

static int pointer_access_of(const struct question *question) {
    const struct soft_reach *reach = &question->context->reach;
    if (soft_space_may(&question->found, reach, SOFT_ACCESS_WRITE)) {
        return CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
    }
    return soft_space_may(&question->found, reach, SOFT_ACCESS_READ)
               ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ
               : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
}

/* Attributes of a found allocation; bytes is the size of the value. */
static CUresult answer_known(const struct question *question, CUpointer_attribute attribute,
                             union answer *answer, size_t *bytes) {
    const struct soft_allocation *found = &question->found;
    *bytes = sizeof answer->number;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        answer->pointer = owner_of(found);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *bytes = sizeof answer->flag;
        answer->flag = pointer_is_of_host(found) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        if (question->context == NULL) return CUDA_ERROR_INVALID_CONTEXT;
        answer->number = question->pointer;
        return pointer_access_of(question) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        answer->number = is_reached_by_host(found) ? question->pointer : 0;
        return is_reached_by_host(found) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        answer->number = found->serial;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *bytes = sizeof answer->integer;
        answer->integer = found->device;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        answer->number = found->address;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        answer->number = found->bytes;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *bytes = sizeof answer->truth;
        answer->truth = true;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *bytes = sizeof answer->truth;
        answer->truth = found->kind == SOFT_KIND_MANAGED;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        *bytes = sizeof answer->truth;
        answer->truth = false;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        answer->number = 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        if (question->context == NULL) return CUDA_ERROR_INVALID_CONTEXT;
        *bytes = sizeof answer->integer;
        answer->integer = pointer_access_of(question);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        answer->pointer = found->kind == SOFT_KIND_POOL ? found->source : NULL;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* The only attributes of reserved, unmapped addresses. A reservation begins where its range does,
 * however much of it is mapped. */
static CUresult answer_reserved(const struct question *question, CUpointer_attribute attribute,
                                union answer *answer, size_t *bytes) {
    uint64_t begin = 0, size = 0;
    if (!soft_space_reservation(question->pointer, &begin, &size)) return CUDA_ERROR_INVALID_VALUE;
    *bytes = sizeof answer->number;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        answer->number = begin;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        answer->number = size;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *bytes = sizeof answer->truth;
        answer->truth = question->known;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult answer_one(const struct question *question, CUpointer_attribute attribute,
                           union answer *answer, size_t *bytes) {
    *answer = (union answer){0};
    CUresult result = answer_reserved(question, attribute, answer, bytes);
    if (result == CUDA_SUCCESS || !question->known) return result;
    return answer_known(question, attribute, answer, bytes);
}

/* A thread without a context may call this too: it may need the memory's context. */
static CUresult pointer_ask(CUdeviceptr pointer, struct question *question) {
    CUresult result = soft_context_current(&question->context);
    if (result == CUDA_ERROR_INVALID_CONTEXT) {
        question->context = NULL;
        result = CUDA_SUCCESS;
    }
    question->pointer = pointer;
    question->known = soft_space_find(pointer, &question->found);
    return result;
}

EXPORT(cuPointerGetAttribute, (void *data, CUpointer_attribute attribute, CUdeviceptr pointer)) {
    struct question question = {0};
    union answer answer;
    size_t bytes = 0;
    CUresult result = pointer_ask(pointer, &question);
    if (result != CUDA_SUCCESS) return result;
    if (data == NULL) return CUDA_ERROR_INVALID_VALUE;
    result = answer_one(&question, attribute, &answer, &bytes);
    if (result == CUDA_SUCCESS) memcpy(data, &answer, bytes);
    return result;
}

/* The size of an attribute's value; 0: this call has no such attribute. */
static size_t answer_bytes(CUpointer_attribute attribute) {
    struct question question = {.known = true, .context = NULL};
    union answer answer;
    size_t bytes = 0;
    if (attribute == CU_POINTER_ATTRIBUTE_ACCESS_FLAGS) return sizeof answer.integer;
    if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER) return sizeof answer.number;
    if (attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER) return sizeof answer.number;
    CUresult result = answer_known(&question, attribute, &answer, &bytes);
    return result == CUDA_SUCCESS ? bytes : 0;
}

/* For a pointer unknown to CUDA, or without that attribute, the results are zero. */
EXPORT(cuPointerGetAttributes,
       (unsigned int count, CUpointer_attribute *attributes, void **data, CUdeviceptr pointer)) {
    struct question question = {0};
    CUresult result = pointer_ask(pointer, &question);
    if (result != CUDA_SUCCESS) return result;
    if (count == 0 || attributes == NULL || data == NULL) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        if (data[i] == NULL || answer_bytes(attributes[i]) == 0) return CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned i = 0; i < count; i++) {
        union answer answer;
        size_t bytes = 0;
        if (answer_one(&question, attributes[i], &answer, &bytes) != CUDA_SUCCESS) {
            answer = (union answer){0};
            /* -2 is no device. */
            if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) answer.integer = -2;
        }
        memcpy(data[i], &answer, answer_bytes(attributes[i]));
    }
    return CUDA_SUCCESS;
}

/* Copies of this device always synchronize as the attribute requires. */
EXPORT(cuPointerSetAttribute,
       (const void *value, CUpointer_attribute attribute, CUdeviceptr pointer)) {
    struct question question = {0};
    CUresult result = pointer_ask(pointer, &question);
    if (result != CUDA_SUCCESS) return result;
    bool sound = value != NULL && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS && question.known;
    return sound ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
