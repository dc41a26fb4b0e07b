/*
 * Sealed weights on a device: nothing plain stands there, every change is refused with its chunk,
 * rotation leaves nothing of the old bytes, and products are those of the plain weights.
 */
#include "seal.h"

#include "inputs.h"
#include "plain_search.h"
#include "quant/quant_draw.h"
#include "test/test_device.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 16384, ROWS = 41, BLOCKS = 7, ROW_BYTES = BLOCKS * 144, PITCH = 1024 };
enum { PLAIN_BYTES = ROWS * ROW_BYTES, SEALED_BYTES = ROWS * PITCH, K = BLOCKS * 256 };

static const struct tol_seal_options usual = {.shape = {ROWS, ROW_BYTES}, .label = "blk.0"};
static struct tol_context *context;
static struct tol_seal_key *key;
static struct tol_sealer *sealer;
static struct tol_sealed *sealed;
static char *plain;

static bool refuses_reads; /* of the device's memory */

static void before(struct tol_interpose_call *call, void *user) {
    plain_search_before(call, user);
    if (!refuses_reads || call->index != TOL_DRIVER_INDEX_cuMemcpyDtoH_v2) return;
    call->forward = false;
    call->result = CUDA_ERROR_NOT_PERMITTED;
}

/* A context whose calls go through the search. */
static void begin(void) {
    const struct tol_interpose_options hooks = {.before = before, .after = plain_search_after};
    uint64_t random = 7;
    if (tol_seal_key_draw(&key) == TOL_UNSUPPORTED) cr_skip_test("there is no libcrypto.so.3");
    struct tol_driver *driver = test_driver();
    MUST(tol_interpose_install(driver, &hooks));
    MUST(tol_context_create(driver, 0, &context));
    MUST(tol_sealer_create(context, key, &sealer));
    plain = malloc(PLAIN_BYTES);
    cr_assert(plain != NULL);
    kn_quant_draw(KN_Q4_K, KN_BLOCKS_USUAL, &random, ROWS * BLOCKS, plain);
    plain_search_begin(plain, PLAIN_BYTES);
}

static void end(void) {
    tol_sealed_destroy(sealed);
    tol_sealer_destroy(sealer);
    tol_seal_key_destroy(key);
    tol_context_destroy(context);
    plain_search_end();
    free(plain);
    test_end();
}

TestSuite(sealed, .fini = end, .timeout = 300);

static void begin_sealed(void) {
    begin();
    MUST(tol_seal_host(sealer, &usual, plain, &sealed));
}

static void must_be_plain_nowhere(const char *when) {
    size_t pieces = 1, bytes = 0;
    cr_assert(plain_search_device(&pieces, &bytes));
    const size_t least = sealed != NULL ? SEALED_BYTES : 1;
    cr_assert_geq(bytes, least, "%s only %zu bytes were searched", when, bytes);
    cr_assert_eq(pieces, 0, "%s %zu plain pieces stand in %zu bytes of device memory", when, pieces,
                 bytes);
    cr_assert_eq(plain_search_copied(), 0, "%s %zu plain pieces were copied to the device", when,
                 plain_search_copied());
}

static void must_read_plain(void) {
    char *read = malloc(PLAIN_BYTES);
    cr_assert(read != NULL);
    MUST(tol_seal_read(sealed, read, PLAIN_BYTES));
    cr_assert_arr_eq(read, plain, PLAIN_BYTES);
    free(read);
}

/* The sealed bytes, to look at and to change. */
static void peek(size_t offset, void *bytes, size_t count) {
    struct tol_transfer *transfer = NULL;
    MUST(tol_transfer_create(context, NULL, &transfer));
    MUST(tol_transfer_read(transfer, tol_sealed_place(sealed), offset, bytes, count));
    tol_transfer_destroy(transfer);
}

static void poke(size_t offset, const void *bytes, size_t count) {
    struct tol_transfer *transfer = NULL;
    MUST(tol_transfer_create(context, NULL, &transfer));
    MUST(tol_transfer_write(transfer, tol_sealed_place(sealed), offset, bytes, count));
    tol_transfer_destroy(transfer);
}

