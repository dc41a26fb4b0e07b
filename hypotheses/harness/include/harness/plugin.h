/*
 * Plugin: claims about a library of your own, as a shared library that `tollens --plugin` loads.
 *
 *     #include <tollens/harness/plugin.h>
 *
 *     static const struct hyp_plugin_claim claims[] = {{.id = "SUM", .title = "...", ...}, {0}};
 *     HYP_PLUGIN(.name = "sums", .version = "1.0", .claims = claims);
 *
 *     HYP_ATTACK(sum, every_length_is_right) { ... HYP_CHECK(attack, ...); }
 *
 * Include this header before all others of the harness, and write attacks as attack.h says: the
 * suite of a claim is its id in small letters. HYP_PLUGIN stands once in the library. Compile with
 * $(pkg-config --cflags tollens-harness) -shared -fPIC, and link neither with the harness nor with
 * libtollens: both are in the program that loads the plugin. What is declared is read when the
 * plugin is loaded, in each process anew, and must stay as it is. C++ may be behind the attacks;
 * this header is C.
 */
#ifndef HYP_PLUGIN_H
#define HYP_PLUGIN_H

#include "attack.h"
#include "claim.h"
#include "sabotage.h"

/* Grows with each change that a plugin would notice and a compiler would not; the layout tells of
 * those that change a size, such as a driver function more. */
#define HYP_PLUGIN_ABI 1u
#define HYP_PLUGIN_LAYOUT                                                                          \
    ((uint32_t)(((((sizeof(struct hyp_plugin) * 31 + sizeof(struct hyp_plugin_claim)) * 31 +       \
                   sizeof(struct hyp_attack) + sizeof(struct hyp_attack_wants)) *                  \
                      31 +                                                                         \
                  sizeof(struct hyp_pair)) *                                                       \
                     31 +                                                                          \
                 sizeof(struct hyp_fault) + sizeof(struct tol_pool_options)) *                     \
                    31 +                                                                           \
                sizeof(struct tol_driver_table)))

struct hyp_plugin_claim {
    const char *id; /* "SUM": 2 to 8 capital letters and digits, a letter first, and not H7 */
    const char *title, *unit;
    const char *source; /* what promises it: a manual's section, an issue */
    double threshold;
    double tolerance; /* how much worse than a baseline is still the same, for tollens gate */
    enum hyp_direction direction;
    struct hyp_words words;               /* but for the number, which is the harness's */
    const struct hyp_saboteur *saboteurs; /* .name and .forced; one without a name ends them */
};

struct hyp_plugin_attack {
    const char *suite, *name;
    struct hyp_attack_wants wants;
    void (*body)(struct hyp_attack *attack);
};

struct hyp_plugin {
    uint32_t abi, layout; /* the first two in every version: they are looked at before the others */
    const char *name, *version;
    const struct hyp_plugin_claim *claims; /* one without an id ends them */
    const struct hyp_fault *faults;        /* one without a name ends them; NULL: it adds none */
    const struct hyp_plugin_attack *const *attacks, *const *attacks_end;
};

/* The attacks of all files of the plugin stand in a section of their own, whose ends the linker
 * knows. */
extern const struct hyp_plugin_attack *const __start_hyp_attacks[]
    __attribute__((weak, visibility("hidden")));
extern const struct hyp_plugin_attack *const __stop_hyp_attacks[]
    __attribute__((weak, visibility("hidden")));

#define HYP_PLUGIN(...)                                                                            \
    extern const struct hyp_plugin tollens_plugin;                                                 \
    __attribute__((visibility("default")))                                                         \
    const struct hyp_plugin tollens_plugin = {.abi = HYP_PLUGIN_ABI,                               \
                                              .layout = HYP_PLUGIN_LAYOUT,                         \
                                              .attacks = __start_hyp_attacks,                      \
                                              .attacks_end = __stop_hyp_attacks,                   \
                                              __VA_ARGS__}

#define HYP_ATTACK_WITH(suite_, name_, ...)                                                        \
    static void attack_##name_(struct hyp_attack *attack);                                         \
    static const struct hyp_plugin_attack attack_entry_##name_ = {                                 \
        .suite = #suite_, .name = #name_, .wants = {__VA_ARGS__}, .body = attack_##name_};         \
    static const struct hyp_plugin_attack *const attack_place_##name_                              \
        __attribute__((used, section("hyp_attacks"))) = &attack_entry_##name_;                     \
    static void attack_##name_(struct hyp_attack *attack)

#endif
