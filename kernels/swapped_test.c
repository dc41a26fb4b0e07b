/*
 * Two elements are exchanged, and nothing else changes.
 */
#include "swapped.h"

#include <criterion/criterion.h>
#include <string.h>

Test(swapped, the_last_two_different_elements_are_exchanged) {
    unsigned numbers[] = {7, 1, 2, 3, 3, 3};
    const unsigned swapped[] = {7, 1, 3, 3, 3, 2};
    cr_assert(kn_swap_last(numbers, 4, 6));
    cr_assert(memcmp(numbers, swapped, sizeof numbers) == 0);
    unsigned char bytes[] = {4, 4, 9, 5};
    cr_assert(kn_swap_last(bytes, 1, 4) && bytes[2] == 5 && bytes[3] == 9 && bytes[0] == 4);
    unsigned short halves[] = {1, 2};
    cr_assert(kn_swap_last(halves, 2, 2) && halves[0] == 2 && halves[1] == 1);
}

Test(swapped, where_all_are_the_same_nothing_changes) {
    unsigned numbers[] = {3, 3, 3};
    cr_assert(!kn_swap_last(numbers, 4, 3) && numbers[0] == 3 && numbers[2] == 3);
    cr_assert(!kn_swap_last(numbers, 4, 1) && !kn_swap_last(numbers, 4, 0));
}