/* ---- products ---- */

struct product {
    struct tol_stream *stream;
    struct tol_buffer *x, *y;
    float in[K], out[ROWS];
};

static void product_begin(struct product *p) {
    uint64_t random = 11;
    kn_inputs_draw(KN_NORMAL, &random, 1, p->in, K);
    MUST(tol_stream_create(context, NULL, &p->stream));
    MUST(tol_buffer_create(context, K, sizeof(float), &p->x));
    MUST(tol_buffer_create(context, ROWS, sizeof(float), &p->y));
    MUST(tol_buffer_write(p->x, p->in, sizeof p->in));
}

static void product_run(struct product *p) {
    MUST(tol_seal_product(sealed, p->stream, tol_place_of_buffer(p->x), tol_place_of_buffer(p->y)));
    MUST(tol_stream_synchronize(p->stream));
    MUST(tol_buffer_read(p->y, p->out, sizeof p->out));
}

static void product_end(struct product *p) {
    tol_buffer_destroy(p->x);
    tol_buffer_destroy(p->y);
    tol_stream_destroy(p->stream);
}

/* Within what rounding x to bytes may do: sealed_product_test.c has the exact bound. */
static void must_be_the_plain_product(const struct product *p) {
    double w[K];
    for (size_t i = 0; i < ROWS; i++) {
        double sum = 0, allowed = 0;
        kn_quant_values_exact(KN_Q4_K, plain + i * ROW_BYTES, BLOCKS, w);
        for (size_t l = 0; l < K; l++) {
            sum += w[l] * (double)p->in[l];
            allowed += fabs(w[l]) * 0.02;
        }
        cr_assert(fabs((double)p->out[i] - sum) <= allowed, "row %zu: %g, not %g within %g", i,
                  (double)p->out[i], sum, allowed);
    }
}

/* ---- what the refinement demands ---- */

Test(sealed, weights_stand_nowhere_in_the_clear) {
    struct product p;
    void *packed = NULL;
    size_t packed_bytes = 0;
    begin_sealed();
    must_be_plain_nowhere("after sealing");
    product_begin(&p);
    product_run(&p);
    must_be_the_plain_product(&p);
    must_be_plain_nowhere("after a product");
    MUST(tol_seal_verify(sealed));
    MUST(tol_seal_rotate(sealed));
    must_be_plain_nowhere("after a rotation");
    must_read_plain();
    must_be_plain_nowhere("after reading");
    tol_sealed_destroy(sealed);
    sealed = NULL;
    must_be_plain_nowhere("after the end");
    MUST(tol_seal_pack(key, usual.shape, "packed", plain, &packed, &packed_bytes));
    MUST(tol_seal_packed(sealer, NULL, packed, packed_bytes, &sealed));
    must_be_plain_nowhere("after unpacking");
    product_end(&p);
    free(packed);
}

/* The search finds what there is to find: on request plain bytes do stand on the device. */
Test(sealed, plain_bytes_on_the_device_would_be_found) {
    struct tol_buffer *buffer = NULL;
    size_t pieces = 0, bytes = 0;
    begin_sealed();
    MUST(tol_buffer_create(context, SEALED_BYTES, 1, &buffer));
    MUST(tol_seal_open(sealed, tol_place_of_buffer(buffer)));
    cr_assert(plain_search_device(&pieces, &bytes));
    cr_assert_eq(pieces, PLAIN_BYTES / 16);
    cr_assert_eq(plain_search_copied(), 0);
    MUST(tol_buffer_write_at(buffer, 0, plain, 160));
    cr_assert_eq(plain_search_copied(), 10);
    tol_buffer_destroy(buffer);
}

/* ---- changes ---- */

