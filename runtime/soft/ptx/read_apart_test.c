/*
 * Bodies that several threads read: the same module, or the same first error, as from one thread.
 */
#include "reader.h"

#include "base/crew.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { FUNCTIONS = 40, LINES = 200, TEXT_BYTES = 1 << 20, THREADS = 4, DEFECTS = 6 };

static char *text;
static size_t used;

static void begin(void) {
    text = calloc(1, TEXT_BYTES);
    cr_assert(text != NULL);
    used = 0;
}

static void end(void) {
    free(text);
}

TestSuite(read_apart, .init = begin, .fini = end);

__attribute__((format(printf, 1, 2))) static void add(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text + used, TEXT_BYTES - used, format, arguments);
    va_end(arguments);
    cr_assert(length >= 0 && (size_t)length < TEXT_BYTES - used);
    used += (size_t)length;
}

/* defect: what the 7th kernel has in its body, and the 30th the first of these; 0: nothing. */
static void write_text(int defect) {
    static const char *const defects[DEFECTS] = {
        "",
        "    mov.u32 %r0, undeclared;\n",
        "    mov.u64 %rd0, later;\n",               /* known, but further down */
        "    .global .u32 inner;\n",                /* the module keeps it: no error */
        "    { .reg .u32 %r7; mov.u32 %r7, 1; }\n", /* as above: no error */
        "    add.u32 %r0, %r1;;;\n",                /* the lowering's to find */
    };
    used = 0;
    add(".version 9.0\n.target sm_90\n.address_size 64\n.global .u32 earlier;\n");
    for (int f = 0; f < FUNCTIONS; f++) {
        add(".visible .entry k%d(.param .u64 p)\n{\n    .reg .u32 %%r<9>;\n    .reg .u64 "
            "%%rd<9>;\n",
            f);
        add("    mov.u64 %%rd0, earlier;\n");
        for (int i = 0; i < LINES; i++) add("L%d: add.u32 %%r%d, %%r%d, %d;\n", i, i % 9, f % 9, i);
        if (f == 7) add("%s", defects[defect]);
        if (f == 30 && defect != 0) add("%s", defects[1]);
        add("    bra L%d;\n    ret;\n}\n", f);
    }
    add(".global .u32 later;\n");
}

static bool read_by(unsigned threads, struct soft_diagnostic *diagnostic,
                    struct soft_share arenas[THREADS + 1], struct ptx_module *module) {
    const struct ptx_shares shares = {arenas + 1, threads};
    *diagnostic = (struct soft_diagnostic){.text = text, .length = used};
    return ptx_read(diagnostic, &arenas[0].arena, &shares, module);
}

static void compare(const struct ptx_module *one, const struct ptx_module *other) {
    const struct ptx_function *a = one->functions, *b = other->functions;
    for (; a != NULL && b != NULL; a = a->next, b = b->next) {
        cr_assert_eq(a->instruction_count, b->instruction_count);
        cr_assert_eq(a->register_count, b->register_count);
        for (uint32_t i = 0; i < a->instruction_count; i++) {
            const struct ptx_instruction *x = &a->instructions[i], *y = &b->instructions[i];
            cr_assert_eq(x->opcode->row, y->opcode->row);
            cr_assert_eq(x->offset, y->offset);
            cr_assert_eq(x->operand_count, y->operand_count);
            cr_assert(x->operand_count == 0 || x->operands[0].reg == y->operands[0].reg);
        }
    }
    cr_assert(a == NULL && b == NULL);
}

Test(read_apart, gives_what_one_thread_gives) {
    for (int defect = 0; defect < DEFECTS; defect++) {
        struct soft_share arenas[2][THREADS + 1] = {0};
        struct soft_diagnostic diagnostics[2];
        struct ptx_module modules[2];
        write_text(defect);
        bool one = read_by(1, &diagnostics[0], arenas[0], &modules[0]);
        bool several = read_by(THREADS, &diagnostics[1], arenas[1], &modules[1]);
        cr_assert_eq(one, several, "defect %d: %s", defect, diagnostics[1].message);
        cr_assert_eq(one, defect == 0);
        cr_assert_str_eq(diagnostics[0].message, diagnostics[1].message);
        if (one) compare(&modules[0], &modules[1]);
        /* Bodies are in the memory of the threads that have read them. */
        bool apart = false, alone = arenas[0][1].arena.blocks == NULL;
        for (int i = 1; i <= THREADS; i++) apart |= arenas[1][i].arena.blocks != NULL;
        cr_assert(alone && apart, "defect %d", defect);
        for (int i = 0; i <= THREADS; i++) {
            soft_arena_clear(&arenas[0][i].arena);
            soft_arena_clear(&arenas[1][i].arena);
        }
    }
}

static void count(void *context, unsigned thread, size_t index) {
    int *counts = context;
    cr_assert(thread < THREADS);
    counts[index]++;
}

Test(read_apart, a_crew_does_each_piece_once) {
    int counts[1000] = {0};
    for (unsigned threads = 1; threads <= THREADS; threads++) {
        soft_crew_run(threads, 1000, count, counts);
    }
    for (int i = 0; i < 1000; i++) cr_assert_eq(counts[i], THREADS);
}
