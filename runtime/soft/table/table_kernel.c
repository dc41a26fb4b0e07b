/*
 * A row's kernel, as PTX.
 *
 * Thread t reads the sources of tuple t, 8 bytes each, executes the instructions and writes the
 * results, 8 bytes each as well. A cell of memory is its result's own place, or one in shared
 * memory: the kernel puts the source there first. A tile is memory that the threads of a warp
 * share: they put their sources there, or take their results from there.
 */
#include "table.h"
#include "table_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The register of an operand: one of several has a number of its own. */
static const char *table_kernel_name_of(const struct table_row *row, unsigned operand,
                                        unsigned index) {
    static char name[32];
    if (row->operands[operand].count > 0) {
        snprintf(name, sizeof name, "%%x%u_%u", operand, index);
    } else {
        snprintf(name, sizeof name, "%%x%u", operand);
    }
    return name;
}

static bool has_registers(const struct table_operand *operand) {
    return operand->kind != TABLE_NUMBER && operand->kind != TABLE_AGAIN;
}

static void put_registers(struct table_text *text, const struct table_row *row) {
    for (unsigned i = 0; i < row->operand_count; i++) {
        const struct table_operand *operand = &row->operands[i];
        for (unsigned k = 0; has_registers(operand) && k < table_width(operand); k++) {
            if (operand->type->kind == 'P') {
                table_put(text, "    .reg .pred %s;\n", table_kernel_name_of(row, i, k));
            } else {
                table_put(text, "    .reg .b%u %s;\n", operand->type->store_bits,
                          table_kernel_name_of(row, i, k));
            }
        }
    }
}

/* Lanes that do not execute the instruction keep this. */
static void put_default(struct table_text *text, const struct table_row *row, unsigned i,
                        unsigned k) {
    if (row->operands[i].type->kind == 'P') {
        table_put(text, "    setp.ne.u32 %s, 0, 0;\n", table_kernel_name_of(row, i, k));
    } else {
        table_put(text, "    mov.b%u %s, 0;\n", row->operands[i].type->store_bits,
                  table_kernel_name_of(row, i, k));
    }
}

static void put_load(struct table_text *text, const struct table_row *row, unsigned i, unsigned k) {
    const struct table_operand *operand = &row->operands[i];
    unsigned from = TABLE_BYTES * (operand->source + k);
    if (operand->type->kind == 'P') {
        table_put(text, "    ld.global.u32 %%t, [%%from+%u];\n    setp.ne.u32 %s, %%t, 0;\n", from,
                  table_kernel_name_of(row, i, k));
    } else {
        table_put(text, "    ld.global.b%u %s, [%%from+%u];\n", operand->type->store_bits,
                  table_kernel_name_of(row, i, k), from);
    }
}

static void put_loads(struct table_text *text, const struct table_row *row) {
    for (unsigned i = 0; i < row->operand_count; i++) {
        const struct table_operand *operand = &row->operands[i];
        bool source = operand->kind == TABLE_SOURCE || operand->kind == TABLE_CELL || operand->read;
        for (unsigned k = 0; has_registers(operand) && k < table_width(operand); k++) {
            if (operand->kind == TABLE_RESULT && row->lanes != UINT32_MAX) {
                put_default(text, row, i, k);
            }
            if (source) put_load(text, row, i, k);
            if (operand->written) put_default(text, row, i, k);
        }
        if (operand->kind == TABLE_CELL) {
            table_put(text, "    st.%s.b%u [%%%s+%u], %s;\n", row->shared ? "shared" : "global",
                      operand->type->store_bits, row->shared ? "cell" : "to",
                      TABLE_BYTES * operand->result, table_kernel_name_of(row, i, 0));
        }
    }
}

/* ---- tiles ---- */

/* Bytes of a tile, register after register: for each register, some bytes of each thread. */
static unsigned tile_bytes(const struct table_operand *operand) {
    return 32u * operand->type->store_bits / 8 * table_width(operand);
}

static bool has_tile(const struct table_row *row, unsigned *bytes) {
    *bytes = 0;
    for (unsigned i = 0; i < row->operand_count; i++) {
        if (row->operands[i].kind == TABLE_TILE) *bytes += tile_bytes(&row->operands[i]);
    }
    return *bytes > 0;
}

/* Moves the tile between memory and the operand's registers. */
static void put_tile(struct table_text *text, const struct table_row *row, unsigned i, bool store) {
    const struct table_operand *operand = &row->operands[i];
    unsigned bits = operand->type->store_bits;
    table_put(text, "    mad.wide.u32 %%own, %%lane, %u, %%tile%u;\n", bits / 8, i);
    for (unsigned k = 0; k < table_width(operand); k++) {
        if (store) {
            table_put(text, "    st.b%u [%%own+%u], %s;\n", bits, 4 * bits * k,
                      table_kernel_name_of(row, i, k));
        } else {
            table_put(text, "    ld.b%u %s, [%%own+%u];\n", bits, table_kernel_name_of(row, i, k),
                      4 * bits * k);
        }
    }
}