Test(sealed, a_changed_bit_is_refused_with_its_chunk_until_it_is_back) {
    char byte, text[64];
    struct product p;
    begin_sealed();
    product_begin(&p);
    for (size_t at = 3; at < SEALED_BYTES; at += 4999) {
        if (!test_takes_trial()) continue;
        peek(at, &byte, 1);
        byte = (char)(byte ^ 1 << at % 8);
        poke(at, &byte, 1);
        snprintf(text, sizeof text,
                 "\"blk.0\" was changed: chunk %zu of 3, from byte %zu on, and 1", at / CHUNK,
                 at / CHUNK * CHUNK);
        MUST_FAIL(tol_seal_verify(sealed), TOL_MISMATCH, text);
        MUST_FAIL(
            tol_seal_product(sealed, p.stream, tol_place_of_buffer(p.x), tol_place_of_buffer(p.y)),
            TOL_MISMATCH, "is not used");
        char none[1];
        MUST_FAIL(tol_seal_read(sealed, none, 1), TOL_SIZE_MISMATCH, "for them");
        byte = (char)(byte ^ 1 << at % 8);
        poke(at, &byte, 1);
        MUST(tol_seal_verify(sealed));
    }
    product_run(&p);
    must_be_the_plain_product(&p);
    product_end(&p);
}

Test(sealed, chunks_of_elsewhere_and_of_before_are_refused) {
    struct tol_sealed *other = NULL;
    char *a = malloc(CHUNK), *b = malloc(CHUNK);
    begin_sealed();
    cr_assert(a != NULL && b != NULL);
    peek(0, a, CHUNK);
    peek(CHUNK, b, CHUNK);
    poke(0, b, CHUNK);
    poke(CHUNK, a, CHUNK);
    MUST_FAIL(tol_seal_verify(sealed), TOL_MISMATCH, "chunk 0 of 3, from byte 0 on, and 2 chunks");
    poke(0, a, CHUNK);
    poke(CHUNK, b, CHUNK);
    MUST(tol_seal_verify(sealed));
    /* The same chunk of the same plain bytes, sealed another time. */
    MUST(tol_seal_host(sealer, &usual, plain, &other));
    struct tol_sealed *mine = sealed;
    sealed = other;
    peek(CHUNK, b, CHUNK);
    sealed = mine;
    tol_sealed_destroy(other);
    peek(CHUNK, a, CHUNK);
    poke(CHUNK, b, CHUNK);
    MUST_FAIL(tol_seal_verify(sealed), TOL_MISMATCH, "chunk 1 of 3");
    poke(CHUNK, a, CHUNK);
    /* The same chunk in an earlier generation. */
    MUST(tol_seal_rotate(sealed));
    poke(CHUNK, a, CHUNK);
    MUST_FAIL(tol_seal_verify(sealed), TOL_MISMATCH, "chunk 1 of 3");
    free(a), free(b);
}

/* Products that verify first notice what no call has verified. */
Test(sealed, a_product_can_verify_each_time) {
    struct product p;
    struct tol_seal_options options = usual;
    char byte;
    begin();
    options.verify_each_use = true;
    MUST(tol_seal_host(sealer, &options, plain, &sealed));
    product_begin(&p);
    product_run(&p);
    must_be_the_plain_product(&p);
    peek(20000, &byte, 1);
    byte ^= 4;
    poke(20000, &byte, 1);
    MUST_FAIL(
        tol_seal_product(sealed, p.stream, tol_place_of_buffer(p.x), tol_place_of_buffer(p.y)),
        TOL_MISMATCH, "chunk 1 of 3");
    product_end(&p);
}

