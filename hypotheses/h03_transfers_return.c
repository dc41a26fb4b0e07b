/*
 * H3: memory transfers return the bytes that were sent.
 *
 * `tollens explain H3` prints the text below.
 */
#include "harness/attack.h"
#include "harness/claim.h"
#include "harness/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

HYP_WORDS(
    3,
    .claim = "Bytes copied to the device and back are unchanged, for any size, offset, kind of "
             "host memory, copy function and thread. A copy that does not fit is rejected and "
             "changes nothing.",
    .prediction =
        "0 violations from 1 byte to 64 MiB (4 GiB with --full on a GPU), with pageable and "
        "pinned memory, synchronous and asynchronous copies, a copy on the device, and "
        "eight threads at once.",
    .falsified_if = "a byte differs, a byte outside the range changes, or a copy that does not "
                    "fit, or that uses a destroyed buffer, is accepted.",
    .method = "Copy random bytes to the device and back. For odd offsets, run thousands of random "
              "writes, reads, fills and copies, also of rows and queued on a stream, and compare "
              "the buffer with a shadow copy on the host.",
    .control = "The destinations, on the host and on the device, are poisoned before each round, "
               "so bytes that were never copied do not match.",
    .confounders = "If a copy also changed the reference, the comparison would find nothing. The "
                   "sent bytes are therefore kept in memory that no copy writes to.")

/* ---- bytes ----------------------------------------------------------------------------------- */

static void transfers_draw_bytes(struct hyp_attack *attack, unsigned char *bytes, size_t count) {
    for (size_t i = 0; i + 8 <= count; i += 8) {
        uint64_t word = hyp_random(attack);
        memcpy(bytes + i, &word, 8);
    }
    for (size_t i = count - count % 8; i < count; i++) bytes[i] = (unsigned char)hyp_random(attack);
}

static size_t first_difference(const unsigned char *a, const unsigned char *b, size_t count) {
    if (memcmp(a, b, count) == 0) return count;
    for (size_t i = 0; i < count; i++) {
        if (a[i] != b[i]) return i;
    }
    return count;
}

static bool transfers_check_bytes(struct hyp_attack *attack, const char *way,
                                  const unsigned char *back, const unsigned char *sent,
                                  size_t count) {
    if (memcmp(back, sent, count) == 0) return HYP_CHECK(attack, true, "%s", "");
    size_t at = first_difference(back, sent, count);
    return HYP_CHECK(attack, false, "%s: byte %zu of %zu is %#04x, expected %#04x", way, at, count,
                     back[at], sent[at]);
}

/* ---- round trips ----------------------------------------------------------------------------- */

struct round {
    struct tol_stream *stream;
    struct tol_buffer *buffer, *other;
    struct tol_pinned *source, *pinned; /* for sending, and for reading back */
    unsigned char *sent, *back;
    size_t bytes;
};

static bool transfers_begin(struct hyp_attack *attack, struct round *round, size_t bytes) {
    *round = (struct round){.bytes = bytes, .sent = malloc(bytes), .back = malloc(bytes)};
    cr_assert(round->sent != NULL && round->back != NULL, "no memory for %zu bytes", bytes);
    transfers_draw_bytes(attack, round->sent, bytes);
    return HYP_OK(attack, tol_stream_create(attack->context, NULL, &round->stream)) &&
           HYP_OK(attack, tol_buffer_create(attack->context, bytes, 1, &round->buffer)) &&
           HYP_OK(attack, tol_buffer_create(attack->context, bytes, 1, &round->other)) &&
           HYP_OK(attack, tol_pinned_create(attack->context, bytes, &round->source)) &&
           HYP_OK(attack, tol_pinned_create(attack->context, bytes, &round->pinned));
}

static void transfers_end(struct round *round) {
    tol_pinned_destroy(round->source);
    tol_pinned_destroy(round->pinned);
    tol_buffer_destroy(round->buffer);
    tol_buffer_destroy(round->other);
    tol_stream_destroy(round->stream);
    free(round->sent);
    free(round->back);
}

