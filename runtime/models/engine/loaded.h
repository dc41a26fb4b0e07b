/*
 * Loaded: a model on a device, with what its sessions share: kernels, a stream, a pool for keys and
 * values, memory for one pass.
 *
 * All weights are one allocation of device memory. Threads read the file into pinned blocks while
 * the device copies other blocks; nothing else is pinned but the few bytes that go in and out with
 * each pass. If loading fails, for any reason, it leaves nothing allocated. After loading, the
 * driver is queried for each tensor whether it is in device memory.
 *
 * Threads: calls on one loaded model and its sessions may come from any threads; passes run one
 * after the other. The context must outlive the loaded model; the model need not.
 */
#ifndef TOLLENS_LOADED_H
#define TOLLENS_LOADED_H

#include "model.h"

#include "collective/collective.h"
#include "decode/paged.h"

struct tol_loaded;

/* All zero are the defaults. */
struct tol_load_options {
    size_t context;  /* positions of a session; 0: 4096, or what the model was made for if less */
    size_t sessions; /* how many there may be at once; 0: 32 */
    size_t rows;     /* rows of a pass of steps or of a short prompt; 0: 512 */
    /* Positions of a long prompt that are computed at once, by products of matrices in fp16; 0:
     * 2048, or fewer if device memory is short. A model with F32 matrices, and a device before
     * compute capability 8.0, compute all prompts as steps. */
    size_t prompt_rows;
    size_t prompt_from;  /* tokens of a long prompt; 0: 64; SIZE_MAX: none is */
    size_t chunk_bytes;  /* of a pinned block; 0: 2 MiB */
    unsigned threads;    /* that read the file; 0: one per processor, at most 12 */
    size_t cache_bytes;  /* most device memory for keys and values; 0: what the device has */
    enum kn_cache cache; /* of keys and values: KN_CACHE_F16, or KN_CACHE_Q8_0, half as large */
    bool alone;          /* sessions whose texts begin alike do not share pages */
    /* The host draws tokens of logits that are copied to it, as it does where several devices
     * compute a model. The tokens are the same. */
    bool draws_on_host;
    /* Contexts of further devices that compute the model together with the first, for this call; up
     * to 7. Each has its share of the heads, of the columns between gate and down, of the rows of
     * every output matrix, and the keys and values of its heads; the embedding is on each. What a
     * session gets is the same bits as on one device of this kind. */
    struct tol_context *const *peers;
    unsigned peer_count;
    enum kn_collective_way way; /* how they exchange columns: KN_WAY_AUTO, _DIRECT or _FLAGS */
    /* Of a pass, and of a copy of loading, which then fail with TOL_TIMEOUT; 0: 60000. */
    unsigned deadline_ms;
    bool verify; /* compare checksums of what was read with those of what is on the device */
    /* Called by the thread that loads, after parts of the copies and at their end; false cancels.
     * NULL: none. */
    bool (*progress)(void *user, uint64_t done_bytes, uint64_t total_bytes);
    void *user;
};

/*
 * Loads a model onto the context's device. options may be NULL. The caller unloads *loaded.
 * TOL_OUT_OF_DEVICE_MEMORY, TOL_OUT_OF_HOST_MEMORY. TOL_CANCELLED: by progress. TOL_UNREADABLE,
 * TOL_INVALID_FILE: the file changed. TOL_NOT_RESIDENT: a tensor is not in device memory.
 * TOL_MISMATCH: verify found different bytes. TOL_UNSUPPORTED: the model's shape cannot be shared
 * by that number of devices, they have different compute capabilities, or one cannot access the
 * memory of another; the message says which. TOL_INVALID_ARGUMENT, TOL_POISONED, TOL_DRIVER_ERROR.
 */
TOL_API tol_status tol_model_load(const struct tol_model *model, struct tol_context *context,
                                  const struct tol_load_options *options,
                                  struct tol_loaded **loaded);

/* Its sessions must have been destroyed. NULL is a no-op. */
TOL_API void tol_model_unload(struct tol_loaded *loaded);

/*
 * Moves what a model has on one of its devices to another device, while its sessions decode:
 * weights are copied while passes go on, keys and values between two passes. Sessions go on there,
 * and get the same bits. device: 0 for the first or only one, 1 for the first of the peers, and so
 * on. Once it has moved, the model needs `to`, and no longer the context that was there.
 *
 * On failure nothing has moved. TOL_INVALID_ARGUMENT: the model has no such device, or is
 * on that of `to` already. TOL_UNSUPPORTED: `to` has another compute capability, or is no peer of
 * the model's other devices. TOL_OUT_OF_DEVICE_MEMORY, TOL_OUT_OF_HOST_MEMORY, TOL_TIMEOUT,
 * TOL_POISONED, TOL_DRIVER_ERROR.
 */
TOL_API tol_status tol_model_move(struct tol_loaded *loaded, unsigned device,
                                  struct tol_context *to);

/* The shape of its model, valid until it is unloaded; and the first of its devices. */
TOL_API const struct tol_model_shape *tol_loaded_shape(const struct tol_loaded *loaded);
TOL_API struct tol_context *tol_loaded_context(const struct tol_loaded *loaded);

/* Of all devices together. */
struct tol_loaded_stats {
    unsigned devices;
    size_t context;                   /* positions of a session */
    uint64_t weight_bytes;            /* on the devices */
    uint64_t read_ns;                 /* from the first read until all were on the devices */
    uint64_t scratch_bytes;           /* of passes, their input and the tables of pages */
    uint64_t prompt_rows;             /* of a pass of a long prompt; 0: there are none */
    uint64_t page_bytes;              /* of a page: the keys and values of 16 positions */
    uint64_t pages;                   /* that sessions hold now; a shared one counts once */
    uint64_t reused;                  /* positions that sessions had from others, so far */
    uint64_t passes, launched_graphs; /* so far; passes that were launches of a graph */
};
TOL_API void tol_loaded_stats(struct tol_loaded *loaded, struct tol_loaded_stats *stats);

/* Queries the driver, for each tensor's first and last byte and for each page of a session, whether
 * it is device memory, neither the host's nor managed. *resident: whether all are. */
TOL_API tol_status tol_loaded_is_resident(struct tol_loaded *loaded, bool *resident);

#endif
