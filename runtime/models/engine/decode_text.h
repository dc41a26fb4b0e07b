/*
 * Text: a session that takes a prompt as text and gives text back, piece by piece.
 *
 * What comes back is valid UTF-8 at every step: bytes of a character that is not complete are held
 * back, and so is text that may be the beginning of a stop string. The stop string itself is not
 * part of the text.
 *
 * Threads: as for sessions. The loaded model and the tokenizer must outlive the text.
 */
#ifndef TOLLENS_DECODE_TEXT_H
#define TOLLENS_DECODE_TEXT_H

#include "decode_session.h"

struct tol_tokenizer;
struct tol_text;

enum tol_text_end {
    TOL_TEXT_GOES_ON,
    TOL_TEXT_END_TOKEN,   /* the model drew the end of its text */
    TOL_TEXT_STOP_STRING, /* it wrote one */
    TOL_TEXT_LENGTH,      /* tokens_max tokens were drawn */
    TOL_TEXT_CONTEXT,     /* the session's positions are used up */
    TOL_TEXT_FAILED       /* the step failed; tol_text_about has the status */
};

/* All zero are the defaults. */
struct tol_text_options {
    struct tol_sampling sampling;
    size_t tokens_max;        /* 0: until something else ends it */
    const char *const *stops; /* stop_count strings, none empty; copied */
    size_t stop_count;
    bool parses_special;        /* "<|eot_id|>" in the prompt is that token */
    bool ignores_end;           /* continues after the model draws the end of its text */
    const atomic_bool *cancels; /* as for sessions */
    /* To continue a text that another process began: the tokens that were drawn, in order, with
     * the end's if there was one. They are computed at once, as a prompt is, and the next draw is
     * the one that would have followed, if the model, its cache's type, the sampling and the kind
     * of device are the same: no sum depends on how many positions are computed at once. On a
     * device of another kind the text continues from the same tokens, but may differ. */
    const int *replayed;
    size_t replayed_count;
};

/*
 * Creates a session and computes the prompt, bytes of text; what the file says is added, such as
 * bos. The caller destroys *text. TOL_INVALID_ARGUMENT: a prompt without tokens, an empty stop
 * string. TOL_OVER_LIMIT: the prompt does not fit the context. After a replay tol_text_fresh has
 * all text of it, and the text may be at its end. TOL_MISMATCH: more tokens follow the end. Else as
 * tol_session_create, tol_tokenizer_encode and tol_session_prompt.
 */
TOL_API tol_status tol_text_create(struct tol_loaded *loaded, const struct tol_tokenizer *tokenizer,
                                   const struct tol_text_options *options, const char *prompt,
                                   size_t bytes, struct tol_text **text);

/* NULL is a no-op. */
TOL_API void tol_text_destroy(struct tol_text *text);

/* One step of all of these texts of one loaded model, in one pass; those that have ended are left
 * out. Fails as tol_sessions_step does. */
TOL_API tol_status tol_texts_step(struct tol_text *const *texts, size_t count);

/* What the latest step has added: bytes of whole characters, without a NUL; often none. Valid until
 * the next call on the text. */
TOL_API struct tol_gguf_text tol_text_fresh(const struct tol_text *text);

struct tol_text_about {
    size_t prompt_tokens, tokens; /* tokens: drawn so far, without the end's */
    int token;                    /* the latest; -1: none */
    enum tol_text_end end;
    tol_status status;   /* TOL_OK unless end is TOL_TEXT_FAILED */
    const char *message; /* tol_message() of that failure, valid as long as the text; else "" */
};
TOL_API struct tol_text_about tol_text_about(const struct tol_text *text);

/* "end", "stop", "length", "context", "failed"; "" while it continues. Static. */
TOL_API const char *tol_text_end_name(enum tol_text_end end);

#endif
