/*
 * A recursive-descent parser of JSON. The text ends with a NUL after its last byte; a NUL anywhere
 * else is an error.
 */
#include "json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 64 };

struct reader {
    struct soft_arena *arena;
    const char *at, *end, *line_begin;
    unsigned line, depth;
    struct soft_json_error *error;
};

static struct soft_json_place json_place_of(const struct reader *reader) {
    return (struct soft_json_place){reader->line, (unsigned)(reader->at - reader->line_begin) + 1};
}

static bool json_refuse(struct reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool json_refuse(struct reader *reader, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    reader->error->place = json_place_of(reader);
    vsnprintf(reader->error->text, sizeof reader->error->text, format, arguments);
    va_end(arguments);
    return false;
}

static bool refuse_memory(struct reader *reader) {
    return json_refuse(reader, "out of memory");
}

static void skip_space(struct reader *reader) {
    for (; reader->at < reader->end; reader->at++) {
        char c = *reader->at;
        if (c != ' ' && c != '\t' && c != '\r' && c != '\n') return;
        if (c != '\n') continue;
        reader->line++;
        reader->line_begin = reader->at + 1;
    }
}

/* What is next, for a message. */
static bool refuse_next(struct reader *reader, const char *wanted) {
    if (reader->at == reader->end)
        return json_refuse(reader, "expected %s, not the end of the file", wanted);
    unsigned char c = (unsigned char)*reader->at;
    if (c < 0x20 || c >= 0x7f)
        return json_refuse(reader, "expected %s, not byte 0x%02x", wanted, c);
    return json_refuse(reader, "expected %s, not '%c'", wanted, c);
}

static bool json_take(struct reader *reader, char c) {
    skip_space(reader);
    if (reader->at == reader->end || *reader->at != c) return false;
    reader->at++;
    return true;
}

/* ---- strings ---- */

static char *put_utf8(char *to, uint32_t c) {
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
        *to++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *to++ = (char)(0xe0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
        *to++ = (char)(0x80 | (c & 0x3f));
    } else {
        *to++ = (char)(0xf0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 0x3f));
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
        *to++ = (char)(0x80 | (c & 0x3f));
    }
    return to;
}

/* Four hexadecimal digits. */
static bool read_unit(struct reader *reader, uint32_t *unit) {
    *unit = 0;
    for (int i = 0; i < 4; i++, reader->at++) {
        char c = reader->at < reader->end ? *reader->at : '\0';
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a') + 10
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A') + 10
                                                : 16;
        if (digit == 16) return json_refuse(reader, "\\u needs four hexadecimal digits");
        *unit = *unit << 4 | digit;
    }
    return true;
}

/* After \u: a character, which may take two units. */
static bool read_character(struct reader *reader, uint32_t *character) {
    uint32_t low = 0;
    if (!read_unit(reader, character)) return false;
    if (*character == 0) return json_refuse(reader, "a string must not contain the character 0");
    if (*character < 0xd800 || *character >= 0xe000) return true;
    bool paired = *character < 0xdc00 && reader->end - reader->at >= 6 && reader->at[0] == '\\' &&
                  reader->at[1] == 'u';
    if (paired) {
        reader->at += 2;
        if (!read_unit(reader, &low)) return false;
        paired = low >= 0xdc00 && low < 0xe000;
    }
    if (!paired) return json_refuse(reader, "a surrogate must be half of a pair");
    *character = 0x10000 + ((*character - 0xd800) << 10 | (low - 0xdc00));
    return true;
}

/* Copies one character of several bytes, if it is well-formed UTF-8. */
static bool copy_utf8(struct reader *reader, char **to) {
    const unsigned char *at = (const unsigned char *)reader->at;
    int more = at[0] >= 0xf0 ? 3 : at[0] >= 0xe0 ? 2 : 1;
    uint32_t character = at[0] & (0x3fu >> more);
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    bool ok = at[0] >= 0xc2 && at[0] <= 0xf4 && reader->end - reader->at > more;
    for (int i = 1; ok && i <= more; i++) {
        ok = (at[i] & 0xc0) == 0x80;
        character = character << 6 | (at[i] & 0x3f);
    }
    ok = ok && character >= least[more] && character < 0x110000 &&
         (character < 0xd800 || character >= 0xe000);
    if (!ok) return json_refuse(reader, "the string is not valid UTF-8");
    for (int i = 0; i <= more; i++) *(*to)++ = *reader->at++;
    return true;
}

