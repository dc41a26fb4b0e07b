/*
 * run: the chosen claims are attacked one after the other, then, if asked for, each again under its
 * saboteurs; everything is written down, and the exit code is made of the verdicts.
 */
#include "clock.h"
#include "command.h"
#include "evidence.h"
#include "folder.h"
#include "runner.h"
#include "sabotage.h"
#include "worker.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct wishes {
    bool require_gpu;
    bool inconclusive_warns;
    const char *out;
    bool any_claim, list;
};

/* ---- what was asked for ---------------------------------------------------------------------- */

/* The value of an option, "--out=DIR" or "--out DIR"; NULL where words[*i] is another word. A
 * missing value is "". */
static const char *option(const char *name, int count, char **words, int *i) {
    size_t length = strlen(name);
    if (strncmp(words[*i], name, length) != 0) return NULL;
    if (words[*i][length] == '=') return words[*i] + length + 1;
    if (words[*i][length] != '\0') return NULL;
    return *i + 1 < count ? words[++*i] : "";
}

/* "H4", or several, with commas between them. */
static bool choose(const char *names, struct hyp_run *run, struct wishes *wishes) {
    while (true) {
        char name[16];
        size_t length = strcspn(names, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, names);
        const struct hyp_claim *claim = length < sizeof name ? hyp_claim_find(name) : NULL;
        if (claim == NULL) return hyp_fail("'%s' is no claim: they are H1 to H13", name);
        run->chosen[claim->number - 1] = true;
        wishes->any_claim = true;
        if (names[length] == '\0') return true;
        names += length + 1;
    }
}

static bool read_word(int count, char **words, int *i, struct hyp_run *run, struct wishes *wishes) {
    const char *word = words[*i], *value = NULL;
    if (strcmp(word, "--quick") == 0) {
        run->session.full = false;
    } else if (strcmp(word, "--full") == 0) {
        run->session.full = true;
    } else if (strcmp(word, "--sabotage") == 0) {
        run->sabotage = true;
    } else if (strcmp(word, "--require-gpu") == 0) {
        wishes->require_gpu = true;
    } else if ((value = option("--device", count, words, i)) != NULL) {
        if (value[0] == '\0') return hyp_fail("--device takes auto, cuda, cuda:N or soft");
        return hyp_session_device(value, &run->session.kind, &run->session.ordinal);
    } else if ((value = option("--out", count, words, i)) != NULL) {
        if (value[0] == '\0') return hyp_fail("--out takes a folder");
        wishes->out = value;
    } else if ((value = option("--only", count, words, i)) != NULL) {
        return choose(value, run, wishes);
    } else if (strcmp(word, "--list") == 0) {
        wishes->list = true;
    } else if ((value = option("--seed", count, words, i)) != NULL) {
        char *end = NULL;
        run->session.seed = strtoull(value, &end, 10);
        if (end == value || *end != '\0' || value[0] == '-') {
            return hyp_fail("--seed takes a number, not '%s'", value);
        }
    } else if ((value = option("--under", count, words, i)) != NULL) {
        run->under = value;
        return hyp_sabotage_find(value, NULL);
    } else if ((value = option("--inconclusive", count, words, i)) != NULL) {
        wishes->inconclusive_warns = strcmp(value, "warn") == 0;
        if (!wishes->inconclusive_warns && strcmp(value, "fail") != 0) {
            return hyp_fail("--inconclusive takes fail or warn, not '%s'", value);
        }
    } else if (word[0] == '-') {
        return hyp_fail("there is no option %s; see tollens help", word);
    } else {
        return choose(word, run, wishes);
    }
    return true;
}

static bool read_words(int count, char **words, struct hyp_run *run, struct wishes *wishes) {
    if (!hyp_session_read(&run->session)) return false;
    for (int i = 0; i < count; i++) {
        if (!read_word(count, words, &i, run, wishes)) return false;
    }
    for (size_t i = 0; i < HYP_CLAIMS && !wishes->any_claim; i++) run->chosen[i] = true;
    return true;
}

/* "tollens run H1 --full", for run.json. */
static char *join_words(int count, char **words) {
    size_t bytes = sizeof "tollens run";
    for (int i = 0; i < count; i++) bytes += strlen(words[i]) + 1;
    char *text = malloc(bytes), *end = text;
    if (text == NULL) return NULL;
    end = stpcpy(end, "tollens run");
    for (int i = 0; i < count; i++) {
        *end++ = ' ';
        end = stpcpy(end, words[i]);
    }
    return text;
}

/* ---- where the evidence goes ----------------------------------------------------------------- */

