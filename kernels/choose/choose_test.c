/*
 * Which variant of a table is taken, and what is said where none is.
 */
#include "choose/choose.h"

#include "test/test_device.h"

TestSuite(variant, .fini = test_end);

static const struct kn_image old_images[] = {{"", 0, 0, 75, 0, 0}, {NULL, 0, 0, 0, 0, 0}};
static const struct kn_image new_images[] = {{"", 0, 0, 80, 0, 0}, {NULL, 0, 0, 0, 0, 0}};

/* The problem is a number. A row takes numbers up to its size; some take only even ones. */
enum { EVEN = 1 };

static const char *refuses(const struct kn_variant *row, const void *problem) {
    const int number = *(const int *)problem;
    if ((row->needs & EVEN) != 0 && number % 2 != 0) return "the number is odd";
    return row->size != 0 && number > (int)row->size ? "the number is too large" : NULL;
}

static const char *declines(const struct kn_variant *row, const void *problem,
                            const struct tol_device *device) {
    (void)row;
    return *(const int *)problem == device->multiprocessors ? "another is faster" : NULL;
}

static const struct kn_variant rows[] = {
    {.name = "fast",
     .entry = "fast_even",
     .images = new_images,
     .compute_capability_min = 90,
     .needs = EVEN,
     .refuse = refuses,
     .decline = declines},
    {.name = "fast",
     .entry = "fast_small",
     .images = new_images,
     .compute_capability_min = 80,
     .size = 100,
     .refuse = refuses},
    {.name = "naive",
     .entry = "naive",
     .images = old_images,
     .compute_capability_min = 75,
     .size = 100,
     .refuse = refuses},
};
static const struct kn_variants variants = {"double", rows, 3};

enum { DECLINED = 6 };

static const char *picked(int capability, const char *name, int problem) {
    const struct tol_device device = {.compute_capability = capability,
                                      .multiprocessors = DECLINED};
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

Test(variant, a_row_that_declines_is_taken_by_name_alone) {
    cr_assert_str_eq(picked(90, NULL, DECLINED), "fast_small");
    cr_assert_str_eq(picked(90, "fast", DECLINED), "fast_even");
}

Test(variant, refusals_say_why_of_each) {
    const struct tol_device device = {.compute_capability = 80};
    const struct kn_variant *variant = NULL;
    const int problem = 1001;
    MUST_FAIL(kn_variant_pick(&variants, &device, NULL, &problem, &variant), TOL_UNSUPPORTED,
              "fast (fast_even): it needs compute capability 9.0, and the device has 8.0; fast "
              "(fast_small): the number is too large; naive (naive): the number is too large");
    MUST_FAIL(kn_variant_pick(&variants, &device, "naive", &problem, &variant), TOL_UNSUPPORTED,
              "this problem: naive (naive): the number is too large");
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
