/*
 * Functions: parameters, calls, returns.
 * Source: PTX ISA 9.0, sections 5.1.6 (Parameter State Space), 7.1 (Function Declarations) and
 * 9.7.12 (Control flow).
 *
 * A parameter in a call is a value like a register and has a slot with its bytes for each lane. A
 * parameter of four or eight bytes has a register's layout and is moved like one.
 */
#include "lower.h"
#include "modes.h"

#include <string.h>

static bool is_like_register(uint64_t bytes) {
    return bytes == 4 || bytes == 8;
}

uint32_t soft_passed_value(struct soft_lowering *lowering, struct ptx_variable *variable) {
    if (variable->has_value) return variable->value;
    uint32_t value = soft_value_temporary(
        lowering, is_like_register(variable->bytes) ? 8 * (unsigned)variable->bytes : 0);
    if (value == SOFT_NO_VALUE) return value;
    lowering->values[value].bytes = (uint32_t)variable->bytes;
    variable->value = value;
    variable->has_value = true;
    return value;
}

static bool call_check_range(struct soft_lowering *lowering, const struct ptx_instruction *in,
                             const struct soft_passed_access *access) {
    const struct ptx_variable *variable = access->variable;
    uint64_t bytes = (uint64_t)access->bytes * access->count, at = (uint64_t)access->offset;
    if (bytes <= variable->bytes && at <= variable->bytes - bytes) return true;
    return LOWER_FAIL(
        lowering, in, "%llu bytes at offset %lld are outside the parameter '%.*s' of %llu bytes",
        (unsigned long long)bytes, (long long)access->offset, (int)variable->symbol->length,
        variable->symbol->name, (unsigned long long)variable->bytes);
}

static uint32_t call_mode_of(const struct soft_passed_access *access) {
    uint32_t mode = access->bytes | access->count << SOFT_ACCESS_COUNT_SHIFT;
    if (access->is_signed) mode |= SOFT_ACCESS_SIGNED;
    if (access->bits == 64) mode |= SOFT_ACCESS_WIDE_DATA;
    if (access->bits == 16) mode |= SOFT_ACCESS_SHORT_DATA;
    return mode;
}

static bool is_whole(const struct soft_passed_access *access) {
    return access->count == 1 && access->bytes == access->variable->bytes &&
           is_like_register(access->bytes) && access->bits == 8 * access->bytes;
}

static struct soft_draft *draft_access(struct soft_lowering *lowering, enum soft_op op,
                                       const struct soft_passed_access *access) {
    struct soft_draft *draft = soft_draft(lowering, op);
    if (draft == NULL) return NULL;
    draft->mode = call_mode_of(access);
    draft->immediate = access->offset | (int64_t)access->variable->bytes << 32;
    return draft;
}

bool soft_load_passed(struct soft_lowering *lowering, const struct ptx_instruction *in,
                      const struct soft_passed_access *access) {
    if (!call_check_range(lowering, in, access)) return false;
    uint32_t value = soft_passed_value(lowering, access->variable);
    if (value == SOFT_NO_VALUE) return false;
    if (is_whole(access)) {
        struct soft_draft *move =
            soft_draft(lowering, access->bits == 64 ? SOFT_OP_mov_64 : SOFT_OP_mov_32);
        if (move == NULL) return false;
        move->d = access->registers[0];
        move->a = value;
        return true;
    }
    struct soft_draft *draft = draft_access(lowering, SOFT_OP_ld_param, access);
    if (draft == NULL) return false;
    draft->d = access->count == 1 ? access->registers[0] : SOFT_NO_VALUE;
    draft->a = value;
    for (unsigned i = 0; i < access->count && access->count > 1; i++) {
        if (!soft_extra(lowering, draft, SOFT_EXTRA_DEFINE, access->registers[i])) return false;
    }
    return true;
}

