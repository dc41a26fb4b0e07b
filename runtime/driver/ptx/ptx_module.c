/*
 * Modules and kernels of the PTX builder. A kernel's head is complete only when its body is closed,
 * so the body is kept separately until then.
 */
#include "ptx_state.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { CAPABILITY_MIN = 70, VERSION_MIN = 60, SHARED_MAX = 48 * 1024, SHARED_ALIGNMENT = 16 };

/* The first .version that has a .target. PTX ISA 9.0, section 13. */
static int ptx_module_version_of(int capability) {
    return capability >= 90 ? 78 : capability >= 80 ? 70 : capability >= 75 ? 63 : VERSION_MIN;
}

/* ---- text ---- */

bool tol_ptx_text_open(struct tol_ptx_text *text) {
    text->file = open_memstream(&text->bytes, &text->count);
    return text->file != NULL;
}

void tol_ptx_text_close(struct tol_ptx_text *text) {
    if (text->file != NULL) fclose(text->file);
    free(text->bytes);
    memset(text, 0, sizeof *text);
}

const char *tol_ptx_text_read(struct tol_ptx_text *text) {
    return fflush(text->file) == 0 && !ferror(text->file) ? text->bytes : NULL;
}

void tol_ptx_text_clear(struct tol_ptx_text *text) {
    rewind(text->file);
}

void tol_ptx_line(struct tol_ptx *ptx, const char *format, ...) {
    va_list rest;
    va_start(rest, format);
    fputc('\t', ptx->body.file);
    vfprintf(ptx->body.file, format, rest);
    fputs(";\n", ptx->body.file);
    va_end(rest);
    ptx->has_body = true;
}

/* ---- modules ---- */

tol_status tol_ptx_create(int compute_capability, struct tol_ptx **result) {
    static atomic_uint serials;
    tol_status status = TOL_OK;
    struct tol_ptx *ptx = NULL;
    TOL_CHECK(result != NULL, TOL_INVALID_ARGUMENT, "tol_ptx_create: the result is NULL");
    *result = NULL;
    TOL_CHECK(compute_capability >= CAPABILITY_MIN && compute_capability < 1000,
              TOL_INVALID_ARGUMENT, "tol_ptx_create: %d is not a compute capability from 70 on",
              compute_capability);
    ptx = calloc(1, sizeof *ptx);
    TOL_CHECK(ptx != NULL && tol_ptx_text_open(&ptx->parameter_list) &&
                  tol_ptx_text_open(&ptx->body) && tol_ptx_text_open(&ptx->kernels) &&
                  tol_ptx_text_open(&ptx->whole),
              TOL_OUT_OF_HOST_MEMORY, "no host memory for a builder of PTX");
    ptx->serial = 1 + atomic_fetch_add(&serials, 1) % (UINT32_MAX - 1);
    ptx->capability = compute_capability;
    ptx->needs = CAPABILITY_MIN;
    ptx->version = VERSION_MIN;
    *result = ptx;
    ptx = NULL;
out:
    tol_ptx_destroy(ptx);
    return status;
}

void tol_ptx_destroy(struct tol_ptx *ptx) {
    if (ptx == NULL) return;
    tol_ptx_text_close(&ptx->parameter_list);
    tol_ptx_text_close(&ptx->body);
    tol_ptx_text_close(&ptx->kernels);
    tol_ptx_text_close(&ptx->whole);
    free(ptx->entries);
    free(ptx->names);
    free(ptx);
}

static void write_whole(struct tol_ptx *ptx, const char *kernels) {
    int version = ptx->version;
    if (version < ptx_module_version_of(ptx->needs)) version = ptx_module_version_of(ptx->needs);
    fprintf(ptx->whole.file, ".version %d.%d\n.target sm_%d\n.address_size 64\n%.*s", version / 10,
            version % 10, ptx->needs, (int)ptx->kernels.count, kernels);
}

