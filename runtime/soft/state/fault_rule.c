/*
 * Parses fault rules: one table lists the keys and the actions that use them.
 */
#include "fault_rule.h"
#include "tollens/cuda_abi.h"
#include "base/calls.h"
#include "base/result_name.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { CODES = 1000, DELAY_US_MAX = 60 * 1000 * 1000 };

static const char *const actions[SOFT_FAULT_ACTIONS] = {
    [SOFT_FAULT_RETURN] = "return",
    [SOFT_FAULT_DELAY] = "delay",
    [SOFT_FAULT_LOSE_CONTEXT] = "lose_context",
    [SOFT_FAULT_LOSE_DEVICE] = "lose_device",
    [SOFT_FAULT_LATER] = "later",
    [SOFT_FAULT_FLIP] = "flip",
    [SOFT_FAULT_TRUNCATE] = "truncate",
    [SOFT_FAULT_TIMEOUT] = "timeout",
    [SOFT_FAULT_BUDGET] = "budget",
};

#define ONE(action) (1u << SOFT_FAULT_##action)
#define ALL_CALLS ((1u << SOFT_FAULT_BUDGET) - 1)

struct key;

struct rule_text {
    struct soft_fault_rule *rule;
    struct soft_json_error *error;
};

typedef bool read_key(struct rule_text *state, const struct key *key,
                      const struct soft_json *value);

struct key {
    const char *name;
    unsigned takes, needs; /* the actions that may have it, and those that must */
    read_key *read;
    size_t offset; /* of the number in the rule */
    uint64_t least, most;
};

static bool fault_rule_refuse(struct soft_json_error *error, struct soft_json_place place,
                              const char *format, ...) __attribute__((format(printf, 3, 4)));

static bool fault_rule_refuse(struct soft_json_error *error, struct soft_json_place place,
                              const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    error->place = place;
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return false;
}

static bool fault_rule_read_number(struct rule_text *state, const struct key *key,
                                   const struct soft_json *value) {
    bool whole = value->kind == SOFT_JSON_NUMBER && value->whole;
    if (!whole || value->count < key->least || value->count > key->most) {
        if (key->most == UINT64_MAX) {
            return fault_rule_refuse(state->error, value->place,
                                     "\"%s\" must be an integer of at least %llu", key->name,
                                     (unsigned long long)key->least);
        }
        return fault_rule_refuse(state->error, value->place,
                                 "\"%s\" must be an integer from %llu to %llu", key->name,
                                 (unsigned long long)key->least, (unsigned long long)key->most);
    }
    memcpy((char *)state->rule + key->offset, &value->count, sizeof value->count);
    if (key->offset == offsetof(struct soft_fault_rule, byte)) state->rule->says_byte = true;
    if (key->offset == offsetof(struct soft_fault_rule, bit)) state->rule->says_bit = true;
    if (key->offset == offsetof(struct soft_fault_rule, device)) state->rule->says_device = true;
    return true;
}

/* A number, or "256M". */
static bool fault_rule_read_bytes(struct rule_text *state, const struct key *key,
                                  const struct soft_json *value) {
    static const char units[] = "KMG";
    uint64_t bytes = 0;
    if (value->kind == SOFT_JSON_NUMBER) return fault_rule_read_number(state, key, value);
    const char *at = value->kind == SOFT_JSON_STRING ? value->text : "";
    bool ok = *at >= '0' && *at <= '9';
    for (; ok && *at >= '0' && *at <= '9'; at++) {
        ok = !__builtin_mul_overflow(bytes, 10u, &bytes) &&
             !__builtin_add_overflow(bytes, (uint64_t)(*at - '0'), &bytes);
    }
    const char *unit = *at != '\0' ? strchr(units, *at) : NULL;
    ok = ok && unit != NULL && at[1] == '\0' &&
         !__builtin_mul_overflow(bytes, 1024ull << (10 * (unit - units)), &bytes);
    if (!ok) {
        return fault_rule_refuse(
            state->error, value->place,
            "\"%s\" must be an integer or a size with K, M or G, such as \"256M\"", key->name);
    }
    state->rule->bytes = bytes;
    return true;
}

