/*
 * Foreign traces: RMM's logs and PyTorch's snapshots are known by their content, and what is not
 * replayed is counted and named.
 */
#include "files/atomic_file.h"
#include "harness/session.h"
#include "program/shell_scene.h"
#include "trace_file.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { UNSERVED = 1, NO_TRACE = 2 };

TestSuite(trace_formats, .init = program_begin, .fini = program_end);

/* Replays file "t", whose name says nothing. */
static int formats_replay(const char *options) {
    char command[300];
    snprintf(command, sizeof command, "\"$T\" replay \"$D/t\" %s", options);
    return program_shell(command);
}

static void formats_expect(int code, const char *const *words, size_t count) {
    cr_assert_eq(formats_replay(""), code, "%s", program_output);
    for (size_t i = 0; i < count; i++) {
        cr_assert(program_says(words[i]), "'%s' is not in: %s", words[i], program_output);
    }
}
#define EXPECT(code, ...)                                                                          \
    formats_expect(code, (const char *const[]){__VA_ARGS__},                                       \
                   sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* ---- RMM ------------------------------------------------------------------------------------- */

#define RMM "Thread,Time,Action,Pointer,Size,Stream\n"

Test(trace_formats, an_rmm_log_is_known_by_its_first_line) {
    program_write("t", RMM "2342727,15:47:02.841961,allocate,0x10012400000,1048576,0\r\n"
                           "2342728,15:47:02.841970,allocate,10012600000,2000,0x7f8a38001020\n"
                           "2342727,15:47:02:841977,free,0x10012400000,1048576,0\n"
                           "2342727,what time,allocate failure,(nil),35184372088832,0\n");
    EXPECT(UNSERVED,
           "/t, an RMM log: 4 events of 2 threads and 2 streams: 2 allocations, 1 free, 0 trims",
           "2000 bytes");
    cr_assert(!program_says("left out") && !program_says("at once"), "%s", program_output);
}

Test(trace_formats, an_rmm_log_says_what_was_left_out) {
    program_write("t", RMM "1,1,allocate,0x0,0,0\n"
                           "1,1,free,0x0,0,0\n"
                           "1,1,free,0xaa00,64,0\n"
                           "1,1,allocate,0xbb00,1000,0\n"
                           "1,1,allocate,0xbb00,3000,2\n"
                           "1,1,free,0xbb00,3000,0\n"
                           "1,1,free,0xbb00,3000,0\n"
                           "1,1,allocate,0xcc00,10");
    EXPECT(0, "4 events of 1 thread and 2 streams: 2 allocations, 2 frees",
           "allocations of zero bytes, left out: 1, the first in line 2\n",
           "frees of blocks that were not live, left out: 2, the first in line 4\n",
           "allocations at the address of a live block, which is freed first: 1, the first in line "
           "6\n",
           "incomplete last lines, left out: 1, the first in line 9\n", "(67108864 / 0 bytes)");
}

Test(trace_formats, an_rmm_log_may_have_any_number_of_streams_and_threads) {
    program_shell("awk 'BEGIN { print \"Thread,Time,Action,Pointer,Size,Stream\"; "
                  "for (i = 1; i <= 1500; i++) printf(\"%d,1,allocate,%x,5000,%x\\n\", "
                  "4000000 + i, i * 65536, i + 16777216) }' >\"$D/t\"");
    EXPECT(0, "1500 events of 256 threads and 1024 streams",
           "threads that took the place of one that had been silent, because a replay has at most "
           "256 at once: 1244, the first in line 258\n",
           "streams that took the place of one that had been silent, because a replay has at most "
           "1,024 at once: 476, the first in line 1026\n",
           " / 7500000 bytes)");
}

Test(trace_formats, a_bad_line_of_an_rmm_log_is_refused_by_its_number) {
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"Thread", "line 1: the line is cut off"},
        {"Thread,Time,Action,Pointer,Size\n", "line 1: the first line of an RMM log must be"},
        {RMM, "has no event to replay"},
        {RMM "1,1,free,0xaa00,64,0\n", "has no event to replay"},
        {RMM "1,1,allocate,0xaa,5\n", "line 2: a line must have 6 fields"},
        {RMM "1,1,allocate,0xaa,5,0,0\n", "line 2: a line must have 6 fields"},
        {RMM "1,1,steal,0xaa,5,0\n",
         "line 2: the action must be allocate, allocate failure or free, not 'steal'"},
        {RMM "1,1,allocate,(nil),5,0\n", "line 2: this is not a number: '(nil)'"},
        {RMM "1,1,allocate,-1,5,0\n", "line 2: this is not a number: '-1'"},
        {RMM "1,1,allocate,0x,5,0\n", "line 2: this is not a number: '0x'"},
        {RMM "x,1,allocate,0xaa,5,0\n", "line 2: this is not a number: 'x'"},
        {RMM "1,1,allocate,0xaa,5,zero\n", "line 2: this is not a number: 'zero'"},
        {RMM "1,1,allocate,0xaa,281474976710656,0\n", "line 2: the number is too large"},
        {RMM "1,1,allocate,0x10000000000000000,5,0\n", "line 2: the number is too large"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        program_write("t", cases[i].text);
        cr_assert_eq(formats_replay(""), NO_TRACE, "%zu: %s", i, program_output);
        cr_assert(program_says(cases[i].says), "%s: %s", cases[i].says, program_output);
    }
}