tol_status tol_ptx_finish(struct tol_ptx *ptx, const char **text, size_t *bytes) {
    tol_status status = TOL_OK;
    TOL_CHECK(ptx != NULL && text != NULL, TOL_INVALID_ARGUMENT,
              "tol_ptx_finish: an argument is NULL");
    *text = NULL;
    if (ptx->mistake == TOL_OK && ptx->depth > 0) {
        tol_ptx_mistake(ptx, ptx->blocks[ptx->depth - 1].at, TOL_INVALID_ARGUMENT,
                        "tol_ptx_finish: what this line opened is not closed");
    }
    TOL_CHECK(ptx->mistake == TOL_OK, ptx->mistake, "%s", ptx->why);
    TOL_CHECK(ptx->has_kernel, TOL_INVALID_ARGUMENT, "tol_ptx_finish: the module has no kernel");
    if (!ptx->finished) {
        const char *kernels = tol_ptx_text_read(&ptx->kernels);
        if (kernels != NULL) write_whole(ptx, kernels);
        ptx->finished = true;
    }
    *text = tol_ptx_text_read(&ptx->whole);
    TOL_CHECK(*text != NULL && ptx->whole.count > 0, TOL_OUT_OF_HOST_MEMORY,
              "no host memory for the text of a module");
    if (bytes != NULL) *bytes = ptx->whole.count;
out:
    return status;
}

/* ---- kernels ---- */

static bool ptx_module_is_name(const char *name) {
    if (name == NULL || name[0] == '\0' || strlen(name) >= TOL_PTX_NAME_BYTES) return false;
    if (isdigit((unsigned char)name[0])) return false;
    for (; *name != '\0'; name++) {
        if (!isascii((unsigned char)*name) || (!isalnum((unsigned char)*name) && *name != '_')) {
            return false;
        }
    }
    return true;
}

static bool ptx_module_add_name(struct tol_ptx *ptx, const char *name) {
    char(*more)[TOL_PTX_NAME_BYTES] =
        realloc(ptx->names, (ptx->name_count + 1) * sizeof ptx->names[0]);
    if (more == NULL) return false;
    ptx->names = more;
    snprintf(ptx->names[ptx->name_count++], sizeof ptx->names[0], "%s", name);
    return true;
}

void tol_ptx_kernel_at(struct tol_ptx *ptx, struct tol_ptx_place at, const char *name,
                       unsigned threads) {
    if (ptx == NULL || ptx->mistake != TOL_OK) return;
    bool known = false;
    for (size_t i = 0; name != NULL && i < ptx->name_count; i++) {
        known = known || strcmp(ptx->names[i], name) == 0;
    }
    if (ptx->finished) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "kernel: the module is finished");
    } else if (ptx->depth > 0) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "kernel: the kernel %s is open", ptx->name);
    } else if (!ptx_module_is_name(name)) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "kernel: '%.40s' is not a valid name",
                        name != NULL ? name : "NULL");
    } else if (known) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "kernel: there is a kernel %s already",
                        name);
    } else if (threads > 1024) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT,
                        "kernel: %u threads, and a block has at most 1024", threads);
    } else if (!ptx_module_add_name(ptx, name)) {
        tol_ptx_mistake(ptx, at, TOL_OUT_OF_HOST_MEMORY, "no host memory for a kernel");
    }
    if (ptx->mistake != TOL_OK) return;
    snprintf(ptx->name, sizeof ptx->name, "%s", name);
    ptx->threads = threads;
    ptx->parameters = 0;
    ptx->shared_bytes = 0;
    ptx->has_body = false;
    memset(ptx->registers, 0, sizeof ptx->registers);
    tol_ptx_text_clear(&ptx->parameter_list);
    tol_ptx_text_clear(&ptx->body);
    ptx->blocks[ptx->depth++] =
        (struct tol_ptx_block){.kind = TOL_PTX_KERNEL, .number = ++ptx->block_count, .at = at};
}

