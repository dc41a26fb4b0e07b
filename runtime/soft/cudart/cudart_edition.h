/*
 * For files that are compiled once for each of the two libraries, with CUDART_MAJOR: what is in
 * this one. CUDART_IN_OLD(text), CUDART_IN_NEW(text) and CUDART_IN_BOTH(text) are text or nothing.
 */
#ifndef CUDART_EDITION_H
#define CUDART_EDITION_H

#define CUDART_KEEP(...) __VA_ARGS__
#define CUDART_DROP(...)
#define CUDART_IN_BOTH CUDART_KEEP
#if CUDART_MAJOR == 12
#define CUDART_IN_OLD CUDART_KEEP
#define CUDART_IN_NEW CUDART_DROP
#define CUDART_GET_PROPERTIES cudaGetDeviceProperties_v2
#else
#define CUDART_IN_OLD CUDART_DROP
#define CUDART_IN_NEW CUDART_KEEP
#define CUDART_GET_PROPERTIES cudaGetDeviceProperties
#endif

#endif