/* 2^17 blocks of 2^46 bytes are 2^63 bytes: a sum of 64 bits would wrap around with a few more. */
Test(trace_formats, a_log_of_impossible_sizes_is_refused) {
    program_shell("awk 'BEGIN { print \"Thread,Time,Action,Pointer,Size,Stream\"; "
                  "for (i = 1; i <= 131072; i++) printf(\"1,1,allocate,%x,70368744177664,0\\n\", "
                  "i * 65536) }' >\"$D/t\"");
    EXPECT(NO_TRACE, "line 65537: more than 2^62 bytes would be live");
}

Test(trace_formats, a_byte_0_in_an_rmm_log_is_no_end_of_the_file) {
    program_shell("printf '"
                  "Thread,Time,Action,Pointer,Size,Stream\\n1,1,allocate,0xaa,5,0\\n"
                  "1,1,\\0000allocate,0xbb,5,0\\n1,1,free,0xaa,5,0\\n' >\"$D/t\"");
    EXPECT(NO_TRACE, "line 3: the line is cut off");
}

/* ---- PyTorch's snapshots --------------------------------------------------------------------- */

/* make.py FORMAT KIND writes a snapshot, FORMAT being json or a protocol. `some` is by hand; `many`
 * is drawn, with shared frames as PyTorch has them. */
