/*
 * printf in kernels. The arguments are consecutive in memory, each at a multiple of its size, after
 * the default promotions of C. Source: CUDA C++ Programming Guide, "Formatted Output" and
 * "Assertion".
 */
#include "print.h"

#include "tollens/cuda_abi.h"
#include "access.h"
#include "finding.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A GPU's buffer of 1 MiB holds formats and arguments; this one holds the formatted text. When it
 * is full, the oldest text is dropped, as there. */
enum { GATHERED_MAX = 16 << 20, TEXT_MAX = 1 << 16, ARGUMENTS_MAX = 32 };

struct piece {
    struct piece *next;
    FILE *stream;
    size_t length;
    char text[];
};

static struct {
    pthread_mutex_t lock;
    struct piece *first, **end;
    size_t bytes;
} gathered = {.lock = PTHREAD_MUTEX_INITIALIZER, .end = &gathered.first};

static void print_gather(FILE *stream, const char *text, size_t length) {
    struct piece *piece = malloc(sizeof *piece + length);
    if (piece == NULL || length == 0) {
        free(piece);
        return;
    }
    piece->next = NULL;
    piece->stream = stream;
    piece->length = length;
    memcpy(piece->text, text, length);
    pthread_mutex_lock(&gathered.lock);
    *gathered.end = piece;
    gathered.end = &piece->next;
    gathered.bytes += length;
    while (gathered.bytes > GATHERED_MAX && gathered.first != piece) {
        struct piece *oldest = gathered.first;
        gathered.first = oldest->next;
        gathered.bytes -= oldest->length;
        free(oldest);
    }
    pthread_mutex_unlock(&gathered.lock);
}

void soft_print_flush(void) {
    pthread_mutex_lock(&gathered.lock);
    while (gathered.first != NULL) {
        struct piece *piece = gathered.first;
        fwrite(piece->text, 1, piece->length, piece->stream);
        gathered.first = piece->next;
        free(piece);
    }
    gathered.end = &gathered.first;
    gathered.bytes = 0;
    pthread_mutex_unlock(&gathered.lock);
}

/* One thread's printf while it is formatted. */
struct printing {
    struct soft_warp *warp;
    const struct soft_instruction *in;
    uint32_t lane;
    uint64_t format, arguments; /* addresses of what is read next */
    int count;
    char text[TEXT_MAX]; /* so far */
    size_t length;
    char part[TEXT_MAX]; /* a conversion's */
};

static bool print_read_bytes(struct printing *p, uint64_t address, unsigned bytes, void *value) {
    struct soft_place place;
    if (!soft_access_find(p->warp, p->in, p->lane, address, bytes, SOFT_SPACE_GENERIC, &place)) {
        return false;
    }
    soft_access_check_read(p->warp, p->in, p->lane, address, bytes, &place);
    memcpy(value, place.host, bytes);
    return true;
}

static void print_put(struct printing *p, const char *text, size_t length) {
    size_t room = sizeof p->text - p->length;
    if (length > room) length = room;
    memcpy(p->text + p->length, text, length);
    p->length += length;
}

static bool next_argument(struct printing *p, unsigned bytes, uint64_t *value) {
    p->arguments = (p->arguments + bytes - 1) / bytes * bytes;
    *value = 0;
    if (!print_read_bytes(p, p->arguments, bytes, value)) return false;
    p->arguments += bytes;
    p->count++;
    return true;
}

/* A string in device memory. precision: the maximum number of characters; below 0: all. */
static bool print_put_string(struct printing *p, const char *before, uint64_t address,
                             int precision) {
    char text[4096];
    size_t length = 0;
    while (length < sizeof text - 1 && (precision < 0 || length < (size_t)precision)) {
        if (!print_read_bytes(p, address + length, 1, &text[length])) return false;
        if (text[length] == '\0') break;
        length++;
    }
    text[length] = '\0';
    snprintf(p->part, sizeof p->part, before, text);
    print_put(p, p->part, strlen(p->part));
    return true;
}

/* The text between "%" and the conversion: flags, width, precision, size. */
struct conversion {
    char flags[8];
    int width, precision; /* -1: not given */
    unsigned bytes;       /* of a number: 8; 4; 2 and 1, which are passed as 4 */
    char letter;
};

