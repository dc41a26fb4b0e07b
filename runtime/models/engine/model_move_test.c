/*
 * A model that moves between devices: sessions that decode meanwhile get what they get undisturbed,
 * and a move that fails changes nothing.
 */
#include "engine_scene.h"

#include "test/test_scenarios.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

TestSuite(model_move, .fini = test_end, .timeout = 120);

enum { DEVICES = 3, PROMPT = 40, BEGINNING = 33, SESSIONS = 2, MOST = 400, BEHIND = 3 };

struct scene {
    struct gguf_maker maker;
    struct tol_model *model;
    struct tol_context *contexts[DEVICES];
    struct tol_loaded *loaded;
    struct tol_session *sessions[SESSIONS];
};

/* A model on the first devices. Skips the test where a machine has fewer than `most`. */
static struct scene begin(unsigned devices, unsigned most) {
    struct scene s = {.loaded = NULL};
    int there = 0;
    setenv("TOLLENS_SOFT_DEVICES", "3", 1);
    MUST(tol_device_count(test_driver(), &there));
    if (there < (int)most) cr_skip_test("%u devices are needed, and there are %d", most, there);
    for (unsigned i = 0; i < most; i++) {
        MUST(tol_context_create(test_driver(), (int)i, &s.contexts[i]));
    }
    tiny_model_write(&stage_base, &s.maker);
    MUST(tol_model_open(s.maker.path, &s.model));
    MUST(tol_model_load(s.model, s.contexts[0],
                        &(struct tol_load_options){.sessions = SESSIONS,
                                                   .prompt_from = 20,
                                                   .prompt_rows = 64,
                                                   .peers = s.contexts + 1,
                                                   .peer_count = devices - 1},
                        &s.loaded));
    return s;
}

static void end(struct scene *s) {
    tol_model_unload(s->loaded);
    tol_model_close(s->model);
    maker_end(&s->maker);
    for (int i = 0; i < DEVICES; i++) tol_context_destroy(s->contexts[i]);
}

/* Two sessions, whose texts begin alike, so that they share pages; one draws by chance. */
static void open_sessions(struct scene *s) {
    int tokens[PROMPT];
    make_tokens(tokens, PROMPT, stage_base.vocabulary, 3);
    for (size_t i = 0; i < SESSIONS; i++) {
        const struct tol_session_options options = {
            .sampling = {.temperature = i == 0 ? 0 : 0.9, .seed = 5}};
        tokens[BEGINNING] = (int)i;
        MUST(tol_session_create(s->loaded, &options, &s->sessions[i]));
        MUST(tol_session_prompt(s->sessions[i], tokens, PROMPT));
    }
}

static void close_sessions(struct scene *s) {
    for (size_t i = 0; i < SESSIONS; i++) tol_session_destroy(s->sessions[i]);
}

static void step(struct scene *s, int *drawn) {
    struct tol_step steps[SESSIONS];
    for (size_t i = 0; i < SESSIONS; i++) steps[i].session = s->sessions[i];
    MUST(tol_sessions_step(steps, SESSIONS));
    for (size_t i = 0; i < SESSIONS; i++) {
        MUST(steps[i].status);
        drawn[i] = steps[i].token;
    }
}

static void must_hold_nothing(struct tol_context *context) {
    struct tol_health health;
    MUST(tol_health_check(context, NULL, &health));
    for (unsigned kind = 0; kind < TOL_HELD_KINDS; kind++) {
        cr_assert(health.held[kind].count == 0, "%llu %s are still allocated",
                  (unsigned long long)health.held[kind].count, tol_held_name(kind));
    }
}

/* ---- under load ---- */

struct writer {
    struct scene *s;
    int drawn[MOST + BEHIND][SESSIONS];
    size_t count;
    atomic_bool stops;
};

static void *write_on(void *user) {
    struct writer *w = user;
    while (w->count < MOST && !atomic_load(&w->stops)) step(w->s, w->drawn[w->count++]);
    return NULL;
}

/* Sessions step in a thread of their own while the model goes where `way` says: pairs of the
 * model's device and a context. Then the same text is written without moves. */
static void move_under_load(struct scene *s, const unsigned (*way)[2], size_t moves) {
    static struct writer w;
    pthread_t thread;
    int drawn[SESSIONS];
    w = (struct writer){.s = s};
    open_sessions(s);
    cr_assert(pthread_create(&thread, NULL, write_on, &w) == 0);
    for (size_t i = 0; i < moves; i++) {
        MUST(tol_model_move(s->loaded, way[i][0], s->contexts[way[i][1]]));
    }
    atomic_store(&w.stops, true);
    pthread_join(thread, NULL);
    for (size_t i = 0; i < BEHIND; i++) step(s, w.drawn[w.count++]); /* where it is now */
    close_sessions(s);
    open_sessions(s);
    for (size_t i = 0; i < w.count; i++) {
        step(s, drawn);
        cr_assert(memcmp(drawn, w.drawn[i], sizeof drawn) == 0,
                  "step %zu of %zu: %d %d, and %d %d with moves", i, w.count, drawn[0], drawn[1],
                  w.drawn[i][0], w.drawn[i][1]);
    }
    cr_log_info("%zu steps beside %zu moves", w.count, moves);
    close_sessions(s);
}

