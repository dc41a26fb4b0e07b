/*
 * gemm-table on the soft device: correct kernels agree with the host, and a wrong one does not.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT_MAX = 1 << 20 };

/* The folder of this program, with a trailing "/". */
static const char *own_folder(void) {
    static char own[4096];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    own[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(own, '/');
    cr_assert(slash != NULL, "%s", own);
    slash[1] = '\0';
    return own;
}

/* Runs the program; its exit code, and what it said. */
static int run(const char *ptx, char *said, size_t bytes) {
    const char *own = own_folder();
    char command[13000];
    snprintf(command, sizeof command, "'%sgemm-table' --driver '%slibtollens-soft.so' %s 2>&1", own,
             own, ptx);
    FILE *pipe = popen(command, "r"); /* NOLINT(cert-env33-c): both are of this build */
    cr_assert(pipe != NULL, "%s", command);
    said[fread(said, 1, bytes - 1, pipe)] = '\0';
    int status = pclose(pipe);
    cr_assert(WIFEXITED(status), "%s: %s", command, said);
    return WEXITSTATUS(status);
}

Test(gemm_table, right_kernels_agree_with_the_host) {
    char said[4096] = "";
    cr_assert_eq(run("", said, sizeof said), 0, "%s", said);
    cr_assert(strstr(said, "tma_gemm 200x200x512 on ") != NULL &&
                  strstr(said, "tma_gemm_pairs 200x200x512 on ") != NULL,
              "%s", said);
}

/* The same text, whose first product of a tile drops what was summed before. */
Test(gemm_table, a_wrong_product_is_told) {
    static const char *const roots[] = {"", "../", "../../"};
    static char text[TEXT_MAX];
    char path[4400], copy[] = "/tmp/tollens-gemm-XXXXXX", said[4096] = "";
    FILE *file = NULL;
    for (size_t i = 0; i < sizeof roots / sizeof roots[0] && file == NULL; i++) {
        snprintf(path, sizeof path, "%s%sfixtures/ptx/corpus/tma_gemm_90.ptx", own_folder(),
                 roots[i]);
        file = fopen(path, "r");
    }
    cr_assert(file != NULL, "tma_gemm_90.ptx is missing");
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    char *adds = strstr(text, "setp.ne.b32 adds");
    cr_assert(adds != NULL);
    adds[5] = 'e'; /* setp.eq: it adds where it must not, and does not where it must */
    adds[6] = 'q';
    file = fdopen(mkstemp(copy), "w");
    cr_assert(file != NULL && fwrite(text, 1, length, file) == length);
    fclose(file);
    int code = run(copy, said, sizeof said);
    unlink(copy);
    cr_assert_eq(code, 1, "%s", said);
    cr_assert(strstr(said, "tma_gemm 200x200x512 on ") != NULL &&
                  strstr(said, ": 0 of 40000 elements differ") != NULL,
              "%s", said); /* of the pairs, which are another kernel */
}

Test(gemm_table, what_cannot_be_run_is_said) {
    char said[4096] = "";
    cr_assert_eq(run("/no/such.ptx", said, sizeof said), 2, "%s", said);
    cr_assert(strstr(said, "/no/such.ptx cannot be read") != NULL, "%s", said);
}