static const char make_py[] =
    "import json, pickle, random, sys\n"
    "FRAMES = [{'filename': 'train.py', 'name': 'step', 'line': 7}]\n"
    "def event(action, addr, size, stream=0, time=0):\n"
    "    where = 'device_free' if action == 'oom' else 'addr'\n"
    "    return {'action': action, where: addr, 'size': size, 'stream': stream,\n"
    "            'time_us': 1700000000000000 + time, 'frames': FRAMES, 'compile_context': None}\n"
    "def segment(device, address, size, blocks):\n"
    "    return {'device': device, 'address': address, 'total_size': size, 'stream': 0,\n"
    "            'segment_type': 'large', 'segment_pool_id': (0, 0), 'is_expandable': False,\n"
    "            'frames': [], 'blocks': blocks}\n"
    "def some():\n"
    "    A, B, C, D, E = (0x7f0000000000 + 0x100000 * i for i in range(5))\n"
    "    events = [event('segment_alloc', A, 20 << 20), event('alloc', A, 4096),\n"
    "              event('free_requested', B, 1000), event('free_completed', B, 1000),\n"
    "              event('alloc', C, 0), event('alloc', D, 3000, -5),\n"
    "              event('free_requested', D, 3000, -5), event('free_completed', A, 4096),\n"
    "              event('free_completed', A, 4096), event('future', A, 1),\n"
    "              event('oom', 512, 1 << 45), event('snapshot', 0, 0)]\n"
    "    blocks = [{'size': 1 << 20, 'requested_size': 0, 'state': 'inactive'},\n"
    "              {'size': 512, 'requested_size': 500, 'state': 'active_allocated',\n"
    "               'address': E},\n"
    "              {'size': 3072, 'state': 'active_pending_free', 'address': D}]\n"
    "    return {'device_traces': [[event('alloc', A, 5)], events], 'allocator_settings': {},\n"
    "            'segments': [segment(1, A, 20 << 20, blocks), segment(1, B, 2 << 20, []),\n"
    "                         segment(0, A, 1 << 40, [{'size': 7, 'state': "
    "'active_allocated'}])]}\n"
    "def many(seed=7, count=1500):\n"
    "    draw = random.Random(seed)\n"
    "    live, events, at = {}, [], 0x7f0000000000\n"
    "    for i in range(count):\n"
    "        if len(live) > 40 or (live and draw.random() < 0.4):\n"
    "            addr = draw.choice(list(live))\n"
    "            size, stream = live.pop(addr)\n"
    "            events += [event(a, addr, size, stream, i)\n"
    "                       for a in ('free_requested', 'free_completed')]\n"
    "        else:\n"
    "            size, stream = draw.randrange(1, 1 << draw.randrange(4, 24)), draw.randrange(3)\n"
    "            live[at] = size, stream\n"
    "            events.append(event('alloc', at, size, stream, i))\n"
    "            at += (size + 511) // 512 * 512\n"
    "    blocks = [{'size': (size + 511) // 512 * 512, 'requested_size': size, 'address': addr,\n"
    "               'state': 'active_allocated'} for addr, (size, stream) in live.items()]\n"
    "    return {'segments': [segment(0, 0x7f0000000000, 1 << 30, blocks)],\n"
    "            'device_traces': [events], 'weight': 1.5, 'big': 1 << 70, 'less': -(1 << 40),\n"
    "            'nan': float('nan'), 'text': 'x' * 300}\n"
    "def wide():\n"
    "    block = {'size': 7, 'state': 'active_allocated', 'address': 7}\n"
    "    return {'device_traces': [[event('alloc', 5, 5)]],\n"
    "            'segments': [segment(0, 7, 7, [block] * 10000)] * 10000}\n"
    "snapshot = globals()[sys.argv[2]]()\n"
    "if sys.argv[1] == 'json':\n"
    "    snapshot = {k: v for k, v in snapshot.items() if k not in ('big', 'nan')}\n"
    "    sys.stdout.write(json.dumps(snapshot))\n"
    "else:\n"
    "    sys.stdout.buffer.write(pickle.dumps(snapshot, int(sys.argv[1])))\n";

static void formats_make(const char *format, const char *kind) {
    char command[200];
    program_write("make.py", make_py);
    snprintf(command, sizeof command,
             "\"$(cat \"$R/build/python\")\" \"$D/make.py\" %s %s >\"$D/t\"", format, kind);
    cr_assert_eq(program_shell(command), 0, "%s", program_output);
}

