/*
 * The pool beside a reference allocator that is too simple to be wrong: a list of the live blocks
 * by address, and sums. Seeded operations of all kinds, each held against it.
 *
 *     ninja pool-million      a million operations; TOLLENS_TEST_POOL_OPERATIONS says how many, and
 *                             TOLLENS_TEST_POOL_SEED which
 *
 * What must hold: no two blocks overlap, each begins where it may, its bytes are its own from the
 * stream that wrote them to the one that frees it, sums agree to the byte, limit and quotas hold,
 * memory is out only when it nearly is, what was freed is known for it, the address space is cut
 * into blocks and holes without a gap, and at the end all has come back to the driver.
 */
#include "pool_state.h"
#include "test/test_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
enum { LIVE_MAX = 3000, STREAMS = 4, TAGS = 4, BATCH = 8, SHORT = 100000 };

struct one {
    CUdeviceptr at;
    uint64_t bytes, end; /* end of what is rounded */
    struct tol_block block;
    unsigned tag, value;
};

struct model {
    struct tol_pool *pool;
    const struct tol_driver_table *driver;
    struct tol_stream *streams[STREAMS]; /* the first is the host's, NULL */
    unsigned tags[TAGS];
    uint64_t quotas[TAGS], used[TAGS];
    struct one live[LIVE_MAX]; /* by address */
    size_t count;
    struct tol_block past[64]; /* freed */
    uint64_t frees, allocations, requested, limit, random, out_of_memory, over_quota, stitched;
};

static uint64_t draw(struct model *m, uint64_t below) {
    uint64_t z = m->random += 0x9e3779b97f4a7c15u; /* SplitMix64 */
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % below;
}

