/*
 * H9: running out of memory is an error, and nothing worse.
 *
 * `tollens explain H9` prints the text below.
 */
#include "harness/attack.h"
#include "harness/claim.h"
#include "attack/memory_exhaustion.h"
#include "harness/ledger.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

HYP_WORDS(
    9,
    .claim = "A request for more memory than there is fails with an error that states how much "
             "was requested and how much was available. Everything else continues to work.",
    .prediction = "0 violations: each such request fails with TOL_OUT_OF_DEVICE_MEMORY and the "
                  "numbers, copies and launches work before and after it, and every byte is "
                  "returned to the driver.",
    .falsified_if = "an attack's process dies, an impossible request succeeds, a message lacks "
                    "its numbers, the context is lost, a launch or copy goes wrong afterwards, or "
                    "a freed byte does not return to the driver.",
    .method = "Request one byte more than the device has, SIZE_MAX / 2 and SIZE_MAX. Allocate "
              "until a request fails, from buffers, from the pool, and from the driver's pool "
              "through it. Launch a kernel whose memory does not fit. Run out of memory inside a "
              "batch, in a second thread and during copies.",
    .control = "A ledger between the runtime and the driver records what the driver allocated and "
               "freed. Requests that fit, made in between, must succeed.",
    .confounders = "Another process that allocates memory at the same time changes what is free. "
                   "Free memory is therefore compared on the soft device alone, which gets 256 "
                   "MiB. Elsewhere blocks begin at 1/64 of the device's memory, so that a few "
                   "hundred calls fill it.")

enum { COUNT = 5000, COPY_BYTES = 1 << 20, COPIES = 8 };

#define MIB ((size_t)1 << 20)
#define IN_256_MIB .ledger = true, .soft_memory = "256M"

struct memory_stage {
    struct tol_stream *stream;
    struct tol_kernel *add;
    struct tol_buffer *a, *b, *sum;
    uint64_t base; /* the ledger's bytes, with these buffers */
    size_t free_bytes, total_bytes;
};

static void out_end(struct memory_stage *stage) {
    tol_buffer_destroy(stage->a);
    tol_buffer_destroy(stage->b);
    tol_buffer_destroy(stage->sum);
    tol_stream_destroy(stage->stream);
}

/* Checks that the context works: a launch adds, and copies return what was sent. */
static void check_alive(struct hyp_attack *attack, struct memory_stage *stage, const char *when) {
    static float sent[COUNT], back[COUNT];
    const float first = (float)hyp_random_below(attack, 1000);
    for (int i = 0; i < COUNT; i++) sent[i] = first + (float)i;
    memset(back, 0, sizeof back);
    HYP_NEED(attack, tol_buffer_fill_at(stage->sum, 0, 0, 4, COUNT));
    HYP_NEED(attack, tol_buffer_write(stage->a, sent, sizeof sent));
    HYP_NEED(attack, tol_buffer_write(stage->b, sent, sizeof sent));
    HYP_NEED(attack,
             tol_launch(stage->stream, stage->add, tol_launch_linear(COUNT, 256),
                        TOL_ARGUMENTS(tol_buffer_address(stage->a), tol_buffer_address(stage->b),
                                      tol_buffer_address(stage->sum), (unsigned)COUNT)));
    HYP_NEED(attack, tol_stream_synchronize(stage->stream));
    HYP_NEED(attack, tol_buffer_read(stage->sum, back, sizeof back));
    int wrong = 0;
    for (int i = 0; i < COUNT; i++) wrong += back[i] != 2 * sent[i];
    HYP_CHECK(attack, wrong == 0, "%s, %d of %d sums are wrong", when, wrong, COUNT);
}

