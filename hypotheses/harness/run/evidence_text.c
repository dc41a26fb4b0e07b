/*
 * The files of a run for people and CI servers: Markdown and JUnit XML.
 */
#include "evidence.h"

#include "files/atomic_file.h"
#include "harness/sabotage.h"

#include <stdio.h>
#include <string.h>

/* ---- JUnit ----------------------------------------------------------------------------------- */

/* Text inside an attribute. Characters that XML 1.0 forbids or that are not ASCII become question
 * marks. */
static void put_xml(FILE *out, const char *text) {
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        switch (c) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        case '\n':
            fputs("&#10;", out);
            break;
        case '\t':
            fputs("&#9;", out);
            break;
        default:
            fputc(c >= ' ' && c <= '~' ? c : '?', out);
        }
    }
}

static void put_property(FILE *out, const char *name, const char *value) {
    fprintf(out, "      <property name=\"%s\" value=\"", name);
    put_xml(out, value);
    fputs("\"/>\n", out);
}

static void evidence_text_put_number(FILE *out, const char *name, double value) {
    char text[64];
    snprintf(text, sizeof text, "%.9g", value);
    put_property(out, name, text);
}

/* <failure message="..."/> */
static void put_child(FILE *out, const char *element, const char *type, const char *message) {
    fprintf(out, "      <%s type=\"%s\" message=\"", element, type);
    put_xml(out, message);
    fputs("\"/>\n", out);
}

static void put_case(FILE *out, const struct hyp_claim *claim, const struct hyp_outcome *outcome) {
    const struct hyp_record *record = &outcome->record;
    fprintf(out, "    <testcase classname=\"tollens.%s\" name=\"", claim->id);
    put_xml(out, outcome->name);
    if (outcome->folder[0] != '\0') fprintf(out, "[%s]", outcome->folder);
    fprintf(out, "\" time=\"%.3f\">\n", record->duration_s);
    if (record->violations > 0) {
        put_child(out, "failure", "falsified", record->examples[0]);
    } else if (hyp_record_fallen(record) != NULL) {
        put_child(out, "failure", "falsified", outcome->detail);
    } else if (outcome->ending == HYP_SKIPPED) {
        fputs("      <skipped message=\"", out);
        put_xml(out, record->reason);
        fputs("\"/>\n", out);
    } else if (outcome->ending != HYP_PASSED) {
        put_child(out, "error", "inconclusive", outcome->detail);
    }
    fputs("    </testcase>\n", out);
}

/* The verdict is a test case too: a claim can be inconclusive although each attack passed. */
static void put_verdict(FILE *out, const struct hyp_claim *claim,
                        const struct hyp_verdict *verdict) {
    fprintf(out, "    <testcase classname=\"tollens.%s\" name=\"verdict\" time=\"0\">\n",
            claim->id);
    if (verdict->kind == HYP_FALSIFIED) {
        put_child(out, "failure", "falsified", verdict->reason);
    } else if (verdict->kind == HYP_INCONCLUSIVE) {
        put_child(out, "error", verdict->code, verdict->reason);
    } else if (verdict->kind == HYP_NOT_TESTED) {
        fputs("      <skipped message=\"", out);
        put_xml(out, verdict->reason);
        fputs("\"/>\n", out);
    }
    fputs("    </testcase>\n", out);
}

struct counts {
    size_t tests, failures, errors, skipped;
};

static void count_one(struct counts *counts, bool failure, bool error, bool skipped) {
    counts->tests++;
    counts->failures += failure;
    counts->errors += !failure && error;
    counts->skipped += !failure && !error && skipped;
}

static struct counts count_cases(const struct hyp_verdict *verdict) {
    struct counts counts = {0};
    count_one(&counts, verdict->kind == HYP_FALSIFIED, verdict->kind == HYP_INCONCLUSIVE,
              verdict->kind == HYP_NOT_TESTED);
    for (size_t i = 0; i < verdict->outcome_count; i++) {
        const struct hyp_outcome *outcome = &verdict->outcomes[i];
        bool skipped = outcome->ending == HYP_SKIPPED;
        count_one(&counts,
                  outcome->record.violations > 0 || hyp_record_fallen(&outcome->record) != NULL,
                  outcome->ending != HYP_PASSED && !skipped, skipped);
    }
    return counts;
}

