/*
 * What all rows of attention's tables have in common.
 */
#include "attention/attention_table.h"

const char *attention_row_refuse(const struct kn_variant *row, enum kn_type type, size_t head_size,
                                 bool is_aligned) {
    const char *why = kn_types_refuse(row->types, type);
    if (why != NULL) return why;
    if ((row->needs & ATTENTION_OF_SIZE) != 0 && head_size != row->size) {
        return "heads are of another size";
    }
    if ((row->needs & ATTENTION_OF_16) != 0 && !is_aligned) {
        return "a row does not begin at a multiple of 16 bytes";
    }
    return NULL;
}
