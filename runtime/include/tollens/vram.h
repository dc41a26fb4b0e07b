/*
 * VRAM: device memory by plain calls with plain codes, and above them a handle that cannot be
 * misused and a context that cannot use more than it was given.
 *
 * The first part are the functions of specifications 000 and 002 under their own names. They open
 * the driver themselves, when first called: the library that TOLLENS_LIBCUDA names, or the
 * platform's. Every failure is a code, with its reason in tol_message(); nothing is thrown, printed
 * or undefined, whatever is passed as a device pointer.
 *
 * An address is handed out once: when it has been freed, copies to it are refused and freeing it
 * again does nothing, also when its memory has long been given to others. Only after 32 times the
 * device's memory has passed through (fewer, where the process has no more addresses) do the oldest
 * begin anew; who cannot live with that has the handles of the second part, which are never valid
 * again.
 *
 * Threads: all functions may be called from any thread. Source: spec 000, spec 002, spec 003; D-19,
 * D-21, D-22, D-33.
 */
#ifndef TOLLENS_VRAM_H
#define TOLLENS_VRAM_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the functions return. */
enum vram_code {
    VRAM_OK = 0,
    VRAM_E_ALLOCATION = 1, /* there is not so much memory, of the device or of the host */
    VRAM_E_INVALID = 2,    /* a pointer, a size or a device is not allowed; nothing was done */
    VRAM_E_COPY = 3,       /* the copy itself failed */
    VRAM_E_DRIVER = 4,     /* there is no driver or no device, or it failed otherwise */
};

/* Allocates bytes on the calling thread's device. *ptr is a device address at a multiple of 256, to
 * be given to kernels, or NULL on failure. 2: ptr is NULL, or bytes is 0. */
TOL_API int vram_malloc(void **ptr, size_t bytes);

/* Frees what vram_malloc gave, when the device's work so far is done. NULL, and what was freed
 * before, are no-ops. 2: the pointer never was the begin of an allocation. 4: the device did not
 * end its work in TOL_DEADLINE_MS, and the memory lives. */
TOL_API int vram_free(void *ptr);

/* Copies bytes from the host to the device, or back, and returns when it is done. The device's end
 * may lie inside of an allocation but not pass its end. 2: a NULL, no bytes, a range that is not
 * inside a live allocation or passes the end of all addresses. */
TOL_API int vram_memcpy_h2d(void *dst, const void *src, size_t bytes);
TOL_API int vram_memcpy_d2h(void *dst, const void *src, size_t bytes);

/* Bytes free and in all on the calling thread's device, as the driver has them. Up to 2 MiB that
 * were freed are kept for the next allocation and count as used. 2: a NULL. */
TOL_API int vram_get_info(size_t *free_bytes, size_t *total_bytes);

/* The device of the calling thread's later calls; 0 at first. Pointers of other devices may be
 * freed and copied to nevertheless. 2: there is no such device. */
TOL_API int vram_set_device(int device);

/* How many devices there are; 0 on failure. 2: count is NULL. */
TOL_API int vram_get_device_count(int *count);

/* ---- the safe handle ---- */

struct tol_vram_context;

/* A piece of memory of a context; all zero is none. The address stays inside. A handle that was
 * freed is known for it for ever. */
struct tol_vram {
    uint64_t name;
};

/* A context on a device of which at most limit_bytes may be in use at one time, all allocations
 * together; 0: no limit. TOL_UNSUPPORTED: the device cannot map memory behind addresses. */
TOL_API tol_status tol_vram_context_create(struct tol_context *context, size_t limit_bytes,
                                           struct tol_vram_context **vram);

/* Frees all that was not freed. No call with it may be in progress. NULL is a no-op. */
TOL_API void tol_vram_context_destroy(struct tol_vram_context *vram);

/* Allocates bytes, not initialised. TOL_INVALID_ARGUMENT: none. TOL_OUT_OF_DEVICE_MEMORY: there is
 * not so much, or the limit forbids it; the message has the numbers. */
TOL_API tol_status tol_vram_allocate(struct tol_vram_context *vram, size_t bytes,
                                     struct tol_vram *memory);

/* Frees it when the device's work so far is done. TOL_INVALID_ARGUMENT: it was freed before, or is
 * not of this context. TOL_TIMEOUT: the device did not end, and the memory lives. */
TOL_API tol_status tol_vram_free(struct tol_vram_context *vram, struct tol_vram memory);

/* Copies bytes to or from offset. TOL_OUT_OF_RANGE: the range does not lie inside; nothing is
 * copied. TOL_INVALID_ARGUMENT: a handle that is not alive. No bytes succeed. */
TOL_API tol_status tol_vram_write_at(struct tol_vram_context *vram, struct tol_vram memory,
                                     size_t offset, const void *source, size_t bytes);
TOL_API tol_status tol_vram_read_at(struct tol_vram_context *vram, struct tol_vram memory,
                                    size_t offset, void *destination, size_t bytes);

/* The bytes that were asked for; 0 for a handle that is not alive. */
TOL_API size_t tol_vram_bytes(struct tol_vram_context *vram, struct tol_vram memory);

struct tol_vram_info {
    int device;
    size_t free_bytes, total_bytes; /* of the device */
    size_t limit_bytes;             /* 0: none */
    size_t used_bytes, used_peak;   /* by this context, as they were asked for */
    size_t allocations;             /* alive */
};
TOL_API tol_status tol_vram_info(struct tol_vram_context *vram, struct tol_vram_info *info);

#ifdef __cplusplus
}
#endif
#endif