static bool print_read_number(struct printing *p, char *next, int *number) {
    if (*next == '*') {
        uint64_t value = 0;
        if (!next_argument(p, 4, &value) || !print_read_bytes(p, p->format++, 1, next))
            return false;
        *number = (int32_t)(uint32_t)value;
        return true;
    }
    int sum = 0;
    while (*next >= '0' && *next <= '9') {
        if (sum < 100000) sum = 10 * sum + (*next - '0');
        if (!print_read_bytes(p, p->format++, 1, next)) return false;
    }
    *number = sum;
    return true;
}

static bool read_conversion(struct printing *p, struct conversion *conversion) {
    char next = '\0';
    size_t flags = 0;
    *conversion = (struct conversion){.width = -1, .precision = -1};
    if (!print_read_bytes(p, p->format++, 1, &next)) return false;
    while (next != '\0' && strchr("#0- +", next) != NULL) {
        if (flags < sizeof conversion->flags - 1) conversion->flags[flags++] = next;
        if (!print_read_bytes(p, p->format++, 1, &next)) return false;
    }
    if (next == '*' || (next >= '1' && next <= '9')) {
        if (!print_read_number(p, &next, &conversion->width)) return false;
    }
    if (next == '.') {
        if (!print_read_bytes(p, p->format++, 1, &next)) return false;
        if (!print_read_number(p, &next, &conversion->precision)) return false;
    }
    conversion->bytes = 4;
    while (next != '\0' && strchr("hlzjt", next) != NULL) {
        /* A long is of 64 bits, as on the host. */
        conversion->bytes = next != 'h' ? 8 : conversion->bytes > 2 ? 2 : 1;
        if (!print_read_bytes(p, p->format++, 1, &next)) return false;
    }
    conversion->letter = next;
    return true;
}

/* The same conversion for the host, with the size of the host's argument. */
static void write_conversion(const struct conversion *conversion, const char *size, char *text,
                             size_t bytes) {
    char width[16] = "", precision[16] = "";
    int most = TEXT_MAX - 1;
    int wide = conversion->width > most ? most : conversion->width;
    int precise = conversion->precision > most ? most : conversion->precision;
    /* A negative width by '*' is a flag; a negative precision is none. */
    if (conversion->width < -1) {
        snprintf(width, sizeof width, "-%d", -wide < most ? -wide : most);
    } else if (conversion->width >= 0) {
        snprintf(width, sizeof width, "%d", wide);
    }
    if (conversion->precision >= 0) snprintf(precision, sizeof precision, ".%d", precise);
    snprintf(text, bytes, "%%%s%s%s%s%c", conversion->flags, width, precision, size,
             conversion->letter);
}

/* An integer of a number of bytes; less than four are passed as four. */
static bool next_integer(struct printing *p, unsigned bytes, uint64_t *value) {
    if (!next_argument(p, bytes == 8 ? 8 : 4, value)) return false;
    if (bytes < 8) *value &= (1ull << 8 * bytes) - 1;
    return true;
}

static bool print_convert(struct printing *p, const struct conversion *conversion) {
    char *done = p->part, how[64];
    uint64_t value = 0;
    double number = 0;
    switch (conversion->letter) {
    case 'd':
    case 'i':
        if (!next_integer(p, conversion->bytes, &value)) return false;
        write_conversion(conversion, "ll", how, sizeof how);
        value <<= 64 - 8 * conversion->bytes;
        snprintf(done, sizeof p->part, how, (long long)value >> (64 - 8 * conversion->bytes));
        break;
    case 'u':
    case 'o':
    case 'x':
    case 'X':
        if (!next_integer(p, conversion->bytes, &value)) return false;
        write_conversion(conversion, "ll", how, sizeof how);
        snprintf(done, sizeof p->part, how, (unsigned long long)value);
        break;
    case 'c':
        if (!next_argument(p, 4, &value)) return false;
        write_conversion(conversion, "", how, sizeof how);
        /* A NUL is printed like any other character. */
        print_put(p, done, (size_t)snprintf(done, sizeof p->part, how, (int)value));
        return true;
    case 'p':
        if (!next_argument(p, 8, &value)) return false;
        write_conversion(conversion, "", how, sizeof how);
        snprintf(done, sizeof p->part, how, (void *)(uintptr_t)value);
        break;
    case 's':
        if (!next_argument(p, 8, &value)) return false;
        write_conversion(conversion, "", how, sizeof how);
        return print_put_string(p, how, value, conversion->precision);
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
        if (!next_argument(p, 8, &value)) return false;
        memcpy(&number, &value, sizeof number);
        write_conversion(conversion, "", how, sizeof how);
        snprintf(done, sizeof p->part, how, number);
        break;
    default: {
        /* No conversion at all: it is printed unchanged. */
        char letter[2] = {conversion->letter, '\0'};
        struct conversion percent = *conversion;
        percent.letter = '%';
        if (conversion->letter == '%') {
            print_put(p, "%", 1);
            return true;
        }
        write_conversion(&percent, "", how, sizeof how);
        size_t length = strlen(how);
        print_put(p, how, length - 1);
        print_put(p, letter, strlen(letter));
        return true;
    }
    }
    print_put(p, done, strlen(done));
    return true;
}

