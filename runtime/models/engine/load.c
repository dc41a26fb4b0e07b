/*
 * Loading: creates everything that a model needs on a device, or nothing.
 */
#include "loaded_state.h"

#include "core/check.h"
#include "core/monotonic.h"
#include "decode/best.h"
#include "decode/draw.h"
#include "device_team.h"
#include "pass.h"
#include "pass_draw.h"
#include "pass_graphs.h"
#include "prompt.h"
#include "quantised/formats/rounded.h"
#include "share.h"

#include <stdlib.h>

enum {
    CONTEXT = 4096,
    SESSIONS = 32,
    SESSIONS_MAX = 4096,
    ROWS = 512,
    ROWS_MAX = 4096,
    PROMPT_ROWS = 2048,
    PROMPT_FROM = 64,
    CHUNK = 3 << 20,
    DEADLINE_MS = 60000,
    PARTS = 32 << 20, /* for the parts of attention of a prompt's rows, in bytes */
    ALIGNMENT = 256
};

static tol_status load_read_options(struct tol_loaded *l, const struct tol_load_options *options,
                                    size_t *chunk) {
    tol_status status = TOL_OK;
    const size_t made_for = l->shape.context_max;
    l->cache = options->cache;
    l->positions = options->context;
    if (l->positions == 0) l->positions = made_for < CONTEXT ? made_for : CONTEXT;
    l->sessions = options->sessions > 0 ? options->sessions : SESSIONS;
    l->rows = options->rows > 0 ? options->rows : ROWS;
    l->deadline_ms = options->deadline_ms > 0 ? options->deadline_ms : DEADLINE_MS;
    if (l->rows < l->sessions) l->rows = l->sessions;
    *chunk = options->chunk_bytes > 0 ? options->chunk_bytes : CHUNK;
    TOL_CHECK(l->positions <= made_for, TOL_INVALID_ARGUMENT,
              "a context of %zu positions is wanted, but the model was made for %zu", l->positions,
              made_for);
    TOL_CHECK(l->sessions <= SESSIONS_MAX && l->rows <= ROWS_MAX, TOL_INVALID_ARGUMENT,
              "%zu sessions and %zu rows of a pass; at most %d and %d", l->sessions, l->rows,
              SESSIONS_MAX, ROWS_MAX);
    TOL_CHECK(options->prompt_rows <= ROWS_MAX, TOL_INVALID_ARGUMENT,
              "%zu positions of a prompt at once; at most %d", options->prompt_rows, ROWS_MAX);
    TOL_CHECK((unsigned)l->cache < KN_CACHES, TOL_INVALID_ARGUMENT, "no kind of cache is %d",
              (int)l->cache);
    TOL_CHECK(l->cache != KN_CACHE_Q8_0 || l->shape.head_size % 32 == 0, TOL_INVALID_ARGUMENT,
              "a cache of Q8_0 needs heads of a multiple of 32 elements, and the model's have %zu",
              l->shape.head_size);
    TOL_CHECK(*chunk >= ALIGNMENT, TOL_INVALID_ARGUMENT, "chunks of %zu bytes; at least %d", *chunk,
              ALIGNMENT);
    if (*chunk > l->shape.weight_bytes) *chunk = l->shape.weight_bytes + ALIGNMENT;
    *chunk = *chunk / ALIGNMENT * ALIGNMENT;
    TOL_CHECK(l->share.ranks == 1 || options->way != KN_WAY_RING, TOL_INVALID_ARGUMENT,
              "columns cannot be exchanged by a ring, only directly or by flags");
out:
    return status;
}

