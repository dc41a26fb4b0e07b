/*
 * ptxas, with the reader of this device in place of a code generator: the program that
 * `tollens soft` puts in front of NVIDIA's (runtime/soft/toolchain).
 *
 * It takes ptxas's command line, loads the text as cuModuleLoadData would, and writes it in a
 * container. Errors have the form of ptxas's, because compilers search its output for them. Options
 * that steer a code generator are checked by name and otherwise ignored.
 *
 * Source: ptxas --help of CUDA 13.0, for the names of the options and whether a value follows.
 */
#include "base/file_text.h"
#include "base/options.h"
#include "export.h"
#include "lower/container.h"
#include "lower/loaded_module.h"
#include "ptx/reader.h"
#include "state/driver_state.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FATAL = 255, ANSWERED = -1, SAYS = 2048 };

enum assemble_meaning { IGNORED, OUTPUT, TARGET, VERBOSE, PARTIAL, AS_STRING, VERSION, HELP };

/* A value is a word of its own, or follows a '='; for -O, and for -arch and the like, it may also
 * follow at once. */
static const struct assemble_option {
    const char *name, *brief;
    bool has_value;
    enum assemble_meaning meaning;
} options[] = {
    {"Ofast-compile", "Ofc", true, IGNORED},
    {"allow-expensive-optimizations", "allow-expensive-optimizations", true, IGNORED},
    {"compile-as-tools-patch", "astoolspatch", false, IGNORED},
    {"compile-only", "c", false, PARTIAL},
    {"compiler-annotations", "annotate", false, IGNORED},
    {"def-load-cache", "dlcm", true, IGNORED},
    {"def-store-cache", "dscm", true, IGNORED},
    {"device-debug", "g", false, IGNORED},
    {"device-function-maxrregcount", "func-maxrregcount", true, IGNORED},
    {"device-stack-protector", "device-stack-protector", true, IGNORED},
    {"disable-optimizer-constants", "disable-optimizer-consts", false, IGNORED},
    {"disable-warnings", "w", false, IGNORED},
    {"dont-merge-basicblocks", "no-bb-merge", false, IGNORED},
    {"entry", "e", true, IGNORED},
    {"extensible-whole-program", "ewp", false, PARTIAL},
    {"fmad", "fmad", true, IGNORED},
    {"force-load-cache", "flcm", true, IGNORED},
    {"force-store-cache", "fscm", true, IGNORED},
    {"g-tensor-memory-access-check", "g-tmem-access-check", false, IGNORED},
    {"generate-line-info", "lineinfo", false, IGNORED},
    {"gno-tensor-memory-access-check", "gno-tmem-access-check", false, IGNORED},
    {"gpu-name", "arch", true, TARGET},
    {"help", "h", false, HELP},
    {"input-as-string", "ias", true, AS_STRING},
    {"legacy-bar-warp-wide-behavior", "legacy-bar-warp-wide-behavior", false, IGNORED},
    {"machine", "m", true, IGNORED},
    {"make-errors-visible-at-exit", "make-errors-visible-at-exit", false, IGNORED},
    {"maxntid", "maxntid", true, IGNORED},
    {"maxrregcount", "maxrregcount", true, IGNORED},
    {"minnctapersm", "minnctapersm", true, IGNORED},
    {"opt-level", "O", true, IGNORED},
    {"optimize-float-atomics", "opt-fp-atomics", false, IGNORED},
    {"output-file", "o", true, OUTPUT},
    {"override-directive-values", "override-directive-values", false, IGNORED},
    {"position-independent-code", "pic", true, IGNORED},
    {"preserve-relocs", "preserve-relocs", false, IGNORED},
    {"regAllocOptLevel", "regAllocOptLevel", true, IGNORED}, /* not in --help; Triton gives it */
    {"register-usage-level", "regUsageLevel", true, IGNORED},
    {"return-at-end", "ret-end", false, IGNORED},
    {"sanitize", "sanitize", true, IGNORED},
    {"sp-bounds-check", "sp-bounds-check", false, IGNORED},
    {"split-compile", "split-compile", true, IGNORED},
    {"suppress-async-bulk-multicast-advisory-warning",
     "suppress-async-bulk-multicast-advisory-warning", false, IGNORED},
    {"suppress-debug-info", "suppress-debug-info", false, IGNORED},
    {"suppress-double-demote-warning", "suppress-double-demote-warning", false, IGNORED},
    {"suppress-sparse-mma-advisory-info", "suppress-sparse-mma-advisory-info", false, IGNORED},
    {"suppress-stack-size-warning", "suppress-stack-size-warning", false, IGNORED},
    {"verbose", "v", false, VERBOSE},
    {"version", "V", false, VERSION},
    {"warn-on-double-precision-use", "warn-double-usage", false, IGNORED},
    {"warn-on-local-memory-usage", "warn-lmem-usage", false, IGNORED},
    {"warn-on-spills", "warn-spills", false, IGNORED},
    {"warning-as-error", "Werror", false, IGNORED},
};
enum { OPTIONS = sizeof options / sizeof options[0] };

