/*
 * Record: what one attack found, as it is written to the evidence.
 *
 * OUT/attacks/NAME.json has samples, violations, the first counterexamples, effects and how it
 * ended; OUT/NAME.hlog has its series.
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

/* A number that an attack measured, in the claim's unit unless it is recorded only. */
struct hyp_measure {
    char name[64];
    double value;
    bool recorded_only; /* the claim does not fall by it */
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
    char notes[HYP_NOTES_MAX][256]; /* for people; nothing is judged by them */
    size_t note_count;
    struct hyp_measure measures[HYP_MEASURES_MAX];
    size_t measure_count;
    char
        label[32]; /* how the attack differs from what the claim says, "scaled"; "" : it does not */
    bool not_tested;
    char code[32], reason[512]; /* of not being tested */
    struct hyp_effect effects[HYP_EFFECTS_MAX];
    size_t effect_count;
    struct hyp_conditions before, after; /* when there are effects */
    double begin_s, duration_s;
    uint64_t seed;
    struct hyp_series series[HYP_SERIES_MAX];
    size_t series_count;
};

/* Writes a record below a folder. false: hyp_error(). */
bool hyp_record_write(const struct hyp_record *record, const char *folder);

/* Reads OUT/attacks/NAME.json back; series are left out. false: hyp_error(). */
bool hyp_record_read(const char *folder, const char *name, struct hyp_record *record);

/* The first effect that the claim falls by, as far as this process can say; NULL: none. */
const struct hyp_effect *hyp_record_fallen(const struct hyp_record *record);

/* Text that may hold any bytes, as a JSON string: what is no UTF-8 becomes a question mark. */
struct json_t *hyp_record_text(const char *text);

void hyp_record_end(struct hyp_record *record);

#endif
