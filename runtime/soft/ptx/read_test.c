/*
 * The PTX reader: declarations, constants and operands, and refused ones with line, column and
 * caret.
 */
#include "reader.h"
#include "test/test_soft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct soft_arena arena;
static struct soft_diagnostic diagnostic;
static struct ptx_module module;

static void clear(void) {
    soft_arena_clear(&arena);
    test_soft_close();
}

TestSuite(read, .fini = clear);

#define HEADER ".version 8.0\n.target sm_90\n.address_size 64\n"

static bool read_text(const char *text) {
    diagnostic = (struct soft_diagnostic){.text = text, .length = strlen(text)};
    return ptx_read(&diagnostic, &arena, &(struct ptx_shares){NULL, 1}, &module);
}

static const struct ptx_variable *variable(const char *name) {
    const struct ptx_symbol *symbol = ptx_symbol_here(module.scope, name, strlen(name));
    cr_assert(symbol != NULL && symbol->kind == PTX_VARIABLE, "%s", name);
    return symbol->is.variable;
}

static const struct ptx_function *function(const char *name) {
    const struct ptx_symbol *symbol = ptx_symbol_here(module.scope, name, strlen(name));
    cr_assert(symbol != NULL && symbol->kind == PTX_FUNCTION, "%s", name);
    return symbol->is.function;
}

Test(read, version_and_target_are_noted) {
    cr_assert(read_text(".version 8.0 .target sm_90a, debug .address_size 64"), "%s",
              diagnostic.message);
    cr_assert_eq(module.version, 80);
    cr_assert_eq(module.target, 90);
    cr_assert_eq(module.target_suffix, 'a');
    cr_assert(read_text(".version 6.0\n.target sm_70\n"), "%s", diagnostic.message);
    cr_assert(module.version == 60 && module.target == 70 && module.target_suffix == '\0');
}

