/*
 * Sealed weights on a device: device memory has no plaintext, every change is refused with its
 * chunk, and rotation leaves nothing of the old bytes.
 */
#include "sealed_scene.h"

#include "plain_search.h"
#include "test/test_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(sealed, .fini = scene_end, .timeout = 300);

/* ---- what the refinement demands ---- */

Test(sealed, weights_stand_nowhere_in_the_clear) {
    struct scene_product p;
    void *packed = NULL;
    size_t packed_bytes = 0;
    scene_begin_sealed();
    scene_search("after sealing");
    scene_product_begin(&p);
    scene_product_run(&p);
    scene_product_check(&p);
    scene_search("after a product");
    MUST(tol_seal_verify(scene.sealed));
    MUST(tol_seal_rotate(scene.sealed));
    scene_search("after a rotation");
    scene_read_plain();
    scene_search("after reading");
    tol_sealed_destroy(scene.sealed);
    scene.sealed = NULL;
    scene_search("after the end");
    MUST(
        tol_seal_pack(scene.key, scene_usual.shape, "packed", scene.plain, &packed, &packed_bytes));
    MUST(tol_seal_packed(scene.sealer, NULL, packed, packed_bytes, &scene.sealed));
    scene_search("after unpacking");
    scene_product_end(&p);
    free(packed);
}

/* The search finds plaintext that is on the device on request. */
Test(sealed, plain_bytes_on_the_device_would_be_found) {
    struct tol_buffer *buffer = NULL;
    size_t pieces = 0, bytes = 0;
    scene_begin_sealed();
    MUST(tol_buffer_create(scene.context, SCENE_BYTES, 1, &buffer));
    MUST(tol_seal_open(scene.sealed, tol_place_of_buffer(buffer)));
    cr_assert(plain_search_device(&pieces, &bytes));
    cr_assert_eq(pieces, SCENE_PLAIN_BYTES / 16);
    cr_assert_eq(plain_search_copied(), 0);
    MUST(tol_buffer_write_at(buffer, 0, scene.plain, 160));
    cr_assert_eq(plain_search_copied(), 10);
    tol_buffer_destroy(buffer);
}

/* ---- changes ---- */

Test(sealed, a_changed_bit_is_refused_with_its_chunk_until_it_is_back) {
    char byte, text[64];
    struct scene_product p;
    scene_begin_sealed();
    scene_product_begin(&p);
    for (size_t at = 3; at < SCENE_BYTES; at += 4999) {
        if (!test_takes_trial()) continue;
        scene_peek(at, &byte, 1);
        byte = (char)(byte ^ 1 << at % 8);
        scene_poke(at, &byte, 1);
        snprintf(text, sizeof text,
                 "\"blk.0\" was changed: chunk %zu of 3, from byte %zu on, and 1", at / SCENE_CHUNK,
                 at / SCENE_CHUNK * SCENE_CHUNK);
        MUST_FAIL(tol_seal_verify(scene.sealed), TOL_MISMATCH, text);
        MUST_FAIL(tol_seal_product(scene.sealed, p.stream, tol_place_of_buffer(p.x),
                                   tol_place_of_buffer(p.y)),
                  TOL_MISMATCH, "is not used");
        char none[1];
        MUST_FAIL(tol_seal_read(scene.sealed, none, 1), TOL_SIZE_MISMATCH, "for them");
        byte = (char)(byte ^ 1 << at % 8);
        scene_poke(at, &byte, 1);
        MUST(tol_seal_verify(scene.sealed));
    }
    scene_product_run(&p);
    scene_product_check(&p);
    scene_product_end(&p);
}

Test(sealed, chunks_of_elsewhere_and_of_before_are_refused) {
    struct tol_sealed *other = NULL;
    char *a = malloc(SCENE_CHUNK), *b = malloc(SCENE_CHUNK);
    scene_begin_sealed();
    cr_assert(a != NULL && b != NULL);
    scene_peek(0, a, SCENE_CHUNK);
    scene_peek(SCENE_CHUNK, b, SCENE_CHUNK);
    scene_poke(0, b, SCENE_CHUNK);
    scene_poke(SCENE_CHUNK, a, SCENE_CHUNK);
    MUST_FAIL(tol_seal_verify(scene.sealed), TOL_MISMATCH,
              "chunk 0 of 3, from byte 0 on, and 2 chunks");
    scene_poke(0, a, SCENE_CHUNK);
    scene_poke(SCENE_CHUNK, b, SCENE_CHUNK);
    MUST(tol_seal_verify(scene.sealed));
    /* The same chunk of the same plain bytes, sealed another time. */
    MUST(tol_seal_host(scene.sealer, &scene_usual, scene.plain, &other));
    struct tol_sealed *mine = scene.sealed;
    scene.sealed = other;
    scene_peek(SCENE_CHUNK, b, SCENE_CHUNK);
    scene.sealed = mine;
    tol_sealed_destroy(other);
    scene_peek(SCENE_CHUNK, a, SCENE_CHUNK);
    scene_poke(SCENE_CHUNK, b, SCENE_CHUNK);
    MUST_FAIL(tol_seal_verify(scene.sealed), TOL_MISMATCH, "chunk 1 of 3");
    scene_poke(SCENE_CHUNK, a, SCENE_CHUNK);
    /* The same chunk in an earlier generation. */
    MUST(tol_seal_rotate(scene.sealed));
    scene_poke(SCENE_CHUNK, a, SCENE_CHUNK);
    MUST_FAIL(tol_seal_verify(scene.sealed), TOL_MISMATCH, "chunk 1 of 3");
    free(a), free(b);
}