static bool read_percent(struct rule_text *state, const struct key *key,
                         const struct soft_json *value) {
    bool ok = value->kind == SOFT_JSON_NUMBER && value->number >= 0 && value->number <= 100;
    if (!ok) {
        return fault_rule_refuse(state->error, value->place,
                                 "\"%s\" must be a number from 0 to 100", key->name);
    }
    state->rule->by_chance = true;
    state->rule->percent = value->number;
    return true;
}

static bool is_function(const char *pattern) {
    char name[128];
    for (int i = 0; i < SOFT_CALLS; i++) {
        const struct soft_call_name *call = &soft_call_names[i];
        if (soft_fault_matches(pattern, call->name) || soft_fault_matches(pattern, call->base)) {
            return true;
        }
        if (call->suffix[0] == '\0') continue;
        snprintf(name, sizeof name, "%s%s", call->name, call->suffix);
        if (soft_fault_matches(pattern, name)) return true;
    }
    return false;
}

static bool read_function(struct rule_text *state, const struct key *key,
                          const struct soft_json *value) {
    if (value->kind != SOFT_JSON_STRING) {
        return fault_rule_refuse(state->error, value->place,
                                 "\"%s\" must be a function name, with * and ? as wildcards",
                                 key->name);
    }
    if (!is_function(value->text)) {
        return fault_rule_refuse(state->error, value->place, "no driver function matches \"%.60s\"",
                                 value->text);
    }
    state->rule->function = value->text;
    return true;
}

static bool fault_rule_read_code(struct rule_text *state, const struct key *key,
                                 const struct soft_json *value) {
    struct soft_fault_rule *rule = state->rule;
    int code = CODES;
    if (value->kind == SOFT_JSON_NUMBER && value->whole && value->count < CODES) {
        code = (int)value->count;
    } else if (value->kind == SOFT_JSON_STRING) {
        for (code = 0; code < CODES; code++) {
            const char *name = soft_result_name(code);
            if (name != NULL && strcmp(name, value->text) == 0) break;
        }
    }
    if (code == CODES) {
        return fault_rule_refuse(state->error, value->place,
                                 "\"%s\" must be the name or number of a CUresult", key->name);
    }
    if (code == CUDA_SUCCESS) {
        return fault_rule_refuse(state->error, value->place,
                                 "\"%s\" must be an error, not CUDA_SUCCESS", key->name);
    }
    rule->code = code;
    return true;
}

/* A number, or "each". */
static bool read_scope(struct rule_text *state, const struct key *key,
                       const struct soft_json *value) {
    struct soft_fault_rule *rule = state->rule;
    bool each = value->kind == SOFT_JSON_STRING && strcmp(value->text, "each") == 0;
    bool one = value->kind == SOFT_JSON_NUMBER && value->whole && value->count > 0;
    if (!each && !one) {
        return fault_rule_refuse(state->error, value->place,
                                 "\"%s\" must be \"each\" or an integer of at least 1", key->name);
    }
    rule->scope = (enum soft_fault_scope)key->offset;
    rule->only = each ? 0 : value->count;
    return true;
}

/* The action has been read before the other keys, whose meaning depends on it. */
static bool read_nothing(struct rule_text *state, const struct key *key,
                         const struct soft_json *value) {
    (void)state;
    (void)key;
    (void)value;
    return true;
}

#define AT(field) offsetof(struct soft_fault_rule, field)

