/*
 * The kernel that only reads: each block's word is the exclusive or of what it was to read.
 */
#include "inputs.h"

#include "test/test_device.h"

#include <stdlib.h>

TestSuite(read_words, .fini = test_end);

Test(read_words, every_word_is_read_once) {
    enum { BLOCK_WORDS = 8192, BLOCKS = 3, PIECES = 2 * BLOCK_WORDS / 4 + 77, WORDS = 4 * PIECES };
    static uint32_t words[WORDS + 4];
    uint32_t expected[BLOCKS] = {0}, sums[BLOCKS] = {0};
    uint64_t random = 1;
    tol_auto_stream struct tol_stream *stream = NULL;
    tol_auto_buffer struct tol_buffer *in = NULL, *out = NULL;
    const struct tol_kernel *kernel = test_kernel("read_words");
    /* What follows is not to be read. */
    for (size_t i = 0; i < WORDS + 4; i++) words[i] = (uint32_t)kn_random(&random);
    for (size_t i = 0; i < WORDS; i++) expected[i / BLOCK_WORDS] ^= words[i];
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_buffer_create(test_context(), WORDS + 4, sizeof words[0], &in));
    MUST(tol_buffer_create(test_context(), BLOCKS, sizeof sums[0], &out));
    MUST(tol_buffer_write(in, words, sizeof words));
    MUST(tol_launch(stream, kernel, (struct tol_launch_shape){BLOCKS, 1, 1, 256, 1, 1, 0},
                    TOL_ARGUMENTS(tol_buffer_address(in), (unsigned long long)PIECES,
                                  tol_buffer_address(out))));
    MUST(tol_stream_synchronize(stream));
    MUST(tol_buffer_read(out, sums, sizeof sums));
    for (int i = 0; i < BLOCKS; i++) {
        cr_assert(sums[i] == expected[i], "block %d: %08x and not %08x", i, sums[i], expected[i]);
    }
}
