/*
 * The approximate functions, by libm in double precision. Source: PTX ISA 9.0, section 9.7.3.
 *
 * The results of zeros, infinities and NaN are exact, by the manual's tables.
 */
#include "oracle_number.h"

#include <math.h>
#include <string.h>

static double approximate_element(const struct table_type *type, uint64_t bits, bool ftz) {
    struct oracle_number a = oracle_decode(oracle_format_of(type), bits);
    double x = oracle_number_to_double(a);
    double least = ldexp(1, 2 - (1 << (type->exponent_bits - 1)));
    return ftz && fabs(x) < least ? copysign(0, x) : x;
}

static bool approximate_evaluate(const struct oracle_call *call, double x, double y,
                                 double *result) {
    if (oracle_is(call, "div")) {
        *result = x / y;
    } else if (oracle_is(call, "rcp")) {
        *result = 1 / x;
    } else if (oracle_is(call, "sqrt")) {
        *result = sqrt(x);
    } else if (oracle_is(call, "rsqrt")) {
        *result = 1 / sqrt(x);
    } else if (oracle_is(call, "sin")) {
        *result = sin(x);
    } else if (oracle_is(call, "cos")) {
        *result = cos(x);
    } else if (oracle_is(call, "lg2")) {
        *result = log2(x);
    } else if (oracle_is(call, "ex2")) {
        *result = exp2(x);
    } else if (oracle_is(call, "tanh")) {
        *result = tanh(x);
    } else {
        return false;
    }
    return true;
}

bool oracle_approximate(const struct oracle_call *call) {
    const struct table_type *type = call->type[0];
    if (type == NULL || type->kind != 'F' ||
        (!oracle_has(call, "approx") && !oracle_has(call, "full"))) {
        return false;
    }
    bool ftz = oracle_has(call, "ftz");
    struct oracle_answer answer = {.kind = ORACLE_NEAR};
    unsigned width = type->bits / type->elements;
    uint64_t mask = width == 64 ? UINT64_MAX : (1ull << width) - 1;
    double least = ldexp(1, 2 - (1 << (type->exponent_bits - 1)));
    for (unsigned e = 0; e < type->elements; e++) {
        double x = approximate_element(type, call->source[0] >> (e * width) & mask, ftz), y = 1;
        if (call->row->source_count > 1) y = approximate_element(type, call->source[1], ftz);
        if (!approximate_evaluate(call, x, y, &answer.value[e])) return false;
        /* Results that are flushed, and those so near the boundary that they may be. */
        if (ftz && answer.value[e] != 0 && fabs(answer.value[e]) < least) {
            if (fabs(answer.value[e]) > least * (1 - 0x1p-18)) {
                call->answer[0].kind = ORACLE_ANY;
                return true;
            }
            answer.value[e] = copysign(0, answer.value[e]);
        }
    }
    if (type->bits == 64 && ftz && answer.value[0] != answer.value[0]) {
        /* These use only the upper word, where a NaN may look like infinity. */
        call->answer[0].kind = ORACLE_ANY;
        return true;
    }
    bool exact = answer.value[0] != answer.value[0] || isinf(answer.value[0]);
    if (exact && type->elements == 1 && type->bits == 32) {
        /* NaN in its one form, or infinity. */
        struct oracle_number number = {.kind = ORACLE_INFINITE, .negative = answer.value[0] < 0};
        if (answer.value[0] != answer.value[0]) number.kind = ORACLE_NOT_A_NUMBER;
        oracle_give(call, 0, oracle_encode(oracle_format_of(type), number, ORACLE_NEAREST));
        return true;
    }
    call->answer[0] = answer;
    return true;
}
