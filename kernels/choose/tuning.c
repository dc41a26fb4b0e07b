/*
 * A table of results by problem, and its file.
 */
#include "choose/tuning.h"

#include "core/c_locale.h"
#include "core/check.h"
#include "fnv.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_ = 31, LINE_MAX_ = 512, FILE_MAX = 16 << 20 };

static const char format_line[] = "tollens tuning 1";

struct tuning_entry {
    char operation[NAME_MAX_ + 1];
    int64_t numbers[KN_TUNING_NUMBERS];
    struct kn_tuned tuned;
};

struct kn_tuning {
    struct kn_tuning_identity identity;
    struct tuning_entry *entries;
    size_t count, room, added;
    size_t *slots, slot_count; /* entry + 1 by hash; 0: free */
};

static size_t tuning_slot_of(const struct kn_tuning *tuning, const char *operation,
                             const int64_t *numbers) {
    const size_t bytes = KN_TUNING_NUMBERS * sizeof *numbers;
    uint64_t hash = kn_fnv(KN_FNV_BEGIN, numbers, bytes);
    size_t slot = (size_t)(kn_fnv(hash, operation, strlen(operation)) % tuning->slot_count);
    while (tuning->slots[slot] != 0) {
        const struct tuning_entry *entry = &tuning->entries[tuning->slots[slot] - 1];
        if (strcmp(entry->operation, operation) == 0 &&
            memcmp(entry->numbers, numbers, bytes) == 0) {
            break;
        }
        slot = (slot + 1) % tuning->slot_count;
    }
    return slot;
}

/* Letters, digits and _: a word of the file. */
static bool tuning_is_name(const char *text, size_t most) {
    const size_t length = strnlen(text, most + 1);
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)text[i]) && text[i] != '_') return false;
    }
    return length > 0 && length <= most;
}

static bool is_line(const char text[KN_TUNING_TEXT]) {
    const size_t length = strnlen(text, KN_TUNING_TEXT);
    for (size_t i = 0; i < length; i++) {
        if (!isprint((unsigned char)text[i])) return false;
    }
    return length > 0 && length < KN_TUNING_TEXT;
}

static bool tuning_is_time(double us) {
    return isfinite(us) && us > 0 && us < 1e12;
}

tol_status kn_tuning_create(const struct kn_tuning_identity *identity, struct kn_tuning **tuning) {
    tol_status status = TOL_OK;
    struct kn_tuning *made = NULL;
    TOL_CHECK(identity != NULL && tuning != NULL, TOL_INVALID_ARGUMENT,
              "a tuning needs an identity and a place for the result");
    TOL_CHECK(is_line(identity->device) && is_line(identity->commit), TOL_INVALID_ARGUMENT,
              "device and commit of a tuning are a line each, of up to %d letters",
              KN_TUNING_TEXT - 1);
    made = calloc(1, sizeof *made);
    TOL_CHECK(made != NULL, TOL_OUT_OF_HOST_MEMORY, "no memory for a tuning");
    made->identity = *identity;
    *tuning = made;
out:
    return status;
}

void kn_tuning_destroy(struct kn_tuning *tuning) {
    if (tuning == NULL) return;
    free(tuning->entries);
    free(tuning->slots);
    free(tuning);
}

