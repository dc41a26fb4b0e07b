/*
 * The rows as a file of JSON, which is at each moment a whole one: it is written beside its place
 * and renamed.
 */
#include "bench_json.h"

#include "bench_state.h"
#include "core/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Text that others wrote, as a string of JSON. */
static void bench_json_write_text(FILE *file, const char *text) {
    fputc('"', file);
    for (; *text != '\0'; text++) {
        const unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\') fputc('\\', file);
        if (byte >= ' ' && byte < 0x7f) fputc(byte, file);
    }
    fputc('"', file);
}

static void write_row(FILE *file, const struct kn_bench_row *row) {
    fprintf(file,
            "    {\"operation\": \"%s\", \"shape\": \"%s\", \"variant\": \"%s\", \"us\": %.4f, "
            "\"tflop_per_s\": %.4f, \"gb_per_s\": %.3f, \"ceiling\": \"%s\", \"of_ceiling\": "
            "%.4f, \"low\": %.4f, \"high\": %.4f, \"ceiling_us\": %.4f, \"alike\": \"%s\", "
            "\"of_alike\": %.4f",
            row->operation, row->shape, row->variant, row->us, row->operations / row->us * 1e-6,
            row->bytes / row->us * 1e-3, row->ceiling_us > 0 ? row->ceiling : "",
            row->of_ceiling[0] > 0 ? row->of_ceiling[0] : row->ceiling_us / row->us,
            row->of_ceiling[1], row->of_ceiling[2], row->ceiling_us,
            row->alike_us > 0 ? row->alike : "", row->alike_us / row->us);
    if (row->beside[0] != '\0') {
        fprintf(file, ", \"peer\": ");
        bench_json_write_text(file, row->beside);
        fprintf(file,
                ", \"peer_us\": %.4f, \"of_peer\": %.4f, \"peer_low\": %.4f, \"peer_high\": %.4f",
                row->beside_us, row->of_beside[0], row->of_beside[1], row->of_beside[2]);
    }
    if (row->without[0] != '\0') {
        fprintf(file, ", \"without_peer\": ");
        bench_json_write_text(file, row->without);
    }
    if (row->ggml_us > 0) {
        fprintf(file, ", \"ggml_us\": %.4f, \"of_ggml\": %.4f", row->ggml_us,
                row->ggml_us / row->us);
    }
    fprintf(file, "}");
}

static void write_state(FILE *file, const char *name, const struct kn_device_state *state) {
    fprintf(file, "\"%s\": {\"sm_mhz\": %d, \"memory_mhz\": %d, \"watts\": %.3f, \"celsius\": %d}",
            name, state->sm_mhz, state->memory_mhz, state->watts, state->celsius);
}

/* A pipe or a device is written as it is: a rename would replace it by a file. */
static bool bench_json_is_replaced(const char *path) {
    struct stat found;
    return stat(path, &found) != 0 || S_ISREG(found.st_mode);
}

tol_status kn_bench_json_write(const struct kn_bench *bench, const char *path, bool is_complete,
                               const char *reason) {
    tol_status status = TOL_OK;
    const struct kn_bench_state *state = bench->state;
    const size_t bytes = strlen(path) + sizeof ".part";
    FILE *file = NULL;
    const bool is_moved = bench_json_is_replaced(path);
    char *beside = malloc(bytes);
    TOL_CHECK(beside != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu bytes for a path", bytes);
    snprintf(beside, bytes, "%s%s", path, is_moved ? ".part" : "");
    file = fopen(beside, "w");
    TOL_CHECK(file != NULL, TOL_INVALID_ARGUMENT, "%s cannot be written", beside);
    fprintf(file, "{\n  \"complete\": %s,\n  \"error\": ", is_complete ? "true" : "false");
    bench_json_write_text(file, reason);
    fprintf(file, ",\n  \"device\": ");
    bench_json_write_text(file, tol_context_device(bench->context)->name);
    fprintf(file,
            ",\n  \"copy_gb_per_s\": %.3f,\n  \"impossible\": %zu,\n  \"wrong\": %zu,\n"
            "  \"states\": [\n",
            bench->copy_bytes_per_us * 1e-3, state->impossible, state->wrong);
    for (size_t i = 0; i < state->states_count; i++) {
        fprintf(file, "    {\"operation\": \"%s\", ", state->states[i].operation);
        write_state(file, "before", &state->states[i].before);
        fprintf(file, ", ");
        write_state(file, "after", &state->states[i].after);
        fprintf(file, "}%s\n", i + 1 < state->states_count ? "," : "");
    }
    fprintf(file, "  ],\n  \"rows\": [\n");
    for (size_t i = 0; i < state->count; i++) {
        write_row(file, &state->rows[i]);
        fprintf(file, "%s\n", i + 1 < state->count ? "," : "");
    }
    fprintf(file, "  ]\n}\n");
    const bool is_whole = ferror(file) == 0, is_closed = fclose(file) == 0;
    TOL_CHECK(is_whole && is_closed && (!is_moved || rename(beside, path) == 0),
              TOL_INVALID_ARGUMENT, "%s cannot be written", path);
out:
    if (status != TOL_OK && file != NULL && is_moved) remove(beside);
    free(beside);
    return status;
}