/* The kernel's head, now that all of it is known, and its body. */
static void close_kernel(struct tol_ptx *ptx) {
    static const struct {
        const char *type, *letter;
    } classes[] = {{"pred", "p"}, {"b16", "h"}, {"b32", "r"}, {"b64", "d"}};
    FILE *file = ptx->kernels.file;
    tol_ptx_line(ptx, "ret");
    const char *parameters = tol_ptx_text_read(&ptx->parameter_list);
    const char *body = tol_ptx_text_read(&ptx->body);
    if (parameters == NULL || body == NULL) {
        tol_ptx_mistake(ptx, ptx->blocks[0].at, TOL_OUT_OF_HOST_MEMORY,
                        "no host memory for a kernel");
        return;
    }
    fprintf(file, "\n.visible .entry %s(%.*s)\n", ptx->name, (int)ptx->parameter_list.count,
            parameters);
    if (ptx->threads > 0) fprintf(file, ".reqntid %u, 1, 1\n", ptx->threads);
    fputs("{\n", file);
    for (unsigned i = 0; i < TOL_PTX_CLASS_COUNT; i++) {
        if (ptx->registers[i] == 0) continue;
        fprintf(file, "\t.reg .%s %%%s<%u>;\n", classes[i].type, classes[i].letter,
                ptx->registers[i] + 1);
    }
    if (ptx->shared_bytes > 0) {
        fprintf(file, "\t.shared .align %d .b8 %s_shared[%zu];\n", SHARED_ALIGNMENT, ptx->name,
                ptx->shared_bytes);
    }
    fprintf(file, "%.*s}\n", (int)ptx->body.count, body);
    ptx->has_kernel = true;
}

tol_ptx_value tol_ptx_parameter_at(struct tol_ptx *ptx, struct tol_ptx_place at,
                                   tol_ptx_type type) {
    if (!tol_ptx_may(ptx, at, "parameter")) return tol_ptx_none();
    if ((unsigned)type >= TOL_PTX_TYPE_COUNT || tol_ptx_bytes(type) < 4) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT,
                        "parameter: a .%s has neither 32 nor 64 bits", tol_ptx_type_name(type));
    } else if (ptx->has_body) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT,
                        "parameter: parameters come before the kernel's first instruction");
    }
    if (ptx->mistake != TOL_OK) return tol_ptx_none();
    const char *name = tol_ptx_bits_name(tol_ptx_bytes(type));
    fprintf(ptx->parameter_list.file, "%s\n\t.param .%s %s_p%u", ptx->parameters > 0 ? "," : "",
            name, ptx->name, ptx->parameters);
    tol_ptx_value value = tol_ptx_new(ptx, type);
    if (ptx->mistake != TOL_OK) return tol_ptx_none();
    tol_ptx_line(ptx, "ld.param.%s %s, [%s_p%u]", name, TOL_PTX_WORD(ptx, value), ptx->name,
                 ptx->parameters++);
    ptx->has_body = false;
    return value;
}

tol_ptx_value tol_ptx_shared_at(struct tol_ptx *ptx, struct tol_ptx_place at, size_t bytes) {
    if (!tol_ptx_may(ptx, at, "shared")) return tol_ptx_none();
    size_t room = (bytes + SHARED_ALIGNMENT - 1) / SHARED_ALIGNMENT * SHARED_ALIGNMENT;
    if (bytes == 0 || bytes > SHARED_MAX || ptx->shared_bytes + room > SHARED_MAX) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT,
                        "shared: %zu bytes, where a kernel has at most %d and %zu are used", bytes,
                        SHARED_MAX, ptx->shared_bytes);
        return tol_ptx_none();
    }
    tol_ptx_value value = tol_ptx_new(ptx, TOL_PTX_U32);
    if (ptx->mistake != TOL_OK) return tol_ptx_none();
    tol_ptx_line(ptx, "mov.u32 %s, %s_shared", TOL_PTX_WORD(ptx, value), ptx->name);
    if (ptx->shared_bytes > 0) {
        tol_ptx_line(ptx, "add.u32 %s, %s, %zu", TOL_PTX_WORD(ptx, value), TOL_PTX_WORD(ptx, value),
                     ptx->shared_bytes);
    }
    ptx->shared_bytes += room;
    return value;
}

