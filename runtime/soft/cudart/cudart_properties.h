/*
 * cudaDeviceProp of CUDART_MAJOR's headers. An attribute is an array of its elements here, which
 * has the same layout.
 */
#ifndef CUDART_PROPERTIES_H
#define CUDART_PROPERTIES_H

#include "cudart_edition.h"

#include <stddef.h>

enum { CUDART_PROPERTY_RESERVED = CUDART_MAJOR == 12 ? 63 : 56 };

struct cudart_properties {
    char name[256];
    char uuid[16];
    char luid[8];
    unsigned int luidDeviceNodeMask;
    size_t totalGlobalMem;
#define CUDART_PROPERTY(versions, type, member, elements, first, second, third)                    \
    CUDART_IN_##versions(type member[elements];)
#include "cudart_property.def"
    int reserved[CUDART_PROPERTY_RESERVED];
};

#endif
