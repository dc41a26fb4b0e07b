/*
 * The environment: a number is used exactly as written, or not at all.
 */
#include "options.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>

static struct soft_options read_with(const char *name, const char *value) {
    struct soft_options options;
    setenv(name, value, 1);
    soft_options_read(&options);
    return options;
}

Test(options, a_size_has_digits_and_one_unit) {
    const char *const name = "TOLLENS_SOFT_MEMORY";
    const uint64_t usual = 8ull << 30;
    cr_assert_eq(read_with(name, "512M").memory_bytes, 512ull << 20);
    cr_assert_eq(read_with(name, "2097152").memory_bytes, 2ull << 20);
    static const char *const wrong[] = {"512MB", "M", "5 M", " 512M", "+512M", "-1", "0x200000"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cr_assert_eq(read_with(name, wrong[i]).memory_bytes, usual, "'%s'", wrong[i]);
    }
}

Test(options, a_number_that_overflows_is_ignored) {
    const char *const name = "TOLLENS_SOFT_BUDGET";
    cr_assert_eq(read_with(name, "18446744073709551615").budget, UINT64_MAX);
    cr_assert_eq(read_with(name, "18446744073709551616").budget, 0);
    cr_assert_eq(read_with(name, "99999999999999999999999").budget, 0);
    cr_assert_eq(read_with(name, "18014398509481984K").budget, 0);
    cr_assert_eq(read_with(name, " -1").budget, 0, "strtoull makes the largest number of it");
}

Test(options, there_is_no_second_processor_level) {
    cr_assert_eq(read_with("TOLLENS_SOFT_CORE", "3").core, 3);
    cr_assert_eq(read_with("TOLLENS_SOFT_CORE", "2").core, 0);
}