/* ---- blocks ---- */

static void open_block(struct tol_ptx *ptx, struct tol_ptx_place at, enum tol_ptx_block_kind kind) {
    if (ptx->depth == TOL_PTX_DEPTH_MAX) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "more than %d nested blocks",
                        TOL_PTX_DEPTH_MAX);
        return;
    }
    ptx->blocks[ptx->depth++] =
        (struct tol_ptx_block){.kind = kind, .number = ++ptx->block_count, .at = at};
}

void tol_ptx_if_at(struct tol_ptx *ptx, struct tol_ptx_place at, tol_ptx_value predicate) {
    if (!tol_ptx_may(ptx, at, "if") ||
        !tol_ptx_use_type(ptx, at, "if", "the condition", predicate, TOL_PTX_PRED)) {
        return;
    }
    open_block(ptx, at, TOL_PTX_THEN);
    if (ptx->mistake != TOL_OK) return;
    tol_ptx_line(ptx, "@!%s bra $else_%u", TOL_PTX_WORD(ptx, predicate),
                 ptx->blocks[ptx->depth - 1].number);
}

void tol_ptx_else_at(struct tol_ptx *ptx, struct tol_ptx_place at) {
    if (!tol_ptx_may(ptx, at, "else")) return;
    struct tol_ptx_block block = ptx->blocks[ptx->depth - 1];
    if (block.kind != TOL_PTX_THEN) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "else: the innermost block is not an if");
        return;
    }
    ptx->depth--;
    open_block(ptx, block.at, TOL_PTX_ELSE);
    tol_ptx_line(ptx, "bra $end_%u", ptx->blocks[ptx->depth - 1].number);
    fprintf(ptx->body.file, "$else_%u:\n", block.number);
}

void tol_ptx_loop_at(struct tol_ptx *ptx, struct tol_ptx_place at) {
    if (!tol_ptx_may(ptx, at, "loop")) return;
    open_block(ptx, at, TOL_PTX_LOOP);
    if (ptx->mistake != TOL_OK) return;
    fprintf(ptx->body.file, "$loop_%u:\n", ptx->blocks[ptx->depth - 1].number);
    ptx->has_body = true;
}

void tol_ptx_break_if_at(struct tol_ptx *ptx, struct tol_ptx_place at, tol_ptx_value predicate) {
    if (!tol_ptx_may(ptx, at, "break_if") ||
        !tol_ptx_use_type(ptx, at, "break_if", "the condition", predicate, TOL_PTX_PRED)) {
        return;
    }
    unsigned i = ptx->depth;
    while (i > 0 && ptx->blocks[i - 1].kind != TOL_PTX_LOOP) i--;
    if (i == 0) {
        tol_ptx_mistake(ptx, at, TOL_INVALID_ARGUMENT, "break_if: no loop is open");
        return;
    }
    ptx->blocks[i - 1].left = true;
    tol_ptx_line(ptx, "@%s bra $end_%u", TOL_PTX_WORD(ptx, predicate), ptx->blocks[i - 1].number);
}

void tol_ptx_end_at(struct tol_ptx *ptx, struct tol_ptx_place at) {
    if (!tol_ptx_may(ptx, at, "end")) return;
    struct tol_ptx_block block = ptx->blocks[ptx->depth - 1];
    switch (block.kind) {
    case TOL_PTX_KERNEL:
        close_kernel(ptx);
        break;
    case TOL_PTX_THEN:
        fprintf(ptx->body.file, "$else_%u:\n", block.number);
        break;
    case TOL_PTX_ELSE:
        fprintf(ptx->body.file, "$end_%u:\n", block.number);
        break;
    case TOL_PTX_LOOP:
        if (!block.left) {
            tol_ptx_mistake(ptx, block.at, TOL_INVALID_ARGUMENT,
                            "loop: there is no break_if, so it would not end");
            return;
        }
        tol_ptx_line(ptx, "bra $loop_%u", block.number);
        fprintf(ptx->body.file, "$end_%u:\n", block.number);
        break;
    }
    ptx->depth--;
}