static bool out_begin(struct hyp_attack *attack, struct memory_stage *stage) {
    *stage = (struct memory_stage){.add = hyp_attack_kernel(attack, "vector_add")};
    bool ok = stage->add != NULL &&
              HYP_OK(attack, tol_stream_create(attack->context, NULL, &stage->stream)) &&
              HYP_OK(attack, tol_buffer_create(attack->context, COUNT, 4, &stage->a)) &&
              HYP_OK(attack, tol_buffer_create(attack->context, COUNT, 4, &stage->b)) &&
              HYP_OK(attack, tol_buffer_create(attack->context, COUNT, 4, &stage->sum)) &&
              HYP_OK(attack,
                     tol_context_memory(attack->context, &stage->free_bytes, &stage->total_bytes));
    stage->base = hyp_ledger_read().bytes;
    /* A first launch now, because a driver may load a kernel when it is first launched. */
    if (ok) check_alive(attack, stage, "at first");
    return ok;
}

/* Checks that everything but the stage's own buffers was returned to the driver. */
static void check_returned(struct hyp_attack *attack, const struct memory_stage *stage,
                           const char *what) {
    size_t free_bytes = 0;
    struct hyp_ledger ledger = hyp_ledger_read();
    HYP_CHECK(attack, ledger.bytes == stage->base && ledger.foreign == 0,
              "%s: %lld bytes were not returned to the driver; %llu frees had addresses "
              "that it never returned",
              what, (long long)(ledger.bytes - stage->base), (unsigned long long)ledger.foreign);
    HYP_NEED(attack, tol_context_memory(attack->context, &free_bytes, NULL));
    if (attack->kind != HYP_DEVICE_SOFT) return;
    HYP_CHECK(attack, free_bytes == stage->free_bytes,
              "%s: %zu bytes are free, expected %zu as before", what, free_bytes,
              stage->free_bytes);
}

/* A request that must fail with its size in the message. */
#define REFUSED(attack, call, bytes)                                                               \
    do {                                                                                           \
        char number[32];                                                                           \
        snprintf(number, sizeof number, "%zu", (size_t)(bytes));                                   \
        hyp_attack_refused(attack, call, TOL_OUT_OF_DEVICE_MEMORY, number, #call);                 \
    } while (0)

/* ---- requests beyond the device's memory ----------------------------------------------------- */

HYP_ATTACK_WITH(h09, more_than_there_is_is_refused_with_numbers, IN_256_MIB) {
    struct memory_stage stage;
    if (!out_begin(attack, &stage)) {
        out_end(&stage);
        return;
    }
    const size_t requests[] = {stage.total_bytes + 1, SIZE_MAX / 2, SIZE_MAX - 1, SIZE_MAX};
    for (enum hyp_memory_exhaustion_way way = 0; way < HYP_MEMORY_EXHAUSTION_WAYS; way++) {
        struct tol_pool *pool = hyp_memory_exhaustion_pool(attack, way);
        if (way != HYP_MEMORY_EXHAUSTION_BUFFERS && pool == NULL) continue;
        for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
            struct tol_buffer *buffer = NULL;
            struct tol_block block;
            if (way == HYP_MEMORY_EXHAUSTION_BUFFERS) {
                REFUSED(attack, tol_buffer_create(attack->context, requests[i], 1, &buffer),
                        requests[i]);
            } else {
                REFUSED(attack, tol_pool_allocate(pool, requests[i], NULL, &block), requests[i]);
            }
            check_alive(attack, &stage, "after a refusal");
        }
        hyp_memory_exhaustion_end(attack, pool);
        check_returned(attack, &stage, hyp_memory_exhaustion_name(way));
    }
    out_end(&stage);
}

