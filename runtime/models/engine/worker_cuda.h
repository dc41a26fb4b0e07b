/*
 * The worker's C interface: the functions of specification 001 under their own names, and the three
 * that its detail specifications add. A thin face over loaded.h and decode_text.h.
 *
 * A call sets *error_code, if error_code is not NULL, to WORKER_OK or to one of the codes below; a
 * function that returns a pointer returns NULL on failure. tol_message() has the sentence. No
 * argument makes a call throw, print or behave in an undefined way, but a handle that was freed.
 *
 * Ownership: what a function returned is ended by its counterpart, in the reverse order: results,
 * then models, then contexts. Threads: calls on one context or model may come from any threads; a
 * result is for one thread at a time. Several results of a model may be alive; each has its tokens
 * whatever the others do.
 *
 * Where the specification contradicts itself or the machine: its names of codes collide with
 * cuda.h's, so they have the prefix WORKER_E_. Temperature 0 draws the likeliest token; above it,
 * top-k 50 and top-p 0.95 hold. Uncorrected ECC errors are a complaint, and ECC being enabled is
 * not. The usage of the process is what it has allocated, not the device's total less what is free.
 * Source: specification 001, worker_cuda.h; CUDA-5112, CUDA-5212, CUDA-5412.
 */
#ifndef TOLLENS_WORKER_CUDA_H
#define TOLLENS_WORKER_CUDA_H

#include <stdbool.h>
#include <stdint.h>

#include <tollens.h>

#ifdef __cplusplus
extern "C" {
#endif

enum worker_code {
    WORKER_OK = 0,
    WORKER_E_DEVICE_NOT_FOUND = 1, /* there is no driver or no device */
    WORKER_E_OUT_OF_MEMORY = 2,    /* of the device or the host */
    WORKER_E_INVALID_DEVICE = 3,   /* no device has this number, or it is too old */
    WORKER_E_MODEL_LOAD_FAILED = 4,
    WORKER_E_INFERENCE_FAILED = 5,
    WORKER_E_VRAM_RESIDENCY_FAILED = 6,
    WORKER_E_KERNEL_LAUNCH_FAILED = 7, /* the context is lost: end everything on it */
    WORKER_E_INVALID_PARAMETER = 8,
    WORKER_E_UNKNOWN = 99
};

typedef struct CudaContext CudaContext;
typedef struct CudaModel CudaModel;
typedef struct InferenceResult InferenceResult;

/* What a code means, as a clause. Static. */
TOL_API const char *cuda_error_message(int error_code);

/* Opens the driver (TOLLENS_LIBCUDA, or the platform's) and the context of a device.
 * WORKER_E_DEVICE_NOT_FOUND, WORKER_E_INVALID_DEVICE, WORKER_E_OUT_OF_MEMORY. */
TOL_API CudaContext *cuda_init(int gpu_device, int *error_code);
/* NULL is a no-op. */
TOL_API void cuda_destroy(CudaContext *ctx);

/* The number of devices; 0 if there is no driver. */
TOL_API int cuda_get_device_count(void);

/* Loads a GGUF file. *vram_bytes_used, if it is not NULL, is set to what cuda_model_get_vram_usage
 * returns. WORKER_E_MODEL_LOAD_FAILED, WORKER_E_OUT_OF_MEMORY, WORKER_E_VRAM_RESIDENCY_FAILED,
 * WORKER_E_INVALID_PARAMETER: NULL. */
TOL_API CudaModel *cuda_load_model(CudaContext *ctx, const char *model_path,
                                   uint64_t *vram_bytes_used, int *error_code);
/* NULL is a no-op. */
TOL_API void cuda_unload_model(CudaModel *model);

/* Bytes of device memory for weights and the work of a pass; 0 if model is NULL. */
TOL_API uint64_t cuda_model_get_vram_usage(CudaModel *model);

/* Begins a text and computes its prompt. max_tokens from 1 on, temperature from 0 to 2.
 * WORKER_E_INVALID_PARAMETER. WORKER_E_INFERENCE_FAILED: also a prompt that does not fit, or 32
 * results of the model that are alive. WORKER_E_OUT_OF_MEMORY, WORKER_E_KERNEL_LAUNCH_FAILED. */
TOL_API InferenceResult *cuda_inference_start(CudaModel *model, const char *prompt, int max_tokens,
                                              float temperature, uint64_t seed, int *error_code);

/*
 * Draws a token. true: its text is in token_out, ended by a NUL, and its number, from 0 on, in
 * *token_index, if that is not NULL. The text is whole UTF-8 characters, often none: bytes of one
 * that is not complete come with a later token. false with WORKER_OK: the text has ended. false
 * with WORKER_E_INVALID_PARAMETER: the text and its NUL do not fit token_buffer_size bytes; the
 * next call has it again, so nothing is lost. Other failures as cuda_inference_start.
 */
TOL_API bool cuda_inference_next_token(InferenceResult *result, char *token_out,
                                       int token_buffer_size, int *token_index, int *error_code);
/* NULL is a no-op. */
TOL_API void cuda_inference_free(InferenceResult *result);

/* Whether all weights, keys and values are in the device's own memory, as the driver says of each.
 * false with WORKER_E_VRAM_RESIDENCY_FAILED: they are not; with another code: it is unknown.
 * */
TOL_API bool cuda_check_vram_residency(CudaModel *model, int *error_code);

/* cuda_model_get_vram_usage and the keys and values of all results now; 0 if model is NULL. */
TOL_API uint64_t cuda_get_vram_usage(CudaModel *model);

/* What this process has allocated on the context's device: by NVML if it reports it, or what the
 * runtime's ledger of live allocations has. 0 if ctx is NULL. */
TOL_API uint64_t cuda_get_process_vram_usage(CudaContext *ctx);

/* Whether nothing speaks against the device: tol_health_check. false with WORKER_OK: something
 * does, and tol_message() says what. */
TOL_API bool cuda_check_device_health(CudaContext *ctx, int *error_code);

/* ---- from the detail specifications ---- */

typedef struct CudaDeviceProperties {
    char name[128];
    int compute_capability_major, compute_capability_minor;
    uint64_t total_memory_bytes;
    int multiprocessor_count;
    int max_threads_per_block;
    int shared_memory_per_block_bytes;
    int l2_bytes;
    bool ecc_enabled;
} CudaDeviceProperties;

/* WORKER_E_DEVICE_NOT_FOUND, WORKER_E_INVALID_DEVICE, WORKER_E_INVALID_PARAMETER: NULL. */
TOL_API void cuda_get_device_properties(int gpu_device, CudaDeviceProperties *properties,
                                        int *error_code);

typedef struct CudaModelMetadata {
    char architecture[32];
    uint64_t context_length; /* positions of a result: what was loaded, not what the file allows */
    uint64_t layers, embedding_length, feed_forward_length;
    uint64_t heads, kv_heads, head_size;
    uint64_t vocabulary;
    uint64_t weight_bytes;
} CudaModelMetadata;

/* WORKER_E_INVALID_PARAMETER: NULL. */
TOL_API void cuda_model_get_metadata(CudaModel *model, CudaModelMetadata *metadata,
                                     int *error_code);

/* Degrees Celsius; -1: NVML does not say. */
TOL_API int cuda_get_device_temperature(CudaContext *ctx);

#ifdef __cplusplus
}
#endif
#endif
