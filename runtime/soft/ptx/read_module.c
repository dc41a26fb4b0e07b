/*
 * The module level: version, target, declarations, and debug directives, which are skipped. Source:
 * PTX ISA 9.0, sections 11.1, 11.5 and 11.6.
 */
#include "reader.h"

#include "base/options.h"
#include "tollens/cuda_abi.h"

#include <stdlib.h>
#include <string.h>

/* The newest PTX version of the driver version that the device reports: newer features would be
 * misread. From the table of CUDA releases in "Release Notes" of PTX ISA 9.2. What is new in 9.1
 * and 9.2 is unknown here, and refused where it is used. */
static unsigned newest_version(void) {
    static const struct {
        int driver;
        unsigned version;
    } known[] = {{13020, 92}, {13010, 91}, {13000, 90}, {12090, 88}, {12080, 87},
                 {12070, 86}, {12050, 85}, {12040, 84}, {12030, 83}, {12020, 82},
                 {12010, 81}, {12000, 80}, {11080, 78}, {11070, 77}, {11060, 76},
                 {11050, 75}, {11040, 74}, {11030, 73}, {11020, 72}, {11010, 71}};
    const int driver = soft_options()->driver_version;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (driver >= known[i].driver) return known[i].version;
    }
    return 70;
}

bool ptx_expect(struct ptx_reader *reader, const char *text) {
    return ptx_take(reader, text) || PTX_FAIL(reader, "expected '%s'", text);
}

bool ptx_expect_name(struct ptx_reader *reader, const char *what, const struct soft_token **name) {
    if (reader->token->kind != SOFT_TOKEN_NAME) return PTX_FAIL(reader, "expected %s", what);
    *name = reader->token++;
    return true;
}

enum ptx_modifier ptx_modifier_of(const char *text, size_t length) {
    return length > 1 ? ptx_modifier_find(text + 1, length - 1) : PTX_MODIFIERS;
}

static bool read_version(struct ptx_reader *reader) {
    if (!ptx_expect(reader, ".version")) return false;
    const char *text = ptx_text(reader);
    size_t dot = 0, length = reader->token->length;
    while (dot < length && text[dot] != '.') dot++;
    if (reader->token->kind != SOFT_TOKEN_FLOAT || dot == 0 || dot > 2 || length - dot != 2) {
        return PTX_FAIL(reader, "expected a version such as 8.0");
    }
    unsigned version = 0;
    for (size_t i = 0; i < length; i++) {
        if (i == dot) continue;
        if (text[i] < '0' || text[i] > '9') return PTX_FAIL(reader, "expected a version");
        version = version * 10 + (unsigned)(text[i] - '0');
    }
    const unsigned newest = newest_version();
    if (version > newest && !reader->diagnostic->takes_newer) {
        return soft_error(reader->diagnostic, reader->token->offset,
                          CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
                          "PTX %u.%u is newer than %u.%u, the newest version this device supports",
                          version / 10, version % 10, newest / 10, newest % 10);
    }
    reader->module->version = version;
    reader->token++;
    return true;
}

/* The architectures, and the first PTX version of each, as in ptxas 13.0. */
static unsigned version_of_architecture(unsigned number) {
    static const struct {
        unsigned char architecture, version;
    } known[] = {{10, 10},  {11, 10},  {12, 12},  {13, 12},  {20, 20},  {30, 30},
                 {32, 40},  {35, 31},  {37, 41},  {50, 40},  {52, 41},  {53, 42},
                 {60, 50},  {61, 50},  {62, 50},  {70, 60},  {72, 61},  {75, 63},
                 {80, 70},  {86, 71},  {87, 74},  {88, 73},  {89, 78},  {90, 78},
                 {100, 86}, {101, 86}, {103, 88}, {110, 90}, {120, 87}, {121, 88}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].architecture == number) return known[i].version;
    }
    return 0;
}