Test(trace_formats, a_snapshot_says_what_was_left_out_and_added) {
    static const char *const formats[] = {"2", "5", "json"};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        formats_make(formats[i], "some");
        EXPECT(UNSERVED,
               i < 2 ? "/t, a PyTorch snapshot (pickle): " : "/t, a PyTorch snapshot (JSON): ",
               "7 events of 1 thread and 2 streams: 4 allocations, 2 frees, 0 trims",
               "allocations of zero bytes, left out: 1, the first in event 5\n",
               "frees of blocks that were not live, left out: 1, the first in event 9\n",
               "blocks that were live before the trace, allocated first: 2\n",
               "blocks that were freed, but still in use at the end: 1\n",
               "events of the traced allocator's own segments, left out: 2\n",
               "events of an unknown kind, left out: 1, the first in event 10\n",
               "events of other devices, left out: 1\n", " / 3500 bytes)");
    }
}

Test(trace_formats, every_protocol_and_json_give_one_replay) {
    static const char *const formats[] = {"2", "3", "4", "5", "json"};
    char first[65536] = "", command[200];
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        formats_make(formats[i], "many");
        snprintf(command, sizeof command, "--profile tight --out \"$D/out\"");
        cr_assert_eq(formats_replay(command), 0, "%s", program_output);
        cr_assert(program_says(" of 1 thread and 3 streams: "), "%s", program_output);
        cr_assert_eq(program_shell("cat \"$D/out/fragmentation.csv\" && wc -l <\"$D/t\""), 0);
        cr_assert(strlen(program_output) > 10000);
        *strrchr(program_output, '\n') = '\0';
        *strrchr(program_output, '\n') = '\0'; /* the last line is of wc */
        if (i == 0) snprintf(first, sizeof first, "%s", program_output);
        cr_assert_str_eq(program_output, first, "protocol %s", formats[i]);
    }
}

/* The page for who runs out of memory: its commands do what it says. */
Test(trace_formats, the_commands_of_the_manual_work) {
    formats_make("4", "many");
    cr_assert_eq(program_shell("cd \"$D\" && mv t snapshot.pickle && "
                               "sed -n 's/^    tollens replay /\"$T\" replay /p' "
                               "\"$R/ci/FAQ.md\" >commands && wc -l <commands && sh -e commands"),
                 0, "%s", program_output);
    cr_assert(strncmp(program_output, "3\n", 2) == 0, "%s", program_output);
    cr_assert(program_says("; the traced allocator held at most 1073741824 bytes, ") &&
                  program_says("least limit") && program_says("every allocation was served"),
              "%s", program_output);
    cr_assert_eq(program_shell("test -s \"$D/replay/map.svg\""), 0);
}

/* The error of a file of these bytes, which is only in memory: there are thousands. NULL: it is a
 * trace. */
static const char *formats_error_of(const void *bytes, size_t count) {
    static int fd = -1;
    char path[40];
    struct hyp_trace trace;
    if (fd < 0) fd = memfd_create("trace", 0);
    cr_assert(ftruncate(fd, 0) == 0 && pwrite(fd, bytes, count, 0) == (ssize_t)count);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const bool ok = hyp_trace_read(path, &trace);
    hyp_trace_free(&trace);
    return ok ? NULL : hyp_error();
}

/* A cut file is refused with its place, and one with a wrong byte is read or refused. */
Test(trace_formats, a_damaged_snapshot_is_refused_with_its_place) {
    static const char *const formats[] = {"2", "5", "json"};
    static char bytes[65536];
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        formats_make(formats[i], "some");
        cr_assert_eq(program_shell("wc -c <\"$D/t\""), 0);
        const size_t count = strtoul(program_output, NULL, 10);
        cr_assert(count > 1000 && count < sizeof bytes && program_shell("cat \"$D/t\"") == 0);
        memcpy(bytes, program_output, count);
        for (size_t cut = 1; cut < count; cut++) {
            const char *error = formats_error_of(bytes, cut);
            cr_assert(error != NULL && strstr(error, i < 2 ? " byte " : " line ") != NULL,
                      "%s cut at %zu: %s", formats[i], cut, error);
        }
        for (size_t at = 0; at < count; at++) {
            bytes[at] = (char)(bytes[at] ^ 1 << at % 8);
            const char *error = formats_error_of(bytes, count);
            cr_assert(error == NULL || strstr(error, "/proc/self/fd/") == error, "%s", error);
            bytes[at] = (char)(bytes[at] ^ 1 << at % 8);
        }
    }
}

