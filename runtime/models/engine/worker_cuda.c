/*
 * The functions of worker_cuda.h: arguments, codes, and calls of the library.
 */
#include "worker_cuda.h"

#include "core/check.h"
#include "decode_text.h"

#include <tokenizer.h>

#include <stdlib.h>
#include <string.h>

enum { TOP_K = 50 };
static const double top_p = 0.95;

struct CudaContext {
    struct tol_driver *driver;
    struct tol_context *context;
};

struct CudaModel {
    struct tol_loaded *loaded;
    struct tol_tokenizer *tokenizer;
};

struct InferenceResult {
    struct tol_text *text;
    bool is_waiting; /* the latest step's text was not taken yet */
    int index;       /* of the next token */
};

/* ---- codes ---- */

const char *cuda_error_message(int error_code) {
    switch (error_code) {
    case WORKER_OK:
        return "the call succeeded";
    case WORKER_E_DEVICE_NOT_FOUND:
        return "there is no CUDA driver or no device";
    case WORKER_E_OUT_OF_MEMORY:
        return "the device or the host has no memory left";
    case WORKER_E_INVALID_DEVICE:
        return "the device does not exist or is too old";
    case WORKER_E_MODEL_LOAD_FAILED:
        return "the model could not be loaded";
    case WORKER_E_INFERENCE_FAILED:
        return "a token could not be computed";
    case WORKER_E_VRAM_RESIDENCY_FAILED:
        return "memory of the model is not the device's own";
    case WORKER_E_KERNEL_LAUNCH_FAILED:
        return "a kernel failed, and the context is lost";
    case WORKER_E_INVALID_PARAMETER:
        return "an argument is invalid";
    default:
        return "an unknown error";
    }
}

/* The code of a status; otherwise: that of what was being done. */
static enum worker_code worker_cuda_code_of(tol_status status, enum worker_code otherwise) {
    switch (status) {
    case TOL_OK:
        return WORKER_OK;
    case TOL_NO_LIBRARY:
    case TOL_NO_SYMBOL:
    case TOL_DRIVER_TOO_OLD:
        return WORKER_E_DEVICE_NOT_FOUND;
    case TOL_NO_DEVICE:
    case TOL_DEVICE_UNSUPPORTED:
        return WORKER_E_INVALID_DEVICE;
    case TOL_OUT_OF_DEVICE_MEMORY:
    case TOL_OUT_OF_HOST_MEMORY:
        return WORKER_E_OUT_OF_MEMORY;
    case TOL_NOT_RESIDENT:
        return WORKER_E_VRAM_RESIDENCY_FAILED;
    case TOL_POISONED:
        return WORKER_E_KERNEL_LAUNCH_FAILED;
    case TOL_INVALID_ARGUMENT:
        return otherwise == WORKER_E_INFERENCE_FAILED ? WORKER_E_INVALID_PARAMETER : otherwise;
    default:
        return otherwise;
    }
}

static void worker_cuda_set(int *error_code, enum worker_code code) {
    if (error_code != NULL) *error_code = (int)code;
}

static enum worker_code worker_cuda_refuse(const char *call, const char *what) {
    (void)tol_fail(__FILE__, __LINE__, TOL_INVALID_ARGUMENT, "%s: %s", call, what);
    return WORKER_E_INVALID_PARAMETER;
}

/* ---- contexts ---- */

CudaContext *cuda_init(int gpu_device, int *error_code) {
    CudaContext *ctx = calloc(1, sizeof *ctx);
    tol_status status = ctx != NULL ? TOL_OK : TOL_OUT_OF_HOST_MEMORY;
    if (status == TOL_OK) status = tol_driver_open(NULL, &ctx->driver);
    if (status == TOL_OK) status = tol_context_create(ctx->driver, gpu_device, &ctx->context);
    worker_cuda_set(error_code, worker_cuda_code_of(status, WORKER_E_UNKNOWN));
    if (status == TOL_OK) return ctx;
    cuda_destroy(ctx);
    return NULL;
}

void cuda_destroy(CudaContext *ctx) {
    if (ctx == NULL) return;
    tol_context_destroy(ctx->context);
    tol_driver_close(ctx->driver);
    free(ctx);
}

int cuda_get_device_count(void) {
    tol_auto_driver struct tol_driver *driver = NULL;
    int count = 0;
    if (tol_driver_open(NULL, &driver) != TOL_OK) return 0;
    return tol_device_count(driver, &count) == TOL_OK ? count : 0;
}

