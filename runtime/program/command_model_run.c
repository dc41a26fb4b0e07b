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
#include "model_gaps.h"
#include "model_guarded.h"
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
    "  --ctx N         positions for prompt and text; default 4096, or the model's if fewer\n"
    "  --cache TYPE    keys and values as f16 (default) or q8_0, half as large\n"
    "  --sessions N    N texts at once, with the seeds S, S + 1, ...; default 1\n"
    "  --stop TEXT     end before this text; may be given several times\n"
    "  --special       <|...|> in the prompt are the model's special tokens\n"
    "  --ignore-end    continue after the model ends its text\n"
    "  --json          print one object per text, with times; exit code 130: interrupted\n"
    "  --guarded       be a worker of tollens guard: its jobs are prompts, and another device\n"
    "                  continues a text after its last token; job N has the seed S + N - 1\n"
    "  --prompt, --file, --n-predict and --temperature are -p, -f, -n and --temp\n"
    "  --device D      auto (default), cuda, cuda:N or soft\n"
    "  --devices LIST  compute the model on all devices of this list, such as 0,1: each holds a\n"
    "                  share of the weights, and the text is the same as with one device\n"
    "\n"
    "exit codes: 0 the text has ended, 2 it could not be generated, 130 interrupted\n";

struct run_wish {
    const char *path, *prompt, *prompt_path;
    char *read; /* the prompt, if it came from a file */
    size_t prompt_bytes;
    struct tol_text_options text;
    const char *stops[STOPS_MAX];
    uint64_t context, sessions;
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

/* The value of an option, as "--name VALUE" or "--name=VALUE". NULL: it is another word. */
static const char *model_run_value_of(const char *name, int count, char **words, int *at) {
    const size_t length = strlen(name);
    if (strcmp(words[*at], name) == 0) return *at + 1 < count ? words[++*at] : "";
    const bool fits = strncmp(words[*at], name, length) == 0 && words[*at][length] == '=';
    return fits ? words[*at] + length + 1 : NULL;
}

static bool model_run_read_number(const char *option, const char *text, uint64_t most,
                                  uint64_t *number) {
    return hyp_session_number(text, most, number) ||
           hyp_fail("%s must be a number from 0 to %llu, not '%s'", option,
                    (unsigned long long)most, text);
}

static bool read_real(const char *option, const char *text, double *number) {
    char *end = NULL;
    *number = strtod(text, &end);
    return (end != text && *end == '\0') || hyp_fail("%s must be a number, not '%s'", option, text);
}

/* An option with a number. *found: it was one. */
static bool read_numbers(struct run_wish *wish, int count, char **words, int *at, bool *found) {
    struct tol_sampling *sampling = &wish->text.sampling;
    uint64_t top_k = 0, most = 0;
    const struct {
        const char *name;
        uint64_t most, *number;
        double *real;
    } options[] = {{"-n", INT32_MAX, &most, NULL},
                   {"--n-predict", INT32_MAX, &most, NULL},
                   {"--temperature", 0, NULL, &sampling->temperature},
                   {"--seed", HYP_SEED_MAX, &sampling->seed, NULL},
                   {"--ctx", INT32_MAX, &wish->context, NULL},
                   {"--sessions", SESSIONS_MAX, &wish->sessions, NULL},
                   {"--top-k", INT32_MAX, &top_k, NULL},
                   {"--temp", 0, NULL, &sampling->temperature},
                   {"--top-p", 0, NULL, &sampling->top_p},
                   {"--min-p", 0, NULL, &sampling->min_p},
                   {"--repeat-penalty", 0, NULL, &sampling->repetition_penalty}};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        const char *value = model_run_value_of(options[i].name, count, words, at);
        if (value == NULL) continue;
        *found = true;
        if (options[i].real != NULL) return read_real(options[i].name, value, options[i].real);
        if (!model_run_read_number(options[i].name, value, options[i].most, options[i].number))
            return false;
        if (options[i].number == &top_k) sampling->top_k = (size_t)top_k;
        if (options[i].number == &most) wish->text.tokens_max = (size_t)most;
        return true;
    }
    return true;
}