/* What would run a command if it were loaded by Python does nothing but be refused. */
Test(trace_formats, a_pickle_executes_nothing) {
    program_write("make.py", "import os, pickle, sys\n"
                             "class Evil:\n"
                             "    def __reduce__(self):\n"
                             "        return os.system, ('touch ' + sys.argv[2],)\n"
                             "sys.stdout.buffer.write(pickle.dumps({'device_traces': [[Evil()]]}, "
                             "int(sys.argv[1])))\n");
    for (int protocol = 2; protocol <= 5; protocol++) {
        char command[200];
        snprintf(command, sizeof command,
                 "\"$(cat \"$R/build/python\")\" \"$D/make.py\" %d \"$D/done\" >\"$D/t\"",
                 protocol);
        cr_assert_eq(program_shell(command), 0, "%s", program_output);
        EXPECT(NO_TRACE,
               protocol < 4 ? ": GLOBAL: this opcode imports or calls code"
                            : ": STACK_GLOBAL: this opcode imports or calls code",
               "/t byte ");
        cr_assert_eq(program_shell("test ! -e \"$D/done\""), 0);
    }
}

/* Python's own list of opcodes: each is either read or refused by its name. */
Test(trace_formats, every_opcode_of_python_has_a_name) {
    program_write("list.py", "import pickletools\n"
                             "for one in pickletools.opcodes:\n"
                             "    print(ord(one.code), one.name)\n");
    program_shell("\"$(cat \"$R/build/python\")\" \"$D/list.py\"");
    int code = 0, read = 0, count = 0, refused = 0;
    char name[40], *lines = strdup(program_output);
    for (char *at = lines; sscanf(at, "%d %39s%n", &code, name, &read) == 2; at += read, count++) {
        unsigned char bytes[] = {0x80, 4, (unsigned char)code, '.'};
        const char *error = formats_error_of(bytes, sizeof bytes);
        cr_assert(error != NULL);
        if (strstr(error, "cut short") != NULL || strstr(error, "device_traces") != NULL) continue;
        if (strcmp(name, "MARK") != 0 && strcmp(name, "STOP") != 0 && strcmp(name, "PROTO") != 0) {
            cr_assert(strstr(error, name) != NULL, "%s: %s", name, error);
        }
        refused++;
    }
    free(lines);
    cr_assert(count >= 68 && refused >= 40, "%d, %d", count, refused);
}

