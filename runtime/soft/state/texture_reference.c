/*
 * The list of references, and the objects bound to them.
 */
#include "texture_reference.h"

#include "handle_set.h"

#include <stdlib.h>

static struct soft_texture_reference *all; /* guarded by soft_lock */

/* Whether the module's variable still exists. */
static bool texture_reference_lives(const struct soft_texture_reference *reference) {
    struct soft_allocation found;
    return reference->variable == 0 ||
           (soft_space_find(reference->variable, &found) && found.serial == reference->serial);
}

/* The caller holds soft_lock. */
static void texture_reference_take_out(struct soft_texture_reference **link) {
    struct soft_texture_reference *gone = *link;
    *link = gone->next;
    soft_handle_remove(SOFT_HANDLE_TEXTURE_REFERENCE, gone);
    if (gone->handle != 0) soft_texture_remove(gone->handle, 0);
    free(gone);
}

/* Removes references of unloaded modules. The caller holds soft_lock. */
static void texture_reference_clean(void) {
    for (struct soft_texture_reference **link = &all; *link != NULL;) {
        if (texture_reference_lives(*link)) {
            link = &(*link)->next;
        } else {
            texture_reference_take_out(link);
        }
    }
}

/* The caller holds soft_lock. */
static struct soft_texture_reference *texture_reference_add(uint64_t variable, uint64_t serial,
                                                            bool is_surface) {
    struct soft_texture_reference *reference = calloc(1, sizeof *reference);
    if (reference == NULL) return NULL;
    reference->is_surface = is_surface;
    reference->variable = variable;
    reference->serial = serial;
    reference->format = CU_AD_FORMAT_FLOAT;
    reference->channels = 1;
    for (int i = 0; i < 3; i++) reference->description.addressMode[i] = CU_TR_ADDRESS_MODE_CLAMP;
    if (!soft_handle_add(SOFT_HANDLE_TEXTURE_REFERENCE, reference)) {
        free(reference);
        return NULL;
    }
    reference->next = all;
    all = reference;
    return reference;
}

struct soft_texture_reference *soft_texture_reference_of(uint64_t variable, bool is_surface) {
    struct soft_allocation found;
    if (!soft_space_find(variable, &found)) return NULL;
    pthread_mutex_lock(&soft_lock);
    texture_reference_clean();
    struct soft_texture_reference *reference = all;
    while (reference != NULL && reference->variable != variable) reference = reference->next;
    if (reference == NULL) reference = texture_reference_add(variable, found.serial, is_surface);
    pthread_mutex_unlock(&soft_lock);
    return reference;
}

struct soft_texture_reference *soft_texture_reference_new(void) {
    pthread_mutex_lock(&soft_lock);
    struct soft_texture_reference *reference = texture_reference_add(0, 0, false);
    pthread_mutex_unlock(&soft_lock);
    return reference;
}

struct soft_texture_reference *soft_texture_reference_find(const void *handle, bool is_surface) {
    struct soft_texture_reference *reference = NULL;
    pthread_mutex_lock(&soft_lock);
    texture_reference_clean();
    if (soft_handle_is(SOFT_HANDLE_TEXTURE_REFERENCE, handle)) {
        reference = (struct soft_texture_reference *)(uintptr_t)handle;
    }
    pthread_mutex_unlock(&soft_lock);
    return reference != NULL && reference->is_surface == is_surface ? reference : NULL;
}

bool soft_texture_reference_free(struct soft_texture_reference *reference) {
    pthread_mutex_lock(&soft_lock);
    struct soft_texture_reference **link = &all;
    while (*link != NULL && *link != reference) link = &(*link)->next;
    bool own = *link != NULL && reference->variable == 0;
    if (own) texture_reference_take_out(link);
    pthread_mutex_unlock(&soft_lock);
    return own;
}

CUresult soft_texture_reference_apply(const struct soft_context *context,
                                      struct soft_texture_reference *reference) {
    struct soft_texture texture;
    uint64_t handle = 0;
    CUresult result = CUDA_SUCCESS;
    if (reference->is_bound) {
        result = reference->is_surface ? soft_surface_of(context, &reference->resource, &texture)
                                       : soft_texture_of(context, &reference->resource,
                                                         &reference->description, NULL, &texture);
        if (result == CUDA_SUCCESS) {
            texture.of_reference = true;
            if (reference->handle == 0 || !soft_texture_change(reference->handle, &texture)) {
                reference->handle = soft_texture_add(&texture);
            }
            handle = reference->handle;
            if (handle == 0) result = CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    if (reference->variable != 0) {
        (void)soft_space_write(reference->variable, &handle, sizeof handle);
    }
    return result;
}