bool soft_store_passed(struct soft_lowering *lowering, const struct ptx_instruction *in,
                       const struct soft_passed_access *access) {
    if (!call_check_range(lowering, in, access)) return false;
    bool first = !access->variable->has_value;
    uint32_t value = soft_passed_value(lowering, access->variable);
    if (value == SOFT_NO_VALUE) return false;
    if (is_whole(access)) {
        struct soft_draft *move =
            soft_draft(lowering, access->bits == 64 ? SOFT_OP_mov_64 : SOFT_OP_mov_32);
        if (move == NULL) return false;
        move->d = value;
        move->a = access->registers[0];
        return true;
    }
    struct soft_draft *draft = draft_access(lowering, SOFT_OP_st_param, access);
    if (draft == NULL) return false;
    draft->d = value;
    /* A store to a part does not change the other parts. Before the first store the parameter is
     * undefined, so that the parameters of successive calls can share a slot. */
    draft->keeps = !first;
    for (unsigned i = 0; i < access->count; i++) {
        if (!soft_extra(lowering, draft, SOFT_EXTRA_USE, access->registers[i])) return false;
    }
    return true;
}

/* A parameter whose address is taken is in local memory from the start (PTX ISA 9.0, section
 * 9.7.9.3, mov). */
static bool call_spill(struct soft_lowering *lowering, struct ptx_variable *variable) {
    if (!variable->is_spilled) return true;
    uint32_t value = soft_passed_value(lowering, variable), address = SOFT_NO_VALUE;
    const struct ptx_operand at = {
        .kind = PTX_OPERAND_SYMBOL, .symbol = variable->symbol, .offset = variable->symbol->offset};
    if (value == SOFT_NO_VALUE ||
        !soft_local_room(lowering, &at, variable->bytes, variable->alignment, &variable->address) ||
        !soft_variable_address(lowering, &at, variable, 0, 64, &address)) {
        return false;
    }
    struct soft_draft *draft = soft_draft(lowering, SOFT_OP_spill_param);
    if (draft == NULL) return false;
    draft->a = value;
    draft->b = address;
    draft->immediate = (int64_t)variable->bytes;
    return true;
}

/* Marks the parameters whose address a mov takes; others have none. */
static void find_spilled(const struct ptx_function *function) {
    for (uint32_t i = 0; i < function->instruction_count; i++) {
        const struct ptx_instruction *in = &function->instructions[i];
        bool takes = in->has_symbols && strcmp(in->opcode->row->name, "mov") == 0 &&
                     in->operand_count == 2 && in->operands[1].kind == PTX_OPERAND_SYMBOL &&
                     in->operands[1].symbol->kind == PTX_VARIABLE &&
                     in->operands[1].symbol->is.variable->space == PTX_param;
        if (takes) in->operands[1].symbol->is.variable->is_spilled = true;
    }
}

bool soft_begin_function(struct soft_lowering *lowering) {
    const struct ptx_function *function = lowering->function;
    if (function->entry) return true;
    find_spilled(function);
    for (uint32_t i = 0; i < function->parameter_count; i++) {
        struct ptx_variable *parameter = function->parameters[i];
        if (parameter->is_register) {
            /* The call also defines it. */
            lowering->values[parameter->value].definitions++;
        } else if (soft_passed_value(lowering, parameter) == SOFT_NO_VALUE ||
                   !call_spill(lowering, parameter)) {
            return false;
        }
    }
    return true;
}

static uint32_t call_value_of(struct soft_lowering *lowering, struct ptx_variable *variable) {
    return variable->is_register ? variable->value : soft_passed_value(lowering, variable);
}

bool soft_end_function(struct soft_lowering *lowering) {
    const struct ptx_function *function = lowering->function;
    struct soft_draft *draft = soft_draft(lowering, function->entry ? SOFT_OP_exit : SOFT_OP_ret);
    if (draft == NULL) return false;
    for (uint32_t i = 0; i < function->return_count && !function->entry; i++) {
        uint32_t value = call_value_of(lowering, function->returns[i]);
        draft = &lowering->drafts[lowering->draft_count - 1];
        if (value == SOFT_NO_VALUE || !soft_extra(lowering, draft, SOFT_EXTRA_USE, value)) {
            return false;
        }
    }
    return true;
}

/* The bytes per lane in the slot of a value. */
static uint32_t call_bytes_of(const struct soft_value *value) {
    if (value->bytes > 0) return value->bytes;
    if (value->bits == 1) return SOFT_PASSED_PREDICATE;
    return value->bits == 64 ? 8 : 4;
}

static bool write_list(struct soft_lowering *lowering, struct ptx_variable *const *variables,
                       uint32_t count, struct soft_passed **list) {
    *list = SOFT_ARENA_ARRAY(lowering->arena, struct soft_passed, count);
    if (*list == NULL) return LOWER_NO_MEMORY(lowering);
    for (uint32_t i = 0; i < count; i++) {
        /* A result that is always one constant uses the constant's slot. */
        uint32_t place = lowering->values[variables[i]->value].alias;
        const struct soft_value *value = &lowering->values[place];
        (*list)[i] = (struct soft_passed){.slot = value->used ? value->slot : 0,
                                          .bytes = call_bytes_of(value)};
    }
    return true;
}