/* For a warpgroup, a tile is that of its first warp, as the factor of a product: columns of 32
 * bytes, eight of them in 256 bytes, first their first halves. */
static void put_descriptors(struct table_text *text, const struct table_row *row) {
    unsigned at = 0;
    for (unsigned i = 0; i < row->operand_count; i++) {
        const struct table_operand *operand = &row->operands[i];
        if (operand->kind != TABLE_TILE) continue;
        table_put(text,
                  "    .reg .b64 %%factor%u;\n    mov.u32 %%t, tiles;\n    add.u32 %%t, %%t, %u;\n"
                  "    shr.u32 %%t, %%t, 4;\n    cvt.u64.u32 %%factor%u, %%t;\n"
                  "    or.b64 %%factor%u, %%factor%u, 0x%llx;\n",
                  i, at, i, i, i, (unsigned long long)TABLE_FACTOR_STRIDES);
        at += tile_bytes(operand);
    }
}

/* The address of each tile, generic and in its space, and what is in it before. With the set "rows"
 * every lane has the address of another row of 16 bytes. */
static void put_tiles(struct table_text *text, const struct table_row *row, const char *entry) {
    unsigned bytes = 0, at = 0;
    if (!has_tile(row, &bytes)) return;
    table_put(text, "    .reg .b32 %%lane, %%place;\n    .reg .b64 %%own, %%tiles;\n"
                    "    mov.u32 %%t, %%tid.x;\n    and.b32 %%lane, %%t, 31;\n");
    if (row->shared) {
        table_put(text,
                  "    .shared .align 128 .b8 tiles[%u];\n    mov.u64 %%tiles, tiles;\n"
                  "    cvta.shared.u64 %%tiles, %%tiles;\n    shr.u32 %%place, %%t, 5;\n",
                  (row->group ? 4 : 2) * bytes);
    } else {
        table_put(text,
                  "    mov.u64 %%tiles, tiles_%s;\n    cvta.global.u64 %%tiles, %%tiles;\n"
                  "    shr.u32 %%place, %%i, 5;\n",
                  entry);
    }
    table_put(text, "    mad.wide.u32 %%tiles, %%place, %u, %%tiles;\n", bytes);
    for (unsigned i = 0; i < row->operand_count; i++) {
        const struct table_operand *operand = &row->operands[i];
        if (operand->kind != TABLE_TILE) continue;
        table_put(text, "    .reg .b64 %%tile%u, %%near%u;\n    .reg .b32 %%short%u;\n", i, i, i);
        table_put(text, "    add.u64 %%tile%u, %%tiles, %u;\n    mov.u64 %%near%u, %%tile%u;\n", i,
                  at, i, i);
        put_tile(text, row, i, true);
        if (strcmp(operand->set, "rows") == 0) {
            table_put(text,
                      "    mad.lo.u32 %%t, %%lane, %u, %u;\n    and.b32 %%t, %%t, %u;\n"
                      "    mad.wide.u32 %%near%u, %%t, 16, %%tile%u;\n",
                      TABLE_ROWS_FACTOR, TABLE_ROWS_FIRST, tile_bytes(operand) / 16 - 1, i, i);
        }
        if (row->shared) {
            table_put(
                text,
                "    cvta.to.shared.u64 %%own, %%near%u;\n    cvt.u32.u64 %%short%u, %%own;\n", i,
                i);
        }
        at += tile_bytes(operand);
    }
    if (!row->group) {
        table_put(text, "    bar.warp.sync 0xffffffff;\n");
        return;
    }
    table_put(text, "    fence.proxy.async.shared::cta;\n    bar.sync 0;\n");
    put_descriptors(text, row);
}

static void put_address(struct table_text *text, const struct table_row *row,
                        const struct table_instruction *instruction, unsigned place) {
    if (row->operands[place].kind == TABLE_TILE && row->group) {
        table_put(text, "%%factor%u", place);
        return;
    }
    if (row->operands[place].kind == TABLE_TILE) {
        bool is_short = table_has(instruction, "shared") || table_has(instruction, "shared::cta");
        table_put(text, "[%%%s%u]", is_short ? "short" : "near", place);
    } else {
        table_put(text, "[%%%s+%u]", row->shared ? "cell" : "to",
                  TABLE_BYTES * row->operands[place].result);
    }
}

static void put_instruction(struct table_text *text, const struct table_row *row,
                            const struct table_instruction *instruction) {
    table_put(text, "    %s%s", row->lanes != UINT32_MAX ? "@%chosen " : "", instruction->spelling);
    for (unsigned i = 0; i < instruction->operand_count; i++) {
        unsigned place = instruction->first_operand + i;
        const struct table_operand *operand = &row->operands[place];
        table_put(text, "%s", i == 0 ? " " : operand->before == '|' ? "|" : ", ");
        if (operand->before == '{') table_put(text, "{");
        unsigned named = operand->kind == TABLE_AGAIN ? operand->source : place;
        unsigned count = row->operands[named].count;
        if (operand->kind == TABLE_NUMBER) {
            table_put(text, "%s", operand->text);
        } else if (operand->kind == TABLE_CELL || operand->kind == TABLE_TILE) {
            put_address(text, row, instruction, place);
        } else if (count > 0) {
            for (unsigned k = 0; k < count; k++) {
                table_put(text, "%s%s", k == 0 ? "{" : ", ", table_kernel_name_of(row, named, k));
            }
            table_put(text, "}");
        } else {
            table_put(text, "%s%s%s%s",
                      operand->negated ? "!"
                      : operand->minus ? "-"
                                       : "",
                      table_kernel_name_of(row, named, 0), operand->part[0] != '\0' ? "." : "",
                      operand->part);
        }
        if (operand->after == '}') table_put(text, "}");
    }
    table_put(text, ";\n");
}

