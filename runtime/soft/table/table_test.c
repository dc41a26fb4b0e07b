/*
 * The instruction table on the soft device: against the oracle, and against a GPU's record.
 *
 * One test per file of rows, so that they run in parallel; each loads the soft device as any
 * program does.
 */
#include "oracle/oracle.h"
#include "table_record.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORD "h200.record.gz"

/* The folder of this program. */
static const char *own_folder(void) {
    static char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash != NULL) slash[1] = '\0';
    return path;
}

/* A file near the program: beside it in a bundle, one or two folders up in a build. */
static const char *fixture(const char *name) {
    static const char *const roots[] = {"", "../", "../../"};
    static char path[8300];
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
        snprintf(path, sizeof path, "%s%sfixtures/ptx/instructions/%s", own_folder(), roots[i],
                 name);
        if (access(path, R_OK) == 0) return path;
    }
    return NULL;
}

/* Valgrind computes in its own way: it rounds to nearest whatever the mode, and compares NaN wrong.
 * The sanitizers see the same code. */
static void skip_under_valgrind(void) {
    const char *preload = getenv("LD_PRELOAD");
    if (preload != NULL && strstr(preload, "vgpreload") != NULL) {
        cr_skip_test("valgrind has no IEEE arithmetic");
    }
}

static void open_soft_device(struct table_device *device) {
    char path[4200];
    snprintf(path, sizeof path, "%slibtollens-soft.so", own_folder());
    cr_assert(table_device_open(device, path), "%s", device->message);
}

static void read_rows(struct table *table, const char *file) {
    const char *path = fixture(file);
    cr_assert(path != NULL, "the table %s is missing", file);
    cr_assert(table_read(table, path), "%s", table->message);
}

/* A tuple as text: its operands, what was given, what was expected. */
static const char *explained(const struct table_row *row, const struct table_outcome *outcome,
                             uint32_t tuple, unsigned result, const char *expected) {
    static char text[2 * TABLE_ROW_BYTES + 20 * (TABLE_SOURCES + 2)];
    int used = snprintf(text, sizeof text, "%s, tuple %u:", row->text, tuple);
    for (unsigned s = 0; s < row->source_count; s++) {
        used += snprintf(text + used, sizeof text - (size_t)used, " 0x%" PRIx64,
                         outcome->sources[(size_t)tuple * row->source_count + s]);
    }
    snprintf(text + used, sizeof text - (size_t)used, " gave 0x%" PRIx64 ", and not %s",
             outcome->results[(size_t)tuple * row->result_count + result], expected);
    return text;
}

static const char *expected_of(const struct oracle_answer *answer) {
    static char text[96];
    switch (answer->kind) {
    case ORACLE_BITS:
        snprintf(text, sizeof text, "0x%" PRIx64, answer->bits);
        return text;
    case ORACLE_NEAR:
        snprintf(text, sizeof text, "about %.17g, %.17g", answer->value[0], answer->value[1]);
        return text;
    default:
        return "a NaN";
    }
}

static void judge_by_oracle(const struct table_row *row, const struct table_outcome *outcome) {
    const unsigned lanes = row->group ? TABLE_GROUP : 32;
    for (uint32_t begin = 0; begin < row->tuples; begin += lanes) {
        static struct oracle_answer answers[TABLE_GROUP * TABLE_RESULTS];
        memset(answers, 0, sizeof answers);
        const uint64_t *sources = outcome->sources + (size_t)begin * row->source_count;
        const uint64_t *results = outcome->results + (size_t)begin * row->result_count;
        bool known = oracle_warp(row, sources, lanes, answers);
        cr_expect(known, "the oracle does not know %s", row->text);
        if (!known) return;
        for (unsigned i = 0; i < lanes * row->result_count; i++) {
            unsigned result = i % row->result_count;
            if (oracle_agrees(row, result, &answers[i], results[i])) continue;
            cr_expect(false, "%s",
                      explained(row, outcome, begin + i / row->result_count, result,
                                expected_of(&answers[i])));
            return; /* one tuple per row is enough to read */
        }
    }
}

/* Their results of a row whose error is bounded lie within the bound as well. */
static void judge_recorded(const struct table_row *row, const struct table_outcome *outcome,
                           const uint64_t *values) {
    struct table_outcome theirs = *outcome;
    theirs.results = calloc((size_t)row->tuples * row->result_count, sizeof values[0]);
    cr_assert(theirs.results != NULL);
    memcpy(theirs.results, values, (size_t)row->tuples * row->result_count * sizeof values[0]);
    judge_by_oracle(row, &theirs);
    free(theirs.results);
}

static void judge_by_record(const struct table_row *row, const struct table_outcome *outcome,
                            const struct table_line *line) {
    cr_expect((outcome->code != CUDA_SUCCESS) == (line->code != 0),
              "%s: refused with code %d here, and with %d there", row->text, (int)outcome->code,
              line->code);
    if (outcome->code != CUDA_SUCCESS || line->code != 0) return;
    bool same = line->tuples == row->tuples && line->sources == table_sources_digest(row, outcome);
    cr_expect(same, "%s was recorded with other operands: record it anew", row->text);
    if (!same) return;
    if (table_is_loose(row)) {
        judge_recorded(row, outcome, line->values);
    } else {
        cr_expect(line->results == table_results_digest(row, outcome),
                  "%s gives other bits there; ptx-table --against says which", row->text);
    }
}

