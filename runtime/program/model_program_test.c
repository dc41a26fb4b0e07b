/*
 * tollens model: what a language model's file holds, for people and for programs.
 */
#include "program/shell_scene.h"

#include <criterion/criterion.h>
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