/* false: an address of the format or its arguments is invalid, and the launch has failed. */
static bool print_all(struct printing *p) {
    for (;;) {
        char next = '\0';
        if (!print_read_bytes(p, p->format++, 1, &next)) return false;
        if (next == '\0') return true;
        if (next != '%' || p->count >= ARGUMENTS_MAX) {
            print_put(p, &next, 1);
            continue;
        }
        struct conversion conversion;
        if (!read_conversion(p, &conversion)) return false;
        if (conversion.letter == '\0') return true;
        if (!print_convert(p, &conversion)) return false;
    }
}

static uint64_t lane_of(const struct soft_warp *warp, const struct soft_instruction *in,
                        unsigned argument, uint32_t lane, unsigned bytes) {
    uint64_t value = 0;
    uint32_t slot = warp->split->frame->code->operands[in->more + argument];
    memcpy(&value, warp->slots + slot + (size_t)bytes * lane, bytes);
    return value;
}

const struct soft_instruction *soft_print(struct soft_warp *warp,
                                          const struct soft_instruction *in) {
    struct printing *p = malloc(sizeof *p);
    const struct soft_instruction *next = in + 1;
    for (uint32_t left = warp->mask; left != 0; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        uint64_t format = lane_of(warp, in, 0, lane, 8);
        int32_t result = p == NULL ? -2 : -1;
        if (p != NULL && format != 0) {
            p->warp = warp;
            p->in = in;
            p->lane = lane;
            p->format = format;
            p->arguments = lane_of(warp, in, 1, lane, 8);
            p->count = 0;
            p->length = 0;
            if (!print_all(p)) {
                next = NULL;
                break;
            }
            print_gather(stdout, p->text, p->length);
            result = p->count;
        }
        memcpy(warp->slots + in->d + 4 * (size_t)lane, &result, 4);
    }
    free(p);
    return next;
}

/* The text at an address, of a lane that is about to fail anyway. */
static bool print_read_text(struct printing *p, uint64_t address, char *text, size_t bytes) {
    size_t length = 0;
    text[0] = '\0';
    while (address != 0 && length < bytes - 1) {
        if (!print_read_bytes(p, address + length, 1, &text[length])) return false;
        if (text[length] == '\0') return true;
        length++;
    }
    text[length] = '\0';
    return true;
}

const struct soft_instruction *soft_print_assertion(struct soft_warp *warp,
                                                    const struct soft_instruction *in) {
    struct printing *p = malloc(sizeof *p);
    char assertion[512] = "", file[512] = "", function[512] = "", line[2048];
    const struct soft_cta *cta = warp->cta;
    const uint32_t *block = cta->launch->block;
    for (uint32_t left = warp->mask; p != NULL && left != 0; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left), thread = warp->index * SOFT_LANES + lane;
        p->warp = warp;
        p->in = in;
        p->lane = lane;
        if (!print_read_text(p, lane_of(warp, in, 0, lane, 8), assertion, sizeof assertion) ||
            !print_read_text(p, lane_of(warp, in, 1, lane, 8), file, sizeof file) ||
            !print_read_text(p, lane_of(warp, in, 3, lane, 8), function, sizeof function)) {
            free(p);
            return NULL;
        }
        int length =
            snprintf(line, sizeof line,
                     "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
                     file, (unsigned)lane_of(warp, in, 2, lane, 4), function, cta->index[0],
                     cta->index[1], cta->index[2], thread % block[0], thread / block[0] % block[1],
                     thread / block[0] / block[1], assertion);
        print_gather(stderr, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
    }
    free(p);
    return soft_launch_fail(warp, in, CUDA_ERROR_ASSERT, warp->mask, 0, "assertion `%s` failed",
                            assertion);
}