static bool transfers_poison(struct hyp_attack *attack, struct round *round) {
    void *data = NULL;
    memset(round->back, (unsigned char)~round->sent[0], round->bytes);
    if (!HYP_OK(attack, tol_pinned_access(round->pinned, &data))) return false;
    memset(data, (unsigned char)~round->sent[0], round->bytes);
    return HYP_OK(attack, tol_buffer_fill_at(round->buffer, 0, (unsigned char)~round->sent[0], 1,
                                             round->bytes)) &&
           HYP_OK(attack, tol_buffer_fill_at(round->other, 0, (unsigned char)~round->sent[0], 1,
                                             round->bytes));
}

/* Records a time as "to_device_4096B". Only three sizes: more would be too many series. */
static void transfers_record(struct hyp_attack *attack, const char *way, size_t bytes,
                             uint64_t begin_ns) {
    char name[64];
    int64_t duration = (int64_t)(hyp_clock_ns() - begin_ns);
    if ((bytes & (bytes - 1)) != 0 || (bytes != 4096 && bytes != 1u << 20 && bytes != 64u << 20)) {
        return;
    }
    snprintf(name, sizeof name, "%s_%zuB", way, bytes);
    tol_hdr_record(hyp_attack_series(attack, name), duration);
}

static void transfers_pageable(struct hyp_attack *attack, struct round *r) {
    if (!transfers_poison(attack, r)) return;
    uint64_t begin_ns = hyp_clock_ns();
    HYP_NEED(attack, tol_buffer_write(r->buffer, r->sent, r->bytes));
    transfers_record(attack, "pageable_to_device", r->bytes, begin_ns);
    begin_ns = hyp_clock_ns();
    HYP_NEED(attack, tol_buffer_read(r->buffer, r->back, r->bytes));
    transfers_record(attack, "pageable_to_host", r->bytes, begin_ns);
    transfers_check_bytes(attack, "pageable, synchronous", r->back, r->sent, r->bytes);
}

static void transfers_pinned(struct hyp_attack *attack, struct round *r) {
    void *data = NULL;
    if (!transfers_poison(attack, r)) return;
    HYP_NEED(attack, tol_pinned_access(r->source, &data));
    memcpy(data, r->sent, r->bytes);
    uint64_t begin_ns = hyp_clock_ns();
    HYP_NEED(attack, tol_copy_to_device(r->stream, r->buffer, 0, r->source, 0, r->bytes));
    HYP_NEED(attack, tol_pinned_access(r->source, &data));
    transfers_record(attack, "pinned_to_device", r->bytes, begin_ns);
    begin_ns = hyp_clock_ns();
    HYP_NEED(attack, tol_copy_to_host(r->stream, r->pinned, 0, r->buffer, 0, r->bytes));
    HYP_NEED(attack, tol_pinned_access(r->pinned, &data));
    transfers_record(attack, "pinned_to_host", r->bytes, begin_ns);
    transfers_check_bytes(attack, "pinned, asynchronous", data, r->sent, r->bytes);
}

/* Overwrites the source as soon as the call returns: the copy must have read it by then. */
static void transfers_staged(struct hyp_attack *attack, struct round *r) {
    if (!transfers_poison(attack, r)) return;
    memcpy(r->back, r->sent, r->bytes);
    HYP_NEED(attack, tol_copy_from_pageable(r->stream, r->buffer, 0, r->back, r->bytes));
    memset(r->back, (unsigned char)~r->sent[0], r->bytes);
    HYP_NEED(attack, tol_stream_synchronize(r->stream));
    HYP_NEED(attack, tol_buffer_read(r->buffer, r->back, r->bytes));
    transfers_check_bytes(attack, "pageable, asynchronous", r->back, r->sent, r->bytes);
}

