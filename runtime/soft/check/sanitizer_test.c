/*
 * The sanitizer's table: fixtures/ptx/sanitizer holds a kernel for each mistake, and a twin with
 * nothing to find. The first lines of each file state the expected report, and HERE marks the line
 * that it must name: see the README there. All checks are on, with one worker and with several.
 */
/* Our own fixtures are read: a malformed number fails the test as well. */
/* NOLINTBEGIN(cert-err34-c) */
#include "test/test_soft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MEMORY_BYTES = 4096, TENSOR_OFFSET = 1024, FINDINGS_MAX = 8, WORDS_MAX = 8 };

struct place {
    char mark[16];
    unsigned block, thread;
};

struct finding {
    char severity[16], kind[64];
    int result;
    struct place at, other;
    bool has_other, in_turn;
};

/* What a fixture's head says. */
struct fixture {
    unsigned blocks, threads, bytes;
    cuuint32_t tensor[2], box[2]; /* columns and rows; 0: there is no map */
    bool unwritten, freed, any_thread;
    char function[32];
    struct finding findings[FINDINGS_MAX];
    char words[WORDS_MAX][80];
    size_t finding_count, word_count;
};

static struct {
    char path[64];
    size_t rows, planted;
} table = {.path = "/tmp/tollens_sanitizer_XXXXXX"};