Test(trace_formats, a_hostile_pickle_is_refused) {
    static const struct {
        const char *bytes;
        size_t count;
        const char *says;
    } cases[] = {
#define CASE(bytes, says) {bytes, sizeof bytes - 1, says}
        CASE("\x80\x06N.", "byte 0: PROTO: the protocol must be 2 to 5"),
        CASE("\x80\x01N.", "byte 0: PROTO: the protocol must be 2 to 5"),
        CASE("\x80\x02N", "byte 3: the pickle is cut short"),
        CASE("\x80\x02.", "byte 2: STOP: the stack must have one value at the end"),
        CASE("\x80\x02NN.", "byte 4: STOP: the stack must have one value"),
        CASE("\x80\x02(.", "byte 3: STOP: the stack must have one value"),
        CASE("\x80\x02N.N.", "byte 3: STOP: the file does not end here"),
        CASE("\x80\x02\xff.", "byte 2: this is no opcode of a pickle"),
        CASE("\x80\x02Ne.", "byte 3: APPENDS: the stack has no mark"),
        CASE("\x80\x02(Ne.", "byte 4: APPENDS: there is no list to add to"),
        CASE("\x80\x02NNa.", "byte 4: APPEND: there is no list to add to"),
        CASE("\x80\x02(a.", "byte 3: APPEND: the stack is too short"),
        CASE("\x80\x02}NNs.", "byte 5: SETITEM: a key must be a text"),
        CASE("\x80\x02}X\x03\0\0\0a\0bNs.", "SETITEM: a key must be a text"),
        CASE("\x80\x02}(Nu.", "byte 5: SETITEMS: a key has no value"),
        CASE("\x80\x02h\x07.", "byte 2: BINGET: there is no earlier value of this number"),
        CASE("\x80\x02Nr\xff\xff\xff\xff.", "LONG_BINPUT: the number of the value is too large"),
        CASE("\x80\x02X\xff\xff\xff\xff.", "the pickle is cut short"),
        CASE("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", "the pickle is cut short"),
        CASE("\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xffN.", "the pickle is cut short"),
        CASE("\x80\x02\x8b\xff\xff\xff\xff.", "the pickle is cut short"),
        /* A list in itself, directly, by another list, and by a tuple. */
        CASE("\x80\x02]q\x01h\x01"
             "a.",
             "APPEND: a value that is part of another one changes"),
        CASE("\x80\x02]q\x01]q\x02h\x01"
             "ah\x02"
             "a.",
             "a value that is part of another one changes"),
        CASE("\x80\x02]q\x01h\x01\x85"
             "a.",
             "a value that is part of another one changes"),
        CASE("\x80\x02}q\x01X\x01\0\0\0kh\x01s.", "a value that is part of another one changes"),
        CASE("\x80\x02]N.", "STOP: the stack must have one value"),
        CASE("\x80\x02].", "has no event in device_traces"),
#undef CASE
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *error = formats_error_of(cases[i].bytes, cases[i].count);
        cr_assert(error != NULL && strstr(error, cases[i].says) != NULL, "%s: %s", cases[i].says,
                  error);
    }
}

/* 100,000 lists in each other would need as many calls to be freed. */
Test(trace_formats, a_pickle_does_not_nest_without_end) {
    static char deep[200002];
    memcpy(deep, "\x80\x04", 2);
    memset(deep + 2, ']', 100000);
    memset(deep + 100002, 'a', 99999);
    deep[200001] = '.';
    const char *error = formats_error_of(deep, sizeof deep);
    cr_assert(error != NULL && strstr(error, "APPEND: values nest too deep") != NULL, "%s", error);
}

/* 10,000 times one segment that has 10,000 times one block: some 40 kB that ask for 10^8 visits. */
Test(trace_formats, a_pickle_does_not_multiply_without_end) {
    formats_make("4", "wide");
    EXPECT(NO_TRACE, "repeats its parts more often than it has bytes");
}

Test(trace_formats, a_snapshot_without_what_it_needs_is_refused) {
    static const struct {
        const char *text, *says;
    } cases[] = {
#define EVENT(members) "{\"device_traces\": [[{" members "}]]}"
        {"{", "line 1 column 1: "},
        {"[]", "has no event in device_traces: call torch.cuda.memory._record_memory_history()"},
        {"{\"traceEvents\": []}", "has no event in device_traces"},
        {"{\"device_traces\": 5}", "has no event in device_traces"},
        {"{\"device_traces\": [5, []]}", "has no event in device_traces"},
        {"{\"device_traces\": [[5]]}", "event 1: there is no action"},
        {EVENT("\"action\": 5"), "event 1: there is no action"},
        {EVENT("\"action\": \"snapshot\""), "has no event to replay"},
        {EVENT("\"action\": \"alloc\""), "event 1: size must be a number of bytes"},
        {EVENT("\"action\": \"alloc\", \"size\": -1"), "event 1: size must be a number of bytes"},
        {EVENT("\"action\": \"alloc\", \"size\": 1e3"), "event 1: size must be a number of bytes"},
        {EVENT("\"action\": \"alloc\", \"size\": 281474976710656"), "event 1: size must be"},
        {EVENT("\"action\": \"alloc\", \"size\": 5"), "event 1: stream must be a whole number"},
        {EVENT("\"action\": \"alloc\", \"size\": 5, \"stream\": 0"), "event 1: addr must be"},
        {"{\"device_traces\": [[{\"action\": \"oom\", \"size\": 5, \"stream\": 0}]], \"segments\": "
         "[{}]}",
         "segment 0, counted from 0: it must have total_size, address and stream"},
        {"{\"device_traces\": [[{\"action\": \"oom\", \"size\": 5, \"stream\": 0}]], \"segments\": "
         "[{\"total_size\": 5, \"address\": 5, \"stream\": 0, \"blocks\": [{\"size\": 1}]}]}",
         "segment 0, counted from 0: each block must have size and state"},
#undef EVENT
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *error = formats_error_of(cases[i].text, strlen(cases[i].text));
        cr_assert(error != NULL && strstr(error, cases[i].says) != NULL, "%s: %s", cases[i].says,
                  error);
    }
}

