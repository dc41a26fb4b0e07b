/*
 * Variants: which one is taken, and what is said where none is.
 */
#include "variant.h"

#include "test/test_device.h"

TestSuite(variant, .fini = test_end);

static const struct kn_image old_images[] = {{"", 0, 0, 75, 0, 0}, {NULL, 0, 0, 0, 0, 0}};
static const struct kn_image new_images[] = {{"", 0, 0, 80, 0, 0}, {NULL, 0, 0, 0, 0, 0}};

/* The problem is a number. */
static const char *odd_refuses(const void *problem) {
    return *(const int *)problem % 2 != 0 ? "the number is odd" : NULL;
}

static const char *large_refuses(const void *problem) {
    return *(const int *)problem > 100 ? "the number is above 100" : NULL;
}

static const struct kn_variant rows[] = {
    {.name = "fast",
     .entry = "fast_even",
     .images = new_images,
     .compute_capability_min = 90,
     .refuse = odd_refuses},
    {.name = "fast",
     .entry = "fast_small",
     .images = new_images,
     .compute_capability_min = 80,
     .refuse = large_refuses},
    {.name = "naive",
     .entry = "naive",
     .images = old_images,
     .compute_capability_min = 75,
     .refuse = large_refuses},
};
static const struct kn_variants variants = {"double", rows, 3};

static const char *picked(int capability, const char *name, int problem) {
    const struct tol_device device = {.compute_capability = capability};
    const struct kn_variant *variant = NULL;
    MUST(kn_variant_pick(&variants, &device, name, &problem, &variant));
    return variant->entry;
}

Test(variant, the_first_that_serves_is_taken) {
    cr_assert_str_eq(picked(90, NULL, 4), "fast_even");
    cr_assert_str_eq(picked(90, NULL, 5), "fast_small", "the first refuses what is odd");
    cr_assert_str_eq(picked(86, NULL, 4), "fast_small", "the first is for newer devices");
    cr_assert_str_eq(picked(75, NULL, 4), "naive");
    cr_assert_str_eq(picked(90, NULL, 1000), "fast_even");
}

Test(variant, a_name_forces_one_of_its_rows) {
    cr_assert_str_eq(picked(90, "naive", 4), "naive");
    cr_assert_str_eq(picked(90, "fast", 5), "fast_small");
}

Test(variant, refusals_say_why_of_each) {
    const struct tol_device device = {.compute_capability = 80};
    const struct kn_variant *variant = NULL;
    const int problem = 1001;
    MUST_FAIL(kn_variant_pick(&variants, &device, NULL, &problem, &variant), TOL_UNSUPPORTED,
              "fast (fast_even): it needs compute capability 9.0, and the device has 8.0; fast "
              "(fast_small): the number is above 100; naive (naive): the number is above 100");
    MUST_FAIL(kn_variant_pick(&variants, &device, "naive", &problem, &variant), TOL_UNSUPPORTED,
              "this problem: naive (naive): the number is above 100");
    MUST_FAIL(kn_variant_pick(&variants, &device, "slow", &problem, &variant), TOL_NOT_FOUND,
              "double has no variant named 'slow'; there are fast, naive");
    cr_assert(variant == NULL);
}

Test(variant, shared_memory_must_be_there) {
    static const struct kn_variant greedy = {
        .name = "greedy", .entry = "greedy", .images = old_images, .shared_bytes = 100 << 10};
    const struct kn_variants alone = {"double", &greedy, 1};
    struct tol_device device = {.compute_capability = 90, .shared_bytes_per_block_optin = 99 << 10};
    const struct kn_variant *variant = NULL;
    MUST_FAIL(kn_variant_pick(&alone, &device, NULL, NULL, &variant), TOL_UNSUPPORTED,
              "it needs 102400 bytes of shared memory a block, and the device has 101376");
    device.shared_bytes_per_block_optin = 100 << 10;
    MUST(kn_variant_pick(&alone, &device, NULL, NULL, &variant));
    cr_assert(variant == &greedy);
}