Test(sealed, what_was_changed_is_not_given_out) {
    struct tol_buffer *buffer = NULL;
    char *read = malloc(PLAIN_BYTES), byte;
    size_t pieces = 1, bytes = 0;
    begin_sealed();
    cr_assert(read != NULL);
    MUST(tol_buffer_create(context, SEALED_BYTES, 1, &buffer));
    peek(1, &byte, 1);
    byte ^= 1;
    poke(1, &byte, 1);
    MUST_FAIL(tol_seal_read(sealed, read, PLAIN_BYTES), TOL_MISMATCH, "chunk 0 of 3");
    for (size_t i = 0; i < PLAIN_BYTES; i++) cr_assert_eq(read[i], 0);
    MUST_FAIL(tol_seal_verify(sealed), TOL_MISMATCH, "chunk 0");
    byte ^= 1;
    poke(1, &byte, 1);
    MUST(tol_seal_verify(sealed));
    byte ^= 1;
    poke(1, &byte, 1);
    MUST_FAIL(tol_seal_open(sealed, tol_place_of_buffer(buffer)), TOL_MISMATCH, "chunk 0 of 3");
    cr_assert(plain_search_device(&pieces, &bytes));
    cr_assert_eq(pieces, 0);
    tol_buffer_destroy(buffer);
    free(read);
}

/* ---- rotation ---- */

Test(sealed, rotation_leaves_nothing_of_the_old_bytes) {
    char *before = malloc(SEALED_BYTES), *after = malloc(SEALED_BYTES);
    begin_sealed();
    cr_assert(before != NULL && after != NULL);
    for (uint32_t generation = 1; generation <= 3; generation++) {
        peek(0, before, SEALED_BYTES);
        MUST(tol_seal_rotate(sealed));
        cr_assert_eq(tol_sealed_generation(sealed), generation);
        peek(0, after, SEALED_BYTES);
        size_t same = 0;
        for (size_t i = 0; i < SEALED_BYTES; i += 8) same += memcmp(before + i, after + i, 8) == 0;
        cr_assert_eq(same, 0, "%zu words are as before", same);
        MUST(tol_seal_verify(sealed));
        must_read_plain();
    }
    free(before), free(after);
}

/* A change is found by the rotation itself, and not blessed by its new tags. */
Test(sealed, rotation_does_not_bless_a_change) {
    char byte;
    begin_sealed();
    peek(33000, &byte, 1);
    byte ^= 2;
    poke(33000, &byte, 1);
    MUST_FAIL(tol_seal_rotate(sealed), TOL_MISMATCH, "chunk 2 of 3");
    MUST_FAIL(tol_seal_verify(sealed), TOL_MISMATCH, "was changed");
    MUST_FAIL(tol_seal_rotate(sealed), TOL_MISMATCH, "was changed");
    struct product p;
    product_begin(&p);
    MUST_FAIL(
        tol_seal_product(sealed, p.stream, tol_place_of_buffer(p.x), tol_place_of_buffer(p.y)),
        TOL_MISMATCH, "is not used");
    product_end(&p);
}

/* The bytes have another key already, and nobody knows their tags: they are lost, and no product is
 * made of them with the old key. */
Test(sealed, a_rotation_that_fails_leaves_nothing_to_be_used) {
    struct product p;
    begin_sealed();
    product_begin(&p);
    product_run(&p);
    refuses_reads = true;
    cr_assert_neq(tol_seal_rotate(sealed), TOL_OK);
    refuses_reads = false;
    MUST_FAIL(
        tol_seal_product(sealed, p.stream, tol_place_of_buffer(p.x), tol_place_of_buffer(p.y)),
        TOL_MISMATCH, "is not used");
    MUST_FAIL(tol_seal_verify(sealed), TOL_MISMATCH, "was changed");
    product_end(&p);
}

/* ---- ways in ---- */

/* However bytes were sealed, with whatever rounds and keys, a product has the same bits. */
Test(sealed, products_have_the_same_bits_however_bytes_were_sealed) {
    static const unsigned rounds[] = {0, 12, 8};
    struct product p;
    float first[ROWS];
    void *packed = NULL;
    size_t packed_bytes = 0;
    begin();
    product_begin(&p);
    MUST(tol_seal_pack(key, usual.shape, "packed", plain, &packed, &packed_bytes));
    for (int i = 0; i < 6; i++) {
        struct tol_seal_options options = usual;
        options.rounds = rounds[i / 2];
        if (i % 2 == 0) {
            MUST(tol_seal_host(sealer, &options, plain, &sealed));
        } else {
            MUST(tol_seal_packed(sealer, &options, packed, packed_bytes, &sealed));
            MUST(tol_seal_rotate(sealed));
        }
        product_run(&p);
        if (i == 0) memcpy(first, p.out, sizeof first);
        cr_assert_arr_eq(p.out, first, sizeof first, "way %d", i);
        must_read_plain();
        tol_sealed_destroy(sealed);
        sealed = NULL;
    }
    must_be_plain_nowhere("after all ways");
    product_end(&p);
    free(packed);
}

