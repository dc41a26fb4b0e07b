/*
 * Fuzz target: any bytes are a file of fault rules, or are refused with a place and a reason. The
 * JSON that is read has the same meaning for jansson, and a rule only says what its action takes.
 */
#include "fuzz.h"

#include "state/fault_rule.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void rules_check(bool holds, const char *what) {
    if (!holds) fuzz_fail(what, 0, "");
}

static void rules_compare(const struct soft_json *ours, const json_t *theirs);

static void compare_items(const struct soft_json *ours, const json_t *theirs) {
    size_t count = 0;
    for (const struct soft_json *item = ours->first; item != NULL; item = item->next, count++) {
        bool named = ours->kind == SOFT_JSON_OBJECT;
        json_t *other = named ? json_object_get(theirs, item->name) : json_array_get(theirs, count);
        rules_check(other != NULL, "jansson has no such item");
        rules_compare(item, other);
    }
    rules_check(count == (ours->kind == SOFT_JSON_OBJECT ? json_object_size(theirs)
                                                         : json_array_size(theirs)),
                "jansson has another number of items");
}

static void rules_compare(const struct soft_json *ours, const json_t *theirs) {
    double number = 0;
    switch (ours->kind) {
    case SOFT_JSON_NULL:
        rules_check(json_is_null(theirs), "null");
        return;
    case SOFT_JSON_TRUTH:
        rules_check(ours->truth ? json_is_true(theirs) : json_is_false(theirs), "true or false");
        return;
    case SOFT_JSON_NUMBER:
        number = json_number_value(theirs);
        rules_check(json_is_number(theirs), "a number");
        rules_check(fabs(ours->number - number) <= 1e-12 * fabs(number) || fabs(number) < 1e-290,
                    "another number");
        if (ours->whole && json_is_integer(theirs)) {
            rules_check(ours->count == (uint64_t)json_integer_value(theirs),
                        "another whole number");
        }
        return;
    case SOFT_JSON_STRING:
        rules_check(json_is_string(theirs) && strcmp(json_string_value(theirs), ours->text) == 0,
                    "another string");
        return;
    case SOFT_JSON_ARRAY:
    case SOFT_JSON_OBJECT:
        rules_check(ours->kind == SOFT_JSON_ARRAY ? json_is_array(theirs) : json_is_object(theirs),
                    "an array or an object");
        compare_items(ours, theirs);
        return;
    }
}

/* Jansson refuses numbers beyond its own range, which ours may read. */
static void check_json(struct soft_arena *arena, const char *text, size_t size) {
    struct soft_json_error error = {.text = ""};
    json_error_t why;
    const struct soft_json *ours = soft_json_read(arena, text, size, &error);
    if (ours == NULL) {
        rules_check(error.text[0] != '\0' && error.place.line >= 1 && error.place.column >= 1,
                    "refused without a place or a reason");
        return;
    }
    json_t *theirs = json_loadb(text, size, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &why);
    if (theirs == NULL) {
        rules_check(json_error_code(&why) == json_error_numeric_overflow, why.text);
        return;
    }
    rules_compare(ours, theirs);
    json_decref(theirs);
}

static void check_rule(const struct soft_fault_rule *rule) {
    rules_check(rule->action < SOFT_FAULT_ACTIONS && rule->line >= 1, "action");
    rules_check((rule->function == NULL) == (rule->action == SOFT_FAULT_BUDGET), "function");
    rules_check(rule->code > 0 && rule->code < 1000, "code");
    rules_check(!rule->by_chance || (rule->percent >= 0 && rule->percent <= 100), "percent");
    rules_check(rule->bit < 8 && rule->device < 8 && rule->us <= 60 * 1000 * 1000, "bounds");
    rules_check((rule->nth > 0) + (rule->every > 0) + rule->by_chance <= 1, "when");
    if (rule->function != NULL) soft_fault_matches(rule->function, "cuMemAllocFromPoolAsync_ptsz");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct soft_arena arena = {.blocks = NULL};
    struct soft_fault_rules rules;
    struct soft_json_error error = {.text = ""};
    char *text = fuzz_text(data, size);
    check_json(&arena, text, size);
    if (soft_fault_rules_read(&arena, text, size, &rules, &error)) {
        for (unsigned i = 0; i < rules.count; i++) check_rule(&rules.items[i]);
    } else {
        rules_check(error.text[0] != '\0' && error.place.line >= 1, "refused without a reason");
    }
    soft_arena_clear(&arena);
    free(text);
    return 0;
}