static void transfers_on_device(struct hyp_attack *attack, struct round *r) {
    if (!transfers_poison(attack, r)) return;
    HYP_NEED(attack, tol_buffer_write(r->buffer, r->sent, r->bytes));
    uint64_t begin_ns = hyp_clock_ns();
    HYP_NEED(attack, tol_buffer_copy(r->other, 0, r->buffer, 0, r->bytes));
    transfers_record(attack, "on_device", r->bytes, begin_ns);
    HYP_NEED(attack, tol_buffer_read(r->other, r->back, r->bytes));
    transfers_check_bytes(attack, "on the device, synchronous", r->back, r->sent, r->bytes);

    void *data = NULL;
    if (!transfers_poison(attack, r)) return;
    HYP_NEED(attack, tol_pinned_access(r->source, &data));
    memcpy(data, r->sent, r->bytes);
    HYP_NEED(attack, tol_copy_to_device(r->stream, r->buffer, 0, r->source, 0, r->bytes));
    HYP_NEED(attack, tol_copy_on_device(r->stream, r->other, 0, r->buffer, 0, r->bytes));
    HYP_NEED(attack, tol_copy_to_host(r->stream, r->pinned, 0, r->other, 0, r->bytes));
    HYP_NEED(attack, tol_pinned_access(r->pinned, &data));
    transfers_check_bytes(attack, "on the device, asynchronous", data, r->sent, r->bytes);
}

static void every_way(struct hyp_attack *attack, size_t bytes) {
    struct round round;
    if (transfers_begin(attack, &round, bytes)) {
        transfers_pageable(attack, &round);
        transfers_pinned(attack, &round);
        transfers_staged(attack, &round);
        transfers_on_device(attack, &round);
    }
    transfers_end(&round);
}

HYP_ATTACK(h03, small_sizes_return_every_way) {
    static const size_t sizes[] = {31,   32,   33,   63,   64,    65,    127,   128,   129,
                                   255,  256,  257,  511,  512,   513,   1023,  1024,  1025,
                                   4095, 4096, 4097, 9973, 65535, 65536, 65537, 262139};
    enum { SIZES = sizeof sizes / sizeof sizes[0], FIRST = 24 };
    for (size_t bytes = 1; bytes <= FIRST; bytes++) every_way(attack, bytes);
    for (size_t i = 0; i < SIZES; i++) {
        every_way(attack, sizes[i]);
        hyp_attack_progress(attack, (double)(i + 1) / SIZES);
    }
}

HYP_ATTACK(h03, large_sizes_return_every_way) {
    static const size_t sizes[] = {(1u << 20) - 1, 1u << 20,  (1u << 20) + 1, 16777213,
                                   64u << 20,      268435399, 1u << 30};
    size_t count = attack->session.full ? sizeof sizes / sizeof sizes[0] : 5;
    for (size_t i = 0; i < count; i++) {
        every_way(attack, sizes[i]);
        hyp_attack_progress(attack, (double)(i + 1) / (double)count);
    }
}

/* More bytes than 32 bits can count: a size that is cut to 32 bits anywhere copies 5 bytes. */
HYP_ATTACK(h03, sizes_beyond_32_bits_return) {
    const bool is_small =
        !attack->session.full || attack->session.is_repeated || attack->kind == HYP_DEVICE_SOFT;
    const size_t bytes = is_small ? (1u << 20) + 5 : ((size_t)1 << 32) + 5;
    unsigned char *sent = malloc(bytes), *back = calloc(1, bytes);
    struct tol_buffer *first = NULL, *second = NULL;
    cr_assert(sent != NULL && back != NULL, "no memory for %zu bytes", bytes);
    if (is_small)
        hyp_attack_note(attack,
                        "4 GiB and 5 bytes need a GPU, full mode and the first seed; tried 1 MiB");
    transfers_draw_bytes(attack, sent, bytes);
    if (HYP_OK(attack, tol_buffer_create(attack->context, bytes, 1, &first)) &&
        HYP_OK(attack, tol_buffer_create(attack->context, bytes, 1, &second)) &&
        HYP_OK(attack, tol_buffer_write(first, sent, bytes)) &&
        HYP_OK(attack, tol_buffer_fill_at(second, 0, 0xa5, 1, bytes)) &&
        HYP_OK(attack, tol_buffer_read_at(second, bytes - 5, back, 5))) {
        transfers_check_bytes(attack, "the end of a fill", back,
                              (const unsigned char[]){165, 165, 165, 165, 165}, 5);
        if (HYP_OK(attack, tol_buffer_copy(second, 0, first, 0, bytes)) &&
            HYP_OK(attack, tol_buffer_read(second, back, bytes))) {
            transfers_check_bytes(attack, "there, across the device and back", back, sent, bytes);
        }
    }
    tol_buffer_destroy(first);
    tol_buffer_destroy(second);
    free(sent);
    free(back);
}

