/*
 * model run: loads a language model and continues a text, token by token.
 *
 * The text goes to stdout as it is generated, everything else to stderr. Ctrl-C takes effect
 * between two tokens, between two parts of a prompt and while the file is read; the end is the
 * usual one then.
 */
#include "run/command.h"
#include "decode_text.h"
#include "model_devices.h"
#include "model_guarded.h"
#include "model_words.h"
#include "files/atomic_file.h"
#include "harness/session.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tokenizer.h>
#include <unistd.h>

enum { SESSIONS_MAX = 256, STOPS_MAX = 16, EXIT_INTERRUPTED = 130, BAR = 40 };

static const char usage[] =
    "usage: tollens model run FILE [-p TEXT | -f FILE] [options]\n"
    "\n"
    "Continues a text with a language model, and prints the new tokens.\n"
    "\n"
    "  -p TEXT         the text; -f FILE: the text is in a file, without its last line end; with\n"
    "                  neither, it is read from standard input\n"
    "  -n N            at most N tokens; default 128\n"
    "  --temp T        temperature, 0 to 2; default 0, always the likeliest token\n"
    "  --top-k K --top-p P --min-p P --repeat-penalty R --seed S   sampling parameters\n"
    "  --repeat-last-n N   how many of the latest tokens are penalised; default 64, 0 none, -1 "
    "all\n"
    "  --ctx N         positions for prompt and text; default 4096, or the model's if fewer\n"
    "  --cache TYPE    keys and values as f16 (default) or q8_0, half as large\n"
    "  --sessions N    N texts at once, with the seeds S, S + 1, ...; default 1\n"
    "  --stop TEXT     end before this text; may be given several times\n"
    "  --special       <|...|> in the prompt are the model's special tokens\n"
    "  --ignore-end    continue after the model ends its text\n"
    "  --json          print one object per text, with times; exit code 130: interrupted\n"
    "  --guarded       be a worker of tollens guard: its jobs are prompts, and another device\n"
    "                  continues a text after its last token; job N has the seed S + N - 1\n"
    "  --device D      auto (default), cuda, cuda:N or soft\n"
    "  --devices LIST  compute the model on all devices of this list, such as 0,1: each holds a\n"
    "                  share of the weights, and the text is the same as with one device\n"
    "  --prompt, --file, -m or --model FILE, --n-predict, --predict, --temperature, --ctx-size or "
    "-c,\n"
    "  -s, -r or --reverse-prompt and --ignore-eos are other names, as llama.cpp has them\n"
    "\n"
    "exit codes: 0 the text has ended, 2 it could not be generated, 130 interrupted\n";

struct run_wish {
    const char *path;
    struct hyp_model_prompt prompt;
    struct tol_text_options text;
    const char *stops[STOPS_MAX];
    uint64_t context, sessions, tokens, top_k;
    bool penalises_all, penalises_none; /* by --repeat-last-n */
    enum kn_cache cache;
    bool as_json, is_guarded;
    enum hyp_device_kind kind;
    int ordinal;
    struct hyp_model_devices devices;
};

static atomic_bool is_interrupted;

static void model_run_interrupt(int number) {
    (void)number;
    atomic_store(&is_interrupted, true);
}

/* ---- words ---- */

/* An option with a number. *found: it was one. */
static bool model_run_read_numbers(struct run_wish *wish, int count, char **words, int *at,
                                   bool *found) {
    struct tol_sampling *sampling = &wish->text.sampling;
    const struct {
        const char *names;
        uint64_t most, *number;
        double *real;
    } options[] = {{"-n --n-predict --predict", INT32_MAX, &wish->tokens, NULL},
                   {"-s --seed", HYP_SEED_MAX, &sampling->seed, NULL},
                   {"-c --ctx --ctx-size", INT32_MAX, &wish->context, NULL},
                   {"--sessions", SESSIONS_MAX, &wish->sessions, NULL},
                   {"--top-k", INT32_MAX, &wish->top_k, NULL},
                   {"--temp --temperature", 0, NULL, &sampling->temperature},
                   {"--top-p", 0, NULL, &sampling->top_p},
                   {"--min-p", 0, NULL, &sampling->min_p},
                   {"--repeat-penalty", 0, NULL, &sampling->repetition_penalty}};
    const char *word = words[*at];
    const int shown = (int)strcspn(word, "=");
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        const char *value = hyp_model_value_of(options[i].names, count, words, at);
        char *end = NULL;
        if (value == NULL) continue;
        *found = true;
        if (options[i].real == NULL) {
            return hyp_session_number(value, options[i].most, options[i].number) ||
                   hyp_fail("%.*s must be a number from 0 to %llu, not '%s'", shown, word,
                            (unsigned long long)options[i].most, value);
        }
        *options[i].real = strtod(value, &end);
        return (end != value && *end == '\0') ||
               hyp_fail("%.*s must be a number, not '%s'", shown, word, value);
    }
    return true;
}

