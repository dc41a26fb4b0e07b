/*
 * A text that another session began: its tokens are replayed as a prompt, and the text continues
 * with the same tokens and the same bytes as if nothing had been, wherever it was cut.
 */
#include "engine_scene.h"
#include "decode_text.h"

#include <string.h>
#include <tokenizer.h>

TestSuite(text_replay, .fini = test_end);

/* Small, for the soft device takes a while for each position. */
enum { TOKENS = 6, ROOM = 24, TEXT_BYTES = 1000 };
static const char prompt[] = "A";

/* A committed model that writes letters, on the tests' context. */
struct writer {
    struct tol_model *model;
    struct tol_loaded *loaded;
    struct tol_tokenizer *tokenizer;
};

static struct writer open_writer(void) {
    struct writer w = {NULL, NULL, NULL};
    MUST(tol_model_open(test_fixture_path("models/llama-q4_k_m.gguf"), &w.model));
    MUST(tol_tokenizer_create(tol_model_file(w.model), &w.tokenizer));
    MUST(tol_model_load(w.model, test_context(),
                        &(struct tol_load_options){.context = 64, .sessions = 1}, &w.loaded));
    return w;
}

static void close_writer(struct writer *w) {
    tol_model_unload(w->loaded);
    tol_tokenizer_destroy(w->tokenizer);
    tol_model_close(w->model);
}

/* What a text came to. */
struct whole {
    int tokens[ROOM];
    size_t drawn; /* tokens, with the end's */
    char text[TEXT_BYTES];
    enum tol_text_end end;
};

static void add(struct whole *whole, const struct tol_text *text) {
    const struct tol_gguf_text fresh = tol_text_fresh(text);
    const size_t length = strlen(whole->text);
    cr_assert(length + fresh.count < sizeof whole->text);
    memcpy(whole->text + length, fresh.bytes, fresh.count);
    whole->text[length + fresh.count] = '\0';
}

/* Writes to the end, of which `given` has tokens that were drawn before. */
static struct whole write_on(const struct writer *w, struct tol_text_options options,
                             const int *given, size_t count) {
    struct whole whole = {.drawn = count};
    struct tol_text *text = NULL;
    options.replayed = given;
    options.replayed_count = count;
    if (count > 0) memcpy(whole.tokens, given, count * sizeof *given);
    MUST(tol_text_create(w->loaded, w->tokenizer, &options, prompt, sizeof prompt - 1, &text));
    add(&whole, text);
    while (tol_text_about(text).end == TOL_TEXT_GOES_ON) {
        MUST(tol_texts_step(&text, 1));
        MUST(tol_text_about(text).status);
        cr_assert(whole.drawn < ROOM);
        whole.tokens[whole.drawn++] = tol_text_about(text).token;
        add(&whole, text);
    }
    whole.end = tol_text_about(text).end;
    tol_text_destroy(text);
    return whole;
}

/* A trial. */
static void check(const struct writer *w, const struct tol_text_options *options,
                  const char *what) {
    if (!test_takes_trial()) return;
    const struct whole alone = write_on(w, *options, NULL, 0);
    cr_assert(alone.drawn >= 3, "%s: a text of %zu tokens shows little", what, alone.drawn);
    const size_t cuts[] = {1, alone.drawn / 2, alone.drawn};
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        const size_t cut = cuts[i];
        const struct whole joined = write_on(w, *options, alone.tokens, cut);
        cr_assert(joined.drawn == alone.drawn && joined.end == alone.end, "%s, cut at %zu", what,
                  cut);
        cr_assert(memcmp(joined.tokens, alone.tokens, alone.drawn * sizeof(int)) == 0,
                  "%s: other tokens after a cut at %zu", what, cut);
        cr_assert_str_eq(joined.text, alone.text, "%s, cut at %zu", what, cut);
    }
}

/* Three bytes of a text that are not in its first half. */
static void choose_stop(const char *text, char *stop) {
    size_t at = strlen(text) - 3;
    do {
        memcpy(stop, text + at, 3);
    } while (strstr(text, stop) != text + at && --at > strlen(text) / 2);
    cr_assert(at > strlen(text) / 2, "%s", text);
}

Test(text_replay, a_text_goes_on_with_the_same_tokens_wherever_it_was_cut) {
    char stop[4] = "";
    const char *const stops[] = {"nothing", stop};
    struct writer w = open_writer();
    struct tol_text_options options = {.tokens_max = TOKENS, .ignores_end = true};
    check(&w, &options, "greedy");
    options.sampling = (struct tol_sampling){.temperature = 1.2, .seed = 11};
    check(&w, &options, "drawn");
    const struct whole drawn = write_on(&w, options, NULL, 0);
    choose_stop(drawn.text, stop);
    options.stops = stops;
    options.stop_count = 2;
    check(&w, &options, "ended by a stop string");
    options.stop_count = 0;
    options.sampling = (struct tol_sampling){.temperature = 0.9,
                                             .top_k = 40,
                                             .top_p = 0.95,
                                             .min_p = 0.01,
                                             .repetition_penalty = 1.3,
                                             .repetition_window = 6,
                                             .seed = 12};
    check(&w, &options, "drawn, with every limit and a penalty");
    options.sampling = (struct tol_sampling){.repetition_penalty = 1.5};
    check(&w, &options, "greedy, with a penalty");
    close_writer(&w);
}

/* Two draws that differ show that the generator's place matters. */
Test(text_replay, the_generator_goes_on_where_it_was) {
    struct writer w = open_writer();
    const struct tol_text_options options = {
        .tokens_max = TOKENS, .ignores_end = true, .sampling = {.temperature = 1.5, .seed = 3}};
    const struct whole alone = write_on(&w, options, NULL, 0);
    struct tol_text_options other = options;
    other.sampling.seed = 4;
    const struct whole mixed = write_on(&w, other, alone.tokens, 2);
    cr_assert(memcmp(mixed.tokens, alone.tokens, sizeof mixed.tokens) != 0,
              "another seed must give other tokens");
    close_writer(&w);
}

Test(text_replay, the_end_of_the_context_is_where_it_was) {
    struct writer w = open_writer();
    const struct tol_text_options options = {.ignores_end = true};
    struct tol_model *model = w.model;
    tol_model_unload(w.loaded);
    size_t positions = 0;
    /* A context that is full after a few tokens. */
    MUST(tol_model_load(model, test_context(),
                        &(struct tol_load_options){.context = 16, .sessions = 1}, &w.loaded));
    const struct whole alone = write_on(&w, options, NULL, 0);
    positions = alone.drawn;
    cr_assert(alone.end == TOL_TEXT_CONTEXT && positions >= 4);
    check(&w, &options, "a full context");
    close_writer(&w);
}

Test(text_replay, tokens_after_the_end_and_no_tokens_are_refused) {
    struct writer w = open_writer();
    struct tol_text *text = NULL;
    const int tokens[] = {300, 301, 302};
    struct tol_text_options options = {
        .tokens_max = 2, .ignores_end = true, .replayed = tokens, .replayed_count = 3};
    MUST_FAIL(tol_text_create(w.loaded, w.tokenizer, &options, prompt, sizeof prompt - 1, &text),
              TOL_MISMATCH, "ends after 2 of 3 tokens");
    options.replayed = NULL;
    MUST_FAIL(tol_text_create(w.loaded, w.tokenizer, &options, prompt, sizeof prompt - 1, &text),
              TOL_INVALID_ARGUMENT, "NULL");
    cr_assert(text == NULL);
    close_writer(&w);
}
