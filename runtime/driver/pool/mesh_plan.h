/*
 * Mesh plan: computes how the live bytes of sparsely used pages fit into fewer memory handles.
 *
 * Two pages can be meshed if no byte offset is used in both: the bytes of one are copied to the
 * same offsets of the other's memory, and both addresses are mapped to it. A handle of several
 * pages is cut: each of its pages is meshed with an existing one, or gets a new handle of one page,
 * if there is room for that while the old handle is still held. This file does not call the driver:
 * it passes each move to a function. Without a function it only counts, which is how the diagnosis
 * knows what compaction would free.
 *
 * Source: Powers, Tench, Berger and McGregor, "Mesh: Compacting Memory Management for C/C++
 * Applications", PLDI 2019, for pages of equal objects, found by random placement; here for any
 * sizes, choosing the fullest partner that fits.
 */
#ifndef TOLLENS_MESH_PLAN_H
#define TOLLENS_MESH_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The target of a page's bytes: a handle's number, none because the page has no bytes, or a new
 * handle. */
enum { TOL_MESH_NOWHERE = -1, TOL_MESH_NEW = -2 };

enum { TOL_MESH_LEVELS = 64 };

/* A page with live bytes. */
struct tol_mesh_slot {
    uint32_t page;   /* its place in its handle */
    uint32_t blocks; /* that touch it */
    uint32_t live;   /* granules */
    uint64_t *bits;  /* a bit a granule */
    struct tol_mesh_slot *next;
};

/* A handle. One over a single page has one slot, whatever pages share it. */
struct tol_mesh_frame {
    uint32_t handle, pages;
    uint32_t live; /* granules */
    bool gone;
    struct tol_mesh_slot *slots;
    int level;                            /* its list; -1: none */
    struct tol_mesh_frame *before, *next; /* in the list */
    struct tol_mesh_frame *after;         /* the one entered before it */
};

/* All bytes of a handle move elsewhere, and it is released. Arrays have one entry per page. */
struct tol_mesh_move {
    uint32_t handle, pages;
    int64_t *to;
    const uint64_t **bits; /* what is to be copied */
    uint32_t *blocks;
    uint32_t *made; /* the new handles of pages, set by the callback that creates them */
};

/* The result of a move: made; not possible now, and nothing has changed; or stop, without further
 * moves. */
enum tol_mesh_result { TOL_MESH_DONE, TOL_MESH_SKIPPED, TOL_MESH_STOP };

typedef enum tol_mesh_result tol_mesh_mover(void *user, struct tol_mesh_move *move);

struct tol_mesh_plan {
    uint32_t granules; /* of a page */
    size_t words;
    struct tol_mesh_frame *frames;                  /* the last that was entered */
    struct tol_mesh_frame *levels[TOL_MESH_LEVELS]; /* single pages, by how full they are */
    uint64_t looks;                                 /* at partners, that are left */
    struct tol_mesh_chunk *chunks;                  /* of memory for slots and bits */
    bool out_of_memory;
};

/* Begins a plan for pages of `granules` granules, a multiple of 64. */
void tol_mesh_begin(struct tol_mesh_plan *plan, uint32_t granules);
void tol_mesh_clear(struct tol_mesh_plan *plan);

/* Enters a handle by its number and the number of its pages. NULL: no host memory. */
struct tol_mesh_frame *tol_mesh_frame(struct tol_mesh_plan *plan, uint32_t handle, uint32_t pages);

/* Enters a part of a block, on one page of a frame: page is its place in the handle, begin counts
 * granules in it. false: no host memory. */
bool tol_mesh_use(struct tol_mesh_plan *plan, struct tol_mesh_frame *frame, uint32_t page,
                  uint32_t begin, uint32_t granules);

/* Plans moves until want pages would be free or no move is left, and calls mover, which may be
 * NULL, for each. room is the number of pages that may be created beyond the held ones. Returns the
 * number of freed pages. */
uint64_t tol_mesh_run(struct tol_mesh_plan *plan, uint64_t want, uint64_t room,
                      tol_mesh_mover *mover, void *user);

#endif
