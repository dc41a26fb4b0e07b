/*
 * The ways in which bytes are sealed: with the same products, by several threads, with no key
 * stream twice; and refusals.
 */
#include "sealed_scene.h"

#include "inputs.h"
#include "plain_search.h"
#include "test/test_device.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(sealed_ways, .fini = scene_end, .timeout = 300);

/* However bytes were sealed, with whatever rounds and keys, a product has the same bits. */
Test(sealed_ways, products_have_the_same_bits_however_bytes_were_sealed) {
    static const unsigned rounds[] = {0, 12, 8};
    struct scene_product p;
    float first[SCENE_ROWS];
    void *packed = NULL;
    size_t packed_bytes = 0;
    scene_begin();
    scene_product_begin(&p);
    MUST(
        tol_seal_pack(scene.key, scene_usual.shape, "packed", scene.plain, &packed, &packed_bytes));
    for (int i = 0; i < 6; i++) {
        struct tol_seal_options options = scene_usual;
        options.rounds = rounds[i / 2];
        if (i % 2 == 0) {
            MUST(tol_seal_host(scene.sealer, &options, scene.plain, &scene.sealed));
        } else {
            MUST(tol_seal_packed(scene.sealer, &options, packed, packed_bytes, &scene.sealed));
            MUST(tol_seal_rotate(scene.sealed));
        }
        scene_product_run(&p);
        if (i == 0) memcpy(first, p.out, sizeof first);
        cr_assert_arr_eq(p.out, first, sizeof first, "way %d", i);
        scene_read_plain();
        tol_sealed_destroy(scene.sealed);
        scene.sealed = NULL;
    }
    scene_search("after all ways");
    scene_product_end(&p);
    free(packed);
}

/* What was computed on the device is sealed there, and its place is zeros. */
Test(sealed_ways, plain_bytes_on_the_device_are_sealed_and_wiped) {
    enum { BYTES = 5 * SCENE_CHUNK + 640 };
    struct tol_seal_options options = {.shape = {BYTES / 64, 64}, .label = "computed"};
    struct tol_buffer *buffer = NULL;
    char *bytes = malloc(BYTES), *read = malloc(BYTES);
    uint64_t random = 13;
    scene_begin();
    cr_assert(bytes != NULL && read != NULL);
    for (size_t i = 0; i < BYTES; i++) bytes[i] = (char)kn_random(&random);
    MUST(tol_buffer_create(scene.context, BYTES, 1, &buffer));
    MUST(tol_buffer_write(buffer, bytes, BYTES));
    plain_search_begin(bytes, BYTES);
    MUST(tol_seal_device(scene.sealer, &options, tol_place_of_buffer(buffer), &scene.sealed));
    size_t pieces = 1, searched = 0;
    cr_assert(plain_search_device(&pieces, &searched));
    cr_assert_eq(pieces, 0);
    MUST(tol_buffer_read(buffer, read, BYTES));
    for (size_t i = 0; i < BYTES; i++) cr_assert_eq(read[i], 0, "byte %zu is not wiped", i);
    MUST(tol_seal_read(scene.sealed, read, BYTES));
    cr_assert_arr_eq(read, bytes, BYTES);
    options.shape = (struct tol_seal_shape){1, 100};
    struct tol_sealed *none = NULL;
    MUST_FAIL(tol_seal_device(scene.sealer, &options, tol_place_of_buffer(buffer), &none),
              TOL_UNSUPPORTED, "not a multiple of 64");
    options.shape = (struct tol_seal_shape){1, BYTES + 64};
    MUST_FAIL(tol_seal_device(scene.sealer, &options, tol_place_of_buffer(buffer), &none),
              TOL_OUT_OF_RANGE, "in needs");
    tol_buffer_destroy(buffer);
    free(bytes), free(read);
}

/* ---- threads ---- */

enum { THREADS = 4, TURNS = 12 };

struct turner {
    int number;
    float out[SCENE_ROWS];
    char failed[256];
};

/* Products, verifications and rotations of one object in turn, on a stream of the thread's own. */
static void *take_turns(void *user) {
    struct turner *t = user;
    struct tol_stream *stream = NULL;
    struct tol_buffer *x = NULL, *y = NULL;
    float in[SCENE_K];
    for (size_t i = 0; i < SCENE_K; i++) in[i] = (float)(i % 7) - 3;
    tol_status status = tol_stream_create(scene.context, NULL, &stream);
    if (status == TOL_OK) status = tol_buffer_create(scene.context, SCENE_K, sizeof(float), &x);
    if (status == TOL_OK) status = tol_buffer_create(scene.context, SCENE_ROWS, sizeof(float), &y);
    if (status == TOL_OK) status = tol_buffer_write(x, in, sizeof in);
    for (int i = 0; i < TURNS && status == TOL_OK; i++) {
        if ((i + t->number) % 3 == 0) {
            status = tol_seal_rotate(scene.sealed);
        } else if ((i + t->number) % 3 == 1) {
            status = tol_seal_verify(scene.sealed);
        }
        if (status == TOL_OK) {
            status = tol_seal_product(scene.sealed, stream, tol_place_of_buffer(x),
                                      tol_place_of_buffer(y));
        }
        if (status == TOL_OK) status = tol_stream_synchronize_for(stream, 60000);
    }
    if (status == TOL_OK) status = tol_buffer_read(y, t->out, sizeof t->out);
    if (status != TOL_OK) snprintf(t->failed, sizeof t->failed, "%s", tol_message());
    tol_buffer_destroy(x);
    tol_buffer_destroy(y);
    tol_stream_destroy(stream);
    return NULL;
}