/* As llama.cpp has it: 0 means no penalty, and -1 all tokens of the context. */
static bool model_run_read_window(struct run_wish *wish, const char *value) {
    uint64_t window = 0;
    wish->penalises_all = strcmp(value, "-1") == 0;
    wish->penalises_none = strcmp(value, "0") == 0;
    if (!wish->penalises_all && !hyp_session_number(value, INT32_MAX, &window))
        return hyp_fail("--repeat-last-n must be a number from -1 to %d, not '%s'", INT32_MAX,
                        value);
    wish->text.sampling.repetition_window = (size_t)window;
    return true;
}

/* An option without a value. */
static bool model_run_read_flag(struct run_wish *wish, const char *word) {
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"--json", &wish->as_json},
                 {"--guarded", &wish->is_guarded},
                 {"--special", &wish->text.parses_special},
                 {"--ignore-end --ignore-eos", &wish->text.ignores_end}};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (hyp_model_is_flag(flags[i].name, word)) return *flags[i].flag = true;
    }
    return false;
}

static bool model_run_read_word(struct run_wish *wish, int count, char **words, int *at) {
    const char *value = NULL;
    bool found = false;
    if (!model_run_read_numbers(wish, count, words, at, &found)) return false;
    if (found || model_run_read_flag(wish, words[*at])) return true;
    if (hyp_model_prompt_word(&wish->prompt, count, words, at)) return true;
    if ((value = hyp_model_value_of("--repeat-last-n", count, words, at)) != NULL) {
        return model_run_read_window(wish, value);
    } else if ((value = hyp_model_value_of("--stop -r --reverse-prompt", count, words, at)) !=
               NULL) {
        if (wish->text.stop_count == STOPS_MAX) return hyp_fail("at most %d --stop", STOPS_MAX);
        wish->stops[wish->text.stop_count++] = value;
    } else if ((value = hyp_model_value_of("--cache", count, words, at)) != NULL) {
        return hyp_model_cache(value, &wish->cache);
    } else if ((value = hyp_model_value_of("--device", count, words, at)) != NULL) {
        return hyp_session_device(value, &wish->kind, &wish->ordinal);
    } else if ((value = hyp_model_value_of("--devices", count, words, at)) != NULL) {
        return hyp_model_devices_read(value, &wish->devices);
    } else if ((value = hyp_model_value_of("-m --model", count, words, at)) != NULL) {
        return hyp_model_take_path("model run", value, &wish->path);
    } else {
        return hyp_model_take_path("model run", words[*at], &wish->path);
    }
    return true;
}

static bool model_run_check_words(struct run_wish *wish) {
    const bool has_prompt = wish->prompt.text != NULL || wish->prompt.path != NULL;
    if (wish->path == NULL) return hyp_fail("model run requires a file");
    if (wish->is_guarded && (has_prompt || wish->sessions != 1)) {
        return hyp_fail("with --guarded the guard has the prompts: neither -p, -f nor --sessions");
    }
    if (!wish->is_guarded && !hyp_model_prompt_take(&wish->prompt, "model run")) return false;
    if (wish->tokens == 0) return hyp_fail("-n must be at least 1");
    return wish->sessions > 0 || hyp_fail("--sessions must be at least 1");
}

static bool model_run_read_words(int count, char **words, struct run_wish *wish) {
    bool ok = true;
    *wish = (struct run_wish){.text = {.cancels = &is_interrupted},
                              .tokens = 128,
                              .sessions = 1,
                              .as_json = hyp_command_is_json()};
    if (!hyp_session_device(getenv("TOLLENS_DEVICE"), &wish->kind, &wish->ordinal)) return false;
    for (int i = 0; i < count && ok; i++) {
        ok = model_run_read_word(wish, count, words, &i);
        for (int rest = i; rest < count && !ok; rest++) {
            wish->as_json |= strcmp(words[rest], "--json") == 0;
        }
    }
    if (wish->as_json) hyp_command_be_json();
    if (!ok || !model_run_check_words(wish)) return false;
    wish->text.stops = wish->stops;
    wish->text.tokens_max = (size_t)wish->tokens;
    wish->text.sampling.top_k = (size_t)wish->top_k;
    if (wish->penalises_none) wish->text.sampling.repetition_penalty = 1;
    return true;
}

/* ---- running ---- */

struct model_run {
    struct run_wish wish;
    struct tol_driver *driver;
    struct tol_model *model;
    struct tol_tokenizer *tokenizer;
    struct tol_loaded *loaded;
    struct tol_text *texts[SESSIONS_MAX];
    char *written[SESSIONS_MAX]; /* the text of each, if there are several or it is for a program */
    size_t written_bytes[SESSIONS_MAX];
    double load_s, prompt_s, step_s;
};

