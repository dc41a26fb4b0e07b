/*
 * Fuzz target: a chat template of any bytes renders a conversation, or is refused with a message.
 * The input up to the first NUL is the template; what follows each NUL is one message of the
 * conversation. A template without tags renders as itself. The same input gives the same text,
 * unless the template reads the clock.
 */
#include "fuzz/fuzz_input.h"

#include "chat_template.h"
#include "tollens.h"

#include <string.h>

enum { MESSAGES = 6 };

/* Cuts the messages off the input. Returns how many there are. */
static size_t chat_messages(const uint8_t *data, size_t size, struct tol_chat_message *messages) {
    static const char *const roles[] = {"system", "user", "assistant"};
    size_t count = 0;
    const uint8_t *end = memchr(data, 0, size);
    while (end != NULL && count < MESSAGES) {
        const char *begin = (const char *)end + 1;
        const size_t left = size - (size_t)(end + 1 - data);
        end = left > 0 ? memchr(begin, 0, left) : NULL;
        messages[count] = (struct tol_chat_message){
            roles[count == 0 ? 0 : 1 + (count + 1) % 2],
            {begin, end != NULL ? (size_t)((const char *)end - begin) : left}};
        count++;
    }
    return count;
}

static bool chat_is_plain(struct tol_gguf_text source) {
    return memchr(source.bytes, '{', source.count) == NULL &&
           memchr(source.bytes, '\r', source.count) == NULL;
}

/* Jinja drops one line end at the end of a template. */
static void chat_check_plain(struct tol_gguf_text source, const char *text, size_t bytes) {
    const bool ends = source.count > 0 && source.bytes[source.count - 1] == '\n';
    FUZZ_HOLDS(bytes == source.count - ends && memcmp(text, source.bytes, bytes) == 0);
}

static void chat_check_again(struct tol_gguf_text source, const struct tol_chat *chat,
                             const char *text, size_t bytes) {
    static const char clock[] = "strftime_now";
    char *again = NULL;
    size_t again_bytes = 0;
    if (memmem(source.bytes, source.count, clock, sizeof clock - 1) != NULL) return;
    FUZZ_HOLDS(tol_chat_render(source, chat, &again, &again_bytes) == TOL_OK);
    FUZZ_HOLDS(again_bytes == bytes && memcmp(again, text, bytes) == 0);
    free(again);
}

static void chat_check_refusal(tol_status status, const char *text) {
    FUZZ_HOLDS(status == TOL_UNSUPPORTED || status == TOL_INVALID_FILE ||
               status == TOL_INVALID_ARGUMENT || status == TOL_OVER_LIMIT);
    FUZZ_HOLDS(text == NULL && strstr(tol_message(), "chat template") != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct tol_chat_message messages[MESSAGES];
    const uint8_t *end = memchr(data, 0, size);
    const size_t count = end != NULL ? (size_t)(end - data) : size;
    char *exact = malloc(count > 0 ? count : 1), *text = NULL; /* a read beyond its end is found */
    size_t bytes = 0;
    FUZZ_HOLDS(exact != NULL);
    memcpy(exact, data, count);
    const struct tol_gguf_text source = {exact, count};
    const struct tol_chat chat = {.messages = messages,
                                  .count = chat_messages(data, size, messages),
                                  .adds_prompt = size % 2 == 0,
                                  .bos = {"<s>", 3},
                                  .eos = {"</s>", 4}};
    const tol_status status = tol_chat_render(source, &chat, &text, &bytes);
    if (status == TOL_OK) {
        FUZZ_HOLDS(text != NULL && text[bytes] == '\0');
        if (chat_is_plain(source)) chat_check_plain(source, text, bytes);
        chat_check_again(source, &chat, text, bytes);
    } else {
        chat_check_refusal(status, text);
    }
    free(text);
    free(exact);
    return 0;
}
