/*
 * Space: the addresses of all soft devices, and what lies behind them.
 *
 * Device addresses come from one range of the process that is reserved and never accessible: a host
 * that reads through a device pointer faults, as with a GPU. The bytes lie elsewhere; each live
 * allocation says where. Allocations keep a gap between them and an address is not given out again
 * for as long as possible, so an access outside a live allocation is found exactly, whether it runs
 * over an end or comes after a free. Pinned host memory is in the space under its own address.
 *
 * For each four bytes a shadow byte says which of them have been written.
 * Thread-safe: lookups run beside each other, changes alone.
 */
#ifndef SOFT_SPACE_H
#define SOFT_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum soft_kind {
    SOFT_KIND_DEVICE, /* cuMemAlloc */
    SOFT_KIND_PINNED, /* cuMemHostAlloc: the address is the host's */
    SOFT_KIND_MODULE  /* a variable of a module */
};

struct soft_allocation {
    uint64_t address;
    uint64_t bytes;
    uint8_t *host;   /* the bytes */
    uint8_t *shadow; /* a byte for each four; NULL where writes are not tracked */
    enum soft_kind kind;
    int device;
    uint64_t serial; /* counts allocations, for reports */
    bool freed;      /* in the graveyard: address and bytes are kept for reports */
    char name[64];   /* of a module's variable */
};

/* A live range, for a fast check of accesses near the last one. Copied out of the space; good until
 * the space's generation changes. */
struct soft_view {
    uint64_t low, high; /* addresses: low <= a, a + size <= high */
    uint8_t *host;      /* behind low */
    uint8_t *shadow;    /* behind low; NULL where writes are not tracked */
};

/* Where the shared, local and parameter windows of generic addressing begin; each is WINDOW_BYTES
 * long. They lie in the reserved range, so no pointer of the host or the device is ever in them. */
enum { SOFT_WINDOW_SHIFT = 32 };
struct soft_windows {
    uint64_t shared, local, parameter;
};

/* Reserves the range; safe to call again. false: the process has no address space left. */
bool soft_space_open(void);
const struct soft_windows *soft_space_windows(void);

/* Allocates device memory at a multiple of alignment (a power of two). NULL: the host has no memory
 * or no addresses left. The device's own limit is the caller's business. */
struct soft_allocation *soft_space_alloc(uint64_t bytes, uint64_t alignment, enum soft_kind kind,
                                         int device, const char *name);

/* Frees what begins at exactly this address, if it is of this kind; tells how many bytes. */
bool soft_space_free(uint64_t address, enum soft_kind kind, uint64_t *bytes, int *device);

/* Finds the live range around [address, address + bytes). false: part of it is not live. */
bool soft_space_view(uint64_t address, uint64_t bytes, struct soft_view *view);

/* Finds the live allocation around an address and copies what is known of it. */
bool soft_space_find(uint64_t address, struct soft_allocation *allocation);

/* Whether all of a range is live; it may span allocations that touch. */
bool soft_space_is_live(uint64_t address, uint64_t bytes);

/* Frees all that a device has of a kind; tells how many bytes that was. */
uint64_t soft_space_free_all(enum soft_kind kind, int device);

/* Changes with every allocation and every free. */
uint64_t soft_space_generation(void);

/* Describes an address that is not live: the nearest allocation, living or freed. Always terminates
 * text. */
void soft_space_describe(uint64_t address, char *text, size_t bytes);

/* Copies and fills over live ranges, which may span allocations that touch. false: part of a range
 * is not live, and nothing is changed. Writes mark the shadow; a copy copies it. */
bool soft_space_write(uint64_t address, const void *source, uint64_t bytes);
bool soft_space_read(uint64_t address, void *destination, uint64_t bytes);
bool soft_space_copy(uint64_t destination, uint64_t source, uint64_t bytes);
bool soft_space_fill(uint64_t address, const void *pattern, unsigned pattern_bytes, uint64_t count);

/* Whether writes are tracked: TOLLENS_SOFT_CHECK has init. */
bool soft_space_tracks(void);

/* How many allocations live, of a kind and a device (-1: of any). */
size_t soft_space_count(enum soft_kind kind, int device);

/* Marks bytes from an offset of a shadow as written. */
void soft_shadow_mark(uint8_t *shadow, uint64_t offset, uint64_t bytes);

#endif