void cuda_get_device_properties(int gpu_device, CudaDeviceProperties *properties, int *error_code) {
    tol_auto_driver struct tol_driver *driver = NULL;
    struct tol_device device;
    if (properties == NULL) {
        worker_cuda_set(error_code,
                        worker_cuda_refuse("cuda_get_device_properties", "properties is NULL"));
        return;
    }
    tol_status status = tol_driver_open(NULL, &driver);
    if (status == TOL_OK) status = tol_device_read(driver, gpu_device, &device);
    worker_cuda_set(error_code, worker_cuda_code_of(status, WORKER_E_UNKNOWN));
    if (status != TOL_OK) return;
    *properties =
        (CudaDeviceProperties){.compute_capability_major = device.compute_capability / 10,
                               .compute_capability_minor = device.compute_capability % 10,
                               .total_memory_bytes = device.memory_bytes,
                               .multiprocessor_count = device.multiprocessors,
                               .max_threads_per_block = device.block_threads_max,
                               .shared_memory_per_block_bytes = device.shared_bytes_per_block,
                               .l2_bytes = device.l2_bytes,
                               .ecc_enabled = device.ecc};
    memcpy(properties->name, device.name, sizeof properties->name);
}

/* ---- models ---- */

CudaModel *cuda_load_model(CudaContext *ctx, const char *model_path, uint64_t *vram_bytes_used,
                           int *error_code) {
    struct tol_model *file = NULL;
    CudaModel *model = NULL;
    if (ctx == NULL || model_path == NULL) {
        worker_cuda_set(error_code,
                        worker_cuda_refuse("cuda_load_model", "the context or the path is NULL"));
        return NULL;
    }
    model = calloc(1, sizeof *model);
    tol_status status = model != NULL ? TOL_OK : TOL_OUT_OF_HOST_MEMORY;
    if (status == TOL_OK) status = tol_model_open(model_path, &file);
    if (status == TOL_OK) {
        status = tol_tokenizer_create(tol_model_file(file), &model->tokenizer);
    }
    if (status == TOL_OK) status = tol_model_load(file, ctx->context, NULL, &model->loaded);
    tol_model_close(file);
    worker_cuda_set(error_code, worker_cuda_code_of(status, WORKER_E_MODEL_LOAD_FAILED));
    if (status != TOL_OK) {
        cuda_unload_model(model);
        return NULL;
    }
    if (vram_bytes_used != NULL) *vram_bytes_used = cuda_model_get_vram_usage(model);
    return model;
}

void cuda_unload_model(CudaModel *model) {
    if (model == NULL) return;
    tol_model_unload(model->loaded);
    tol_tokenizer_destroy(model->tokenizer);
    free(model);
}

uint64_t cuda_model_get_vram_usage(CudaModel *model) {
    struct tol_loaded_stats stats;
    if (model == NULL) return 0;
    tol_loaded_stats(model->loaded, &stats);
    return stats.weight_bytes + stats.scratch_bytes;
}

uint64_t cuda_get_vram_usage(CudaModel *model) {
    struct tol_loaded_stats stats;
    if (model == NULL) return 0;
    tol_loaded_stats(model->loaded, &stats);
    return stats.weight_bytes + stats.scratch_bytes + stats.pages * stats.page_bytes;
}

void cuda_model_get_metadata(CudaModel *model, CudaModelMetadata *metadata, int *error_code) {
    struct tol_loaded_stats stats;
    if (model == NULL || metadata == NULL) {
        worker_cuda_set(error_code,
                        worker_cuda_refuse("cuda_model_get_metadata", "an argument is NULL"));
        return;
    }
    const struct tol_model_shape *shape = tol_loaded_shape(model->loaded);
    tol_loaded_stats(model->loaded, &stats);
    *metadata = (CudaModelMetadata){.context_length = stats.context,
                                    .layers = shape->layers,
                                    .embedding_length = shape->width,
                                    .feed_forward_length = shape->feed_forward,
                                    .heads = shape->heads,
                                    .kv_heads = shape->kv_heads,
                                    .head_size = shape->head_size,
                                    .vocabulary = shape->vocabulary,
                                    .weight_bytes = stats.weight_bytes};
    memcpy(metadata->architecture, shape->architecture, sizeof shape->architecture);
    worker_cuda_set(error_code, WORKER_OK);
}

/* ---- inference ---- */

InferenceResult *cuda_inference_start(CudaModel *model, const char *prompt, int max_tokens,
                                      float temperature, uint64_t seed, int *error_code) {
    InferenceResult *result = NULL;
    if (model == NULL || prompt == NULL || max_tokens < 1) {
        worker_cuda_set(error_code,
                        worker_cuda_refuse("cuda_inference_start",
                                           "model or prompt is NULL, or max_tokens is below 1"));
        return NULL;
    }
    struct tol_text_options options = {
        .tokens_max = (size_t)max_tokens,
        .sampling = {.temperature = (double)temperature, .seed = seed}};
    if (temperature > 0) options.sampling.top_k = TOP_K, options.sampling.top_p = top_p;
    result = calloc(1, sizeof *result);
    tol_status status = result != NULL ? TOL_OK : TOL_OUT_OF_HOST_MEMORY;
    if (status == TOL_OK) {
        status = tol_text_create(model->loaded, model->tokenizer, &options, prompt, strlen(prompt),
                                 &result->text);
    }
    worker_cuda_set(error_code, worker_cuda_code_of(status, WORKER_E_INFERENCE_FAILED));
    if (status == TOL_OK) return result;
    cuda_inference_free(result);
    return NULL;
}