HYP_ATTACK_WITH(h09, allocating_until_refused_ends_in_an_error, IN_256_MIB) {
    static struct hyp_memory_exhaustion exhaustion;
    struct memory_stage stage;
    bool ok = out_begin(attack, &stage);
    for (enum hyp_memory_exhaustion_way way = 0; ok && way < HYP_MEMORY_EXHAUSTION_WAYS; way++) {
        if (!hyp_memory_exhaustion_open(attack, way, stage.stream, &exhaustion)) continue;
        /* In the second turn, the freed memory must be available again. */
        for (int turn = 0; turn < 2; turn++) {
            size_t first_count = exhaustion.count;
            hyp_memory_exhaustion_take(&exhaustion);
            hyp_memory_exhaustion_check(attack, &exhaustion);
            check_alive(attack, &stage, "with all memory allocated");
            if (turn == 1) {
                HYP_CHECK(attack, exhaustion.count > first_count,
                          "%s: nothing can be allocated after everything was freed",
                          hyp_memory_exhaustion_name(way));
            }
            hyp_memory_exhaustion_free(attack, &exhaustion);
        }
        hyp_memory_exhaustion_end(attack, exhaustion.pool);
        check_returned(attack, &stage, hyp_memory_exhaustion_name(way));
        check_alive(attack, &stage, "with all memory freed");
        hyp_attack_progress(attack, (double)(way + 1) / HYP_MEMORY_EXHAUSTION_WAYS);
    }
    out_end(&stage);
}

/* A pool's limit and a tag's quota reject requests with the same error and message. */
HYP_ATTACK_WITH(h09, limits_refuse_in_the_same_words, IN_256_MIB) {
    struct tol_pool_options options;
    struct tol_pool *pool = NULL;
    struct tol_block block = {0}, other = {0};
    struct memory_stage stage;
    unsigned tag = 0;
    if (out_begin(attack, &stage)) {
        tol_pool_default(tol_context_device(attack->context), &options);
        options.limit_bytes = 64 * MIB;
        if (HYP_OK(attack, tol_pool_create(attack->context, &options, &pool)) &&
            HYP_OK(attack, tol_pool_tag(pool, "quota", 8 * MIB, &tag)) &&
            HYP_OK(attack, tol_pool_allocate(pool, 40 * MIB, NULL, &block))) {
            REFUSED(attack, tol_pool_allocate(pool, 40 * MIB, NULL, &other), 40 * MIB);
            HYP_REFUSED(attack, tol_pool_allocate(pool, 40 * MIB, NULL, &other),
                        TOL_OUT_OF_DEVICE_MEMORY, "limit");
            REFUSED(attack, tol_pool_allocate_tagged(pool, 9 * MIB, NULL, tag, &other), 9 * MIB);
            HYP_OK(attack, tol_pool_allocate_tagged(pool, 7 * MIB, NULL, tag, &other));
            HYP_OK(attack, tol_pool_free(pool, other, NULL));
            HYP_OK(attack, tol_pool_free(pool, block, NULL));
        }
        hyp_memory_exhaustion_end(attack, pool);
        check_returned(attack, &stage, "a pool with a limit");
        check_alive(attack, &stage, "after a limit");
    }
    out_end(&stage);
}

/* ---- a kernel that needs more memory than is left -------------------------------------------- */

/* Each thread uses 64 KiB of local memory and writes one word in every 4 KiB. */
static const char deep[] =
    ".version 6.4\n.target sm_70\n.address_size 64\n"
    ".visible .entry deep(.param .u64 out) {\n"
    "  .local .align 8 .b8 stack[65536];\n"
    "  .reg .b32 %r<6>; .reg .b64 %a<6>; .reg .pred %p;\n"
    "  ld.param.u64 %a0, [out];\n  mov.u32 %r0, %tid.x;\n  mov.u32 %r5, %ctaid.x;\n"
    "  mov.u32 %r1, %ntid.x;\n  mad.lo.u32 %r0, %r5, %r1, %r0;\n"
    "  mov.u64 %a1, stack;\n  mov.u32 %r2, 0;\n"
    "LOOP:\n  cvt.u64.u32 %a2, %r2;\n  add.u64 %a2, %a1, %a2;\n  add.u32 %r3, %r0, %r2;\n"
    "  st.local.u32 [%a2], %r3;\n  add.u32 %r2, %r2, 4096;\n  setp.lt.u32 %p, %r2, 65536;\n"
    "  @%p bra LOOP;\n"
    "  and.b32 %r4, %r0, 15;\n  shl.b32 %r4, %r4, 12;\n  cvt.u64.u32 %a3, %r4;\n"
    "  add.u64 %a3, %a1, %a3;\n  ld.local.u32 %r3, [%a3];\n"
    "  mul.wide.u32 %a4, %r0, 4;\n  add.u64 %a4, %a0, %a4;\n  st.global.u32 [%a4], %r3;\n"
    "  ret;\n}\n";