static bool is_empty(const char *path) {
    DIR *folder = opendir(path);
    if (folder == NULL) return errno == ENOENT;
    size_t entries = 0;
    while (readdir(folder) != NULL) entries++;
    closedir(folder);
    return entries <= 2;
}

/* Makes the folder. One that has something in it is another run's evidence, and stays as it is. */
static bool make_folder(const char *out, char *folder, size_t bytes) {
    char stamp[32];
    struct tm day;
    time_t now = time(NULL);
    if (out != NULL) {
        snprintf(folder, bytes, "%s", out);
        if (!is_empty(folder)) {
            return hyp_fail("%s is no empty folder: evidence is never written over", folder);
        }
        return hyp_folder_make(folder);
    }
    strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &day));
    snprintf(folder, bytes, "evidence/%s", stamp);
    for (int i = 2; !is_empty(folder) && i < 100; i++) {
        snprintf(folder, bytes, "evidence/%s-%d", stamp, i);
    }
    return hyp_folder_make(folder);
}

/* ---- running --------------------------------------------------------------------------------- */

static bool attack(struct hyp_run *run, const struct hyp_claim *claim, const char *saboteur,
                   struct hyp_watch *watch, struct hyp_verdict *verdict) {
    char folder[1000];
    if (saboteur == NULL) {
        snprintf(folder, sizeof folder, "%s/%s", run->folder, claim->id);
    } else {
        snprintf(folder, sizeof folder, "%s/%s/sabotage/%s", run->folder, claim->id, saboteur);
    }
    const struct hyp_task task = {.claim = claim,
                                  .session = &run->session,
                                  .folder = folder,
                                  .saboteur = saboteur != NULL ? saboteur : run->under,
                                  .watch = watch};
    return hyp_runner_run(&task, verdict);
}

/*
 * One falsified comparison may be chance, or a machine that was disturbed: before the run is red a
 * fresh process must find the same. A violation needs no second: one counterexample is enough.
 */
static bool confirm(struct hyp_run *run, const struct hyp_claim *claim, struct hyp_watch *watch,
                    struct hyp_verdict *verdict) {
    char folder[1000], reason[sizeof verdict->reason];
    struct hyp_verdict second;
    if (verdict->kind != HYP_FALSIFIED || !verdict->has_interval || hyp_runner_interrupted()) {
        return true;
    }
    snprintf(folder, sizeof folder, "%s/%s/confirm", run->folder, claim->id);
    const struct hyp_task task = {.claim = claim,
                                  .session = &run->session,
                                  .folder = folder,
                                  .saboteur = run->under,
                                  .watch = watch};
    if (!hyp_runner_run(&task, &second)) return false;
    snprintf(reason, sizeof reason, "%s", verdict->reason);
    if (second.kind == HYP_FALSIFIED) {
        hyp_verdict_set(verdict, HYP_FALSIFIED, verdict->code, "%s; a fresh run confirmed it",
                        reason);
    } else {
        hyp_verdict_set(verdict, HYP_INCONCLUSIVE, "unconfirmed", "%s; but a fresh run came out %s",
                        reason, hyp_verdict_words(second.kind));
    }
    hyp_verdict_end(&second);
    return true;
}

/* Whether the verdict under a saboteur is the one it must force. */
static bool is_forced(enum hyp_forced forced, enum hyp_verdict_kind kind) {
    return forced == HYP_MUST_FALSIFY       ? kind == HYP_FALSIFIED
           : forced == HYP_MUST_NOT_FALSIFY ? kind != HYP_FALSIFIED
                                            : kind != HYP_SURVIVED;
}

static void count_sabotaged(const struct hyp_claim *claim, const struct hyp_saboteur *saboteur,
                            const struct hyp_verdict *sabotaged, struct hyp_verdict *verdict) {
    bool right = is_forced(saboteur->forced, sabotaged->kind);
    if (saboteur->forced != HYP_MUST_FALSIFY) {
        verdict->borderline++;
        verdict->borderline_right += right;
    } else {
        verdict->caught += right;
        if (!right && hyp_verdict_could_not_tell(sabotaged)) {
            verdict->untold++;
            return;
        }
    }
    if (right) return;
    hyp_command_complain("%s came out %s under %s, and must come out %s", claim->id,
                         hyp_verdict_words(sabotaged->kind), saboteur->name,
                         hyp_forced_words(saboteur->forced));
}