/* What was computed on the device is sealed there, and its place is zeros. */
Test(sealed, plain_bytes_on_the_device_are_sealed_and_wiped) {
    enum { BYTES = 5 * CHUNK + 640 };
    struct tol_seal_options options = {.shape = {BYTES / 64, 64}, .label = "computed"};
    struct tol_buffer *buffer = NULL;
    char *bytes = malloc(BYTES), *read = malloc(BYTES);
    uint64_t random = 13;
    begin();
    cr_assert(bytes != NULL && read != NULL);
    for (size_t i = 0; i < BYTES; i++) bytes[i] = (char)kn_random(&random);
    MUST(tol_buffer_create(context, BYTES, 1, &buffer));
    MUST(tol_buffer_write(buffer, bytes, BYTES));
    plain_search_begin(bytes, BYTES);
    MUST(tol_seal_device(sealer, &options, tol_place_of_buffer(buffer), &sealed));
    size_t pieces = 1, searched = 0;
    cr_assert(plain_search_device(&pieces, &searched));
    cr_assert_eq(pieces, 0);
    MUST(tol_buffer_read(buffer, read, BYTES));
    for (size_t i = 0; i < BYTES; i++) cr_assert_eq(read[i], 0, "byte %zu is not wiped", i);
    MUST(tol_seal_read(sealed, read, BYTES));
    cr_assert_arr_eq(read, bytes, BYTES);
    options.shape = (struct tol_seal_shape){1, 100};
    struct tol_sealed *none = NULL;
    MUST_FAIL(tol_seal_device(sealer, &options, tol_place_of_buffer(buffer), &none),
              TOL_UNSUPPORTED, "no multiple of 64");
    options.shape = (struct tol_seal_shape){1, BYTES + 64};
    MUST_FAIL(tol_seal_device(sealer, &options, tol_place_of_buffer(buffer), &none),
              TOL_OUT_OF_RANGE, "in needs");
    tol_buffer_destroy(buffer);
    free(bytes), free(read);
}

/* ---- threads ---- */

enum { THREADS = 4, TURNS = 12 };

struct turner {
    int number;
    float out[ROWS];
    char failed[256];
};