/* target = "sm_" number suffix? ("," word)* */
static bool read_target(struct ptx_reader *reader) {
    if (!ptx_expect(reader, ".target")) return false;
    const char *text = ptx_text(reader);
    size_t length = reader->token->length, at = 3;
    unsigned number = 0;
    bool fits = length > 3 && length < 8 && memcmp(text, "sm_", 3) == 0;
    while (fits && at < length && text[at] >= '0' && text[at] <= '9') {
        number = number * 10 + (unsigned)(text[at++] - '0');
    }
    if (fits && at + 1 == length && (text[at] == 'a' || text[at] == 'f')) {
        reader->module->target_suffix = text[at++];
    }
    unsigned since = fits && at == length ? version_of_architecture(number) : 0;
    if (reader->module->target_suffix == 'a' && number == 90) since = 80;
    if (reader->module->target_suffix == 'a' && number < 90) since = 0;
    if (reader->module->target_suffix == 'f' && since < 88) since = number < 100 ? 0 : 88;
    if (since == 0) {
        return PTX_FAIL(reader, "unknown target '%.*s'", (int)length, text);
    }
    if (reader->module->version < since) {
        return PTX_FAIL(reader, "target %.*s needs PTX %u.%u or newer, and this is PTX %u.%u",
                        (int)length, text, since / 10, since % 10, reader->module->version / 10,
                        reader->module->version % 10);
    }
    reader->module->target = number;
    reader->token++;
    while (ptx_take(reader, ",")) {
        const struct soft_token *word = NULL;
        if (!ptx_expect_name(reader, "a target option", &word)) return false;
    }
    return true;
}

/* file = ".file" number string ("," number "," number)? */
static bool read_module_read_file(struct ptx_reader *reader) {
    int64_t number = 0;
    if (!ptx_read_unary(reader, &number)) return false;
    if (reader->token->kind != SOFT_TOKEN_STRING) return PTX_FAIL(reader, "expected a file name");
    struct ptx_file *file = soft_arena_alloc(reader->arena, sizeof *file);
    char *name = file == NULL ? NULL
                              : soft_arena_text(reader->arena, ptx_text(reader) + 1,
                                                reader->token->length - 2);
    if (name == NULL) return PTX_NO_MEMORY(reader);
    file->number = (uint32_t)number;
    file->name = name;
    file->next = reader->module->files;
    reader->module->files = file;
    reader->token++;
    int64_t ignored = 0;
    while (ptx_take(reader, ",")) {
        if (!ptx_read_unary(reader, &ignored)) return false;
    }
    return true;
}

/* loc = ".loc" file line column ("," ...)*: a comma is followed by inlining information */
static bool read_loc(struct ptx_reader *reader) {
    int64_t file = 0, line = 0, column = 0;
    if (!ptx_read_unary(reader, &file) || !ptx_read_unary(reader, &line)) return false;
    if (reader->token->kind == SOFT_TOKEN_INTEGER && !ptx_read_unary(reader, &column)) return false;
    reader->file = (uint32_t)file;
    reader->line = (uint32_t)line;
    while (ptx_take(reader, ",")) {
        const struct soft_token *word = NULL;
        if (!ptx_expect_name(reader, "a .loc attribute", &word)) return false;
        while (reader->token->kind == SOFT_TOKEN_INTEGER ||
               reader->token->kind == SOFT_TOKEN_NAME || ptx_is(reader, "+")) {
            /* "function_name $L__info_string0+12" and "inlined_at 1 20 5"; an instruction's name
             * would be next, on a line of its own. */
            const char *text = reader->diagnostic->text;
            size_t i = reader->token[-1].offset;
            while (i < reader->token->offset && text[i] != '\n') i++;
            if (i < reader->token->offset) break;
            reader->token++;
        }
    }
    return true;
}

/* section = ".section" name "{" anything "}" */
static bool skip_section(struct ptx_reader *reader) {
    reader->token++;
    if (!ptx_expect(reader, "{")) return false;
    while (!ptx_is(reader, "}")) {
        if (reader->token->kind == SOFT_TOKEN_END) return PTX_FAIL(reader, "expected '}'");
        reader->token++;
    }
    reader->token++;
    return true;
}