/* Breaks the claim in each of its ways, and counts how many the attack noticed. */
static bool measure_severity(struct hyp_run *run, const struct hyp_claim *claim,
                             struct hyp_watch *watch, struct hyp_verdict *verdict) {
    size_t count = 0;
    const struct hyp_saboteur *saboteurs = hyp_claim_saboteurs(claim, &count);
    verdict->has_severity = count > 0;
    for (size_t i = 0; i < count && !hyp_runner_interrupted(); i++) {
        struct hyp_verdict sabotaged;
        uint64_t begin_ns = hyp_clock_ns();
        verdict->saboteurs += saboteurs[i].forced == HYP_MUST_FALSIFY;
        if (!attack(run, claim, saboteurs[i].name, watch, &sabotaged)) return false;
        count_sabotaged(claim, &saboteurs[i], &sabotaged, verdict);
        hyp_watch_sabotaged(watch, claim->id, saboteurs[i].name, hyp_verdict_words(sabotaged.kind),
                            is_forced(saboteurs[i].forced, sabotaged.kind),
                            (double)(hyp_clock_ns() - begin_ns) * 1e-9);
        hyp_verdict_end(&sabotaged);
    }
    return true;
}

static bool run_claim(struct hyp_run *run, const struct hyp_claim *claim, struct hyp_watch *watch) {
    struct hyp_verdict *verdict = &run->verdicts[claim->number - 1];
    if (claim->words == NULL) {
        hyp_verdict_not_tested(verdict, "not_implemented", "not implemented yet");
    } else if (hyp_runner_interrupted()) {
        hyp_verdict_not_tested(verdict, "interrupted", "the run was interrupted");
    } else {
        if (!attack(run, claim, NULL, watch, verdict) || !confirm(run, claim, watch, verdict)) {
            return false;
        }
        if (run->sabotage && verdict->kind != HYP_NOT_TESTED &&
            !measure_severity(run, claim, watch, verdict)) {
            return false;
        }
    }
    return hyp_evidence_claim(run, claim);
}

/* ---- telling --------------------------------------------------------------------------------- */

static void put_verdict(const struct hyp_claim *claim, const struct hyp_verdict *verdict) {
    static const char *const colours[] = {"\033[32m", "\033[1;31m", "\033[33m", "\033[2m"};
    char effect[96] = "", severity[48] = "";
    bool colour = isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL;
    if (verdict->has_interval) {
        snprintf(effect, sizeof effect, "%.4g %s (%.4g to %.4g)%s", verdict->effect, claim->unit,
                 verdict->low, verdict->high, verdict->processes == 1 ? ", one process" : "");
    } else if (verdict->has_effect) {
        snprintf(effect, sizeof effect, "%.4g %s in %llu", verdict->effect, claim->unit,
                 (unsigned long long)verdict->samples);
    }
    if (verdict->has_severity) {
        snprintf(severity, sizeof severity, "severity %.0f %% (%u of %u)",
                 verdict->saboteurs > 0 ? 100.0 * verdict->caught / verdict->saboteurs : 0,
                 verdict->caught, verdict->saboteurs);
    }
    /* What a reader in a hurry looks for stands left; the titles differ in length and come last. */
    printf("%-4s%s%-12s%s  ", claim->id, colour ? colours[verdict->kind] : "",
           hyp_verdict_words(verdict->kind), colour ? "\033[0m" : "");
    if (verdict->kind == HYP_NOT_TESTED) {
        printf("%-72s  %s\n", verdict->reason, claim->title);
    } else {
        printf("%-46s  %-24s  %s\n", effect, severity, claim->title);
    }
    fflush(stdout);
}

static void put_reasons(const struct hyp_run *run) {
    for (size_t i = 0; i < HYP_CLAIMS; i++) {
        const struct hyp_verdict *verdict = &run->verdicts[i];
        if (!run->chosen[i] || verdict->kind == HYP_NOT_TESTED || verdict->reason[0] == '\0') {
            continue;
        }
        printf("\n%s %s: %s\n", hyp_claims()[i].id, hyp_verdict_words(verdict->kind),
               verdict->reason);
    }
}

/* ---- the end --------------------------------------------------------------------------------- */

static int exit_code(const struct hyp_run *run, const struct wishes *wishes) {
    bool broken = false, blind = false, untold = false;
    for (size_t i = 0; i < HYP_CLAIMS; i++) {
        const struct hyp_verdict *verdict = &run->verdicts[i];
        broken |= run->chosen[i] && verdict->broken;
        if (!run->chosen[i] || !verdict->has_severity) continue;
        blind |= verdict->caught + verdict->untold < verdict->saboteurs ||
                 verdict->borderline_right < verdict->borderline;
        untold |= verdict->untold > 0;
    }
    if (hyp_run_count(run, HYP_FALSIFIED) > 0) return HYP_EXIT_FALSIFIED;
    if (broken || blind || hyp_runner_interrupted()) return HYP_EXIT_ERROR;
    if (wishes->require_gpu && hyp_run_count(run, HYP_NOT_TESTED) > 0) return HYP_EXIT_FALSIFIED;
    if ((untold || hyp_run_count(run, HYP_INCONCLUSIVE) > 0) && !wishes->inconclusive_warns) {
        return HYP_EXIT_INCONCLUSIVE;
    }
    return HYP_EXIT_OK;
}