bool soft_write_passed(struct soft_lowering *lowering) {
    const struct ptx_function *function = lowering->function;
    struct soft_code *code = lowering->code;
    if (function->entry) return true;
    code->argument_count = function->parameter_count;
    code->result_count = function->return_count;
    return write_list(lowering, function->parameters, function->parameter_count,
                      &code->arguments) &&
           write_list(lowering, function->returns, function->return_count, &code->results);
}

/* ---- calls ---- */

/* A call as it is written: call (results), target, (arguments), prototype; all but the target may
 * be left out. */
struct call {
    const struct ptx_operand *results, *target, *arguments;
    struct ptx_function *function; /* NULL: by address */
};

static bool call_read_call(struct soft_lowering *lowering, const struct ptx_instruction *in,
                           struct call *call) {
    uint32_t at = 0;
    *call = (struct call){.results = NULL};
    if (at < in->operand_count && in->operands[at].kind == PTX_OPERAND_LIST) {
        call->results = &in->operands[at++];
    }
    if (at < in->operand_count) call->target = &in->operands[at++];
    if (at < in->operand_count && in->operands[at].kind == PTX_OPERAND_LIST) {
        call->arguments = &in->operands[at++];
    }
    bool named = call->target != NULL && call->target->kind == PTX_OPERAND_SYMBOL &&
                 call->target->symbol->kind == PTX_FUNCTION;
    bool by_address = call->target != NULL && call->target->kind == PTX_OPERAND_REGISTER;
    if (!named && !by_address) return LOWER_FAIL(lowering, in, "expected a function to call");
    if (named) call->function = call->target->symbol->is.function;
    if (by_address) {
        /* The functions are checked when they are called. */
        bool listed = at < in->operand_count && in->operands[at].kind == PTX_OPERAND_SYMBOL &&
                      (in->operands[at].symbol->kind == PTX_PROTOTYPE ||
                       in->operands[at].symbol->kind == PTX_TARGETS);
        if (!listed) {
            return LOWER_FAIL(lowering, in,
                              "a call by address needs a .callprototype or .calltargets");
        }
        at++;
    }
    if (at != in->operand_count) return LOWER_FAIL(lowering, in, "the call has too many operands");
    if (named && call->function->entry) {
        return LOWER_FAIL(lowering, call->target, "'%.*s' is a kernel and cannot be called",
                          (int)call->target->symbol->length, call->target->symbol->name);
    }
    return true;
}

static bool wrong_size(struct soft_lowering *lowering, const struct ptx_operand *operand,
                       uint64_t bytes, uint64_t wanted) {
    return LOWER_FAIL(lowering, operand, "%llu bytes are passed where %llu are declared",
                      (unsigned long long)bytes, (unsigned long long)wanted);
}

static bool is_passed_variable(const struct ptx_operand *operand) {
    return operand->kind == PTX_OPERAND_SYMBOL && operand->symbol->kind == PTX_VARIABLE &&
           soft_is_passed(operand->symbol->is.variable);
}

/* The argument of a parameter: a .param variable of its size, a register or a number. formal is
 * NULL in a call by address, where the argument determines the size. */
static bool argument_value(struct soft_lowering *lowering, const struct ptx_operand *operand,
                           const struct ptx_variable *formal, uint32_t *value) {
    if (is_passed_variable(operand)) {
        struct ptx_variable *variable = operand->symbol->is.variable;
        if (formal != NULL && variable->bytes != formal->bytes) {
            return wrong_size(lowering, operand, variable->bytes, formal->bytes);
        }
        *value = soft_passed_value(lowering, variable);
        return *value != SOFT_NO_VALUE;
    }
    unsigned bits = 32;
    enum ptx_modifier type = PTX_b32;
    if (formal != NULL) {
        type = formal->type;
        bits = soft_bits(type);
    } else if (operand->kind == PTX_OPERAND_REGISTER) {
        type = operand->type;
        bits = soft_bits(type);
    }
    if (!soft_source(lowering, operand, bits, type, value)) return false;
    return formal == NULL || formal->is_register || bits == 8 * formal->bytes ||
           wrong_size(lowering, operand, bits / 8, formal->bytes);
}