bool hyp_evidence_junit(const struct hyp_run *run) {
    char path[1100], text[64];
    struct hyp_file file;
    snprintf(path, sizeof path, "%s/junit.xml", run->folder);
    if (!hyp_file_begin(&file, path)) return false;
    FILE *out = file.stream;
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tollens\">\n", out);
    for (size_t i = 0; i < hyp_claim_count(); i++) {
        if (!run->chosen[i]) continue;
        const struct hyp_claim *claim = &hyp_claims()[i];
        const struct hyp_verdict *verdict = &run->verdicts[i];
        struct counts counts = count_cases(verdict);
        fprintf(out, "  <testsuite name=\"%s: ", claim->id);
        put_xml(out, claim->title);
        fprintf(out,
                "\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"%.3f\">\n",
                counts.tests, counts.failures, counts.errors, counts.skipped, verdict->duration_s);
        fputs("    <properties>\n", out);
        put_property(out, "verdict", hyp_verdict_name(verdict->kind));
        put_property(out, "device", run->machine.device.name);
        put_property(out, "commit", run->machine.commit);
        put_property(out, "mode", run->session.full ? "full" : "quick");
        put_property(out, "unit", claim->unit);
        put_property(out, "direction", hyp_direction_name(claim->direction));
        evidence_text_put_number(out, "threshold", claim->threshold);
        if (verdict->has_effect) evidence_text_put_number(out, "effect", verdict->effect);
        if (verdict->has_interval) {
            evidence_text_put_number(out, "low", verdict->low);
            evidence_text_put_number(out, "high", verdict->high);
        }
        evidence_text_put_number(out, "samples", (double)verdict->samples);
        evidence_text_put_number(out, "processes", verdict->processes);
        evidence_text_put_number(out, "seeds", verdict->seeds);
        if (verdict->has_worst_seed)
            evidence_text_put_number(out, "worst_seed", (double)verdict->worst_seed);
        if (verdict->left_out > 0)
            evidence_text_put_number(out, "left_out", (double)verdict->left_out);
        if (verdict->has_severity) {
            snprintf(text, sizeof text, "%u of %u", verdict->caught, verdict->saboteurs);
            put_property(out, "severity", text);
        }
        fputs("    </properties>\n", out);
        put_verdict(out, claim, verdict);
        for (size_t o = 0; o < verdict->outcome_count; o++) {
            put_case(out, claim, &verdict->outcomes[o]);
        }
        fputs("  </testsuite>\n", out);
    }
    fputs("</testsuites>\n", out);
    return hyp_file_keep(&file);
}

/* ---- Markdown -------------------------------------------------------------------------------- */

/* Text inside a table cell or a list item. */
static void put_markdown(FILE *out, const char *text) {
    for (; *text != '\0'; text++) {
        if (*text == '|' || *text == '<' || *text == '*' || *text == '_' || *text == '`' ||
            *text == '\\') {
            fputc('\\', out);
        }
        fputc(*text == '\n' ? ' ' : *text, out);
    }
}

static void put_row(FILE *out, const struct hyp_claim *claim, const struct hyp_verdict *verdict) {
    char text[HYP_UNIT_BYTES];
    fprintf(out, "| %s | ", claim->id);
    put_markdown(out, claim->title);
    fprintf(out, " | %s%s%s | ", verdict->kind == HYP_FALSIFIED ? "**" : "",
            hyp_verdict_words(verdict->kind), verdict->kind == HYP_FALSIFIED ? "**" : "");
    const char *unit = hyp_unit_of(verdict->effect, claim->unit, text);
    const char *plural = hyp_plural(verdict->samples);
    if (verdict->has_interval) {
        fprintf(out, "%.4g %s (%.4g to %.4g), %llu sample%s%s", verdict->effect, unit, verdict->low,
                verdict->high, (unsigned long long)verdict->samples, plural,
                verdict->processes == 1 ? ", one process" : "");
    } else if (verdict->has_effect) {
        bool is_measured = claim->words != NULL && claim->words->is_measured;
        fprintf(out, "%.6g %s%s%llu sample%s%s%s", verdict->effect, is_measured ? unit : "of",
                is_measured ? ", " : " ", (unsigned long long)verdict->samples, plural,
                verdict->label[0] != '\0' ? ", " : "", verdict->label);
        if (verdict->seeds > 1) fprintf(out, ", %u seeds", verdict->seeds);
    }
    fprintf(out, " | %s %.6g %s | ", hyp_direction_words(claim->direction), claim->threshold,
            hyp_unit_of(claim->threshold, claim->unit, text));
    if (verdict->has_severity) {
        fprintf(out, "%u of %u", verdict->caught, verdict->saboteurs);
    }
    fputs(" |\n", out);
}