static bool model_run_read_word(struct run_wish *wish, int count, char **words, int *at) {
    const char *value = NULL;
    bool found = false;
    if (!read_numbers(wish, count, words, at, &found)) return false;
    if (found) return true;
    if ((value = model_run_value_of("-p", count, words, at)) != NULL ||
        (value = model_run_value_of("--prompt", count, words, at)) != NULL) {
        wish->prompt = value;
    } else if ((value = model_run_value_of("-f", count, words, at)) != NULL ||
               (value = model_run_value_of("--file", count, words, at)) != NULL) {
        wish->prompt_path = value;
    } else if ((value = model_run_value_of("--stop", count, words, at)) != NULL) {
        if (wish->text.stop_count == STOPS_MAX) return hyp_fail("at most %d --stop", STOPS_MAX);
        wish->stops[wish->text.stop_count++] = value;
    } else if ((value = model_run_value_of("--cache", count, words, at)) != NULL) {
        return hyp_model_cache(value, &wish->cache);
    } else if ((value = model_run_value_of("--device", count, words, at)) != NULL) {
        return hyp_session_device(value, &wish->kind, &wish->ordinal);
    } else if ((value = model_run_value_of("--devices", count, words, at)) != NULL) {
        return hyp_model_devices_read(value, &wish->devices);
    } else if (strcmp(words[*at], "--json") == 0) {
        wish->as_json = true;
        hyp_command_be_json();
    } else if (strcmp(words[*at], "--guarded") == 0) {
        wish->is_guarded = true;
    } else if (strcmp(words[*at], "--special") == 0) {
        wish->text.parses_special = true;
    } else if (strcmp(words[*at], "--ignore-end") == 0) {
        wish->text.ignores_end = true;
    } else if (words[*at][0] == '-' && words[*at][1] != '\0') {
        return hyp_fail("model run has no option %s; see tollens help model", words[*at]);
    } else if (wish->path != NULL) {
        return hyp_fail("model run takes one file; %s is a second one", words[*at]);
    } else {
        wish->path = words[*at];
    }
    return true;
}

/* Reads a stream to its end. NULL: hyp_error(). */
static char *model_run_read_all(FILE *stream, const char *name, size_t *bytes) {
    enum { PART = 1 << 16, MOST = 1 << 30 };
    char *all = NULL;
    for (size_t got = 1; got > 0; *bytes += got) {
        char *grown = *bytes < MOST ? realloc(all, *bytes + PART + 1) : NULL;
        if (grown == NULL) {
            free(all);
            (void)hyp_fail("%s has more than %zu bytes", name, *bytes);
            return NULL;
        }
        all = grown;
        got = fread(all + *bytes, 1, PART, stream);
    }
    if (ferror(stream) != 0) {
        free(all);
        (void)hyp_fail("%s cannot be read", name);
        return NULL;
    }
    all[*bytes] = '\0';
    return all;
}

/* The prompt is a word, a file or what stands on standard input. */
static bool model_run_take_prompt(struct run_wish *wish) {
    const char *path = wish->prompt_path;
    if (wish->prompt != NULL) {
        wish->prompt_bytes = strlen(wish->prompt);
        return true;
    }
    if (path == NULL && isatty(STDIN_FILENO)) {
        return hyp_fail("model run requires a prompt: -p \"text\", -f FILE or standard input");
    }
    FILE *stream = path != NULL ? fopen(path, "rb") : stdin;
    if (stream == NULL) return hyp_fail("%s cannot be opened", path);
    wish->read =
        model_run_read_all(stream, path != NULL ? path : "standard input", &wish->prompt_bytes);
    if (path != NULL) fclose(stream);
    if (wish->read == NULL) return false;
    wish->prompt = wish->read;
    if (wish->prompt_bytes > 0 && wish->read[wish->prompt_bytes - 1] == '\n') wish->prompt_bytes--;
    return wish->prompt_bytes > 0 || path != NULL ||
           hyp_fail("model run requires a prompt: -p \"text\", -f FILE or standard input");
}

static bool model_run_read_words(int count, char **words, struct run_wish *wish) {
    *wish =
        (struct run_wish){.text = {.tokens_max = 128, .cancels = &is_interrupted}, .sessions = 1};
    if (!hyp_session_device(getenv("TOLLENS_DEVICE"), &wish->kind, &wish->ordinal)) return false;
    for (int i = 0; i < count; i++) {
        if (model_run_read_word(wish, count, words, &i)) continue;
        for (; i < count; i++) {
            if (strcmp(words[i], "--json") == 0) hyp_command_be_json();
        }
        return false;
    }
    wish->text.stops = wish->stops;
    if (wish->path == NULL) return hyp_fail("model run requires a file");
    const bool has_prompt = wish->prompt != NULL || wish->prompt_path != NULL;
    if (wish->is_guarded && (has_prompt || wish->sessions != 1)) {
        return hyp_fail("with --guarded the guard has the prompts: neither -p, -f nor --sessions");
    }
    if (wish->prompt != NULL && wish->prompt_path != NULL) {
        return hyp_fail("-p and -f are two prompts");
    }
    if (!wish->is_guarded && !model_run_take_prompt(wish)) return false;
    if (wish->text.tokens_max == 0) return hyp_fail("-n must be at least 1");
    return wish->sessions > 0 || hyp_fail("--sessions must be at least 1");
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
    free(run->wish.read);
}

static tol_status run_prompts(struct model_run *run) {
    tol_status status = TOL_OK;
    const double begin = model_run_now_s();
    struct tol_text_options options = run->wish.text;
    for (size_t i = 0; i < run->wish.sessions && status == TOL_OK; i++) {
        status = tol_text_create(run->loaded, run->tokenizer, &options, run->wish.prompt,
                                 run->wish.prompt_bytes, &run->texts[i]);
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
    if (count > 0 && (strcmp(words[0], "--help") == 0 || strcmp(words[0], "-h") == 0)) {
        fputs(usage, stdout);
        return HYP_EXIT_OK;
    }
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
