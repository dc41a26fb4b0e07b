/*
 * The worker's C interface: a whole scenario, every error, buffers that are too small, and codes.
 */
#include "worker_cuda.h"

#include "test/test_device.h"

#include <gguf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char model_path[4096];

/* These functions open the driver that the environment names. */
static void begin(void) {
    if (test_library() != NULL) setenv("TOLLENS_LIBCUDA", test_library(), 1);
    snprintf(model_path, sizeof model_path, "%s", test_fixture_path("models/llama-f32.gguf"));
}
TestSuite(worker_cuda, .init = begin, .fini = test_end);

static CudaContext *open_context(void) {
    int code = -1;
    (void)test_driver(); /* skips the test where there is none */
    CudaContext *ctx = cuda_init(0, &code);
    cr_assert(ctx != NULL && code == WORKER_OK, "%d: %s", code, tol_message());
    return ctx;
}

static CudaModel *open_model(CudaContext *ctx) {
    int code = -1;
    uint64_t bytes = 0;
    CudaModel *model = cuda_load_model(ctx, model_path, &bytes, &code);
    cr_assert(model != NULL && code == WORKER_OK, "%d: %s", code, tol_message());
    cr_assert(bytes == cuda_model_get_vram_usage(model) && bytes > 400000);
    return model;
}

/* All text of a prompt, by buffers of `room` bytes that grow where they must. */
static size_t write_text(CudaModel *model, float temperature, uint64_t seed, int room, char *text,
                         size_t bytes) {
    int code = -1, index = -1, size = room;
    size_t count = 0, tokens = 0;
    char piece[256];
    InferenceResult *result =
        cuda_inference_start(model, "The driver", 24, temperature, seed, &code);
    cr_assert(result != NULL && code == WORKER_OK, "%d: %s", code, tol_message());
    for (;;) {
        if (cuda_inference_next_token(result, piece, size, &index, &code)) {
            cr_assert(index == (int)tokens++ && code == WORKER_OK);
            cr_assert(count + strlen(piece) < bytes);
            strcpy(text + count, piece);
            count += strlen(piece);
            size = room;
        } else if (code == WORKER_E_INVALID_PARAMETER) {
            cr_assert(size < (int)sizeof piece);
            size++;
        } else {
            break;
        }
    }
    cr_assert(code == WORKER_OK);
    cr_assert(!cuda_inference_next_token(result, piece, sizeof piece, &index, NULL));
    cuda_inference_free(result);
    text[count] = '\0';
    return tokens;
}

Test(worker_cuda, a_text_comes_whole_through_any_buffer) {
    CudaContext *ctx = open_context();
    CudaModel *model = open_model(ctx);
    char text[1024], again[1024];
    cr_assert(write_text(model, 0, 1, 256, text, sizeof text) == 24);
    cr_assert(text[0] != '\0');
    cr_assert(write_text(model, 0, 2, 1, again, sizeof again) == 24);
    cr_assert_str_eq(text, again);
    write_text(model, 1.2f, 5, 256, text, sizeof text);
    write_text(model, 1.2f, 5, 3, again, sizeof again);
    cr_assert_str_eq(text, again);
    write_text(model, 1.2f, 6, 256, again, sizeof again);
    cr_assert(strcmp(text, again) != 0);
    cuda_unload_model(model);
    cuda_destroy(ctx);
}

Test(worker_cuda, usage_residency_and_health_are_what_they_are) {
    CudaContext *ctx = open_context();
    int code = -1;
    const uint64_t before = cuda_get_process_vram_usage(ctx);
    CudaModel *model = open_model(ctx);
    const uint64_t own = cuda_model_get_vram_usage(model);
    cr_assert(cuda_get_vram_usage(model) == own);
    InferenceResult *result = cuda_inference_start(model, "The driver", 4, 0, 0, &code);
    cr_assert(result != NULL);
    cr_assert(cuda_get_vram_usage(model) > own);
    if (!test_on_gpu()) {
        cr_assert(cuda_get_process_vram_usage(ctx) - before == cuda_get_vram_usage(model));
    }
    cr_assert(cuda_check_vram_residency(model, &code) && code == WORKER_OK);
    cr_assert(cuda_check_device_health(ctx, &code) && code == WORKER_OK, "%s", tol_message());
    cr_assert(cuda_get_device_temperature(ctx) >= -1);
    cuda_inference_free(result);
    cr_assert(cuda_get_vram_usage(model) == own);
    CudaModelMetadata about;
    cuda_model_get_metadata(model, &about, &code);
    cr_assert(code == WORKER_OK && strcmp(about.architecture, "llama") == 0);
    cr_assert(about.layers == 2 && about.vocabulary == 512 && about.context_length == 2048);
    CudaDeviceProperties device;
    cuda_get_device_properties(0, &device, &code);
    cr_assert(code == WORKER_OK && device.name[0] != '\0' && device.total_memory_bytes > 0);
    cr_assert(cuda_get_device_count() >= 1);
    cuda_unload_model(model);
    if (!test_on_gpu()) cr_assert(cuda_get_process_vram_usage(ctx) == before);
    cuda_destroy(ctx);
}

