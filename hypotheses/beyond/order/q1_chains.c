/*
 * Attacks on Q1, chains: steps in several streams that pass on blocks of numbers.
 *
 * A step reads a block and writes another: by a kernel, by a copy, or by a host function between
 * two copies. The chain knows which steps are in order already, by the rules of streams, events and
 * the legacy stream, and asks for the missing order only, so that no wait is there twice.
 */
#include "order_stage.h"

#include "harness/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { STREAMS = 5, BLOCKS = 4, HOSTS = 4, THREADS = 3, LAUNCHES = 3 };

/* How a stream comes to wait for another: by itself, or because the host has waited. */
enum {
    WAIT_EVENT = 1,
    QUERY_EVENT = 2,
    AWAIT_EVENT = 4,
    QUERY_STREAM = 8,
    AWAIT_STREAM = 16,
    AWAIT_CONTEXT = 32,
    BY_HOST = QUERY_EVENT | AWAIT_EVENT | QUERY_STREAM | AWAIT_STREAM | AWAIT_CONTEXT,
    ALL_WAYS = WAIT_EVENT | BY_HOST,
    WAYS = 6
};

enum chain_kind { APART, BLOCKING, LEGACY }; /* of a stream, to the legacy one */

/* Steps of a stream are numbered from 1 in each round; `after[t]` is the last step of stream t that
 * is in order before something. */
struct chain_stream {
    enum chain_kind kind;
    struct tol_stream *stream;
    struct tol_event *event;
    unsigned steps, after[STREAMS];
    unsigned recorded[STREAMS]; /* after the event's latest recording; [its own]: 0 if none */
};

struct chain_block {
    struct tol_buffer *buffer;
    uint32_t stamp, first_stamp; /* of the step that wrote it last, and before the round */
    unsigned writer, written;    /* the stream of that step, and its number */
    unsigned read[STREAMS];      /* the last step of each stream that reads it since */
};

/* A host function between two copies, and what it found. */
struct chain_host {
    struct tol_pinned *pinned;
    uint32_t *words;
    uint32_t expected, written;
    _Atomic unsigned calls, wrong;
};

struct chain {
    struct order_stage stage;
    struct hyp_attack *attack;
    unsigned ways;
    struct chain_stream streams[STREAMS];
    struct chain_block blocks[BLOCKS];
    struct chain_host hosts[HOSTS];
    unsigned host_count, known[STREAMS]; /* the second: steps that the host knows to have ended */
    pthread_mutex_t lock;
    unsigned left; /* steps */
    char trouble[800];
};

/* ---- what is in order ------------------------------------------------------------------------ */

static void chain_add(unsigned after[STREAMS], const unsigned more[STREAMS]) {
    for (unsigned t = 0; t < STREAMS; t++) {
        if (more[t] > after[t]) after[t] = more[t];
    }
}

/* What is before the next step of a stream, if that waits for all that is in another one now. */
static void chain_add_stream(unsigned after[STREAMS], const struct chain *c, unsigned t) {
    chain_add(after, c->streams[t].after);
    if (c->streams[t].steps > after[t]) after[t] = c->streams[t].steps;
}

/* The legacy stream waits for the blocking ones, and they for it. CUDA Driver API, "Stream
 * synchronization behavior". */
static void chain_add_implied(struct chain *c, unsigned s) {
    const enum chain_kind kind = c->streams[s].kind;
    for (unsigned t = 0; t < STREAMS && kind != APART; t++) {
        const enum chain_kind other = c->streams[t].kind;
        if (t != s && other != APART && (kind == LEGACY || other == LEGACY)) {
            chain_add_stream(c->streams[s].after, c, t);
        }
    }
}

/* ---- asking for order ------------------------------------------------------------------------ */

/* Whether a call succeeded; keeps the message of the first that did not. */
static bool chain_try(struct chain *c, tol_status status, const char *call) {
    if (status != TOL_OK && c->trouble[0] == '\0') {
        snprintf(c->trouble, sizeof c->trouble, "%.150s: %s: %.400s", call, tol_status_name(status),
                 tol_message());
    }
    return status == TOL_OK;
}
#define CHAIN_TRY(c, call) chain_try(c, call, #call)

static bool chain_record(struct chain *c, unsigned t) {
    struct chain_stream *from = &c->streams[t];
    memset(from->recorded, 0, sizeof from->recorded);
    chain_add_stream(from->recorded, c, t);
    return CHAIN_TRY(c, tol_event_record(from->event, from->stream));
}