/* ---- packed files ---------------------------------------------------------------------------- */

Test(trace_formats, a_packed_trace_is_known_by_its_content) {
    program_write("t", RMM "1,1,allocate,0xaa00,64,0\n");
    cr_assert_eq(program_shell("xz \"$D/t\" && mv \"$D/t.xz\" \"$D/t\""), 0, "%s", program_output);
    EXPECT(0, "/t, an RMM log: 1 event of 1 thread");
    cr_assert_eq(program_shell("head -c 60 \"$D/t\" >\"$D/u\" && mv \"$D/u\" \"$D/t\""), 0);
    EXPECT(NO_TRACE, "/t is damaged, or holds more than");
    cr_assert_eq(program_shell("printf x | xz | xz >\"$D/t\""), 0);
    EXPECT(NO_TRACE, "/t holds no trace");
    cr_assert_eq(program_shell("xz </dev/null >\"$D/t\""), 0);
    EXPECT(NO_TRACE, "/t holds no trace");
}

/* ---- the corpus: fixtures/traces, which PyTorch and RMM wrote -------------------------------- */

/* What is held at most, and much less means that the record is old, or that little was replayed. */
static void corpus_replay(const char *name, const char *profile, json_int_t recorded) {
    char command[1400];
    snprintf(
        command, sizeof command,
        "\"$T\" replay '%.900s/fixtures/traces/%s.xz' --profile %s --json > \"$D/replay.json\"",
        hyp_session_root(), name, profile);
    cr_assert_eq(program_shell(command), 0, "%s, %s: %s", name, profile, program_output);
    json_t *all = program_json("replay.json");
    const json_t *result = json_object_get(all, "result");
    const json_int_t held = json_integer_value(json_object_get(result, "held_peak"));
    cr_assert(held <= recorded, "%s, %s: the pool holds %lld bytes, and held %lld", name, profile,
              (long long)held, (long long)recorded);
    cr_assert(held >= recorded / 100 * 98,
              "%s, %s: the pool holds only %lld bytes, and held %lld: record it with "
              "fixtures/traces/make.py replay",
              name, profile, (long long)held, (long long)recorded);
    json_decref(all);
}

Test(trace_formats, no_profile_holds_more_than_was_recorded) {
    char path[1200];
    const char *name = NULL, *profile = NULL;
    json_t *row = NULL, *held = NULL;
    size_t replays = 0;
    snprintf(path, sizeof path, "%.900s/fixtures/traces/peaks.json", hyp_session_root());
    json_t *rows = json_load_file(path, 0, NULL);
    json_object_foreach(rows, name, row) {
        json_object_foreach(json_object_get(row, "held"), profile, held) {
            corpus_replay(name, profile, json_integer_value(held));
            replays++;
        }
    }
    cr_assert(replays >= 5 * 4, "only %zu replays are recorded in %s", replays, path);
    json_decref(rows);
}
