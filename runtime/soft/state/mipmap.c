/*
 * Makes and destroys mipmapped arrays.
 */
#include "mipmap.h"

#include "handle_set.h"

#include <stdlib.h>

static struct soft_mipmap *all;

static size_t mipmap_half(size_t size, unsigned level) {
    if (size == 0) return 0; /* a dimension that it has not */
    size_t less = size >> level;
    return less > 0 ? less : 1;
}

/* The number of layers and faces stays the same. */
static CUDA_ARRAY3D_DESCRIPTOR mipmap_shape_of(const CUDA_ARRAY3D_DESCRIPTOR *shape,
                                               unsigned level) {
    CUDA_ARRAY3D_DESCRIPTOR less = *shape;
    bool stacked = (shape->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
    less.Width = mipmap_half(shape->Width, level);
    less.Height = mipmap_half(shape->Height, level);
    if (!stacked) less.Depth = mipmap_half(shape->Depth, level);
    return less;
}

/* The maximum number of levels: the last one has one texel. */
static unsigned most_levels(const CUDA_ARRAY3D_DESCRIPTOR *shape) {
    unsigned levels = 1;
    bool more = true;
    while (more && levels < SOFT_LEVELS_MAX) {
        const CUDA_ARRAY3D_DESCRIPTOR last = mipmap_shape_of(shape, levels - 1);
        bool stacked = (shape->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
        more = last.Width > 1 || last.Height > 1 || (!stacked && last.Depth > 1);
        levels += more;
    }
    return levels;
}

static void free_levels(struct soft_mipmap *mipmap) {
    for (unsigned i = 0; i < mipmap->levels; i++) soft_array_free_level(mipmap->arrays[i]);
    free(mipmap);
}

CUresult soft_mipmap_new(struct soft_context *context, const CUDA_ARRAY3D_DESCRIPTOR *shape,
                         unsigned levels, struct soft_mipmap **result) {
    struct soft_mipmap *mipmap = calloc(1, sizeof *mipmap);
    if (mipmap == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    unsigned most = most_levels(shape);
    levels = levels == 0 ? 1 : levels < most ? levels : most;
    mipmap->shape = *shape;
    mipmap->context = context;
    CUresult made = CUDA_SUCCESS;
    for (; mipmap->levels < levels && made == CUDA_SUCCESS; mipmap->levels++) {
        const CUDA_ARRAY3D_DESCRIPTOR less = mipmap_shape_of(shape, mipmap->levels);
        made = soft_array_new(context, &less, &mipmap->arrays[mipmap->levels]);
        if (made != CUDA_SUCCESS) break;
        mipmap->arrays[mipmap->levels]->is_level = true;
    }
    pthread_mutex_lock(&soft_lock);
    if (made == CUDA_SUCCESS && !soft_handle_add(SOFT_HANDLE_MIPMAP, mipmap)) {
        made = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (made == CUDA_SUCCESS) {
        mipmap->next = all;
        mipmap->link = &all;
        if (all != NULL) all->link = &mipmap->next;
        all = mipmap;
    }
    pthread_mutex_unlock(&soft_lock);
    if (made != CUDA_SUCCESS) {
        free_levels(mipmap);
        return made;
    }
    *result = mipmap;
    return CUDA_SUCCESS;
}

bool soft_mipmap_find(CUmipmappedArray handle, struct soft_mipmap *mipmap) {
    pthread_mutex_lock(&soft_lock);
    bool is = soft_handle_is(SOFT_HANDLE_MIPMAP, handle);
    if (is) *mipmap = *(const struct soft_mipmap *)(const void *)handle;
    pthread_mutex_unlock(&soft_lock);
    return is;
}

/* Takes one off the list. The caller holds soft_lock. */
static void mipmap_take(struct soft_mipmap *mipmap) {
    soft_handle_remove(SOFT_HANDLE_MIPMAP, mipmap);
    *mipmap->link = mipmap->next;
    if (mipmap->next != NULL) mipmap->next->link = mipmap->link;
}

bool soft_mipmap_free(CUmipmappedArray handle) {
    struct soft_mipmap *mipmap = (struct soft_mipmap *)(void *)handle;
    pthread_mutex_lock(&soft_lock);
    bool is = soft_handle_is(SOFT_HANDLE_MIPMAP, handle);
    if (is) mipmap_take(mipmap);
    pthread_mutex_unlock(&soft_lock);
    if (is) free_levels(mipmap);
    return is;
}

void soft_mipmap_free_all(const struct soft_context *context) {
    for (;;) {
        pthread_mutex_lock(&soft_lock);
        struct soft_mipmap *mipmap = all;
        while (mipmap != NULL && mipmap->context != context) mipmap = mipmap->next;
        if (mipmap != NULL) mipmap_take(mipmap);
        pthread_mutex_unlock(&soft_lock);
        if (mipmap == NULL) return;
        free_levels(mipmap);
    }
}
