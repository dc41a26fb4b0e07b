/*
 * Copies to the host by each design (transfer/reads.h), beside pinned ones. A part of
 * bench-transfer --candidates.
 *
 * A design has a transfer of its own, so its threads are the only ones that spin. All designs are
 * measured twice, because what lies between two runs of one shows what the machine does beside. In
 * turn: behind a pinned and a driver's copy, as in the table of all copies, so helpers sleep by
 * then if they spin for less than these take, and the destination's lines are in the caller's
 * cache. Apart: one copy behind the other. Bytes are compared behind each row. The destination is
 * 16 bytes behind a page, as malloc puts it, but in the rows "at a page", which show its price.
 */
#include "transfer_bench.h"

#include "core/check.h"
#include "transfer/transfer_state.h"

#include <stdio.h>
#include <string.h>

static const size_t sizes[] = {256 * KIB, 1024 * KIB, 4096 * KIB, 16384 * KIB};
enum { SIZES = sizeof sizes / sizeof sizes[0], PASSES = 2, PAGE = 4096 };

struct mixture {
    struct tol_transfer_options options;
    struct tol_read_design reads;
    size_t offset; /* of the destination, which else is where malloc puts large memory */
};

/* ---- the designs, each on top of the defaults ---- */

static void at_a_page(struct mixture *m) {
    m->offset = PAGE - 16;
}
static void at_a_page_string(struct mixture *m) {
    m->offset = PAGE - 16;
    m->reads.copy = TOL_READ_STRING;
}
static void spin(struct mixture *m, unsigned threads, unsigned us) {
    m->options.spinners = threads;
    m->options.spin_us = us;
}
static void awake_3(struct mixture *m) {
    spin(m, 3, 2000);
}
static void awake_7(struct mixture *m) {
    spin(m, 7, 2000);
}
static void queue_first(struct mixture *m) {
    m->reads.queues_first = true;
}
static void wake_all(struct mixture *m) {
    m->reads.queues_first = true;
    m->reads.helper_bytes = 128 * KIB;
}
static void parts_32(struct mixture *m) {
    m->reads.part_bytes = 32 * KIB;
}
static void parts_16(struct mixture *m) {
    m->reads.part_bytes = 16 * KIB;
}
static void lead_only(struct mixture *m) {
    m->reads.leads_only = true;
    parts_16(m);
}
static void share_asking(struct mixture *m) {
    m->reads.shares_asking = true;
}
static void streamed(struct mixture *m) {
    m->options.unpack = TOL_TRANSFER_STREAMED;
}
static void vector(struct mixture *m) {
    m->reads.copy = TOL_READ_VECTOR;
}
static void string(struct mixture *m) {
    m->reads.copy = TOL_READ_STRING;
}
static void ahead(struct mixture *m) {
    m->reads.copy = TOL_READ_AHEAD;
}
static void streamed_ahead(struct mixture *m) {
    m->reads.copy = TOL_READ_STREAMED_AHEAD;
}
static void pieces_256(struct mixture *m) {
    m->reads.piece_bytes = 256 * KIB;
}
static void pieces_double(struct mixture *m) {
    m->options.first_bytes = 128 * KIB;
    m->reads.piece_bytes = 2048 * KIB;
}
static void vector_3(struct mixture *m) {
    awake_3(m);
    vector(m);
    parts_16(m);
}
static void mixed(struct mixture *m) {
    awake_7(m);
    queue_first(m);
    parts_16(m);
}
static void mixed_lead(struct mixture *m) {
    mixed(m);
    lead_only(m);
}
static void mixed_ask(struct mixture *m) {
    mixed(m);
    share_asking(m);
}
static void mixed_streamed(struct mixture *m) {
    mixed_ask(m);
    streamed(m);
}
static void mixed_vector(struct mixture *m) {
    mixed_ask(m);
    vector(m);
}
static void mixed_string(struct mixture *m) {
    mixed_ask(m);
    string(m);
}
static void mixed_ahead(struct mixture *m) {
    mixed_ask(m);
    ahead(m);
}
static void mixed_streamed_ahead(struct mixture *m) {
    mixed_ask(m);
    streamed_ahead(m);
}
static void mixed_pieces_256(struct mixture *m) {
    mixed_ask(m);
    pieces_256(m);
}
static void mixed_11(struct mixture *m) {
    mixed_ask(m);
    spin(m, 11, 2000);
}
static void mixed_asleep(struct mixture *m) {
    mixed_ask(m);
    wake_all(m);
    spin(m, 0, 0);
}

