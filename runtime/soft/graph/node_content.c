/*
 * Copies the contents of nodes.
 */
#include "task_graph.h"

#include "state/contexts.h"
#include "queue/copy_rows.h"
#include "state/graph_memory.h"
#include "state/handle_set.h"
#include "queue/kernel_call.h"
#include "queue/stream_value.h"

#include <stdlib.h>
#include <string.h>

static void *node_content_copy_bytes(const void *bytes, size_t count) {
    void *copy = malloc(count > 0 ? count : 1);
    if (copy != NULL && count > 0) memcpy(copy, bytes, count);
    return copy;
}

/* Copies what the parameters point to; pointers to a kernel's parameters point into the task. */
static bool own_pointers(struct soft_node_content *content) {
    CUgraphNodeParams *params = &content->params;
    const int type = params->type;
    if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
        const struct soft_code *code = content->task.is.kernel.function->code;
        void **pointers = calloc(code->parameter_count + 1, sizeof *pointers);
        for (uint32_t i = 0; i < code->parameter_count && pointers != NULL; i++) {
            pointers[i] = content->task.is.kernel.parameters + code->parameter_offsets[i];
        }
        params->kernel.kernelParams = pointers;
        params->kernel.extra = NULL;
        return pointers != NULL;
    }
    if (type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP) {
        CUDA_BATCH_MEM_OP_NODE_PARAMS *batch = &params->memOp;
        batch->paramArray =
            node_content_copy_bytes(batch->paramArray, batch->count * sizeof *batch->paramArray);
        return batch->paramArray != NULL;
    }
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
        CUDA_MEM_ALLOC_NODE_PARAMS *alloc = &params->alloc;
        size_t bytes = alloc->accessDescCount * sizeof *alloc->accessDescs;
        alloc->accessDescs = node_content_copy_bytes(alloc->accessDescs, bytes);
        return alloc->accessDescs != NULL;
    }
    return true;
}

static void free_pointers(struct soft_node_content *content) {
    CUgraphNodeParams *params = &content->params;
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        free((void *)params->kernel.kernelParams);
        break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        free(params->memOp.paramArray);
        break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        free((void *)(uintptr_t)params->alloc.accessDescs);
        break;
    default:
        break;
    }
}

void soft_content_clear(struct soft_node_content *content) {
    free_pointers(content);
    soft_task_clear(&content->task);
    soft_module_release(content->module);
    soft_graph_free(content->child);
    soft_graph_memory_release(content->memory);
    *content = (struct soft_node_content){.params.type = CU_GRAPH_NODE_TYPE_EMPTY};
}