/* What the attacks of each claim would have noticed. */
static void evidence_text_put_limits(FILE *out, const struct hyp_run *run) {
    char words[200];
    if (run->limits) fputs("\n## Detection limits\n", out);
    bool first = true;
    for (size_t i = 0; i < hyp_claim_count(); i++) {
        const struct hyp_verdict *verdict = &run->verdicts[i];
        for (size_t k = 0; run->chosen[i] && verdict->has_limits && k < verdict->limit_count; k++) {
            const struct hyp_limit *limit = &verdict->limits[k];
            const bool noticed = limit->noticed[0] != '\0';
            fprintf(out, "%s* %s would %shave noticed: ", first ? "\n" : "", hyp_claims()[i].id,
                    noticed ? "" : "not ");
            first = false;
            put_markdown(out, hyp_sabotage_words(noticed ? limit->noticed : limit->missed, words,
                                                 sizeof words));
            if (noticed && limit->missed[0] != '\0') {
                fputs("; not noticed: ", out);
                put_markdown(out, hyp_sabotage_words(limit->missed, words, sizeof words));
            }
            fputc('\n', out);
        }
    }
    if (run->limits && first) fputs("\nNo detection limit was measured.\n", out);
}

bool hyp_evidence_summary(const struct hyp_run *run) {
    char path[1100], text[64];
    struct hyp_file file;
    const struct hyp_machine *machine = &run->machine;
    snprintf(path, sizeof path, "%s/summary.md", run->folder);
    if (!hyp_file_begin(&file, path)) return false;
    FILE *out = file.stream;
    fprintf(out, "# Tollens: %zu survived, %zu falsified, %zu inconclusive, %zu not tested",
            hyp_run_count(run, HYP_SURVIVED), hyp_run_count(run, HYP_FALSIFIED),
            hyp_run_count(run, HYP_INCONCLUSIVE), hyp_run_count(run, HYP_NOT_TESTED));
    if (hyp_run_left_out(run) > 0) fprintf(out, ", %zu not chosen", hyp_run_left_out(run));
    fprintf(out, "\n\n%s run on ", run->session.full ? "Full" : "Quick");
    put_markdown(out, machine->device.name);
    fprintf(out, " (compute capability %d.%d, driver %d.%d)",
            machine->device.compute_capability / 10, machine->device.compute_capability % 10,
            machine->driver_version / 1000, machine->driver_version % 1000 / 10);
    if (machine->commit[0] != '\0') {
        fprintf(out, ", commit %.12s%s", machine->commit, machine->dirty ? " with changes" : "");
    }
    fprintf(out, ", %s, %.0f s.\n", hyp_run_seeds(run, text, sizeof text), run->duration_s);
    if (run->under != NULL) {
        fprintf(out,
                "**The whole run was made under the saboteur %s: no verdict here is about the "
                "runtime.**\n",
                run->under);
    }
    if (machine->kind == HYP_DEVICE_SOFT) {
        fputs("The soft device executes the kernels on the CPU: no verdict here is about a GPU's "
              "speed.\n",
              out);
    }
    fputs("\n| | claim | verdict | effect | survives | severity |\n|---|---|---|---|---|---|\n",
          out);
    for (size_t i = 0; i < hyp_claim_count(); i++) {
        if (run->chosen[i]) put_row(out, &hyp_claims()[i], &run->verdicts[i]);
    }
    evidence_text_put_limits(out, run);
    bool first = true;
    for (size_t i = 0; i < hyp_claim_count(); i++) {
        const struct hyp_verdict *verdict = &run->verdicts[i];
        if (!run->chosen[i] || verdict->reason[0] == '\0') continue;
        if (first) fputs("\n## Why\n\n", out);
        first = false;
        fprintf(out, "* %s, %s: ", hyp_claims()[i].id, hyp_verdict_words(verdict->kind));
        put_markdown(out, verdict->reason);
        fputc('\n', out);
    }
    return hyp_file_keep(&file);
}