static const struct {
    const char *name;
    void (*change)(struct mixture *mixture); /* NULL: nothing */
} designs[] = {{"as they are", NULL},
               {"memory at a page", at_a_page},
               {"memory at a page, string", at_a_page_string},
               {"3 spin 2 ms", awake_3},
               {"7 spin 2 ms", awake_7},
               {"queued first", queue_first},
               {"queued first, 1 / 128 KiB", wake_all},
               {"parts 32 KiB", parts_32},
               {"parts 16 KiB", parts_16},
               {"parts 16, caller leads", lead_only},
               {"asking shared", share_asking},
               {"streamed", streamed},
               {"vector", vector},
               {"string", string},
               {"ahead", ahead},
               {"streamed ahead", streamed_ahead},
               {"pieces 256 KiB", pieces_256},
               {"pieces 128 KiB to 2 MiB", pieces_double},
               {"3 spin, vector, parts 16", vector_3},
               {"M: 7 spin, first, parts 16", mixed},
               {"M, caller leads", mixed_lead},
               {"MA: M, asking shared", mixed_ask},
               {"MA, streamed", mixed_streamed},
               {"MA, vector", mixed_vector},
               {"MA, string", mixed_string},
               {"MA, ahead", mixed_ahead},
               {"MA, streamed ahead", mixed_streamed_ahead},
               {"MA, pieces 256 KiB", mixed_pieces_256},
               {"MA, 11 spin", mixed_11},
               {"MA, none spins, 1 / 128", mixed_asleep}};

/* ---- a row ---- */

static uint64_t word_at(size_t i) {
    return (i + 1) * 0x9e3779b97f4a7c15u;
}

static tol_status compare_bytes(struct bench *b, const char *name, size_t bytes) {
    tol_status status = TOL_OK;
    memset(b->pageable, 0, bytes);
    TOL_TRY(tol_transfer_read(b->transfer, b->place, 0, b->pageable, bytes));
    for (size_t i = 0; i < bytes / 8; i++) {
        uint64_t word = 0;
        memcpy(&word, b->pageable + 8 * i, 8);
        TOL_CHECK(word == word_at(i), TOL_MISMATCH, "\"%s\", %zu bytes: word %zu is wrong", name,
                  bytes, i);
    }
out:
    return status;
}

static tol_status print_size(struct bench *b, const char *name, size_t bytes) {
    tol_status status = TOL_OK;
    struct tol_read_notes notes = {0};
    struct row turn = {.bytes = bytes}, apart = {.bytes = bytes};
    b->transfer->notes = &notes;
    TOL_TRY(measure_ways(b, &turn, PINNED, REGISTERED));
    b->transfer->notes = NULL;
    TOL_TRY(measure_ways(b, &apart, RUNTIME, REGISTERED));
    TOL_TRY(compare_bytes(b, name, bytes));
    const double pinned = turn.gb_per_s[PINNED], copies = (double)notes.copies;
    printf("%-26s %9zu %7.2f %7.2f %7.2f %7.3f %8.2f %7.3f %8.1f %7.3f %9.1f\n", name, bytes,
           pinned, turn.gb_per_s[DRIVER], turn.gb_per_s[RUNTIME], turn.gb_per_s[RUNTIME] / pinned,
           apart.gb_per_s[RUNTIME], apart.gb_per_s[RUNTIME] / pinned,
           (double)notes.threads / copies, (double)notes.caller_parts / (double)notes.parts,
           (double)notes.arrival_ns / copies * 1e-3);
    fflush(stdout);
out:
    b->transfer->notes = NULL;
    return status;
}

static tol_status try_design(const struct bench *b, size_t design) {
    tol_status status = TOL_OK;
    struct bench own = *b;
    struct mixture mixture = {.options = b->options};
    own.transfer = NULL;
    tol_read_design_default(&mixture.reads);
    if (designs[design].change != NULL) designs[design].change(&mixture);
    TOL_TRY(tol_transfer_create(b->context, &mixture.options, &own.transfer));
    own.transfer->reads = mixture.reads;
    own.pageable += mixture.offset;
    for (size_t i = 0; i < SIZES && sizes[i] <= b->max_bytes; i++) {
        TOL_TRY(print_size(&own, designs[design].name, sizes[i]));
    }
out:
    tol_transfer_destroy(own.transfer);
    return status;
}

tol_status try_reads(struct bench *b) {
    tol_status status = TOL_OK;
    const size_t most = sizes[SIZES - 1], bytes = most < b->max_bytes ? most : b->max_bytes;
    for (size_t i = 0; i < bytes / 8; i++) {
        const uint64_t word = word_at(i);
        memcpy(b->pageable + 8 * i, &word, 8);
    }
    TOL_TRY(tol_transfer_write(b->transfer, b->place, 0, b->pageable, bytes));
    tol_transfer_destroy(b->transfer); /* its threads spin too */
    b->transfer = NULL;
    printf("to the host by design: GB/s in turn with pinned and the driver's copies, and apart; "
           "threads that\nunpack, the caller's share of parts, and us until the last piece is "
           "seen, in turn\n"
           "%-26s %9s %7s %7s %7s %7s %8s %7s %8s %7s %9s\n",
           "design", "bytes", "pinned", "driver", "in turn", "of pin.", "apart", "of pin.",
           "threads", "caller", "arrived");
    for (int pass = 0; pass < PASSES; pass++) {
        printf("-- pass %d\n", pass + 1);
        for (size_t i = 0; i < sizeof designs / sizeof designs[0]; i++) {
            TOL_TRY(try_design(b, i));
        }
    }
out:
    return status;
}
