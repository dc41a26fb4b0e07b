/*
 * Video instructions as ptxas refuses them; what they compute is in the instruction table.
 */
#include "test/test_soft.h"

#include <string.h>

TestSuite(video, .init = test_soft_open, .fini = test_soft_close);

Test(video, selectors_and_signs_are_refused_where_they_have_no_place) {
    static const char *const bodies[][2] = {
        {"vadd4.u32.u32.u32 %r10.b0123, %r1, %r2, %r3;\n", "higher parts first"},
        {"vadd4.u32.u32.u32 %r10.b00, %r1, %r2, %r3;\n", "higher parts first"},
        {"vadd4.u32.u32.u32 %r10.b4, %r1, %r2, %r3;\n", "a selector from .b3210"},
        {"vadd4.u32.u32.u32 %r10.h10, %r1, %r2, %r3;\n", "a selector from .b3210"},
        {"vadd2.u32.u32.u32 %r10.b10, %r1, %r2, %r3;\n", "a selector from .h10"},
        {"vadd4.u32.u32.u32 %r10, %r1.b32, %r2, %r3;\n", "4 bytes of the two registers"},
        {"vadd2.u32.u32.u32 %r10, %r1.h3, %r2, %r3;\n", "2 half-words of the two registers"},
        {"vadd4.u32.u32.u32 %r10, %r1.b8000, %r2, %r3;\n", "expected ';'"},
        {"vadd2.u32.u32.u32 %r10, %r1.h43, %r2, %r3;\n", "expected ';'"},
        {"vadd4.u32.u32.u32 %r10, %r1, %r2, %r3.b3210;\n", "this operand cannot select"},
        {"vadd4.u32.u32.u32 %r10, 5, %r2, %r3;\n", "expected a register"},
        {"vadd4.u32.u32.u32 %r10, %r1, %r2;\n", "needs 4 operands"},
        {"vadd4.u32.u32.u32.sat.add %r10, %r1, %r2, %r3;\n", "is not valid here"},
        {"vadd.u32.u32.u32 %r10, %r1.b10, %r2;\n", "one byte or half-word"},
        {"vadd.u32.u32.u32 %r10, %r1.b4, %r2;\n", "one byte or half-word"},
        {"vadd.u32.u32.u32 %r10.h0, %r1, %r2;\n", "needs 4 operands"},
        {"vadd.u32.u32.u32.add %r10.h0, %r1, %r2, %r3;\n", "the destination cannot select"},
        {"vmad.u32.u32.u32 %r10.b0, %r1, %r2, %r3;\n", "the destination cannot select"},
        {"vmad.u32.u32.u32.po %r10, %r1, %r2, -%r3;\n", "'-' is not allowed"},
        {"vmad.u32.u32.u32 %r10, -%r1, %r2, -%r3;\n", "cannot both be negated"},
        {"vadd.s32.s32.s32 %r10, -%r1, %r2;\n", "expected a number"},
        {"add.u32 %r10, %r1.b0, %r2;\n", "cannot select part of a register"},
    };
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        char text[1024], log[2048];
        snprintf(text, sizeof text,
                 ".version 8.0\n.target sm_90\n.address_size 64\n.entry k() {\n"
                 ".reg .b32 %%r<20>; %s ret; }\n",
                 bodies[i][0]);
        cr_expect_eq(test_refused(text, log, sizeof log), CUDA_ERROR_INVALID_PTX);
        cr_expect(strstr(log, bodies[i][1]) != NULL, "%s: %s", bodies[i][0], log);
    }
}
