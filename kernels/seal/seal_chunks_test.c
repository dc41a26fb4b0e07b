/*
 * Passes over sealed memory: equal to the host's ChaCha and tags at every shape of the last chunk,
 * nothing outside is touched, and each changed bit changes the tag of its chunk alone.
 */
#include "seal/seal_chunks.h"

#include "guarded.h"
#include "inputs.h"
#include "kernel_scene.h"
#include "seal/chacha.h"
#include "seal/tagger.h"
#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>

static struct seal_stream keys[2];
static struct seal_tagger taggers[2];
static uint64_t seed = 5;

static void begin(void) {
    uint8_t key[32], nonce[12], point[16];
    kernel_scene_begin();
    for (int i = 0; i < 2; i++) {
        for (size_t j = 0; j < 32; j++) key[j] = (uint8_t)kn_random(&seed);
        for (size_t j = 0; j < 12; j++) nonce[j] = (uint8_t)kn_random(&seed);
        for (size_t j = 0; j < 16; j++) point[j] = (uint8_t)kn_random(&seed);
        kn_chacha_begin(key, nonce, &keys[i]);
        kn_tagger_begin(point, key, &taggers[i]);
    }
}

TestSuite(seal_chunks, .fini = kernel_scene_end, .timeout = 300);

static uint8_t *room(size_t bytes) {
    uint8_t *p = malloc(bytes + 1);
    cr_assert(p != NULL);
    return p;
}

static uint8_t *drawn(size_t bytes) {
    uint8_t *p = room(bytes);
    for (size_t i = 0; i < bytes; i++) p[i] = (uint8_t)(kn_random(&seed) >> 24);
    return p;
}

/* The place of a guarded buffer. */
static struct kn_place place_of(const struct kn_guarded *g) {
    return (struct kn_place){tol_buffer_address(g->buffer) + g->offset, g->bytes};
}

/* A run on drawn bytes and what the host makes of them. */
static void must_run(enum kn_seal_how how, unsigned rounds, size_t bytes, uint64_t first,
                     uint32_t level, bool in_place) {
    struct kn_guarded places[4]; /* in, out, tags before, tags after */
    const size_t tags = kn_seal_tag_bytes(bytes);
    const size_t sizes[4] = {bytes, bytes, tags, tags};
    uint8_t *data = drawn(bytes), *wanted = room(bytes), *made = room(bytes);
    uint8_t *tag = room(tags), *made_tag = room(tags);
    for (int i = 0; i < 4; i++) MUST(kn_guarded_create(test_context(), sizes[i], 16, &places[i]));
    MUST(kn_guarded_write(&places[0], data));
    const int out = in_place ? 0 : 1;
    const struct kn_seal_chunks problem = {.how = how,
                                           .rounds = rounds,
                                           .bytes = bytes,
                                           .first_chunk = first,
                                           .level = level,
                                           .in = place_of(&places[0]),
                                           .out = place_of(&places[out]),
                                           .tags_before = place_of(&places[2]),
                                           .tags_after = place_of(&places[3]),
                                           .from = &keys[0],
                                           .to = &keys[1],
                                           .before = &taggers[0],
                                           .after = &taggers[1]};
    MUST(kn_seal_chunks(kernels, stream, &problem));
    MUST(tol_stream_synchronize_for(stream, KN_PATIENCE_MS));
    memcpy(wanted, data, bytes);
    const uint32_t counter = (uint32_t)(first * SEAL_CHUNK_UNITS);
    if (how == KN_SEAL_OPEN || how == KN_SEAL_TURN) {
        kn_chacha_add(&keys[0], rounds, counter, wanted, wanted, bytes);
    }
    if (how == KN_SEAL_CLOSE || how == KN_SEAL_TURN) {
        kn_chacha_add(&keys[1], rounds, counter, wanted, wanted, bytes);
        kn_tagger_tags(&taggers[1], first, level, wanted, bytes, tag);
        MUST(kn_guarded_read(&places[3], made_tag));
        cr_assert_arr_eq(made_tag, tag, tags, "way %d, %zu bytes: tags after", (int)how, bytes);
    }
    if (how != KN_SEAL_CLOSE) {
        kn_tagger_tags(&taggers[0], first, level, data, bytes, tag);
        MUST(kn_guarded_read(&places[2], made_tag));
        cr_assert_arr_eq(made_tag, tag, tags, "way %d, %zu bytes: tags before", (int)how, bytes);
    }
    MUST(kn_guarded_read(&places[how == KN_SEAL_TAGS ? 0 : out], made));
    cr_assert_arr_eq(made, wanted, bytes, "way %d, %u rounds, %zu bytes", (int)how, rounds, bytes);
    for (int i = 0; i < 4; i++) {
        size_t changed = 0;
        MUST(kn_guarded_check(&places[i], &changed));
        cr_assert_eq(changed, 0, "way %d, %zu bytes: %zu bytes outside of place %d", (int)how,
                     bytes, changed, i);
        kn_guarded_destroy(&places[i]);
    }
    free(data), free(wanted), free(made), free(tag), free(made_tag);
}