/* The destination of a result: a .param variable of its size, a register, or none. */
static bool result_value(struct soft_lowering *lowering, const struct ptx_operand *operand,
                         const struct ptx_variable *formal, uint32_t *value) {
    if (is_passed_variable(operand)) return argument_value(lowering, operand, formal, value);
    /* A call by address returns the width of the receiving register. */
    bool by_address = formal == NULL && operand->kind == PTX_OPERAND_REGISTER;
    if (!by_address &&
        (formal == NULL || (!formal->is_register && !is_like_register(formal->bytes)))) {
        return LOWER_FAIL(lowering, operand, "expected a .param variable");
    }
    enum ptx_modifier type = by_address ? operand->type : formal->type;
    return soft_destination(lowering, operand, soft_bits(type), type, value);
}

static uint32_t call_count_of(const struct ptx_operand *list) {
    return list != NULL ? list->count : 0;
}

/* Whether another input defines the function without a result, although this one declares a result,
 * as C allows. A driver links this with an undefined result; here it is zero. */
static bool lacks_result(const struct call *call) {
    const struct ptx_function *f = call->function;
    return f != NULL && f->has_body && f->return_count == 0 && f->symbol != call->target->symbol &&
           call_count_of(call->results) == 1;
}

static bool clear_result(struct soft_lowering *lowering, uint32_t value) {
    const uint32_t bytes = call_bytes_of(&lowering->values[value]);
    if (!is_like_register(bytes)) return true;
    struct soft_draft *move = soft_draft(lowering, bytes == 8 ? SOFT_OP_mov_64 : SOFT_OP_mov_32);
    if (move == NULL) return false;
    move->d = value;
    move->a = soft_value_constant(lowering, 8 * bytes, 0);
    return move->a != SOFT_NO_VALUE;
}

static bool check_counts(struct soft_lowering *lowering, const struct ptx_instruction *in,
                         const struct call *call) {
    const struct ptx_function *f = call->function;
    if (f == NULL) return true;
    if (call_count_of(call->arguments) != f->parameter_count) {
        return LOWER_FAIL(lowering, in, "'%.*s' has %u parameters, and the call passes %u",
                          (int)f->symbol->length, f->symbol->name, f->parameter_count,
                          call_count_of(call->arguments));
    }
    if (call_count_of(call->results) != f->return_count && !lacks_result(call)) {
        return LOWER_FAIL(lowering, in, "'%.*s' returns %u results, and the call expects %u",
                          (int)f->symbol->length, f->symbol->name, f->return_count,
                          call_count_of(call->results));
    }
    return true;
}

/* Adds the operands of a call to its draft: see frame_call.h. */
static bool add_passed(struct soft_lowering *lowering, struct soft_draft *draft,
                       const uint32_t *values, uint32_t count, enum soft_extra_kind kind) {
    if (!soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, count)) return false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t bytes = call_bytes_of(&lowering->values[values[i]]);
        if (!soft_extra(lowering, draft, SOFT_EXTRA_NUMBER, bytes) ||
            !soft_extra(lowering, draft, kind, values[i])) {
            return false;
        }
    }
    return true;
}

/* Functions of the device that no module defines. */
static const struct builtin {
    const char *name;
    enum soft_op op;
    uint32_t arguments, results;
    uint8_t bytes[5], result_bytes;
} builtins[] = {
    {"vprintf", SOFT_OP_vprintf, 2, 1, {8, 8}, 4},
    {"__assertfail", SOFT_OP_assertfail, 5, 0, {8, 8, 4, 8, 8}, 0},
    {"malloc", SOFT_OP_malloc, 1, 1, {8}, 8},
    {"free", SOFT_OP_free, 1, 0, {8}, 0},
};

/* What the functions of CUDA's device runtime, libcudadevrt, are for, by how their names begin.
 * Other undefined names are errors of the program. */
static const struct device_runtime {
    const char *begin, *need;
} device_runtime[] = {
    {"__cudaCDP2", "kernels that launch kernels (CUDA dynamic parallelism) are not supported"},
    {"cudaCDP2", "kernels that launch kernels (CUDA dynamic parallelism) are not supported"},
    {"cudaGraphSetConditional", "conditional nodes of graphs are not supported"},
    {"__cudaGraphSetConditional", "conditional nodes of graphs are not supported"},
};

