/*
 * User objects. As in "Graph Management" of the CUDA Driver API 13.0.
 */
#include "api/export.h"
#include "graph/graph_call.h"
#include "state/handle_set.h"
#include "graph/user_object.h"

#include <stdlib.h>

EXPORT(cuUserObjectCreate, (CUuserObject * result_object, void *data, CUhostFn destroy,
                            unsigned int references, unsigned int flags)) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    /* No thread may wait for the destructor: the flag for this is required. */
    if (result_object == NULL || destroy == NULL || references == 0 || references > INT32_MAX ||
        flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct soft_user_object *object = calloc(1, sizeof *object);
    if (object == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    *object = (struct soft_user_object){.references = references, .destroy = destroy, .data = data};
    pthread_mutex_lock(&soft_lock);
    bool added = soft_handle_add(SOFT_HANDLE_OBJECT, object);
    pthread_mutex_unlock(&soft_lock);
    if (!added) {
        free(object);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *result_object = (CUuserObject)object;
    return CUDA_SUCCESS;
}

/* Locks, if a handle is an object and the count is valid. */
static CUresult user_object_enter(CUuserObject handle, unsigned count,
                                  struct soft_user_object **object) {
    CUresult result = soft_state_check();
    if (result != CUDA_SUCCESS) return result;
    if (count == 0 || count > INT32_MAX) return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&soft_lock);
    *object = (struct soft_user_object *)handle;
    if (soft_handle_is(SOFT_HANDLE_OBJECT, handle)) return CUDA_SUCCESS;
    pthread_mutex_unlock(&soft_lock);
    return CUDA_ERROR_INVALID_VALUE;
}

EXPORT(cuUserObjectRetain, (CUuserObject handle, unsigned int count)) {
    struct soft_user_object *object = NULL;
    CUresult result = user_object_enter(handle, count, &object);
    if (result != CUDA_SUCCESS) return result;
    object->references += count;
    pthread_mutex_unlock(&soft_lock);
    return CUDA_SUCCESS;
}

EXPORT(cuUserObjectRelease, (CUuserObject handle, unsigned int count)) {
    struct soft_user_object *object = NULL;
    CUresult result = user_object_enter(handle, count, &object);
    if (result != CUDA_SUCCESS) return result;
    if (count > object->references) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else {
        soft_object_release(object, count);
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

/* With CU_GRAPH_USER_OBJECT_MOVE the caller's references become the graph's. */
EXPORT(cuGraphRetainUserObject,
       (CUgraph graph, CUuserObject handle, unsigned int count, unsigned int flags)) {
    struct soft_user_object *object = NULL;
    CUresult result = user_object_enter(handle, count, &object);
    if (result != CUDA_SUCCESS) return result;
    if (!soft_handle_is(SOFT_HANDLE_GRAPH, graph) || flags > CU_GRAPH_USER_OBJECT_MOVE) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else {
        result = soft_object_hold(&((struct soft_graph *)graph)->objects, object, count);
        if (result == CUDA_SUCCESS && flags == 0) object->references += count;
    }
    pthread_mutex_unlock(&soft_lock);
    return result;
}

EXPORT(cuGraphReleaseUserObject, (CUgraph graph, CUuserObject handle, unsigned int count)) {
    struct soft_user_object *object = NULL;
    CUresult result = user_object_enter(handle, count, &object);
    if (result != CUDA_SUCCESS) return result;
    result = soft_handle_is(SOFT_HANDLE_GRAPH, graph)
                 ? soft_object_let_go(&((struct soft_graph *)graph)->objects, object, count)
                 : CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_unlock(&soft_lock);
    return result;
}