/* ---- odd offsets ----------------------------------------------------------------------------- */

/* Draws an offset and a length within a buffer of whole bytes; most lengths are small. */
static void draw_range(struct hyp_attack *attack, size_t whole, size_t *offset, size_t *bytes) {
    size_t limit = hyp_random(attack) % 8 == 0 ? whole : 4099;
    *bytes = 1 + hyp_random_below(attack, limit);
    *offset = hyp_random_below(attack, whole - *bytes + 1);
}

HYP_ATTACK(h03, odd_offsets_touch_their_range_alone) {
    enum { BYTES = 1 << 20 };
    unsigned turns = attack->session.full ? 20000 : 2000;
    unsigned char *shadow = malloc(BYTES), *bytes = malloc(BYTES);
    struct tol_buffer *buffer = NULL, *spare = NULL;
    cr_assert(shadow != NULL && bytes != NULL, "no memory");
    transfers_draw_bytes(attack, shadow, BYTES);
    bool ok = HYP_OK(attack, tol_buffer_create(attack->context, BYTES, 1, &buffer)) &&
              HYP_OK(attack, tol_buffer_create(attack->context, BYTES, 1, &spare)) &&
              HYP_OK(attack, tol_buffer_write(buffer, shadow, BYTES));
    for (unsigned turn = 1; ok && turn <= turns; turn++) {
        size_t offset = 0, count = 0, from = 0;
        draw_range(attack, BYTES, &offset, &count);
        switch (hyp_random_below(attack, 4)) {
        case 0: /* write */
            transfers_draw_bytes(attack, bytes, count);
            ok = HYP_OK(attack, tol_buffer_write_at(buffer, offset, bytes, count));
            memcpy(shadow + offset, bytes, count);
            break;
        case 1: /* read */
            memset(bytes, (unsigned char)~shadow[offset], count);
            ok =
                HYP_OK(attack, tol_buffer_read_at(buffer, offset, bytes, count)) &&
                transfers_check_bytes(attack, "a read at an offset", bytes, shadow + offset, count);
            break;
        case 2: /* fill */
            ok = HYP_OK(attack, tol_buffer_fill_at(buffer, offset, turn & 0xff, 1, count));
            memset(shadow + offset, (int)(turn & 0xff), count);
            break;
        default: /* move, through another buffer */
            from = hyp_random_below(attack, BYTES - count + 1);
            ok = HYP_OK(attack, tol_buffer_copy(spare, from, buffer, from, count)) &&
                 HYP_OK(attack, tol_buffer_copy(buffer, offset, spare, from, count));
            memmove(shadow + offset, shadow + from, count);
            break;
        }
        if (ok && turn % 100 == 0) {
            ok = HYP_OK(attack, tol_buffer_read(buffer, bytes, BYTES)) &&
                 transfers_check_bytes(attack, "the whole buffer after odd writes", bytes, shadow,
                                       BYTES);
            hyp_attack_progress(attack, (double)turn / turns);
        }
    }
    tol_buffer_destroy(buffer);
    tol_buffer_destroy(spare);
    free(shadow);
    free(bytes);
}

/* ---- queued fills, and rows ------------------------------------------------------------------ */

enum { AREA_BYTES = 1 << 16 };

struct areas { /* two buffers, and what is in each */
    struct tol_stream *stream;
    struct tol_transfer *transfer;
    struct tol_buffer *buffers[2];
    unsigned char shadows[2][AREA_BYTES], bytes[AREA_BYTES];
};

