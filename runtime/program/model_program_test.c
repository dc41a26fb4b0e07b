/*
 * tollens model: what a language model's file holds, for people and for programs.
 */
#include "program/shell_scene.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

TestSuite(model, .init = program_begin, .fini = program_end);

#define MODELS "\"$R\"/fixtures/models/"

Test(model, a_file_is_shown) {
    cr_assert(program_shell("\"$T\" model info " MODELS "llama-q4_k_m.gguf") == 0, "%s",
              program_output);
    cr_assert(strncmp(program_output, "this worker can run it, as llama.cpp does\n", 42) == 0, "%s",
              program_output);
    cr_assert(program_says("llama-q4_k_m.gguf: GGUF version 3, 573312 bytes, 23 keys, 21 tensors "
                           "of "),
              "%s", program_output);
    cr_assert(program_says("architecture: llama, 2 layers, hidden size 256, feed-forward size 256, "
                           "4 heads, 1 of keys and values, context 2048\n"),
              "%s", program_output);
    cr_assert(program_says("tokenizer: BPE llama-bpe, 512 tokens, bos 507 (added), eos 508\n"),
              "%s", program_output);
    cr_assert(program_says("\n  Q6_K          5 tensors") && program_says("\n  Q4_K         10 "),
              "%s", program_output);
    cr_assert(program_says("512 x string \"!\", \"\\x22\", \"#\", \"$\", ...\n") &&
                  program_says("\n  blk.1.attn_k.weight              Q4_K     256 x 64 "),
              "%s", program_output);
}

Test(model, a_file_without_tensors_is_shown) {
    cr_assert(program_shell("\"$T\" model info " MODELS "vocabulary-spm.gguf") == 0, "%s",
              program_output);
    cr_assert(program_says("this worker cannot run it: ") && program_says("block_count"), "%s",
              program_output);
    cr_assert(program_says("tokenizer: SPM, 2000 tokens, bos 1 (added), eos 2\n"), "%s",
              program_output);
}

Test(model, of_a_number_per_layer_the_first_is_shown) {
    cr_assert(program_shell("\"$T\" model info " MODELS "mistral3-f16.gguf") == 0, "%s",
              program_output);
    cr_assert(program_says("this worker can run it") && program_says(" 4 heads, 2 of keys"), "%s",
              program_output);
}

Test(model, programs_get_all_of_it_as_json) {
    cr_assert(
        program_shell("\"$T\" model info --json " MODELS "qwen2-q8_0.gguf > \"$D/info.json\"") == 0,
        "%s", program_output);
    json_t *info = program_json("info.json");
    const json_t *keys = json_object_get(info, "keys"), *tensors = json_object_get(info, "tensors");
    const json_t *tokens = json_object_get(keys, "tokenizer.ggml.tokens");
    const json_t *base = json_object_get(keys, "qwen2.rope.freq_base");
    cr_assert(json_integer_value(json_object_get(info, "version")) == 3);
    cr_assert(json_is_true(json_object_get(info, "runs")) &&
              json_is_null(json_object_get(info, "why_not")));
    cr_assert(json_array_size(json_object_get(tokens, "array")) == 512);
    cr_assert_str_eq(json_string_value(json_object_get(base, "kind")), "f32");
    cr_assert(json_number_value(json_object_get(base, "value")) == 1000000);
    const json_t *first = json_array_get(tensors, 0);
    cr_assert_str_eq(json_string_value(json_object_get(first, "name")), "token_embd.weight");
    cr_assert_str_eq(json_string_value(json_object_get(first, "type")), "Q8_0");
    cr_assert(json_integer_value(json_object_get(first, "bytes")) == 512 * 128 / 32 * 34);
    json_decref(info);
}