CUresult soft_content_copy(const struct soft_node_content *from, struct soft_node_content *to) {
    struct soft_node_content copy = *from;
    CUresult result = CUDA_SUCCESS;
    copy.child = NULL;
    copy.module = NULL;
    copy.memory = NULL;
    if (!soft_task_copy(&copy.task, &from->task)) return CUDA_ERROR_OUT_OF_MEMORY;
    if (!own_pointers(&copy)) {
        soft_task_clear(&copy.task);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (from->child != NULL) result = soft_graph_copy(from->child, &copy.child);
    if (from->child != NULL) copy.params.graph.graph = (CUgraph)copy.child;
    if (from->module != NULL) {
        copy.module = from->module;
        atomic_fetch_add(&copy.module->references, 1);
    }
    if (from->memory != NULL) {
        copy.memory = from->memory;
        copy.memory->references++;
    }
    if (result != CUDA_SUCCESS) {
        soft_content_clear(&copy);
        return result;
    }
    *to = copy;
    return CUDA_SUCCESS;
}

/* ---- of parameters ---- */

static CUresult node_content_of_kernel(const CUDA_KERNEL_NODE_PARAMS *params,
                                       struct soft_node_content *content) {
    CUfunction handle = params->func != NULL ? params->func : (CUfunction)params->kern;
    const struct soft_kernel_call call = {
        .function = handle,
        .grid = {params->gridDimX, params->gridDimY, params->gridDimZ},
        .block = {params->blockDimX, params->blockDimY, params->blockDimZ},
        .shared = params->sharedMemBytes,
        .parameters = params->kernelParams,
        .extra = params->extra};
    /* A function has its context; a library's kernel needs one. */
    CUresult result = CUDA_SUCCESS;
    content->context = soft_function_home(handle);
    if (content->context == NULL) result = soft_context_find(params->ctx, &content->context);
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    result = soft_kernel_task(&call, content->context, &content->task);
    pthread_mutex_unlock(&soft_lock);
    if (result != CUDA_SUCCESS) return result;
    content->params.kernel.func = (CUfunction)content->task.is.kernel.function;
    content->params.kernel.ctx = (CUcontext)content->context;
    content->module = content->task.is.kernel.function->module;
    atomic_fetch_add(&content->module->references, 1);
    return CUDA_SUCCESS;
}

static CUresult node_content_of_copy(const CUDA_MEMCPY_NODE_PARAMS *params,
                                     struct soft_node_content *content) {
    struct soft_copy copy;
    CUresult result = soft_context_find(params->copyCtx, &content->context);
    if (result != CUDA_SUCCESS) return result;
    if (params->flags != 0 || !soft_copy_of_3d(&params->copyParams, &copy)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    bool empty = copy.width == 0 || copy.height == 0 || copy.depth == 0;
    if (!empty && !soft_copy_is_sound(&copy)) return CUDA_ERROR_INVALID_VALUE;
    content->task.kind = empty ? SOFT_TASK_EMPTY : SOFT_TASK_COPY;
    content->task.is.copy = copy;
    return CUDA_SUCCESS;
}

static CUresult node_content_of_fill(const CUDA_MEMSET_NODE_PARAMS_v2 *params,
                                     struct soft_node_content *content) {
    const struct soft_fill_rows fill = {.address = params->dst,
                                        .pitch = params->height > 1 ? params->pitch : 0,
                                        .value = params->value,
                                        .element_bytes = params->elementSize,
                                        .width = params->width,
                                        .height = params->height};
    CUresult result = soft_context_find(params->ctx, &content->context);
    if (result != CUDA_SUCCESS) return result;
    bool sized = fill.element_bytes == 1 || fill.element_bytes == 2 || fill.element_bytes == 4;
    if (!sized || fill.width == 0 || fill.height == 0 || !soft_fill_is_sound(&fill)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    content->task.kind = SOFT_TASK_FILL;
    content->task.is.fill = fill;
    return CUDA_SUCCESS;
}

static CUresult node_content_of_host(const CUDA_HOST_NODE_PARAMS *params,
                                     struct soft_node_content *content) {
    if (params->fn == NULL) return CUDA_ERROR_INVALID_VALUE;
    content->task.kind = SOFT_TASK_HOST;
    content->task.is.host.function = params->fn;
    content->task.is.host.data = params->userData;
    return CUDA_SUCCESS;
}

static CUresult node_content_of_child(CUDA_CHILD_GRAPH_NODE_PARAMS *params,
                                      struct soft_node_content *content) {
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (params->ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) return CUDA_ERROR_NOT_SUPPORTED;
    pthread_mutex_lock(&soft_lock);
    const struct soft_graph *graph = (const struct soft_graph *)params->graph;
    if (soft_handle_is(SOFT_HANDLE_GRAPH, graph) && !graph->capturing) {
        result = soft_graph_has_memory(graph) ? CUDA_ERROR_NOT_SUPPORTED
                                              : soft_graph_copy(graph, &content->child);
    }
    if (result == CUDA_SUCCESS && !soft_graph_register(content->child)) {
        soft_graph_free(content->child);
        content->child = NULL;
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_unlock(&soft_lock);
    params->graph = (CUgraph)content->child;
    return result;
}

static CUresult node_content_of_event(CUevent event) {
    pthread_mutex_lock(&soft_lock);
    bool known = soft_handle_is(SOFT_HANDLE_EVENT, event);
    pthread_mutex_unlock(&soft_lock);
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The devices that may use an allocation: its own, and the named ones. */
static CUresult read_access(const CUDA_MEM_ALLOC_NODE_PARAMS *params, uint32_t *readers,
                            uint32_t *writers) {
    if (params->accessDescCount > 0 && params->accessDescs == NULL) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < params->accessDescCount; i++) {
        const CUmemAccessDesc *access = &params->accessDescs[i];
        bool known = access->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                     access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        if (!known) return CUDA_ERROR_INVALID_VALUE;
        if (soft_device_of(access->location.id) == NULL) return CUDA_ERROR_INVALID_DEVICE;
        *readers |= 1u << access->location.id;
        *writers |= 1u << access->location.id;
    }
    return CUDA_SUCCESS;
}

static CUresult of_alloc(CUDA_MEM_ALLOC_NODE_PARAMS *params, struct soft_node_content *content) {
    const CUmemPoolProps *pool = &params->poolProps;
    if (params->bytesize == 0 || pool->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        pool->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (pool->handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
    struct soft_device *device = soft_device_of(pool->location.id);
    if (device == NULL) return CUDA_ERROR_INVALID_DEVICE;
    if (params->bytesize > device->memory_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
    uint32_t readers = 1u << device->ordinal, writers = readers;
    CUresult result = read_access(params, &readers, &writers);
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&soft_lock);
    content->memory = soft_graph_memory_new(device, params->bytesize, readers, writers);
    pthread_mutex_unlock(&soft_lock);
    if (content->memory == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    params->dptr = content->memory->address;
    content->task.kind = SOFT_TASK_ALLOC;
    content->task.is.address = params->dptr;
    return CUDA_SUCCESS;
}

static CUresult of_free(CUdeviceptr address, struct soft_node_content *content) {
    pthread_mutex_lock(&soft_lock);
    bool known = soft_graph_memory_at(address) != NULL;
    pthread_mutex_unlock(&soft_lock);
    content->task.kind = SOFT_TASK_FREE;
    content->task.is.address = address;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult node_content_of_batch(const CUDA_BATCH_MEM_OP_NODE_PARAMS *params,
                                      struct soft_node_content *content) {
    struct soft_stream_value *items = NULL;
    CUresult result = soft_context_find(params->ctx, &content->context);
    if (result == CUDA_SUCCESS) {
        result = soft_values_of(params->paramArray, params->count, params->flags, &items);
    }
    if (result == CUDA_SUCCESS) result = soft_values_check(items, params->count);
    if (result != CUDA_SUCCESS) {
        free(items);
        return result;
    }
    content->task.kind = SOFT_TASK_VALUES;
    content->task.is.values.items = items;
    content->task.is.values.count = params->count;
    return CUDA_SUCCESS;
}

static CUresult fill_in(CUgraphNodeParams *params, struct soft_node_content *content) {
    const int type = params->type;
    switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return node_content_of_kernel(&params->kernel, content);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return node_content_of_copy(&params->memcpy, content);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return node_content_of_fill(&params->memset, content);
    case CU_GRAPH_NODE_TYPE_HOST:
        return node_content_of_host(&params->host, content);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return node_content_of_child(&params->graph, content);
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return node_content_of_event(params->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return node_content_of_event(params->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return of_alloc(&params->alloc, content);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return of_free(params->free.dptr, content);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return node_content_of_batch(&params->memOp, content);
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult soft_content_of_params(const CUgraphNodeParams *params, struct soft_node_content *result) {
    struct soft_node_content content = {.params = *params};
    CUresult filled = fill_in(&content.params, &content);
    if (filled == CUDA_SUCCESS && !own_pointers(&content)) filled = CUDA_ERROR_OUT_OF_MEMORY;
    if (filled != CUDA_SUCCESS) {
        /* The parameters' targets are not copied yet. */
        content.params.type = CU_GRAPH_NODE_TYPE_EMPTY;
        pthread_mutex_lock(&soft_lock);
        soft_content_clear(&content);
        pthread_mutex_unlock(&soft_lock);
        return filled;
    }
    *result = content;
    return CUDA_SUCCESS;
}

/* ---- of tasks ---- */

static void say_kernel(const struct soft_kernel *kernel, struct soft_node_content *content) {
    content->params.type = CU_GRAPH_NODE_TYPE_KERNEL;
    content->params.kernel = (CUDA_KERNEL_NODE_PARAMS){.func = (CUfunction)kernel->function,
                                                       .gridDimX = kernel->grid[0],
                                                       .gridDimY = kernel->grid[1],
                                                       .gridDimZ = kernel->grid[2],
                                                       .blockDimX = kernel->block[0],
                                                       .blockDimY = kernel->block[1],
                                                       .blockDimZ = kernel->block[2],
                                                       .sharedMemBytes = kernel->shared,
                                                       .ctx = (CUcontext)content->context};
    content->module = kernel->function->module;
    atomic_fetch_add(&content->module->references, 1);
}

static void say_copy(const struct soft_copy *copy, struct soft_node_content *content) {
    const struct soft_copy_end *to = &copy->to, *from = &copy->from;
    content->params.type = CU_GRAPH_NODE_TYPE_MEMCPY;
    content->params.memcpy.copyCtx = (CUcontext)content->context;
    content->params.memcpy.copyParams =
        (CUDA_MEMCPY3D){.srcMemoryType = from->in_space ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
                        .srcHost = from->in_space ? NULL : (const void *)(uintptr_t)from->address,
                        .srcDevice = from->in_space ? from->address : 0,
                        .srcPitch = from->pitch,
                        .srcHeight = from->pitch != 0 ? from->slice / from->pitch : 0,
                        .dstMemoryType = to->in_space ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
                        .dstHost = to->in_space ? NULL : (void *)(uintptr_t)to->address,
                        .dstDevice = to->in_space ? to->address : 0,
                        .dstPitch = to->pitch,
                        .dstHeight = to->pitch != 0 ? to->slice / to->pitch : 0,
                        .WidthInBytes = copy->width,
                        .Height = copy->height,
                        .Depth = copy->depth};
}

static void say_fill(const struct soft_fill_rows *fill, struct soft_node_content *content) {
    content->params.type = CU_GRAPH_NODE_TYPE_MEMSET;
    content->params.memset = (CUDA_MEMSET_NODE_PARAMS_v2){.dst = fill->address,
                                                          .pitch = fill->pitch,
                                                          .value = fill->value,
                                                          .elementSize = fill->element_bytes,
                                                          .width = fill->width,
                                                          .height = fill->height,
                                                          .ctx = (CUcontext)content->context};
}

/* One operation of a batch. */
static CUstreamBatchMemOpParams say_value(const struct soft_stream_value *value) {
    CUstreamBatchMemOpParams params = {.pad = {0}};
    if (value->nothing) {
        params.memoryBarrier.operation = CU_STREAM_MEM_OP_BARRIER;
    } else if (value->write) {
        params.writeValue.operation =
            value->wide ? CU_STREAM_MEM_OP_WRITE_VALUE_64 : CU_STREAM_MEM_OP_WRITE_VALUE_32;
        params.writeValue.address = value->address;
        params.writeValue.value64 = value->value;
        params.writeValue.flags = value->flags;
    } else {
        params.waitValue.operation =
            value->wide ? CU_STREAM_MEM_OP_WAIT_VALUE_64 : CU_STREAM_MEM_OP_WAIT_VALUE_32;
        params.waitValue.address = value->address;
        params.waitValue.value64 = value->value;
        params.waitValue.flags = value->flags;
    }
    return params;
}

static bool node_content_say_values(const struct soft_task *task,
                                    struct soft_node_content *content) {
    unsigned count = task->is.values.count;
    CUstreamBatchMemOpParams *items = calloc(count, sizeof *items);
    if (items == NULL) return false;
    for (unsigned i = 0; i < count; i++) items[i] = say_value(&task->is.values.items[i]);
    content->params.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
    content->params.memOp = (CUDA_BATCH_MEM_OP_NODE_PARAMS){
        .ctx = (CUcontext)content->context, .count = count, .paramArray = items};
    return true;
}

CUresult soft_content_of_task(struct soft_task *task, struct soft_context *context,
                              struct soft_node_content *result) {
    struct soft_node_content content = {.context = context, .task = *task};
    CUstreamBatchMemOpParams *lent = NULL;
    bool ok = true;
    content.params.type = CU_GRAPH_NODE_TYPE_EMPTY;
    switch (task->kind) {
    case SOFT_TASK_KERNEL:
        say_kernel(&task->is.kernel, &content);
        break;
    case SOFT_TASK_COPY:
        say_copy(&task->is.copy, &content);
        break;
    case SOFT_TASK_FILL:
        say_fill(&task->is.fill, &content);
        break;
    case SOFT_TASK_HOST:
        content.params.type = CU_GRAPH_NODE_TYPE_HOST;
        content.params.host.fn = task->is.host.function;
        content.params.host.userData = task->is.host.data;
        break;
    case SOFT_TASK_VALUES:
        ok = node_content_say_values(task, &content);
        if (ok) lent = content.params.memOp.paramArray;
        break;
    case SOFT_TASK_FREE:
        content.params.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
        content.params.free.dptr = task->is.address;
        break;
    default:
        break;
    }
    ok = ok && own_pointers(&content);
    free(lent);
    if (!ok) {
        soft_module_release(content.module);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    task->kind = SOFT_TASK_EMPTY;
    *result = content;
    return CUDA_SUCCESS;
}
