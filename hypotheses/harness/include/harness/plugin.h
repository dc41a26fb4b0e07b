/*
 * Plugin: claims about your own library, in a shared library that `tollens --plugin` loads.
 *
 *     #include <tollens/harness/plugin.h>
 *
 *     static const struct hyp_plugin_claim claims[] = {{.id = "SUM", .title = "...", ...}, {0}};
 *     HYP_PLUGIN(.name = "sums", .version = "1.0", .claims = claims);
 *
 *     HYP_ATTACK(sum, every_length_is_right) { ... HYP_CHECK(attack, ...); }
 *
 * Include this header before all other headers of the harness. attack.h describes attacks; the
 * suite of a claim is its id in lower case. Use HYP_PLUGIN once in the library. Compile with
 * $(pkg-config --cflags tollens-harness) -shared -fPIC. Do not link with the harness or libtollens:
 * the program that loads the plugin contains both. Each process reads the declaration when it loads
 * the plugin; the declaration must not change after that. The attacks can call C++, but this
 * header is C.
 */
#ifndef HYP_PLUGIN_H
#define HYP_PLUGIN_H

#include "attack.h"
#include "claim.h"
#include "sabotage.h"

/* HYP_PLUGIN_ABI increases with each change of meaning that affects plugins. HYP_PLUGIN_LAYOUT
 * detects changes of size, such as an additional driver function. */
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
    const char *source; /* where the claim is made: a section of a manual, an issue */
    double threshold;
    double tolerance; /* how much worse than a baseline counts as the same, for tollens gate */
    enum hyp_direction direction;
    /* Its attacks judge neither times nor how much memory of the device is free, so they may run
     * beside others, of other claims or of other seeds. False: they run alone. */
    bool shares_device;
    struct hyp_words words;               /* without .number, which the harness sets */
    const struct hyp_saboteur *saboteurs; /* .name and .forced; the list ends with a NULL name */
    /* Faults in several sizes, "drop_one_in=10,100,1000", for the detection limits that --limits
     * measures; the list ends with NULL. At most 4; may be NULL. From gross to fine: the amounts of
     * a fault whose name has "_one_in" rise, others fall. */
    const char *const *ladders;
};

struct hyp_plugin_attack {
    const char *suite, *name;
    struct hyp_attack_wants wants;
    void (*body)(struct hyp_attack *attack);
};

struct hyp_plugin {
    uint32_t abi, layout; /* first in every version: they are checked before the rest is read */
    const char *name, *version;
    const struct hyp_plugin_claim *claims; /* the list ends with a NULL id */
    const struct hyp_fault *faults;        /* the list ends with a NULL name; may be NULL */
    const struct hyp_plugin_attack *const *attacks, *const *attacks_end;
};

/* The linker collects the attacks of all files of the plugin in a section, and defines its ends. */
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
