/*
 * Texture reference: a .texref or .surfref of a module, or one that the program has created, with
 * its binding.
 *
 * The bound object is in the table of textures, and its handle in the module's variable, where
 * kernels find it. Each call that changes the reference changes the object. A reference ends with
 * its module.
 *
 * Source: "Texture Reference Management" and "Surface Reference Management" of the CUDA Driver API
 * 13.0.
 */
#ifndef SOFT_TEXTURE_REFERENCE_H
#define SOFT_TEXTURE_REFERENCE_H

#include "texture_object.h"

struct soft_texture_reference {
    bool is_surface;
    bool is_bound; /* resource says to what */
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC description;
    CUarray_format format;
    unsigned channels;
    uint64_t variable, serial; /* in the module; 0: the program's own */
    uint64_t handle;           /* of the object; 0: there is none */
    struct soft_texture_reference *next;
};

/* The reference of a module's variable, created at the first query; NULL without memory.
 */
struct soft_texture_reference *soft_texture_reference_of(uint64_t variable, bool is_surface);

/* A reference created by the program; NULL without memory. */
struct soft_texture_reference *soft_texture_reference_new(void);

/* The live reference of a handle, or NULL. */
struct soft_texture_reference *soft_texture_reference_find(const void *handle, bool is_surface);

/* Destroys one created by the program. false: it is a module's. */
bool soft_texture_reference_free(struct soft_texture_reference *reference);

/* Updates the object from the reference, in a context. On failure nothing is bound to the variable,
 * and a kernel that uses it gets an error. */
CUresult soft_texture_reference_apply(const struct soft_context *context,
                                      struct soft_texture_reference *reference);

#endif
