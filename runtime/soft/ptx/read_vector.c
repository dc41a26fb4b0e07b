/*
 * Vectors that are registers: ".reg .v4 .f32 v;", v.x, and special registers such as %tid.
 *
 * A vector is a number of consecutive registers. Its name alone means all of them, as if written in
 * braces; with a selector it means one of them. Source: PTX ISA 9.0, sections 5.4.2 (vectors) and
 * 6.4.3 (vectors as operands).
 */
#include "reader.h"

#include "tollens/cuda_abi.h"

#include <string.h>

enum { VECTOR_BITS_MAX = 128 };

/* Other types occur only in instructions: their registers have bit types. */
static bool is_of_registers(enum ptx_modifier type) {
    static const char kinds[] = "USB";
    unsigned bits = ptx_types[type].bits;
    bool number = strchr(kinds, ptx_types[type].kind[0]) != NULL && bits >= 8;
    return type == PTX_pred || number || type == PTX_f16 || type == PTX_f16x2 || type == PTX_f32 ||
           type == PTX_f64;
}

bool ptx_read_register_type(struct ptx_reader *reader, struct ptx_register_type *type) {
    *type = (struct ptx_register_type){.component = PTX_b32, .width = 1};
    if (ptx_take(reader, ".align")) {
        int64_t alignment = 0;
        if (!ptx_read_unary(reader, &alignment)) return false;
    }
    const struct soft_token *begin = reader->token;
    if (ptx_take(reader, ".v2")) type->width = 2;
    if (type->width == 1 && ptx_take(reader, ".v4")) type->width = 4;
    const struct soft_token *word = reader->token;
    if (!ptx_read_type(reader, &type->component)) return false;
    if (!is_of_registers(type->component)) {
        return soft_error(reader->diagnostic, word->offset, CUDA_ERROR_INVALID_PTX,
                          "'.%s' is a type for instructions; a register cannot have it",
                          ptx_types[type->component].text);
    }
    if (type->width == 1) return true;
    if (type->component == PTX_pred) {
        return soft_error(reader->diagnostic, begin->offset, CUDA_ERROR_INVALID_PTX,
                          "a vector of predicates is not allowed");
    }
    return type->width * ptx_types[type->component].bits <= VECTOR_BITS_MAX ||
           soft_error(reader->diagnostic, begin->offset, CUDA_ERROR_INVALID_PTX,
                      "a vector can have at most %d bits", VECTOR_BITS_MAX);
}

/* Whether the next token immediately follows the previous one and is a dotted word. */
static bool is_joined(const struct ptx_reader *reader) {
    const struct soft_token *before = reader->token - 1;
    return reader->token->kind == SOFT_TOKEN_DOTTED &&
           reader->token->offset == before->offset + before->length;
}

/* ".x" to ".w", or ".r", ".g", ".b" and ".a": 0 to 3; 4 for another word. */
static uint32_t component_of(const struct ptx_reader *reader) {
    static const char letters[] = "xyzwrgba";
    const char *text = ptx_text(reader);
    if (reader->token->length != 2) return 4;
    for (uint32_t i = 0; i < 8; i++) {
        if (text[1] == letters[i]) return i % 4;
    }
    return 4;
}

static bool make_vector(struct ptx_reader *reader, struct ptx_operand *operand, uint32_t width) {
    struct ptx_operand *items = SOFT_ARENA_ARRAY(reader->arena, struct ptx_operand, width);
    if (items == NULL) return PTX_NO_MEMORY(reader);
    for (uint32_t i = 0; i < width; i++) {
        items[i] = *operand;
        items[i].reg = operand->reg + i;
    }
    operand->kind = PTX_OPERAND_VECTOR;
    operand->whole = true;
    operand->items = items;
    operand->count = width;
    return true;
}

bool ptx_read_vector(struct ptx_reader *reader, struct ptx_operand *operand, uint32_t width) {
    if (!is_joined(reader)) return make_vector(reader, operand, width);
    uint32_t component = component_of(reader);
    if (component >= width) {
        return PTX_FAIL(reader, "'%.*s' is not a component of a vector of %u",
                        (int)reader->token->length, ptx_text(reader), width);
    }
    operand->reg += component;
    operand->chosen = true;
    reader->token++;
    return true;
}

/* The components of a special register: three, and one that is always 0. */
static void special_component(struct ptx_operand *operand, enum ptx_special first, uint32_t i) {
    operand->kind = i < 3 ? PTX_OPERAND_SPECIAL : PTX_OPERAND_INTEGER;
    operand->special = (enum ptx_special)(first + (i < 3 ? i : 0));
    operand->integer = 0;
}

bool ptx_read_special_vector(struct ptx_reader *reader, struct ptx_operand *operand) {
    static const struct {
        const char *text;
        enum ptx_special first;
    } vectors[] = {{"%tid", PTX_SPECIAL_tid_x},
                   {"%ntid", PTX_SPECIAL_ntid_x},
                   {"%ctaid", PTX_SPECIAL_ctaid_x},
                   {"%nctaid", PTX_SPECIAL_nctaid_x},
                   {"%clusterid", PTX_SPECIAL_clusterid_x},
                   {"%nclusterid", PTX_SPECIAL_nclusterid_x},
                   {"%cluster_ctaid", PTX_SPECIAL_cluster_ctaid_x},
                   {"%cluster_nctaid", PTX_SPECIAL_cluster_nctaid_x}};
    size_t i = 0, count = sizeof vectors / sizeof vectors[0];
    while (i < count && (strlen(vectors[i].text) != reader->token->length ||
                         memcmp(vectors[i].text, ptx_text(reader), reader->token->length) != 0)) {
        i++;
    }
    if (i == count) return false;
    reader->token++;
    if (is_joined(reader) && component_of(reader) < 4) {
        special_component(operand, vectors[i].first, component_of(reader));
        reader->token++;
        return true;
    }
    if (is_joined(reader) || !make_vector(reader, operand, 4)) {
        reader->token--;
        return false;
    }
    for (uint32_t c = 0; c < 4; c++) special_component(&operand->items[c], vectors[i].first, c);
    return true;
}