static void put_stores(struct table_text *text, const struct table_row *row) {
    for (unsigned i = 0; i < row->operand_count; i++) {
        const struct table_operand *operand = &row->operands[i];
        bool result = operand->kind == TABLE_RESULT || operand->written ||
                      (operand->kind == TABLE_CELL && row->shared);
        if (!result) continue;
        if (operand->kind == TABLE_CELL) {
            table_put(text, "    ld.shared.b%u %s, [%%cell+%u];\n", operand->type->store_bits,
                      table_kernel_name_of(row, i, 0), TABLE_BYTES * operand->result);
        }
        if (operand->written) {
            table_put(text, "    bar.warp.sync 0xffffffff;\n");
            put_tile(text, row, i, false);
        }
        for (unsigned k = 0; k < table_width(operand); k++) {
            unsigned to = TABLE_BYTES * (operand->result + k);
            if (operand->type->kind == 'P') {
                table_put(text, "    selp.u32 %%t, 1, 0, %s;\n    st.global.u32 [%%to+%u], %%t;\n",
                          table_kernel_name_of(row, i, k), to);
            } else {
                table_put(text, "    st.global.b%u [%%to+%u], %s;\n", operand->type->store_bits, to,
                          table_kernel_name_of(row, i, k));
            }
        }
    }
}

char *table_kernel(const struct table_row *row, const char *entry, bool header) {
    struct table_text text = {0};
    if (header) {
        table_put(&text, ".version %u.%u\n.target sm_%u%s\n.address_size 64\n", row->version / 10,
                  row->version % 10, row->target, row->suffix == 'a' ? "a" : "");
    }
    unsigned bytes = 0;
    if (has_tile(row, &bytes) && !row->shared) {
        table_put(&text, ".global .align 128 .b8 tiles_%s[%u];\n", entry,
                  bytes * (row->tuples / 32));
    }
    table_put(&text,
              "// %s\n.visible .entry %s(.param .u64 sources, .param .u64 results, "
              ".param .u32 count)\n{\n",
              row->text, entry);
    table_put(&text, "    .reg .pred %%outside, %%chosen;\n    .reg .b32 %%i, %%n, %%t;\n"
                     "    .reg .b64 %%from, %%to;\n");
    put_registers(&text, row);
    table_put(&text, "    mov.u32 %%i, %%ctaid.x;\n    mov.u32 %%n, %%ntid.x;\n"
                     "    mov.u32 %%t, %%tid.x;\n    mad.lo.u32 %%i, %%i, %%n, %%t;\n"
                     "    ld.param.u32 %%n, [count];\n    setp.ge.u32 %%outside, %%i, %%n;\n"
                     "    @%%outside exit;\n");
    table_put(&text,
              "    ld.param.u64 %%from, [sources];\n    cvta.to.global.u64 %%from, %%from;\n"
              "    ld.param.u64 %%to, [results];\n    cvta.to.global.u64 %%to, %%to;\n"
              "    mad.wide.u32 %%from, %%i, %u, %%from;\n    mad.wide.u32 %%to, %%i, %u, %%to;\n",
              TABLE_BYTES * row->source_count, TABLE_BYTES * row->result_count);
    if (row->lanes != UINT32_MAX) {
        table_put(
            &text,
            "    and.b32 %%t, %%t, 31;\n    shr.u32 %%t, 0x%x, %%t;\n    and.b32 %%t, %%t, 1;\n"
            "    setp.ne.u32 %%chosen, %%t, 0;\n",
            row->lanes);
    }
    if (row->shared && !has_tile(row, &bytes)) {
        table_put(&text,
                  "    .reg .b32 %%cell;\n    .shared .align 8 .b8 cells[%u];\n"
                  "    mov.u32 %%cell, cells;\n    mov.u32 %%t, %%tid.x;\n"
                  "    mad.lo.u32 %%cell, %%t, %u, %%cell;\n",
                  64 * TABLE_BYTES * row->result_count, TABLE_BYTES * row->result_count);
    }
    put_loads(&text, row);
    put_tiles(&text, row, entry);
    for (unsigned i = 0; i < row->instruction_count; i++) {
        put_instruction(&text, row, &row->instructions[i]);
    }
    put_stores(&text, row);
    table_put(&text, "    ret;\n}\n");
    return table_text_end(&text);
}