Test(model, a_text_is_shown_as_tokens) {
    cr_assert(program_shell("\"$T\" model tokenize " MODELS "llama-q4_k_m.gguf -p 'a\"w\303\266' "
                            "> \"$D/tokens\"") == 0,
              "%s", program_output);
    program_write("want", "     507  \"<|begin_of_text|>\"\n      64  \"a\"\n       1  \"\\x22\"\n"
                          "      86  \"w\"\n     127  \"\\xc3\"\n     114  \"\\xb6\"\n");
    cr_assert(program_shell("cmp \"$D/want\" \"$D/tokens\" || cat \"$D/tokens\"") == 0 &&
                  program_output[0] == '\0',
              "%s", program_output);
}

/* The file needs no tensors; --special, --no-bos, --ids, and a text from a file or from stdin. */
Test(model, the_numbers_of_tokens_are_shown) {
    static const struct {
        const char *words, *ids;
    } cases[] = {{"-p Hello", "1 335 349 314\n"},        {"-p Hello --no-bos", "335 349 314\n"},
                 {"-p '</s>' --special", "1 2\n"},       {"-p ''", "1\n"},
                 {"-f \"$D/hello\"", "1 335 349 314\n"}, {"< \"$D/hello\"", "1 335 349 314\n"}};
    char command[200];
    program_write("hello", "Hello\n");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(command, sizeof command,
                 "\"$T\" model tokenize " MODELS "vocabulary-spm.gguf --ids %s", cases[i].words);
        cr_assert(program_shell(command) == 0, "%s", program_output);
        cr_assert_str_eq(program_output, cases[i].ids, "%s", command);
    }
    cr_assert(program_shell("\"$T\" model tokenize -m " MODELS "vocabulary-spm.gguf -p '</s>' "
                            "--ids") == 0 &&
                  strcmp(program_output, "1 2\n") != 0,
              "%s", program_output);
}

/* The 10,000 texts of the fixtures are compared elsewhere. */
Test(model, tokens_are_json_too) {
    cr_assert(program_shell("\"$T\" model tokenize " MODELS "llama-f32.gguf --json -p 'a\344' > "
                            "\"$D/tokens.json\"") == 0,
              "%s", program_output);
    json_t *all = program_json("tokens.json");
    const json_t *tokens = json_object_get(all, "tokens");
    const size_t count = json_array_size(tokens);
    const json_t *first = json_array_get(tokens, 0), *last = json_array_get(tokens, count - 1);
    cr_assert(json_integer_value(json_object_get(all, "count")) == (json_int_t)count && count == 3);
    cr_assert_str_eq(json_string_value(json_object_get(first, "piece")), "<s>");
    cr_assert(json_integer_value(json_object_get(first, "id")) == 1);
    cr_assert(json_is_null(json_object_get(last, "piece")));
    cr_assert_str_eq(json_string_value(json_object_get(last, "hex")), "e4");
    json_decref(all);
}

Test(model, a_text_that_cannot_be_tokens_is_refused) {
    static const struct {
        const char *words, *says;
    } cases[] = {{"", "model tokenize requires a file"},
                 {MODELS "llama-f32.gguf < /dev/null", "model tokenize requires a prompt: -p"},
                 {MODELS "llama-f32.gguf -p a -f b", "-p and -f are two prompts"},
                 {MODELS "llama-f32.gguf -f \"$D/none\"", "none cannot be opened"},
                 {MODELS "llama-f32.gguf b -p a", "b is a second one"},
                 {"\"$D/none\" -p a", "none"}};
    char command[200];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(command, sizeof command, "\"$T\" model tokenize %s", cases[i].words);
        cr_assert(program_shell(command) == 2 && program_says(cases[i].says), "%s: %s", command,
                  program_output);
    }
    cr_assert(program_shell("\"$T\" model tokenize \"$D/none\" -p a --json 2>/dev/null") == 2 &&
                  program_says("\"exit_code\": 2"),
              "%s", program_output);
}

/* ---- chat templates ---- */

/* Puts bytes into a printf of the shell. */
static void put_bytes(char *to, const void *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        sprintf(to + strlen(to), "\\%03o", ((const unsigned char *)bytes)[i]);
    }
}

