/*
 * ptxas of this device: the command lines of compilers, its errors in ptxas's form, and the file.
 */
#include "base/file_text.h"
#include "lower/container.h"
#include "test/test_api.h"

#include <criterion/redirect.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int tollens_soft_assemble(int count, char **words);

enum { WORDS_MAX = 16, FATAL = 255 };

static char input[] = "/tmp/assemble-XXXXXX", output[64];
static char said[4096];

static void assemble_begin(void) {
    const int file = mkstemp(input);
    cr_assert(file >= 0);
    close(file);
    snprintf(output, sizeof output, "%s.cubin", input);
}

static void assemble_end(void) {
    unlink(input);
    unlink(output);
}

TestSuite(assemble, .init = assemble_begin, .fini = assemble_end);

/* Runs it over a text with a line of options in which %i and %o are the files. said: what it wrote
 * on stderr. */
static int assemble(const char *text, const char *options) {
    char line[512] = "", *words[WORDS_MAX];
    int count = 0;
    FILE *file = fopen(input, "w");
    cr_assert(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
    unlink(output);
    for (const char *at = options; *at != '\0'; at++) {
        const size_t used = strlen(line);
        const bool is_file = at[0] == '%';
        snprintf(line + used, sizeof line - used, "%.*s", is_file ? 64 : 1,
                 !is_file       ? at
                 : at[1] == 'i' ? input
                                : output);
        at += is_file;
    }
    for (char *word = strtok(line, " "); word != NULL; word = strtok(NULL, " ")) {
        cr_assert(count < WORDS_MAX);
        words[count++] = word;
    }
    char log[] = "/tmp/assemble-log-XXXXXX";
    fflush(stderr);
    const int saved = dup(STDERR_FILENO), to = mkstemp(log);
    cr_assert(saved >= 0 && to >= 0 && dup2(to, STDERR_FILENO) >= 0);
    const int code = tollens_soft_assemble(count, words);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    const ssize_t got = pread(to, said, sizeof said - 1, 0);
    said[got > 0 ? got : 0] = '\0';
    close(saved);
    close(to);
    unlink(log);
    return code;
}

#define HEAD ".version 8.7\n.target sm_90a\n.address_size 64\n"
static const char fine[] = HEAD ".global .align 1 .b8 _$_str[11] = {95, 95};\n"
                                ".visible .entry k() {\n  .reg .b32 %r<2>;\n"
                                "  mov.u32 %r1, %tid.x;\n  ret;\n}\n";

Test(assemble, the_command_lines_of_compilers_make_a_container) {
    static const char *const lines[] = {
        "-lineinfo -v --gpu-name=sm_90a --fmad=false %i -o %o",
        "-lineinfo -v --regAllocOptLevel=2 --gpu-name=sm_90a %i -o %o",
        "-arch sm_90a -O3 -o %o %i",
        "-arch=sm_90 --opt-level 2 --output-file=%o %i",
        "-v --gpu-name=sm_90a --opt-level=0 -g --verbose %i --output-file %o",
        "-m 64 --gpu-name sm_90a -maxrregcount 128 -O1 -w -o %o %i",
        "-c -arch=sm_90a %i -o %o",
        "--of-a-newer-ptxas=3 -arch=sm_90a %i -o %o"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char *image = NULL;
        size_t bytes = 0;
        unsigned count = 0;
        cr_assert(assemble(fine, lines[i]) == 0, "%s: %s", lines[i], said);
        OK(soft_file_text(output, &image, &bytes));
        struct soft_source *sources = soft_container_sources(image, bytes, &count);
        cr_assert(sources != NULL && count == 1, "%s", lines[i]);
        cr_assert_str_eq(sources[0].text, fine);
        cr_assert(sources[0].linked == (strncmp(lines[i], "-c", 2) == 0));
        free(sources);
        free(image);
    }
    cr_assert(strstr(said, "Unknown option '--of-a-newer-ptxas=3' is ignored") != NULL, "%s", said);
}

Test(assemble, v_lists_the_kernels) {
    cr_assert(assemble(fine, "-v -arch=sm_90a %i -o %o") == 0);
    cr_assert(strstr(said, "ptxas info    : Compiling entry function 'k' for 'sm_90'\n") != NULL &&
                  strstr(said, "ptxas info    : Used ") != NULL,
              "%s", said);
    cr_assert(assemble(fine, "-arch=sm_90a %i -o %o") == 0 && said[0] == '\0', "%s", said);
}

Test(assemble, errors_have_the_form_of_ptxas) {
    char expected[200];
    static const char *const lines[] = {"-arch=sm_90a %i -o %o", "-c -arch=sm_90a %i -o %o"};
    for (int i = 0; i < 2; i++) {
        cr_assert(assemble(HEAD ".visible .entry k() {\n  frob.b32;\n}\n", lines[i]) == FATAL);
        snprintf(expected, sizeof expected, "ptxas %s, line 5; error   : ", input);
        cr_assert(strncmp(said, expected, strlen(expected)) == 0, "%s", said);
        cr_assert(strstr(said, "\nptxas fatal   : Ptx assembly aborted due to errors\n") != NULL,
                  "%s", said);
        cr_assert(access(output, F_OK) != 0, "there is a file");
    }
}

Test(assemble, what_cannot_be_assembled_is_said) {
    static const struct {
        const char *line, *says;
    } cases[] = {{"-frob %i", "ptxas fatal   : Unknown option '-frob'\n"},
                 {"%i %i", "More than one input file"},
                 {"-o", "Option '-o' requires a value"},
                 {"-arch=sm_90", "No input file"},
                 {"-arch=sm_90 /none.ptx", "Input file '/none.ptx' could not be opened"},
                 {"-arch=sm_x %i", "Value 'sm_x' is not defined for option 'gpu-name'"},
                 {"-arch=lto_90 %i", "Value 'lto_90' is not defined for option 'gpu-name'"},
                 {"-arch=sm_80 %i", "SM version specified by .target, sm_90a, is not for sm_80"},
                 {"-arch=sm_100 %i", "SM version specified by .target, sm_90a, is not for sm_100"},
                 {"-arch=sm_90 %i -o /none/k", "Output file '/none/k' could not be written: No "}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert(assemble(fine, cases[i].line) == FATAL, "%s", cases[i].line);
        cr_assert(strstr(said, cases[i].says) != NULL, "%s: %s", cases[i].line, said);
    }
}

/* Compilers search for these. */
Test(assemble, the_version_can_be_read_and_differs_from_nvidias) {
    char word[] = "--version", text[1024] = "", *words[] = {word};
    cr_redirect_stdout();
    cr_assert(tollens_soft_assemble(1, words) == 0);
    fflush(stdout);
    FILE *out = cr_get_redirected_stdout();
    cr_assert(fread(text, 1, sizeof text - 1, out) > 0);
    cr_assert(strstr(text, "release 13.0, V13.0.88\n") != NULL, "%s", text);
    cr_assert(strstr(text, "tollens") != NULL, "%s", text);
}
