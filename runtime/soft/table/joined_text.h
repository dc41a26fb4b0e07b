/*
 * Several PTX texts in one file: each begins with a line "//// NAME: WORDS", a comment of PTX, and
 * ends before the next such line. What is before the first is not part of any text.
 */
#ifndef SOFT_JOINED_TEXT_H
#define SOFT_JOINED_TEXT_H

/* One of the texts, in the memory of the file's text. */
struct joined_text {
    char name[64];
    const char *text; /* with its first line, as line numbers count it; NUL-terminated */
};

/* The place of a file's first text; NULL: it has none. */
char *joined_text_first(char *file);

/* Ends the text at a place with a NUL where the next one begins, and describes it in *one. Returns
 * the place of the next; NULL: this is the last. */
char *joined_text_cut(char *place, struct joined_text *one);

#endif
