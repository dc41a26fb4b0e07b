/*
 * The JSON parser: what it accepts, what it refuses, and the position of the error.
 */
#include "json.h"
#include "test/test_api.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct soft_arena arena;
static struct soft_json_error error;

static const struct soft_json *read_bytes(const char *text, size_t bytes) {
    memset(&error, 0, sizeof error);
    return soft_json_read(&arena, text, bytes, &error);
}

static const struct soft_json *read(const char *text) {
    const struct soft_json *value = read_bytes(text, strlen(text));
    cr_assert(value != NULL, "%s: %s", text, error.text);
    return value;
}

static void end(void) {
    soft_arena_clear(&arena);
}

TestSuite(json, .fini = end);

Test(json, words_are_values) {
    cr_assert_eq(read("null")->kind, SOFT_JSON_NULL);
    cr_assert(read(" true ")->truth && read("true")->kind == SOFT_JSON_TRUTH);
    cr_assert(!read("\t\r\nfalse")->truth);
}

Test(json, numbers_have_their_values) {
    static const struct {
        const char *text;
        double number;
        bool whole;
    } rows[] = {{"0", 0, true},         {"-0", 0, false},
                {"7", 7, true},         {"-12", -12, false},
                {"0.25", 0.25, false},  {"1e3", 1000, false},
                {"25E-2", 0.25, false}, {"1.5e+2", 150, false},
                {"0e999", 0, false},    {"1e400", 1.0 / 0.0, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct soft_json *value = read(rows[i].text);
        cr_assert(value->kind == SOFT_JSON_NUMBER && value->whole == rows[i].whole, "%s",
                  rows[i].text);
        double difference = value->number - rows[i].number;
        cr_assert(value->number == rows[i].number || (difference < 1e-15 && difference > -1e-15),
                  "%s is %g", rows[i].text, value->number);
    }
    cr_assert_eq(read("18446744073709551615")->count, UINT64_MAX);
    cr_assert(!read("18446744073709551616")->whole);
    cr_assert(!read("99999999999999999999")->whole);
}

/* Sources: the C compiler's own reading of the same digits. Fuzzing found the first. */
Test(json, long_numbers_have_their_values) {
#define NUMBER(text) {#text, text}
    static const struct {
        const char *text;
        double number;
    } rows[] = {NUMBER(55555555555555555555555555555555555555555e-321),
                NUMBER(0.00000000000000000000000000000000000000012345e340),
                NUMBER(123456789012345678901234567890123456789.25),
                NUMBER(2.2250738585072014e-308),
                NUMBER(1.7976931348623157e308)};
#undef NUMBER
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const double number = read(rows[i].text)->number;
        cr_assert(fabs(number - rows[i].number) <= 1e-13 * rows[i].number, "%s is %.17g",
                  rows[i].text, number);
    }
    /* More digits than a double has powers of ten. */
    static char digits[420];
    memset(digits, '7', 400);
    snprintf(digits + 400, sizeof digits - 400, "e-400");
    cr_assert(fabs(read(digits)->number - 7.0 / 9) < 1e-13, "%.17g", read(digits)->number);
}

