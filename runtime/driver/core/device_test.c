/*
 * Devices: counted, described, refused by number.
 */
#include "test/test_device.h"

#include <string.h>

TestSuite(device, .fini = test_end);

Test(device, is_described_in_full) {
    struct tol_device device;
    MUST(tol_device_read(test_driver(), 0, &device));
    cr_assert(strlen(device.name) > 0);
    cr_assert(device.ordinal == 0);
    cr_assert(device.compute_capability >= TOL_COMPUTE_CAPABILITY_MIN);
    cr_assert(device.memory_bytes > 1 << 20);
    cr_assert(device.multiprocessors > 0 && device.warp_threads == 32);
    cr_assert(device.block_threads_max >= 512);
    for (int i = 0; i < 3; i++) cr_assert(device.block_max[i] > 0 && device.grid_max[i] > 0);
    cr_assert(device.shared_bytes_per_block >= 48 * 1024);
    cr_assert(device.shared_bytes_per_block_optin >= device.shared_bytes_per_block);
    cr_assert(device.unified_addressing);
    cr_assert(strchr(device.pci_bus_id, ':') != NULL);
    cr_assert(strlen(device.uuid) == 40 && strncmp(device.uuid, "GPU-", 4) == 0, "%s", device.uuid);
    for (int i = 12; i <= 27; i += 5) cr_assert(device.uuid[i] == '-', "%s", device.uuid);
    /* The soft device's is "tollens soft dev", with the device's number for the last byte. */
    if (device.soft) {
        cr_assert_str_eq(device.uuid, "GPU-746f6c6c-656e-7320-736f-667420646530");
    }
}

/* "Valid and invalid device" of spec 003's testing requirements. */
Test(device, a_number_that_is_none_is_refused_with_both_numbers) {
    struct tol_device device = {.ordinal = 77};
    MUST_FAIL(tol_device_read(test_driver(), 999, &device), TOL_NO_DEVICE, "999");
    MUST_FAIL(tol_device_read(test_driver(), -1, &device), TOL_NO_DEVICE, "-1");
    cr_assert(device.ordinal == 77, "a failed call wrote its result");
    /* The ordinal after the last too, before the driver is called. */
    int count = 0;
    MUST(tol_device_count(test_driver(), &count));
    MUST_FAIL(tol_device_read(test_driver(), count, &device), TOL_NO_DEVICE, "the driver reports");
}

Test(device, null_is_refused) {
    int count = 0;
    struct tol_device device;
    MUST_FAIL(tol_device_count(NULL, &count), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_device_count(test_driver(), NULL), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_device_read(test_driver(), 0, NULL), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_device_read(NULL, 0, &device), TOL_INVALID_ARGUMENT, "NULL");
}
