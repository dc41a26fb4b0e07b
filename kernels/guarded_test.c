/*
 * Guarded buffers: what a kernel writes outside is seen, and what it does not write as well.
 */
#include "guarded.h"

#include "test/test_device.h"

#include <math.h>
#include <string.h>

TestSuite(guarded, .fini = test_end);

Test(guarded, what_was_never_written_is_nan) {
    float values[25];
    struct kn_guarded guarded = {0};
    MUST(kn_guarded_create(test_context(), sizeof values, 0, &guarded));
    MUST(kn_guarded_read(&guarded, values));
    for (int i = 0; i < 25; i++) cr_assert(isnan(values[i]), "element %d", i);
    memset(values, 0, sizeof values);
    MUST(kn_guarded_write(&guarded, values));
    size_t changed = 1;
    MUST(kn_guarded_check(&guarded, &changed));
    cr_assert(changed == 0);
    MUST(kn_guarded_poison(&guarded));
    MUST(kn_guarded_read(&guarded, values));
    cr_assert(isnan(values[24]));
    kn_guarded_destroy(&guarded);
}

Test(guarded, every_byte_outside_is_watched) {
    enum { BYTES = 100, SKEW = 12 };
    struct kn_guarded guarded = {0};
    MUST(kn_guarded_create(test_context(), BYTES, SKEW, &guarded));
    cr_assert((tol_buffer_address(guarded.buffer) + guarded.offset) % 256 == SKEW);
    const size_t places[] = {0, guarded.offset - 1, guarded.offset + BYTES,
                             tol_buffer_bytes(guarded.buffer) - 1};
    for (size_t i = 0; i < 4; i++) {
        size_t changed = 0;
        MUST(tol_buffer_fill_at(guarded.buffer, places[i], 0, 1, 1));
        MUST(kn_guarded_check(&guarded, &changed));
        cr_assert(changed == i + 1, "%zu changed", changed);
    }
    kn_guarded_destroy(&guarded);
    MUST(kn_guarded_create(test_context(), 0, 0, &guarded));
    kn_guarded_destroy(&guarded);
    MUST_FAIL(kn_guarded_create(test_context(), 1, KN_GUARD_BYTES, &guarded), TOL_OUT_OF_RANGE,
              "4096");
}