/* The runtime waits by queries; programs also by the driver's own call. */
static bool chain_await_stream(struct chain *c, struct tol_stream *stream) {
    if (hyp_random_below(c->attack, 2) == 0) {
        return CHAIN_TRY(c, tol_stream_synchronize_for(stream, ORDER_DEADLINE_MS));
    }
    if (!CHAIN_TRY(c, tol_context_bind(c->attack->context))) return false;
    const CUresult result = c->attack->raw->cuStreamSynchronize(tol_stream_handle(stream));
    if (result != CUDA_SUCCESS && c->trouble[0] == '\0') {
        snprintf(c->trouble, sizeof c->trouble, "cuStreamSynchronize: %d", (int)result);
    }
    return result == CUDA_SUCCESS;
}

/* Queries until the answer is that the work is done. */
static bool chain_query(struct chain *c, struct tol_event *event, struct tol_stream *stream) {
    const uint64_t end = hyp_clock_ns() + ORDER_DEADLINE_MS * (uint64_t)1000000;
    tol_status status = TOL_NOT_READY;
    while (status == TOL_NOT_READY && hyp_clock_ns() < end) {
        status = event != NULL ? tol_event_query(event) : tol_stream_query(stream);
    }
    return chain_try(c, status, "a query");
}

/* One way that is drawn from those that are allowed. */
static unsigned draw_way(struct chain *c) {
    unsigned way = 0;
    while ((way & c->ways) == 0) way = 1u << hyp_random_below(c->attack, WAYS);
    return way;
}

/* Puts step number `step` of stream t before the next step of stream s. */
static bool chain_order(struct chain *c, unsigned t, unsigned step, unsigned s) {
    struct chain_stream *from = &c->streams[t];
    const unsigned way = draw_way(c);
    if (way == AWAIT_CONTEXT) {
        for (unsigned u = 0; u < STREAMS; u++) chain_add_stream(c->known, c, u);
        return CHAIN_TRY(c, tol_context_synchronize(c->attack->context, ORDER_DEADLINE_MS));
    }
    if (way == QUERY_STREAM || way == AWAIT_STREAM) {
        chain_add_stream(c->known, c, t);
        return way == QUERY_STREAM ? chain_query(c, NULL, from->stream)
                                   : chain_await_stream(c, from->stream);
    }
    /* An earlier recording is enough if it is after the step. */
    if ((from->recorded[t] < step || hyp_random_below(c->attack, 2) == 0) && !chain_record(c, t)) {
        return false;
    }
    if (way == WAIT_EVENT) {
        chain_add(c->streams[s].after, from->recorded);
        return CHAIN_TRY(c, tol_stream_wait_event(c->streams[s].stream, from->event));
    }
    chain_add(c->known, from->recorded);
    return way == QUERY_EVENT
               ? chain_query(c, from->event, NULL)
               : CHAIN_TRY(c, tol_event_synchronize_for(from->event, ORDER_DEADLINE_MS));
}

/* ---- a step ---------------------------------------------------------------------------------- */

static tol_status chain_call(void *user, char *reason, size_t bytes) {
    struct chain_host *host = user;
    (void)reason, (void)bytes;
    host->calls++;
    if (order_difference(host->expected, host->words) < ORDER_WORDS) host->wrong++;
    order_write(host->written, host->words);
    return TOL_OK;
}

static bool chain_queue_host(struct chain *c, struct tol_stream *stream, struct chain_block *from,
                             struct chain_block *to) {
    struct chain_host *host = &c->hosts[c->host_count++];
    host->expected = from->stamp;
    host->written = to->stamp = order_stamp(&c->stage);
    return CHAIN_TRY(c, tol_copy_to_host(stream, host->pinned, 0, from->buffer, 0, ORDER_BYTES)) &&
           CHAIN_TRY(c, tol_stream_call(stream, chain_call, host)) &&
           CHAIN_TRY(c, tol_copy_to_device(stream, to->buffer, 0, host->pinned, 0, ORDER_BYTES));
}

