/*
 * Finds objects and their bytes.
 */
#include "reach.h"

#include "machine/finding.h"
#include "tollens/cuda_abi.h"

static const char *reach_what(const struct soft_texture *texture) {
    return texture->is_surface ? "surface" : "texture";
}

static bool reach_fail(struct soft_lookup *lookup, uint64_t handle, const char *text) {
    soft_launch_fail(lookup->warp, lookup->in, CUDA_ERROR_ILLEGAL_ADDRESS, 1u << lookup->lane,
                     handle, "0x%llx %s", (unsigned long long)handle, text);
    return false;
}

/* The address of a reference means the object bound to it. */
static bool reach_follow(struct soft_lookup *lookup, uint64_t *handle) {
    struct soft_allocation variable;
    uint64_t address = *handle, launch = lookup->warp->cta->launch->id;
    if (soft_texture_find(address, launch) != NULL || !soft_space_find(address, &variable) ||
        variable.kind != SOFT_KIND_MODULE || variable.address != address || variable.bytes != 8) {
        return true;
    }
    if (!soft_space_read(address, handle, sizeof *handle) || *handle == 0) {
        soft_launch_fail(lookup->warp, lookup->in, CUDA_ERROR_ILLEGAL_ADDRESS, 1u << lookup->lane,
                         address, "nothing is bound to the reference %s", variable.name);
        return false;
    }
    return true;
}

static const char *const geometries[] = {"1d", "2d", "3d", "a1d", "a2d", "cube", "acube"};

/* Whether an instruction of a geometry can be used with an object. For a surface, the faces of a
 * cubemap are layers. */
static bool has_geometry(const struct soft_texture *texture, enum soft_geometry geometry) {
    const struct soft_texels *texels = &texture->texels;
    bool cube = texels->cube && !texture->is_surface;
    bool layered = texels->layered || (texels->cube && texture->is_surface);
    switch (geometry) {
    case SOFT_GEOMETRY_CUBE:
    case SOFT_GEOMETRY_ACUBE:
        return cube && layered == (geometry == SOFT_GEOMETRY_ACUBE);
    default:
        return !cube && layered == (soft_geometry_is_layered(geometry) != 0) &&
               texels->dimensions == soft_geometry_dimensions(geometry);
    }
}

/* Whether kernels of a launch may use the objects of a texture's context. */
static bool reach_has(const struct soft_warp *warp, const struct soft_texture *texture) {
    const struct soft_reach *reach = warp->cta->launch->reach;
    return (atomic_load(&reach->contexts) >> texture->slot & 1) != 0;
}

const struct soft_texture *soft_lookup_common(const struct soft_warp *warp,
                                              const struct soft_instruction *in, uint64_t handle) {
    const struct soft_texture *texture = soft_texture_find(handle, warp->cta->launch->id);
    bool fits = texture != NULL && !texture->is_surface && texture->levels == 1 &&
                has_geometry(texture, soft_texture_geometry(in->mode)) && reach_has(warp, texture);
    return fits ? texture : NULL;
}

bool soft_lookup_object(struct soft_lookup *lookup, uint32_t slot) {
    struct soft_warp *warp = lookup->warp;
    uint64_t handle = SLOT(uint64_t, slot)[lookup->lane];
    if (lookup->texture != NULL && lookup->handle == handle) {
        lookup->texels = &lookup->texture->texels;
        return true;
    }
    lookup->handle = handle;
    if (!reach_follow(lookup, &handle)) return false;
    const struct soft_texture *texture = soft_texture_find(handle, warp->cta->launch->id);
    uint32_t mode = lookup->in->mode;
    bool surface = (mode & SOFT_TEXTURE_SURFACE) != 0;
    if (texture == NULL) {
        return reach_fail(lookup, handle,
                          soft_texture_was(handle) ? "is a texture or surface that was destroyed"
                                                   : "is not a texture or surface");
    }
    if (!reach_has(warp, texture)) {
        return reach_fail(lookup, handle, "is a texture or surface of another context");
    }
    if (texture->is_surface != surface) {
        return reach_fail(lookup, handle,
                          surface ? "is a texture, and this instruction is for surfaces"
                                  : "is a surface, and this instruction is for textures");
    }
    enum soft_geometry geometry = soft_texture_geometry(mode);
    if (lookup->in->op != SOFT_OP_txq && !has_geometry(texture, geometry)) {
        const struct soft_texels *texels = &texture->texels;
        soft_launch_fail(warp, lookup->in, CUDA_ERROR_ILLEGAL_ADDRESS, 1u << lookup->lane, handle,
                         "a .%s access to %s 0x%llx, %s%s of %u dimension%s", geometries[geometry],
                         reach_what(texture), (unsigned long long)handle,
                         texels->layered ? "a layered " : "a ",
                         texels->cube ? "cubemap" : reach_what(texture), texels->dimensions,
                         texels->dimensions == 1 ? "" : "s");
        return false;
    }
    lookup->texture = texture;
    lookup->texels = &texture->texels;
    return true;
}

void soft_lookup_level(struct soft_lookup *lookup, unsigned level) {
    lookup->level = soft_texture_level(lookup->texture, level);
    lookup->texels = &lookup->level;
}

bool soft_lookup_place(struct soft_lookup *lookup, uint64_t layer, uint64_t row, uint64_t byte,
                       unsigned bytes, enum soft_access_kind kind, struct soft_place *place) {
    const struct soft_texture *texture = lookup->texture;
    struct soft_warp *warp = lookup->warp;
    const struct soft_launch *launch = warp->cta->launch;
    const struct soft_view *last = &warp->views[lookup->in->site];
    const struct soft_texels *texels = lookup->texels;
    uint64_t address = texels->address + layer * texels->slice + row * texels->pitch + byte;
    uint64_t span = last->high - last->low;
    lookup->address = address;
    *place = (struct soft_place){0};
    if (bytes <= span && address - last->low <= span - bytes) {
        place->view = *last;
    } else if (!soft_space_view_texel(address, bytes, launch->reach, kind, &place->view)) {
        char nearest[240];
        soft_space_describe(address, launch->reach, kind, nearest, sizeof nearest);
        soft_launch_fail(warp, lookup->in, CUDA_ERROR_ILLEGAL_ADDRESS, 1u << lookup->lane, address,
                         "%s 0x%llx at layer %llu, row %llu, byte %llu: %s", reach_what(texture),
                         (unsigned long long)lookup->handle, (unsigned long long)layer,
                         (unsigned long long)row, (unsigned long long)byte, nearest);
        return false;
    }
    place->offset = address - place->view.low;
    place->host = place->view.host + place->offset;
    place->shadow = place->view.shadow;
    soft_access_note(warp, lookup->in, lookup->lane, address, bytes,
                     kind == SOFT_ACCESS_WRITE ? SOFT_TOUCH_WRITE : SOFT_TOUCH_READ, place);
    warp->views[lookup->in->site] = place->view;
    if (kind == SOFT_ACCESS_READ) {
        soft_access_check_read(warp, lookup->in, lookup->lane, address, bytes, place);
    }
    return true;
}