Test(model_move, sessions_go_on_with_the_same_tokens) {
    static const unsigned way[][2] = {{0, 1}, {0, 0}, {0, 1}};
    struct tol_loaded_stats stats;
    struct scene s = begin(1, 2);
    move_under_load(&s, way, 3);
    cr_assert(tol_loaded_context(s.loaded) == s.contexts[1]);
    must_hold_nothing(s.contexts[0]);
    tol_loaded_stats(s.loaded, &stats);
    cr_assert(stats.pages == 0 && stats.launched_graphs > 0);
    tol_model_unload(s.loaded);
    s.loaded = NULL;
    must_hold_nothing(s.contexts[1]);
    end(&s);
}

Test(model_move, one_of_two_devices_is_replaced) {
    static const unsigned way[][2] = {{1, 2}, {0, 1}};
    struct scene s = begin(2, 3);
    move_under_load(&s, way, 2);
    must_hold_nothing(s.contexts[0]);
    end(&s);
}

enum { TEXTS = 40, SHORT = 24, DRAWN = 6 };

struct author {
    struct scene *s;
    size_t place;
    int drawn[TEXTS][DRAWN];
    size_t count; /* texts that are whole */
    atomic_bool *stops;
};

/* A text of its own: its prompt, and the tokens that follow. */
static void write_text(struct scene *s, size_t place, size_t number, int drawn[DRAWN]) {
    int tokens[SHORT];
    struct tol_step one = {.session = NULL};
    make_tokens(tokens, SHORT, stage_base.vocabulary, (unsigned)(1 + 7 * number + place));
    MUST(tol_session_create(
        s->loaded, &(struct tol_session_options){.sampling = {.temperature = 0}}, &one.session));
    MUST(tol_session_prompt(one.session, tokens, SHORT - number % 5));
    for (size_t i = 0; i < DRAWN; i++) {
        MUST(tol_sessions_step(&one, 1));
        MUST(one.status);
        drawn[i] = one.token;
    }
    tol_session_destroy(one.session);
}

static void *write_texts(void *user) {
    struct author *a = user;
    while (a->count < TEXTS && !atomic_load(a->stops)) {
        write_text(a->s, a->place, a->count, a->drawn[a->count]);
        a->count++;
    }
    return NULL;
}

/* Sessions begin, read a prompt and end, at any moment of a move. */
Test(model_move, texts_begin_and_end_beside_moves) {
    static struct author authors[SESSIONS];
    static atomic_bool stops;
    pthread_t threads[SESSIONS];
    struct tol_loaded_stats stats;
    int drawn[DRAWN];
    struct scene s = begin(1, 3);
    for (size_t i = 0; i < SESSIONS; i++) {
        authors[i] = (struct author){.s = &s, .place = i, .stops = &stops};
        cr_assert(pthread_create(&threads[i], NULL, write_texts, &authors[i]) == 0);
    }
    for (unsigned i = 1; i <= 4; i++) MUST(tol_model_move(s.loaded, 0, s.contexts[i % DEVICES]));
    atomic_store(&stops, true);
    for (size_t i = 0; i < SESSIONS; i++) pthread_join(threads[i], NULL);
    for (size_t i = 0; i < SESSIONS; i++) {
        for (size_t t = 0; t < authors[i].count; t++) {
            write_text(&s, i, t, drawn);
            cr_assert(memcmp(drawn, authors[i].drawn[t], sizeof drawn) == 0,
                      "text %zu of thread %zu", t, i);
        }
    }
    cr_log_info("%zu and %zu texts", authors[0].count, authors[1].count);
    tol_loaded_stats(s.loaded, &stats);
    cr_assert(stats.pages == 0, "%zu pages are in use", (size_t)stats.pages);
    must_hold_nothing(s.contexts[0]);
    must_hold_nothing(s.contexts[2]);
    end(&s);
}

struct mover {
    struct scene *s;
    unsigned from; /* where the first of its moves goes */
    unsigned moved, refused;
};

static void *move_about(void *user) {
    struct mover *m = user;
    for (unsigned i = 0; i < 6; i++) {
        const tol_status status =
            tol_model_move(m->s->loaded, 0, m->s->contexts[(m->from + i) % DEVICES]);
        cr_assert(status == TOL_OK || status == TOL_INVALID_ARGUMENT, "%s", tol_message());
        m->moved += status == TOL_OK;
        m->refused += status != TOL_OK; /* it is there already */
    }
    return NULL;
}