static bool chain_queue(struct chain *c, struct tol_stream *stream, struct chain_block *from,
                        struct chain_block *to) {
    const uint64_t drawn = hyp_random_below(c->attack, 8);
    if (drawn == 0 && c->host_count < HOSTS) return chain_queue_host(c, stream, from, to);
    if (drawn == 1 && from->stamp != to->stamp) {
        to->stamp = from->stamp;
        return CHAIN_TRY(c,
                         tol_copy_on_device(stream, to->buffer, 0, from->buffer, 0, ORDER_BYTES));
    }
    const uint32_t expected = from->stamp;
    to->stamp = order_stamp(&c->stage);
    return CHAIN_TRY(c, order_launch(&c->stage, stream,
                                     (struct order_pass){.from = tol_buffer_address(from->buffer),
                                                         .expected = expected,
                                                         .to = tol_buffer_address(to->buffer),
                                                         .written = to->stamp,
                                                         .is_slow = drawn < 6}));
}

static bool chain_step(struct chain *c) {
    const unsigned s = (unsigned)hyp_random_below(c->attack, STREAMS);
    const unsigned i = (unsigned)hyp_random_below(c->attack, BLOCKS);
    struct chain_block *from = &c->blocks[i];
    struct chain_block *to = &c->blocks[(i + 1 + hyp_random_below(c->attack, BLOCKS - 1)) % BLOCKS];
    struct chain_stream *at = &c->streams[s];
    chain_add_implied(c, s);
    for (unsigned t = 0; t < STREAMS; t++) {
        unsigned step = to->read[t];
        if (t == from->writer && from->written > step) step = from->written;
        if (t == to->writer && to->written > step) step = to->written;
        const bool is_in_order = t == s || step <= at->after[t] || step <= c->known[t];
        if (!is_in_order && !chain_order(c, t, step, s)) return false;
    }
    if (!chain_queue(c, at->stream, from, to)) return false;
    at->steps++;
    from->read[s] = at->steps;
    memset(to->read, 0, sizeof to->read);
    to->writer = s;
    to->written = at->steps;
    return true;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* All work has ended, so nothing needs an order. */
static void begin_round(struct chain *c) {
    for (unsigned s = 0; s < STREAMS; s++) {
        c->streams[s].steps = 0;
        memset(c->streams[s].after, 0, sizeof c->streams[s].after);
        memset(c->streams[s].recorded, 0, sizeof c->streams[s].recorded);
    }
    for (unsigned b = 0; b < BLOCKS; b++) {
        struct chain_block *block = &c->blocks[b];
        block->writer = block->written = 0;
        block->first_stamp = block->stamp;
        memset(block->read, 0, sizeof block->read);
    }
    memset(c->known, 0, sizeof c->known);
    c->host_count = 0;
}

static void clear_hosts(struct chain *c) {
    for (unsigned h = 0; h < HOSTS; h++) {
        order_write(0, c->hosts[h].words);
        c->hosts[h].calls = c->hosts[h].wrong = 0;
    }
}

/* What the host functions found, and what the blocks have now. */
static bool chain_judge(struct chain *c, const char *what) {
    struct hyp_attack *attack = c->attack;
    uint32_t words[ORDER_WORDS];
    bool ok = order_stage_settle(&c->stage) &&
              HYP_CHECK(attack, c->trouble[0] == '\0', "%s: %s", what, c->trouble) &&
              order_stage_judge(&c->stage, what);
    for (unsigned h = 0; ok && h < c->host_count; h++) {
        ok = HYP_CHECK(attack, c->hosts[h].calls == 1 && c->hosts[h].wrong == 0,
                       "%s: a host function was called %u times, and found wrong numbers %u times",
                       what, (unsigned)c->hosts[h].calls, (unsigned)c->hosts[h].wrong);
    }
    for (unsigned b = 0; ok && b < BLOCKS; b++) {
        const CUdeviceptr at = tol_buffer_address(c->blocks[b].buffer);
        const CUresult result = attack->raw->cuMemcpyDtoH_v2(words, at, sizeof words);
        const unsigned place = order_difference(c->blocks[b].stamp, words);
        ok = HYP_CHECK(attack, result == CUDA_SUCCESS && place == ORDER_WORDS,
                       "%s: at the end, a block has a wrong number at position %u", what, place);
    }
    return ok;
}

static void *chain_work(void *user) {
    struct chain *c = user;
    for (bool goes_on = true; goes_on;) {
        pthread_mutex_lock(&c->lock);
        goes_on = c->left > 0 && chain_step(c);
        c->left = goes_on ? c->left - 1 : 0;
        pthread_mutex_unlock(&c->lock);
    }
    return NULL;
}

/* Steps, queued by this thread, or by several in turns that they find themselves. */
static bool chain_round(struct chain *c, unsigned threads, unsigned steps) {
    pthread_t workers[THREADS];
    unsigned started = 0;
    begin_round(c);
    clear_hosts(c);
    c->left = steps;
    while (threads > 1 && started < threads &&
           pthread_create(&workers[started], NULL, chain_work, c) == 0) {
        started++;
    }
    if (started == 0) chain_work(c);
    while (started > 0) pthread_join(workers[--started], NULL);
    return chain_judge(c, threads > 1 ? "several threads" : "one thread");
}

/* ---- the chain ------------------------------------------------------------------------------- */

static bool chain_make_streams(struct chain *c, const enum chain_kind kinds[STREAMS]) {
    struct hyp_attack *attack = c->attack;
    for (unsigned s = 0; s < STREAMS; s++) {
        struct chain_stream *one = &c->streams[s];
        const struct tol_stream_options options = {.blocking = kinds[s] == BLOCKING};
        one->kind = kinds[s];
        if (!HYP_OK(attack, kinds[s] == LEGACY
                                ? tol_stream_adopt(attack->context, NULL, &one->stream)
                                : tol_stream_create(attack->context, &options, &one->stream)) ||
            !HYP_OK(attack, tol_event_create(attack->context, false, &one->event))) {
            return false;
        }
    }
    return true;
}

/* Writes all blocks with their stamps of before the round. */
static bool chain_fill(struct chain *c) {
    for (unsigned b = 0; b < BLOCKS; b++) {
        const struct order_pass pass = {.to = tol_buffer_address(c->blocks[b].buffer),
                                        .written = c->blocks[b].first_stamp};
        if (!HYP_OK(c->attack, order_launch(&c->stage, c->streams[1].stream, pass))) return false;
    }
    return order_stage_settle(&c->stage);
}

static bool chain_begin(struct hyp_attack *attack, struct chain *c, unsigned ways,
                        const enum chain_kind kinds[STREAMS]) {
    memset(c, 0, sizeof *c);
    c->attack = attack;
    c->ways = ways;
    pthread_mutex_init(&c->lock, NULL);
    if (!order_stage_begin(attack, &c->stage) || !chain_make_streams(c, kinds)) return false;
    for (unsigned h = 0; h < HOSTS; h++) {
        void *words = NULL;
        if (!HYP_OK(attack, tol_pinned_create(attack->context, ORDER_BYTES, &c->hosts[h].pinned)) ||
            !HYP_OK(attack, tol_pinned_access(c->hosts[h].pinned, &words))) {
            return false;
        }
        c->hosts[h].words = words;
    }
    for (unsigned b = 0; b < BLOCKS; b++) {
        c->blocks[b].stamp = c->blocks[b].first_stamp = order_stamp(&c->stage);
        if (!HYP_OK(attack,
                    tol_buffer_create(attack->context, ORDER_WORDS, 4, &c->blocks[b].buffer))) {
            return false;
        }
    }
    return chain_fill(c);
}

static void chain_end(struct chain *c) {
    (void)c->attack->raw->cuCtxSynchronize();
    for (unsigned s = 0; s < STREAMS; s++) {
        tol_event_destroy(c->streams[s].event);
        tol_stream_destroy(c->streams[s].stream);
    }
    for (unsigned h = 0; h < HOSTS; h++) tol_pinned_destroy(c->hosts[h].pinned);
    for (unsigned b = 0; b < BLOCKS; b++) tol_buffer_destroy(c->blocks[b].buffer);
    order_stage_end(&c->stage);
    pthread_mutex_destroy(&c->lock);
}

static const enum chain_kind all_apart[STREAMS] = {APART, APART, APART, APART, APART};
static const enum chain_kind beside_legacy[STREAMS] = {LEGACY, BLOCKING, BLOCKING, APART, BLOCKING};

static void chain_attack(struct hyp_attack *attack, unsigned ways,
                         const enum chain_kind kinds[STREAMS], unsigned threads) {
    enum { STEPS = 14 };
    struct chain c;
    const unsigned rounds = attack->session.full ? 240 : 60;
    bool ok = chain_begin(attack, &c, ways, kinds);
    for (unsigned i = 0; ok && i < rounds; i++) {
        ok = chain_round(&c, threads, STEPS);
        hyp_attack_progress(attack, (i + 1.0) / rounds);
    }
    chain_end(&c);
}

HYP_ATTACK_WITH(q1, streams_wait_for_events, .many_queues = true, .soft_order = "newest") {
    chain_attack(attack, WAIT_EVENT, all_apart, 1);
}

HYP_ATTACK_WITH(q1, streams_of_several_threads_wait, .many_queues = true, .soft_order = "drawn") {
    chain_attack(attack, ALL_WAYS, all_apart, THREADS);
}

HYP_ATTACK_WITH(q1, answers_come_after_the_work, .many_queues = true, .soft_order = "newest") {
    chain_attack(attack, BY_HOST, all_apart, 1);
}

HYP_ATTACK_WITH(q1, the_legacy_stream_waits, .many_queues = true, .soft_order = "newest") {
    chain_attack(attack, ALL_WAYS, beside_legacy, 1);
}

HYP_ATTACK_WITH(q1, the_legacy_stream_of_threads_waits, .many_queues = true,
                .soft_order = "drawn") {
    chain_attack(attack, WAIT_EVENT, beside_legacy, THREADS);
}

HYP_ATTACK_WITH(q1, early_work_is_in_order, .many_queues = true, .soft_order = "oldest") {
    chain_attack(attack, ALL_WAYS, all_apart, THREADS);
}

/* ---- captures -------------------------------------------------------------------------------- */

/* Steps of all streams as a graph: the first stream forks, and joins the others at the end. */
static struct tol_graph *chain_capture(struct chain *c, unsigned steps) {
    struct tol_graph *graph = NULL;
    struct chain_stream *first = &c->streams[0];
    bool ok = CHAIN_TRY(c, tol_graph_capture_begin(first->stream)) && chain_record(c, 0);
    if (!ok) return NULL;
    for (unsigned s = 1; ok && s < STREAMS; s++) {
        ok = CHAIN_TRY(c, tol_stream_wait_event(c->streams[s].stream, first->event));
    }
    for (unsigned i = 0; ok && i < steps; i++) ok = chain_step(c);
    for (unsigned s = 1; ok && s < STREAMS; s++) {
        ok = chain_record(c, s) &&
             CHAIN_TRY(c, tol_stream_wait_event(first->stream, c->streams[s].event));
    }
    (void)CHAIN_TRY(c, tol_graph_capture_end(first->stream, &graph));
    return graph;
}

/* Kernels that the blocks must be ready for, in the stream of a graph and after it. */
static bool chain_check_later(struct chain *c) {
    bool ok = true;
    for (unsigned b = 0; ok && b < BLOCKS; b++) {
        const struct order_pass pass = {.from = tol_buffer_address(c->blocks[b].buffer),
                                        .expected = c->blocks[b].stamp};
        ok = HYP_OK(c->attack, order_launch(&c->stage, c->streams[0].stream, pass));
    }
    return ok;
}

/* A capture, launched several times, each time with the blocks as they were before. */
static bool chain_captured_round(struct chain *c, unsigned steps) {
    struct tol_graph_exec *exec = NULL;
    begin_round(c);
    struct tol_graph *graph = chain_capture(c, steps);
    bool ok = HYP_CHECK(c->attack, c->trouble[0] == '\0', "a capture: %s", c->trouble) &&
              HYP_OK(c->attack, tol_graph_instantiate(graph, &exec));
    for (unsigned i = 0; ok && i < LAUNCHES; i++) {
        clear_hosts(c);
        ok = chain_fill(c) && HYP_OK(c->attack, tol_graph_launch(exec, c->streams[0].stream)) &&
             chain_check_later(c) && chain_judge(c, "a captured graph");
    }
    tol_graph_exec_destroy(exec);
    tol_graph_destroy(graph);
    return ok;
}

HYP_ATTACK_WITH(q1, captures_keep_the_order, .many_queues = true, .soft_order = "newest") {
    enum { STEPS = 12 };
    struct chain c;
    const unsigned rounds = attack->session.full ? 80 : 20;
    bool ok = chain_begin(attack, &c, WAIT_EVENT, all_apart);
    for (unsigned i = 0; ok && i < rounds; i++) {
        ok = chain_captured_round(&c, STEPS);
        hyp_attack_progress(attack, (i + 1.0) / rounds);
    }
    chain_end(&c);
}