static bool read_escape(struct reader *reader, char **to) {
    static const char escapes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    uint32_t character = 0;
    char c = reader->at < reader->end ? *reader->at++ : '\0';
    const char *known = c != '\0' ? strchr(escapes, c) : NULL;
    if (known != NULL) {
        *(*to)++ = meant[known - escapes];
        return true;
    }
    if (c != 'u') return json_refuse(reader, "invalid escape sequence");
    if (!read_character(reader, &character)) return false;
    *to = put_utf8(*to, character);
    return true;
}

/* The parsed string is never longer than its source. */
static bool json_read_string(struct reader *reader, const char **text) {
    if (!json_take(reader, '"')) return refuse_next(reader, "a string");
    const char *close = reader->at;
    while (close < reader->end && *close != '"') close += *close == '\\' ? 2 : 1;
    if (close >= reader->end) return json_refuse(reader, "unterminated string");
    char *to = soft_arena_alloc(reader->arena, (size_t)(close - reader->at) + 1);
    if (to == NULL) return refuse_memory(reader);
    *text = to;
    while (reader->at < close) {
        unsigned char c = (unsigned char)*reader->at;
        if (c < 0x20) return json_refuse(reader, "a string must not contain control characters");
        if (c == '\\') {
            reader->at++;
            if (!read_escape(reader, &to)) return false;
        } else if (c >= 0x80) {
            if (!copy_utf8(reader, &to)) return false;
        } else {
            *to++ = (char)c;
            reader->at++;
        }
    }
    *to = '\0';
    reader->at++;
    return true;
}

/* ---- numbers, without regard to the program's locale ---- */

static bool json_is_digit(const struct reader *reader) {
    return reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9';
}

/* Takes a digit into a number. Past 1e30 a digit changes no double: it only moves the point. */
static void take_digit(double *number, int *exponent, unsigned digit) {
    if (*number < 1e30) {
        *number = *number * 10 + digit;
    } else {
        (*exponent)++;
    }
}

/* The number times a power of ten that may be outside a double's range: the inverse of 1e321 would
 * have hardly any bits left. */
static double json_scale(double number, int exponent) {
    long double power = 1;
    if (number == 0) return 0;
    for (int i = exponent < 0 ? -exponent : exponent; i > 0; i--) power *= 10;
    return (double)(exponent < 0 ? number / power : number * power);
}

static bool read_exponent(struct reader *reader, int *exponent) {
    bool negative = reader->at < reader->end && *reader->at == '-';
    int value = 0;
    if (reader->at < reader->end && (*reader->at == '-' || *reader->at == '+')) reader->at++;
    if (!json_is_digit(reader)) return refuse_next(reader, "a digit of the exponent");
    for (; json_is_digit(reader); reader->at++) {
        if (value < 1000) value = value * 10 + (*reader->at - '0');
    }
    *exponent += negative ? -value : value;
    return true;
}

static bool json_read_number(struct reader *reader, struct soft_json *value) {
    bool negative = *reader->at == '-';
    int exponent = 0;
    value->kind = SOFT_JSON_NUMBER;
    value->whole = !negative;
    if (negative) reader->at++;
    if (!json_is_digit(reader)) return refuse_next(reader, "a digit");
    bool zero = *reader->at == '0';
    for (const char *first = reader->at; json_is_digit(reader); reader->at++) {
        if (zero && reader->at > first)
            return json_refuse(reader, "a number must not begin with 0");
        unsigned digit = (unsigned)(*reader->at - '0');
        take_digit(&value->number, &exponent, digit);
        value->whole &= !__builtin_mul_overflow(value->count, 10u, &value->count) &&
                        !__builtin_add_overflow(value->count, digit, &value->count);
    }
    if (reader->at < reader->end && *reader->at == '.') {
        reader->at++;
        value->whole = false;
        if (!json_is_digit(reader)) return refuse_next(reader, "a digit after the decimal point");
        for (; json_is_digit(reader); reader->at++, exponent--) {
            take_digit(&value->number, &exponent, (unsigned)(*reader->at - '0'));
        }
    }
    if (reader->at < reader->end && (*reader->at == 'e' || *reader->at == 'E')) {
        reader->at++;
        value->whole = false;
        if (!read_exponent(reader, &exponent)) return false;
    }
    value->number = json_scale(value->number, exponent);
    if (negative) value->number = -value->number;
    return true;
}

