/*
 * Three streams and a ring of slots.
 *
 * The events of a slot define the order: the copy to the device waits only for its slot, the work
 * waits for that copy, the copy to the host waits for the work. The host waits for a slot's copy to
 * the host before it fills the slot again, so it never writes memory that a copy uses.
 */
#include "tollens/pipeline.h"

#include "core/check.h"
#include "core/nvtx.h"
#include "core/deadline.h"
#include "core/context_state.h"

#include <stdlib.h>

enum { SLOTS = 4, SLOTS_MAX = 64 };

/* The events of a block: the beginning and the end of the copy in, the work and the copy out. */
enum block_event { IN_BEGIN, IN_END, WORK_BEGIN, WORK_END, OUT_BEGIN, OUT_END, BLOCK_EVENTS };

struct slot {
    struct tol_pinned *there, *back;
    struct tol_buffer *input, *output; /* the same if the work is in place */
    struct tol_event *events[BLOCK_EVENTS];
    unsigned long long index;
    bool is_used, is_timed; /* a block is on its way; one was */
};

struct tol_pipeline {
    struct tol_context *context;
    struct tol_pipeline_options options;
    struct tol_stream *in, *work, *out; /* all the same if it is serial */
    struct tol_event *origin;
    struct slot *slots;
};

static tol_status make_slot(struct tol_pipeline *pipeline, struct slot *slot) {
    tol_status status = TOL_OK;
    const struct tol_pipeline_options *options = &pipeline->options;
    TOL_TRY(tol_pinned_create(pipeline->context, options->input_bytes, &slot->there));
    TOL_TRY(tol_buffer_create(pipeline->context, options->input_bytes, 1, &slot->input));
    slot->output = slot->input;
    size_t output_bytes = options->input_bytes;
    if (options->output_bytes > 0) {
        output_bytes = options->output_bytes;
        slot->output = NULL;
        TOL_TRY(tol_buffer_create(pipeline->context, output_bytes, 1, &slot->output));
    }
    TOL_TRY(tol_pinned_create(pipeline->context, output_bytes, &slot->back));
    for (int i = 0; i < BLOCK_EVENTS; i++) {
        TOL_TRY(tol_event_create(pipeline->context, true, &slot->events[i]));
    }
out:
    return status;
}

