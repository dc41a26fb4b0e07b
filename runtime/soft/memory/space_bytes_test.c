/*
 * Bytes that are freed while a reader is inside are kept until it has left, and then all are freed.
 */
#include "space.h"
#include "test/test_api.h"

static uint64_t take(void) {
    const struct soft_allocation wanted = {.bytes = 4000, .kind = SOFT_KIND_DEVICE};
    const struct soft_allocation *made = soft_space_alloc(&wanted, 256);
    cr_assert_not_null(made);
    return made->address;
}

static void give(uint64_t address) {
    struct soft_allocation was;
    cr_assert(soft_space_free(address, 1u << SOFT_KIND_DEVICE, &was));
}

static void free_beside_a_reader(void) {
    enum { COUNT = 5 };
    struct soft_space_reader early = {0}, late = {0};
    uint64_t address[COUNT];
    for (int i = 0; i < COUNT; i++) address[i] = take();
    soft_space_enter(&early);
    for (int i = 0; i < 2; i++) give(address[i]);
    soft_space_enter(&late);
    for (int i = 2; i < COUNT; i++) give(address[i]);
    soft_space_leave(&early);
    give(take()); /* the first two may go now */
    soft_space_leave(&late);
    give(take());
}

Test(space_bytes, what_readers_may_have_found_goes_when_they_have_left) {
    api_context(0);
    api_must_keep_nothing(free_beside_a_reader, 500);
}
