/*
 * Links, by NVML's stand-in, and the peak of a PCI Express link against figures calculated by hand.
 */
#include "test/test_device.h"
#include "tollens/links.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(links, .fini = test_end);

/* The links that NVML's stand-in beside this program reports for these words. */
static struct tol_links stand_in(const char *words) {
    char path[4096] = "", all[400];
    struct tol_links links;
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
    char *slash = length > 0 ? strrchr(path, '/') : NULL;
    cr_assert(slash != NULL);
    strcpy(slash, "/libnvml-stand-in.so");
    if (access(path, R_OK) != 0) cr_skip_test("there is no stand-in for NVML beside the tests");
    snprintf(all, sizeof all, "%s name=%s", words, tol_context_device(test_context())->name);
    setenv("TOLLENS_LIBNVML", path, 1);
    setenv("TOLLENS_TEST_NVML", all, 1);
    MUST(tol_links_read(test_context(), &links));
    return links;
}

Test(links, numbers_are_told_as_they_are) {
    const struct tol_links links =
        stand_in("generation=4 width=8 generation_max=5 width_max=16 nvlinks=9 nvlink_version=4 "
                 "nvlink_mbps=26562 sent=123456789012 received=7");
    cr_assert(links.is_told && links.reason[0] == '\0');
    cr_assert(links.pcie_generation == 4 && links.pcie_width == 8);
    cr_assert(links.pcie_generation_max == 5 && links.pcie_width_max == 16);
    cr_assert(links.nvlinks == 9 && links.nvlink_version == 30, "%d", links.nvlinks);
    cr_assert(links.nvlink_mb_per_s == 9 * 26562);
    cr_assert(links.nvlink_sent_kib == 123456789012 && links.nvlink_received_kib == 7);
}

/* The stand-in has link 16, the ninth, at a different speed. */
Test(links, speeds_of_each_link_are_added) {
    struct tol_links links =
        stand_in("nvlinks=9 nvlink_version=6 nvlink_mbps=1 each_mbps=26562 last_mbps=20000");
    cr_assert(links.nvlink_version == 40, "%d", links.nvlink_version);
    cr_assert(links.nvlink_mb_per_s == 8 * 26562 + 20000, "%lld", (long long)links.nvlink_mb_per_s);
    links = stand_in("nvlinks=9 nvlink_version=99 nvlink_mbps=3 each_mbps=26562");
    cr_assert(links.nvlink_version == -1 && links.nvlink_mb_per_s == 9 * 3);
    links = stand_in("nvlinks=9");
    cr_assert(links.nvlink_version == -1 && links.nvlink_mb_per_s == -1);
}

Test(links, numbers_that_are_not_told_are_minus_one) {
    const struct tol_links links = stand_in("celsius=1");
    cr_assert(links.is_told && links.pcie_generation == -1 && links.pcie_width_max == -1);
    cr_assert(links.nvlinks == 0 && links.nvlink_mb_per_s == -1 && links.nvlink_sent_kib == -1);
}

Test(links, without_nvml_the_reason_is_told) {
    struct tol_links links;
    setenv("TOLLENS_LIBNVML", "/nowhere.so", 1);
    MUST(tol_links_read(test_context(), &links));
    cr_assert(!links.is_told && strstr(links.reason, "/nowhere.so") != NULL, "%s", links.reason);
    MUST_FAIL(tol_links_read(NULL, &links), TOL_INVALID_ARGUMENT, "NULL");
    MUST_FAIL(tol_links_read(test_context(), NULL), TOL_INVALID_ARGUMENT, "NULL");
}

/* 16 lanes of generation 5: 32 * 16 / 8 * 128 / 130 = 63.015 GB/s, by 256 / 280 and 256 / 276. */
Test(links, the_peak_of_pci_express_is_that_of_its_packets) {
    static const struct {
        int generation, width;
        enum tol_pcie_direction direction;
        unsigned payload;
        double gb_per_s;
    } rows[] = {{5, 16, TOL_PCIE_TO_HOST, 0, 57.614},   {5, 16, TOL_PCIE_TO_DEVICE, 0, 58.449},
                {4, 16, TOL_PCIE_TO_HOST, 256, 28.807}, {3, 8, TOL_PCIE_TO_DEVICE, 128, 6.8131},
                {2, 4, TOL_PCIE_TO_HOST, 128, 1.6842},  {1, 1, TOL_PCIE_TO_HOST, 256, 0.22857}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const double found =
            tol_pcie_peak(rows[i].generation, rows[i].width, rows[i].direction, rows[i].payload);
        cr_assert(fabs(found * 1e-9 / rows[i].gb_per_s - 1) < 1e-3, "row %zu: %g", i, found);
    }
    cr_assert(tol_pcie_peak(6, 16, TOL_PCIE_TO_HOST, 0) == 0);
    cr_assert(tol_pcie_peak(0, 16, TOL_PCIE_TO_HOST, 0) == 0);
    cr_assert(tol_pcie_peak(5, -1, TOL_PCIE_TO_HOST, 0) == 0);
}
