/*
 * VRAM: device memory through plain C calls with integer codes; and on top of that a checked handle
 * and a context with a memory limit.
 *
 * The first part is the functions of specifications 000 and 002 under their own names. They open
 * the driver on the first call: the library in TOLLENS_LIBCUDA, or the platform's. Every failure
 * returns a code and sets tol_message(). No value passed as a device pointer throws, prints or
 * causes undefined behaviour.
 *
 * Addresses are not reused: copies to a freed address are refused, and freeing it again does
 * nothing, even long after its memory went to other allocations. Only after 32 times the device's
 * memory has been allocated (less, if the process runs out of addresses) are the oldest addresses
 * reused. The handles of the second part are never reused.
 *
 * Threads: all functions may be called from any thread at the same time.
 * Source: spec 000, spec 002, spec 003; D-19, D-21, D-22, D-33.
 */
#ifndef TOLLENS_VRAM_H
#define TOLLENS_VRAM_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The return codes of the first part. */
enum vram_code {
    VRAM_OK = 0,
    VRAM_E_ALLOCATION = 1, /* the device or the host has not enough memory */
    VRAM_E_INVALID = 2,    /* a pointer, a size or a device number is invalid; nothing was done */
    VRAM_E_COPY = 3,       /* the copy failed */
    VRAM_E_DRIVER = 4,     /* there is no driver or no device, or the driver failed */
};

/* Allocates bytes on the calling thread's device. *ptr is set to a device address, aligned to 256
 * bytes, for kernel arguments; on failure to NULL. VRAM_E_INVALID: ptr is NULL, or bytes is 0. */
TOL_API int vram_malloc(void **ptr, size_t bytes);

/* Frees memory of vram_malloc after waiting for the device's work so far. NULL and an address that
 * was freed before are no-ops. VRAM_E_INVALID: ptr was never returned by vram_malloc.
 * VRAM_E_DRIVER: the device's work was not done within TOL_DEADLINE_MS; the memory is not freed. */
TOL_API int vram_free(void *ptr);

/* Copy bytes from host to device, and from device to host; the copy is done on return. The device
 * address may be inside an allocation. VRAM_E_INVALID: NULL, zero bytes, or a range that is not
 * inside one live allocation or exceeds the address space. */
TOL_API int vram_memcpy_h2d(void *dst, const void *src, size_t bytes);
TOL_API int vram_memcpy_d2h(void *dst, const void *src, size_t bytes);

/* Gets free and total bytes of the calling thread's device, as the driver reports them. Up to 2 MiB
 * of freed memory is kept for the next allocation and counts as used. VRAM_E_INVALID: NULL. */
TOL_API int vram_get_info(size_t *free_bytes, size_t *total_bytes);

/* Sets the device of the calling thread's later calls; the default is 0. Addresses of other devices
 * can still be freed and copied to and from. VRAM_E_INVALID: there is no such device. */
TOL_API int vram_set_device(int device);

/* Gets the number of devices; 0 on failure. VRAM_E_INVALID: count is NULL. */
TOL_API int vram_get_device_count(int *count);

/* ---- the safe handle ---- */

struct tol_vram_context;

/* A handle to memory of a VRAM context. All zero means none. It does not expose the address, and
 * a freed handle is never valid again. */
struct tol_vram {
    uint64_t name;
};

/* Creates a VRAM context whose allocations together may use at most limit_bytes at a time; 0: no
 * limit. TOL_UNSUPPORTED: the device has no virtual memory management. */
TOL_API tol_status tol_vram_context_create(struct tol_context *context, size_t limit_bytes,
                                           struct tol_vram_context **vram);

/* Destroys the context and frees all its memory. No call may be using it. NULL is a no-op. */
TOL_API void tol_vram_context_destroy(struct tol_vram_context *vram);

/* Allocates bytes; the content is undefined. TOL_INVALID_ARGUMENT: bytes is 0.
 * TOL_OUT_OF_DEVICE_MEMORY: the device has not enough memory, or the limit forbids it; the message
 * has the numbers. */
TOL_API tol_status tol_vram_allocate(struct tol_vram_context *vram, size_t bytes,
                                     struct tol_vram *memory);

/* Frees memory after waiting for the device's work so far. TOL_INVALID_ARGUMENT: it was freed
 * before, or does not belong to this context. TOL_TIMEOUT: the work was not done in time; the
 * memory is not freed. */
TOL_API tol_status tol_vram_free(struct tol_vram_context *vram, struct tol_vram memory);

/* Copy bytes from the host to offset, and from offset to the host; the copy is done on return. Zero
 * bytes succeed. TOL_OUT_OF_RANGE: the range is not inside the memory; nothing is copied.
 * TOL_INVALID_ARGUMENT: the handle is not live. */
TOL_API tol_status tol_vram_write_at(struct tol_vram_context *vram, struct tol_vram memory,
                                     size_t offset, const void *source, size_t bytes);
TOL_API tol_status tol_vram_read_at(struct tol_vram_context *vram, struct tol_vram memory,
                                    size_t offset, void *destination, size_t bytes);

/* The size in bytes that was requested. 0 if the handle is not live. */
TOL_API size_t tol_vram_bytes(struct tol_vram_context *vram, struct tol_vram memory);

/* State of a VRAM context. */
struct tol_vram_info {
    int device;
    size_t free_bytes, total_bytes; /* of the device */
    size_t limit_bytes;             /* 0: no limit */
    size_t used_bytes, used_peak;   /* by this context, sizes as requested */
    size_t allocations;             /* count of live allocations */
};
TOL_API tol_status tol_vram_info(struct tol_vram_context *vram, struct tol_vram_info *info);

#ifdef __cplusplus
}
#endif
#endif
