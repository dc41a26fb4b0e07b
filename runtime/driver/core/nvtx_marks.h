/*
 * Marks: tells a tool, such as compute-sanitizer, which parts of a pool's memory are blocks, so
 * that it finds accesses between them. NVTX's extension for memory: each allocation that the pool
 * divides is a heap, and each block a region of it.
 *
 * The tool is that of NVTX_INJECTION64_PATH, as for ranges (nvtx.h), and compute-sanitizer sets it.
 * It must be queried after CUDA has been initialised, so a pool queries it when it is created.
 * Where no tool listens, an allocation costs one comparison more. Thread-safe. Source: NVTX 3,
 * nvToolsExtMem.h; "NVTX API for Compute Sanitizer", 2.1 to 2.3.
 */
#ifndef TOLLENS_NVTX_MARKS_H
#define TOLLENS_NVTX_MARKS_H

#include "check.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether a tool listens to marks. Does not change once a pool was created. */
extern TOL_HIDDEN bool tol_marks_listen;

/* Looks for a tool, once in a process. A context must exist. */
void tol_marks_open(void);

/* An allocation of the driver becomes a heap, and ceases to be one. */
void tol_marks_heap(uint64_t address, uint64_t bytes);
void tol_marks_heap_end(uint64_t address);

/* A block in a heap begins and ends. Blocks outside of heaps are not reported. */
void tol_marks_region(uint64_t address, uint64_t bytes);
void tol_marks_region_end(uint64_t address);

#endif
