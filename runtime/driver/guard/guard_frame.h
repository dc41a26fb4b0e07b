/*
 * Frames: what a guard and its workers write to each other, and their parsing.
 *
 *     WORD NUMBER COUNT\n
 *     COUNT bytes\n
 *
 * Text, so that a shell or a person can write one; counted, so that the bytes may be any. Both
 * sides use this file. A count is checked before it is used. README.md describes the protocol.
 */
#ifndef TOLLENS_GUARD_FRAME_H
#define TOLLENS_GUARD_FRAME_H

#include "core/check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum guard_word {
    GUARD_HELLO, /* from the worker: the number is the protocol's, 1; the bytes, what it is */
    GUARD_BEAT,  /* from the worker: it lives */
    GUARD_KEEP,  /* in both directions, "part": what a worker keeps of a job for its successor */
    GUARD_WORK,  /* to the worker, "job": after the parts of its predecessors */
    GUARD_OK,    /* from the worker, "done": the answer */
    GUARD_NO,    /* from the worker, "fail": the job is at fault; why */
    GUARD_BAD,   /* from the worker, "fault": the device is at fault; why */
    GUARD_WORDS
};

struct guard_frame {
    enum guard_word word;
    uint64_t number;
    const char *bytes; /* in the input; followed by a NUL; valid until the next read */
    size_t count;
};

/* The input that was read and not consumed. All zero is empty; free it with guard_input_clear. */
struct guard_input {
    char *bytes;
    size_t begin, end, room;
    bool is_over; /* the other side has closed */
};

void guard_input_clear(struct guard_input *input);

/* Reads the available bytes once; blocks if the descriptor does. At the end of file, or on an
 * error, is_over is set. TOL_OUT_OF_HOST_MEMORY. */
tol_status guard_input_read(struct guard_input *input, int file);

enum guard_found { GUARD_NOTHING_YET, GUARD_FOUND, GUARD_BROKEN };

/* Takes the next frame, or the next line. GUARD_BROKEN: the input is not a frame; why gets a clause
 * about it, up to bytes of it. */
enum guard_found guard_frame_next(struct guard_input *input, struct guard_frame *frame, char *why,
                                  size_t bytes);
enum guard_found guard_line_next(struct guard_input *input, struct guard_frame *frame);

/* What is to be written. All zero is empty. */
struct guard_output {
    char *bytes;
    size_t begin, end, room;
};

void guard_output_clear(struct guard_output *output);
tol_status guard_output_frame(struct guard_output *output, const struct guard_frame *frame);
tol_status guard_output_line(struct guard_output *output, const char *bytes, size_t count);

/* Writes as much as the descriptor accepts, without SIGPIPE. false: the other side is gone. */
bool guard_output_write(struct guard_output *output, int file);

#endif
