/*
 * Reads rules: tables [[rule]] of TOML 1.0 with keys whose values are basic strings, numbers or
 * booleans, one per line. Everything else is rejected with its line.
 */
#include "core/c_locale.h"
#include "core/check.h"
#include "watch_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *word;
    enum tol_watch_kind kind;
} kinds[] = {{"written_once", TOL_WATCH_WRITTEN_ONCE},
             {"no_read_back", TOL_WATCH_NO_READ_BACK},
             {"copy_out_limit", TOL_WATCH_COPY_OUT_LIMIT},
             {"known_modules", TOL_WATCH_KNOWN_MODULES},
             {"usual", TOL_WATCH_USUAL},
             {"no_copy", TOL_WATCH_NO_COPY},
             {"no_share", TOL_WATCH_NO_SHARE},
             {"known_kernels", TOL_WATCH_KNOWN_KERNELS}};

enum { KINDS = sizeof kinds / sizeof kinds[0], LINE_BYTES = 512, RULES_MAX = 64 };

/* What the keys of a rule may set; each once. */
enum key { KEY_NAME, KEY_BLOCKS, KEY_KIND, KEY_REFUSE, KEY_MB, KEY_FALSE, KEY_WINDOW, KEYS };
static const char *const key_words[KEYS] = {"name",     "blocks",       "kind",     "refuse",
                                            "mb_per_s", "false_alarms", "window_ms"};

struct reader {
    struct watch_rule *rules;
    size_t count, line;
    unsigned seen; /* keys of the last rule, a bit each */
};

static char *watch_rules_skip(char *text) {
    return text + strspn(text, " \t");
}

/* What may follow a value or a heading. */
static bool watch_rules_ends(char *text) {
    text = watch_rules_skip(text);
    return *text == '\0' || *text == '#';
}

/* A string in quotes, without escapes, of fewer than TOL_WATCH_LABEL_BYTES bytes. */
static tol_status watch_rules_read_string(const struct reader *reader, char *text, char *result) {
    tol_status status = TOL_OK;
    char *end = *text == '"' ? strchr(text + 1, '"') : NULL;
    TOL_CHECK(end != NULL && watch_rules_ends(end + 1), TOL_INVALID_FILE,
              "line %zu of the rules: a string in quotes is expected, not %s", reader->line, text);
    const size_t length = (size_t)(end - text - 1);
    TOL_CHECK(length < TOL_WATCH_LABEL_BYTES && memchr(text + 1, '\\', length) == NULL,
              TOL_INVALID_FILE,
              "line %zu of the rules: a string may have %d bytes, and no backslash", reader->line,
              TOL_WATCH_LABEL_BYTES - 1);
    memcpy(result, text + 1, length);
    result[length] = '\0';
out:
    return status;
}

static tol_status watch_rules_read_number(const struct reader *reader, const char *text,
                                          double least, double most, double *result) {
    tol_status status = TOL_OK;
    char *end = NULL;
    const double value = tol_c_number(text, &end);
    TOL_CHECK(text[0] >= '0' && text[0] <= '9' && watch_rules_ends(end) && value >= least &&
                  value <= most,
              TOL_INVALID_FILE, "line %zu of the rules: a number from %g to %g is expected, not %s",
              reader->line, least, most, text);
    *result = value;
out:
    return status;
}

static tol_status watch_rules_read_kind(const struct reader *reader, char *text,
                                        enum tol_watch_kind *kind) {
    tol_status status = TOL_OK;
    char word[TOL_WATCH_LABEL_BYTES];
    TOL_TRY(watch_rules_read_string(reader, text, word));
    for (size_t i = 0; i < KINDS; i++) {
        if (strcmp(word, kinds[i].word) != 0) continue;
        *kind = kinds[i].kind;
        return TOL_OK;
    }
    TOL_FAIL(TOL_INVALID_FILE,
             "line %zu of the rules: \"%s\" is not a kind; there are written_once, no_read_back, "
             "copy_out_limit, known_modules, usual, no_copy, no_share and known_kernels",
             reader->line, word);
out:
    return status;
}

static tol_status watch_rules_read_value(struct reader *reader, enum key key, char *text) {
    tol_status status = TOL_OK;
    struct watch_rule *rule = &reader->rules[reader->count - 1];
    const bool is_true = strncmp(text, "true", 4) == 0 && watch_rules_ends(text + 4);
    switch (key) {
    case KEY_NAME:
        return watch_rules_read_string(reader, text, rule->name);
    case KEY_BLOCKS:
        return watch_rules_read_string(reader, text, rule->blocks);
    case KEY_KIND:
        return watch_rules_read_kind(reader, text, &rule->kind);
    case KEY_MB:
        return watch_rules_read_number(reader, text, 1e-6, 1e9, &rule->mb_per_s);
    case KEY_FALSE:
        return watch_rules_read_number(reader, text, 1e-6, 1, &rule->false_alarms);
    case KEY_WINDOW:
        return watch_rules_read_number(reader, text, 1, 1e9, &rule->window_ms);
    default:
        break;
    }
    TOL_CHECK(is_true || (strncmp(text, "false", 5) == 0 && watch_rules_ends(text + 5)),
              TOL_INVALID_FILE, "line %zu of the rules: refuse is true or false, not %s",
              reader->line, text);
    rule->refuse = is_true;
out:
    return status;
}