enum { DEEP_THREADS = 64 };

static tol_status launch_deep(struct memory_stage *stage, struct tol_kernel *kernel) {
    tol_status status =
        tol_launch(stage->stream, kernel, tol_launch_linear(DEEP_THREADS, DEEP_THREADS),
                   TOL_ARGUMENTS(tol_buffer_address(stage->sum)));
    return status == TOL_OK ? tol_stream_synchronize(stage->stream) : status;
}

static void check_deep(struct hyp_attack *attack, struct memory_stage *stage, const char *when) {
    unsigned back[COUNT], wrong = 0;
    HYP_NEED(attack, tol_buffer_read(stage->sum, back, sizeof back));
    for (unsigned i = 0; i < DEEP_THREADS; i++) wrong += back[i] != i + (i % 16) * 4096;
    HYP_CHECK(attack, wrong == 0, "%s, %u of %d threads lost their local memory", when, wrong,
              DEEP_THREADS);
}

/* The driver may or may not have reserved the kernel's memory earlier. The launch must succeed, or
 * fail with one of these errors and affect nothing else. */
static void launch_with_nothing_left(struct hyp_attack *attack, struct memory_stage *stage,
                                     struct tol_module *module) {
    static struct hyp_memory_exhaustion exhaustion;
    struct tol_kernel *kernel = NULL;
    HYP_NEED(attack, tol_module_kernel(module, "deep", &kernel));
    if (!hyp_memory_exhaustion_open(attack, HYP_MEMORY_EXHAUSTION_BUFFERS, NULL, &exhaustion))
        return;
    hyp_memory_exhaustion_take(&exhaustion);
    hyp_memory_exhaustion_check(attack, &exhaustion);
    tol_status status = launch_deep(stage, kernel);
    if (status == TOL_OK) {
        check_deep(attack, stage, "with all memory allocated");
    } else {
        hyp_attack_note(attack, "a kernel with 64 KiB of local memory per thread: %.200s",
                        hyp_session_message());
        HYP_CHECK(attack,
                  status == TOL_OUT_OF_DEVICE_MEMORY || status == TOL_OVER_LIMIT ||
                      status == TOL_DRIVER_ERROR,
                  "%s: %.400s", tol_status_name(status), tol_message());
    }
    check_alive(attack, stage, "after a kernel without memory");
    hyp_memory_exhaustion_free(attack, &exhaustion);
    HYP_NEED(attack, launch_deep(stage, kernel));
    check_deep(attack, stage, "with all memory freed");
}

/* Allocates two vectors; the third, for their sum, does not fit. */
static void add_too_much(struct hyp_attack *attack, struct memory_stage *stage) {
    struct tol_pool *pool = hyp_memory_exhaustion_pool(attack, HYP_MEMORY_EXHAUSTION_POOL);
    const size_t bytes = stage->free_bytes / 5 * 2;
    struct tol_block a = {0}, b = {0}, sum = {0};
    if (pool != NULL && HYP_OK(attack, tol_pool_allocate(pool, bytes, stage->stream, &a)) &&
        HYP_OK(attack, tol_pool_allocate(pool, bytes, stage->stream, &b))) {
        REFUSED(attack, tol_pool_allocate(pool, bytes, stage->stream, &sum), bytes);
        HYP_CHECK(
            attack, strstr(tol_message(), "\"would_fit_after_defragmentation\": false") != NULL,
            "the message lacks \"would_fit_after_defragmentation\": false: %.400s", tol_message());
        check_alive(attack, stage, "with two of three vectors");
        HYP_OK(attack, tol_pool_free(pool, b, stage->stream));
        HYP_OK(attack, tol_stream_synchronize(stage->stream));
        if (HYP_OK(attack, tol_pool_allocate(pool, bytes, stage->stream, &sum))) {
            HYP_OK(attack, tol_pool_free(pool, sum, stage->stream));
        }
        HYP_OK(attack, tol_pool_free(pool, a, stage->stream));
        HYP_OK(attack, tol_stream_synchronize(stage->stream));
    }
    tol_pool_destroy(pool);
    check_returned(attack, stage, "a sum that did not fit");
}