/* They take turns; each goes to where it says, or is refused because the model is there. */
Test(model_move, moves_of_two_threads_take_turns) {
    struct scene s = begin(1, 3);
    struct mover movers[2] = {{.s = &s, .from = 1}, {.s = &s, .from = 2}};
    pthread_t threads[2];
    int expected[SESSIONS], drawn[SESSIONS];
    open_sessions(&s);
    for (int i = 0; i < 2; i++) {
        cr_assert(pthread_create(&threads[i], NULL, move_about, &movers[i]) == 0);
    }
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    cr_assert(movers[0].moved + movers[1].moved >= 6);
    step(&s, drawn);
    close_sessions(&s);
    open_sessions(&s);
    step(&s, expected);
    close_sessions(&s);
    cr_assert(memcmp(drawn, expected, sizeof drawn) == 0);
    for (int i = 0; i < DEVICES; i++) {
        if (s.contexts[i] != tol_loaded_context(s.loaded)) must_hold_nothing(s.contexts[i]);
    }
    end(&s);
}

/* ---- that fails ---- */

Test(model_move, a_device_without_room_leaves_it_where_it_was) {
    enum { BLOCKS = 64 };
    struct tol_buffer *taken[BLOCKS] = {NULL};
    size_t count = 0, free_bytes = 0;
    int expected[SESSIONS], drawn[SESSIONS];
    if (test_on_gpu()) cr_skip_test("it takes all memory of a device");
    setenv("TOLLENS_SOFT_MEMORY", "64M", 1);
    struct scene s = begin(1, 2);
    MUST(tol_context_memory(s.contexts[1], &free_bytes, NULL));
    for (size_t bytes = free_bytes; bytes >= 4096 && count < BLOCKS;) {
        if (tol_buffer_create(s.contexts[1], bytes, 1, &taken[count]) == TOL_OK)
            count++;
        else
            bytes /= 2;
    }
    open_sessions(&s);
    step(&s, drawn);
    MUST_FAIL(tol_model_move(s.loaded, 0, s.contexts[1]), TOL_OUT_OF_DEVICE_MEMORY, "");
    cr_assert(tol_loaded_context(s.loaded) == s.contexts[0]);
    step(&s, drawn);
    close_sessions(&s);
    open_sessions(&s);
    for (int i = 0; i < 2; i++) step(&s, expected);
    cr_assert(memcmp(drawn, expected, sizeof drawn) == 0);
    while (count > 0) tol_buffer_destroy(taken[--count]);
    MUST(tol_model_move(s.loaded, 0, s.contexts[1]));
    step(&s, drawn);
    close_sessions(&s);
    end(&s);
}

Test(model_move, a_move_that_fails_leaves_it_where_it_was) {
    enum { STRIDE = 17 };
    unsigned failed = 0;
    int expected[4][SESSIONS], drawn[SESSIONS];
    setenv("TOLLENS_SOFT_DEVICES", "3", 1);
    test_staged_install(test_driver());
    struct scene s = begin(1, 2);
    open_sessions(&s);
    for (size_t i = 0; i < 4; i++) step(&s, expected[i]);
    close_sessions(&s);
    for (uint64_t nth = 1;; nth += STRIDE) {
        open_sessions(&s);
        for (size_t i = 0; i < 2; i++) step(&s, drawn);
        test_staged.refusal = (struct test_refusal){
            .nth = nth, .result = CUDA_ERROR_INVALID_VALUE, .refused = TOL_DRIVER_FUNCTIONS};
        test_staged.is_armed = true;
        const tol_status status = tol_model_move(s.loaded, 0, s.contexts[1]);
        test_staged.is_armed = false;
        const bool was_refused = test_staged.refusal.refused != TOL_DRIVER_FUNCTIONS;
        cr_assert(was_refused || status == TOL_OK, "%s", tol_message());
        const bool has_moved = tol_loaded_context(s.loaded) == s.contexts[1];
        cr_assert(has_moved == (status == TOL_OK));
        if (!has_moved) {
            must_hold_nothing(s.contexts[1]);
        } else if (!was_refused) {
            must_hold_nothing(s.contexts[0]);
        }
        for (size_t i = 2; i < 4; i++) {
            step(&s, drawn);
            cr_assert(memcmp(drawn, expected[i], sizeof drawn) == 0, "after call %llu, step %zu",
                      (unsigned long long)nth, i);
        }
        close_sessions(&s);
        failed += !has_moved;
        if (!was_refused) break;
        if (has_moved) MUST(tol_model_move(s.loaded, 0, s.contexts[0]));
    }
    cr_assert(failed > 3, "%u moves failed", failed);
    end(&s);
    tol_interpose_remove(test_driver());
}

Test(model_move, refuses_what_it_cannot_do) {
    struct scene s = begin(1, 2);
    MUST_FAIL(tol_model_move(s.loaded, 0, s.contexts[0]), TOL_INVALID_ARGUMENT,
              "the model is on device 0 already");
    MUST_FAIL(tol_model_move(s.loaded, 1, s.contexts[1]), TOL_INVALID_ARGUMENT,
              "the model has 1 devices; there is no device 1");
    MUST_FAIL(tol_model_move(s.loaded, 0, NULL), TOL_INVALID_ARGUMENT, "a context");
    end(&s);
}