static double model_run_now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool show_progress(void *user, uint64_t done, uint64_t total) {
    const int bar = total > 0 ? (int)(done * BAR / total) : BAR;
    (void)user;
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\rloading [%-*.*s] %llu of %llu MB%s", BAR, bar,
                "########################################", (unsigned long long)(done >> 20),
                (unsigned long long)(total >> 20), done == total ? "\r\033[K" : "");
    }
    return !atomic_load(&is_interrupted);
}

static tol_status model_run_open_all(struct model_run *run) {
    struct run_wish *wish = &run->wish;
    struct tol_load_options options = {.context = (size_t)wish->context,
                                       .sessions = (size_t)wish->sessions,
                                       .cache = wish->cache,
                                       .progress = show_progress};
    enum hyp_device_kind kind = wish->kind;
    const double begin = model_run_now_s();
    tol_status status = tol_model_open(wish->path, &run->model);
    if (status == TOL_OK) {
        status = tol_tokenizer_create(tol_model_file(run->model), &run->tokenizer);
    }
    if (status == TOL_OK) status = hyp_session_open(&kind, &run->driver);
    if (status == TOL_OK) {
        status = hyp_model_devices_open(&wish->devices, run->driver, wish->ordinal, &options);
    }
    if (status == TOL_OK) {
        status = tol_model_load(run->model, wish->devices.contexts[0], &options, &run->loaded);
    }
    run->load_s = model_run_now_s() - begin;
    if (status == TOL_OK && wish->penalises_all) {
        struct tol_loaded_stats stats;
        tol_loaded_stats(run->loaded, &stats);
        wish->text.sampling.repetition_window = stats.context;
    }
    return status;
}

static void model_run_close_all(struct model_run *run) {
    for (size_t i = 0; i < run->wish.sessions; i++) {
        tol_text_destroy(run->texts[i]);
        free(run->written[i]);
    }
    tol_model_unload(run->loaded);
    hyp_model_devices_close(&run->wish.devices);
    tol_driver_close(run->driver);
    tol_tokenizer_destroy(run->tokenizer);
    tol_model_close(run->model);
    hyp_model_prompt_free(&run->wish.prompt);
}

static tol_status run_prompts(struct model_run *run) {
    tol_status status = TOL_OK;
    const double begin = model_run_now_s();
    struct tol_text_options options = run->wish.text;
    for (size_t i = 0; i < run->wish.sessions && status == TOL_OK; i++) {
        status = tol_text_create(run->loaded, run->tokenizer, &options, run->wish.prompt.text,
                                 run->wish.prompt.bytes, &run->texts[i]);
        options.sampling.seed++;
    }
    run->prompt_s = model_run_now_s() - begin;
    return status;
}

static bool model_run_keep(struct model_run *run, size_t i, struct tol_gguf_text fresh) {
    char *grown = realloc(run->written[i], run->written_bytes[i] + fresh.count + 1);
    if (grown == NULL) return false;
    if (fresh.count > 0) memcpy(grown + run->written_bytes[i], fresh.bytes, fresh.count);
    run->written_bytes[i] += fresh.count;
    grown[run->written_bytes[i]] = '\0';
    run->written[i] = grown;
    return true;
}

/* Steps until all have ended. */
static tol_status model_run_run_steps(struct model_run *run) {
    const size_t count = (size_t)run->wish.sessions;
    const bool streams = count == 1 && !run->wish.as_json;
    const double begin = model_run_now_s();
    for (bool go_on = true; go_on;) {
        const tol_status status = tol_texts_step(run->texts, count);
        if (status != TOL_OK) return status;
        go_on = false;
        for (size_t i = 0; i < count; i++) {
            const struct tol_gguf_text fresh = tol_text_fresh(run->texts[i]);
            go_on |= tol_text_about(run->texts[i]).end == TOL_TEXT_GOES_ON;
            if (streams) {
                fwrite(fresh.bytes, 1, fresh.count, stdout);
                fflush(stdout);
            } else if (!model_run_keep(run, i, fresh)) {
                return TOL_OUT_OF_HOST_MEMORY;
            }
        }
    }
    run->step_s = model_run_now_s() - begin;
    return TOL_OK;
}

/* ---- what came of it ---- */

static const char *end_name(const struct tol_text_about *about) {
    return about->status == TOL_CANCELLED ? "interrupted" : tol_text_end_name(about->end);
}