HYP_ATTACK_WITH(h09, a_kernel_that_needs_more_than_is_left, IN_256_MIB) {
    struct memory_stage stage;
    struct tol_module *module = NULL;
    if (out_begin(attack, &stage)) {
        add_too_much(attack, &stage);
        if (HYP_OK(attack,
                   tol_module_load(attack->context, deep, sizeof deep - 1, NULL, &module))) {
            launch_with_nothing_left(attack, &stage, module);
        }
        tol_module_destroy(module);
        check_alive(attack, &stage, "at the end");
    }
    out_end(&stage);
}

/* ---- during other work ----------------------------------------------------------------------- */

HYP_ATTACK_WITH(h09, a_batch_is_made_whole_or_not_at_all, IN_256_MIB) {
    struct memory_stage stage;
    struct tol_block blocks[4];
    struct tol_pool_stats before, after;
    if (out_begin(attack, &stage)) {
        const size_t good[] = {100, 3 * MIB, 20 * MIB, 4096};
        for (enum hyp_memory_exhaustion_way way = HYP_MEMORY_EXHAUSTION_POOL;
             way < HYP_MEMORY_EXHAUSTION_WAYS; way++) {
            struct tol_pool *pool = hyp_memory_exhaustion_pool(attack, way);
            if (pool == NULL) continue;
            for (int at = 0; at < 4; at++) {
                size_t bad[4];
                memcpy(bad, good, sizeof bad);
                bad[at] = stage.total_bytes + 1 + (size_t)at;
                HYP_OK(attack, tol_pool_stats(pool, &before));
                REFUSED(attack, tol_pool_allocate_batch(pool, 4, bad, stage.stream, blocks),
                        bad[at]);
                HYP_OK(attack, tol_pool_stats(pool, &after));
                HYP_CHECK(attack, after.blocks == 0 && after.requested == before.requested,
                          "a rejected batch left %llu blocks", (unsigned long long)after.blocks);
                if (HYP_OK(attack, tol_pool_allocate_batch(pool, 4, good, stage.stream, blocks))) {
                    HYP_OK(attack, tol_pool_free_batch(pool, 4, blocks, stage.stream));
                }
            }
            hyp_memory_exhaustion_end(attack, pool);
            check_returned(attack, &stage, hyp_memory_exhaustion_name(way));
        }
        check_alive(attack, &stage, "after batches");
    }
    out_end(&stage);
}

static void *take_all_there(void *user) {
    struct hyp_memory_exhaustion *exhaustion = user;
    hyp_memory_exhaustion_take(exhaustion);
    return NULL;
}

