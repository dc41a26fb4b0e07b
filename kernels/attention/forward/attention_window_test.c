/*
 * attention with a window: every variant that knows one against the definition.
 */
#include "attention_scene.h"

#include "test/test_device.h"

#include <string.h>

TestSuite(attention_window, .init = kernel_scene_begin, .fini = kernel_scene_end);

static const size_t head_sizes[] = {64, 80, 96, 128, 256};

/* Windows of one key, of a few, around a tile, across several, and of all keys; more rows than keys
 * and fewer. */
static void try_windows(const char *variant, enum kn_type type, size_t head_size) {
    static const struct {
        size_t rows, keys, window;
    } shapes[] = {{70, 70, 1},   {40, 300, 7},    {200, 260, 64}, {130, 500, 129},
                  {300, 90, 33}, {300, 400, 200}, {5, 40, 40},    {1, 333, 100}};
    const size_t count = strcmp(variant, "naive") == 0 ? 2 : sizeof shapes / sizeof shapes[0];
    for (size_t i = 0; i < count; i++) {
        attention_must_be_right(
            &(struct kn_attention_trial){.attention = {.type = type,
                                                       .batch = 1 + i % 2,
                                                       .heads = 2,
                                                       .kv_heads = 1 + i % 2,
                                                       .q_length = shapes[i].rows,
                                                       .kv_length = shapes[i].keys,
                                                       .head_size = head_size,
                                                       .causal = true,
                                                       .window = shapes[i].window,
                                                       .variant = variant},
                                         .distribution = KN_NORMAL,
                                         .values = KN_UNIFORM,
                                         .heads_inside = i % 2 == 0,
                                         .lse = true});
    }
}

Test(attention_window, windows_leave_the_last_keys) {
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        try_windows("naive", type, 33);
        if (type == KN_F32) try_windows("tiled", type, 64);
        if (type == KN_F32) try_windows("tiled", type, 256);
    }
}

Test(attention_window, windows_leave_the_last_keys_on_tensor_cores) {
    const bool is_hopper = tol_context_device(test_context())->compute_capability == 90;
    for (enum kn_type type = KN_F16; type < KN_TYPES; type++) {
        for (size_t i = 0; i < 5; i += 1 + type % 2) {
            try_windows("tensor", type, head_sizes[i]);
            if (is_hopper) try_windows("wgmma", type, head_sizes[i]);
        }
    }
}

/* One row's window is all that the kernels for few rows are given. */
Test(attention_window, windows_of_one_row_are_served_by_all) {
    static const char *const names[] = {"decode", "grouped", NULL};
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        for (size_t v = 0; v < 3; v++) {
            if (type == KN_F32 && v == 1) continue;
            for (size_t window = 1; window <= 1500; window = window * 7 + 2) {
                attention_must_be_right(
                    &(struct kn_attention_trial){.attention = {.type = type,
                                                               .batch = 2,
                                                               .heads = 4,
                                                               .kv_heads = 2,
                                                               .q_length = 1,
                                                               .kv_length = 1030,
                                                               .head_size = 64,
                                                               .causal = true,
                                                               .window = window,
                                                               .variant = names[v]},
                                                 .distribution = KN_NORMAL,
                                                 .values = KN_UNIFORM,
                                                 .heads_inside = v == 0,
                                                 .lse = true,
                                                 .workspace = true});
            }
        }
    }
}