bool ptx_read_debug(struct ptx_reader *reader, bool *was_debug) {
    *was_debug = true;
    if (ptx_take(reader, ".loc")) return read_loc(reader);
    if (ptx_take(reader, ".file")) return read_module_read_file(reader);
    if (ptx_take(reader, ".section")) return skip_section(reader);
    *was_debug = false;
    return true;
}

/* alias = ".alias" function "," function ";": the first is declared, the second defined */
static bool read_alias(struct ptx_reader *reader) {
    struct ptx_symbol *symbols[2];
    for (int i = 0; i < 2; i++) {
        const struct soft_token *name = reader->token;
        if (i > 0 && !ptx_expect(reader, ",")) return false;
        if (!ptx_expect_name(reader, "the name of a function", &name)) return false;
        const char *text = reader->diagnostic->text + name->offset;
        symbols[i] = ptx_symbol_here(reader->module->scope, text, name->length);
        if (symbols[i] == NULL || symbols[i]->kind != PTX_FUNCTION ||
            symbols[i]->is.function->entry || symbols[i]->is.function->has_body != (i > 0)) {
            return soft_error(reader->diagnostic, name->offset, CUDA_ERROR_INVALID_PTX,
                              i > 0 ? "'%.*s' is not a function defined earlier"
                                    : "'%.*s' is not a function that is declared and not defined",
                              (int)name->length, text);
        }
    }
    symbols[0]->is.function = symbols[1]->is.function;
    return ptx_expect(reader, ";");
}

/* registers outside functions: they are declared again in each function. */
static bool read_module_read_outer_registers(struct ptx_reader *reader) {
    enum { LAST = 23 }; /* newer versions have calls with stacks, and no such registers */
    if (reader->module->version > LAST) {
        return PTX_FAIL(reader, "registers outside functions need .version 2.3 or older");
    }
    struct ptx_outer_registers *outer = soft_arena_alloc(reader->arena, sizeof *outer);
    if (outer == NULL) return PTX_NO_MEMORY(reader);
    outer->token = ++reader->token;
    *reader->outer_end = outer;
    reader->outer_end = &outer->next;
    while (!ptx_is(reader, ";") && reader->token->kind != SOFT_TOKEN_END) reader->token++;
    return ptx_expect(reader, ";");
}

/* Hints, which have no effect. As in ptxas 13.0, a hint is refused before the PTX version that
 * introduced it, but unknown names are not. */
bool ptx_read_pragmas(struct ptx_reader *reader) {
    static const struct {
        const char *name;
        unsigned version_min;
    } known[] = {{"used_bytes_mask", 83}, {"enable_smem_spilling", 87}, {"frequency", 90}};
    if (!ptx_expect(reader, ".pragma")) return false;
    for (; reader->token->kind == SOFT_TOKEN_STRING || ptx_is(reader, ","); reader->token++) {
        const char *text = ptx_text(reader);
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
            const size_t length = strlen(known[i].name);
            if (reader->token->length < length + 2 || text[0] != '"' ||
                memcmp(text + 1, known[i].name, length) != 0 ||
                reader->module->version >= known[i].version_min) {
                continue;
            }
            return PTX_FAIL(reader, "'%s' needs .version %u.%u or newer", known[i].name,
                            known[i].version_min / 10, known[i].version_min % 10);
        }
    }
    return ptx_expect(reader, ";");
}

