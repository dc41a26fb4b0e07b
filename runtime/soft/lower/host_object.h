/*
 * Host objects: the fat binaries in the output of a host compiler and nvcc, an ELF object or an
 * archive (ar) of objects.
 *
 * nvcc puts the fat binaries of a file into the section .nv_fatbin, and relocatable device code
 * (-rdc=true, -dc) into __nv_relfatbin; a section may have several, each at a multiple of 8 bytes.
 *
 * Source: ELF-64 Object File Format 1.5; ar(5) with the names of System V and GNU; sections as
 * written by nvcc 13.0.
 */
#ifndef SOFT_HOST_OBJECT_H
#define SOFT_HOST_OBJECT_H

#include <stdbool.h>
#include <stddef.h>

/* One fat binary: the name of its archive member ("" in a single object), and its bytes, as its
 * header counts them. The walk ends with the result; CUDA_SUCCESS continues. */
typedef int soft_host_object_visit(void *data, const char *member, const void *image, size_t bytes);

/* Whether the bytes begin like an archive, or like an ELF object for another processor than a
 * GPU. */
bool soft_host_object_is(const void *bytes, size_t count);

/* Visits all fat binaries. CUDA_ERROR_INVALID_IMAGE: the archive or an object is damaged or
 * truncated; everything before that has been visited. Members that are no objects are skipped. */
int soft_host_object_walk(const void *bytes, size_t count, soft_host_object_visit *visit,
                          void *data);

#endif