Test(sealed_ways, threads_take_turns) {
    static struct turner turners[THREADS];
    pthread_t threads[THREADS];
    scene_begin_sealed();
    for (int i = 0; i < THREADS; i++) {
        turners[i].number = i;
        cr_assert_eq(pthread_create(&threads[i], NULL, take_turns, &turners[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        cr_assert(turners[i].failed[0] == '\0', "thread %d: %s", i, turners[i].failed);
        cr_assert_arr_eq(turners[i].out, turners[0].out, sizeof turners[i].out, "thread %d", i);
    }
    MUST(tol_seal_verify(scene.sealed));
    scene_read_plain();
}

/* A key stream that is used twice shows what two texts differ by. No unit of any sealing is made
 * with a key stream of another. */
Test(sealed_ways, no_key_stream_is_used_twice) {
    enum { TIMES = 4, UNITS = 8 };
    uint64_t streams[TIMES * UNITS];
    const struct tol_seal_options options = {.shape = {1, 64 * UNITS}};
    const char zeros[64 * UNITS] = {0};
    scene_begin();
    for (size_t i = 0; i < TIMES; i++) {
        char units[64 * UNITS];
        if (i % 2 == 0) {
            tol_sealed_destroy(scene.sealed);
            MUST(tol_seal_host(scene.sealer, &options, zeros, &scene.sealed));
        } else {
            MUST(tol_seal_rotate(scene.sealed));
        }
        scene_peek(0, units, sizeof units); /* of zeros: the key stream */
        for (size_t u = 0; u < UNITS; u++) memcpy(&streams[i * UNITS + u], units + 64 * u, 8);
    }
    for (size_t i = 0; i < TIMES * UNITS; i++) {
        for (size_t j = 0; j < i; j++) cr_assert_neq(streams[i], streams[j], "%zu and %zu", i, j);
    }
}

Test(sealed_ways, what_makes_no_sense_is_refused) {
    struct tol_sealed *none = NULL;
    struct tol_seal_options options = scene_usual;
    void *packed = NULL;
    size_t packed_bytes = 0;
    scene_begin_sealed();
    MUST_FAIL(tol_sealer_create(scene.context, NULL, &scene.sealer), TOL_INVALID_ARGUMENT,
              "is NULL");
    MUST_FAIL(tol_seal_host(scene.sealer, &options, NULL, &none), TOL_INVALID_ARGUMENT, "is NULL");
    options.rounds = 7;
    MUST_FAIL(tol_seal_host(scene.sealer, &options, scene.plain, &none), TOL_INVALID_ARGUMENT,
              "7 rounds");
    options = scene_usual;
    options.shape.rows = 0;
    MUST_FAIL(tol_seal_host(scene.sealer, &options, scene.plain, &none), TOL_OUT_OF_RANGE,
              "0 rows");
    MUST(tol_seal_pack(scene.key, scene_usual.shape, "q", scene.plain, &packed, &packed_bytes));
    ((char *)packed)[packed_bytes - 1] ^= 1;
    MUST_FAIL(tol_seal_packed(scene.sealer, NULL, packed, packed_bytes, &none), TOL_MISMATCH,
              "chunk 2 of");
    free(packed);
    MUST_FAIL(tol_seal_open(scene.sealed,
                            (struct tol_place){tol_sealed_place(scene.sealed).address, 100}),
              TOL_OUT_OF_RANGE, "out needs");
    MUST_FAIL(tol_seal_open(scene.sealed, (struct tol_place){0, 0}), TOL_INVALID_ARGUMENT,
              "is NULL");
    options = (struct tol_seal_options){.shape = {1, 100}};
    MUST(tol_seal_host(scene.sealer, &options, scene.plain, &none));
    struct tol_stream *stream = NULL;
    MUST(tol_stream_create(scene.context, NULL, &stream));
    MUST_FAIL(tol_seal_product(none, stream, (struct tol_place){0, 0}, (struct tol_place){0, 0}),
              TOL_UNSUPPORTED, "not whole blocks");
    tol_stream_destroy(stream);
    tol_sealed_destroy(none);
    tol_sealed_destroy(NULL);
    MUST_FAIL(tol_seal_verify(NULL), TOL_INVALID_ARGUMENT, "is NULL");
    MUST_FAIL(tol_seal_rotate(NULL), TOL_INVALID_ARGUMENT, "is NULL");
}