static const struct key keys[] = {
    {"action", ALL_CALLS | ONE(BUDGET), ALL_CALLS | ONE(BUDGET), read_nothing, 0, 0, 0},
    {"function", ALL_CALLS, ALL_CALLS, read_function, 0, 0, 0},
    {"nth", ALL_CALLS, 0, fault_rule_read_number, AT(nth), 1, UINT64_MAX},
    {"every", ALL_CALLS, 0, fault_rule_read_number, AT(every), 1, UINT64_MAX},
    {"percent", ALL_CALLS, 0, read_percent, 0, 0, 0},
    {"seed", ALL_CALLS, 0, fault_rule_read_number, AT(seed), 0, UINT64_MAX},
    {"times", ALL_CALLS, 0, fault_rule_read_number, AT(times), 1, UINT64_MAX},
    {"thread", ALL_CALLS, 0, read_scope, SOFT_FAULT_OF_THREAD, 0, 0},
    {"stream", ALL_CALLS, 0, read_scope, SOFT_FAULT_OF_STREAM, 0, 0},
    {"code", ONE(RETURN) | ONE(LOSE_CONTEXT) | ONE(LOSE_DEVICE) | ONE(LATER),
     ONE(RETURN) | ONE(LATER), fault_rule_read_code, 0, 0, 0},
    {"us", ONE(DELAY), ONE(DELAY), fault_rule_read_number, AT(us), 1, DELAY_US_MAX},
    {"bytes", ONE(TRUNCATE) | ONE(BUDGET), ONE(TRUNCATE) | ONE(BUDGET), fault_rule_read_bytes,
     AT(bytes), 0, UINT64_MAX},
    {"device", ONE(BUDGET), 0, fault_rule_read_number, AT(device), 0, 7},
    {"instructions", ONE(TIMEOUT), 0, fault_rule_read_number, AT(instructions), 1, UINT64_MAX},
    {"allocation", ONE(FLIP), 0, fault_rule_read_number, AT(allocation), 1, UINT64_MAX},
    {"byte", ONE(FLIP), 0, fault_rule_read_number, AT(byte), 0, UINT64_MAX},
    {"bit", ONE(FLIP), 0, fault_rule_read_number, AT(bit), 0, 7},
};
enum { KEYS = sizeof keys / sizeof keys[0] };

static bool read_action(const struct soft_json *object, struct rule_text *state) {
    const struct soft_json *value = soft_json_member(object, "action");
    if (value == NULL)
        return fault_rule_refuse(state->error, object->place, "a rule needs an \"action\"");
    int i = 0;
    while (i < SOFT_FAULT_ACTIONS &&
           (value->kind != SOFT_JSON_STRING || strcmp(value->text, actions[i]) != 0)) {
        i++;
    }
    if (i == SOFT_FAULT_ACTIONS) {
        return fault_rule_refuse(
            state->error, value->place,
            "\"action\" must be return, delay, lose_context, lose_device, later, flip, "
            "truncate, timeout or budget");
    }
    state->rule->action = (enum soft_fault_action)i;
    return true;
}

static bool read_member(struct rule_text *state, const struct soft_json *value) {
    const char *action = actions[state->rule->action];
    for (int i = 0; i < KEYS; i++) {
        if (strcmp(value->name, keys[i].name) != 0) continue;
        if ((keys[i].takes >> state->rule->action & 1) == 0) {
            return fault_rule_refuse(state->error, value->name_place,
                                     "the action \"%s\" has no key \"%s\"", action, value->name);
        }
        return keys[i].read(state, &keys[i], value);
    }
    return fault_rule_refuse(state->error, value->name_place, "unknown key \"%.60s\" in a rule",
                             value->name);
}

/* At most one of several keys is allowed. */
static bool read_alternatives(const struct soft_json *object, struct soft_json_error *error,
                              const char *const names[], int count) {
    const char *first = NULL;
    for (int i = 0; i < count; i++) {
        const struct soft_json *member = soft_json_member(object, names[i]);
        if (member == NULL) continue;
        if (first != NULL) {
            return fault_rule_refuse(error, member->name_place,
                                     "\"%s\" and \"%s\" cannot be used together", first, names[i]);
        }
        first = names[i];
    }
    return true;
}

