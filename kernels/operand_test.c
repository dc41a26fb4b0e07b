/*
 * Sums of products at the edge of size_t, and operands that begin between two elements.
 */
#include "operand.h"

#include "test/test_device.h"

TestSuite(operand, .fini = test_end);

Test(operand, a_product_that_overflows_leaves_the_sum) {
    size_t sum = 5;
    cr_assert(kn_add_product(&sum, 3, 7));
    cr_assert(sum == 26);
    cr_assert(!kn_add_product(&sum, SIZE_MAX, 2));
    cr_assert(!kn_add_product(&sum, SIZE_MAX - 25, 1));
    cr_assert(sum == 26);
    cr_assert(kn_add_product(&sum, SIZE_MAX - 26, 1));
    cr_assert(sum == SIZE_MAX);
}

Test(operand, one_that_begins_between_two_elements_is_refused) {
    tol_auto_buffer struct tol_buffer *buffer = NULL;
    CUdeviceptr begin = 0, end = 0;
    MUST(tol_buffer_create(test_context(), 64, 1, &buffer));
    MUST(kn_operand_locate("a", buffer, 8, 24, 4, &begin, &end));
    cr_assert(begin == tol_buffer_address(buffer) + 8 && end == begin + 16);
    MUST_FAIL(kn_operand_locate("a", buffer, 6, 24, 4, &begin, &end), TOL_INVALID_ARGUMENT,
              "no multiple of an element's 4 bytes");
    cr_assert(begin == tol_buffer_address(buffer) + 8, "a refusal wrote a result");
}
