/*
 * The corpus's programs about control: calls, switches, recursion, sorting, text.
 */
#include "corpus_scene.h"

#include "bytecode.h"
#include "byvalue.h"
#include "pointers.h"
#include "recursion.h"
#include "sorting.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

TestSuite(corpus_calls, .fini = test_soft_close);

/* The device's words, each against the host's. */
#define SAME(what, i, got, expected)                                                               \
    cr_assert_eq(got, expected, "%s: %s %u: 0x%llx, not 0x%llx", corpus_version(), what,           \
                 (unsigned)(i), (unsigned long long)(got), (unsigned long long)(expected))

static void check_bytecode(CUmodule module) {
    enum { COUNT = 300 };
    uint8_t code[BYTECODE_LENGTH];
    uint32_t out[COUNT], count = COUNT;
    for (uint32_t program = 0; program < 4; program++) {
        for (uint32_t i = 0; i < BYTECODE_LENGTH; i++) {
            code[i] = (uint8_t)corpus_mix(program * 1000 + i);
        }
        CUdeviceptr device_code = corpus_put(code, sizeof code);
        CUdeviceptr device_out = corpus_put(NULL, sizeof out);
        CORPUS_LAUNCH(module, "bytecode", 3, 128, 0, &device_code, &device_out, &count);
        corpus_get(device_out, out, sizeof out);
        for (uint32_t i = 0; i < COUNT; i++) SAME("seed", i, out[i], bytecode_run(code, i));
    }
}

CORPUS_TEST(corpus_calls, an_interpreter_of_bytes,
            { cr_assert_eq(corpus_each("bytecode", check_bytecode), 3); })

static void check_recursion(CUmodule module) {
    enum { COUNT = 70 };
    uint32_t out[5 * COUNT], count = COUNT;
    CUdeviceptr device_out = corpus_put(NULL, sizeof out);
    CORPUS_LAUNCH(module, "recursion", 1, 96, 0, &device_out, &count);
    corpus_get(device_out, out, sizeof out);
    for (uint32_t i = 0; i < COUNT; i++) {
        SAME("fibonacci", i, out[i], fibonacci(i % 12));
        SAME("ackermann", i, out[COUNT + i], ackermann(i % 3, i % 4));
        SAME("queens", i, out[2 * COUNT + i], queens((1u << (i % 6 + 1)) - 1, 0, 0, 0));
        SAME("towers", i, out[3 * COUNT + i], towers_run(i % 6));
        SAME("male or female", i, out[4 * COUNT + i], i % 2 ? male(i % 20) : female(i % 20));
    }
}

CORPUS_TEST(corpus_calls, recursions,
            { cr_assert_eq(corpus_each("recursion", check_recursion), 4); })

static void check_byvalue(CUmodule module) {
    enum { COUNT = 70 };
    struct mixed given = {9, -300, 77, 1.25, {'h', 'e', 'l', 'l', 'o'}, {-5, 600}}, kept, expected;
    uint32_t out[COUNT], count = COUNT;
    CUdeviceptr device_out = corpus_put(NULL, sizeof out);
    CUdeviceptr device_kept = corpus_put(NULL, sizeof kept);
    CORPUS_LAUNCH(module, "byvalue", 1, 96, 0, &given, &device_kept, &device_out, &count);
    corpus_get(device_out, out, sizeof out);
    corpus_get(device_kept, &kept, sizeof kept);
    for (uint32_t i = 0; i < COUNT; i++) SAME("thread", i, out[i], byvalue_run(i));
    expected = mixed_next(given, 4);
    cr_assert(kept.tag == expected.tag && kept.s == expected.s && kept.u == expected.u &&
              kept.d == expected.d && memcmp(kept.text, expected.text, 5) == 0 &&
              kept.inner.a == expected.inner.a && kept.inner.b == expected.inner.b);
}

CORPUS_TEST(corpus_calls, structures_by_value,
            { cr_assert_eq(corpus_each("byvalue", check_byvalue), 4); })

static void check_pointers(CUmodule module) {
    enum { COUNT = 32 };
    static pointers_binary *const table[4] = {pointers_add, pointers_subtract, pointers_multiply,
                                              pointers_larger};
    static const char *const texts[4] = {"34a2c", "9128bbd", "56c78cd9a", "1234567aaaaaa"};
    char lines[COUNT][16] = {{0}};
    int32_t values[COUNT];
    uint32_t out[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        strcpy(lines[i], texts[i % 4]);
        lines[i][0] = (char)('0' + i % 10);
    }
    CUdeviceptr device_lines = corpus_put(lines, sizeof lines);
    CUdeviceptr device_values = corpus_put(NULL, sizeof values);
    CORPUS_LAUNCH(module, "evaluate", 1, COUNT, 0, &device_lines, &device_values);
    corpus_get(device_values, values, sizeof values);
    for (uint32_t i = 0; i < COUNT; i++) {
        SAME("line", i, values[i], pointers_evaluate(lines[i], table));
    }
    CUdeviceptr device_out = corpus_put(NULL, sizeof out);
    CORPUS_LAUNCH(module, "sorted", 1, COUNT, 0, &device_out);
    corpus_get(device_out, out, sizeof out);
    for (uint32_t i = 0; i < COUNT; i++) {
        pointers_order *before = i % 3 == 0   ? pointers_upward
                                 : i % 3 == 1 ? pointers_downward
                                              : pointers_by_last_digit;
        SAME("order", i, out[i], pointers_sorted(i, before));
    }
    /* Objects that one kernel makes and another calls: their tables stay where they are. */
    CUdeviceptr room = corpus_put(NULL, 32 * COUNT), shapes = corpus_put(NULL, 8 * COUNT);
    CORPUS_LAUNCH(module, "make_shapes", 1, COUNT, 0, &room, &shapes);
    CORPUS_LAUNCH(module, "areas", 1, COUNT, 0, &shapes, &device_out);
    corpus_get(device_out, out, sizeof out);
    for (uint32_t i = 0; i < COUNT; i++) SAME("area", i, out[i], pointers_area(i));
}

