/*
 * Images as nvcc embeds them.
 */
#ifndef CUDART_LINK_H
#define CUDART_LINK_H

#include "cudart_driver.h"

/* What __cudaRegisterFatBinary is given. Source: fatbinary_section.h. */
struct cudart_wrapper {
    int magic;
    int version;      /* 1: data is an image; 2: parts are to be linked (nvcc -rdc=true) */
    const void *data; /* a fat binary */
    void *parts;      /* of version 2: fat binaries of relocatable code, ended by NULL */
};

enum { CUDART_WRAPPER_MAGIC = 0x466243b1, CUDART_WRAPPER_IMAGE = 1, CUDART_WRAPPER_PARTS = 2 };

/* Loads a wrapper's image as a library. There must be a context. */
cudaError_t cudart_link(const struct cudart_wrapper *wrapper, CUlibrary *library);

#endif
