/*
 * The arena: small blocks, mapped blocks, and reused memory.
 */
#include "arena.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { LARGE = 5 << 20 };

static bool is_zero(const char *bytes, size_t count) {
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, count - 1) == 0;
}

Test(arena, gives_zeroed_and_aligned_memory_of_any_size) {
    struct soft_arena arena = {0};
    for (size_t bytes = 1; bytes <= LARGE; bytes = bytes * 3 + 1) {
        char *got = soft_arena_alloc(&arena, bytes);
        cr_assert(got != NULL);
        cr_assert_eq((uintptr_t)got % 16, 0);
        cr_assert(is_zero(got, bytes));
        memset(got, 0x5a, bytes);
    }
    soft_arena_clear(&arena);
    cr_assert(arena.blocks == NULL);
}

Test(arena, gives_the_same_memory_again_and_zeroed_after_a_reuse) {
    struct soft_arena arena = {0};
    soft_arena_reuse(&arena);
    char *small = soft_arena_alloc(&arena, 100), *large = soft_arena_alloc(&arena, LARGE);
    cr_assert(small != NULL && large != NULL);
    memset(large, 0x5a, LARGE);
    soft_arena_reuse(&arena);
    char *again = soft_arena_alloc(&arena, LARGE);
    cr_assert_eq(again, large, "the newest block is the one that stays");
    cr_assert(is_zero(again, LARGE));
    soft_arena_clear(&arena);
}

Test(arena, refuses_a_size_that_no_host_has) {
    struct soft_arena arena = {0};
    cr_assert(soft_arena_alloc(&arena, SIZE_MAX / 2) == NULL);
    cr_assert(soft_arena_array(&arena, SIZE_MAX / 2, 16) == NULL);
    soft_arena_clear(&arena);
}
