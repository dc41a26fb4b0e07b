/*
 * Space: the address space of all soft devices, and its bytes.
 *
 * Device addresses come from one range of the process that is reserved and never accessible: a host
 * that reads through a device pointer faults, as with a GPU. The bytes are elsewhere; each live
 * allocation has a pointer to them. There is a gap between allocations, and a freed address is
 * reused as late as possible. So an access outside a live allocation is always detected, both past
 * an end and after a free. Host memory that devices may use has its own address in the space.
 *
 * A shadow byte per four bytes records which of them were written.
 *
 * The bytes of an allocation are kept while a reader may still use them, so a free or unmap during
 * a kernel never makes the kernel access freed host memory. Thread-safe: lookups run in parallel,
 * changes exclusively.
 */
#ifndef SOFT_SPACE_H
#define SOFT_SPACE_H

#include "maker.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum soft_kind {
    SOFT_KIND_DEVICE,     /* cuMemAlloc */
    SOFT_KIND_PINNED,     /* cuMemHostAlloc: the address is the host's */
    SOFT_KIND_MANAGED,    /* cuMemAllocManaged: likewise, and freed as device memory is */
    SOFT_KIND_REGISTERED, /* cuMemHostRegister: the bytes are the program's own */
    SOFT_KIND_MODULE,     /* a variable of a module */
    SOFT_KIND_HEAP,       /* malloc in a kernel */
    SOFT_KIND_POOL,       /* of a memory pool; readers and writers are the devices that may use
                           * it */
    SOFT_KIND_MAPPED,     /* cuMemMap: the bytes are a backing's; readers and writers as well */
    SOFT_KIND_IMPORTED,   /* the memory of another process; the bytes are a backing's */
    SOFT_KIND_ARRAY       /* a CUDA array: for textures and surfaces, not for loads and stores */
};

/* Bytes that several mappings share, or several processes. */
struct soft_backing {
    atomic_int references;
    uint64_t bytes;
    uint8_t *host, *shadow;
    bool is_shared; /* with other processes, by a file: see shared_bytes.h */
    int file;
};

struct soft_allocation {
    uint64_t address;
    uint64_t bytes;
    uint8_t *host;   /* the bytes */
    uint8_t *shadow; /* one byte per four; NULL if writes are not tracked */
    enum soft_kind kind;
    int device;
    unsigned slot;                /* of the context that created it: struct soft_reach */
    unsigned flags;               /* that host memory was made with */
    uint32_t readers, writers;    /* one bit per device; only for some kinds */
    uint64_t charged;             /* bytes of the device's memory */
    void *source;                 /* the pool it came from, or the physical memory that is mapped */
    struct soft_backing *backing; /* that owns the bytes; NULL: its own */
    bool claimed;                 /* it will be freed, in stream order */
    uint64_t serial;              /* counts allocations, for reports */
    bool constant;                /* a .const variable: copies may write it, kernels may not */
    bool freed;                   /* in the graveyard: address and bytes are kept for reports */
    struct soft_maker maker;
    char name[64]; /* of a module's variable */
};

/* The memory that a context's kernels may use: that of the contexts whose bits are set, and the
 * mapped memory and pools that its device may read or write. */
enum { SOFT_REACH_SLOTS = 64 };
struct soft_reach {
    int device;
    _Atomic uint64_t heap_bytes; /* the limit of its kernels' malloc */
    unsigned slot;               /* the context's own number */
    _Atomic uint64_t contexts;
};

enum soft_access_kind { SOFT_ACCESS_READ, SOFT_ACCESS_WRITE };

/* A live range, for a fast check of accesses near the last one. Copied from the space; valid until
 * the space's generation changes, and its bytes while the reader is inside. */
struct soft_view {
    uint64_t low, high; /* addresses: low <= a, a + size <= high */
    uint8_t *host;      /* the bytes of low */
    uint8_t *shadow;    /* of the bytes; NULL if writes are not tracked */
    bool constant;      /* they are a .const variable's */
};

/* The begins of the shared, local and parameter windows of generic addressing; each is WINDOW_BYTES
 * long. They are in the reserved range, so no pointer of the host or the device is ever in them. */
enum { SOFT_WINDOW_SHIFT = 32 };
struct soft_windows {
    uint64_t shared, local, parameter;
    uint64_t code; /* function addresses, which cannot be read */
};

/* Reserves the range; safe to call again. false: the process has no address space left. */
bool soft_space_open(void);
const struct soft_windows *soft_space_windows(void);

/* Adds an allocation to the space, at a multiple of alignment (a power of two). wanted has its
 * size, kind, device, slot and so on. Its address is chosen unless wanted has one; its bytes and
 * shadow are allocated, except for registered memory (wanted has host) and for a backing (wanted
 * has host, shadow and backing). NULL: the host is out of memory or addresses, or the addresses are
 * taken. The caller checks the device's limit. */
struct soft_allocation *soft_space_alloc(const struct soft_allocation *wanted, uint64_t alignment);

/* Removes the allocation that begins at exactly this address, if it is of one of these kinds (bits
 * of 1 << kind), and returns a copy, whose host, shadow and backing must not be used. */
bool soft_space_free(uint64_t address, unsigned kinds, struct soft_allocation *was);

/* The same for any allocation of these kinds of a context. */
bool soft_space_free_owned(unsigned slot, unsigned kinds, struct soft_allocation *was);