static tol_status tuning_grow(struct kn_tuning *tuning) {
    tol_status status = TOL_OK;
    const size_t room = tuning->room == 0 ? 32 : 2 * tuning->room;
    struct tuning_entry *entries = NULL;
    size_t *slots = NULL;
    if (tuning->count < tuning->room) return TOL_OK;
    entries = realloc(tuning->entries, room * sizeof *entries);
    if (entries != NULL) tuning->entries = entries;
    slots = calloc(2 * room, sizeof *slots);
    TOL_CHECK(entries != NULL && slots != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu results", room);
    free(tuning->slots);
    tuning->slots = slots, tuning->slot_count = 2 * room, tuning->room = room;
    for (size_t i = 0; i < tuning->count; i++) {
        const struct tuning_entry *entry = &tuning->entries[i];
        slots[tuning_slot_of(tuning, entry->operation, entry->numbers)] = i + 1;
    }
    return TOL_OK;
out:
    free(slots);
    return status;
}

tol_status kn_tuning_add(struct kn_tuning *tuning, const struct kn_tuning_key *key,
                         const struct kn_tuned *tuned) {
    tol_status status = TOL_OK;
    TOL_CHECK(tuning != NULL && key != NULL && tuned != NULL && key->operation != NULL,
              TOL_INVALID_ARGUMENT, "a result needs a tuning, a problem and a variant");
    TOL_CHECK(tuning_is_name(key->operation, NAME_MAX_) &&
                  tuning_is_name(tuned->variant, NAME_MAX_),
              TOL_INVALID_ARGUMENT,
              "an operation and a variant have names of up to %d letters, digits and _", NAME_MAX_);
    TOL_CHECK(tuning_is_time(tuned->us) && tuning_is_time(tuned->table_us), TOL_INVALID_ARGUMENT,
              "times of %g and %g us", tuned->us, tuned->table_us);
    TOL_TRY(tuning_grow(tuning));
    const size_t slot = tuning_slot_of(tuning, key->operation, key->numbers);
    const bool is_new = tuning->slots[slot] == 0;
    if (is_new) tuning->slots[slot] = ++tuning->count;
    struct tuning_entry *entry = &tuning->entries[tuning->slots[slot] - 1];
    if (is_new) *entry = (struct tuning_entry){0};
    memcpy(entry->operation, key->operation, strlen(key->operation) + 1);
    memcpy(entry->numbers, key->numbers, sizeof entry->numbers);
    entry->tuned = *tuned;
    tuning->added++;
out:
    return status;
}

const struct kn_tuned *kn_tuning_find(const struct kn_tuning *tuning,
                                      const struct kn_tuning_key *key) {
    if (tuning == NULL || tuning->count == 0) return NULL;
    const size_t entry = tuning->slots[tuning_slot_of(tuning, key->operation, key->numbers)];
    return entry != 0 ? &tuning->entries[entry - 1].tuned : NULL;
}

size_t kn_tuning_added(const struct kn_tuning *tuning) {
    return tuning->added;
}

size_t kn_tuning_count(const struct kn_tuning *tuning) {
    return tuning->count;
}

const struct kn_tuning_identity *kn_tuning_identity(const struct kn_tuning *tuning) {
    return &tuning->identity;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void tuning_write_line(FILE *file, uint64_t *hash, const char *line) {
    *hash = kn_fnv(*hash, line, strlen(line));
    fputs(line, file);
}

static void write_entry(FILE *file, uint64_t *hash, const struct tuning_entry *entry) {
    char line[LINE_MAX_];
    int at = snprintf(line, sizeof line, "%s", entry->operation);
    for (int i = 0; i < KN_TUNING_NUMBERS; i++) {
        at += snprintf(line + at, sizeof line - (size_t)at, " %" PRId64, entry->numbers[i]);
    }
    const locale_t before = tol_c_locale_begin();
    snprintf(line + at, sizeof line - (size_t)at, " %s %.9g %.9g %d\n", entry->tuned.variant,
             entry->tuned.us, entry->tuned.table_us, entry->tuned.candidates);
    tol_c_locale_end(before);
    tuning_write_line(file, hash, line);
}

tol_status kn_tuning_save(const struct kn_tuning *tuning, const char *path) {
    tol_status status = TOL_OK;
    char line[LINE_MAX_], *beside = NULL;
    FILE *file = NULL;
    uint64_t hash = KN_FNV_BEGIN;
    TOL_CHECK(tuning != NULL && path != NULL, TOL_INVALID_ARGUMENT,
              "saving a tuning needs one and a path");
    const struct kn_tuning_identity *is = &tuning->identity;
    const size_t bytes = strlen(path) + sizeof ".new";
    beside = malloc(bytes);
    TOL_CHECK(beside != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu bytes", bytes);
    snprintf(beside, bytes, "%s.new", path);
    file = fopen(beside, "w");
    TOL_CHECK(file != NULL, TOL_UNWRITABLE, "%s cannot be written", beside);
    snprintf(line, sizeof line, "%s\ndevice %s\nmultiprocessors %d\ndriver %d\n", format_line,
             is->device, is->multiprocessors, is->driver);
    tuning_write_line(file, &hash, line);
    snprintf(line, sizeof line, "kernels %016" PRIx64 "\ncommit %s\n", is->kernels, is->commit);
    tuning_write_line(file, &hash, line);
    for (size_t i = 0; i < tuning->count; i++) write_entry(file, &hash, &tuning->entries[i]);
    fprintf(file, "end %zu %016" PRIx64 "\n", tuning->count, hash);
    const bool is_written = fflush(file) == 0 && ferror(file) == 0;
    const bool is_closed = fclose(file) == 0;
    file = NULL;
    TOL_CHECK(is_written && is_closed && rename(beside, path) == 0, TOL_UNWRITABLE,
              "%s cannot be written", path);
out:
    if (file != NULL) fclose(file);
    if (status == TOL_UNWRITABLE && beside != NULL) remove(beside);
    free(beside);
    return status;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct tuning_reader {
    const char *path;
    char *text, *at; /* the file, and the next line */
    size_t number;   /* of the latest line */
    uint64_t hash;   /* of the lines before the latest */
};

/* The next line without its end; NULL: there is none that ends. */
static char *next_line(struct tuning_reader *reader, bool is_hashed) {
    char *line = reader->at, *end = strchr(line, '\n');
    if (end == NULL) return NULL;
    if (is_hashed) reader->hash = kn_fnv(reader->hash, line, (size_t)(end - line) + 1);
    *end = 0;
    reader->at = end + 1;
    reader->number++;
    return line;
}

static tol_status tuning_read_file(const char *path, char **text) {
    tol_status status = TOL_OK;
    char *bytes = NULL;
    FILE *file = fopen(path, "r");
    TOL_CHECK(file != NULL, TOL_UNREADABLE, "%s cannot be opened", path);
    bytes = malloc(FILE_MAX + 1);
    TOL_CHECK(bytes != NULL, TOL_OUT_OF_HOST_MEMORY, "%d bytes", FILE_MAX);
    const size_t count = fread(bytes, 1, FILE_MAX + 1, file);
    TOL_CHECK(ferror(file) == 0, TOL_UNREADABLE, "%s cannot be read", path);
    TOL_CHECK(count <= FILE_MAX, TOL_INVALID_FILE, "%s has more than %d bytes", path, FILE_MAX);
    TOL_CHECK(memchr(bytes, 0, count) == NULL, TOL_INVALID_FILE, "%s has a zero byte", path);
    bytes[count] = 0;
    *text = bytes;
    bytes = NULL;
out:
    if (file != NULL) fclose(file);
    free(bytes);
    return status;
}

/* The rest of the next line after a word and a space. */
static tol_status read_field(struct tuning_reader *reader, const char *word, const char **rest) {
    tol_status status = TOL_OK;
    const size_t length = strlen(word);
    const char *line = next_line(reader, true);
    TOL_CHECK(line != NULL, TOL_INVALID_FILE, "%s ends in line %zu, where \"%s\" is expected",
              reader->path, reader->number + 1, word);
    TOL_CHECK(strncmp(line, word, length) == 0 && line[length] == ' ', TOL_INVALID_FILE,
              "%s, line %zu: \"%s\" is expected", reader->path, reader->number, word);
    *rest = line + length + 1;
    TOL_CHECK(strlen(*rest) < KN_TUNING_TEXT, TOL_INVALID_FILE, "%s, line %zu: \"%s\" is too long",
              reader->path, reader->number, word);
out:
    return status;
}

/* A decimal number that is all of a text, or of its next word, which is cut off. */
static bool tuning_read_number(char **text, int64_t *number) {
    char *end = NULL, *word = strsep(text, " ");
    if (word == NULL || (!isdigit((unsigned char)word[0]) && word[0] != '-')) return false;
    *number = strtoll(word, &end, 10);
    return *end == 0;
}

static bool read_time(char **text, double *us) {
    char *end = NULL, *word = strsep(text, " ");
    if (word == NULL || !isdigit((unsigned char)word[0])) return false;
    *us = tol_c_number(word, &end);
    return *end == 0 && tuning_is_time(*us);
}

static tol_status read_identity(struct tuning_reader *reader, struct kn_tuning_identity *is) {
    tol_status status = TOL_OK;
    const char *rest = NULL;
    char *end = NULL;
    const char *first = next_line(reader, true);
    TOL_CHECK(first != NULL && strcmp(first, format_line) == 0, TOL_INVALID_FILE,
              "%s does not begin with \"%s\"", reader->path, format_line);
    TOL_TRY(read_field(reader, "device", &rest));
    memcpy(is->device, rest, strlen(rest) + 1);
    TOL_TRY(read_field(reader, "multiprocessors", &rest));
    is->multiprocessors = (int)strtol(rest, &end, 10);
    TOL_CHECK(end != rest && *end == 0, TOL_INVALID_FILE, "%s: %s multiprocessors", reader->path,
              rest);
    TOL_TRY(read_field(reader, "driver", &rest));
    is->driver = (int)strtol(rest, &end, 10);
    TOL_CHECK(end != rest && *end == 0, TOL_INVALID_FILE, "%s: driver %s", reader->path, rest);
    TOL_TRY(read_field(reader, "kernels", &rest));
    is->kernels = strtoull(rest, &end, 16);
    TOL_CHECK(end == rest + 16 && *end == 0, TOL_INVALID_FILE, "%s: kernels %s", reader->path,
              rest);
    TOL_TRY(read_field(reader, "commit", &rest));
    memcpy(is->commit, rest, strlen(rest) + 1);
out:
    return status;
}

static tol_status read_entry(struct tuning_reader *reader, char *line, struct kn_tuning *tuning) {
    tol_status status = TOL_OK;
    struct kn_tuning_key key = {.operation = strsep(&line, " ")};
    struct kn_tuned tuned = {0};
    int64_t candidates = 0;
    bool is_right = tuning_is_name(key.operation, NAME_MAX_);
    for (int i = 0; i < KN_TUNING_NUMBERS && is_right; i++) {
        is_right = tuning_read_number(&line, &key.numbers[i]);
    }
    const char *variant = is_right ? strsep(&line, " ") : NULL;
    is_right = variant != NULL && tuning_is_name(variant, NAME_MAX_);
    is_right = is_right && read_time(&line, &tuned.us) && read_time(&line, &tuned.table_us) &&
               tuning_read_number(&line, &candidates) && line == NULL && candidates > 0 &&
               candidates <= INT32_MAX;
    TOL_CHECK(is_right, TOL_INVALID_FILE, "%s, line %zu is no result of a problem", reader->path,
              reader->number);
    TOL_CHECK(kn_tuning_find(tuning, &key) == NULL, TOL_INVALID_FILE,
              "%s, line %zu: a problem has two results", reader->path, reader->number);
    memcpy(tuned.variant, variant, strlen(variant) + 1);
    tuned.candidates = (int32_t)candidates;
    status = kn_tuning_add(tuning, &key, &tuned);
out:
    return status;
}

static tol_status read_entries(struct tuning_reader *reader, struct kn_tuning *tuning) {
    tol_status status = TOL_OK;
    char *line = NULL, expected[64];
    for (;;) {
        const uint64_t hash = reader->hash;
        line = next_line(reader, true);
        TOL_CHECK(line != NULL, TOL_INVALID_FILE, "%s is cut off after line %zu", reader->path,
                  reader->number);
        if (strncmp(line, "end ", 4) != 0) {
            TOL_TRY(read_entry(reader, line, tuning));
            continue;
        }
        snprintf(expected, sizeof expected, "end %zu %016" PRIx64, tuning->count, hash);
        TOL_CHECK(strcmp(line, expected) == 0, TOL_INVALID_FILE,
                  "%s is damaged: it ends with \"%.60s\" and not with \"%s\"", reader->path, line,
                  expected);
        break;
    }
    TOL_CHECK(*reader->at == 0, TOL_INVALID_FILE, "%s goes on after its end in line %zu",
              reader->path, reader->number);
out:
    return status;
}

tol_status kn_tuning_load(const char *path, const struct kn_tuning_identity *here,
                          struct kn_tuning **tuning) {
    tol_status status = TOL_OK;
    struct kn_tuning_identity is = {0};
    struct kn_tuning *made = NULL;
    struct tuning_reader reader = {.path = path, .hash = KN_FNV_BEGIN};
    TOL_CHECK(path != NULL && here != NULL && tuning != NULL, TOL_INVALID_ARGUMENT,
              "loading a tuning needs a path, an identity and a place for the result");
    TOL_TRY(tuning_read_file(path, &reader.text));
    reader.at = reader.text;
    TOL_TRY(read_identity(&reader, &is));
    TOL_CHECK(is_line(is.device) && is_line(is.commit), TOL_INVALID_FILE,
              "%s: device or commit is no line of text", path);
    TOL_TRY(kn_tuning_create(&is, &made));
    TOL_TRY(read_entries(&reader, made));
    TOL_CHECK(strcmp(is.device, here->device) == 0 && is.multiprocessors == here->multiprocessors,
              TOL_MISMATCH, "%s is of a %s with %d multiprocessors, and this is a %s with %d", path,
              is.device, is.multiprocessors, here->device, here->multiprocessors);
    TOL_CHECK(is.driver == here->driver, TOL_MISMATCH, "%s is of driver %d, and this is %d", path,
              is.driver, here->driver);
    TOL_CHECK(is.kernels == here->kernels, TOL_MISMATCH,
              "%s is of other kernels, those of commit %s: measure again", path, is.commit);
    *tuning = made;
    made = NULL;
out:
    kn_tuning_destroy(made);
    free(reader.text);
    return status;
}
