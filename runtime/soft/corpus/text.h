/*
 * Strings and memory: numbers to text and back, reversal, structures copied and cleared whole.
 */
#ifndef CORPUS_TEXT_H
#define CORPUS_TEXT_H

#include "corpus.h"
#include <string.h>

struct text_record {
    char name[20];
    int32_t value;
    uint8_t digits[11];
    double scaled;
};

CORPUS_FN uint32_t text_length(const char *text) {
    uint32_t length = 0;
    while (text[length] != '\0') length++;
    return length;
}

CORPUS_FN void text_of(int32_t number, char *text) {
    char digits[12];
    uint32_t count = 0, rest = number < 0 ? 0u - (uint32_t)number : (uint32_t)number;
    do {
        digits[count++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (number < 0) *text++ = '-';
    while (count > 0) *text++ = digits[--count];
    *text = '\0';
}

CORPUS_FN int32_t text_number(const char *text) {
    int32_t sign = 1;
    uint32_t number = 0;
    if (*text == '-') {
        sign = -1;
        text++;
    }
    for (; *text >= '0' && *text <= '9'; text++) number = number * 10 + (uint32_t)(*text - '0');
    return (int32_t)((uint32_t)sign * number);
}

CORPUS_FN int text_compare(const char *a, const char *b) {
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return (int)(uint8_t)*a - (int)(uint8_t)*b;
}

CORPUS_FN void text_fill(struct text_record *record, int32_t value) {
    struct text_record own, copy;
    memset(&own, 0, sizeof own);
    memset(&copy, 0xee, sizeof copy);
    text_of(value, own.name);
    own.value = (int32_t)((uint32_t)text_number(own.name) * 2);
    for (uint32_t i = 0; i < 11; i++) own.digits[i] = (uint8_t)(own.name[i % 5] ^ (char)i);
    own.scaled = value * 0.25;
    memcpy(&copy, &own, sizeof copy);
    for (uint32_t i = 0, j = text_length(copy.name); i + 1 < j; i++, j--) {
        char kept = copy.name[i];
        copy.name[i] = copy.name[j - 1];
        copy.name[j - 1] = kept;
    }
    memcpy(copy.digits, own.digits + (uint32_t)value % 4 * 2, 3);
    copy.value += text_compare(own.name, copy.name);
    *record = copy;
}

#endif
