/*
 * Torch: the pool as PyTorch's allocator, in the library libtollens-torch.so.
 *
 *     allocator = torch.cuda.memory.CUDAPluggableAllocator(
 *         "libtollens-torch.so", "tol_torch_allocate_or_throw", "tol_torch_free")
 *     torch.cuda.memory.change_current_allocator(allocator)
 *
 * reports/tollens/torch_memory.py does that, and sets the other functions as well. A stream is
 * a cudaStream_t, which is a CUstream; 0 is the legacy default stream. Each device gets a pool at
 * its first allocation, on the primary context, which is PyTorch's; before that nothing is opened.
 *
 * Stream order: a freed block is used again by the same stream at once, and by another one when the
 * work queued before the free is done or ordered by an event. A block that other streams were
 * recorded for is free when their work of that time is done, too. A stream must outlive the blocks
 * that it was used with.
 *
 * Graphs: what is allocated while its stream is being captured, or between tol_torch_begin_pool and
 * tol_torch_end_pool, comes from memory that belongs to that pool alone until
 * tol_torch_release_pool, so that a replay never writes to what others have. Without these calls
 * such memory is kept to the end of the process.
 *
 * The calling thread's current context and capture mode are the same after each call. All functions
 * may be called from any thread at the same time.
 *
 * Environment, read at the first call:
 *     TOLLENS_TORCH_PROFILE     torch (usual), default, tight or latency; see README.md
 *     TOLLENS_TORCH_LIMIT       most bytes to take from each device: 17179869184, 16g, 500m
 *     TOLLENS_TORCH_STITCH_ABOVE  tol_pool_options.stitch_above; 1.005 in the profile torch
 *     TOLLENS_TORCH_WAIT_ABOVE  tol_pool_options.wait_above; 0 in all profiles
 *     TOLLENS_TORCH_STATISTICS  a file, to which the statistics are written when the process ends
 *     TOLLENS_LIBCUDA           the driver's library, as everywhere
 *
 * Source: PyTorch 2.11, torch/csrc/cuda/CUDAPluggableAllocator.h (the signatures that it calls).
 */
#ifndef TOLLENS_TORCH_H
#define TOLLENS_TORCH_H

#include "status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* PyTorch's name of a pool of memory (MempoolId_t). */
struct tol_torch_pool_id {
    unsigned long long first, second;
};

/* Allocates bytes of a device for work on a stream. NULL: bytes is 0, memory is out, or the device
 * does not work; the first two times the reason is written to stderr, and tol_torch_last_error has
 * it. For MemPool, whose caller frees what it caches and tries again. */
TOL_API void *tol_torch_allocate(size_t bytes, int device, void *stream);

/* The same for change_current_allocator, which does not look for NULL: where memory is out this
 * throws c10::OutOfMemoryError, which Python sees as torch.OutOfMemoryError; other failures throw
 * c10::Error. Where PyTorch's own library does not offer these (before 2.4), it throws
 * std::bad_alloc. */
TOL_API void *tol_torch_allocate_or_throw(size_t bytes, int device, void *stream);

/* Frees a block after the work that its stream and its recorded streams have now. An address that
 * is not a block of this library is reported on stderr and ignored. */
TOL_API void tol_torch_free(void *address, size_t bytes, int device, void *stream);

/* Says that work on another stream than the one it was allocated for uses the block too. */
TOL_API void tol_torch_record_stream(void *address, void *stream);

/* Between these, the calling thread's allocations on the device, and all on streams that are being
 * captured, come from a pool of their own. filter is not used. */
TOL_API void tol_torch_begin_pool(int device, struct tol_torch_pool_id pool, void *filter);
TOL_API void tol_torch_end_pool(int device, struct tol_torch_pool_id pool);

/* Takes back one tol_torch_begin_pool. After the last one the memory is the device's again, as soon
 * as its blocks are freed, nothing is captured and all work is done. */
TOL_API void tol_torch_release_pool(int device, struct tol_torch_pool_id pool);

/* Returns unused memory of all devices to the driver. */
TOL_API void tol_torch_empty_cache(void);

/* Limits the pool of a device to a share, 0 to 1, of the device's memory. Has no effect once the
 * device has a pool. */
TOL_API void tol_torch_set_fraction(double fraction, int device);

/* The beginning of the block that contains an address, and its bytes; the address and 0 if it is
 * in none. */
TOL_API void *tol_torch_base(void *address, size_t *bytes);

/* Called by PyTorch when it starts, with the number of devices. Opens nothing. */
TOL_API void tol_torch_init(int device_count);

/* Writes the statistics of all devices that have a pool, as one JSON object. bytes is the size of
 * text; longer output is cut and ends in a NUL. Returns the length of the full text without the
 * NUL. */
TOL_API size_t tol_torch_statistics(char *text, size_t bytes);

/* Begins the peaks of a device again at what is allocated and reserved now. */
TOL_API void tol_torch_reset_peaks(int device);

/* The calling thread's latest failure in words; "" if there was none. Valid until its next call. */
TOL_API const char *tol_torch_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
