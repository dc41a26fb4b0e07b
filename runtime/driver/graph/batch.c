/*
 * A batch keeps what was added and compares, so it calls the driver only where something differs.
 */
#include "tollens/batch.h"

#include "core/check.h"
#include "core/nvtx.h"
#include "graph_state.h"

#include <stdlib.h>
#include <string.h>

struct item {
    const struct tol_kernel *kernel;
    struct tol_launch_shape shape;
    unsigned count, bytes_total, bytes_room;
    unsigned *bytes;       /* of each argument */
    unsigned char *values; /* consecutive, each at a multiple of 16 */
    bool is_changed;       /* since the instance was made or changed */
};

struct tol_batch {
    struct tol_context *context;
    bool unordered;
    pthread_mutex_t lock; /* guards all below */
    struct item *items;
    unsigned count; /* added since the last clear */
    unsigned made;  /* in the instance */
    unsigned room;
    struct tol_graph *graph;
    struct tol_graph_exec *exec;
    struct tol_batch_stats stats;
};

enum { ALIGNMENT = 16 };

static unsigned batch_aligned(unsigned bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

tol_status tol_batch_create(struct tol_context *context, const struct tol_batch_options *options,
                            struct tol_batch **result) {
    tol_status status = TOL_OK;
    struct tol_batch *batch = NULL;
    TOL_CHECK(context != NULL && result != NULL, TOL_INVALID_ARGUMENT,
              "tol_batch_create: an argument is NULL");
    TOL_CHECK(tol_driver_has(context->driver, TOL_FEATURE_GRAPH), TOL_UNSUPPORTED,
              "the driver has no graphs");
    batch = calloc(1, sizeof *batch);
    TOL_CHECK(batch != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a batch");
    batch->context = context;
    batch->unordered = options != NULL && options->unordered;
    pthread_mutex_init(&batch->lock, NULL);
    tol_context_retain(context);
    *result = batch;
out:
    return status;
}

void tol_batch_destroy(struct tol_batch *batch) {
    if (batch == NULL) return;
    tol_graph_exec_destroy(batch->exec);
    tol_graph_destroy(batch->graph);
    for (unsigned i = 0; i < batch->room; i++) {
        free(batch->items[i].bytes);
        free(batch->items[i].values);
    }
    free(batch->items);
    pthread_mutex_destroy(&batch->lock);
    tol_context_destroy(batch->context);
    free(batch);
}

static tol_status batch_grow(struct tol_batch *batch) {
    tol_status status = TOL_OK;
    if (batch->count < batch->room) return TOL_OK;
    unsigned room = batch->room > 0 ? 2 * batch->room : 16;
    struct item *items = realloc(batch->items, room * sizeof *items);
    TOL_CHECK(items != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for a batch of %u kernels",
              room);
    memset(items + batch->room, 0, (room - batch->room) * sizeof *items);
    batch->items = items;
    batch->room = room;
out:
    return status;
}

static bool batch_is_same(const struct item *item, const struct tol_kernel *kernel,
                          const struct tol_launch_shape *shape,
                          const struct tol_arguments *arguments) {
    if (item->kernel != kernel || memcmp(&item->shape, shape, sizeof *shape) != 0 ||
        item->count != arguments->count ||
        (item->count > 0 &&
         memcmp(item->bytes, arguments->bytes, item->count * sizeof *item->bytes) != 0)) {
        return false;
    }
    unsigned at = 0;
    for (unsigned i = 0; i < item->count; at += batch_aligned(item->bytes[i++])) {
        if (memcmp(item->values + at, arguments->values[i], item->bytes[i]) != 0) return false;
    }
    return true;
}

static tol_status batch_fill(struct item *item, const struct tol_kernel *kernel,
                             const struct tol_launch_shape *shape,
                             const struct tol_arguments *arguments) {
    tol_status status = TOL_OK;
    unsigned total = 0;
    for (unsigned i = 0; i < arguments->count; i++) total += batch_aligned(arguments->bytes[i]);
    if (arguments->count > item->count || item->bytes == NULL) {
        unsigned *bytes = realloc(item->bytes, (arguments->count + 1) * sizeof *bytes);
        TOL_CHECK(bytes != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for %u arguments",
                  arguments->count);
        item->bytes = bytes;
    }
    if (total > item->bytes_room || item->values == NULL) {
        unsigned char *values = realloc(item->values, total + ALIGNMENT);
        TOL_CHECK(values != NULL, TOL_OUT_OF_HOST_MEMORY,
                  "no host memory for %u bytes of arguments", total);
        item->values = values;
        item->bytes_room = total;
    }
    unsigned at = 0;
    for (unsigned i = 0; i < arguments->count; at += batch_aligned(arguments->bytes[i++])) {
        memcpy(item->values + at, arguments->values[i], arguments->bytes[i]);
        item->bytes[i] = arguments->bytes[i];
    }
    item->kernel = kernel;
    item->shape = *shape;
    item->count = arguments->count;
    item->bytes_total = total;
    item->is_changed = true;
out:
    return status;
}

tol_status tol_batch_add(struct tol_batch *batch, const struct tol_kernel *kernel,
                         struct tol_launch_shape shape, struct tol_arguments arguments) {
    tol_status status = TOL_OK;
    TOL_CHECK(batch != NULL, TOL_INVALID_ARGUMENT, "tol_batch_add: batch is NULL");
    TOL_TRY(tol_graph_check(batch->context, kernel, &shape, &arguments));
    pthread_mutex_lock(&batch->lock);
    status = batch_grow(batch);
    if (status == TOL_OK) {
        struct item *item = &batch->items[batch->count];
        if (!batch_is_same(item, kernel, &shape, &arguments)) {
            status = batch_fill(item, kernel, &shape, &arguments);
        }
        if (status == TOL_OK) batch->count++;
    }
    pthread_mutex_unlock(&batch->lock);
out:
    return status;
}

tol_status tol_batch_clear(struct tol_batch *batch) {
    tol_status status = TOL_OK;
    TOL_CHECK(batch != NULL, TOL_INVALID_ARGUMENT, "tol_batch_clear: batch is NULL");
    pthread_mutex_lock(&batch->lock);
    batch->count = 0;
    pthread_mutex_unlock(&batch->lock);
out:
    return status;
}

/* The arguments of an item as a launch has them; values has room for its count. */
static struct tol_arguments batch_arguments_of(const struct item *item, void **values) {
    unsigned at = 0;
    for (unsigned i = 0; i < item->count; at += batch_aligned(item->bytes[i++])) {
        values[i] = item->values + at;
    }
    return (struct tol_arguments){item->count, values, item->bytes};
}

/* Makes the graph and its instance anew. */
static tol_status batch_make(struct tol_batch *batch, void **values) {
    tol_status status = TOL_OK;
    tol_graph_exec_destroy(batch->exec);
    tol_graph_destroy(batch->graph);
    batch->exec = NULL;
    batch->graph = NULL;
    batch->made = 0;
    TOL_TRY(tol_graph_create(batch->context, &batch->graph));
    for (unsigned i = 0; i < batch->count; i++) {
        const struct item *item = &batch->items[i];
        unsigned before = i - 1;
        bool is_after = i > 0 && !batch->unordered;
        TOL_TRY(tol_graph_add_kernel(batch->graph, item->kernel, item->shape,
                                     batch_arguments_of(item, values), is_after ? &before : NULL,
                                     is_after, NULL));
    }
    TOL_TRY(tol_graph_instantiate(batch->graph, &batch->exec));
    batch->made = batch->count;
    batch->stats.graphs++;
    for (unsigned i = 0; i < batch->count; i++) batch->items[i].is_changed = false;
out:
    return status;
}

static tol_status batch_change(struct tol_batch *batch, void **values) {
    tol_status status = TOL_OK;
    for (unsigned i = 0; i < batch->count; i++) {
        struct item *item = &batch->items[i];
        if (!item->is_changed) continue;
        TOL_TRY(tol_graph_exec_set_kernel(batch->exec, i, item->kernel, item->shape,
                                          batch_arguments_of(item, values)));
        item->is_changed = false;
        batch->stats.changes++;
    }
out:
    return status;
}

tol_status tol_batch_launch(struct tol_batch *batch, struct tol_stream *stream) {
    TOL_RANGE("tol_batch_launch", 0);
    tol_status status = TOL_OK;
    void *few[64], **values = few;
    unsigned most = 0;
    TOL_CHECK(batch != NULL && stream != NULL, TOL_INVALID_ARGUMENT,
              "tol_batch_launch: an argument is NULL");
    pthread_mutex_lock(&batch->lock);
    for (unsigned i = 0; i < batch->count; i++) {
        if (batch->items[i].count > most) most = batch->items[i].count;
    }
    if (most > sizeof few / sizeof few[0]) values = malloc(most * sizeof(void *));
    if (values == NULL) {
        status = tol_fail(__FILE__, __LINE__, TOL_OUT_OF_HOST_MEMORY,
                          "no host memory for %u arguments", most);
    } else if (batch->count > 0) {
        bool fits = batch->exec != NULL && batch->made == batch->count;
        status = fits ? batch_change(batch, values) : batch_make(batch, values);
        if (status == TOL_OK) status = tol_graph_launch(batch->exec, stream);
        batch->stats.launches += status == TOL_OK;
    }
    pthread_mutex_unlock(&batch->lock);
    if (values != few) free(values);
out:
    return status;
}

tol_status tol_batch_stats(struct tol_batch *batch, struct tol_batch_stats *stats) {
    tol_status status = TOL_OK;
    TOL_CHECK(batch != NULL && stats != NULL, TOL_INVALID_ARGUMENT,
              "tol_batch_stats: an argument is NULL");
    pthread_mutex_lock(&batch->lock);
    *stats = batch->stats;
    stats->kernels = batch->count;
    pthread_mutex_unlock(&batch->lock);
out:
    return status;
}
