/*
 * A traced pass, and the kernels in what the trace writes.
 */
#include "model_gaps.h"

#include "decode_session.h"
#include "files/atomic_file.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The second of two passes of the same kernels: the first one loads them. */
static tol_status run_passes(struct tol_loaded *loaded) {
    tol_status status = TOL_OK;
    const int token = 1;
    for (int i = 0; i < 2 && status == TOL_OK; i++) {
        struct tol_session *session = NULL;
        /* Another form, because a pass that repeats its form is a graph. */
        const struct tol_session_options options = {.keeps_logits = i == 1};
        status = tol_session_create(loaded, &options, &session);
        if (status == TOL_OK) status = tol_session_prompt(session, &token, 1);
        tol_session_destroy(session);
    }
    return status;
}

static tol_status trace_passes(const char *path, enum hyp_device_kind kind, int ordinal,
                               FILE *file) {
    /* The copies that load a model do not fit in a trace. */
    static const struct tol_trace_options options = {
        .begins = TOL_TRACE_BEGINS_EACH, .share = 1, .kernels_only = true};
    struct tol_driver *driver = NULL;
    struct tol_context *context = NULL;
    struct tol_model *model = NULL;
    struct tol_loaded *loaded = NULL;
    tol_status status = tol_model_open(path, &model);
    if (status == TOL_OK) status = hyp_session_open(&kind, &driver);
    if (status == TOL_OK) status = tol_trace_install(driver, &options, NULL);
    if (status == TOL_OK) status = tol_context_create(driver, ordinal, &context);
    if (status == TOL_OK) {
        status = tol_model_load(model, context,
                                &(struct tol_load_options){.context = 16, .sessions = 1}, &loaded);
    }
    if (status == TOL_OK) status = run_passes(loaded);
    if (status == TOL_OK) status = tol_trace_write(file, "model bench", false);
    tol_model_unload(loaded);
    tol_context_destroy(context);
    if (driver != NULL) tol_trace_remove(driver);
    tol_driver_close(driver);
    tol_model_close(model);
    return status;
}

struct traced_kernel {
    double begin, length;
};

static int compare_begins(const void *a, const void *b) {
    const double difference =
        ((const struct traced_kernel *)a)->begin - ((const struct traced_kernel *)b)->begin;
    return difference > 0 ? 1 : difference < 0 ? -1 : 0;
}

/* Of the kernels in the order of their beginnings, the second half is the second pass. */
static bool model_gaps_add_up(const json_t *root, struct hyp_model_kernels *kernels) {
    const json_t *events = json_is_array(root) ? root : json_object_get(root, "traceEvents");
    struct traced_kernel *found = calloc(json_array_size(events) + 1, sizeof *found);
    size_t count = 0, i = 0;
    const json_t *event = NULL;
    if (found == NULL) return false;
    json_array_foreach(events, i, event) {
        const char *what = json_string_value(json_object_get(event, "cat"));
        if (what == NULL || strcmp(what, "kernel") != 0) continue;
        found[count++] = (struct traced_kernel){json_number_value(json_object_get(event, "ts")),
                                                json_number_value(json_object_get(event, "dur"))};
    }
    qsort(found, count, sizeof *found, compare_begins);
    *kernels = (struct hyp_model_kernels){.count = count / 2};
    for (i = count / 2; i < count; i++) kernels->ns += found[i].length * 1e3;
    free(found);
    return (count > 0 && count % 2 == 0) ||
           hyp_fail("%zu kernels of two passes were traced, which is not as many of each", count);
}

tol_status hyp_model_kernels(const char *path, enum hyp_device_kind kind, int ordinal,
                             struct hyp_model_kernels *kernels) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    if (file == NULL) return TOL_OUT_OF_HOST_MEMORY;
    const tol_status status = trace_passes(path, kind, ordinal, file);
    fclose(file);
    json_t *root = status == TOL_OK ? json_loadb(text, bytes, 0, NULL) : NULL;
    const bool is_read = model_gaps_add_up(root, kernels);
    json_decref(root);
    free(text);
    return status != TOL_OK || is_read ? status : TOL_INVALID_FILE;
}
