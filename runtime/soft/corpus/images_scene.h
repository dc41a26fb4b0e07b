/*
 * Shared by the tests of textures and surfaces: arrays, their objects, and places to sample.
 */
#ifndef CORPUS_IMAGES_SCENE_H
#define CORPUS_IMAGES_SCENE_H

#include "corpus_scene.h"
#include "images.h"

enum { IMAGES_PLACES = 256 };

/* An array of this shape, filled with bytes in the order of its elements; and its bytes. */
CUarray images_array(CUDA_ARRAY3D_DESCRIPTOR shape, const void *bytes);
void images_read(CUarray array, void *bytes, size_t row, size_t rows, size_t layers);

/* Objects of arrays. */
CUtexObject images_texture(CUarray array, const struct images_oracle *o, unsigned flags);
CUsurfObject images_surface(CUarray array);

/* Random places in and around a texture, and at the edges and middles of texels. */
void images_choose(const struct images_oracle *o, float places[IMAGES_PLACES][3]);

/* Whether a place is so near to where the result changes that rounding decides. */
bool images_on_edge(const struct images_oracle *o, const float place[3]);

/* Runs a kernel of the program that samples at all places. */
void images_run(CUmodule module, const char *kernel, CUtexObject texture,
                float places[IMAGES_PLACES][3], float got[IMAGES_PLACES][4]);

#endif