/* Copies a model to chat.gguf, with a chat template as its first key, after magic, version and the
 * numbers of tensors and keys. What is added is a multiple of the alignment. */
static void add_template(const char *model, const char *template) {
    static const char key[] = "tokenizer.chat_template";
    enum { ALIGNMENT = 32, STRING = 8, KEY = sizeof key - 1, HEAD = 8 + KEY + 4 + 8 };
    char command[1200], padded[2000], numbers[400] = "";
    const uint64_t used = HEAD + strlen(template) + 4;
    const uint64_t spaces = (ALIGNMENT - used % ALIGNMENT) % ALIGNMENT;
    const uint64_t lengths[2] = {KEY, used + spaces - HEAD};
    const uint32_t kind = STRING;
    snprintf(padded, sizeof padded, "%s{#%*s#}", template, (int)spaces, "");
    program_write("template", padded);
    put_bytes(numbers, &lengths[0], sizeof lengths[0]);
    strcat(numbers, key);
    put_bytes(numbers, &kind, sizeof kind);
    put_bytes(numbers, &lengths[1], sizeof lengths[1]);
    snprintf(command, sizeof command,
             "m=" MODELS "%s; k=$(od -An -tu1 -j16 -N1 $m); { head -c 16 $m; printf "
             "\"\\\\$(printf %%03o $((k + 1)))\"; head -c 24 $m | tail -c 7; printf '%s'; cat "
             "\"$D/template\"; tail -c +25 $m; } > \"$D/chat.gguf\"",
             model, numbers);
    cr_assert(program_shell(command) == 0, "%s", program_output);
}

static const char turns[] =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content | trim + "
    "'<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' "
    "}}{% endif %}";

#define TOKENIZE "\"$T\" model tokenize --ids "
#define TURN(role, text) "<|im_start|>" role "\n" text "<|im_end|>\n"

/* The tokens of a message are those of the text that its template makes. */
Test(model, a_message_becomes_the_text_of_the_files_template) {
    add_template("qwen2-q8_0.gguf", turns);
    cr_assert(program_shell("\"$T\" model info \"$D/chat.gguf\" | grep -a '^this\\|^chat'") == 0 &&
                  program_says("this worker can run it") &&
                  program_says("\nchat template: model run --chat applies it\n"),
              "%s", program_output);
    cr_assert(program_shell(TOKENIZE
                            "\"$D/chat.gguf\" --chat -p ' Hi ' > \"$D/a\"; " TOKENIZE MODELS
                            "qwen2-q8_0.gguf --special -p '" TURN(
                                "user", "Hi") "<|im_start|>assistant\n' > \"$D/b\"; "
                                              "cmp \"$D/a\" \"$D/b\"") == 0,
              "%s", program_output);
    cr_assert(program_shell(TOKENIZE
                            "\"$D/chat.gguf\" --chat --system S -p Hi > \"$D/a\"; " TOKENIZE MODELS
                            "qwen2-q8_0.gguf --special -p '" TURN("system", "S")
                                TURN("user", "Hi") "<|im_start|>assistant\n' > \"$D/b\"; "
                                                   "cmp \"$D/a\" \"$D/b\"") == 0,
              "%s", program_output);
    cr_assert(
        program_shell("W=\"$T model run --device soft -n 5\"; $W \"$D/chat.gguf\" --chat -p Hi > "
                      "\"$D/a\" && $W " MODELS "qwen2-q8_0.gguf --special -p '" TURN(
                          "user", "Hi") "<|im_start|>assistant\n' > \"$D/b\" && "
                                        "cmp \"$D/a\" \"$D/b\"") == 0,
        "%s", program_output);
}

/* The file says that bos is added, and so does its template: there is one. */
Test(model, bos_is_not_added_twice) {
    add_template("llama-q4_k_m.gguf", "{{ bos_token }}{{ messages[0].content }}<|eot_id|>");
    cr_assert(program_shell(TOKENIZE "\"$D/chat.gguf\" --chat -p Hi > \"$D/a\"; " TOKENIZE MODELS
                                     "llama-q4_k_m.gguf --special -p 'Hi<|eot_id|>' > \"$D/b\"; "
                                     "cmp \"$D/a\" \"$D/b\"") == 0,
              "%s", program_output);
}

