/*
 * Buffers that grow, a head of three words, and writes that raise no signal.
 */
#include "guard_frame.h"

#include "tollens/guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_MAX = 64, CHUNK = 1 << 16, SHOWN = 60 };

static const char *const words[] = {"hello", "beat", "part", "job", "done", "fail", "fault"};

/* ---- reading ---- */

void guard_input_clear(struct guard_input *input) {
    free(input->bytes);
    *input = (struct guard_input){.bytes = NULL};
}

tol_status guard_input_read(struct guard_input *input, int file) {
    tol_status status = TOL_OK;
    if (input->begin > 0) {
        memmove(input->bytes, input->bytes + input->begin, input->end - input->begin);
        input->end -= input->begin;
        input->begin = 0;
    }
    if (input->room - input->end < CHUNK) {
        const size_t room = 2 * input->end + 2 * CHUNK;
        char *grown = realloc(input->bytes, room);
        TOL_CHECK(grown != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu bytes of a worker's output", room);
        input->bytes = grown;
        input->room = room;
    }
    const ssize_t got = read(file, input->bytes + input->end, input->room - input->end);
    if (got > 0) input->end += (size_t)got;
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) input->is_over = true;
out:
    return status;
}

/* A decimal number without a sign, up to 19 digits, and the character that must follow it. */
static bool guard_frame_read_number(const char **text, const char *end, char after,
                                    uint64_t *number) {
    const char *at = *text;
    for (*number = 0; at < end && *at >= '0' && *at <= '9' && at - *text < 19; at++) {
        *number = *number * 10 + (uint64_t)(*at - '0');
    }
    if (at == *text || at >= end || *at != after) return false;
    *text = at + 1;
    return true;
}

/* What is not a frame, as people can read it. */
static enum guard_found guard_frame_broken(const char *bytes, size_t count, char *why,
                                           size_t room) {
    char shown[SHOWN + 1];
    size_t length = 0;
    while (length < count && length < SHOWN && bytes[length] != '\n') {
        const char byte = bytes[length];
        shown[length++] = byte >= ' ' && byte <= '~' ? byte : '?';
    }
    shown[length] = '\0';
    snprintf(why, room, "its output is not a frame: \"%s\"", shown);
    return GUARD_BROKEN;
}

static bool read_head(const char *text, size_t length, struct guard_frame *frame, uint64_t *count) {
    const char *end = text + length;
    for (int word = 0; word < GUARD_WORDS; word++) {
        const size_t letters = strlen(words[word]);
        if (length <= letters || memcmp(text, words[word], letters) != 0 || text[letters] != ' ') {
            continue;
        }
        text += letters + 1;
        frame->word = (enum guard_word)word;
        return guard_frame_read_number(&text, end, ' ', &frame->number) &&
               guard_frame_read_number(&text, end, '\n', count) && text == end &&
               *count <= TOL_GUARD_BYTES_MAX;
    }
    return false;
}

/* Returns bytes of the input. Their NUL replaces the frame's line break. */
static void guard_frame_hand_out(struct guard_input *input, struct guard_frame *frame, size_t begin,
                                 size_t count, size_t next) {
    frame->bytes = input->bytes + begin;
    frame->count = count;
    input->bytes[begin + count] = '\0';
    input->begin = next;
}

enum guard_found guard_frame_next(struct guard_input *input, struct guard_frame *frame, char *why,
                                  size_t bytes) {
    const size_t count = input->end - input->begin;
    if (count == 0) return GUARD_NOTHING_YET;
    const char *text = input->bytes + input->begin;
    const char *line = memchr(text, '\n', count < HEAD_MAX ? count : HEAD_MAX);
    uint64_t wanted = 0;
    if (line == NULL && count < HEAD_MAX) return GUARD_NOTHING_YET;
    const size_t head = line != NULL ? (size_t)(line - text) + 1 : 0;
    if (head == 0 || !read_head(text, head, frame, &wanted)) {
        return guard_frame_broken(text, count, why, bytes);
    }
    if (count < head + wanted + 1) return GUARD_NOTHING_YET;
    if (text[head + wanted] != '\n') return guard_frame_broken(text, count, why, bytes);
    guard_frame_hand_out(input, frame, input->begin + head, (size_t)wanted,
                         input->begin + head + (size_t)wanted + 1);
    return GUARD_FOUND;
}

enum guard_found guard_line_next(struct guard_input *input, struct guard_frame *frame) {
    const size_t count = input->end - input->begin;
    const char *text = input->bytes + input->begin;
    const char *line = count > 0 ? memchr(text, '\n', count) : NULL;
    if (line == NULL) return count > TOL_GUARD_BYTES_MAX ? GUARD_BROKEN : GUARD_NOTHING_YET;
    *frame = (struct guard_frame){.word = GUARD_OK};
    guard_frame_hand_out(input, frame, input->begin, (size_t)(line - text),
                         input->begin + (size_t)(line - text) + 1);
    return GUARD_FOUND;
}

/* ---- writing ---- */

void guard_output_clear(struct guard_output *output) {
    free(output->bytes);
    *output = (struct guard_output){.bytes = NULL};
}

static tol_status guard_frame_make_room(struct guard_output *output, size_t more) {
    tol_status status = TOL_OK;
    if (output->room - output->end >= more) return TOL_OK;
    char *grown = realloc(output->bytes, 2 * (output->end + more));
    TOL_CHECK(grown != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu bytes for a worker", more);
    output->bytes = grown;
    output->room = 2 * (output->end + more);
out:
    return status;
}

static void guard_frame_append(struct guard_output *output, const char *bytes, size_t count) {
    if (count > 0) memcpy(output->bytes + output->end, bytes, count);
    output->end += count;
}

tol_status guard_output_frame(struct guard_output *output, const struct guard_frame *frame) {
    tol_status status = TOL_OK;
    char head[HEAD_MAX];
    const int length = snprintf(head, sizeof head, "%s %llu %zu\n", words[frame->word],
                                (unsigned long long)frame->number, frame->count);
    TOL_TRY(guard_frame_make_room(output, (size_t)length + frame->count + 1));
    guard_frame_append(output, head, (size_t)length);
    guard_frame_append(output, frame->bytes, frame->count);
    guard_frame_append(output, "\n", 1);
out:
    return status;
}

tol_status guard_output_line(struct guard_output *output, const char *bytes, size_t count) {
    tol_status status = TOL_OK;
    TOL_TRY(guard_frame_make_room(output, count + 1));
    guard_frame_append(output, bytes, count);
    guard_frame_append(output, "\n", 1);
out:
    return status;
}

bool guard_output_write(struct guard_output *output, int file) {
    sigset_t pipe, before, waiting;
    bool is_there = true;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&waiting);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    while (output->begin < output->end) {
        const ssize_t part =
            write(file, output->bytes + output->begin, output->end - output->begin);
        if (part > 0) output->begin += (size_t)part;
        if (part < 0 && errno == EINTR) continue;
        if (part < 0 && errno != EAGAIN) is_there = false;
        if (part <= 0) break;
    }
    /* SIGPIPE is pending for this thread, and is consumed before the mask is restored. */
    if (!is_there && !sigismember(&waiting, SIGPIPE)) {
        sigtimedwait(&pipe, NULL, &(struct timespec){0, 0});
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (output->begin == output->end) output->begin = output->end = 0;
    return is_there;
}
