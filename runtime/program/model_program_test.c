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