/* Makes a step, unless one is waiting. false: the text has ended, or failed. */
static bool worker_cuda_advance(InferenceResult *result, enum worker_code *code) {
    *code = WORKER_OK;
    if (result->is_waiting) return true;
    const enum tol_text_end before = tol_text_about(result->text).end;
    if (before != TOL_TEXT_GOES_ON) {
        if (before == TOL_TEXT_FAILED) {
            *code =
                worker_cuda_code_of(tol_text_about(result->text).status, WORKER_E_INFERENCE_FAILED);
        }
        return false;
    }
    const tol_status status = tol_texts_step(&result->text, 1);
    const struct tol_text_about about = tol_text_about(result->text);
    if (status != TOL_OK || about.end == TOL_TEXT_FAILED) {
        *code = worker_cuda_code_of(status != TOL_OK ? status : about.status,
                                    WORKER_E_INFERENCE_FAILED);
        return false;
    }
    /* The end's own token has no text; what was held back before it may have. */
    if (about.end == TOL_TEXT_END_TOKEN && tol_text_fresh(result->text).count == 0) return false;
    result->is_waiting = true;
    return true;
}

bool cuda_inference_next_token(InferenceResult *result, char *token_out, int token_buffer_size,
                               int *token_index, int *error_code) {
    enum worker_code code = WORKER_OK;
    if (result == NULL || token_out == NULL || token_buffer_size < 1) {
        worker_cuda_set(error_code, worker_cuda_refuse("cuda_inference_next_token",
                                                       "an argument is NULL or no buffer"));
        return false;
    }
    if (!worker_cuda_advance(result, &code)) {
        worker_cuda_set(error_code, code);
        return false;
    }
    const struct tol_gguf_text fresh = tol_text_fresh(result->text);
    if (fresh.count >= (size_t)token_buffer_size) {
        worker_cuda_set(error_code,
                        worker_cuda_refuse("cuda_inference_next_token", "the buffer is too small"));
        return false;
    }
    if (fresh.count > 0) memcpy(token_out, fresh.bytes, fresh.count);
    token_out[fresh.count] = '\0';
    if (token_index != NULL) *token_index = result->index;
    result->index++;
    result->is_waiting = false;
    worker_cuda_set(error_code, WORKER_OK);
    return true;
}

void cuda_inference_free(InferenceResult *result) {
    if (result == NULL) return;
    tol_text_destroy(result->text);
    free(result);
}

/* ---- health ---- */

bool cuda_check_vram_residency(CudaModel *model, int *error_code) {
    bool resident = false;
    if (model == NULL) {
        worker_cuda_set(error_code,
                        worker_cuda_refuse("cuda_check_vram_residency", "the model is NULL"));
        return false;
    }
    const tol_status status = tol_loaded_is_resident(model->loaded, &resident);
    const enum worker_code found = resident ? WORKER_OK : WORKER_E_VRAM_RESIDENCY_FAILED;
    worker_cuda_set(error_code,
                    status == TOL_OK ? found : worker_cuda_code_of(status, WORKER_E_UNKNOWN));
    return status == TOL_OK && resident;
}

uint64_t cuda_get_process_vram_usage(CudaContext *ctx) {
    struct tol_health health;
    if (ctx == NULL || tol_health_check(ctx->context, NULL, &health) != TOL_OK) return 0;
    if (health.device.is_told && health.device.process_bytes > 0) {
        return (uint64_t)health.device.process_bytes;
    }
    return health.held[TOL_HELD_BUFFER].bytes + health.held[TOL_HELD_BLOCK].bytes +
           health.held[TOL_HELD_VRAM].bytes;
}

bool cuda_check_device_health(CudaContext *ctx, int *error_code) {
    struct tol_health health;
    if (ctx == NULL) {
        worker_cuda_set(error_code,
                        worker_cuda_refuse("cuda_check_device_health", "the context is NULL"));
        return false;
    }
    const tol_status status = tol_health_check(ctx->context, NULL, &health);
    worker_cuda_set(error_code, worker_cuda_code_of(status, WORKER_E_UNKNOWN));
    if (status != TOL_OK) return false;
    if (!health.is_healthy) {
        (void)tol_fail(__FILE__, __LINE__, TOL_DRIVER_ERROR, "%s", health.complaint);
    }
    return health.is_healthy;
}

int cuda_get_device_temperature(CudaContext *ctx) {
    struct tol_health health;
    if (ctx == NULL || tol_health_check(ctx->context, NULL, &health) != TOL_OK) return -1;
    return health.device.is_told ? health.device.temperature_celsius : -1;
}