static void model_run_print_json(const struct model_run *run) {
    const char *device = hyp_model_devices_name(&run->wish.devices);
    for (size_t i = 0; i < run->wish.sessions; i++) {
        const struct tol_text_about about = tol_text_about(run->texts[i]);
        json_t *line = json_pack(
            "{s:i, s:I, s:s, s:s%, s:I, s:I, s:s, s:s, s:f, s:f, s:f}", "schema", 1, "session",
            (json_int_t)i, "device", device, "text", run->written[i] != NULL ? run->written[i] : "",
            run->written_bytes[i], "prompt_tokens", (json_int_t)about.prompt_tokens, "tokens",
            (json_int_t)about.tokens, "end", end_name(&about), "status",
            tol_status_name(about.status), "load_s", run->load_s, "prompt_s", run->prompt_s,
            "step_s", run->step_s);
        if (about.status != TOL_OK) {
            json_object_set_new(line, "error", json_string(hyp_session_sentence(about.message)));
        }
        char *text = line != NULL ? json_dumps(line, JSON_REAL_PRECISION(9)) : NULL;
        if (text != NULL) puts(text);
        free(text);
        json_decref(line);
    }
}

static void model_run_print_text(const struct model_run *run) {
    size_t tokens = 0, prompts = 0;
    for (size_t i = 0; i < run->wish.sessions; i++) {
        const struct tol_text_about about = tol_text_about(run->texts[i]);
        tokens += about.tokens;
        prompts += about.prompt_tokens;
        if (run->wish.sessions > 1) {
            printf("---- session %zu ----\n", i);
            fwrite(run->written[i], 1, run->written_bytes[i], stdout); /* it may have a NUL */
        }
        printf("\n");
    }
    if (!isatty(STDERR_FILENO)) return;
    fprintf(stderr, "%zu tokens of prompt in %.2f s, %zu tokens in %.2f s: %.1f a second, on %s\n",
            prompts, run->prompt_s, tokens, run->step_s, (double)tokens / run->step_s,
            hyp_model_devices_name(&run->wish.devices));
}

/* The exit code of a run that went through, whose texts may have failed. */
static int model_run_judge(const struct model_run *run) {
    for (size_t i = 0; i < run->wish.sessions; i++) {
        const struct tol_text_about about = tol_text_about(run->texts[i]);
        if (about.end != TOL_TEXT_FAILED) continue;
        if (about.status == TOL_CANCELLED) return EXIT_INTERRUPTED;
        const char *sentence = hyp_session_sentence(about.message);
        return hyp_command_complain("session %zu ended after %zu tokens: %s", i, about.tokens,
                                    sentence[0] != '\0' ? sentence
                                                        : tol_status_sentence(about.status));
    }
    return HYP_EXIT_OK;
}

static int model_run_serve(const struct model_run *run) {
    const struct run_wish *wish = &run->wish;
    const struct hyp_model_guarded model = {.loaded = run->loaded,
                                            .tokenizer = run->tokenizer,
                                            .path = wish->path,
                                            .device = hyp_model_devices_name(&run->wish.devices),
                                            .text = wish->text,
                                            .cache = wish->cache == KN_CACHE_Q8_0 ? "q8_0" : "f16",
                                            .context = wish->context,
                                            .as_json = wish->as_json};
    const tol_status status = hyp_model_serve(&model);
    return status == TOL_OK ? HYP_EXIT_OK : hyp_command_complain("%s", hyp_session_message());
}

int hyp_command_model_run(int count, char **words) {
    static struct model_run run;
    int code = HYP_EXIT_OK;
    if (count > 0 && hyp_model_is_flag("--help -h", words[0])) {
        fputs(usage, stdout);
        return HYP_EXIT_OK;
    }
    hyp_command_has_help(usage, strlen(usage));
    if (!model_run_read_words(count, words, &run.wish))
        return hyp_command_complain("%s", hyp_error());
    sigaction(SIGINT,
              &(struct sigaction){.sa_handler = model_run_interrupt, .sa_flags = SA_RESTART}, NULL);
    sigaction(SIGTERM,
              &(struct sigaction){.sa_handler = model_run_interrupt, .sa_flags = SA_RESTART}, NULL);
    tol_status status = model_run_open_all(&run);
    if (status == TOL_OK && run.wish.is_guarded) {
        code = model_run_serve(&run);
        model_run_close_all(&run);
        return code;
    }
    if (status == TOL_OK) status = run_prompts(&run);
    if (status == TOL_OK) status = model_run_run_steps(&run);
    if (status == TOL_OK) {
        if (run.wish.as_json) {
            model_run_print_json(&run);
            hyp_command_has_answered();
        } else {
            model_run_print_text(&run);
        }
        code = model_run_judge(&run);
    } else if (status == TOL_CANCELLED) {
        code = EXIT_INTERRUPTED;
    } else {
        code = hyp_command_complain("%s", hyp_session_message());
        if (status == TOL_OVER_LIMIT) {
            hyp_command_next("give --ctx N, up to the context that model info shows");
        }
    }
    model_run_close_all(&run);
    return code;
}