Test(read, constant_expressions_are_those_of_c) {
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {
        {"0", 0},
        {"017 + 0x1F + 0b11 + 9U", 15 + 31 + 3 + 9},
        {"2 + 3 * 4 - 10 / 3 % 2", 13},
        {"(2 + 3) * 4", 20},
        {"-7 / 2", -3},
        {"-7 % 2", -1},
        {"1 << 4 | 3 & 2 ^ 1", 19},
        {"1 << 2 + 1", 8},
        {"0xFFFFFFFF + 1", 0x100000000},
        {"1 == 1 != 0", 1},
        {"3 > 2 && 2 >= 2 || 0", 1},
        {"!5 + !0", 1},
        {"~0", -1},
        {"-1 < 0", 1},
        {"- - 3", 3},
        {"1 ? 2 : 3", 2},
        {"5 & 6 && 0 ? 2 : 3", 3},
        {"100 >> 2 >> 1", 12},
        {"0 ? 1 : 0 ? 2 : 4", 4},
        {"(0 ? 1 : 2) + (1 ? 30 : 40)", 32},
        {"WARP_SZ * 2", 64},
        {"(.s64) -1", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[200];
        snprintf(text, sizeof text, HEADER ".global .s64 x = %s;", cases[i].text);
        cr_assert(read_text(text), "%s: %s", text, diagnostic.message);
        int64_t value = 0;
        memcpy(&value, variable("x")->data, 8);
        cr_assert_eq(value, cases[i].value, "%s is %lld, not %lld", cases[i].text, (long long)value,
                     (long long)cases[i].value);
    }
}

Test(read, variables_have_their_size_alignment_and_bytes) {
    static const unsigned char bytes[] = {1, 2, 3, 0}, rows[] = {1, 2, 0, 3, 4, 5},
                               mixed[] = {0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 7, 0, 0, 0};
    static const unsigned char doubles[] = {0, 0, 0, 0, 0, 0, 0xf0, 0x3f};
    cr_assert(read_text(HEADER ".global .align 16 .b8 bytes[4] = {1, 2, 3};\n"
                               ".global .u8 rows[2][3] = {{1, 2}, {3, 4, 5}};\n"
                               ".const .f32 mixed[] = {1.0, -2.0, 0f00000007};\n"
                               ".global .f64 d = 0d3FF0000000000000, e;\n"
                               ".global .v4 .f32 vector;\n"
                               ".extern .shared .align 8 .b8 dynamic[];\n"
                               ".visible .global .s16 open[] = {-1, 0xffff};\n"),
              "%s", diagnostic.message);
    const struct ptx_variable *v = variable("bytes");
    cr_assert(v->bytes == 4 && v->alignment == 16 && memcmp(v->data, bytes, 4) == 0);
    v = variable("rows");
    cr_assert(v->bytes == 6 && v->alignment == 1 && memcmp(v->data, rows, 6) == 0);
    v = variable("mixed");
    cr_assert(v->bytes == 12 && v->alignment == 4 && memcmp(v->data, mixed, 12) == 0);
    cr_assert(v->space == PTX_constant);
    v = variable("d");
    cr_assert(v->bytes == 8 && memcmp(v->data, doubles, 8) == 0);
    cr_assert(variable("e")->data == NULL && variable("e")->bytes == 8);
    cr_assert(variable("vector")->bytes == 16 && variable("vector")->alignment == 16);
    v = variable("dynamic");
    cr_assert(v->external && v->is_unsized && v->alignment == 8);
    v = variable("open");
    cr_assert(v->bytes == 4 && v->data[0] == 0xff && v->data[3] == 0xff);
}

Test(read, addresses_in_data_are_noted_for_later) {
    cr_assert(read_text(HEADER ".global .b8 text[6] = {104, 101, 108, 108, 111, 0};\n"
                               ".global .u64 p[3] = {text, generic(text)+2, text+4};\n"
                               ".global .b8 q[2] = {0xFF(text), 0xFF00(text)};\n"),
              "%s", diagnostic.message);
    unsigned seen = 0;
    for (const struct ptx_relocation *r = variable("p")->relocations; r != NULL; r = r->next) {
        cr_assert(r->symbol->is.variable == variable("text") && r->bytes == 8);
        cr_assert_eq(r->addend, (int64_t)r->at / 4, "%lld at %llu", (long long)r->addend,
                     (unsigned long long)r->at);
        cr_assert_eq(r->generic, r->at == 8);
        seen++;
    }
    cr_assert_eq(seen, 3);
    for (const struct ptx_relocation *r = variable("q")->relocations; r != NULL; r = r->next) {
        cr_assert(r->masked && r->bytes == 1 && r->mask_shift == 8 * r->at);
    }
}

Test(read, a_function_is_read_whole) {
    cr_assert(read_text(HEADER ".visible .entry k(.param .u64 .ptr .global .align 16 p,\n"
                               "                  .param .align 4 .b8 s[12], .param .f32 x)\n"
                               ".maxntid 128, 2\n.minnctapersm 2\n.maxnreg 64\n"
                               "{\n"
                               "    .reg .pred %p<2>;\n"
                               "    .reg .b32 %r<3>, single;\n"
                               "    .loc 1 20 3\n"
                               "    @!%p1 add.u32 %r1, %r2, -single;\n"
                               "    ret;\n"
                               "}\n") == false);
    cr_assert(strstr(diagnostic.message, "ptx:13:30:") == diagnostic.message, "%s",
              diagnostic.message);
    cr_assert(read_text(HEADER ".visible .entry k(.param .u64 .ptr .global .align 16 p,\n"
                               "                  .param .align 4 .b8 s[12], .param .f32 x)\n"
                               ".maxntid 128, 2\n.minnctapersm 2\n.maxnreg 64\n"
                               "{\n"
                               "    .reg .pred %p<2>;\n"
                               "    .reg .b32 %r<3>, single;\n"
                               "    .loc 1 20 3\n"
                               "    @!%p1 add.u32 %r1, %r2, single;\n"
                               "    { .reg .b64 %r<3>; mov.u64 %r1, 5; }\n"
                               "    cvt.v2.u32.u16 {%r1, _}, {%r2, 3};\n"
                               "}\n") == false,
              "cvt has no .v2");
    cr_assert(read_text(HEADER ".visible .entry k(.param .u64 .ptr .global .align 16 p,\n"
                               "                  .param .align 4 .b8 s[12], .param .f32 x)\n"
                               ".maxntid 128, 2\n.minnctapersm 2\n.maxnreg 64\n"
                               "{\n"
                               "    .reg .pred %p<2>;\n"
                               "    .reg .b32 %r<3>, single;\n"
                               "    .loc 1 20 3\n"
                               "    @!%p1 add.u32 %r1, %r2, single;\n"
                               "    { .reg .b64 %r<3>; mov.u64 %r1, 5; }\n"
                               "L:  ld.global.v2.u32 {%r1, _}, [p+-8];\n"
                               "    bra L;\n"
                               "}\n"),
              "%s", diagnostic.message);
    const struct ptx_function *k = function("k");
    cr_assert(k->entry && k->has_body && k->parameter_count == 3);
    cr_assert(k->parameters[0]->is_pointer && k->parameters[0]->alignment == 8);
    cr_assert(k->parameters[1]->bytes == 12 && k->parameters[1]->alignment == 4);
    cr_assert(k->block_threads[0] == 128 && k->block_threads[1] == 2 && k->block_threads[2] == 1);
    cr_assert(!k->block_threads_required && k->registers_max == 64);
    cr_assert_eq(k->register_count, 2 + 3 + 1 + 3);
    cr_assert_eq(k->instruction_count, 4);
    const struct ptx_instruction *add = &k->instructions[0], *mov = &k->instructions[1];
    cr_assert(add->guard == 1 && add->guard_negated && add->file == 1 && add->line == 20);
    cr_assert(add->operand_count == 3 && add->operands[2].reg == 5);
    cr_assert(mov->operands[0].type == PTX_b64, "the inner %%r1 is another register");
    const struct ptx_operand *address = &k->instructions[2].operands[1];
    cr_assert(address->kind == PTX_OPERAND_ADDRESS && address->integer == -8);
    cr_assert(address->items[0].symbol->is.variable == k->parameters[0]);
    cr_assert(k->instructions[2].operands[0].items[1].kind == PTX_OPERAND_NONE);
    cr_assert_eq(k->instructions[3].operands[0].symbol->is.label, 2);
}

Test(read, debug_directives_are_skipped) {
    cr_assert(read_text(HEADER ".file 1 \"/a/b.cu\", 123, 45\n"
                               ".visible .entry k()\n{\n"
                               ".loc 1 5 1\n"
                               ".loc 1 6 2, function_name $L__info_string0, inlined_at 1 5 1\n"
                               "ret;\n$L__tmp0:\n}\n"
                               ".section .debug_abbrev\n{\n.b8 1\n.b8 2\n}\n"
                               ".section .debug_info { .b32 .debug_abbrev .b64 k }\n"
                               ".section .debug_macinfo { }\n"),
              "%s", diagnostic.message);
    cr_assert_str_eq(module.files->name, "/a/b.cu");
    cr_assert(function("k")->instructions[0].line == 6);
}

/* A body's statement, and what is said of it: column, and words of the message. */
Test(read, a_wrong_statement_is_refused_at_its_column) {
    static const struct {
        const char *statement;
        int column;
        const char *what;
    } cases[] = {
        {"mov.u32 %r1, 08;", 14, "not a valid digit"},
        {"mov.u32 %r1, 99999999999999999999;", 14, "64 bits"},
        {"mov.f32 %f1, 0f3F80;", 14, "8 hexadecimal digits"},
        {"mov.u32 %r1, 1/0;", 17, "division by zero"},
        {"mov.u32 %r1 %r2;", 13, "expected ';'"},
        {"mov.u32 %r1, ;", 14, "expected an operand"},
        {"mov.u32 %r1, (1;", 16, "expected ')'"},
        {"@%r1 ret;", 2, "guard"},
        {"@ ret;", 3, "guard"},
        {"@%p1;", 5, "expected an instruction"},
        {".reg .b32 %r1;", 11, "declared twice"},
        {".reg .b32 %r<5>;", 11, "declared twice"},
        {".reg .b32 %new<x>;", 16, "the number of registers"},
        {".reg .v4 .b64 %v;", 6, "at most 128 bits"},
        {".reg .b33 %v;", 6, "unknown type '.b33'"},
        {".nothing;", 1, "'.nothing' is not allowed"},
        {"ld.global.u32 %r1, [];", 22, "expected an address"},
        {"ld.global.u32 %r1, [%rd1;", 25, "expected ']'"},
        {"ld.global.u32 %r1, [missing];", 21, "'missing' is not declared"},
        {"bra nowhere;", 5, "'nowhere' is not declared"},
        {"L: L: ret;", 4, "'L' is declared twice"},
        {"addd.u32 %r1, %r2, %r3;", 1, "unknown"},
        {"add.u32.u32 %r1, %r2, %r3;", 8, "is not valid here"},
        {"add %r1, %r2, %r3;", 1, "modifier or a type is missing"},
        {"add.f31 %f1, %f2, %f3;", 4, "'.f31' is unknown"},
        {"add.u32 %r1, %r2, %nosuch;", 19, "'%nosuch' is neither a declared register"},
        {"add.u32 %r1, %r2, %rd3;", 19, "64 bits, and 32"},
        {"add.u32 %r1, %r2, %f3;", 19, "type .f32, and .u32"},
        {"add.f32 %f1, %f2, 1;", 19, "expected a floating-point number"},
        {"add.u32 %r1, %r2, 1.0;", 19, "floating-point number is not allowed"},
        {"add.u32 %r1, %r2;", 1, "3 operands here, not 2"},
        {"add.u32 5, %r1, %r2;", 9, "a destination register"},
        {"setp.eq.u32 %r1, %r1, %r2;", 13, "32 bits, and 1"},
        {"st.const.u32 [%rd1], %r1;", 1, "cannot write this state space"},
        {"ld.global.v2.u32 %r1, [%rd1];", 18, "expected 2 registers"},
        {"ld.global.v4.u64 {%rd1, %rd2, %rd3, %rd4}, [%rd1];", 1, "larger than 16 bytes"},
        {"ld.param.u64 %rd1, [out+4];", 1, "outside the parameter"},
        {"cvt.s32.f32 %r1, %f1;", 1, "needs .rni"},
        {"cvt.f32.f64 %f1, %fd1;", 1, "needs .rn"},
        {"shfl.sync.bfly.b32 %r1, %r2, 1, 31;", 1, "5 operands"},
        {"atom.global.add.b32 %r1, [%rd1], %r2;", 16, "'.b32' is not valid here"},
        {"bar.arrive 1;", 1, "number of threads"},
        {"vote.sync.ballot.b32 %r1, %r2, -1;", 27, "expected a predicate"},
        {"bra out;", 1, "expected a label"},
        {"{ mov.u32 %r1, 1;", 1, "expected '}'"},
    };
    char text[2000], log[2048], place[40];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(text, sizeof text, "%s%s\nret;\n}\n", TEST_KERNEL("END"), "");
        snprintf(strstr(text, "END"), 200, "%s\nret;\n}\n", cases[i].statement);
        cr_assert_eq(test_refused(text, log, sizeof log), CUDA_ERROR_INVALID_PTX, "%s",
                     cases[i].statement);
        bool unclosed = cases[i].statement[0] == '{';
        snprintf(place, sizeof place,
                 "ptx:%d:%d: error: ", unclosed ? TEST_BODY_LINE + 3 : TEST_BODY_LINE,
                 cases[i].column);
        cr_assert(strncmp(log, place, strlen(place)) == 0, "%s\n%s", cases[i].statement, log);
        cr_assert(strstr(log, cases[i].what) != NULL, "%s\n%s", cases[i].statement, log);
        if (unclosed) continue;
        /* The line is shown, and a caret under the column. */
        char shown[400];
        snprintf(shown, sizeof shown, "\n    %s\n    %*s^\n", cases[i].statement,
                 cases[i].column - 1, "");
        cr_assert(strstr(log, shown) != NULL, "%s", log);
    }
}