/* Claims the allocation that begins at exactly this address, if it is of one of these kinds, for a
 * later free. false: there is none, or it is claimed already. */
bool soft_space_claim(uint64_t address, unsigned kinds, struct soft_allocation *found);

/* Sets the devices that may use a mapping that begins at this address. */
bool soft_space_allow(uint64_t address, uint32_t readers, uint32_t writers);

/* The same for all allocations of a pool. */
void soft_space_allow_pool(const void *pool, uint32_t readers, uint32_t writers);

/* Finds the live range around [address, address + bytes), if a kernel with this reach may use it
 * with this kind of access. false: part of it is not live, or not within reach. */
bool soft_space_view(uint64_t address, uint64_t bytes, const struct soft_reach *reach,
                     enum soft_access_kind kind, struct soft_view *view);

/* The same for a texel of a texture or a surface, which may be in an array too. */
bool soft_space_view_texel(uint64_t address, uint64_t bytes, const struct soft_reach *reach,
                           enum soft_access_kind kind, struct soft_view *view);

/* Finds the live allocation around an address and copies it. */
bool soft_space_find(uint64_t address, struct soft_allocation *allocation);

/* The first live allocation created after the one with this serial number. false: there is none. */
bool soft_space_next(uint64_t serial, struct soft_allocation *allocation);

/* Whether a whole range is live and some device may use it with this kind of access; it may span
 * adjacent allocations. */
bool soft_space_is_live(uint64_t address, uint64_t bytes, enum soft_access_kind kind);

/* Whether kernels with this reach may use an allocation with this kind of access. */
bool soft_space_may(const struct soft_allocation *allocation, const struct soft_reach *reach,
                    enum soft_access_kind kind);

/* Whether a range overlaps the reserved addresses, where no host memory can be. */
bool soft_space_holds(uint64_t address, uint64_t bytes);

/* Whether a range meets any live allocation. */
bool soft_space_is_taken(uint64_t address, uint64_t bytes);

/* Changes with every allocation, every free and every change of access rights. */
uint64_t soft_space_generation(void);

/* Announces that the reach of contexts has shrunk: earlier results must be looked up again. */
void soft_space_changed(void);

/* Describes an address that is not live, or not within reach: the nearest live or freed allocation.
 * Always terminates text. */
void soft_space_describe(uint64_t address, const struct soft_reach *reach,
                         enum soft_access_kind kind, char *text, size_t bytes);

/* ---- addresses without bytes, for later mappings ---- */

/* Reserves addresses: at the wanted one, if that is not 0 and free, else anywhere. 0: none left. */
uint64_t soft_space_reserve(uint64_t wanted, uint64_t bytes, uint64_t alignment);

/* Frees a whole reservation. false: it is none. */
bool soft_space_unreserve(uint64_t address, uint64_t bytes);

/* The reservation around an address. false: there is none. */
bool soft_space_reservation(uint64_t address, uint64_t *begin, uint64_t *bytes);

/* The first reservation that ends after an address. false: there is none. */
bool soft_space_reservation_behind(uint64_t address, uint64_t *begin, uint64_t *bytes);

/* ---- bytes ---- */

/* A backing of zeros with one reference; NULL without memory. */
struct soft_backing *soft_backing_new(uint64_t bytes);
void soft_backing_release(struct soft_backing *backing);

/* A thread that uses views is inside from enter to leave. */
struct soft_space_reader {
    uint64_t since; /* the generation when it came in */
    struct soft_space_reader *next, **link;
};
void soft_space_enter(struct soft_space_reader *reader);
void soft_space_leave(struct soft_space_reader *reader);

/* Copies and fills over live ranges, which may span adjacent allocations. false: part of a range is
 * not live, and nothing is changed. Writes mark the shadow; a copy copies it. */
bool soft_space_write(uint64_t address, const void *source, uint64_t bytes);
bool soft_space_read(uint64_t address, void *destination, uint64_t bytes);
bool soft_space_copy(uint64_t destination, uint64_t source, uint64_t bytes);
bool soft_space_fill(uint64_t address, const void *pattern, unsigned pattern_bytes, uint64_t count);

/* A bit to flip in an allocation of a device: the number of the live allocation, from 1 in the
 * order of creation, and the byte. Drawn numbers may have any value and are reduced to the valid
 * range. */
struct soft_flip {
    int device;
    uint64_t allocation, byte;
    bool draws, draws_byte;
    unsigned bit;
    uint64_t bytes; /* the allocation's size */
};

/* Flips it, and returns its position. false: there is no such byte. */
bool soft_space_flip(struct soft_flip *flip);

/* Whether writes are tracked: TOLLENS_SOFT_CHECK has init. */
bool soft_space_tracks(void);

/* Sets bits of one byte of a shadow. Other workers may set other bits at the same time. */
static inline void soft_shadow_set(uint8_t *at, uint8_t bits) {
    uint8_t now = __atomic_load_n(at, __ATOMIC_RELAXED);
    if ((now & bits) != bits) (void)__atomic_fetch_or(at, bits, __ATOMIC_RELAXED);
}

/* Marks bytes from an offset of a shadow as written. */
void soft_shadow_mark(uint8_t *shadow, uint64_t offset, uint64_t bytes);

#endif
