/*
 * Which of the two libraries this is. cudart_exports.c, which is compiled once for each, defines
 * it.
 */
#ifndef CUDART_VERSION_H
#define CUDART_VERSION_H

extern const int cudart_version; /* 12090 in libcudart.so.12, 13000 in libcudart.so.13 */

#endif
