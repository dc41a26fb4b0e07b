/*
 * NUMA pages: on which nodes the pages of a range of host memory are, as the kernel reports it.
 *
 * The kernel is queried page by page (move_pages). If that is not allowed, as in many containers,
 * /proc/self/numa_maps counts the pages of a whole mapping. Pages that were never touched are on no
 * node. Pages that a driver maps itself may be missing from both.
 */
#ifndef TOLLENS_NUMA_PAGES_H
#define TOLLENS_NUMA_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { TOL_NUMA_NODES_MAX = 64 };

struct tol_numa_pages {
    size_t asked, seen; /* counts of pages; a large range is sampled */
    size_t on[TOL_NUMA_NODES_MAX];
};

void tol_numa_look(const void *begin, size_t bytes, struct tol_numa_pages *pages);

/* The same by page, and by the text of numa_maps. false: this way does not work here. */
bool tol_numa_ask(const void *begin, size_t bytes, struct tol_numa_pages *pages);
bool tol_numa_read(FILE *maps, const void *begin, size_t bytes, struct tol_numa_pages *pages);

/* The node that all pages are on; -1: one was not seen, or they are on several. */
int tol_numa_found(const struct tol_numa_pages *pages);

#endif