Test(read, a_wrong_declaration_is_refused) {
    static const struct {
        const char *text, *place, *what;
    } cases[] = {
        {"", "1:1", "expected '.version'"},
        {"8.0\n.target sm_90\n.address_size 64\n", "1:1", "expected '.version'"},
        {".version 8", "1:10", "version such as 8.0"},
        {".version 8.0 .target compute_90", "1:22", "unknown target"},
        {".version 8.0 .target sm_90 .address_size 32", "1:42", "32-bit"},
        {HEADER "x", "4:1", "is not allowed here"},
        {HEADER ".pragma \"used_bytes_mask 240\";", "4:9", "needs .version 8.3"},
        {HEADER ".visible .entry k() { .pragma \"nounroll\", \"frequency 3\"; ret; }", "4:43",
         "needs .version 9.0"},
        {HEADER ".global .u32 x[2] = {1, 2, 3};", "4:28", "more initial values"},
        {HEADER ".global .u32 x = {1, 2};", "4:22", "more initial values"},
        {HEADER ".global .u32 x[-1];", "4:18", "out of range"},
        {HEADER ".global .align 3 .u32 x;", "4:18", "power of two"},
        {HEADER ".global .pred x;", "4:15", "a variable cannot have this type"},
        {HEADER ".global .u32 x;\n.global .u32 x;", "5:14", "declared twice"},
        {HEADER ".global .u64 p = missing;", "4:18", "'missing' is not declared"},
        {HEADER ".global .samplerref s;", "4:9", "samplers"},
        {HEADER ".const .texref t;", "4:8", "must be in .global"},
        {HEADER ".global .texref t[2];", "4:21", "array of references"},
        {HEADER ".global .surfref s = {1};", "4:20", "initial values"},
        {HEADER ".local .u32 x;", "4:8", "inside a function"},
        {HEADER ".entry k(.param .u32 x, .param .u32 x) { ret; }", "4:37", "declared twice"},
        {HEADER ".entry k( .reg .u32 x) { ret; }", "4:11", ".param"},
        {HEADER ".entry k() .maxntid 0 { ret; }", "4:23", "must be positive"},
        {HEADER ".entry k() .maxfun 0 { ret; }", "4:12", "'.maxfun' is not allowed"},
        {HEADER ".entry k() { ret; }\n.entry k() { ret; }", "5:8", "declared twice"},
        {HEADER ".entry () { ret; }", "4:8", "expected the name of a function"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char place[40];
        snprintf(place, sizeof place, "ptx:%s: error: ", cases[i].place);
        cr_assert(!read_text(cases[i].text), "%s", cases[i].text);
        cr_assert_eq(diagnostic.result, CUDA_ERROR_INVALID_PTX);
        cr_assert(strncmp(diagnostic.message, place, strlen(place)) == 0, "%s\n%s", cases[i].text,
                  diagnostic.message);
        cr_assert(strstr(diagnostic.message, cases[i].what) != NULL, "%s", diagnostic.message);
    }
}

Test(read, nesting_has_an_end) {
    enum { DEEP = 100000 };
    static char text[2 * DEEP + 200];
    static const char open[] = "({-[";
    for (size_t i = 0; i < sizeof open - 1; i++) {
        size_t length = (size_t)snprintf(text, sizeof text, HEADER ".entry k() { .reg .b32 %%r; %s",
                                         open[i] == '{' ? "" : "mov.u32 %r, ");
        memset(text + length, open[i], DEEP);
        text[length + DEEP] = '\0';
        cr_assert(!read_text(text));
        cr_assert_eq(diagnostic.result, CUDA_ERROR_INVALID_PTX, "%s", diagnostic.message);
        soft_arena_clear(&arena);
    }
}

/* The first line of each, "//// NAME: LINE:COLUMN: error: ...", has the log's first line. */
static void must_be_refused(const char *name, const char *text) {
    char log[2048], wanted[256];
    CUresult result = test_refused(text, log, sizeof log);
    bool newer = strcmp(name, "future_version") == 0;
    cr_assert_eq(result, newer ? CUDA_ERROR_UNSUPPORTED_PTX_VERSION : CUDA_ERROR_INVALID_PTX,
                 "%s: %d", name, (int)result);
    const char *words = strstr(text, ": ");
    size_t length = words != NULL ? strcspn(words + 2, "\n") : 0;
    cr_assert(length > 0 && length + 5 < sizeof wanted, "%s: %s", name, text);
    snprintf(wanted, sizeof wanted, "ptx:%.*s\n", (int)length, words + 2);
    cr_assert(strncmp(log, wanted, strlen(wanted)) == 0, "%s: %s", name, log);
    cr_assert(strchr(log, '^') != NULL, "%s: %s", name, log);
    wanted[strcspn(wanted, " ")] = '\0';
    cr_assert(strstr(test_log(), wanted) != NULL, "the driver's log has it as well");
}

/* The lines are those that ptxas 13.0 names, except in no_version, where it names the next one. */
Test(read, every_bad_fixture_is_refused_as_it_says) {
    cr_assert(test_each_fixture("bad", must_be_refused) >= 70);
}

static void must_load(const char *name, const char *text) {
    CUmodule loaded = test_load(text);
    cr_assert_eq(cuModuleUnload(loaded), CUDA_SUCCESS, "%s", name);
}

Test(read, every_good_fixture_loads) {
    cr_assert(test_each_fixture("kernels", must_load) >= 7);
    cr_assert(test_each_fixture("handwritten", must_load) >= 1);
}
