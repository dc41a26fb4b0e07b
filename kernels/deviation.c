/*
 * Compares element by element.
 */
#include "deviation.h"

#include <math.h>
#include <stdio.h>

static double deviation_element(enum kn_type type, const void *elements, size_t i) {
    switch (type) {
    case KN_F16:
        return (double)kn_f16_value(((const uint16_t *)elements)[i]);
    case KN_BF16:
        return (double)kn_bf16_value(((const uint16_t *)elements)[i]);
    case KN_F32:
    case KN_TYPES:
        break;
    }
    return (double)((const float *)elements)[i];
}

/* To float first, as what is given is no closer to the middle of two than that. */
static double deviation_rounded(enum kn_type type, double value) {
    switch (type) {
    case KN_F16:
        return (double)kn_f16_value(kn_f16_of((float)value));
    case KN_BF16:
        return (double)kn_bf16_value(kn_bf16_of((float)value));
    case KN_F32:
    case KN_TYPES:
        break;
    }
    return (double)(float)value;
}

/* The distance of neighbours of the type around a finite value; of subnormal ones below. */
static double unit_in_last_place(enum kn_type type, double value) {
    const int digits = type == KN_F16 ? 11 : type == KN_BF16 ? 8 : 24;
    const int least = type == KN_F16 ? -24 : type == KN_BF16 ? -133 : -149;
    int exponent = 0;
    (void)frexp(value, &exponent);
    const int place = value != 0 ? exponent - digits : least;
    return ldexp(1, place > least ? place : least);
}

static bool same_class(double value, double oracle) {
    if (isnan(oracle)) return isnan(value);
    return value == oracle; /* infinite: of the same sign */
}

static void note_worst(struct kn_deviation *d, size_t i, double share, double value,
                       double oracle) {
    if (d->worst != KN_NOWHERE && !(share > d->normalised)) return;
    d->normalised = share;
    d->worst = (int64_t)i;
    d->worst_value = value;
    d->worst_oracle = oracle;
}

static void note_octave(struct kn_deviation *d, double share) {
    int exponent = -KN_OCTAVES; /* share is in (2^(exponent - 1), 2^exponent], but for 0 */
    if (share > 0 && frexp(share, &exponent) == 0.5) exponent--;
    const int octave = -exponent < KN_OCTAVES - 1 ? -exponent : KN_OCTAVES - 1;
    if (octave >= 0) d->octaves[octave]++;
}

static void deviation_note_failure(struct kn_deviation *d, size_t i) {
    d->failed++;
    if (d->first == KN_NOWHERE) d->first = (int64_t)i;
}

static void compare_special(struct kn_deviation *d, size_t i, double value, double oracle) {
    if (same_class(value, oracle)) {
        d->exact++;
        note_octave(d, 0);
        note_worst(d, i, 0, value, oracle);
        return;
    }
    if (isnan(value) || isnan(oracle)) {
        d->nan++;
    } else {
        d->infinite++;
    }
    d->absolute = d->relative = d->ulp = INFINITY;
    deviation_note_failure(d, i);
    note_worst(d, i, INFINITY, value, oracle);
}

struct kn_deviation kn_deviation_of(enum kn_type type, const void *elements, const double *oracle,
                                    size_t count, struct kn_tolerance tolerance,
                                    const double *allowed) {
    struct kn_deviation d = {.count = count, .first = KN_NOWHERE, .worst = KN_NOWHERE};
    double squares = 0;
    size_t finite = 0;
    for (size_t i = 0; i < count; i++) {
        const double value = deviation_element(type, elements, i);
        /* What overflows the type is expected to be infinite. */
        const double nearest = deviation_rounded(type, oracle[i]);
        if (!isfinite(value) || !isfinite(nearest)) {
            compare_special(&d, i, value, nearest);
            continue;
        }
        const double difference = fabs(value - oracle[i]);
        const double limit = allowed != NULL
                                 ? allowed[i]
                                 : tolerance.absolute + tolerance.relative * fabs(oracle[i]);
        d.exact += value == nearest;
        d.absolute = fmax(d.absolute, difference);
        if (oracle[i] != 0) d.relative = fmax(d.relative, difference / fabs(oracle[i]));
        d.ulp = fmax(d.ulp, fabs(value - nearest) / unit_in_last_place(type, nearest));
        squares += difference * difference;
        finite++;
        const double share = difference == 0 ? 0 : difference / limit;
        if (!(difference <= limit)) {
            deviation_note_failure(&d, i);
        } else {
            note_octave(&d, share);
        }
        note_worst(&d, i, share, value, oracle[i]);
    }
    d.root_mean_square = finite > 0 ? sqrt(squares / (double)finite) : 0;
    return d;
}

struct kn_deviation kn_deviation_join(struct kn_deviation a, struct kn_deviation b) {
    struct kn_deviation d = a;
    const double total = (double)a.count + (double)b.count;
    d.count += b.count, d.failed += b.failed, d.exact += b.exact;
    d.nan += b.nan, d.infinite += b.infinite;
    for (int i = 0; i < KN_OCTAVES; i++) d.octaves[i] += b.octaves[i];
    d.absolute = fmax(a.absolute, b.absolute);
    d.relative = fmax(a.relative, b.relative);
    d.ulp = fmax(a.ulp, b.ulp);
    if (total > 0) {
        d.root_mean_square = sqrt((a.root_mean_square * a.root_mean_square * (double)a.count +
                                   b.root_mean_square * b.root_mean_square * (double)b.count) /
                                  total);
    }
    if (a.first == KN_NOWHERE && b.first != KN_NOWHERE) d.first = b.first + (int64_t)a.count;
    if (b.worst != KN_NOWHERE && (a.worst == KN_NOWHERE || b.normalised > a.normalised)) {
        d.normalised = b.normalised;
        d.worst = b.worst + (int64_t)a.count;
        d.worst_value = b.worst_value;
        d.worst_oracle = b.worst_oracle;
    }
    return d;
}

const char *kn_deviation_text(const struct kn_deviation *d, char *text, size_t bytes) {
    int used = snprintf(text, bytes, "%zu of %zu fail", d->failed, d->count);
    if (d->failed > 0 && used > 0 && (size_t)used < bytes) {
        used +=
            snprintf(text + used, bytes - (size_t)used, " (%zu NaN, %zu infinite), first at %lld",
                     d->nan, d->infinite, (long long)d->first);
    }
    if (d->worst != KN_NOWHERE && used > 0 && (size_t)used < bytes) {
        snprintf(text + used, bytes - (size_t)used,
                 "; worst at %lld: %.9g and not %.9g; at most %.3g absolute, %.3g relative, %.3g "
                 "ULP, %.3g of what is allowed",
                 (long long)d->worst, d->worst_value, d->worst_oracle, d->absolute, d->relative,
                 d->ulp, d->normalised);
    }
    return text;
}