HYP_ATTACK_WITH(h09, in_a_second_thread_it_is_that_threads_error, IN_256_MIB) {
    static struct hyp_memory_exhaustion exhaustion;
    struct memory_stage stage;
    bool ok = out_begin(attack, &stage);
    for (enum hyp_memory_exhaustion_way way = 0; ok && way < HYP_MEMORY_EXHAUSTION_WAYS; way++) {
        pthread_t thread;
        char message[200];
        if (!hyp_memory_exhaustion_open(attack, way, stage.stream, &exhaustion)) continue;
        snprintf(message, sizeof message, "%.199s", tol_message());
        int error = pthread_create(&thread, NULL, take_all_there, &exhaustion);
        cr_assert(error == 0, "a thread could not be created: %s", strerror(error));
        for (int i = 0; i < 10; i++)
            check_alive(attack, &stage, "while another thread runs out of memory");
        pthread_join(thread, NULL);
        HYP_CHECK(attack, strncmp(message, tol_message(), strlen(message)) == 0,
                  "another thread's failure changed this thread's message: %.300s", tol_message());
        hyp_memory_exhaustion_check(attack, &exhaustion);
        check_alive(attack, &stage, "after another thread ran out of memory");
        hyp_memory_exhaustion_free(attack, &exhaustion);
        hyp_memory_exhaustion_end(attack, exhaustion.pool);
        check_returned(attack, &stage, hyp_memory_exhaustion_name(way));
    }
    out_end(&stage);
}

/* Runs out of memory while copies are in flight; they must return what was sent. */
static void run_out_while_copying(struct hyp_attack *attack, struct memory_stage *stage,
                                  enum hyp_memory_exhaustion_way way) {
    static struct hyp_memory_exhaustion exhaustion;
    struct tol_buffer *buffers[COPIES] = {NULL};
    struct tol_pinned *there[COPIES] = {NULL}, *back[COPIES] = {NULL};
    void *sent = NULL, *got = NULL;
    bool ok = true;
    if (!hyp_memory_exhaustion_open(attack, way, stage->stream, &exhaustion)) return;
    for (int i = 0; ok && i < COPIES; i++) {
        ok = HYP_OK(attack, tol_buffer_create(attack->context, COPY_BYTES, 1, &buffers[i])) &&
             HYP_OK(attack, tol_pinned_create(attack->context, COPY_BYTES, &there[i])) &&
             HYP_OK(attack, tol_pinned_create(attack->context, COPY_BYTES, &back[i])) &&
             HYP_OK(attack, tol_pinned_access(there[i], &sent)) &&
             HYP_OK(attack, tol_pinned_access(back[i], &got));
        if (!ok) break;
        for (int k = 0; k < COPY_BYTES; k++)
            ((unsigned char *)sent)[k] = (unsigned char)(k * 7 + i);
        memset(got, ~i, COPY_BYTES);
    }
    for (int i = 0; ok && i < COPIES; i++) {
        ok = HYP_OK(attack,
                    tol_copy_to_device(stage->stream, buffers[i], 0, there[i], 0, COPY_BYTES)) &&
             HYP_OK(attack, tol_copy_to_host(stage->stream, back[i], 0, buffers[i], 0, COPY_BYTES));
    }
    hyp_memory_exhaustion_take(&exhaustion);
    hyp_memory_exhaustion_check(attack, &exhaustion);
    for (int i = 0; ok && i < COPIES; i++) {
        ok = HYP_OK(attack, tol_pinned_access(there[i], &sent)) &&
             HYP_OK(attack, tol_pinned_access(back[i], &got)) &&
             HYP_CHECK(attack, memcmp(sent, got, COPY_BYTES) == 0,
                       "copy %d returned other bytes while memory ran out", i);
    }
    hyp_memory_exhaustion_free(attack, &exhaustion);
    for (int i = 0; i < COPIES; i++) {
        tol_buffer_destroy(buffers[i]);
        tol_pinned_destroy(there[i]);
        tol_pinned_destroy(back[i]);
    }
    hyp_memory_exhaustion_end(attack, exhaustion.pool);
}

HYP_ATTACK_WITH(h09, during_copies_the_copies_arrive, IN_256_MIB) {
    struct memory_stage stage;
    bool ok = out_begin(attack, &stage);
    for (enum hyp_memory_exhaustion_way way = 0; ok && way < HYP_MEMORY_EXHAUSTION_WAYS; way++) {
        run_out_while_copying(attack, &stage, way);
        check_alive(attack, &stage, "after copies");
        check_returned(attack, &stage, hyp_memory_exhaustion_name(way));
    }
    out_end(&stage);
}