static const char *read_reports(void) {
    static char text[1 << 16];
    FILE *file = fopen(table.path, "r");
    cr_assert(file != NULL);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* finds SEVERITY [RESULT] "KIND" at MARK by BLOCK THREAD [and MARK by BLOCK THREAD [in turn]] */
static bool read_finding(const char *line, struct finding *finding) {
    int length = 0, more = 0;
    *finding = (struct finding){0};
    if (sscanf(line, "finds %15s %n", finding->severity, &length) < 1) return false;
    line += length;
    length = 0;
    if (sscanf(line, "%d %n", &finding->result, &length) == 1) line += length;
    if (sscanf(line, "\"%63[^\"]\" at %15s by %u %u%n", finding->kind, finding->at.mark,
               &finding->at.block, &finding->at.thread, &more) < 4) {
        return false;
    }
    line += more;
    struct place *other = &finding->other;
    more = 0;
    finding->has_other = sscanf(line, " and %15s by %u %u%n", other->mark, &other->block,
                                &other->thread, &more) == 3;
    finding->in_turn = strncmp(line + more, " in turn\n", 9) == 0;
    return finding->has_other || *line == '\n';
}

static void read_line(const char *name, const char *line, struct fixture *fixture) {
    bool ok = true;
    if (strncmp(line, "launch ", 7) == 0) {
        ok = sscanf(line, "launch %u %u", &fixture->blocks, &fixture->threads) == 2;
    } else if (strncmp(line, "memory ", 7) == 0) {
        ok = sscanf(line, "memory %u", &fixture->bytes) == 1;
    } else if (strncmp(line, "tensor ", 7) == 0) {
        ok = sscanf(line, "tensor %u %u %u %u", &fixture->tensor[0], &fixture->tensor[1],
                    &fixture->box[0], &fixture->box[1]) == 4;
    } else if (strncmp(line, "unwritten\n", 10) == 0) {
        fixture->unwritten = true;
    } else if (strncmp(line, "freed\n", 6) == 0) {
        fixture->freed = true;
    } else if (strncmp(line, "any thread\n", 11) == 0) {
        fixture->any_thread = true;
    } else if (strncmp(line, "in ", 3) == 0) {
        ok = sscanf(line, "in %31s", fixture->function) == 1;
    } else if (strncmp(line, "says ", 5) == 0) {
        ok = fixture->word_count < WORDS_MAX &&
             sscanf(line, "says %79[^\n]", fixture->words[fixture->word_count++]) == 1;
    } else if (strncmp(line, "finds nothing\n", 14) != 0) {
        ok = fixture->finding_count < FINDINGS_MAX &&
             read_finding(line, &fixture->findings[fixture->finding_count++]);
    }
    cr_assert(ok, "%s: %.60s", name, line);
}

static struct fixture read_fixture(const char *name, const char *text) {
    struct fixture fixture = {.bytes = MEMORY_BYTES};
    for (const char *line = text; strncmp(line, "//", 2) == 0; line = strchr(line, '\n') + 1) {
        if (line[2] == '!') read_line(name, line + 4, &fixture);
    }
    cr_assert(fixture.blocks > 0, "%s is not launched", name);
    return fixture;
}

/* The line that ends with a mark. */
static unsigned line_of(const char *text, const char *mark) {
    char comment[32];
    snprintf(comment, sizeof comment, " // %s\n", mark);
    const char *place = strstr(text, comment);
    unsigned line = 1;
    cr_assert(place != NULL, "%s is nowhere", mark);
    for (const char *c = text; c < place; c++) line += *c == '\n';
    return line;
}

/* Whether a place of a report, at its JSON, is the one expected. */
static bool is_at(const char *json, const char *text, const struct place *place, bool any_thread) {
    unsigned line = 0, block = 0, thread = 0;
    const char *line_at = strstr(json, "\"ptx_line\": ");
    const char *block_at = strstr(json, "\"block\": ");
    const char *thread_at = strstr(json, "\"thread\": ");
    return line_at != NULL && block_at != NULL && thread_at != NULL &&
           sscanf(line_at, "\"ptx_line\": %u", &line) == 1 &&
           sscanf(block_at, "\"block\": [%u", &block) == 1 &&
           sscanf(thread_at, "\"thread\": [%u", &thread) == 1 &&
           line == line_of(text, place->mark) &&
           (any_thread || (block == place->block && thread == place->thread));
}

static bool is_found(const char *json, const char *text, const struct fixture *fixture,
                     const struct finding *finding) {
    char part[200];
    snprintf(part, sizeof part,
             "\"kind\": \"%s\", \"result\": %d, \"kernel\": \"k\", \"function\": "
             "\"%s\"",
             finding->kind, finding->result, fixture->function);
    if (strstr(json, part) == NULL) return false;
    snprintf(part, sizeof part, "\"severity\": \"%s\"", finding->severity);
    const char *other = strstr(json, "\"other\": {");
    if (strstr(json, part) == NULL || (other != NULL) != finding->has_other) return false;
    const struct place *at = &finding->at, *beside = &finding->other;
    bool any = fixture->any_thread;
    if (is_at(json, text, at, any) && (other == NULL || is_at(other, text, beside, any)))
        return true;
    return finding->in_turn && is_at(json, text, beside, any) && is_at(other, text, at, any);
}

/* Each line of the report file is one of the findings, and each of these is there. */
static void check_reports(const char *name, const char *text, const struct fixture *fixture) {
    char reports[1 << 16];
    size_t lines = 0;
    snprintf(reports, sizeof reports, "%s", read_reports());
    for (size_t i = 0; i < fixture->word_count; i++) {
        const char *words = fixture->words[i];
        cr_assert(strstr(reports, words) != NULL, "%s lacks \"%s\": %s", name, words, reports);
    }
    for (const char *c = reports; *c != '\0'; c++) lines += *c == '\n';
    cr_assert_eq(lines, fixture->finding_count, "%s: %zu reports, not %zu: %s", name, lines,
                 fixture->finding_count, reports);
    bool found[FINDINGS_MAX] = {false};
    for (char *line = reports, *end = NULL; *line != '\0'; line = end + 1) {
        size_t i = 0;
        end = strchr(line, '\n');
        *end = '\0';
        while (i < fixture->finding_count &&
               (found[i] || !is_found(line, text, fixture, &fixture->findings[i]))) {
            i++;
        }
        cr_assert(i < fixture->finding_count, "%s: this is not expected: %s", name, line);
        found[i] = true;
    }
}

/* Puts a tensor map before a kernel's memory. */
static void make_map(const struct fixture *fixture, CUdeviceptr memory) {
    CUtensorMap map;
    const cuuint64_t sizes[] = {fixture->tensor[0], fixture->tensor[1]};
    const cuuint64_t strides[] = {(sizes[0] + 3) / 4 * 16};
    const cuuint32_t steps[] = {1, 1};
    void *tensor = (void *)(uintptr_t)(memory + TENSOR_OFFSET);
    cr_assert_eq(
        cuTensorMapEncodeTiled(&map, 2, 2, tensor, sizes, strides, fixture->box, steps, 0, 0, 0, 0),
        CUDA_SUCCESS);
    cr_assert_eq(cuMemcpyHtoD_v2(memory, &map, sizeof map), CUDA_SUCCESS);
}

static void check_fixture(const char *name, const char *text) {
    struct fixture fixture = read_fixture(name, text);
    cr_assert_eq(truncate(table.path, 0), 0);
    test_soft_open();
    CUmodule module = test_load(text);
    CUdeviceptr memory = 0;
    void *parameters[] = {&memory};
    cr_assert_eq(cuMemAlloc_v2(&memory, fixture.bytes), CUDA_SUCCESS);
    if (!fixture.unwritten) cr_assert_eq(cuMemsetD8_v2(memory, 0, fixture.bytes), CUDA_SUCCESS);
    if (fixture.tensor[0] > 0) make_map(&fixture, memory);
    if (fixture.freed) cr_assert_eq(cuMemFree_v2(memory), CUDA_SUCCESS);
    CUresult result = cuLaunchKernel(test_function(module, "k"), fixture.blocks, 1, 1,
                                     fixture.threads, 1, 1, 0, NULL, parameters, NULL);
    if (result == CUDA_SUCCESS) result = cuCtxSynchronize();
    int expected = fixture.finding_count > 0 ? fixture.findings[0].result : CUDA_SUCCESS;
    cr_assert_eq((int)result, expected, "%s: %d: %s", name, (int)result, read_reports());
    check_reports(name, text, &fixture);
    test_soft_close();
    table.rows++;
    table.planted += fixture.finding_count > 0;
}

static void begin(void) {
    int file = mkstemp(table.path);
    cr_assert(file >= 0);
    close(file);
    setenv("TOLLENS_SOFT_REPORT", table.path, 1);
    setenv("TOLLENS_SOFT_CHECK", "memory,init,sync,race", 1);
    setenv("TOLLENS_SOFT_BUDGET", "10000000", 1);
    test_capture(stderr);
}

static void end(void) {
    test_soft_close();
    unlink(table.path);
}

TestSuite(sanitizer, .init = begin, .fini = end);

static void check_table(const char *workers) {
    setenv("TOLLENS_SOFT_WORKERS", workers, 1);
    test_each_fixture("sanitizer", check_fixture);
    size_t right = table.rows - table.planted;
    cr_assert(table.planted > 60 && right >= table.planted, "%zu of %zu", right, table.rows);
    printf("%zu rows of the sanitizer's table, %zu of them mistakes, with %s workers\n", table.rows,
           table.planted, workers);
}

Test(sanitizer, finds_each_mistake_and_nothing_else_with_one_worker) {
    check_table("1");
}

Test(sanitizer, finds_each_mistake_and_nothing_else_with_several_workers) {
    check_table("4");
}

/* The check of shuffles themselves is another one. */
Test(sanitizer, races_alone_know_that_shuffles_order_lanes) {
    static const char name[] = "shuffle_orders_lanes_right.ptx";
    char *text = test_fixture("sanitizer", name);
    setenv("TOLLENS_SOFT_CHECK", "race", 1);
    check_fixture(name, text);
    free(text);
}
/* NOLINTEND(cert-err34-c) */
