/*
 * A stack of values, and a table of the opcodes.
 */
#include "trace_pickle.h"

#include "files/atomic_file.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_VALUES = 1024, PROTOCOL_MIN = 2, PROTOCOL_MAX = 5 };

/* A value. It owns a reference to its JSON. */
struct pickle_value {
    json_t *json;
    unsigned depth;
    bool is_part; /* of another value: it must not change any more */
};

/* All values, so that none is lost when a pickle is refused. */
struct pickle_chunk {
    struct pickle_chunk *next;
    size_t used;
    struct pickle_value values[CHUNK_VALUES];
};

struct pickle {
    const char *path;
    const unsigned char *bytes;
    size_t count, at, opcode_at;
    const struct pickle_opcode *opcode;
    struct pickle_chunk *chunks;
    struct pickle_value **stack; /* NULL: a mark */
    size_t height, stack_room;
    struct pickle_value **memo; /* NULL: not set */
    size_t memo_room, memo_next;
    bool is_done;
};

struct pickle_opcode {
    unsigned char code;
    const char *name;
    bool (*run)(struct pickle *p, size_t argument);
    size_t argument;
};

static bool pickle_refuse(const struct pickle *p, const char *what) {
    return hyp_fail("%s byte %zu: %s%s%s", p->path, p->opcode_at,
                    p->opcode != NULL ? p->opcode->name : "", p->opcode != NULL ? ": " : "", what);
}

/* ---- the stack ------------------------------------------------------------------------------- */

static bool pickle_push(struct pickle *p, struct pickle_value *value) {
    if (p->height == p->stack_room) {
        const size_t room = p->stack_room > 0 ? 2 * p->stack_room : 256;
        struct pickle_value **more = realloc(p->stack, room * sizeof *more);
        if (more == NULL) return pickle_refuse(p, "out of host memory");
        p->stack = more;
        p->stack_room = room;
    }
    p->stack[p->height++] = value;
    return true;
}

/* Takes over the reference. */
static bool pickle_push_json(struct pickle *p, json_t *json, unsigned depth) {
    struct pickle_chunk *chunk = p->chunks;
    if (json == NULL) return pickle_refuse(p, "out of host memory");
    if (chunk == NULL || chunk->used == CHUNK_VALUES) {
        chunk = malloc(sizeof *chunk);
        if (chunk == NULL) {
            json_decref(json);
            return pickle_refuse(p, "out of host memory");
        }
        chunk->next = p->chunks;
        chunk->used = 0;
        p->chunks = chunk;
    }
    struct pickle_value *value = &chunk->values[chunk->used++];
    *value = (struct pickle_value){json, depth, false};
    return pickle_push(p, value);
}

/* The values above the last mark: *first is the place of the lowest. The mark goes. */
static bool pickle_take_marked(struct pickle *p, size_t *first, size_t *count) {
    size_t at = p->height;
    while (at > 0 && p->stack[at - 1] != NULL) at--;
    if (at == 0) return pickle_refuse(p, "the stack has no mark");
    *first = at;
    *count = p->height - at;
    p->height = at - 1;
    return true;
}

/* The top count values, which go. */
static bool pickle_take(struct pickle *p, size_t count, size_t *first) {
    if (count > p->height) return pickle_refuse(p, "the stack is too short");
    *first = p->height - count;
    for (size_t i = *first; i < p->height; i++) {
        if (p->stack[i] == NULL) return pickle_refuse(p, "the stack is too short");
    }
    p->height = *first;
    return true;
}

/* The value below the taken ones, which is to grow. */
static struct pickle_value *pickle_target(struct pickle *p, bool is_object) {
    struct pickle_value *target = p->height > 0 ? p->stack[p->height - 1] : NULL;
    if (target == NULL ||
        !(is_object ? json_is_object(target->json) : json_is_array(target->json))) {
        pickle_refuse(p, is_object ? "there is no dictionary to add to"
                                   : "there is no list to add to");
        return NULL;
    }
    return target;
}