tol_status tol_pipeline_create(struct tol_context *context,
                               const struct tol_pipeline_options *options,
                               struct tol_pipeline **result) {
    tol_status status = TOL_OK;
    struct tol_pipeline *pipeline = NULL;
    TOL_CHECK(context != NULL && options != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_pipeline_create: an argument is NULL");
    TOL_CHECK(options->fill != NULL && options->work != NULL && options->take != NULL,
              TOL_INVALID_ARGUMENT, "fill, work or take is NULL");
    TOL_CHECK(options->input_bytes > 0, TOL_INVALID_ARGUMENT, "input_bytes is 0");
    TOL_CHECK(options->slots != 1 && options->slots <= SLOTS_MAX, TOL_INVALID_ARGUMENT,
              "slots must be 2 to %d, not %u", SLOTS_MAX, options->slots);
    pipeline = calloc(1, sizeof *pipeline);
    TOL_CHECK(pipeline != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a pipeline");
    pipeline->options = *options;
    if (options->slots == 0) pipeline->options.slots = SLOTS;
    pipeline->context = context;
    tol_context_retain(context);
    pipeline->slots = calloc(pipeline->options.slots, sizeof *pipeline->slots);
    TOL_CHECK(pipeline->slots != NULL, TOL_OUT_OF_HOST_MEMORY,
              "no host memory for the slots of a pipeline");
    TOL_TRY(tol_stream_create(context, NULL, &pipeline->in));
    if (options->serial) {
        pipeline->work = pipeline->out = pipeline->in;
    } else {
        TOL_TRY(tol_stream_create(context, NULL, &pipeline->work));
        TOL_TRY(tol_stream_create(context, NULL, &pipeline->out));
    }
    TOL_TRY(tol_event_create(context, true, &pipeline->origin));
    for (unsigned i = 0; i < pipeline->options.slots; i++) {
        TOL_TRY(make_slot(pipeline, &pipeline->slots[i]));
    }
    *result = pipeline;
    pipeline = NULL;
out:
    tol_pipeline_destroy(pipeline);
    return status;
}

void tol_pipeline_destroy(struct tol_pipeline *pipeline) {
    if (pipeline == NULL) return;
    for (unsigned i = 0; pipeline->slots != NULL && i < pipeline->options.slots; i++) {
        struct slot *slot = &pipeline->slots[i];
        tol_pinned_destroy(slot->there); /* these wait for their copies */
        tol_pinned_destroy(slot->back);
        if (slot->output != slot->input) tol_buffer_destroy(slot->output);
        tol_buffer_destroy(slot->input);
        for (int k = 0; k < BLOCK_EVENTS; k++) tol_event_destroy(slot->events[k]);
    }
    tol_event_destroy(pipeline->origin);
    if (!pipeline->options.serial) {
        tol_stream_destroy(pipeline->work);
        tol_stream_destroy(pipeline->out);
    }
    tol_stream_destroy(pipeline->in);
    free(pipeline->slots);
    tol_context_destroy(pipeline->context);
    free(pipeline);
}

/* Queues the three steps of a block whose input is in the slot. */
static tol_status pipeline_queue(struct tol_pipeline *pipeline, struct slot *slot) {
    tol_status status = TOL_OK;
    const struct tol_pipeline_options *options = &pipeline->options;
    struct tol_event **events = slot->events;
    const struct tol_pipeline_block block = {
        .index = slot->index,
        .slot = (unsigned)(slot - pipeline->slots),
        .input = slot->input,
        .output = slot->output,
        .input_bytes = options->input_bytes,
        .output_bytes = tol_buffer_bytes(slot->output),
    };
    TOL_TRY(tol_event_record(events[IN_BEGIN], pipeline->in));
    TOL_TRY(tol_copy_to_device(pipeline->in, slot->input, 0, slot->there, 0, options->input_bytes));
    TOL_TRY(tol_event_record(events[IN_END], pipeline->in));
    if (!options->serial) TOL_TRY(tol_stream_wait_event(pipeline->work, events[IN_END]));
    TOL_TRY(tol_event_record(events[WORK_BEGIN], pipeline->work));
    TOL_TRY(options->work(options->user, pipeline->work, &block));
    TOL_TRY(tol_event_record(events[WORK_END], pipeline->work));
    if (!options->serial) TOL_TRY(tol_stream_wait_event(pipeline->out, events[WORK_END]));
    TOL_TRY(tol_event_record(events[OUT_BEGIN], pipeline->out));
    TOL_TRY(tol_copy_to_host(pipeline->out, slot->back, 0, slot->output, 0, block.output_bytes));
    TOL_TRY(tol_event_record(events[OUT_END], pipeline->out));
    slot->is_used = slot->is_timed = true;
out:
    return status;
}

static tol_status pipeline_take(struct tol_pipeline *pipeline, struct slot *slot,
                                unsigned long long *taken) {
    tol_status status = TOL_OK;
    void *data = NULL;
    if (!slot->is_used) return TOL_OK;
    TOL_TRY(tol_pinned_access(slot->back, &data));
    slot->is_used = false;
    TOL_TRY(pipeline->options.take(pipeline->options.user, slot->index, data));
    ++*taken;
out:
    return status;
}

/* After a failure: waits for work in flight and forgets it. The next run uses the same slots, whose
 * events must not refer to earlier work. */
static void pipeline_settle(struct tol_pipeline *pipeline) {
    struct tol_stream *const streams[] = {pipeline->in, pipeline->work, pipeline->out};
    struct tol_deadline deadline = tol_deadline_after(TOL_DEADLINE_MS);
    for (int i = 0; i < 3; i++) (void)tol_deadline_settle(streams[i], &deadline);
    for (unsigned i = 0; i < pipeline->options.slots; i++) pipeline->slots[i].is_used = false;
}

tol_status tol_pipeline_run(struct tol_pipeline *pipeline, unsigned long long *blocks) {
    TOL_RANGE("tol_pipeline_run", 0);
    tol_status status = TOL_OK;
    unsigned long long index = 0, taken = 0;
    unsigned slots = 0;
    void *data = NULL;
    TOL_CHECK(pipeline != NULL, TOL_INVALID_ARGUMENT, "tol_pipeline_run: pipeline is NULL");
    slots = pipeline->options.slots;
    for (unsigned i = 0; i < slots; i++) pipeline->slots[i].is_timed = false;
    TOL_TRY(tol_event_record(pipeline->origin, pipeline->in));
    for (;; index++) {
        struct slot *slot = &pipeline->slots[index % slots];
        TOL_TRY(pipeline_take(pipeline, slot, &taken));
        TOL_TRY(tol_pinned_access(slot->there, &data));
        status = pipeline->options.fill(pipeline->options.user, index, data);
        if (status == TOL_NOT_FOUND) break;
        if (status != TOL_OK) goto out;
        slot->index = index;
        TOL_TRY(pipeline_queue(pipeline, slot));
    }
    status = TOL_OK;
    for (unsigned i = 0; i < slots; i++) {
        TOL_TRY(pipeline_take(pipeline, &pipeline->slots[(index + i) % slots], &taken));
    }
out:
    if (pipeline != NULL && blocks != NULL) *blocks = taken;
    if (slots > 0 && status != TOL_OK) pipeline_settle(pipeline);
    return status;
}

tol_status tol_pipeline_times(struct tol_pipeline *pipeline, unsigned long long index,
                              struct tol_pipeline_times *times) {
    tol_status status = TOL_OK;
    TOL_CHECK(pipeline != NULL && times != NULL, TOL_INVALID_ARGUMENT,
              "tol_pipeline_times: an argument is NULL");
    struct slot *slot = &pipeline->slots[index % pipeline->options.slots];
    TOL_CHECK(slot->is_timed && slot->index == index, TOL_NOT_FOUND,
              "the times of block %llu are not kept: a later block has used its slot, or it was "
              "not in the last run",
              index);
    double *const where[BLOCK_EVENTS] = {&times->to_device[0], &times->to_device[1],
                                         &times->work[0],      &times->work[1],
                                         &times->to_host[0],   &times->to_host[1]};
    /* Recorded after the event of the block's copy to the host. */
    TOL_TRY(tol_event_synchronize(slot->events[OUT_END]));
    for (int i = 0; i < BLOCK_EVENTS; i++) {
        TOL_TRY(tol_event_elapsed_ns(pipeline->origin, slot->events[i], where[i]));
    }
out:
    return status;
}