/* Products that verify first notice what no call has verified. */
Test(sealed, a_product_can_verify_each_time) {
    struct scene_product p;
    struct tol_seal_options options = scene_usual;
    char byte;
    scene_begin();
    options.verify_each_use = true;
    MUST(tol_seal_host(scene.sealer, &options, scene.plain, &scene.sealed));
    scene_product_begin(&p);
    scene_product_run(&p);
    scene_product_check(&p);
    scene_peek(20000, &byte, 1);
    byte ^= 4;
    scene_poke(20000, &byte, 1);
    MUST_FAIL(tol_seal_product(scene.sealed, p.stream, tol_place_of_buffer(p.x),
                               tol_place_of_buffer(p.y)),
              TOL_MISMATCH, "chunk 1 of 3");
    scene_product_end(&p);
}

Test(sealed, what_was_changed_is_not_given_out) {
    struct tol_buffer *buffer = NULL;
    char *read = malloc(SCENE_PLAIN_BYTES), byte;
    size_t pieces = 1, bytes = 0;
    scene_begin_sealed();
    cr_assert(read != NULL);
    MUST(tol_buffer_create(scene.context, SCENE_BYTES, 1, &buffer));
    scene_peek(1, &byte, 1);
    byte ^= 1;
    scene_poke(1, &byte, 1);
    MUST_FAIL(tol_seal_read(scene.sealed, read, SCENE_PLAIN_BYTES), TOL_MISMATCH, "chunk 0 of 3");
    for (size_t i = 0; i < SCENE_PLAIN_BYTES; i++) cr_assert_eq(read[i], 0);
    MUST_FAIL(tol_seal_verify(scene.sealed), TOL_MISMATCH, "chunk 0");
    byte ^= 1;
    scene_poke(1, &byte, 1);
    MUST(tol_seal_verify(scene.sealed));
    byte ^= 1;
    scene_poke(1, &byte, 1);
    MUST_FAIL(tol_seal_open(scene.sealed, tol_place_of_buffer(buffer)), TOL_MISMATCH,
              "chunk 0 of 3");
    cr_assert(plain_search_device(&pieces, &bytes));
    cr_assert_eq(pieces, 0);
    tol_buffer_destroy(buffer);
    free(read);
}

/* ---- rotation ---- */

Test(sealed, rotation_leaves_nothing_of_the_old_bytes) {
    char *before = malloc(SCENE_BYTES), *after = malloc(SCENE_BYTES);
    scene_begin_sealed();
    cr_assert(before != NULL && after != NULL);
    for (uint32_t generation = 1; generation <= 3; generation++) {
        scene_peek(0, before, SCENE_BYTES);
        MUST(tol_seal_rotate(scene.sealed));
        cr_assert_eq(tol_sealed_generation(scene.sealed), generation);
        scene_peek(0, after, SCENE_BYTES);
        size_t same = 0;
        for (size_t i = 0; i < SCENE_BYTES; i += 8) same += memcmp(before + i, after + i, 8) == 0;
        cr_assert_eq(same, 0, "%zu words are as before", same);
        MUST(tol_seal_verify(scene.sealed));
        scene_read_plain();
    }
    free(before), free(after);
}

/* A change is found by the rotation itself, and not blessed by its new tags. */
Test(sealed, rotation_does_not_bless_a_change) {
    char byte;
    scene_begin_sealed();
    scene_peek(33000, &byte, 1);
    byte ^= 2;
    scene_poke(33000, &byte, 1);
    MUST_FAIL(tol_seal_rotate(scene.sealed), TOL_MISMATCH, "chunk 2 of 3");
    MUST_FAIL(tol_seal_verify(scene.sealed), TOL_MISMATCH, "was changed");
    MUST_FAIL(tol_seal_rotate(scene.sealed), TOL_MISMATCH, "was changed");
    struct scene_product p;
    scene_product_begin(&p);
    MUST_FAIL(tol_seal_product(scene.sealed, p.stream, tol_place_of_buffer(p.x),
                               tol_place_of_buffer(p.y)),
              TOL_MISMATCH, "is not used");
    scene_product_end(&p);
}

/* The bytes have another key already, and their tags are unknown: they are lost, and no product is
 * made of them with the old key. */
Test(sealed, a_rotation_that_fails_leaves_nothing_to_be_used) {
    struct scene_product p;
    scene_begin_sealed();
    scene_product_begin(&p);
    scene_product_run(&p);
    scene.refuses_reads = true;
    cr_assert_neq(tol_seal_rotate(scene.sealed), TOL_OK);
    scene.refuses_reads = false;
    MUST_FAIL(tol_seal_product(scene.sealed, p.stream, tol_place_of_buffer(p.x),
                               tol_place_of_buffer(p.y)),
              TOL_MISMATCH, "is not used");
    MUST_FAIL(tol_seal_verify(scene.sealed), TOL_MISMATCH, "was changed");
    scene_product_end(&p);
}
