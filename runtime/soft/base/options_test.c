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

Test(options, an_order_is_one_of_four_words) {
    const char *const name = "TOLLENS_SOFT_ORDER";
    cr_assert_eq(read_with(name, "oldest").order, SOFT_ORDER_OLDEST);
    cr_assert_eq(read_with(name, "newest").order, SOFT_ORDER_NEWEST);
    cr_assert_eq(read_with(name, "drawn").order, SOFT_ORDER_DRAWN);
    cr_assert_eq(read_with(name, "new").order, SOFT_ORDER_TURNS);
    cr_assert_eq(read_with(name, "").order, SOFT_ORDER_TURNS);
}

Test(options, there_is_no_second_processor_level) {
    cr_assert_eq(read_with("TOLLENS_SOFT_CORE", "3").core, 3);
    cr_assert_eq(read_with("TOLLENS_SOFT_CORE", "2").core, 0);
}

Test(options, compute_capabilities_are_those_of_devices) {
    static const char name[] = "TOLLENS_SOFT_COMPUTE";
    cr_assert_eq(read_with(name, "121").compute_capability, 121);
    cr_assert_eq(read_with(name, "100").compute_capability, 100);
    cr_assert_eq(read_with(name, "95").compute_capability, 90);
    cr_assert_eq(read_with(name, "122").compute_capability, 90);
}

/* Source: CUDA Programming Guide 13.0, "CUDA Environment Variables", CUDA_VISIBLE_DEVICES. */
Test(options, visible_devices_are_those_of_cuda) {
    static const struct {
        const char *value;
        int devices, hardware[3];
    } rows[] = {
        {"", 0, {0}},
        {"-1", 0, {0}},
        {"1", 1, {1}},
        {"2,0", 2, {2, 0}},
        {"1,-1,0", 1, {1}},
        {" 2 , 1", 2, {2, 1}},
        {"0,3,1", 1, {0}},
        {"0,0", 1, {0}},
        {"NoDevFiles", 0, {0}},
        {"99999999999999999999", 0, {0}},
        {"MIG-41a04b85-f3ea-5a1c-9d5e-0123456789ab,0", 0, {0}},
        {"GPU-746f6c6c-656e-7320-736f-667420646532", 1, {2}},
        {"GPU-746F6C6C-656E-7320-736F-667420646530,2", 2, {0, 2}},
        {"GPU-746f6c6c", 0, {0}}, /* of all three */
        {"GPU-", 0, {0}},
    };
    setenv("TOLLENS_SOFT_DEVICES", "3", 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct soft_options options = read_with("CUDA_VISIBLE_DEVICES", rows[i].value);
        cr_assert_eq(options.devices, rows[i].devices, "'%s'", rows[i].value);
        for (int d = 0; d < options.devices; d++) {
            cr_assert_eq(options.hardware[d], rows[i].hardware[d], "'%s'", rows[i].value);
        }
    }
    unsetenv("CUDA_VISIBLE_DEVICES");
    cr_assert_eq(read_with("TOLLENS_SOFT_DEVICES", "2").devices, 2);
}