/* The index of a block at that address in the list, or where it would be inserted. */
static size_t place_of(const struct model *m, CUdeviceptr at) {
    size_t low = 0, high = m->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (m->live[middle].at < at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void add(struct model *m, struct one one) {
    size_t place = place_of(m, one.at);
    cr_assert(one.at % TOL_POOL_ALIGNMENT == 0, "a block begins at %#llx", one.at);
    cr_assert_eq(tol_pool_bytes(m->pool, one.block), one.bytes);
    cr_assert(place == 0 || m->live[place - 1].end <= one.at, "it begins in another block");
    cr_assert(place == m->count || one.end <= m->live[place].at, "it ends in another block");
    memmove(&m->live[place + 1], &m->live[place], (m->count - place) * sizeof one);
    m->live[place] = one;
    m->count++;
    m->allocations++;
    m->requested += one.bytes;
    m->used[one.tag] += one.bytes;
}

/* Its two ends are marked on its stream, and found marked on the stream that frees it. */
static void mark(struct model *m, struct one *one, unsigned stream) {
    CUstream handle = stream == 0 ? NULL : tol_stream_handle(m->streams[stream]);
    size_t bytes = one->bytes < 64 ? (size_t)one->bytes : 64;
    one->value = (unsigned)draw(m, 256);
    cr_assert_eq(m->driver->cuMemsetD8Async(one->at, (unsigned char)one->value, bytes, handle), 0);
    cr_assert_eq(m->driver->cuMemsetD8Async(one->at + one->bytes - bytes, (unsigned char)one->value,
                                            bytes, handle),
                 0);
    cr_assert_eq(m->driver->cuStreamSynchronize(handle), 0);
}

static void look(struct model *m, const struct one *one, unsigned stream) {
    unsigned char ends[2] = {0};
    CUstream handle = stream == 0 ? NULL : tol_stream_handle(m->streams[stream]);
    cr_assert_eq(m->driver->cuMemcpyDtoHAsync_v2(&ends[0], one->at, 1, handle), 0);
    cr_assert_eq(m->driver->cuMemcpyDtoHAsync_v2(&ends[1], one->at + one->bytes - 1, 1, handle), 0);
    cr_assert_eq(m->driver->cuStreamSynchronize(handle), 0);
    cr_assert(ends[0] == one->value && ends[1] == one->value, "a block was written by another");
}

/* Small ones most of the time, some with memory of their own; never more than an eighth of all. */
static size_t draw_bytes(struct model *m) {
    return 1 + (size_t)draw(m, (24 * MIB) >> draw(m, 18));
}

static uint64_t rounded(uint64_t bytes) {
    return (bytes + TOL_POOL_ALIGNMENT - 1) / TOL_POOL_ALIGNMENT * TOL_POOL_ALIGNMENT;
}

static void allocate(struct model *m) {
    const size_t bytes = draw_bytes(m);
    const unsigned stream = (unsigned)draw(m, STREAMS), tag = (unsigned)draw(m, TAGS);
    struct one one = {.bytes = bytes, .tag = tag};
    tol_status status =
        tol_pool_allocate_tagged(m->pool, bytes, m->streams[stream], m->tags[tag], &one.block);
    if (m->quotas[tag] != 0 && m->used[tag] + bytes > m->quotas[tag]) {
        cr_assert(status == TOL_OUT_OF_DEVICE_MEMORY && strstr(tol_message(), "quota") != NULL,
                  "a quota did not hold: %s", tol_message());
        m->over_quota++;
        return;
    }
    if (status == TOL_OUT_OF_DEVICE_MEMORY) {
        cr_assert(m->requested + bytes > m->limit / 2, "memory is out with %llu of %llu in use: %s",
                  (unsigned long long)m->requested, (unsigned long long)m->limit, tol_message());
        m->out_of_memory++;
        return;
    }
    cr_assert(status == TOL_OK, "%s", tol_message());
    one.at = tol_pool_address(m->pool, one.block);
    one.end = one.at + rounded(bytes);
    mark(m, &one, stream);
    add(m, one);
}

static void allocate_batch(struct model *m) {
    size_t bytes[BATCH];
    struct tol_block blocks[BATCH];
    const unsigned stream = (unsigned)draw(m, STREAMS);
    for (int i = 0; i < BATCH; i++) bytes[i] = draw_bytes(m) / 8 + 1;
    tol_status status = tol_pool_allocate_batch(m->pool, BATCH, bytes, m->streams[stream], blocks);
    if (status != TOL_OK) {
        cr_assert_eq(status, TOL_OUT_OF_DEVICE_MEMORY);
        return;
    }
    for (int i = 0; i < BATCH; i++) {
        struct one one = {.bytes = bytes[i], .block = blocks[i]};
        one.at = tol_pool_address(m->pool, one.block);
        one.end = one.at + rounded(bytes[i]);
        mark(m, &one, stream);
        add(m, one);
    }
}

/* Takes it out of the list. */
static struct one forget(struct model *m, size_t which) {
    struct one one = m->live[which];
    memmove(&m->live[which], &m->live[which + 1], (--m->count - which) * sizeof one);
    m->requested -= one.bytes;
    m->used[one.tag] -= one.bytes;
    m->past[m->frees++ % 64] = one.block;
    return one;
}

static void drop(struct model *m) {
    const unsigned stream = (unsigned)draw(m, STREAMS);
    struct one one = forget(m, (size_t)draw(m, m->count));
    look(m, &one, stream);
    MUST(tol_pool_free(m->pool, one.block, m->streams[stream]));
}

static void drop_batch(struct model *m) {
    struct tol_block blocks[BATCH];
    const unsigned stream = (unsigned)draw(m, STREAMS);
    for (int i = 0; i < BATCH; i++) {
        struct one one = forget(m, (size_t)draw(m, m->count));
        look(m, &one, stream);
        blocks[i] = one.block;
    }
    MUST(tol_pool_free_batch(m->pool, BATCH, blocks, m->streams[stream]));
}

/* What a program may do wrong changes nothing. */
static void err(struct model *m) {
    struct tol_block block = {0};
    if (m->frees > 0) {
        block = m->past[draw(m, m->frees < 64 ? m->frees : 64)];
        MUST_FAIL(tol_pool_free(m->pool, block, NULL), TOL_INVALID_ARGUMENT, "freed before");
        cr_assert(tol_pool_address(m->pool, block) == 0 && tol_pool_bytes(m->pool, block) == 0);
    }
    MUST_FAIL(tol_pool_allocate(m->pool, 0, NULL, &block), TOL_INVALID_ARGUMENT,
              "size of a block is 0");
    MUST_FAIL(tol_pool_allocate(m->pool, 2 * m->limit, NULL, &block), TOL_OUT_OF_DEVICE_MEMORY, "");
}

/* Whose an address is, as the list says. */
static void ask(struct model *m) {
    struct tol_pool_found found;
    struct one one = m->live[draw(m, m->count)];
    uint64_t offset = draw(m, one.bytes);
    MUST(tol_pool_find(m->pool, one.at + offset, &found));
    cr_assert(found.whose == TOL_POOL_WHOSE_LIVE && found.block.block.name == one.block.name &&
              found.offset == (int64_t)offset);
    MUST(tol_pool_check(m->pool, one.at + offset, (size_t)(one.bytes - offset)));
    MUST_FAIL(tol_pool_check(m->pool, one.at + offset, (size_t)(one.bytes - offset) + 1),
              TOL_OUT_OF_RANGE, "are not inside the block");
}

static void compare_sums(struct model *m) {
    struct tol_pool_stats s;
    uint64_t sum = 0;
    MUST(tol_pool_stats(m->pool, &s));
    cr_assert(s.used + s.pending <= s.held, "%llu, %llu of %llu", (unsigned long long)s.used,
              (unsigned long long)s.pending, (unsigned long long)s.held);
    for (size_t i = 0; i < m->count; i++) sum += m->live[i].end - m->live[i].at;
    cr_assert_eq(s.requested, m->requested);
    cr_assert_eq(s.blocks, m->count);
    cr_assert(s.rounded >= sum && s.held <= m->limit && s.held_peak <= m->limit);
    m->stitched = s.stitched;
    cr_assert(s.held == s.used + s.kept + s.idle + s.page_waste && s.used == s.rounded + s.cached);
    for (int i = 1; i < TAGS; i++) cr_assert_eq(m->pool->tags[m->tags[i]].used, m->used[i]);
}

/* From end to end the address space is blocks and holes, and no two holes touch. */
static void walk_spans(struct model *m) {
    const struct tol_span *span = tol_spans_at(&m->pool->spans, 0);
    while (span->before != NULL) span = span->before;
    uint64_t end = m->pool->pages.begin, holes = 0, used = 0;
    bool was_free = false;
    cr_assert_eq(span->begin, end);
    for (; span != NULL; span = span->after) {
        enum tol_span_state state = tol_span_state_of(span->name);
        bool is_free = state == TOL_SPAN_FREE;
        cr_assert(span->begin == end && span->bytes > 0, "there is a gap");
        cr_assert(!is_free || !was_free, "two holes touch");
        cr_assert(is_free || state == TOL_SPAN_LIVE || state == TOL_SPAN_CACHED);
        if (is_free) {
            holes += span->bytes;
        } else {
            used += span->bytes;
        }
        was_free = is_free;
        end += span->bytes;
    }
    cr_assert_eq(end, m->pool->pages.begin + m->pool->pages.bytes);
    cr_assert(holes == m->pool->spans.free_bytes && used == m->pool->arena_used);
}

static void operate(struct model *m, uint64_t operation) {
    uint64_t which = draw(m, 10000);
    if (which < 4600 && m->count + BATCH < LIVE_MAX) {
        allocate(m);
    } else if (which < 4800 && m->count + BATCH < LIVE_MAX) {
        allocate_batch(m);
    } else if (which < 9300 && m->count > 0) {
        drop(m);
    } else if (which < 9500 && m->count > BATCH) {
        drop_batch(m);
    } else if (which < 9600) {
        err(m);
    } else if (which < 9700 && m->count > 0) {
        ask(m);
    } else if (which < 9710) {
        MUST(tol_pool_trim(m->pool, (size_t)draw(m, m->limit)));
    } else if (which < 9750) {
        compare_sums(m);
    }
    if (operation % 4096 == 0) walk_spans(m);
}

static void begin(struct model *m, uint64_t seed) {
    struct tol_pool_options options;
    tol_pool_tight(tol_context_device(test_context()), &options);
    options.limit_bytes = 192 * MIB;
    options.large_bytes = 8 * MIB;
    options.guard_one_in = 0;
    tol_status status = tol_pool_create(test_context(), &options, &m->pool);
    if (status == TOL_UNSUPPORTED) cr_skip_test("%s", tol_message());
    cr_assert(status == TOL_OK, "%s", tol_message());
    m->limit = options.limit_bytes;
    m->random = seed;
    m->driver = tol_context_functions(test_context());
    MUST(tol_context_bind(test_context()));
    for (int i = 1; i < STREAMS; i++) {
        MUST(tol_stream_create(test_context(), NULL, &m->streams[i]));
        m->quotas[i] = i == TAGS - 1 ? 24 * MIB : 0;
        MUST(tol_pool_tag(m->pool,
                          i == 1   ? "weights"
                          : i == 2 ? "cache"
                                   : "scarce",
                          (size_t)m->quotas[i], &m->tags[i]));
    }
}

static void end(struct model *m) {
    struct tol_pool_stats s;
    while (m->count > 0) drop(m);
    for (int i = 1; i < STREAMS; i++) tol_stream_destroy(m->streams[i]);
    MUST(tol_pool_trim(m->pool, 0));
    MUST(tol_pool_stats(m->pool, &s));
    cr_assert(s.held == 0 && s.used == 0 && s.requested == 0 && s.blocks == 0 && s.pending == 0,
              "%llu bytes are lost", (unsigned long long)s.held);
    walk_spans(m);
    tol_pool_destroy(m->pool);
}

Test(reference_model, the_pool_does_what_a_simple_allocator_does, .timeout = 1800) {
    static struct model model;
    size_t before = 0, after = 0;
    const char *wanted = getenv("TOLLENS_TEST_POOL_OPERATIONS");
    const char *seed = getenv("TOLLENS_TEST_POOL_SEED");
    const uint64_t operations = wanted != NULL ? strtoull(wanted, NULL, 10) : SHORT;
    setenv("TOLLENS_SOFT_CHECK", "memory,init,sync,stream,leak,fatal", 1);
    MUST(tol_context_memory(test_context(), &before, NULL));
    begin(&model, seed != NULL ? strtoull(seed, NULL, 10) : 1);
    for (uint64_t i = 1; i <= operations; i++) operate(&model, i);
    if (wanted != NULL) {
        fprintf(stderr,
                "%llu operations: %llu allocations, %llu times out of memory, %llu over a "
                "quota, %llu handles stitched\n",
                (unsigned long long)operations, (unsigned long long)model.allocations,
                (unsigned long long)model.out_of_memory, (unsigned long long)model.over_quota,
                (unsigned long long)model.stitched);
    }
    /* It was near its limits, or it has shown nothing of them. */
    if (operations >= SHORT) {
        cr_assert(model.out_of_memory > 50 && model.over_quota > 50 && model.stitched > 0);
    }
    end(&model);
    MUST(tol_context_memory(test_context(), &after, NULL));
    if (!test_on_gpu()) cr_assert_eq(before, after);
    test_end();
}