/* Before a value becomes a part of another. */
static bool pickle_is_fit(struct pickle *p, struct pickle_value *whole, struct pickle_value *part) {
    part->is_part = true;
    if (whole->is_part) return pickle_refuse(p, "a value that is part of another one changes");
    if (part->depth + 1 > whole->depth) whole->depth = part->depth + 1;
    return whole->depth <= HYP_PICKLE_DEPTH_MAX || pickle_refuse(p, "values nest too deep");
}

static bool pickle_append_all(struct pickle *p, struct pickle_value *list, size_t first,
                              size_t count) {
    for (size_t i = first; i < first + count; i++) {
        if (!pickle_is_fit(p, list, p->stack[i])) return false;
        if (json_array_append(list->json, p->stack[i]->json) != 0) {
            return pickle_refuse(p, "out of host memory");
        }
    }
    return true;
}

static bool pickle_set_all(struct pickle *p, struct pickle_value *dictionary, size_t first,
                           size_t count) {
    if (count % 2 != 0) return pickle_refuse(p, "a key has no value");
    for (size_t i = first; i < first + count; i += 2) {
        const json_t *key = p->stack[i]->json;
        const char *name = json_string_value(key);
        if (name == NULL || strlen(name) != json_string_length(key)) {
            return pickle_refuse(p, "a key must be a text");
        }
        if (!pickle_is_fit(p, dictionary, p->stack[i + 1])) return false;
        if (json_object_set_nocheck(dictionary->json, name, p->stack[i + 1]->json) != 0) {
            return pickle_refuse(p, "out of host memory");
        }
    }
    return true;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static bool pickle_cut_short(struct pickle *p) {
    return hyp_fail("%s byte %zu: the pickle is cut short", p->path, p->count);
}

/* The next bytes of the file. */
static bool pickle_next(struct pickle *p, size_t count, const unsigned char **bytes) {
    if (count > p->count - p->at) return pickle_cut_short(p);
    *bytes = p->bytes + p->at;
    p->at += count;
    return true;
}

/* Little-endian, of at most 8 bytes. */
static bool pickle_number(struct pickle *p, size_t bytes, uint64_t *number) {
    const unsigned char *from = NULL;
    if (!pickle_next(p, bytes, &from)) return false;
    *number = 0;
    for (size_t i = 0; i < bytes; i++) *number |= (uint64_t)from[i] << (8 * i);
    return true;
}

/* ---- opcodes: simple values ------------------------------------------------------------------ */

static bool pickle_none(struct pickle *p, size_t unused) {
    (void)unused;
    return pickle_push_json(p, json_null(), 0);
}

static bool pickle_boolean(struct pickle *p, size_t value) {
    return pickle_push_json(p, json_boolean(value), 0);
}

static bool pickle_unsigned(struct pickle *p, size_t bytes) {
    uint64_t number = 0;
    return pickle_number(p, bytes, &number) &&
           pickle_push_json(p, json_integer((json_int_t)number), 0);
}

static bool pickle_signed(struct pickle *p, size_t bytes) {
    uint64_t number = 0;
    return pickle_number(p, bytes, &number) &&
           pickle_push_json(p, json_integer((int32_t)(uint32_t)number), 0);
}

/* A two's complement integer after its length, which takes the given number of bytes. */
static bool pickle_long(struct pickle *p, size_t bytes) {
    uint64_t length = 0, number = 0;
    const unsigned char *from = NULL;
    if (!pickle_number(p, bytes, &length) || !pickle_next(p, (size_t)length, &from)) return false;
    const unsigned char fill = length > 0 && from[length - 1] >= 0x80 ? 0xff : 0;
    for (size_t i = 0; i < 8; i++) {
        number |= (uint64_t)(i < length ? from[i] : fill) << (8 * i);
    }
    bool fits = number >> 63 == (fill != 0);
    for (size_t i = 8; i < length; i++) fits &= from[i] == fill;
    return pickle_push_json(p, fits ? json_integer((json_int_t)number) : json_null(), 0);
}

static bool pickle_float(struct pickle *p, size_t bytes) {
    const unsigned char *from = NULL;
    uint64_t number = 0;
    double value = 0;
    if (!pickle_next(p, bytes, &from)) return false;
    for (size_t i = 0; i < bytes; i++) number = number << 8 | from[i];
    memcpy(&value, &number, sizeof value);
    json_t *json = json_real(value); /* NULL for infinities and NaN */
    return pickle_push_json(p, json != NULL ? json : json_null(), 0);
}

/* Python may write lone surrogates, which are no UTF-8: names only have to compare. */
static bool pickle_text(struct pickle *p, size_t bytes) {
    uint64_t length = 0;
    const unsigned char *from = NULL;
    if (!pickle_number(p, bytes, &length)) return false;
    if (length > p->count) return pickle_cut_short(p);
    return pickle_next(p, (size_t)length, &from) &&
           pickle_push_json(p, json_stringn_nocheck((const char *)from, (size_t)length), 0);
}

/* ---- opcodes: lists, tuples, dictionaries ---------------------------------------------------- */

static bool pickle_mark(struct pickle *p, size_t unused) {
    (void)unused;
    return pickle_push(p, NULL);
}

static bool pickle_empty_list(struct pickle *p, size_t unused) {
    (void)unused;
    return pickle_push_json(p, json_array(), 1);
}

static bool pickle_empty_dictionary(struct pickle *p, size_t unused) {
    (void)unused;
    return pickle_push_json(p, json_object(), 1);
}

/* The values to add to another: the top count of them, or with 0 those above the mark. */
static bool pickle_take_some(struct pickle *p, size_t *first, size_t *count) {
    return *count > 0 ? pickle_take(p, *count, first) : pickle_take_marked(p, first, count);
}

static bool pickle_append(struct pickle *p, size_t count) {
    size_t first = 0;
    if (!pickle_take_some(p, &first, &count)) return false;
    struct pickle_value *list = pickle_target(p, false);
    return list != NULL && pickle_append_all(p, list, first, count);
}

static bool pickle_set(struct pickle *p, size_t count) {
    size_t first = 0;
    if (!pickle_take_some(p, &first, &count)) return false;
    struct pickle_value *dictionary = pickle_target(p, true);
    return dictionary != NULL && pickle_set_all(p, dictionary, first, count);
}

/* The taken values move up by one place, since the new one takes the place of the lowest. */
static bool pickle_collect(struct pickle *p, size_t first, size_t count, bool is_object) {
    struct pickle_value whole = {is_object ? json_object() : json_array(), 1, false};
    if (whole.json == NULL) return pickle_refuse(p, "out of host memory");
    if (is_object ? !pickle_set_all(p, &whole, first, count)
                  : !pickle_append_all(p, &whole, first, count)) {
        json_decref(whole.json);
        return false;
    }
    return pickle_push_json(p, whole.json, whole.depth);
}

static bool pickle_tuple(struct pickle *p, size_t count) {
    size_t first = 0;
    return pickle_take(p, count, &first) && pickle_collect(p, first, count, false);
}

static bool pickle_marked(struct pickle *p, size_t is_object) {
    size_t first = 0, count = 0;
    return pickle_take_marked(p, &first, &count) && pickle_collect(p, first, count, is_object != 0);
}

/* ---- opcodes: the stack, earlier values, the file -------------------------------------------- */

static bool pickle_pop(struct pickle *p, size_t unused) {
    (void)unused;
    if (p->height == 0) return pickle_refuse(p, "the stack is too short");
    p->height--;
    return true;
}

static bool pickle_pop_mark(struct pickle *p, size_t unused) {
    (void)unused;
    size_t first = 0, count = 0;
    return pickle_take_marked(p, &first, &count);
}

static bool pickle_duplicate(struct pickle *p, size_t unused) {
    (void)unused;
    size_t first = 0;
    if (!pickle_take(p, 1, &first)) return false;
    struct pickle_value *value = p->stack[first];
    return pickle_push(p, value) && pickle_push(p, value);
}

/* Each place of the memo takes at least two bytes of a file that a pickler wrote, so places beyond
 * the bytes of the file are refused, and the memo cannot be larger than the file allows. */
static bool pickle_keep(struct pickle *p, uint64_t place) {
    size_t first = 0;
    if (place >= p->count) return pickle_refuse(p, "the number of the value is too large");
    if (place >= p->memo_room) {
        size_t room = p->memo_room > 0 ? p->memo_room : 256;
        while (room <= place) room *= 2;
        struct pickle_value **more = realloc(p->memo, room * sizeof *more);
        if (more == NULL) return pickle_refuse(p, "out of host memory");
        memset(more + p->memo_room, 0, (room - p->memo_room) * sizeof *more);
        p->memo = more;
        p->memo_room = room;
    }
    if (!pickle_take(p, 1, &first)) return false;
    p->memo[place] = p->stack[first];
    return pickle_push(p, p->stack[first]);
}

static bool pickle_put(struct pickle *p, size_t bytes) {
    uint64_t place = 0;
    return pickle_number(p, bytes, &place) && pickle_keep(p, place);
}

/* The place is the number of values that the memo has. */
static bool pickle_memoize(struct pickle *p, size_t unused) {
    (void)unused;
    return pickle_keep(p, p->memo_next++);
}

static bool pickle_get(struct pickle *p, size_t bytes) {
    uint64_t place = 0;
    if (!pickle_number(p, bytes, &place)) return false;
    if (place >= p->memo_room || p->memo[place] == NULL) {
        return pickle_refuse(p, "there is no earlier value of this number");
    }
    return pickle_push(p, p->memo[place]);
}

static bool pickle_protocol(struct pickle *p, size_t unused) {
    (void)unused;
    uint64_t protocol = 0;
    if (!pickle_number(p, 1, &protocol)) return false;
    return (protocol >= PROTOCOL_MIN && protocol <= PROTOCOL_MAX) ||
           pickle_refuse(p, "the protocol must be 2 to 5");
}

/* A frame only says how many bytes may be read at once. */
static bool pickle_frame(struct pickle *p, size_t bytes) {
    uint64_t length = 0;
    if (!pickle_number(p, bytes, &length)) return false;
    return length <= p->count - p->at || pickle_cut_short(p);
}

static bool pickle_stop(struct pickle *p, size_t unused) {
    (void)unused;
    if (p->height != 1 || p->stack[0] == NULL) {
        return pickle_refuse(p, "the stack must have one value at the end");
    }
    if (p->at != p->count) return pickle_refuse(p, "the file does not end here");
    p->is_done = true;
    return true;
}

/* What is never done. */
static bool pickle_refuse_call(struct pickle *p, size_t unused) {
    (void)unused;
    return pickle_refuse(p, "this opcode imports or calls code, which is never done here: a memory "
                            "snapshot has none");
}

static bool pickle_refuse_kind(struct pickle *p, size_t unused) {
    (void)unused;
    return pickle_refuse(p, "a memory snapshot has no value of this kind");
}

static const struct pickle_opcode opcodes[] = {
    {0x80, "PROTO", pickle_protocol, 0},
    {0x95, "FRAME", pickle_frame, 8},
    {'.', "STOP", pickle_stop, 0},
    {'N', "NONE", pickle_none, 0},
    {0x88, "NEWTRUE", pickle_boolean, 1},
    {0x89, "NEWFALSE", pickle_boolean, 0},
    {'J', "BININT", pickle_signed, 4},
    {'K', "BININT1", pickle_unsigned, 1},
    {'M', "BININT2", pickle_unsigned, 2},
    {0x8a, "LONG1", pickle_long, 1},
    {0x8b, "LONG4", pickle_long, 4},
    {'G', "BINFLOAT", pickle_float, 8},
    {'X', "BINUNICODE", pickle_text, 4},
    {0x8c, "SHORT_BINUNICODE", pickle_text, 1},
    {0x8d, "BINUNICODE8", pickle_text, 8},
    {'(', "MARK", pickle_mark, 0},
    {']', "EMPTY_LIST", pickle_empty_list, 0},
    {'a', "APPEND", pickle_append, 1},
    {'e', "APPENDS", pickle_append, 0},
    {'l', "LIST", pickle_marked, false},
    {')', "EMPTY_TUPLE", pickle_tuple, 0},
    {0x85, "TUPLE1", pickle_tuple, 1},
    {0x86, "TUPLE2", pickle_tuple, 2},
    {0x87, "TUPLE3", pickle_tuple, 3},
    {'t', "TUPLE", pickle_marked, false},
    {'}', "EMPTY_DICT", pickle_empty_dictionary, 0},
    {'s', "SETITEM", pickle_set, 2},
    {'u', "SETITEMS", pickle_set, 0},
    {'d', "DICT", pickle_marked, true},
    {'0', "POP", pickle_pop, 0},
    {'1', "POP_MARK", pickle_pop_mark, 0},
    {'2', "DUP", pickle_duplicate, 0},
    {'q', "BINPUT", pickle_put, 1},
    {'r', "LONG_BINPUT", pickle_put, 4},
    {0x94, "MEMOIZE", pickle_memoize, 0},
    {'h', "BINGET", pickle_get, 1},
    {'j', "LONG_BINGET", pickle_get, 4},
    {'c', "GLOBAL", pickle_refuse_call, 0},
    {0x93, "STACK_GLOBAL", pickle_refuse_call, 0},
    {'R', "REDUCE", pickle_refuse_call, 0},
    {'b', "BUILD", pickle_refuse_call, 0},
    {'i', "INST", pickle_refuse_call, 0},
    {'o', "OBJ", pickle_refuse_call, 0},
    {0x81, "NEWOBJ", pickle_refuse_call, 0},
    {0x92, "NEWOBJ_EX", pickle_refuse_call, 0},
    {0x82, "EXT1", pickle_refuse_call, 0},
    {0x83, "EXT2", pickle_refuse_call, 0},
    {0x84, "EXT4", pickle_refuse_call, 0},
    {'P', "PERSID", pickle_refuse_call, 0},
    {'Q', "BINPERSID", pickle_refuse_call, 0},
    {'I', "INT", pickle_refuse_kind, 0},
    {'L', "LONG", pickle_refuse_kind, 0},
    {'F', "FLOAT", pickle_refuse_kind, 0},
    {'S', "STRING", pickle_refuse_kind, 0},
    {'T', "BINSTRING", pickle_refuse_kind, 0},
    {'U', "SHORT_BINSTRING", pickle_refuse_kind, 0},
    {'V', "UNICODE", pickle_refuse_kind, 0},
    {'B', "BINBYTES", pickle_refuse_kind, 0},
    {'C', "SHORT_BINBYTES", pickle_refuse_kind, 0},
    {0x8e, "BINBYTES8", pickle_refuse_kind, 0},
    {0x96, "BYTEARRAY8", pickle_refuse_kind, 0},
    {0x97, "NEXT_BUFFER", pickle_refuse_kind, 0},
    {0x98, "READONLY_BUFFER", pickle_refuse_kind, 0},
    {0x8f, "EMPTY_SET", pickle_refuse_kind, 0},
    {0x90, "ADDITEMS", pickle_refuse_kind, 0},
    {0x91, "FROZENSET", pickle_refuse_kind, 0},
    {'g', "GET", pickle_refuse_kind, 0},
    {'p', "PUT", pickle_refuse_kind, 0},
};

/* ---- the whole ------------------------------------------------------------------------------- */

static bool pickle_run(struct pickle *p) {
    const struct pickle_opcode *by_code[256] = {NULL};
    for (size_t i = 0; i < sizeof opcodes / sizeof opcodes[0]; i++) {
        by_code[opcodes[i].code] = &opcodes[i];
    }
    while (!p->is_done) {
        if (p->at == p->count) return pickle_cut_short(p);
        p->opcode_at = p->at;
        p->opcode = by_code[p->bytes[p->at++]];
        if (p->opcode == NULL) return pickle_refuse(p, "this is no opcode of a pickle");
        if (!p->opcode->run(p, p->opcode->argument)) return false;
    }
    return true;
}

static void pickle_drop(struct pickle *p) {
    for (struct pickle_chunk *chunk = p->chunks, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        for (size_t i = 0; i < chunk->used; i++) json_decref(chunk->values[i].json);
        free(chunk);
    }
    free(p->stack);
    free(p->memo);
}

json_t *hyp_pickle_read(const char *path, const unsigned char *bytes, size_t count) {
    struct pickle p = {.path = path, .bytes = bytes, .count = count};
    json_t *result = NULL;
    if (pickle_run(&p)) result = json_incref(p.stack[0]->json);
    pickle_drop(&p);
    return result;
}