static struct tol_transfer_rows draw_rows(struct hyp_attack *attack, size_t width, size_t height) {
    struct tol_transfer_rows rows = {.width = width, .height = height, .host_pitch = width};
    rows.device_pitch = width + hyp_random_below(attack, 64);
    rows.offset =
        hyp_random_below(attack, AREA_BYTES - (height - 1) * rows.device_pitch - width + 1);
    return rows;
}

static void move_rows(unsigned char *to, size_t to_pitch, const unsigned char *from,
                      size_t from_pitch, const struct tol_transfer_rows *rows) {
    for (size_t row = 0; row < rows->height; row++) {
        memcpy(to + row * to_pitch, from + row * from_pitch, rows->width);
    }
}

/* Reads other rows than those just written, which staging blocks may still contain. */
static bool rows_arrive(struct hyp_attack *attack, struct areas *a) {
    const size_t width = 1 + hyp_random_below(attack, 300), one = hyp_random_below(attack, 2);
    const size_t height = 1 + hyp_random_below(attack, 32), bytes = width * height;
    const struct tol_transfer_rows from = draw_rows(attack, width, height),
                                   to = draw_rows(attack, width, height);
    const struct tol_place place = tol_place_of_buffer(a->buffers[one]),
                           other = tol_place_of_buffer(a->buffers[1 - one]);
    unsigned char *source = a->shadows[one] + from.offset, sent[300 * 32];
    unsigned char *target = a->shadows[1 - one] + to.offset;
    transfers_draw_bytes(attack, sent, bytes);
    move_rows(target, to.device_pitch, source, from.device_pitch, &from);
    if (!HYP_OK(attack, tol_transfer_copy_rows(a->transfer, other, &to, place, &from)) ||
        !HYP_OK(attack, tol_transfer_write_rows(a->transfer, place, sent, &from)) ||
        !HYP_OK(attack, tol_transfer_read_rows(a->transfer, other, a->bytes, &to))) {
        return false;
    }
    move_rows(source, from.device_pitch, sent, width, &from);
    move_rows(sent, width, target, to.device_pitch, &to);
    return transfers_check_bytes(attack, "rows", a->bytes, sent, bytes);
}

static bool queued_fill_arrives(struct hyp_attack *attack, struct areas *a) {
    const size_t element = (size_t)1 << hyp_random_below(attack, 3);
    const size_t one = hyp_random_below(attack, 2);
    const size_t most = AREA_BYTES / element, at = hyp_random_below(attack, most);
    const size_t count = 1 + hyp_random_below(attack, most - at);
    const unsigned value = (unsigned)(hyp_random(attack) >> (64 - 8 * element));
    for (size_t i = at * element; i < (at + count) * element; i++) {
        a->shadows[one][i] = (unsigned char)(value >> 8 * (i % element));
    }
    return HYP_OK(attack,
                  tol_copy_fill(a->stream, a->buffers[one], at * element, value, element, count)) &&
           HYP_OK(attack, tol_stream_synchronize(a->stream));
}

HYP_ATTACK(h03, queued_fills_and_rows_touch_their_range_alone) {
    const unsigned turns = attack->session.full ? 2000 : 200;
    struct areas *a = calloc(1, sizeof *a);
    cr_assert(a != NULL, "no memory");
    bool ok = HYP_OK(attack, tol_stream_create(attack->context, NULL, &a->stream)) &&
              HYP_OK(attack, tol_transfer_create(attack->context, NULL, &a->transfer));
    for (size_t i = 0; ok && i < 2; i++) {
        transfers_draw_bytes(attack, a->shadows[i], AREA_BYTES);
        ok = HYP_OK(attack, tol_buffer_create(attack->context, AREA_BYTES, 1, &a->buffers[i])) &&
             HYP_OK(attack, tol_buffer_write(a->buffers[i], a->shadows[i], AREA_BYTES));
    }
    for (unsigned turn = 1; ok && turn <= turns; turn++) {
        ok = turn % 2 == 0 ? rows_arrive(attack, a) : queued_fill_arrives(attack, a);
        for (size_t i = 0; i < 2 && ok && turn % 4 == 0; i++) {
            ok = HYP_OK(attack, tol_buffer_read(a->buffers[i], a->bytes, AREA_BYTES)) &&
                 transfers_check_bytes(attack, "fills, rows", a->bytes, a->shadows[i], AREA_BYTES);
        }
    }
    tol_transfer_destroy(a->transfer);
    for (size_t i = 0; i < 2; i++) tol_buffer_destroy(a->buffers[i]);
    tol_stream_destroy(a->stream);
    free(a);
}