struct assembly {
    const char *input, *output, *target, *string;
    bool is_verbose, is_part;
};

__attribute__((format(printf, 1, 2))) static int assemble_fail(const char *format, ...) {
    va_list arguments;
    fputs("ptxas fatal   : ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return FATAL;
}

/* The option of a word without its dashes, and where its value begins in the word; NULL: it does
 * not. */
static const struct assemble_option *assemble_find(const char *word, const char **value) {
    const size_t length = strcspn(word, "=");
    *value = word[length] == '=' ? word + length + 1 : NULL;
    for (int i = 0; i < OPTIONS; i++) {
        const char *const spellings[] = {options[i].name, options[i].brief};
        for (int s = 0; s < 2; s++) {
            if (strlen(spellings[s]) == length && strncmp(spellings[s], word, length) == 0) {
                return &options[i];
            }
        }
    }
    if (word[0] == 'O' && strspn(word + 1, "0123456789") == length - 1 && *value == NULL) {
        *value = word + 1;
        return assemble_find("O", &(const char *){NULL});
    }
    return NULL;
}

static const char version_text[] =
    "ptxas: NVIDIA (R) Ptx optimizing assembler, replaced by that of tollens soft\n"
    "It writes PTX for the soft device, and no machine code\n"
    "Built on Wed_Aug_20_01:55:12_PM_PDT_2025\n"
    "Cuda compilation tools, release 13.0, V13.0.88\n"
    "Build cuda_13.0.r13.0/tollens.soft\n";

static int assemble_option_act(const struct assemble_option *option, const char *value,
                               struct assembly *assembly) {
    switch (option->meaning) {
    case OUTPUT:
        assembly->output = value;
        return 0;
    case TARGET:
        assembly->target = value;
        return 0;
    case AS_STRING:
        assembly->string = value;
        return 0;
    case VERBOSE:
        assembly->is_verbose = true;
        return 0;
    case PARTIAL:
        assembly->is_part = true;
        return 0;
    case VERSION:
        fputs(version_text, stdout);
        return ANSWERED;
    case HELP:
        puts("Usage  : ptxas [options] <ptx file>\n\nOptions, as of CUDA 13.0's ptxas:");
        for (int i = 0; i < OPTIONS; i++) {
            printf("--%s%s (-%s)\n", options[i].name, options[i].has_value ? " <value>" : "",
                   options[i].brief);
        }
        return ANSWERED;
    default:
        return 0;
    }
}

static int assemble_read_words(int count, char **words, struct assembly *assembly) {
    *assembly = (struct assembly){.output = "elf.o"};
    for (int at = 0; at < count; at++) {
        const char *word = words[at], *value = NULL;
        if (word[0] != '-' || word[1] == '\0') {
            if (assembly->input != NULL) {
                return assemble_fail("More than one input file: '%s' and '%s'", assembly->input,
                                     word);
            }
            assembly->input = word;
            continue;
        }
        const struct assemble_option *option = assemble_find(word + 1 + (word[1] == '-'), &value);
        if (option == NULL && value != NULL) {
            /* Of a newer ptxas. No option changes what PTX means, and this one is a whole word. */
            fprintf(stderr, "ptxas warning : Unknown option '%s' is ignored\n", word);
            continue;
        }
        if (option == NULL) return assemble_fail("Unknown option '%s'", word);
        if (option->has_value && value == NULL) {
            if (at + 1 == count) return assemble_fail("Option '%s' requires a value", word);
            value = words[++at];
        }
        const int code = assemble_option_act(option, value, assembly);
        if (code != 0) return code;
    }
    return 0;
}

/* 90 for sm_90a. 0: it is none. Architectures of one letter more have instructions of their own;
 * the reader refuses those that it does not know, by name. */
static unsigned assemble_architecture(const char *name) {
    if (name == NULL) return (unsigned)soft_options()->compute_capability;
    const char *digits = strncmp(name, "sm_", 3) == 0        ? name + 3
                         : strncmp(name, "compute_", 8) == 0 ? name + 8
                                                             : "";
    char *end = NULL;
    const unsigned long number = strtoul(digits, &end, 10);
    const bool ok = digits[0] >= '1' && digits[0] <= '9' && number >= 20 && number < 1000 &&
                    strlen(end) <= 1 && (end[0] == '\0' || end[0] == 'a' || end[0] == 'f');
    return ok ? (unsigned)number : 0;
}

/* The reader's "NAME:LINE:COLUMN: error: WHAT" as ptxas writes it; its other lines as they are. */
static int assemble_refuse(const char *name, const char *says) {
    char prefix[256];
    unsigned line = 0, column = 0;
    int from = 0;
    snprintf(prefix, sizeof prefix, "%.200s", name);
    const size_t length = strlen(prefix);
    const bool has_line = strncmp(says, prefix, length) == 0 &&
                          sscanf(says + length, ":%u:%u: error: %n", &line, &column, &from) == 2 &&
                          from > 0;
    if (has_line) {
        fprintf(stderr, "ptxas %s, line %u; error   : %s", name, line, says + length + from);
    } else {
        fprintf(stderr, "ptxas error   : %s", says);
    }
    return assemble_fail("Ptx assembly aborted due to errors");
}

/* The kernels of a module, as -v lists them. */
static void assemble_list(const struct soft_module *module, unsigned architecture) {
    for (const struct soft_function *f = module->functions; f != NULL; f = f->next) {
        if (!soft_module_complete(f)) return;
        fprintf(stderr,
                "ptxas info    : Compiling entry function '%s' for 'sm_%u'\n"
                "ptxas info    : Function properties for %s\n"
                "    %u bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                "ptxas info    : Used %u registers, %u bytes smem\n",
                f->code->name, architecture, f->code->name, (unsigned)f->code->local_bytes,
                (unsigned)f->code->registers, (unsigned)f->code->shared_bytes);
    }
}

/* Loads a whole program, as the device will. */
static int assemble_check_whole(const struct soft_source *source, const struct assembly *assembly,
                                unsigned architecture) {
    const struct soft_reach nowhere = {.device = 0, .slot = SOFT_SLOT_NONE};
    char says[SAYS] = "";
    const struct soft_load_log log = {.text = says, .bytes = sizeof says};
    struct soft_module *module = NULL;
    if (!soft_space_open()) return assemble_fail("Out of addresses");
    if (soft_module_load(source, 1, &nowhere, &module, &log) != CUDA_SUCCESS) {
        return assemble_refuse(source->name, says);
    }
    const unsigned target = module->units[0].ptx.target;
    const char suffix = module->units[0].ptx.target_suffix;
    const bool fits = ptx_target_fits(target, suffix, architecture);
    if (fits && assembly->is_verbose) assemble_list(module, architecture);
    soft_module_release(module);
    return fits ? 0
                : assemble_fail("SM version specified by .target, sm_%u%.1s, is not for sm_%u",
                                target, &suffix, architecture);
}

/* Reads a part of a program; linking finds what is missing. */
static int assemble_check_part(const struct soft_source *source) {
    struct soft_diagnostic *diagnostic = calloc(1, sizeof *diagnostic);
    struct soft_arena arena = {0};
    const struct ptx_shares alone = {NULL, 1};
    struct ptx_module ptx;
    if (diagnostic == NULL) return assemble_fail("Out of memory");
    *diagnostic = (struct soft_diagnostic){
        .name = source->name, .text = source->text, .length = source->length, .takes_newer = true};
    const int code = ptx_read(diagnostic, &arena, &alone, &ptx)
                         ? 0
                         : assemble_refuse(source->name, diagnostic->message);
    soft_arena_clear(&arena);
    free(diagnostic);
    return code;
}

static int assemble_write(const struct assembly *assembly, const void *image, size_t bytes) {
    FILE *file = fopen(assembly->output, "wb");
    bool ok = file != NULL && fwrite(image, 1, bytes, file) == bytes;
    if (file != NULL) ok = fclose(file) == 0 && ok;
    return ok ? 0
              : assemble_fail("Output file '%s' could not be written: %s", assembly->output,
                              strerror(errno));
}

/* ptxas's exit code: 0, or 255 after a complaint on stderr. The words are those after argv[0]. Not
 * thread-safe: `tollens`, run as ptxas, calls it once. */
SOFT_VISIBLE int tollens_soft_assemble(int count, char **words);
int tollens_soft_assemble(int count, char **words) {
    struct assembly assembly;
    char *text = NULL;
    size_t bytes = 0;
    int code = assemble_read_words(count, words, &assembly);
    if (code != 0) return code == ANSWERED ? 0 : code;
    const unsigned architecture = assemble_architecture(assembly.target);
    if (architecture == 0) {
        return assemble_fail("Value '%s' is not defined for option 'gpu-name'", assembly.target);
    }
    if (assembly.string != NULL) {
        text = strdup(assembly.string);
        if (text == NULL) return assemble_fail("Out of memory");
        bytes = strlen(text);
    } else if (assembly.input == NULL) {
        return assemble_fail("No input file");
    } else if (soft_file_text(assembly.input, &text, &bytes) != CUDA_SUCCESS) {
        return assemble_fail("Input file '%s' could not be opened", assembly.input);
    }
    const struct soft_source source = {.name = assembly.input != NULL ? assembly.input : "<string>",
                                       .text = text,
                                       .length = strnlen(text, bytes),
                                       .linked = assembly.is_part,
                                       .is_compiled = true};
    code = assembly.is_part ? assemble_check_part(&source)
                            : assemble_check_whole(&source, &assembly, architecture);
    if (code == 0) {
        void *image = soft_container_make(&source, 1, architecture, &bytes);
        code = image != NULL ? assemble_write(&assembly, image, bytes)
                             : assemble_fail("Out of memory");
        free(image);
    }
    free(text);
    return code;
}
