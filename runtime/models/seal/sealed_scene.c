/*
 * The scene: calls of its context pass through the search for plaintext, and reads are rejected on
 * request.
 */
#include "sealed_scene.h"

#include "inputs.h"
#include "plain_search.h"
#include "quantised/formats/quant_draw.h"
#include "test/test_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sealed_scene scene;
const struct tol_seal_options scene_usual = {.shape = {SCENE_ROWS, SCENE_ROW_BYTES},
                                             .label = "blk.0"};

static void before(struct tol_interpose_call *call, void *user) {
    plain_search_before(call, user);
    if (!scene.refuses_reads || call->index != TOL_DRIVER_INDEX_cuMemcpyDtoH_v2) return;
    call->forward = false;
    call->result = CUDA_ERROR_NOT_PERMITTED;
}

/* A context whose calls go through the search. */
void scene_begin(void) {
    const struct tol_interpose_options hooks = {.before = before, .after = plain_search_after};
    uint64_t random = 7;
    if (tol_seal_key_draw(&scene.key) == TOL_UNSUPPORTED)
        cr_skip_test("there is no libcrypto.so.3");
    struct tol_driver *driver = test_driver();
    MUST(tol_interpose_install(driver, &hooks));
    MUST(tol_context_create(driver, 0, &scene.context));
    MUST(tol_sealer_create(scene.context, scene.key, &scene.sealer));
    scene.plain = malloc(SCENE_PLAIN_BYTES);
    cr_assert(scene.plain != NULL);
    kn_quant_draw(KN_Q4_K, KN_BLOCKS_USUAL, &random, SCENE_ROWS * SCENE_BLOCKS, scene.plain);
    plain_search_begin(scene.plain, SCENE_PLAIN_BYTES);
}

void scene_end(void) {
    tol_sealed_destroy(scene.sealed);
    tol_sealer_destroy(scene.sealer);
    tol_seal_key_destroy(scene.key);
    tol_context_destroy(scene.context);
    plain_search_end();
    free(scene.plain);
    test_end();
}

void scene_begin_sealed(void) {
    scene_begin();
    MUST(tol_seal_host(scene.sealer, &scene_usual, scene.plain, &scene.sealed));
}

void scene_search(const char *when) {
    size_t pieces = 1, bytes = 0;
    cr_assert(plain_search_device(&pieces, &bytes));
    const size_t least = scene.sealed != NULL ? SCENE_BYTES : 1;
    cr_assert_geq(bytes, least, "%s only %zu bytes were searched", when, bytes);
    cr_assert_eq(pieces, 0, "%s %zu plain pieces are in %zu bytes of device memory", when, pieces,
                 bytes);
    cr_assert_eq(plain_search_copied(), 0, "%s %zu plain pieces were copied to the device", when,
                 plain_search_copied());
}

void scene_read_plain(void) {
    char *read = malloc(SCENE_PLAIN_BYTES);
    cr_assert(read != NULL);
    MUST(tol_seal_read(scene.sealed, read, SCENE_PLAIN_BYTES));
    cr_assert_arr_eq(read, scene.plain, SCENE_PLAIN_BYTES);
    free(read);
}

/* The sealed bytes, to look at and to change. */
void scene_peek(size_t offset, void *bytes, size_t count) {
    struct tol_transfer *transfer = NULL;
    MUST(tol_transfer_create(scene.context, NULL, &transfer));
    MUST(tol_transfer_read(transfer, tol_sealed_place(scene.sealed), offset, bytes, count));
    tol_transfer_destroy(transfer);
}

void scene_poke(size_t offset, const void *bytes, size_t count) {
    struct tol_transfer *transfer = NULL;
    MUST(tol_transfer_create(scene.context, NULL, &transfer));
    MUST(tol_transfer_write(transfer, tol_sealed_place(scene.sealed), offset, bytes, count));
    tol_transfer_destroy(transfer);
}

/* ---- products ---- */

void scene_product_begin(struct scene_product *p) {
    uint64_t random = 11;
    kn_inputs_draw(KN_NORMAL, &random, 1, p->in, SCENE_K);
    MUST(tol_stream_create(scene.context, NULL, &p->stream));
    MUST(tol_buffer_create(scene.context, SCENE_K, sizeof(float), &p->x));
    MUST(tol_buffer_create(scene.context, SCENE_ROWS, sizeof(float), &p->y));
    MUST(tol_buffer_write(p->x, p->in, sizeof p->in));
}

void scene_product_run(struct scene_product *p) {
    MUST(tol_seal_product(scene.sealed, p->stream, tol_place_of_buffer(p->x),
                          tol_place_of_buffer(p->y)));
    MUST(tol_stream_synchronize(p->stream));
    MUST(tol_buffer_read(p->y, p->out, sizeof p->out));
}

void scene_product_end(struct scene_product *p) {
    tol_buffer_destroy(p->x);
    tol_buffer_destroy(p->y);
    tol_stream_destroy(p->stream);
}

/* Within what rounding x to bytes may do: seal_product_test.c has the exact bound. */
void scene_product_check(const struct scene_product *p) {
    double w[SCENE_K];
    for (size_t i = 0; i < SCENE_ROWS; i++) {
        double sum = 0, allowed = 0;
        kn_quant_values_exact(KN_Q4_K, scene.plain + i * SCENE_ROW_BYTES, SCENE_BLOCKS, w);
        for (size_t l = 0; l < SCENE_K; l++) {
            sum += w[l] * (double)p->in[l];
            allowed += fabs(w[l]) * 0.02;
        }
        cr_assert(fabs((double)p->out[i] - sum) <= allowed, "row %zu: %g, not %g within %g", i,
                  (double)p->out[i], sum, allowed);
    }
}