/* ---- threads --------------------------------------------------------------------------------- */

enum { THREADS = 8, THREAD_BYTES = 100003 };

struct worker {
    struct tol_context *context;
    unsigned number, turns;
    unsigned rounds;   /* that returned the right bytes */
    char message[400]; /* about the first that did not */
};

/* Only an attack's own thread may call HYP_CHECK, so a worker keeps its findings. */
static void *transfers_work(void *user) {
    struct worker *worker = user;
    struct tol_stream *stream = NULL;
    struct tol_buffer *buffer = NULL;
    struct tol_pinned *block = NULL;
    static _Thread_local unsigned char sent[THREAD_BYTES], back[THREAD_BYTES];
    void *data = NULL;
    bool ok = tol_stream_create(worker->context, NULL, &stream) == TOL_OK &&
              tol_buffer_create(worker->context, THREAD_BYTES, 1, &buffer) == TOL_OK &&
              tol_pinned_create(worker->context, THREAD_BYTES, &block) == TOL_OK;
    for (unsigned turn = 0; ok && turn < worker->turns; turn++) {
        for (size_t i = 0; i < THREAD_BYTES; i++) {
            sent[i] = (unsigned char)((i * 31) ^ (i >> 8) ^ (worker->number * 17 + turn));
        }
        memset(back, 0, THREAD_BYTES);
        if (turn % 2 == 0) {
            ok = tol_buffer_write(buffer, sent, THREAD_BYTES) == TOL_OK &&
                 tol_buffer_read(buffer, back, THREAD_BYTES) == TOL_OK;
        } else {
            ok = tol_copy_from_pageable(stream, buffer, 0, sent, THREAD_BYTES) == TOL_OK &&
                 tol_copy_to_host(stream, block, 0, buffer, 0, THREAD_BYTES) == TOL_OK &&
                 tol_pinned_access(block, &data) == TOL_OK;
            if (ok) memcpy(back, data, THREAD_BYTES);
        }
        if (!ok) break;
        if (memcmp(sent, back, THREAD_BYTES) != 0) {
            size_t at = first_difference(sent, back, THREAD_BYTES);
            snprintf(worker->message, sizeof worker->message,
                     "thread %u, round %u: byte %zu is %#04x, expected %#04x", worker->number, turn,
                     at, back[at], sent[at]);
            ok = true;
            break;
        }
        worker->rounds++;
    }
    if (!ok) {
        snprintf(worker->message, sizeof worker->message, "thread %u: %.350s", worker->number,
                 tol_message());
    }
    tol_pinned_destroy(block);
    tol_buffer_destroy(buffer);
    tol_stream_destroy(stream);
    return NULL;
}

HYP_ATTACK(h03, threads_get_their_own_bytes_back) {
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){
            .context = attack->context, .number = i, .turns = attack->session.full ? 1000 : 50};
        int error = pthread_create(&threads[i], NULL, transfers_work, &workers[i]);
        cr_assert(error == 0, "a thread could not be created: %s", strerror(error));
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        for (unsigned turn = 0; turn < workers[i].rounds; turn++) HYP_CHECK(attack, true, "%s", "");
        if (workers[i].message[0] != '\0') HYP_CHECK(attack, false, "%s", workers[i].message);
    }
}

/* ---- rejections ------------------------------------------------------------------------------ */

