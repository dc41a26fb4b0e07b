/*
 * Two CSV files.
 */
#include "error_table.h"

#include "record/record.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool error_table_begin_file(struct hyp_attack *attack, struct hyp_file *file,
                                   const char *kind) {
    char path[1024];
    const char *out = attack->session.out;
    if (out == NULL) return false;
    snprintf(path, sizeof path, "%.700s/%.96s.%s.csv", out, attack->record->name, kind);
    cr_assert(hyp_file_begin(file, path), "the evidence could not be written: %s", hyp_error());
    return true;
}

void hyp_error_table_begin(struct hyp_error_table *table, struct hyp_attack *attack,
                           const char *columns) {
    *table = (struct hyp_error_table){.attack = attack};
    table->has_file = error_table_begin_file(attack, &table->file, "errors");
    if (!table->has_file) return;
    fprintf(table->file.stream,
            "path,%s,count,failed,nan,infinite,exact,absolute,root_mean_square,relative,ulp,"
            "of_allowed\n",
            columns);
}

static struct kn_deviation *find_path(struct hyp_error_table *table, const char *name) {
    size_t i = 0;
    while (i < table->count && strcmp(table->paths[i].name, name) != 0) i++;
    if (i == table->count) {
        cr_assert(i < HYP_PATHS_MAX, "more than %d paths in a table", HYP_PATHS_MAX);
        snprintf(table->paths[i].name, sizeof table->paths[i].name, "%s", name);
        table->paths[i].all = (struct kn_deviation){.first = KN_NOWHERE, .worst = KN_NOWHERE};
        table->count++;
    }
    return &table->paths[i].all;
}

void hyp_error_table_add(struct hyp_error_table *table, const char *path,
                         const struct kn_deviation *d, const char *format, ...) {
    char values[256], text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(values, sizeof values, format, arguments);
    va_end(arguments);
    struct kn_deviation *all = find_path(table, path);
    *all = kn_deviation_join(*all, *d);
    if (table->has_file) {
        fprintf(table->file.stream, "%s,%s,%zu,%zu,%zu,%zu,%zu,%.6g,%.6g,%.6g,%.6g,%.6g\n", path,
                values, d->count, d->failed, d->nan, d->infinite, d->exact, d->absolute,
                d->root_mean_square, d->relative, d->ulp, d->normalised);
    }
    HYP_CHECK(table->attack, d->failed == 0, "%s, %s: %s", path, values,
              kn_deviation_text(d, text, sizeof text));
}

static void write_octaves(const struct hyp_error_table *table, FILE *stream) {
    fprintf(stream, "path,above,up_to,count\n");
    for (size_t i = 0; i < table->count; i++) {
        const struct kn_deviation *all = &table->paths[i].all;
        const char *name = table->paths[i].name;
        if (all->failed > 0) fprintf(stream, "%s,1,inf,%zu\n", name, all->failed);
        for (int octave = 0; octave < KN_OCTAVES; octave++) {
            const double above = octave + 1 < KN_OCTAVES ? ldexp(1, -octave - 1) : 0;
            fprintf(stream, "%s,%.6g,%.6g,%zu\n", name, above, ldexp(1, -octave),
                    all->octaves[octave]);
        }
    }
}

void hyp_error_table_end(struct hyp_error_table *table) {
    struct hyp_file octaves;
    for (size_t i = 0; i < table->count; i++) {
        const double share = table->paths[i].all.normalised;
        if (isfinite(share)) {
            hyp_attack_record(table->attack, share, "%s, of allowed", table->paths[i].name);
        }
    }
    if (!table->has_file) return;
    cr_assert(hyp_file_keep(&table->file), "the evidence could not be written: %s", hyp_error());
    if (error_table_begin_file(table->attack, &octaves, "octaves")) {
        write_octaves(table, octaves.stream);
        cr_assert(hyp_file_keep(&octaves), "the evidence could not be written: %s", hyp_error());
    }
}
