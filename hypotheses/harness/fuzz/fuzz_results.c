/*
 * Fuzz target: any bytes are a results.json, or are refused with a sentence. What is read can be
 * exported in every form without losing a claim, equals itself for the gate, and is the same when
 * its JSON is written out and read again.
 */
#include "fuzz_input.h"

#include "files/atomic_file.h"
#include "judge/gate.h"
#include "run/command.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool results_same_number(double a, double b) {
    return a == b || (a != a && b != b);
}

static void results_check_same(const struct hyp_results *a, const struct hyp_results *b) {
    FUZZ_HOLDS(a->count == b->count && strcmp(a->mode, b->mode) == 0);
    FUZZ_HOLDS(strcmp(a->device_kind, b->device_kind) == 0);
    FUZZ_HOLDS(strcmp(a->device_name, b->device_name) == 0);
    FUZZ_HOLDS(strcmp(a->commit, b->commit) == 0 && strcmp(a->under, b->under) == 0);
    for (size_t i = 0; i < a->count; i++) {
        const struct hyp_result *x = &a->rows[i], *y = &b->rows[i];
        FUZZ_HOLDS(x->claim == y->claim && x->kind == y->kind && x->samples == y->samples);
        FUZZ_HOLDS(strcmp(x->reason, y->reason) == 0 && x->processes == y->processes);
        FUZZ_HOLDS(x->has_effect == y->has_effect && x->has_interval == y->has_interval);
        FUZZ_HOLDS(results_same_number(x->effect, y->effect) &&
                   results_same_number(x->threshold, y->threshold));
        FUZZ_HOLDS(results_same_number(x->low, y->low) && results_same_number(x->high, y->high));
        FUZZ_HOLDS(x->has_severity == y->has_severity && x->caught == y->caught);
        FUZZ_HOLDS(x->saboteurs == y->saboteurs && x->untold == y->untold);
    }
}

static void results_read_again(const uint8_t *data, size_t size,
                               const struct hyp_results *results) {
    static struct hyp_results again;
    json_t *root = json_loadb((const char *)data, size, 0, NULL);
    char *text = json_dumps(root, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref(root);
    FUZZ_HOLDS(text != NULL);
    fuzz_file("again/results.json", text, strlen(text));
    free(text);
    char folder[128];
    snprintf(folder, sizeof folder, "%s/again", fuzz_folder());
    FUZZ_HOLDS(hyp_results_read(folder, &again));
    results_check_same(results, &again);
}

/* The gate between a run and itself: nothing is better, and only what is falsified is worse. */
static void results_compare(const struct hyp_results *results) {
    char sentence[600];
    FUZZ_HOLDS(hyp_gate_comparable(results, results) == (results->under[0] == '\0'));
    for (size_t i = 0; i < results->count; i++) {
        const struct hyp_result *row = &results->rows[i];
        enum hyp_change change = hyp_gate_compare(row, row, sentence, sizeof sentence);
        FUZZ_HOLDS(hyp_change_words(change)[0] != '\0');
        FUZZ_HOLDS(change != HYP_BETTER);
        FUZZ_HOLDS((change == HYP_WORSE) == (row->kind == HYP_FALSIFIED));
    }
}

/* What the command prints; free it. */
static char *results_print(const char *format) {
    char option[32], *words[] = {(char *)(uintptr_t)fuzz_folder(), option};
    snprintf(option, sizeof option, "--format=%s", format);
    fflush(stdout);
    int before = dup(STDOUT_FILENO), file = memfd_create("export", 0);
    FUZZ_HOLDS(file >= 0 && dup2(file, STDOUT_FILENO) >= 0);
    int code = hyp_command_export(2, words);
    fflush(stdout);
    off_t bytes = lseek(file, 0, SEEK_END);
    char *text = calloc(1, (size_t)bytes + 1);
    FUZZ_HOLDS(text != NULL && pread(file, text, (size_t)bytes, 0) == bytes);
    close(file);
    if (before >= 0) {
        dup2(before, STDOUT_FILENO);
        close(before);
    } else {
        close(STDOUT_FILENO);
    }
    FUZZ_HOLDS(code == HYP_EXIT_OK);
    return text;
}

static size_t results_print_json(const char *format) {
    char *text = results_print(format);
    json_t *root = json_loads(text, 0, NULL);
    FUZZ_HOLDS(root != NULL);
    size_t count = json_is_array(root) ? json_array_size(root) : json_object_size(root);
    json_decref(root);
    free(text);
    return count;
}

static size_t print_lines(const char *format) {
    size_t count = 0;
    char *text = results_print(format);
    for (const char *at = text; *at != '\0'; at++) count += *at == '\n';
    free(text);
    return count;
}

static void results_export(const struct hyp_results *results) {
    size_t numbers = 0, fallen = 0;
    for (size_t i = 0; i < results->count; i++) {
        numbers += results->rows[i].has_effect;
        fallen += results->rows[i].kind != HYP_SURVIVED;
    }
    FUZZ_HOLDS(results_print_json("bmf") == numbers);
    FUZZ_HOLDS(results_print_json("gab") + results_print_json("gab-bigger") == numbers);
    FUZZ_HOLDS(print_lines("github") == fallen);
    FUZZ_HOLDS(print_lines("openmetrics") >= 5 * results->count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct hyp_results results;
    fuzz_file("results.json", data, size);
    if (!hyp_results_read(fuzz_folder(), &results)) {
        FUZZ_HOLDS(hyp_error()[0] != '\0');
        return 0;
    }
    results_read_again(data, size, &results);
    results_compare(&results);
    results_export(&results);
    return 0;
}