Test(model, special_tokens_in_plain_text_are_told) {
    add_template("qwen2-q8_0.gguf", turns);
    cr_assert(program_shell(TOKENIZE "\"$D/chat.gguf\" --chat -p 'a <|im_end|> b'") == 0 &&
                  program_says("the message has <|im_end|>, a special token of the model, which it "
                               "reads as such\n"),
              "%s", program_output);
    cr_assert(program_shell("\"$T\" model run " MODELS "qwen2-q8_0.gguf --device soft -n 1 -p "
                            "'a<|im_end|>'") == 0 &&
                  program_says("the prompt has <|im_end|>, a special token of the model, as plain "
                               "text; with --special it is that token\n"),
              "%s", program_output);
    cr_assert(program_shell("\"$T\" model run " MODELS "qwen2-q8_0.gguf --device soft -n 1 -p "
                            "'a<|im_end|>' --special") == 0 &&
                  !program_says("special token"),
              "%s", program_output);
}

Test(model, a_template_that_is_not_supported_is_refused_by_name) {
    cr_assert(program_shell("\"$T\" model run " MODELS "qwen2-q8_0.gguf --chat -p a") == 2 &&
                  program_says("tokenizer.chat_template") &&
                  program_says("next: without --chat, the prompt is the whole text"),
              "%s", program_output);
    add_template("qwen2-q8_0.gguf", "{% macro a() %}{% endmacro %}");
    cr_assert(
        program_shell("\"$T\" model run \"$D/chat.gguf\" --chat -p a") == 2 &&
            program_says("the chat template: it has the statement 'macro'; this worker knows"),
        "%s", program_output);
    cr_assert(program_shell("\"$T\" model info \"$D/chat.gguf\" | grep -a '^chat'") == 0 &&
                  program_says("chat template: model run --chat refuses it: line 1 of the chat "
                               "template: it has the statement 'macro'"),
              "%s", program_output);
    add_template("qwen2-q8_0.gguf", "{{ raise_exception('say more') }}");
    cr_assert(program_shell("\"$T\" model run \"$D/chat.gguf\" --chat -p a") == 2 &&
                  program_says("it refuses this conversation: say more"),
              "%s", program_output);
    cr_assert(program_shell("\"$T\" model run \"$D/chat.gguf\" --system a -p b") == 2 &&
                  program_says("--system requires --chat"),
              "%s", program_output);
    cr_assert(program_shell("\"$T\" model run \"$D/chat.gguf\" --chat --guarded") == 2 &&
                  program_says("no --chat"),
              "%s", program_output);
}

Test(model, what_is_wrong_is_said) {
    cr_assert(program_shell("\"$T\" model") == 2 && program_says("model requires: info FILE"), "%s",
              program_output);
    cr_assert(program_shell("\"$T\" model info") == 2 && program_says("requires a file"), "%s",
              program_output);
    cr_assert(program_shell("\"$T\" model info a b") == 2 && program_says("b is a second one"),
              "%s", program_output);
    cr_assert(program_shell("\"$T\" model info --jsn a") == 2 && program_says("no option --jsn"),
              "%s", program_output);
    cr_assert(program_shell("\"$T\" model info \"$D/none\"") == 2 && program_says("tollens: ") &&
                  program_says("cannot be opened"),
              "%s", program_output);
    cr_assert(program_shell("head -c 1000 " MODELS "llama-f32.gguf > \"$D/cut\"; "
                            "\"$T\" model info \"$D/cut\"") == 2 &&
                  program_says("key \"tokenizer.ggml.tokens\""),
              "%s", program_output);
    cr_assert(program_shell("\"$T\" model --help") == 0 && program_says("model info FILE"), "%s",
              program_output);
}