static bool fail_undefined(struct soft_lowering *lowering, const struct ptx_operand *target) {
    const int length = (int)target->symbol->length;
    const char *name = target->symbol->name;
    for (size_t i = 0; i < sizeof device_runtime / sizeof device_runtime[0]; i++) {
        const size_t begin = strlen(device_runtime[i].begin);
        if (target->symbol->length < begin || memcmp(name, device_runtime[i].begin, begin) != 0) {
            continue;
        }
        return LOWER_FAIL(lowering, target, "%s: '%.*s' is called", device_runtime[i].need, length,
                          name);
    }
    return LOWER_FAIL(lowering, target, "'%.*s' is declared but not defined", length, name);
}

static bool lower_builtin(struct soft_lowering *lowering, const struct ptx_instruction *in,
                          const struct call *call, const uint32_t *arguments,
                          const uint32_t *results) {
    const struct ptx_symbol *symbol = call->target->symbol;
    const struct builtin *builtin = NULL;
    for (size_t i = 0; i < sizeof builtins / sizeof builtins[0]; i++) {
        if (strlen(builtins[i].name) == symbol->length &&
            memcmp(builtins[i].name, symbol->name, symbol->length) == 0) {
            builtin = &builtins[i];
        }
    }
    if (builtin == NULL) return fail_undefined(lowering, call->target);
    bool fits = call_count_of(call->arguments) == builtin->arguments &&
                call_count_of(call->results) == builtin->results;
    for (uint32_t i = 0; fits && i < builtin->arguments; i++) {
        fits = call_bytes_of(&lowering->values[arguments[i]]) == builtin->bytes[i];
    }
    if (fits && call_count_of(call->results) > 0) {
        fits = call_bytes_of(&lowering->values[results[0]]) == builtin->result_bytes;
    }
    if (!fits) {
        return LOWER_FAIL(lowering, in, "the call does not match the declaration of %s",
                          builtin->name);
    }
    struct soft_draft *draft = soft_draft(lowering, builtin->op);
    if (draft == NULL) return false;
    if (call_count_of(call->results) > 0) draft->d = results[0];
    draft->has_site = true; /* it reads what its arguments point to */
    for (uint32_t i = 0; i < builtin->arguments; i++) {
        if (!soft_extra(lowering, draft, SOFT_EXTRA_USE, arguments[i])) return false;
    }
    return true;
}

bool soft_lower_call(struct soft_lowering *lowering, const struct ptx_instruction *in) {
    struct call call;
    if (!call_read_call(lowering, in, &call) || !check_counts(lowering, in, &call)) return false;
    uint32_t uses = call_count_of(call.arguments), result_count = call_count_of(call.results);
    uint32_t *arguments = SOFT_ARENA_ARRAY(lowering->scratch, uint32_t, uses);
    uint32_t *results = SOFT_ARENA_ARRAY(lowering->scratch, uint32_t, result_count);
    uint32_t address = SOFT_NO_VALUE;
    if (arguments == NULL || results == NULL) return LOWER_NO_MEMORY(lowering);
    struct ptx_function *f = call.function;
    for (uint32_t i = 0; i < uses; i++) {
        if (!argument_value(lowering, &call.arguments->items[i],
                            f != NULL ? f->parameters[i] : NULL, &arguments[i])) {
            return false;
        }
    }
    const bool lacks = lacks_result(&call);
    for (uint32_t i = 0; i < result_count; i++) {
        if (!result_value(lowering, &call.results->items[i],
                          f != NULL && !lacks ? f->returns[i] : NULL, &results[i])) {
            return false;
        }
    }
    if (lacks && !clear_result(lowering, results[0])) return false;
    if (lacks) result_count = 0;
    if (f != NULL && !f->has_body) return lower_builtin(lowering, in, &call, arguments, results);
    if (f == NULL && !soft_source(lowering, call.target, 64, PTX_u64, &address)) return false;
    struct soft_draft *draft =
        soft_draft(lowering, f != NULL ? SOFT_OP_call : SOFT_OP_call_indirect);
    if (draft == NULL) return false;
    draft->callee = f;
    draft->a = address;
    return add_passed(lowering, draft, arguments, uses, SOFT_EXTRA_USE) &&
           add_passed(lowering, draft, results, result_count, SOFT_EXTRA_DEFINE);
}
