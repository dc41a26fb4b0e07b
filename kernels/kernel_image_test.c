/*
 * Images: which of them runs on a device, and how those that cannot be loaded are refused.
 */
#include "kernel_image.h"

#include "test/test_device.h"

#include <lzma.h>
#include <stdlib.h>
#include <string.h>

TestSuite(kernel_image, .fini = test_end);

KN_IMAGES(vector_add);

#define IMAGE(group, name) KN_IMAGES(name);
#include "sweep/sweep_images.def"
#undef IMAGE

Test(kernel_image, each_fits_its_devices) {
    static const struct kn_image images[] = {{"ptx", 3, 3, 80, 0, 0},
                                             {"80", 2, 2, 80, 1, 0},
                                             {"89", 2, 2, 89, 1, 0},
                                             {"90a", 3, 3, 90, 1, 0},
                                             {NULL, 0, 0, 0, 0, 0}};
    cr_assert(kn_image_pick(images, 75, true) == NULL, "all are for newer devices");
    cr_assert(kn_image_pick(images, 80, true) == &images[1]);
    cr_assert(kn_image_pick(images, 86, true) == &images[1], "a cubin of the same major");
    cr_assert(kn_image_pick(images, 89, true) == &images[2]);
    cr_assert(kn_image_pick(images, 90, true) == &images[3]);
    cr_assert(kn_image_pick(images, 90, false) == &images[0]);
    cr_assert(kn_image_pick(images, 120, true) == &images[0], "only PTX runs on the next");
}

Test(kernel_image, ptx_of_one_device_runs_on_no_other) {
    static const struct kn_image images[] = {
        {"90a", 3, 3, 90, 0, 1}, {"cubin", 5, 5, 90, 1, 1}, {NULL, 0, 0, 0, 0, 0}};
    cr_assert(kn_image_pick(images, 89, true) == NULL);
    cr_assert(kn_image_pick(images, 90, false) == &images[0]);
    cr_assert(kn_image_pick(images, 90, true) == &images[1]);
    cr_assert(kn_image_pick(images, 100, true) == NULL, "what wgmma is, no later device has");
    cr_assert(kn_image_pick(images, 120, false) == NULL);
}

/* Of persistent blocks, which need PTX 8.1; kn_row_no_slices keeps them from older drivers. */
static bool is_newer(const char *name) {
    static const char *const names[] = {"softmax_8_slices", "softmax_9_behind", "norm_9_slices",
                                        "norm_10_behind"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) return true;
    }
    return false;
}

/* A GPU has the driver that it has. */
static void load_all(const char *driver, bool is_old) {
    static const struct {
        const char *name;
        const struct kn_image *images;
    } all[] = {
#define IMAGE(group, name) {#name, kn_images_##name},
#include "sweep/sweep_images.def"
#undef IMAGE
    };
    setenv("TOLLENS_SOFT_DRIVER_VERSION", driver, 1);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct tol_module *module = NULL;
        tol_status status = kn_image_load(test_context(), all[i].images, &module);
        if (status == TOL_UNSUPPORTED) continue; /* for devices newer than this GPU */
        const bool is_refused = is_old && !test_on_gpu() && is_newer(all[i].name);
        cr_assert_eq(status, is_refused ? TOL_INVALID_MODULE : TOL_OK, "%s: %s", all[i].name,
                     tol_message());
        tol_module_destroy(module);
    }
}

/* nvcc writes its own PTX version, which only drivers of its release load; ci/ptx replaces it. */
Test(kernel_image, the_oldest_driver_loads_all_but_blocks_that_stay, .timeout = 300) {
    load_all("12000", true);
}

Test(kernel_image, a_driver_of_cuda_12_1_loads_all, .timeout = 300) {
    load_all("12010", false);
}

Test(kernel_image, those_for_newer_devices_are_not_loaded) {
    static const struct kn_image future[] = {{"ptx", 3, 3, 990, 0, 0}, {NULL, 0, 0, 0, 0, 0}};
    struct tol_module *module = NULL;
    MUST_FAIL(kn_image_load(test_context(), future, &module), TOL_UNSUPPORTED, "other devices");
    cr_assert(module == NULL);
}

Test(kernel_image, where_a_cubin_is_refused_the_ptx_is_loaded) {
    static const uint8_t wrong[] = "\177ELF, and nothing after it";
    const int capability = tol_context_device(test_context())->compute_capability;
    uint8_t packed[1024];
    size_t packed_bytes = 0;
    cr_assert(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, wrong, sizeof wrong, packed,
                                      &packed_bytes, sizeof packed) == LZMA_OK);
    const struct kn_image images[] = {{packed, packed_bytes, sizeof wrong, capability, 1, 0},
                                      kn_images_vector_add[0],
                                      {NULL, 0, 0, 0, 0, 0}};
    struct tol_module *module = NULL;
    struct tol_kernel *kernel = NULL;
    cr_assert(images[1].is_cubin == 0 && kn_image_pick(images, capability, true) == &images[0]);
    MUST(kn_image_load(test_context(), images, &module));
    MUST(tol_module_kernel(module, "vector_add", &kernel));
    tol_module_destroy(module);
    const struct kn_image alone[] = {images[0], images[2]};
    MUST_FAIL(kn_image_load(test_context(), alone, &module), TOL_INVALID_MODULE, "");
}

Test(kernel_image, a_damaged_one_is_refused) {
    const struct kn_image *good = &kn_images_vector_add[0];
    struct kn_image images[] = {*good, {NULL, 0, 0, 0, 0, 0}};
    struct tol_module *module = NULL;
    uint8_t *packed = malloc(good->packed_bytes);
    cr_assert(packed != NULL);
    images[0].packed = packed;
    for (size_t at = 0; at < good->packed_bytes; at += 8) {
        memcpy(packed, good->packed, good->packed_bytes);
        packed[at] ^= 0x10;
        MUST_FAIL(kn_image_load(test_context(), images, &module), TOL_INVALID_MODULE, "damaged");
    }
    memcpy(packed, good->packed, good->packed_bytes);
    images[0].packed_bytes = good->packed_bytes / 2;
    MUST_FAIL(kn_image_load(test_context(), images, &module), TOL_INVALID_MODULE, "damaged");
    images[0] = *good;
    images[0].bytes = good->bytes + 1;
    MUST_FAIL(kn_image_load(test_context(), images, &module), TOL_INVALID_MODULE, "damaged");
    images[0].bytes = good->bytes - 1;
    MUST_FAIL(kn_image_load(test_context(), images, &module), TOL_INVALID_MODULE, "damaged");
    cr_assert(module == NULL);
    free(packed);
}
