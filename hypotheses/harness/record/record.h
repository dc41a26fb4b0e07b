/*
 * Record: the findings of one attack, as they are written to the evidence.
 *
 * OUT/attacks/NAME.json has samples, violations, the first counterexamples, effects and the ending;
 * OUT/NAME.hlog has the series.
 */
#ifndef HYP_RECORD_H
#define HYP_RECORD_H

#include "measure/conditions.h"
#include "harness/effect.h"
#include "tollens.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HYP_EXAMPLES_MAX = 8, HYP_SERIES_MAX = 32, HYP_NOTES_MAX = 8, HYP_EXAMPLE_BYTES = 1024 };
enum { HYP_MEASURES_MAX = 64 };

/* A number that an attack measured, in the claim's unit unless recorded_only. */
struct hyp_measure {
    char name[64];
    double value;
    bool recorded_only; /* the claim is not judged by it */
};

struct hyp_series {
    char name[64];
    struct tol_hdr *hdr;
};

struct hyp_record {
    char suite[16], name[96];
    uint64_t samples, violations;
    char examples[HYP_EXAMPLES_MAX][HYP_EXAMPLE_BYTES];
    size_t example_count;
    char notes[HYP_NOTES_MAX][256]; /* for people; the claim is not judged by them */
    size_t note_count;
    struct hyp_measure measures[HYP_MEASURES_MAX];
    size_t measure_count;
    char label[32]; /* how the attack differs from the claim, "scaled"; "": it does not */
    bool not_tested;
    char code[32], reason[512]; /* if not_tested */
    struct hyp_effect effects[HYP_EFFECTS_MAX];
    size_t effect_count;
    struct hyp_conditions before, after; /* if there are effects */
    double begin_s, duration_s;
    uint64_t seed;
    struct hyp_series series[HYP_SERIES_MAX];
    size_t series_count;
};

/* Writes a record below a folder. false: hyp_error(). */
bool hyp_record_write(const struct hyp_record *record, const char *folder);

/* Reads OUT/attacks/NAME.json back, without series. false: hyp_error(). */
bool hyp_record_read(const char *folder, const char *name, struct hyp_record *record);

/* The first effect that falsifies the claim, judged by this process alone; NULL: none. */
const struct hyp_effect *hyp_record_fallen(const struct hyp_record *record);

/* Arbitrary bytes as a JSON string; bytes that are not UTF-8 become question marks. */
struct json_t *hyp_record_text(const char *text);

void hyp_record_end(struct hyp_record *record);

#endif
