/*
 * Cube: the faces of a cubemap.
 *
 * Source: CUDA Programming Guide, "Cubemap Textures".
 */
#ifndef SOFT_TEXTURE_CUBE_H
#define SOFT_TEXTURE_CUBE_H

#include <stdint.h>

/* The face that a direction meets. */
unsigned soft_cube_face(const double direction[3]);

/* A vector seen from a face: across it, down it, and away from the centre. */
void soft_cube_turn(unsigned face, const double v[3], double turned[3]);

/* Where on its face a direction meets a cube: from 0 to 1 in both dimensions. */
unsigned soft_cube_place(const double direction[3], double at[2]);

/* The texel across the edge of a face of this many texels: index is outside in one dimension, by
 * one, and becomes the index on the returned face. */
unsigned soft_cube_beside(unsigned face, uint32_t size, int64_t index[2]);

#endif
