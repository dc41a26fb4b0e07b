/*
 * Clocks, power and temperature by NVML's stand-in, and by the vendor's where there is a GPU.
 */
#include "bench/device_state.h"

#include "test/test_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(device_state, .fini = test_end);

/* NVML's stand-in beside this program, which says these words of the tests' device. */
static const struct tol_device *device_that_says(const char *words) {
    const struct tol_device *device = tol_context_device(test_context());
    char path[4096] = "", text[600];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
    char *slash = length > 0 ? strrchr(path, '/') : NULL;
    cr_assert(slash != NULL);
    strcpy(slash, "/libnvml-stand-in.so");
    if (access(path, R_OK) != 0) cr_skip_test("there is no stand-in for NVML beside the tests");
    snprintf(text, sizeof text, "%s name=%s", words, device->name);
    setenv("TOLLENS_LIBNVML", path, 1);
    setenv("TOLLENS_TEST_NVML", text, 1);
    return device;
}

Test(device_state, clocks_power_and_temperature_are_what_nvml_says, .timeout = 120) {
    struct kn_device_state state;
    const struct tol_device *device =
        device_that_says("sm_mhz=1755 memory_mhz=2619 milliwatts=655125 celsius=58");
    cr_assert(kn_device_state_read(device, &state));
    cr_assert_eq(state.sm_mhz, 1755);
    cr_assert_eq(state.memory_mhz, 2619);
    cr_assert_float_eq(state.watts, 655.125, 1e-9);
    cr_assert_eq(state.celsius, 58);
}

Test(device_state, what_nvml_does_not_report_is_minus_one, .timeout = 120) {
    struct kn_device_state state;
    const struct tol_device *device = device_that_says("celsius=41");
    cr_assert(kn_device_state_read(device, &state));
    cr_assert_eq(state.sm_mhz, -1);
    cr_assert_eq(state.memory_mhz, -1);
    cr_assert_eq(state.watts, -1);
    cr_assert_eq(state.celsius, 41);
}

/* The soft device in a machine with a GPU is not that GPU. */
Test(device_state, another_device_than_ours_is_not_read, .timeout = 120) {
    struct kn_device_state state;
    const struct tol_device *device = device_that_says("celsius=41 name=another");
    cr_assert(!kn_device_state_read(device, &state));
    cr_assert_eq(state.celsius, -1);
}

Test(device_state, a_gpu_reports_all_of_it, .timeout = 120) {
    struct kn_device_state state;
    if (!test_on_gpu()) cr_skip_test("the vendor's NVML needs a GPU");
    if (!kn_device_state_read(tol_context_device(test_context()), &state)) {
        cr_skip_test("there is no NVML here");
    }
    cr_assert(state.sm_mhz > 0 && state.sm_mhz < 5000, "%d MHz", state.sm_mhz);
    cr_assert(state.celsius > 0 && state.celsius < 120, "%d C", state.celsius);
    cr_assert(state.watts > 1 && state.watts < 2000, "%.1f W", state.watts);
}

Test(device_state, it_is_said_in_a_sentence) {
    char text[200];
    const struct kn_device_state before = {345, 2619, 31, 71.25}, after = {1980, 2619, 58, 655};
    kn_device_state_say(&before, &after, text, sizeof text);
    cr_assert_str_eq(text, "clock 345 to 1980 MHz, memory 2619 to 2619 MHz, power 71.2 to 655.0 W, "
                           "31 to 58 C");
}