#define CODE(call, expected)                                                                       \
    do {                                                                                           \
        code = -1;                                                                                 \
        (void)(call);                                                                              \
        cr_assert(code == (expected), "%s: %d", #call, code);                                      \
    } while (0)

Test(worker_cuda, what_makes_no_sense_has_its_code) {
    CudaContext *ctx = open_context();
    CudaModel *model = open_model(ctx);
    int code = -1;
    char small[1];
    CudaDeviceProperties device;
    CudaModelMetadata about;
    static char long_prompt[20000];
    memset(long_prompt, 'z', sizeof long_prompt - 1);
    CODE(cuda_init(99, &code), WORKER_E_INVALID_DEVICE);
    CODE(cuda_init(-1, &code), WORKER_E_INVALID_DEVICE);
    CODE(cuda_load_model(NULL, model_path, NULL, &code), WORKER_E_INVALID_PARAMETER);
    cr_assert(strstr(tol_message(), "cuda_load_model") != NULL, "%s", tol_message());
    CODE(cuda_load_model(ctx, NULL, NULL, &code), WORKER_E_INVALID_PARAMETER);
    CODE(cuda_load_model(ctx, "/no/such", NULL, &code), WORKER_E_MODEL_LOAD_FAILED);
    CODE(cuda_load_model(ctx, test_fixture_path("models/README.md"), NULL, &code),
         WORKER_E_MODEL_LOAD_FAILED);
    CODE(cuda_inference_start(NULL, "a", 1, 0, 0, &code), WORKER_E_INVALID_PARAMETER);
    CODE(cuda_inference_start(model, NULL, 1, 0, 0, &code), WORKER_E_INVALID_PARAMETER);
    CODE(cuda_inference_start(model, "a", 0, 0, 0, &code), WORKER_E_INVALID_PARAMETER);
    CODE(cuda_inference_start(model, "a", 1, 2.5f, 0, &code), WORKER_E_INVALID_PARAMETER);
    CODE(cuda_inference_start(model, "a", 1, -1, 0, &code), WORKER_E_INVALID_PARAMETER);
    CODE(cuda_inference_start(model, long_prompt, 1, 0, 0, &code), WORKER_E_INFERENCE_FAILED);
    CODE(cuda_inference_next_token(NULL, small, 1, NULL, &code), WORKER_E_INVALID_PARAMETER);
    CODE(cuda_check_vram_residency(NULL, &code), WORKER_E_INVALID_PARAMETER);
    CODE(cuda_check_device_health(NULL, &code), WORKER_E_INVALID_PARAMETER);
    CODE((cuda_get_device_properties(99, &device, &code), 0), WORKER_E_INVALID_DEVICE);
    CODE((cuda_get_device_properties(0, NULL, &code), 0), WORKER_E_INVALID_PARAMETER);
    CODE((cuda_model_get_metadata(NULL, &about, &code), 0), WORKER_E_INVALID_PARAMETER);
    cr_assert(cuda_load_model(ctx, "/no/such", NULL, NULL) == NULL);
    cr_assert(cuda_model_get_vram_usage(NULL) == 0 && cuda_get_vram_usage(NULL) == 0);
    cr_assert(cuda_get_process_vram_usage(NULL) == 0 && cuda_get_device_temperature(NULL) == -1);
    cuda_inference_free(NULL);
    cuda_unload_model(NULL);
    cuda_destroy(NULL);
    cuda_unload_model(model);
    cuda_destroy(ctx);
}

Test(worker_cuda, without_a_driver_there_is_no_device) {
    int code = -1;
    setenv("TOLLENS_LIBCUDA", "/no/such/libcuda.so.1", 1);
    cr_assert(cuda_init(0, &code) == NULL && code == WORKER_E_DEVICE_NOT_FOUND);
    cr_assert(cuda_get_device_count() == 0);
}

Test(worker_cuda, every_code_has_its_words) {
    static const int codes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 99, -5};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        for (size_t j = 0; j < i && codes[i] != -5; j++) {
            cr_assert(strcmp(cuda_error_message(codes[i]), cuda_error_message(codes[j])) != 0);
        }
    }
    cr_assert_str_eq(cuda_error_message(99), cuda_error_message(-5));
}

/* A NaN in the model's second layer: the code is that of inference, and the message names it. */
Test(worker_cuda, a_failure_names_the_layer_where_values_stop_being_finite) {
    CudaContext *ctx = open_context();
    char path[] = "/tmp/tollens-worker-XXXXXX", command[4400], piece[64];
    const float temperatures[] = {0, 1};
    struct tol_gguf *file = NULL;
    int code = -1;
    const int descriptor = mkstemp(path);
    snprintf(command, sizeof command, "cat '%s' > %s", model_path, path);
    cr_assert(descriptor >= 0 && system(command) == 0);
    MUST(tol_gguf_open(path, &file));
    const struct tol_gguf_tensor *t = tol_gguf_find_tensor(file, "blk.1.ffn_up.weight");
    cr_assert(t != NULL && pwrite(descriptor, &(float){NAN}, 4, (off_t)t->offset) == 4);
    tol_gguf_close(file);
    close(descriptor);
    CudaModel *model = cuda_load_model(ctx, path, NULL, &code);
    cr_assert(model != NULL && code == WORKER_OK, "%d: %s", code, tol_message());
    for (size_t i = 0; i < 2; i++) {
        InferenceResult *result =
            cuda_inference_start(model, "The driver", 4, temperatures[i], 1, &code);
        cr_assert(result != NULL && code == WORKER_OK, "%d: %s", code, tol_message());
        cr_assert(!cuda_inference_next_token(result, piece, sizeof piece, NULL, &code));
        cr_assert(code == WORKER_E_INFERENCE_FAILED, "%d: %s", code, tol_message());
        cr_assert(strstr(tol_message(), "in layer 1 of 2 (blk.1)") != NULL, "%s", tol_message());
        cuda_inference_free(result);
    }
    cuda_unload_model(model);
    cuda_destroy(ctx);
    unlink(path);
}