Test(json, strings_are_unescaped) {
    cr_assert_str_eq(read("\"\"")->text, "");
    cr_assert_str_eq(read("\"a\\\"\\\\\\/\\b\\f\\n\\r\\tz\"")->text, "a\"\\/\b\f\n\r\tz");
    cr_assert_str_eq(read("\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"")->text,
                     "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    /* The first and the last surrogate pair, and the neighbours of lone halves. */
    cr_assert_str_eq(read("\"\\ud800\\udc00\\udbff\\udfff\"")->text,
                     "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
    cr_assert_str_eq(read("\"\\ud7ff\\ue000\"")->text, "\xed\x9f\xbf\xee\x80\x80");
    cr_assert_str_eq(read("\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"")->text,
                     "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
}

Test(json, arrays_and_objects_keep_their_order_and_places) {
    const struct soft_json *value = read("{\n  \"b\": [1, [], {}],\n\n  \"a\": \"x\"\n}");
    cr_assert(value->kind == SOFT_JSON_OBJECT && value->place.line == 1);
    const struct soft_json *b = value->first, *a = b->next;
    cr_assert(strcmp(b->name, "b") == 0 && b->kind == SOFT_JSON_ARRAY && b->place.line == 2);
    cr_assert(b->name_place.column == 3 && b->place.column == 8 && a->place.column == 8);
    cr_assert(b->first->count == 1 && b->first->next->kind == SOFT_JSON_ARRAY);
    cr_assert(b->first->next->next->kind == SOFT_JSON_OBJECT);
    cr_assert(b->first->next->next->next == NULL);
    cr_assert(strcmp(a->name, "a") == 0 && a->place.line == 4 && a->next == NULL);
    cr_assert(soft_json_member(value, "a") == a && soft_json_member(value, "c") == NULL);
}

Test(json, what_is_not_json_is_refused_where_it_is) {
    static const struct {
        const char *text;
        unsigned line, column;
        const char *why;
    } rows[] = {
        {"", 1, 1, "expected a value, not the end of the file"},
        {"\n\n", 3, 1, "expected a value, not the end of the file"},
        {"nul", 1, 1, "expected a value, not 'n'"},
        {"1 2", 1, 3, "expected the end of the file, not '2'"},
        {"[1,\n]", 2, 1, "expected a value, not ']'"},
        {"[1 2]", 1, 4, "expected ',' or ']', not '2'"},
        {"{\"a\" 1}", 1, 6, "expected ':', not '1'"},
        {"{\"a\": 1,}", 1, 9, "expected a string, not '}'"},
        {"{a: 1}", 1, 2, "expected a string, not 'a'"},
        {"{\"a\": 1", 1, 8, "expected ',' or '}', not the end of the file"},
        {"{\"a\": 1,\n\"a\": 2}", 2, 1, "duplicate name \"a\""},
        {"01", 1, 2, "a number must not begin with 0"},
        {"-", 1, 2, "expected a digit, not the end of the file"},
        {"1.", 1, 3, "expected a digit after the decimal point, not the end of the file"},
        {"1e", 1, 3, "expected a digit of the exponent, not the end of the file"},
        {".5", 1, 1, "expected a value, not '.'"},
        {"+1", 1, 1, "expected a value, not '+'"},
        {"\"a", 1, 2, "unterminated string"},
        {"\"a\\\"", 1, 2, "unterminated string"},
        {"\"a\\", 1, 2, "unterminated string"},
        {"\"\\x\"", 1, 4, "invalid escape sequence"},
        {"\"\\u12g4\"", 1, 6, "\\u needs four hexadecimal digits"},
        {"\"\\u0000\"", 1, 8, "a string must not contain the character 0"},
        {"\"\\ud83d\"", 1, 8, "a surrogate must be half of a pair"},
        {"\"\\ud83d\\u0041\"", 1, 14, "a surrogate must be half of a pair"},
        {"\"\\ude00\"", 1, 8, "a surrogate must be half of a pair"},
        {"\"\\ud800\"", 1, 8, "a surrogate must be half of a pair"},
        {"\"\\udfff\"", 1, 8, "a surrogate must be half of a pair"},
        {"\"\\ud800\\ud800\"", 1, 14, "a surrogate must be half of a pair"},
        {"\"\\ud800\\ue000\"", 1, 14, "a surrogate must be half of a pair"},
        {"\"a\nb\"", 1, 3, "a string must not contain control characters"},
        {"\"\x80\"", 1, 2, "the string is not valid UTF-8"},
        {"\"\xc3\"", 1, 2, "the string is not valid UTF-8"},
        {"\"\xc0\xaf\"", 1, 2, "the string is not valid UTF-8"},
        {"\"\xe0\x80\xaf\"", 1, 2, "the string is not valid UTF-8"},
        {"\"\xed\xa0\x80\"", 1, 2, "the string is not valid UTF-8"},
        {"\"\xf4\x90\x80\x80\"", 1, 2, "the string is not valid UTF-8"},
        {"\x01", 1, 1, "expected a value, not byte 0x01"},
        {"// no\n1", 1, 1, "expected a value, not '/'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct soft_json *value = read_bytes(rows[i].text, strlen(rows[i].text));
        cr_assert(value == NULL, "'%s' is taken", rows[i].text);
        cr_assert(error.place.line == rows[i].line && error.place.column == rows[i].column &&
                      strcmp(error.text, rows[i].why) == 0,
                  "'%s': %u:%u: %s", rows[i].text, error.place.line, error.place.column,
                  error.text);
    }
    cr_assert(read_bytes("1\0", 2) == NULL, "a NUL after it");
}

Test(json, nesting_has_an_end) {
    char text[401] = "";
    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    (void)read(text);
    memset(text, '[', 400);
    cr_assert(read_bytes(text, 400) == NULL);
    cr_assert_str_eq(error.text, "too many nested brackets");
}

Test(json, a_text_needs_memory) {
    if (api_heap() == 0) cr_skip_test("a sanitizer's allocator ends the process instead");
    void *all = api_take_memory();
    const struct soft_json *value = read_bytes("1", 1);
    api_give_memory(all);
    cr_assert_null(value);
    cr_assert_str_eq(error.text, "out of memory");
    (void)read("1");
}