/* Units of the last chunk around a warp's 32 and a chunk's 256, and several blocks of chunks. */
static const size_t units[] = {1, 2, 31, 32, 33, 64, 95, 255, 256, 257, 511, 256 * 8, 256 * 17 + 5};
enum { UNITS = sizeof units / sizeof units[0] };

Test(seal_chunks, tags_are_the_hosts) {
    begin();
    for (size_t i = 0; i < UNITS; i++) {
        if (!test_takes_trial()) continue;
        must_run(KN_SEAL_TAGS, 0, 64 * units[i], i % 3 * 1000, i % 2, false);
    }
}

static void must_run_all(enum kn_seal_how how) {
    static const unsigned rounds[] = {20, 12, 8};
    begin();
    for (size_t i = 0; i < UNITS; i++) {
        for (int r = 0; r < 3; r++) {
            if (r != (int)i % 3 && i > 3) continue;
            if (!test_takes_trial()) continue;
            must_run(how, rounds[r], 64 * units[i], i % 4, 0, i % 2);
        }
    }
}

Test(seal_chunks, what_is_encrypted_is_the_hosts) {
    must_run_all(KN_SEAL_CLOSE);
}
Test(seal_chunks, what_is_decrypted_is_the_hosts) {
    must_run_all(KN_SEAL_OPEN);
}
Test(seal_chunks, what_gets_another_key_is_the_hosts) {
    must_run_all(KN_SEAL_TURN);
}

/* The last chunk of 256 GiB, where the counter is at its end. */
Test(seal_chunks, the_counter_reaches_its_end_and_not_beyond) {
    const uint64_t last = ((uint64_t)1 << 32) / SEAL_CHUNK_UNITS - 1;
    begin();
    must_run(KN_SEAL_TURN, 20, SEAL_CHUNK_BYTES, last, 0, true);
    struct tol_buffer *buffer = NULL;
    MUST(tol_buffer_create(test_context(), 4 * SEAL_CHUNK_BYTES, 1, &buffer));
    struct kn_seal_chunks problem = {.how = KN_SEAL_TAGS,
                                     .bytes = SEAL_CHUNK_BYTES + 64,
                                     .first_chunk = last,
                                     .in = kn_place_of(buffer, 0),
                                     .tags_before = kn_place_of(buffer, 3 * SEAL_CHUNK_BYTES),
                                     .before = &taggers[0]};
    MUST_FAIL(kn_seal_chunks(kernels, stream, &problem), TOL_OUT_OF_RANGE, "32 bits");
    tol_buffer_destroy(buffer);
}

/* A bit that changes, at any place, changes its chunk's tag and no other. */
Test(seal_chunks, each_changed_bit_is_in_the_tag_of_its_chunk) {
    enum { BYTES = 2 * SEAL_CHUNK_BYTES + 128, TAGS = 3 };
    begin();
    uint8_t *data = drawn(BYTES), tags[TAGS][16], others[TAGS][16];
    struct tol_buffer *buffer = NULL, *out = NULL;
    MUST(tol_buffer_create(test_context(), BYTES, 1, &buffer));
    MUST(tol_buffer_create(test_context(), sizeof tags, 1, &out));
    const struct kn_seal_chunks problem = {.how = KN_SEAL_TAGS,
                                           .bytes = BYTES,
                                           .in = kn_place_of(buffer, 0),
                                           .tags_before = kn_place_of(out, 0),
                                           .before = &taggers[0]};
    MUST(tol_buffer_write(buffer, data, BYTES));
    MUST(kn_seal_chunks(kernels, stream, &problem));
    MUST(tol_stream_synchronize_for(stream, KN_PATIENCE_MS));
    MUST(tol_buffer_read(out, tags, sizeof tags));
    for (size_t byte = 0; byte < BYTES; byte += 257) {
        if (!test_takes_trial()) continue;
        const uint8_t changed = (uint8_t)(data[byte] ^ (1 << byte % 8));
        MUST(tol_buffer_write_at(buffer, byte, &changed, 1));
        MUST(kn_seal_chunks(kernels, stream, &problem));
        MUST(tol_stream_synchronize_for(stream, KN_PATIENCE_MS));
        MUST(tol_buffer_read(out, others, sizeof others));
        MUST(tol_buffer_write_at(buffer, byte, &data[byte], 1));
        for (size_t i = 0; i < TAGS; i++) {
            const bool is_same = memcmp(tags[i], others[i], 16) == 0;
            cr_assert_eq(is_same, i != byte / SEAL_CHUNK_BYTES, "byte %zu, tag %zu", byte, i);
        }
    }
    tol_buffer_destroy(out);
    tol_buffer_destroy(buffer);
    free(data);
}

