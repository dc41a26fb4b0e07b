/*
 * Textures and surfaces: implemented in texture/, which is the same at every level. The common
 * reads of textures are executed for a whole warp: ops_sample.h.
 */
#include "op_body.h"
#include "ops_sample.h"
#include "texture/fetch.h"
#include "texture/surface.h"

OP_ANY(tex) {
    return sample_warp(warp, in) ? in + 1 : soft_texture_fetch(warp, in);
}

OP_ANY(tld4) {
    return soft_texture_gather(warp, in);
}

OP_ANY(txq) {
    return soft_texture_ask(warp, in);
}

OP_ANY(suld) {
    return soft_surface_load(warp, in);
}

OP_ANY(sust) {
    return soft_surface_store(warp, in);
}

OP_ANY(sured) {
    return soft_surface_reduce(warp, in);
}