HYP_ATTACK(h03, what_does_not_fit_is_refused_and_changes_nothing) {
    enum { BYTES = 1000 };
    unsigned char sent[BYTES + 1], back[BYTES + 1];
    struct tol_buffer *b = NULL, *other = NULL;
    struct tol_pinned *p = NULL;
    struct tol_stream *s = NULL;
    transfers_draw_bytes(attack, sent, sizeof sent);
    HYP_NEED(attack, tol_stream_create(attack->context, NULL, &s));
    HYP_NEED(attack, tol_buffer_create(attack->context, BYTES, 1, &b));
    HYP_NEED(attack, tol_buffer_create(attack->context, BYTES / 2, 1, &other));
    HYP_NEED(attack, tol_pinned_create(attack->context, BYTES / 2, &p));
    HYP_NEED(attack, tol_buffer_write(b, sent, BYTES));

    HYP_REFUSED(attack, tol_buffer_write(b, back, BYTES - 1), TOL_SIZE_MISMATCH, "1000");
    HYP_REFUSED(attack, tol_buffer_write(b, back, BYTES + 1), TOL_SIZE_MISMATCH, "1000");
    HYP_REFUSED(attack, tol_buffer_read(b, back, 0), TOL_SIZE_MISMATCH, "1000");
    HYP_REFUSED(attack, tol_buffer_write_at(b, 1, back, BYTES), TOL_OUT_OF_RANGE, "1000");
    HYP_REFUSED(attack, tol_buffer_write_at(b, SIZE_MAX, back, 2), TOL_OUT_OF_RANGE, "1000");
    HYP_REFUSED(attack, tol_buffer_write_at(b, 2, back, SIZE_MAX), TOL_OUT_OF_RANGE, "1000");
    HYP_REFUSED(attack, tol_buffer_read_at(b, BYTES, back, 1), TOL_OUT_OF_RANGE, "1000");
    HYP_REFUSED(attack, tol_buffer_fill_at(b, 0, 0, 4, SIZE_MAX / 4 + 1), TOL_OUT_OF_RANGE, "");
    HYP_REFUSED(attack, tol_buffer_fill_at(b, 4, 0, 4, BYTES / 4), TOL_OUT_OF_RANGE, "");
    HYP_REFUSED(attack, tol_buffer_copy(other, 0, b, 0, BYTES), TOL_OUT_OF_RANGE, "500");
    HYP_REFUSED(attack, tol_buffer_copy(b, 0, other, 1, BYTES / 2), TOL_OUT_OF_RANGE, "500");
    HYP_REFUSED(attack, tol_copy_to_device(s, b, 0, p, 0, BYTES), TOL_OUT_OF_RANGE, "500");
    HYP_REFUSED(attack, tol_copy_to_host(s, p, BYTES, b, 0, 1), TOL_OUT_OF_RANGE, "500");
    HYP_REFUSED(attack, tol_copy_from_pageable(s, b, BYTES, back, 1), TOL_OUT_OF_RANGE, "1000");
    HYP_REFUSED(attack, tol_buffer_create(attack->context, SIZE_MAX / 2, 4, &other),
                TOL_OUT_OF_RANGE, "");
    HYP_REFUSED(attack, tol_buffer_create(attack->context, 0, 4, &other), TOL_INVALID_ARGUMENT, "");

    memset(back, (unsigned char)~sent[0], sizeof back);
    HYP_NEED(attack, tol_buffer_read(b, back, BYTES));
    transfers_check_bytes(attack, "after refusals", back, sent, BYTES);

    tol_buffer_destroy(b);
    tol_pinned_destroy(p);
    HYP_REFUSED(attack, tol_buffer_write(b, back, BYTES), TOL_INVALID_ARGUMENT, "destroyed");
    HYP_REFUSED(attack, tol_buffer_read(b, back, BYTES), TOL_INVALID_ARGUMENT, "destroyed");
    HYP_REFUSED(attack, tol_buffer_copy(other, 0, b, 0, 1), TOL_INVALID_ARGUMENT, "destroyed");
    HYP_REFUSED(attack, tol_copy_to_device(s, other, 0, p, 0, 1), TOL_INVALID_ARGUMENT,
                "destroyed");
    tol_buffer_destroy(other);
    tol_stream_destroy(s);
}
