/*
 * Spellings of PTX before 1.4, as compilers of 2008 wrote it: kernels with parameters declared in
 * the body, and arithmetic without a precision modifier. Source: PTX ISA 9.0, the notes on versions
 * of div, rcp, sqrt, rsqrt, sin, cos, lg2 and ex2.
 */
#include "reader.h"

#include "tollens/cuda_abi.h"

#include <string.h>

/* Calls with parameters in memory, which a body also declares, are newer. */
enum { LAST_VERSION = 13, BEFORE_CALLS = 20 };

const char *ptx_old_spelling(const struct ptx_reader *reader, const char *spelling, size_t length) {
    static const char *const words[][2] = {{"div.f32", "div.approx.ftz.f32"},
                                           {"div.f64", "div.rn.f64"},
                                           {"rcp.f32", "rcp.approx.ftz.f32"},
                                           {"rcp.f64", "rcp.rn.f64"},
                                           {"sqrt.f32", "sqrt.approx.ftz.f32"},
                                           {"sqrt.f64", "sqrt.rn.f64"},
                                           {"rsqrt.f32", "rsqrt.approx.ftz.f32"},
                                           {"rsqrt.f64", "rsqrt.approx.f64"},
                                           {"sin.f32", "sin.approx.ftz.f32"},
                                           {"cos.f32", "cos.approx.ftz.f32"},
                                           {"lg2.f32", "lg2.approx.ftz.f32"},
                                           {"ex2.f32", "ex2.approx.ftz.f32"},
                                           {"mad.f64", "mad.rn.f64"}};
    if (reader->module->version > LAST_VERSION) return NULL;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strlen(words[i][0]) == length && memcmp(words[i][0], spelling, length) == 0) {
            return words[i][1];
        }
    }
    return NULL;
}

bool ptx_has_inner_parameters(const struct ptx_reader *reader) {
    return reader->function->entry && reader->module->version <= BEFORE_CALLS;
}

bool ptx_read_inner_parameter(struct ptx_reader *reader) {
    struct ptx_function *function = reader->function;
    uint32_t count = function->parameter_count;
    if (reader->module->version > LAST_VERSION) {
        return PTX_FAIL(reader, "a kernel's parameters must be declared in its parameter list");
    }
    struct ptx_variable **more =
        SOFT_ARENA_ARRAY(reader->arena, struct ptx_variable *, (size_t)count + 1);
    if (more == NULL) return PTX_NO_MEMORY(reader);
    if (count > 0) memcpy((void *)more, (const void *)function->parameters, count * sizeof more[0]);
    if (!ptx_read_parameter(reader, &more[count])) return false;
    function->parameters = more;
    function->parameter_count++;
    return ptx_expect(reader, ";");
}