/* ---- values ---- */

static bool json_read_value(struct reader *reader, struct soft_json *value);

/* The name of a member, which no earlier one of its object has, and the colon. */
static bool json_read_name(struct reader *reader, const struct soft_json *object,
                           struct soft_json *item) {
    const char *name = NULL;
    skip_space(reader);
    const char *begin = reader->at;
    item->name_place = json_place_of(reader);
    if (!json_read_string(reader, &name)) return false;
    if (soft_json_member(object, name) != NULL) {
        reader->at = begin;
        return json_refuse(reader, "duplicate name \"%.60s\"", name);
    }
    item->name = name;
    if (!json_take(reader, ':')) return refuse_next(reader, "':'");
    return true;
}

/* Elements or members up to the closing bracket; the opening one has been read. */
static bool json_read_items(struct reader *reader, struct soft_json *value, char close) {
    struct soft_json **last = &value->first;
    bool named = close == '}';
    value->kind = named ? SOFT_JSON_OBJECT : SOFT_JSON_ARRAY;
    if (++reader->depth > DEPTH_MAX) return json_refuse(reader, "too many nested brackets");
    if (!json_take(reader, close)) {
        do {
            struct soft_json *item = soft_arena_alloc(reader->arena, sizeof *item);
            if (item == NULL) return refuse_memory(reader);
            if (named && !json_read_name(reader, value, item)) return false;
            if (!json_read_value(reader, item)) return false;
            *last = item;
            last = &item->next;
        } while (json_take(reader, ','));
        if (!json_take(reader, close))
            return refuse_next(reader, named ? "',' or '}'" : "',' or ']'");
    }
    reader->depth--;
    return true;
}

static bool json_read_word(struct reader *reader, struct soft_json *value) {
    static const struct {
        const char *word;
        enum soft_json_kind kind;
    } words[] = {{"null", SOFT_JSON_NULL}, {"true", SOFT_JSON_TRUTH}, {"false", SOFT_JSON_TRUTH}};
    for (int i = 0; i < 3; i++) {
        size_t length = strlen(words[i].word);
        if ((size_t)(reader->end - reader->at) < length ||
            memcmp(reader->at, words[i].word, length) != 0) {
            continue;
        }
        reader->at += length;
        value->kind = words[i].kind;
        value->truth = i == 1;
        return true;
    }
    return refuse_next(reader, "a value");
}

static bool json_read_value(struct reader *reader, struct soft_json *value) {
    skip_space(reader);
    value->place = json_place_of(reader);
    char c = reader->at < reader->end ? *reader->at : '\0';
    if (c == '{' || c == '[') {
        reader->at++;
        return json_read_items(reader, value, c == '{' ? '}' : ']');
    }
    if (c == '"') {
        value->kind = SOFT_JSON_STRING;
        return json_read_string(reader, &value->text);
    }
    if (c == '-' || json_is_digit(reader)) return json_read_number(reader, value);
    return json_read_word(reader, value);
}

const struct soft_json *soft_json_read(struct soft_arena *arena, const char *text, size_t bytes,
                                       struct soft_json_error *error) {
    struct reader reader = {.arena = arena,
                            .at = text,
                            .end = text + bytes,
                            .line_begin = text,
                            .line = 1,
                            .error = error};
    struct soft_json *value = soft_arena_alloc(arena, sizeof *value);
    if (value == NULL) {
        refuse_memory(&reader);
        return NULL;
    }
    if (!json_read_value(&reader, value)) return NULL;
    skip_space(&reader);
    if (reader.at < reader.end) {
        refuse_next(&reader, "the end of the file");
        return NULL;
    }
    return value;
}

const struct soft_json *soft_json_member(const struct soft_json *object, const char *name) {
    const struct soft_json *member = object->first;
    while (member != NULL && strcmp(member->name, name) != 0) member = member->next;
    return member;
}