/* The next array of the scratch buffer. */
static size_t load_take(size_t *at, size_t count) {
    const size_t offset = *at;
    *at = (offset + count * sizeof(float) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return offset;
}

/* The gates of a pass, if they are not made in the product of up. */
static size_t load_gates(const struct tol_loaded *l) {
    bool is_apart = false;
    for (size_t i = 0; i < l->shape.layers; i++) {
        is_apart |= l->layers[i].gate.format != l->layers[i].up.format;
    }
    return is_apart ? l->rows * l->share.feed_forward : 0;
}

static tol_status make_scratch(struct tol_loaded *l) {
    tol_status status = TOL_OK;
    const struct tol_model_shape *s = &l->shape;
    struct loaded_scratch *scratch = &l->scratch;
    const struct kn_paged_heads heads = loaded_heads(l);
    const size_t spans = (l->positions + KN_PAGED_SPAN - 1) / KN_PAGED_SPAN;
    const size_t rows = l->rows > l->prompt.rows ? l->rows : l->prompt.rows;
    void *zeros = NULL;
    size_t at = 0;
    scratch->x = load_take(&at, l->rows * s->width);
    scratch->normed = load_take(&at, l->rows * s->width);
    scratch->qkv = load_take(&at, l->rows * (s->heads + 2 * s->kv_heads) * s->head_size);
    scratch->attended = load_take(&at, l->rows * s->heads * s->head_size);
    scratch->activated = load_take(&at, l->rows * s->feed_forward);
    scratch->gates = load_take(&at, load_gates(l));
    scratch->logits = load_take(&at, l->sessions * l->share.vocabulary_most);
    scratch->notices = load_take(&at, loaded_notices_bytes(l) / sizeof(float) + l->sessions);
    scratch->best = scratch->notices + loaded_notices_bytes(l);
    scratch->keys = load_take(&at, kn_best_workspace(l->sessions) / sizeof(float));
    /* All sessions at their ends must fit; prompts are cut to what does. */
    scratch->parts_bytes = kn_paged_workspace(&heads, l->sessions, spans);
    const size_t useful = kn_paged_workspace(&heads, l->rows, spans);
    if (scratch->parts_bytes < PARTS) scratch->parts_bytes = useful < PARTS ? useful : PARTS;
    scratch->parts = load_take(&at, scratch->parts_bytes / sizeof(float));
    const size_t attended = s->heads * s->head_size;
    const size_t widest = s->feed_forward > attended ? s->feed_forward : attended;
    scratch->split_bytes = kn_linear_workspace(l->rows, widest > s->width ? widest : s->width);
    scratch->split = load_take(&at, scratch->split_bytes / sizeof(float));
    scratch->fed_bytes = kn_rounded_bytes(l->rows, widest);
    scratch->fed = load_take(&at, scratch->fed_bytes / sizeof(float));
    scratch->tickets_bytes = kn_linear_tickets(l->rows, s->feed_forward);
    scratch->tickets = load_take(&at, scratch->tickets_bytes / sizeof(float));
    scratch->draws = load_take(&at, kn_draw_workspace(l->draws ? l->sessions : 0) / sizeof(float));
    TOL_TRY(tol_buffer_create(l->context, at, 1, &scratch->buffer));
    TOL_TRY(
        tol_buffer_fill_at(scratch->buffer, scratch->notices, 0xff, 1, loaded_notices_bytes(l)));
    zeros = calloc(1, scratch->tickets_bytes + 1);
    TOL_CHECK(zeros != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu bytes", scratch->tickets_bytes);
    TOL_TRY(tol_buffer_write_at(scratch->buffer, scratch->tickets, zeros, scratch->tickets_bytes));
    if (l->share.ranks > 1) { /* whole tiles are exchanged, whatever of them has been written */
        TOL_TRY(tol_buffer_fill_at(scratch->buffer, scratch->fed, 0, 1, scratch->fed_bytes));
    }
    const size_t drawing = l->draws ? loaded_draw_end(l->sessions) : 0;
    const size_t plain = (3 * rows + 1) * sizeof(int), input = plain > drawing ? plain : drawing;
    TOL_TRY(tol_buffer_create(l->context, input, 1, &l->input));
    TOL_TRY(tol_buffer_create(l->context, loaded_slots(l) * l->pages_max, sizeof(uint64_t),
                              &l->tables));
    TOL_TRY(tol_pinned_create(l->context, input, &l->sent));
    TOL_TRY(tol_pinned_create(l->context, loaded_received_bytes(l), &l->received));
out:
    free(zeros);
    return status;
}

static tol_status load_weights(struct tol_loaded *l, const struct tol_model *model,
                               const struct tol_load_options *options, size_t chunk,
                               struct loaded_pieces *pieces) {
    tol_status status = TOL_OK;
    if (l->upload == NULL) TOL_TRY(loaded_upload_begin(l, model, chunk, options));
    TOL_TRY(loaded_upload_run(l, pieces));
    TOL_TRY(tol_buffer_write_at(l->weights, l->frequencies.address - tol_buffer_address(l->weights),
                                tol_model_parts(model)->frequencies, l->frequencies.bytes));
    if (options->verify) TOL_TRY(loaded_verify(l, pieces));
out:
    return status;
}

/* Plans the weights of all devices, then brings them there, one device after the other. */
static tol_status load_all_weights(struct tol_loaded *l, const struct tol_model *model,
                                   const struct tol_load_options *options, size_t chunk) {
    tol_status status = TOL_OK;
    struct loaded_pieces pieces[KN_COLLECTIVE_RANKS_MAX] = {{0}};
    uint64_t all = 0;
    bool resident = false;
    for (unsigned i = 0; i < l->share.ranks; i++) {
        struct tol_loaded *part = l->team.part[i];
        size_t bytes = 0;
        TOL_TRY(loaded_plan(part, model, chunk, &pieces[i], &bytes));
        TOL_TRY(tol_buffer_create(part->context, bytes, 1, &part->weights));
        loaded_place(part);
        pieces[i].before = all;
        all += pieces[i].bytes;
    }
    TOL_TRY(loaded_upload_await(l));
    const uint64_t begin = tol_now_ns();
    for (unsigned i = 0; i < l->share.ranks; i++) {
        pieces[i].all = all;
        TOL_TRY(load_weights(l->team.part[i], model, options, chunk, &pieces[i]));
    }
    l->read_ns = tol_now_ns() - begin;
    TOL_TRY(tol_loaded_is_resident(l, &resident));
    TOL_CHECK(resident, TOL_NOT_RESIDENT, "the weights are not in the device's own memory");
out:
    for (unsigned i = 0; i < l->share.ranks; i++) {
        if (status != TOL_OK) (void)loaded_upload_end(l->team.part[i]);
        free(pieces[i].list);
    }
    return status;
}

/* What the first device keeps of the sessions. */
static tol_status make_sessions(struct tol_loaded *l) {
    tol_status status = TOL_OK;
    l->slots = calloc(l->sessions, sizeof *l->slots);
    l->step_rows = calloc(l->sessions, sizeof *l->step_rows);
    l->step_samplers = calloc(l->sessions, sizeof *l->step_samplers);
    TOL_CHECK(l->slots != NULL && l->step_rows != NULL && l->step_samplers != NULL,
              TOL_OUT_OF_HOST_MEMORY, "%zu sessions", l->sessions);
out:
    return status;
}

/* A device's part, without weights and memory for passes. */
static tol_status make_part(const struct tol_model *model, const struct tol_load_options *options,
                            unsigned rank, struct tol_context *context, size_t *chunk,
                            struct tol_loaded **made) {
    tol_status status = TOL_OK;
    struct tol_loaded *l = calloc(1, sizeof *l);
    TOL_CHECK(l != NULL, TOL_OUT_OF_HOST_MEMORY, "a loaded model");
    *made = l;
    pthread_mutex_init(&l->lock, NULL);
    pthread_mutex_init(&l->moving, NULL);
    l->context = context;
    l->shape = *tol_model_shape(model);
    l->share.ranks = 1;
    l->team.part[0] = l;
    l->shares = !options->alone;
    TOL_CHECK(context != NULL, TOL_INVALID_ARGUMENT, "the context of device %u is NULL", rank);
    TOL_TRY(loaded_share(&l->shape, rank, 1 + options->peer_count, &l->share));
    TOL_TRY(load_read_options(l, options, chunk));
    l->draws =
        l->share.ranks == 1 && !options->draws_on_host && l->shape.vocabulary <= DRAW_COLUMNS;
    const struct kn_paged_heads heads = loaded_heads(l);
    l->pages_max = (l->positions + KN_PAGE_POSITIONS - 1) / KN_PAGE_POSITIONS;
    l->page_bytes = l->shape.layers * kn_paged_layer_bytes(&heads);
    l->layers = calloc(l->shape.layers, sizeof *l->layers);
    TOL_CHECK(l->layers != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu layers", l->shape.layers);
    if (rank == 0) TOL_TRY(make_sessions(l));
    if (rank == 0) TOL_TRY(loaded_upload_begin(l, model, *chunk, options));
    TOL_TRY(kn_kernels_create(context, &l->kernels));
    status = tol_stream_create(context, NULL, &l->stream);
out:
    return status;
}

tol_status loaded_make_room(struct tol_loaded *l) {
    tol_status status = TOL_OK;
    struct tol_pool_options pages;
    TOL_TRY(make_scratch(l));
    /* Sessions that step together need pages at the same time; handles of several pages keep driver
     * calls rare. */
    tol_pool_latency(tol_context_device(l->context), &pages);
    pages.limit_bytes = l->cache_bytes;
    status = tol_pool_create(l->context, &pages, &l->pool);
out:
    return status;
}

/* All memory for passes and pages, of all devices. */
static tol_status make_all_room(struct tol_loaded *l, const struct tol_load_options *options) {
    tol_status status = TOL_OK;
    const size_t rows = options->prompt_rows > 0 ? options->prompt_rows : PROMPT_ROWS;
    const size_t from = options->prompt_from > 0 ? options->prompt_from : PROMPT_FROM;
    for (unsigned i = 0; i < l->share.ranks; i++) l->team.part[i]->prompt.from = from;
    if (from <= l->positions) {
        TOL_TRY(loaded_prompt_make(l, rows < l->positions ? rows : l->positions));
    }
    for (unsigned i = 0; i < l->share.ranks; i++) {
        l->team.part[i]->cache_bytes = options->cache_bytes / l->share.ranks;
        TOL_TRY(loaded_make_room(l->team.part[i]));
    }
out:
    return status;
}

tol_status tol_model_load(const struct tol_model *model, struct tol_context *context,
                          const struct tol_load_options *options, struct tol_loaded **loaded) {
    tol_status status = TOL_OK;
    const struct tol_load_options none = {0};
    const struct tol_load_options *wanted = options != NULL ? options : &none;
    struct tol_loaded *l = NULL;
    size_t chunk = 0;
    TOL_CHECK(model != NULL && context != NULL && loaded != NULL, TOL_INVALID_ARGUMENT,
              "loading needs a model and a context");
    TOL_CHECK(wanted->peer_count < KN_COLLECTIVE_RANKS_MAX &&
                  (wanted->peer_count == 0 || wanted->peers != NULL),
              TOL_INVALID_ARGUMENT, "%u further devices; at most %d", wanted->peer_count,
              KN_COLLECTIVE_RANKS_MAX - 1);
    TOL_TRY(make_part(model, wanted, 0, context, &chunk, &l));
    for (unsigned i = 1; i < l->share.ranks; i++) {
        TOL_TRY(make_part(model, wanted, i, wanted->peers[i - 1], &chunk, &l->team.part[i]));
    }
    TOL_TRY(loaded_team_join(l, wanted));
    TOL_TRY(load_all_weights(l, model, wanted, chunk));
    TOL_TRY(make_all_room(l, wanted));
    for (unsigned i = 0; i < l->share.ranks; i++) {
        TOL_CHECK(loaded_upload_end(l->team.part[i]), TOL_TIMEOUT,
                  "a thread that read the model has not ended after %u ms", l->deadline_ms);
    }
    *loaded = l;
    l = NULL;
out:
    tol_model_unload(l);
    return status;
}

void loaded_part_end(struct tol_loaded *l) {
    if (l == NULL) return;
    (void)loaded_upload_end(l);
    loaded_prompt_end(l);
    tol_pool_destroy(l->pool);
    tol_buffer_destroy(l->scratch.buffer);
    tol_buffer_destroy(l->input);
    tol_buffer_destroy(l->tables);
    tol_pinned_destroy(l->sent);
    tol_pinned_destroy(l->received);
    tol_buffer_destroy(l->weights);
    tol_stream_destroy(l->stream);
    kn_kernels_destroy(l->kernels);
    pthread_mutex_destroy(&l->lock);
    pthread_mutex_destroy(&l->moving);
    free(l->layers);
    free(l->slots);
    free(l->step_rows);
    free(l->step_samplers);
    free(l);
}

void tol_model_unload(struct tol_loaded *l) {
    if (l == NULL) return;
    loaded_graphs_end(l);
    loaded_team_end(l);
    for (unsigned i = 1; i < l->share.ranks; i++) loaded_part_end(l->team.part[i]);
    loaded_part_end(l);
}

const struct tol_model_shape *tol_loaded_shape(const struct tol_loaded *loaded) {
    return &loaded->shape;
}

struct tol_context *tol_loaded_context(const struct tol_loaded *loaded) {
    return loaded->context;
}

static uint64_t scratch_bytes(const struct tol_loaded *l) {
    return tol_buffer_bytes(l->scratch.buffer) + tol_buffer_bytes(l->input) +
           tol_buffer_bytes(l->tables) +
           (l->prompt.buffer != NULL ? tol_buffer_bytes(l->prompt.buffer) : 0);
}

void tol_loaded_stats(struct tol_loaded *l, struct tol_loaded_stats *stats) {
    pthread_mutex_lock(&l->lock);
    *stats = (struct tol_loaded_stats){.devices = l->share.ranks,
                                       .context = l->positions,
                                       .read_ns = l->read_ns,
                                       .prompt_rows = l->prompt.rows,
                                       .page_bytes = l->share.ranks * l->page_bytes,
                                       .pages = l->pages,
                                       .reused = l->reused,
                                       .passes = l->passes,
                                       .launched_graphs = l->launched_graphs};
    for (unsigned i = 0; i < l->share.ranks; i++) {
        stats->weight_bytes += tol_buffer_bytes(l->team.part[i]->weights);
        stats->scratch_bytes += scratch_bytes(l->team.part[i]);
    }
    pthread_mutex_unlock(&l->lock);
}