/* Each row runs once, and what it gives is held against both. */
static void agrees(const char *file) {
    skip_under_valgrind();
    struct table table = {0};
    struct table_record record = {0};
    struct table_device device;
    read_rows(&table, file);
    const char *path = fixture(RECORD);
    if (path != NULL) cr_assert(table_record_read(&record, path), "%s", record.message);
    open_soft_device(&device);
    size_t recorded = 0;
    for (size_t i = 0; i < table.count; i++) {
        const struct table_row *row = &table.rows[i];
        const struct table_line *line =
            path != NULL && row->target <= 90 ? table_record_find(&record, row->text) : NULL;
        struct table_outcome outcome;
        cr_assert(table_device_run(&device, row, &outcome), "%s: %s", row->text, device.message);
        cr_expect(outcome.code == CUDA_SUCCESS, "%s is refused: %s", row->text, outcome.log);
        if (outcome.code == CUDA_SUCCESS) judge_by_oracle(row, &outcome);
        if (line != NULL) judge_by_record(row, &outcome, line);
        recorded += line != NULL;
        table_outcome_free(&outcome);
    }
    printf("%zu rows of %s, %zu of them against %s\n", table.count, file, recorded,
           path != NULL ? record.device : "no record");
    table_device_close(&device);
    table_free(&table);
    if (path != NULL) table_record_free(&record);
}

#define FAMILY(name)                                                                               \
    Test(table, name##_agrees_with_the_oracle_and_an_h200) {                                       \
        agrees(#name ".table");                                                                    \
    }
FAMILY(integer)
FAMILY(bits)
FAMILY(video)
FAMILY(carry)
FAMILY(half)
FAMILY(approximate)
FAMILY(compare)
FAMILY(move)
FAMILY(convert)
FAMILY(lanes)
FAMILY(atomic)
FAMILY(order)
FAMILY(wgmma)
FAMILY(tensor)
FAMILY(matrix)
FAMILY(tensor_model)
FAMILY(tensor_volta)

/* Its last rows are of instructions that an H200 lacks. */
Test(table, float_agrees_with_the_oracle_and_an_h200) {
    setenv("TOLLENS_SOFT_COMPUTE", "120", 1);
    agrees("float.table");
}

static const char *const files[] = {
    "integer",     "carry",   "bits",         "video",        "half",  "float",
    "approximate", "compare", "move",         "convert",      "lanes", "atomic",
    "tensor",      "matrix",  "tensor_volta", "tensor_model", "order", "wgmma"};

Test(table, no_file_of_rows_is_left_out) {
    struct table all = {0}, some = {0};
    char folder[8300];
    snprintf(folder, sizeof folder, "%s", fixture("integer.table"));
    *strrchr(folder, '/') = '\0';
    cr_assert(table_read_folder(&all, folder), "%s", all.message);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.table", files[i]);
        read_rows(&some, name);
    }
    cr_assert_eq(all.count, some.count);
    printf("%zu rows in all\n", all.count);
    table_free(&all);
    table_free(&some);
}

Test(table, the_record_has_every_row) {
    const char *path = fixture(RECORD);
    if (path == NULL) cr_skip_test("no golden record yet: %s", RECORD);
    struct table_record record;
    cr_assert(table_record_read(&record, path), "%s", record.message);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct table rows = {0};
        char name[64];
        snprintf(name, sizeof name, "%s.table", files[i]);
        read_rows(&rows, name);
        for (size_t r = 0; r < rows.count; r++) {
            if (rows.rows[r].target > 90) continue; /* an H200 lacks it */
            cr_expect(table_record_find(&record, rows.rows[r].text) != NULL, "%s has no line of %s",
                      RECORD, rows.rows[r].text);
        }
        table_free(&rows);
    }
    table_record_free(&record);
}

/* What ptx-table prints with a part: the texts of its rows, in order; how many. */
static size_t rows_of_part(const char *part, char (*texts)[TABLE_ROW_BYTES], size_t most) {
    char command[17000], line[8 * TABLE_ROW_BYTES];
    char folder[8300];
    size_t count = 0;
    snprintf(folder, sizeof folder, "%s", fixture("integer.table"));
    *strrchr(folder, '/') = '\0';
    snprintf(command, sizeof command,
             "'%sptx-table' --driver '%slibtollens-soft.so' --table '%s' --row mad.lo --part %s "
             "--out /dev/stderr 2>&1 >/dev/null",
             own_folder(), own_folder(), folder, part);
    FILE *pipe = popen(command, "r"); /* NOLINT(cert-env33-c): both are of this build */
    cr_assert(pipe != NULL);
    while (fgets(line, sizeof line, pipe) != NULL && count < most) {
        if (strncmp(line, "ok\t", 3) != 0) continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(texts[count++], TABLE_ROW_BYTES, "%.*s", TABLE_ROW_BYTES - 1, line);
    }
    pclose(pipe);
    return count;
}

/* Every row is in one part, and in no other. */
Test(table, parts_share_the_rows) {
    enum { MOST = 256 };
    static char all[MOST][TABLE_ROW_BYTES], one[MOST][TABLE_ROW_BYTES];
    char program[4200];
    snprintf(program, sizeof program, "%sptx-table", own_folder());
    if (access(program, X_OK) != 0) cr_skip_test("no ptx-table beside this program");
    size_t count = rows_of_part("0/1", all, MOST), found = 0;
    cr_assert(count > 3 && count < MOST, "%zu", count);
    for (unsigned part = 0; part < 3; part++) {
        char name[16];
        snprintf(name, sizeof name, "%u/3", part);
        size_t some = rows_of_part(name, one, MOST);
        cr_expect(some > 0 && some < count, "%zu of %zu rows", some, count);
        for (size_t i = 0; i < some; i++) {
            for (size_t k = 0; k < count; k++) found += strcmp(one[i], all[k]) == 0;
        }
    }
    cr_expect_eq(found, count, "%zu of %zu rows", found, count);
    cr_expect_eq(rows_of_part("3/3", one, MOST), 0, "there is no such part");
}