CORPUS_TEST(corpus_calls, functions_by_address_and_virtual_ones,
            { cr_assert_eq(corpus_each("pointers", check_pointers), 4); })

static void check_sorting(CUmodule module) {
    enum { THREADS = 80, KEYS = 512, FLOATS = 1024 };
    static int32_t out[THREADS * SORTING_COUNT], expected[SORTING_COUNT];
    static uint64_t keys[KEYS];
    static float floats[FLOATS];
    CUdeviceptr device_out = corpus_put(NULL, sizeof out);
    CORPUS_LAUNCH(module, "quicksort", 2, THREADS / 2, 0, &device_out);
    corpus_get(device_out, out, sizeof out);
    for (uint32_t t = 0; t < THREADS; t++) {
        sorting_fill(expected, t);
        sorting_insert(expected, 0, SORTING_COUNT - 1);
        for (uint32_t i = 0; i < SORTING_COUNT; i++) {
            SAME("value", i, out[t * SORTING_COUNT + i], expected[i]);
        }
    }
    for (uint32_t i = 0; i < KEYS; i++) {
        keys[i] = (uint64_t)corpus_mix(i) << 32 | corpus_mix(i + 9);
    }
    CUdeviceptr device_keys = corpus_put(keys, sizeof keys);
    CORPUS_LAUNCH(module, "bitonic_block", 2, KEYS / 2, KEYS / 2 * 8, &device_keys);
    uint64_t sum = 0, sorted_sum = 0;
    for (uint32_t i = 0; i < KEYS; i++) sum += keys[i] * (keys[i] | 1);
    corpus_get(device_keys, keys, sizeof keys);
    for (uint32_t i = 0; i < KEYS; i++) {
        sorted_sum += keys[i] * (keys[i] | 1);
        cr_assert(i % (KEYS / 2) == 0 || keys[i - 1] <= keys[i], "%s: %u", corpus_version(), i);
    }
    cr_assert_eq(sum, sorted_sum, "the same keys");
    for (uint32_t i = 0; i < FLOATS; i++) floats[i] = (float)(int32_t)corpus_mix(i) * 0x1p-10f;
    CUdeviceptr device_floats = corpus_put(floats, sizeof floats);
    for (uint32_t k = 2; k <= FLOATS; k *= 2) {
        for (uint32_t j = k / 2; j > 0; j /= 2) {
            CORPUS_LAUNCH(module, "bitonic_step", 4, FLOATS / 4, 0, &device_floats, &k, &j);
        }
    }
    corpus_get(device_floats, floats, sizeof floats);
    for (uint32_t i = 1; i < FLOATS; i++) cr_assert(floats[i - 1] <= floats[i], "%u", i);
}

CORPUS_TEST(corpus_calls, sorts_with_and_without_a_stack,
            { cr_assert_eq(corpus_each("sorting", check_sorting), 4); })

static void check_strings(CUmodule module) {
    enum { COUNT = 64, LINE = 64 };
    static struct text_record records[COUNT], expected;
    static int32_t values[COUNT];
    static char lines[COUNT][LINE];
    uint32_t places[COUNT], count = COUNT;
    for (uint32_t i = 0; i < COUNT; i++) {
        values[i] = (int32_t)(corpus_mix(i) >> (i % 30)) * (i % 3 == 0 ? -1 : 1);
    }
    values[5] = INT32_MIN;
    values[6] = 0;
    CUdeviceptr device_records = corpus_put(NULL, sizeof records);
    CUdeviceptr device_values = corpus_put(values, sizeof values);
    CORPUS_LAUNCH(module, "text", 1, COUNT, 0, &device_records, &device_values, &count);
    corpus_get(device_records, records, sizeof records);
    for (uint32_t i = 0; i < COUNT; i++) {
        text_fill(&expected, values[i]);
        cr_assert_str_eq(records[i].name, expected.name, "%s", corpus_version());
        SAME("value", i, records[i].value, expected.value);
        cr_assert(records[i].scaled == expected.scaled);
        cr_assert(memcmp(records[i].digits, expected.digits, sizeof expected.digits) == 0);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        snprintf(lines[i], LINE, "%.*s %.*s  %.*s", (int)(i % 7), "abcdefg", (int)(i % 11),
                 "hijklmnopqr", (int)(i % 5), "stuvw");
    }
    CUdeviceptr device_lines = corpus_put(lines, sizeof lines);
    CUdeviceptr device_places = corpus_put(NULL, sizeof places);
    uint32_t bytes = LINE;
    CORPUS_LAUNCH(module, "longest", 1, COUNT, 0, &device_lines, &bytes, &device_places);
    corpus_get(device_places, places, sizeof places);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t lengths[3] = {i % 7, i % 11, i % 5}, best = 0;
        for (int k = 0; k < 3; k++) best = lengths[k] > best ? lengths[k] : best;
        uint32_t at = best == 0            ? 0
                      : best == lengths[0] ? 0
                      : best == lengths[1] ? lengths[0] + 1
                                           : lengths[0] + lengths[1] + 3;
        SAME("line", i, places[i], at << 16 | best);
    }
}

CORPUS_TEST(corpus_calls, text_and_bytes, { cr_assert_eq(corpus_each("text", check_strings), 3); })