static bool read_rule(const struct soft_json *object, struct soft_fault_rule *rule,
                      struct soft_json_error *error) {
    static const char *const when[] = {"nth", "every", "percent"}, *const whose[] = {"thread",
                                                                                     "stream"};
    struct rule_text state = {rule, error};
    if (object->kind != SOFT_JSON_OBJECT) {
        return fault_rule_refuse(error, object->place, "a rule must be an object");
    }
    rule->line = object->place.line;
    rule->instructions = 1;
    if (!read_action(object, &state)) return false;
    rule->code = rule->action == SOFT_FAULT_LOSE_DEVICE ? CUDA_ERROR_DEVICE_UNAVAILABLE
                                                        : CUDA_ERROR_LAUNCH_FAILED;
    for (const struct soft_json *m = object->first; m != NULL; m = m->next) {
        if (!read_member(&state, m)) return false;
    }
    for (int i = 0; i < KEYS; i++) {
        bool needed = (keys[i].needs >> rule->action & 1) != 0;
        if (needed && soft_json_member(object, keys[i].name) == NULL) {
            return fault_rule_refuse(error, object->place, "the action \"%s\" needs a \"%s\"",
                                     actions[rule->action], keys[i].name);
        }
    }
    return read_alternatives(object, error, when, 3) && read_alternatives(object, error, whose, 2);
}

static bool fault_rule_read_file(const struct soft_json *file, struct soft_fault_rules *rules,
                                 struct soft_json_error *error, const struct soft_json **items) {
    if (file->kind != SOFT_JSON_OBJECT) {
        return fault_rule_refuse(error, file->place, "the file must be an object with \"rules\"");
    }
    *items = NULL;
    for (const struct soft_json *m = file->first; m != NULL; m = m->next) {
        if (strcmp(m->name, "rules") == 0) {
            if (m->kind != SOFT_JSON_ARRAY) {
                return fault_rule_refuse(error, m->place, "\"rules\" must be an array");
            }
            *items = m;
        } else if (strcmp(m->name, "quiet") == 0) {
            if (m->kind != SOFT_JSON_TRUTH) {
                return fault_rule_refuse(error, m->place, "\"quiet\" must be true or false");
            }
            rules->quiet = m->truth;
        } else {
            return fault_rule_refuse(
                error, m->name_place,
                "unknown key \"%.60s\": the file can have \"rules\" and \"quiet\"", m->name);
        }
    }
    return *items != NULL || fault_rule_refuse(error, file->place, "the file needs \"rules\"");
}

bool soft_fault_rules_read(struct soft_arena *arena, const char *text, size_t bytes,
                           struct soft_fault_rules *rules, struct soft_json_error *error) {
    const struct soft_json *file = soft_json_read(arena, text, bytes, error), *items = NULL;
    unsigned count = 0, i = 0;
    *rules = (struct soft_fault_rules){0};
    if (file == NULL || !fault_rule_read_file(file, rules, error, &items)) return false;
    for (const struct soft_json *r = items->first; r != NULL; r = r->next) count++;
    rules->items = SOFT_ARENA_ARRAY(arena, struct soft_fault_rule, count);
    if (rules->items == NULL && count > 0) {
        return fault_rule_refuse(error, items->place, "out of memory");
    }
    for (const struct soft_json *r = items->first; r != NULL; r = r->next, i++) {
        rules->items[i].number = i + 1;
        if (!read_rule(r, &rules->items[i], error)) return false;
    }
    rules->count = count;
    return true;
}

/* Only the last star is ever retried, with one more character of the name, because the matches of
 * earlier stars do not matter. So the work grows with the product of the lengths. */
bool soft_fault_matches(const char *pattern, const char *name) {
    const char *star = NULL, *retry = NULL;
    while (*name != '\0') {
        if (*pattern == '*') {
            star = pattern++;
            retry = name;
        } else if (*pattern == '?' || *pattern == *name) {
            pattern++;
            name++;
        } else if (star != NULL) {
            pattern = star + 1;
            name = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*') pattern++;
    return *pattern == '\0';
}