/* Products, verifications and rotations of one object in turn, on a stream of the thread's own. */
static void *take_turns(void *user) {
    struct turner *t = user;
    struct tol_stream *stream = NULL;
    struct tol_buffer *x = NULL, *y = NULL;
    float in[K];
    for (size_t i = 0; i < K; i++) in[i] = (float)(i % 7) - 3;
    tol_status status = tol_stream_create(context, NULL, &stream);
    if (status == TOL_OK) status = tol_buffer_create(context, K, sizeof(float), &x);
    if (status == TOL_OK) status = tol_buffer_create(context, ROWS, sizeof(float), &y);
    if (status == TOL_OK) status = tol_buffer_write(x, in, sizeof in);
    for (int i = 0; i < TURNS && status == TOL_OK; i++) {
        if ((i + t->number) % 3 == 0) {
            status = tol_seal_rotate(sealed);
        } else if ((i + t->number) % 3 == 1) {
            status = tol_seal_verify(sealed);
        }
        if (status == TOL_OK) {
            status =
                tol_seal_product(sealed, stream, tol_place_of_buffer(x), tol_place_of_buffer(y));
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

Test(sealed, threads_take_turns) {
    static struct turner turners[THREADS];
    pthread_t threads[THREADS];
    begin_sealed();
    for (int i = 0; i < THREADS; i++) {
        turners[i].number = i;
        cr_assert_eq(pthread_create(&threads[i], NULL, take_turns, &turners[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        cr_assert(turners[i].failed[0] == '\0', "thread %d: %s", i, turners[i].failed);
        cr_assert_arr_eq(turners[i].out, turners[0].out, sizeof turners[i].out, "thread %d", i);
    }
    MUST(tol_seal_verify(sealed));
    must_read_plain();
}

/* A key stream that is used twice shows what two texts differ by. No unit of any sealing is made
 * with a key stream of another. */
Test(sealed, no_key_stream_is_used_twice) {
    enum { TIMES = 4, UNITS = 8 };
    uint64_t streams[TIMES * UNITS];
    const struct tol_seal_options options = {.shape = {1, 64 * UNITS}};
    const char zeros[64 * UNITS] = {0};
    begin();
    for (size_t i = 0; i < TIMES; i++) {
        char units[64 * UNITS];
        if (i % 2 == 0) {
            tol_sealed_destroy(sealed);
            MUST(tol_seal_host(sealer, &options, zeros, &sealed));
        } else {
            MUST(tol_seal_rotate(sealed));
        }
        peek(0, units, sizeof units); /* of zeros: the key stream */
        for (size_t u = 0; u < UNITS; u++) memcpy(&streams[i * UNITS + u], units + 64 * u, 8);
    }
    for (size_t i = 0; i < TIMES * UNITS; i++) {
        for (size_t j = 0; j < i; j++) cr_assert_neq(streams[i], streams[j], "%zu and %zu", i, j);
    }
}

Test(sealed, what_makes_no_sense_is_refused) {
    struct tol_sealed *none = NULL;
    struct tol_seal_options options = usual;
    void *packed = NULL;
    size_t packed_bytes = 0;
    begin_sealed();
    MUST_FAIL(tol_sealer_create(context, NULL, &sealer), TOL_INVALID_ARGUMENT, "is NULL");
    MUST_FAIL(tol_seal_host(sealer, &options, NULL, &none), TOL_INVALID_ARGUMENT, "is NULL");
    options.rounds = 7;
    MUST_FAIL(tol_seal_host(sealer, &options, plain, &none), TOL_INVALID_ARGUMENT, "7 rounds");
    options = usual;
    options.shape.rows = 0;
    MUST_FAIL(tol_seal_host(sealer, &options, plain, &none), TOL_OUT_OF_RANGE, "0 rows");
    MUST(tol_seal_pack(key, usual.shape, "q", plain, &packed, &packed_bytes));
    ((char *)packed)[packed_bytes - 1] ^= 1;
    MUST_FAIL(tol_seal_packed(sealer, NULL, packed, packed_bytes, &none), TOL_MISMATCH,
              "chunk 2 of");
    free(packed);
    MUST_FAIL(tol_seal_open(sealed, (struct tol_place){tol_sealed_place(sealed).address, 100}),
              TOL_OUT_OF_RANGE, "out needs");
    MUST_FAIL(tol_seal_open(sealed, (struct tol_place){0, 0}), TOL_INVALID_ARGUMENT, "is NULL");
    options = (struct tol_seal_options){.shape = {1, 100}};
    MUST(tol_seal_host(sealer, &options, plain, &none));
    struct tol_stream *stream = NULL;
    MUST(tol_stream_create(context, NULL, &stream));
    MUST_FAIL(tol_seal_product(none, stream, (struct tol_place){0, 0}, (struct tol_place){0, 0}),
              TOL_UNSUPPORTED, "no whole blocks");
    tol_stream_destroy(stream);
    tol_sealed_destroy(none);
    tol_sealed_destroy(NULL);
    MUST_FAIL(tol_seal_verify(NULL), TOL_INVALID_ARGUMENT, "is NULL");
    MUST_FAIL(tol_seal_rotate(NULL), TOL_INVALID_ARGUMENT, "is NULL");
}
