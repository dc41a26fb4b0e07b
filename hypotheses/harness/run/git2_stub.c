/*
 * Replaces libgit2 in statically linked test programs.
 *
 * Criterion uses libgit2 for one thing: to show the difference of two strings in a failed
 * comparison, through three functions. The library itself needs a dozen others, up to
 * Kerberos. This shows the two strings one below the other instead, and a test program then runs
 * wherever libc and libnanomsg are. The declarations are libgit2 1.5's, as far as they are used.
 */
#include <stddef.h>
#include <string.h>

int git_libgit2_init(void);
int git_libgit2_shutdown(void);

int git_libgit2_init(void) {
    return 1;
}

int git_libgit2_shutdown(void) {
    return 0;
}

typedef struct {
    int old_start, old_lines, new_start, new_lines;
    size_t header_len;
    char header[128];
} git_diff_hunk;

typedef struct {
    char origin; /* '-' or '+' */
    int old_lineno, new_lineno, num_lines;
    size_t content_len;
    long long content_offset;
    const char *content;
} git_diff_line;

typedef int hunk_callback(const void *delta, const git_diff_hunk *hunk, void *payload);
typedef int line_callback(const void *delta, const git_diff_hunk *hunk, const git_diff_line *line,
                          void *payload);

int git_diff_buffers(const void *old_buffer, size_t old_bytes, const char *old_path,
                     const void *new_buffer, size_t new_bytes, const char *new_path,
                     const void *options, void *file, void *binary, hunk_callback *hunk_seen,
                     line_callback *line_seen, void *payload);

/* Gives each line of a text to the callback. */
static int give_lines(const char *text, size_t bytes, char origin, const git_diff_hunk *hunk,
                      line_callback *line_seen, void *payload) {
    int number = 1, result = 0;
    for (size_t at = 0; at < bytes && result == 0; number++) {
        const char *end = memchr(text + at, '\n', bytes - at);
        size_t length = end != NULL ? (size_t)(end - text) + 1 - at : bytes - at;
        git_diff_line line = {.origin = origin,
                              .old_lineno = origin == '-' ? number : -1,
                              .new_lineno = origin == '+' ? number : -1,
                              .num_lines = 1,
                              .content_len = length,
                              .content = text + at};
        result = line_seen(NULL, hunk, &line, payload);
        at += length;
    }
    return result;
}

int git_diff_buffers(const void *old_buffer, size_t old_bytes, const char *old_path,
                     const void *new_buffer, size_t new_bytes, const char *new_path,
                     const void *options, void *file, void *binary, hunk_callback *hunk_seen,
                     line_callback *line_seen, void *payload) {
    (void)old_path, (void)new_path, (void)options, (void)file, (void)binary;
    git_diff_hunk hunk = {.old_start = 1, .new_start = 1};
    int result = hunk_seen != NULL ? hunk_seen(NULL, &hunk, payload) : 0;
    if (result != 0 || line_seen == NULL) return result;
    result = give_lines(old_buffer, old_bytes, '-', &hunk, line_seen, payload);
    if (result != 0) return result;
    return give_lines(new_buffer, new_bytes, '+', &hunk, line_seen, payload);
}