static bool write_all(const struct hyp_run *run) {
    return hyp_evidence_results(run) && hyp_evidence_junit(run) && hyp_evidence_summary(run);
}

static void put_end(const struct hyp_run *run, const struct wishes *wishes) {
    put_reasons(run);
    printf("\n%zu survived, %zu falsified, %zu inconclusive, %zu not tested%s. Evidence: %s\n",
           hyp_run_count(run, HYP_SURVIVED), hyp_run_count(run, HYP_FALSIFIED),
           hyp_run_count(run, HYP_INCONCLUSIVE), hyp_run_count(run, HYP_NOT_TESTED),
           wishes->require_gpu && hyp_run_count(run, HYP_NOT_TESTED) > 0
               ? ", which --require-gpu does not allow"
               : "",
           run->folder);
}

/* What would run, and nothing of it. */
static int list_chosen(const struct hyp_run *run) {
    enum { NAMES_MAX = 64 };
    for (size_t i = 0; i < HYP_CLAIMS; i++) {
        const char *names[NAMES_MAX];
        const struct hyp_claim *claim = &hyp_claims()[i];
        if (!run->chosen[i]) continue;
        size_t count = hyp_worker_list(claim->suite, names, NAMES_MAX);
        if (count == 0) printf("%-4snothing attacks it yet\n", claim->id);
        for (size_t k = 0; k < count && k < NAMES_MAX; k++) printf("%-4s%s\n", claim->id, names[k]);
    }
    return HYP_EXIT_OK;
}

int hyp_command_run(int count, char **words) {
    static struct hyp_run run;
    struct wishes wishes = {0};
    char folder[900];
    struct hyp_watch watch;
    uint64_t begin_ns = hyp_clock_ns();
    if (!read_words(count, words, &run, &wishes)) return hyp_command_complain("%s", hyp_error());
    if (wishes.list) return list_chosen(&run);
    if (wishes.require_gpu && run.session.kind == HYP_DEVICE_SOFT) {
        return hyp_command_complain("--require-gpu and --device soft cannot both be");
    }
    if (run.under != NULL && run.sabotage) {
        return hyp_command_complain("--under makes one fault and --sabotage all: not both");
    }
    if (wishes.require_gpu) run.session.kind = HYP_DEVICE_CUDA;
    if (hyp_session_root() == NULL) return hyp_command_complain("%s", hyp_error());
    if (hyp_machine_read(&run.session, &run.machine) != TOL_OK) {
        return hyp_command_complain("no %s device: %s", hyp_device_kind_name(run.session.kind),
                                    hyp_session_message());
    }
    run.session.kind = run.machine.kind;
    char *command = join_words(count, words);
    if (command == NULL) return hyp_command_complain("there is no memory");
    run.command = command;
    run.folder = folder;
    (void)hyp_runner_interrupted();
    hyp_watch_begin(&watch, stderr);

    bool ok =
        make_folder(wishes.out, folder, sizeof folder) && hyp_machine_write(&run.machine, folder);
    if (ok) {
        printf("%s run on %s (%s), seed %llu%s%s\n", run.session.full ? "Full" : "Quick",
               run.machine.device.name, hyp_device_kind_name(run.machine.kind),
               (unsigned long long)run.session.seed,
               run.under != NULL ? ", under the saboteur " : "",
               run.under != NULL ? run.under : "");
        fflush(stdout);
    }
    for (size_t i = 0; ok && i < HYP_CLAIMS; i++) {
        if (!run.chosen[i]) continue;
        ok = run_claim(&run, &hyp_claims()[i], &watch);
        hyp_watch_clear(&watch);
        if (ok) put_verdict(&hyp_claims()[i], &run.verdicts[i]);
    }
    run.duration_s = (double)(hyp_clock_ns() - begin_ns) * 1e-9;
    run.exit_code = exit_code(&run, &wishes);
    ok = ok && write_all(&run);
    if (ok) put_end(&run, &wishes);
    for (size_t i = 0; i < HYP_CLAIMS; i++) hyp_verdict_end(&run.verdicts[i]);
    free(command);
    return ok ? run.exit_code : hyp_command_complain("%s", hyp_error());
}