static bool read_module_read_item(struct ptx_reader *reader) {
    bool debug = false, external = false;
    if (!ptx_read_debug(reader, &debug)) return false;
    if (debug || ptx_take(reader, ";")) return true;
    if (ptx_is(reader, ".pragma")) return ptx_read_pragmas(reader);
    if (ptx_take(reader, ".alias")) return read_alias(reader);
    reader->linkage = PTX_LINKAGE_OWN;
    for (;;) {
        if (ptx_take(reader, ".extern")) {
            external = true;
            reader->linkage = PTX_LINKAGE_EXTERN;
        } else if (ptx_take(reader, ".visible")) {
            reader->linkage = PTX_LINKAGE_VISIBLE;
        } else if (ptx_take(reader, ".weak")) {
            reader->linkage = PTX_LINKAGE_WEAK;
        } else if (ptx_take(reader, ".common")) {
            reader->linkage = PTX_LINKAGE_COMMON;
        } else {
            break;
        }
    }
    if (ptx_is(reader, ".entry") || ptx_is(reader, ".func")) {
        return ptx_read_function(reader, external);
    }
    if (ptx_take(reader, ".global")) {
        return ptx_read_variables(reader, PTX_global, external, &reader->variables_end);
    }
    if (ptx_take(reader, ".const")) {
        return ptx_read_variables(reader, PTX_constant, external, &reader->variables_end);
    }
    if (ptx_take(reader, ".shared")) {
        return ptx_read_variables(reader, PTX_shared, external, &reader->variables_end);
    }
    if (ptx_is(reader, ".reg")) return read_module_read_outer_registers(reader);
    if (ptx_take(reader, ".local")) {
        return PTX_FAIL(reader, "a .local variable must be declared inside a function");
    }
    if (ptx_take(reader, ".tex")) return ptx_read_texture(reader, &reader->variables_end);
    return PTX_FAIL(reader, "'%.*s' is not allowed here", (int)reader->token->length,
                    ptx_text(reader));
}

static bool read_module_read_items(struct soft_diagnostic *diagnostic, struct soft_arena *arena,
                                   struct ptx_module *module, const struct soft_token *tokens,
                                   struct ptx_bodies *bodies) {
    struct ptx_reader reader = {.diagnostic = diagnostic,
                                .arena = arena,
                                .module = module,
                                .token = tokens,
                                .bodies = bodies,
                                .instruction = ""};
    memset(module, 0, sizeof *module);
    module->scope = soft_arena_alloc(arena, sizeof *module->scope);
    if (module->scope == NULL) return PTX_NO_MEMORY(&reader);
    reader.scope = module->scope;
    reader.variables_end = &module->variables;
    reader.functions_end = &module->functions;
    reader.outer_end = &reader.outer;

    if (!read_version(&reader) || !read_target(&reader)) return false;
    if (ptx_take(&reader, ".address_size")) {
        if (ptx_is(&reader, "32")) {
            return PTX_FAIL(&reader, "32-bit addresses are not supported since CUDA 12");
        }
        if (!ptx_expect(&reader, "64")) return false;
    }
    while (reader.token->kind != SOFT_TOKEN_END) {
        if (!read_module_read_item(&reader)) return false;
    }
    return true;
}

static bool read_apart(const struct soft_diagnostic *diagnostic, struct soft_arena *arena,
                       const struct ptx_shares *shares, struct ptx_module *module,
                       const struct soft_token *tokens) {
    enum { SHORT_BYTES = 128 * 1024 }; /* read in less time than a thread takes to start */
    struct soft_diagnostic trial = *diagnostic;
    struct ptx_bodies bodies = {0};
    if (shares->threads < 2 || diagnostic->length < SHORT_BYTES) return false;
    bool ok = read_module_read_items(&trial, arena, module, tokens, &bodies) &&
              ptx_read_bodies(module, diagnostic, &bodies, shares);
    free(bodies.list);
    return ok;
}

bool ptx_read(struct soft_diagnostic *diagnostic, struct soft_arena *arena,
              const struct ptx_shares *shares, struct ptx_module *module) {
    struct soft_arena words = {0};
    struct soft_token *tokens = NULL;
    size_t count = 0;
    memset(module, 0, sizeof *module);
    bool ok = soft_tokenize(diagnostic, &words, &tokens, &count) &&
              (read_apart(diagnostic, arena, shares, module, tokens) ||
               read_module_read_items(diagnostic, arena, module, tokens, NULL));
    soft_arena_clear(&words);
    return ok;
}