/* What each kind needs, and what only others have. */
static tol_status watch_rules_finish(const struct reader *reader) {
    tol_status status = TOL_OK;
    if (reader->count == 0) return TOL_OK;
    const struct watch_rule *rule = &reader->rules[reader->count - 1];
    const unsigned seen = reader->seen;
    TOL_CHECK(seen >> KEY_NAME & 1 && seen >> KEY_KIND & 1, TOL_INVALID_FILE,
              "the rule before line %zu of the rules has no %s", reader->line,
              seen >> KEY_NAME & 1 ? "kind" : "name");
    TOL_CHECK((seen >> KEY_MB & 1) == (rule->kind == TOL_WATCH_COPY_OUT_LIMIT), TOL_INVALID_FILE,
              "the rule \"%s\": mb_per_s belongs to copy_out_limit, which needs it", rule->name);
    TOL_CHECK((seen & (1u << KEY_FALSE | 1u << KEY_WINDOW)) == 0 || rule->kind == TOL_WATCH_USUAL,
              TOL_INVALID_FILE, "the rule \"%s\": false_alarms and window_ms belong to usual",
              rule->name);
    TOL_CHECK(!(seen >> KEY_BLOCKS & 1) || rule->kind != TOL_WATCH_KNOWN_MODULES, TOL_INVALID_FILE,
              "the rule \"%s\": known_modules is about all launches and has no blocks", rule->name);
out:
    return status;
}

static tol_status begin_rule(struct reader *reader) {
    tol_status status = TOL_OK;
    TOL_TRY(watch_rules_finish(reader));
    TOL_CHECK(reader->count < RULES_MAX, TOL_INVALID_FILE,
              "line %zu of the rules: more than %d rules", reader->line, RULES_MAX);
    struct watch_rule *more = realloc(reader->rules, (reader->count + 1) * sizeof *more);
    TOL_CHECK(more != NULL, TOL_OUT_OF_HOST_MEMORY, "no host memory for %zu rules",
              reader->count + 1);
    reader->rules = more;
    more[reader->count] =
        (struct watch_rule){.blocks = "*", .false_alarms = 0.01, .window_ms = 1000};
    reader->count++;
    reader->seen = 0;
out:
    return status;
}

static tol_status watch_rules_read_line(struct reader *reader, char *line) {
    static const char heading[] = "[[rule]]";
    tol_status status = TOL_OK;
    char *text = watch_rules_skip(line);
    if (watch_rules_ends(text)) return TOL_OK;
    if (strncmp(text, heading, sizeof heading - 1) == 0 &&
        watch_rules_ends(text + sizeof heading - 1)) {
        return begin_rule(reader);
    }
    const size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz_");
    char *value = watch_rules_skip(text + length);
    enum key key = 0;
    TOL_CHECK(length > 0 && *value == '=', TOL_INVALID_FILE,
              "line %zu of the rules is neither [[rule]] nor a key and its value: %s", reader->line,
              text);
    TOL_CHECK(reader->count > 0, TOL_INVALID_FILE, "line %zu of the rules is before [[rule]]",
              reader->line);
    while (key < KEYS &&
           !(strlen(key_words[key]) == length && strncmp(key_words[key], text, length) == 0)) {
        key++;
    }
    TOL_CHECK(key < KEYS, TOL_INVALID_FILE, "line %zu of the rules: a rule has no key %.*s",
              reader->line, (int)length, text);
    TOL_CHECK(!(reader->seen >> key & 1), TOL_INVALID_FILE,
              "line %zu of the rules: %s is set already", reader->line, key_words[key]);
    reader->seen |= 1u << key;
    status = watch_rules_read_value(reader, key, watch_rules_skip(value + 1));
out:
    return status;
}

tol_status watch_rules_read(const char *text, struct watch_rule **rules, size_t *count) {
    tol_status status = TOL_OK;
    struct reader reader = {.rules = NULL};
    while (text != NULL && *text != '\0') {
        char line[LINE_BYTES];
        size_t length = strcspn(text, "\n");
        reader.line++;
        TOL_CHECK(length < sizeof line, TOL_INVALID_FILE,
                  "line %zu of the rules has %zu bytes; %d are allowed", reader.line, length,
                  LINE_BYTES - 1);
        memcpy(line, text, length);
        line[length] = '\0';
        if (length > 0 && line[length - 1] == '\r') line[length - 1] = '\0';
        TOL_TRY(watch_rules_read_line(&reader, line));
        text += length + (text[length] == '\n');
    }
    reader.line++;
    TOL_TRY(watch_rules_finish(&reader));
    for (size_t i = 0; i < reader.count; i++) {
        pthread_mutex_init(&reader.rules[i].lock, NULL);
        reader.rules[i].baseline =
            (struct watch_baseline){.window_ns = (uint64_t)(reader.rules[i].window_ms * 1e6),
                                    .wanted = watch_windows_for(reader.rules[i].false_alarms)};
    }
    *rules = reader.rules;
    *count = reader.count;
    reader.rules = NULL;
out:
    free(reader.rules);
    return status;
}