Test(seal_chunks, what_makes_no_sense_is_refused) {
    begin();
    struct tol_buffer *buffer = NULL;
    MUST(tol_buffer_create(test_context(), 8192, 1, &buffer));
    const struct kn_seal_chunks good = {.how = KN_SEAL_TURN,
                                        .rounds = 20,
                                        .bytes = 1024,
                                        .in = kn_place_of(buffer, 0),
                                        .out = kn_place_of(buffer, 0),
                                        .tags_before = kn_place_of(buffer, 4096),
                                        .tags_after = kn_place_of(buffer, 4112),
                                        .from = &keys[0],
                                        .to = &keys[1],
                                        .before = &taggers[0],
                                        .after = &taggers[1]};
    MUST(tol_buffer_fill_at(buffer, 0, 1, 1, 8192));
    MUST(kn_seal_chunks(kernels, stream, &good));
#define REFUSED(status, text, ...)                                                                 \
    do {                                                                                           \
        struct kn_seal_chunks p = good;                                                            \
        __VA_ARGS__;                                                                               \
        MUST_FAIL(kn_seal_chunks(kernels, stream, &p), status, text);                              \
    } while (0)
    REFUSED(TOL_INVALID_ARGUMENT, "there is no way", p.how = KN_SEAL_HOWS);
    REFUSED(TOL_INVALID_ARGUMENT, "10 rounds", p.rounds = 10);
    REFUSED(TOL_INVALID_ARGUMENT, "no whole units", p.bytes = 1000);
    REFUSED(TOL_INVALID_ARGUMENT, "is NULL", p.from = NULL);
    REFUSED(TOL_INVALID_ARGUMENT, "is NULL", p.after = NULL);
    REFUSED(TOL_INVALID_ARGUMENT, "in at", p.in.address += 4);
    REFUSED(TOL_INVALID_ARGUMENT, "tags_after", p.tags_after.address = 0);
    REFUSED(TOL_OUT_OF_RANGE, "out needs 1024", p.out.bytes = 1000);
    REFUSED(TOL_OUT_OF_RANGE, "tags_before needs 16", p.tags_before.bytes = 15);
    REFUSED(TOL_INVALID_ARGUMENT, "overlap", p.out.address += 64);
    REFUSED(TOL_INVALID_ARGUMENT, "overlap", p.tags_after = p.tags_before);
    REFUSED(TOL_INVALID_ARGUMENT, "overlap", p.tags_after = p.in);
    MUST_FAIL(kn_seal_chunks(NULL, stream, &good), TOL_INVALID_ARGUMENT, "needs kernels");
    MUST(tol_stream_synchronize_for(stream, KN_PATIENCE_MS));
    tol_buffer_destroy(buffer);
}

/* Key stream and plain bytes that a compiler puts on a stack are in device memory. */
Test(seal_chunks, kernels_of_sealed_memory_have_no_stack) {
    static const char *const names[] = {
        "seal_tags",      "seal_close_20", "seal_close_12",   "seal_close_8",
        "seal_open_20",   "seal_open_12",  "seal_open_8",     "seal_turn_20",
        "seal_turn_12",   "seal_turn_8",   "seal_product_20", "seal_product_12",
        "seal_product_8", "seal_early_20", "seal_early_12",   "seal_early_8"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct tol_module *module = NULL;
        struct tol_kernel *kernel = NULL;
        size_t bytes = 0;
        char *text = test_fixture(i < 10   ? "ptx/kernels/seal_1_chunks.ptx"
                                  : i < 13 ? "ptx/kernels/seal_2_product.ptx"
                                           : "ptx/kernels/seal_3_early.ptx",
                                  &bytes);
        MUST(tol_module_load(test_context(), text, bytes, NULL, &module));
        MUST(tol_module_kernel(module, names[i], &kernel));
        const struct tol_kernel_properties properties = tol_kernel_properties(kernel);
        cr_assert_eq(properties.local_bytes_per_thread, 0, "%s has a stack of %d bytes", names[i],
                     properties.local_bytes_per_thread);
        tol_module_destroy(module);
        free(text);
    }
}
