/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Checks of an optimizer's norm of the gradients, clipping and skipped steps. Sums and norms are
 * compared with ones that are computed bit by bit, so all paths have the same bits.
 */
#include "ops/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define F32 DS_ACCEL_DTYPE_FLOAT32
#define F16 DS_ACCEL_DTYPE_FLOAT16
#define B16 DS_ACCEL_DTYPE_BFLOAT16

#define WORDS DS_ACCEL_GRADIENT_SUM_WORDS

static const struct optimizer *tested;
static const struct ds_accel_op *op;
static struct tally tally;

#define CHECK(condition, ...) \
    do { \
        tally.checks++; \
        if (!(condition) && tally.failures++ < 20) { \
            fprintf(stderr, "%s, %s: ", tested->name, op->path()); \
            fprintf(stderr, __VA_ARGS__); \
            fputc('\n', stderr); \
        } \
    } while (0)

/* ---- the sum, bit by bit -------------------------------------------------------------------- */

/* The sum of bits[i] * 2^(i - 384). */
#define LEAST 384
#define BITS (WORDS * 32)

struct exact {
    unsigned char bits[BITS];
};

static double gradient_at(uint32_t dtype, const char *array, size_t index)
{
    float number;
    uint16_t bits;
    uint32_t wide;
    int exponent;
    double digits;

    if (dtype == F32) {
        memcpy(&number, array + index * 4, 4);
        return number;
    }
    memcpy(&bits, array + index * 2, 2);
    if (dtype == B16) {
        wide = (uint32_t)bits << 16;
        memcpy(&number, &wide, 4);
        return number;
    }
    exponent = (bits >> 10) & 31;
    digits = bits & 0x3FF;
    if (exponent == 31)
        return digits > 0 ? NAN : INFINITY;
    return exponent > 0 ? ldexp(0x400 + digits, exponent - 25) : ldexp(digits, -24);
}

static void add_square(struct exact *exact, double number)
{
    int exponent = 0;
    double fraction = frexp(fabs(number), &exponent);
    uint64_t digits = (uint64_t)ldexp(fraction, 24);
    unsigned carry = 0;

    digits *= digits;
    for (int i = 2 * (exponent - 24) + LEAST; digits > 0 || carry > 0; i++) {
        unsigned total = exact->bits[i] + (unsigned)(digits & 1) + carry;

        exact->bits[i] = total & 1;
        carry = total >> 1;
        digits >>= 1;
    }
}

static struct exact exact_sum(uint32_t dtype, const char *array, size_t count)
{
    struct exact exact = {{0}};

    for (size_t i = 0; i < count; i++) {
        double number = gradient_at(dtype, array, i);

        if (number != 0)
            add_square(&exact, number);
    }
    return exact;
}

/* Round the sum to nearest even, with the 53 digits of double; return its root. */
static double exact_norm(const struct exact *exact)
{
    int top = BITS - 1;
    uint64_t digits = 0;
    bool more = false;

    while (top >= 0 && !exact->bits[top])
        top--;
    if (top < 0)
        return 0;
    for (int i = top; i > top - 53; i--)
        digits = digits * 2 + (i >= 0 ? exact->bits[i] : 0);
    for (int i = 0; i < top - 53; i++)
        more |= exact->bits[i] != 0;
    if (top >= 53 && exact->bits[top - 53] && (more || digits % 2 == 1))
        digits++;
    return sqrt(ldexp((double)digits, top - 52 - LEAST));
}

static bool same_sum(const struct ds_accel_gradient_sum *sum, const struct exact *exact)
{
    for (unsigned i = 0; i < WORDS; i++) {
        int64_t word = 0;

        for (unsigned bit = 32; bit-- > 0;)
            word = word * 2 + exact->bits[i * 32 + bit];
        if (sum->words[i] != word)
            return false;
    }
    return sum->infinite_count == 0 && sum->nan_count == 0;
}

static bool same_number(double one, double other)
{
    uint64_t bits[2];

    memcpy(&bits[0], &one, sizeof(one));
    memcpy(&bits[1], &other, sizeof(other));
    return bits[0] == bits[1];
}

/* ---- gradients ------------------------------------------------------------------------------ */

static uint64_t state = 0x9E3779B97F4A7C15u;

static uint64_t random_bits(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static size_t bytes_of(uint32_t dtype)
{
    return dtype == F32 ? 4 : 2;
}

/* Of a type: bits of the fraction, and the largest exponent of finite numbers, as stored. */
static unsigned fraction_bits(uint32_t dtype)
{
    return dtype == F32 ? 23 : dtype == F16 ? 10 : 7;
}

static unsigned most_exponent(uint32_t dtype)
{
    return dtype == F16 ? 30 : 254;
}

static void put_bits(uint32_t dtype, char *array, size_t index, uint32_t bits)
{
    uint16_t narrow = (uint16_t)bits;

    if (dtype == F32)
        memcpy(array + index * 4, &bits, 4);
    else
        memcpy(array + index * 2, &narrow, 2);
}

/* Kinds of gradients, by the exponents that they have. */
enum kind {
    CLOSE,     /* within a few powers of 2 */
    SPREAD,    /* over 60 powers, or all that float16 has */
    ALL,       /* of all finite numbers, denormal ones included */
    DENORMAL,  /* only these */
    HUGE_ONES, /* the largest, whose squares are infinite in float */
    LARGEST,   /* the largest number, always */
    ZEROS,
    LONELY, /* one number among zeros */
    KINDS
};

static uint32_t random_gradient(uint32_t dtype, enum kind kind)
{
    unsigned fraction = fraction_bits(dtype);
    unsigned most = most_exponent(dtype);
    uint32_t sign = (uint32_t)(random_bits() >> 63) << (dtype == F32 ? 31 : 15);
    uint32_t digits = (uint32_t)random_bits() & ((1u << fraction) - 1);
    uint32_t random = (uint32_t)(random_bits() >> 32);
    uint32_t exponent = 0;

    switch (kind) {
    case CLOSE:
        exponent = most / 2 - random % 6;
        break;
    case SPREAD:
        exponent = most / 2 - random % (most / 2 < 60 ? most / 2 : 60);
        break;
    case ALL:
        exponent = random % (most + 1);
        break;
    case HUGE_ONES:
        exponent = most - random % 2;
        break;
    case LARGEST:
        exponent = most;
        digits = (1u << fraction) - 1;
        break;
    case ZEROS:
    case LONELY:
        digits = 0;
        break;
    default: /* denormal */
        break;
    }
    return sign | exponent << fraction | digits;
}

static void fill(uint32_t dtype, char *array, size_t count, enum kind kind)
{
    for (size_t i = 0; i < count; i++)
        put_bits(dtype, array, i, random_gradient(dtype, kind));
    if (kind == LONELY && count > 0)
        put_bits(dtype, array, random_bits() % count, random_gradient(dtype, ALL));
}

/* ---- steps ---------------------------------------------------------------------------------- */

/* The arrays of a tensor: gradients of one type, at a byte's offset, else floats. */
struct arrays {
    uint32_t dtype;
    size_t count;
    char *memory;
    char *gradients;
    float *updated; /* parameters, two states, copy, in a row */
};

static void make_arrays(struct arrays *arrays, uint32_t dtype, size_t count, size_t offset)
{
    /* A device reads elements at multiples of their size only. */
    if (strcmp(op->path(), "cuda") == 0)
        offset *= bytes_of(dtype);
    *arrays = (struct arrays){.dtype = dtype, .count = count};
    arrays->memory = calloc(1, count * bytes_of(dtype) + offset + 1);
    arrays->updated = calloc(4 * count + 1, sizeof(float));
    if (!arrays->memory || !arrays->updated)
        abort();
    arrays->gradients = arrays->memory + offset;
    for (size_t i = 0; i < 4 * count; i++)
        arrays->updated[i] = (float)(random_bits() % 1000) / 1000;
}

static void free_arrays(struct arrays *arrays)
{
    free(arrays->memory);
    free(arrays->updated);
}

static void copy_arrays(struct arrays *to, const struct arrays *from, size_t offset)
{
    make_arrays(to, from->dtype, from->count, offset);
    memcpy(to->gradients, from->gradients, from->count * bytes_of(from->dtype));
    memcpy(to->updated, from->updated, 4 * from->count * sizeof(float));
}

static bool same_arrays(const struct arrays *one, const struct arrays *other)
{
    const void *of_one = one->updated;
    const void *of_other = other->updated;

    return memcmp(of_one, of_other, 4 * one->count * sizeof(float)) == 0;
}

static struct ds_accel_optimizer_tensor tensor_of(const struct arrays *arrays, size_t from,
                                                  size_t count)
{
    return (struct ds_accel_optimizer_tensor){
        .count = count,
        .first_element = from,
        .parameter = arrays->updated + from,
        .gradient = arrays->gradients + from * bytes_of(arrays->dtype),
        .state = {arrays->updated + arrays->count + from,
                  arrays->updated + 2 * arrays->count + from},
        .copy = arrays->updated + 3 * arrays->count + from,
        .parameter_dtype = F32,
        .gradient_dtype = arrays->dtype,
        .state_dtype = F32,
        .copy_dtype = F32,
    };
}

static union options options_for(const struct ds_accel_optimizer_tensor *tensors, size_t count)
{
    union options options;

    memset(&options, 0, sizeof(options));
    options.common = (struct ds_accel_optimizer_step){
        .struct_size = (uint32_t)tested->options_bytes,
        .tensors = tensors,
        .tensor_count = count,
        .tensor_bytes = sizeof(*tensors),
        .threads = 1,
        .step = 3,
        .learning_rate = 0.01,
        .gradient_scale = 1,
    };
    tested->options(&options);
    return options;
}

static void step(const union options *options)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status = tested->step(op, options, &error);

    CHECK(status == DS_ACCEL_OK, "step: %d: %s", status, error.message);
}

static void add_sum(const union options *options, struct ds_accel_gradient_sum *sum)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status = tested->sum(op, options, sum, &error);

    CHECK(status == DS_ACCEL_OK, "sum_gradients: %d: %s", status, error.message);
}

/* ---- checks --------------------------------------------------------------------------------- */

static void check_norm(uint32_t dtype, enum kind kind, size_t count)
{
    struct arrays arrays;
    struct ds_accel_optimizer_tensor tensor;
    union options options;
    struct ds_accel_gradient_sum sum = {0};
    struct exact exact;
    double norm = -1;
    double wanted;
    uint32_t found = 0;

    make_arrays(&arrays, dtype, count, count % 5);
    fill(dtype, arrays.gradients, count, kind);
    exact = exact_sum(dtype, arrays.gradients, count);
    wanted = exact_norm(&exact);
    tensor = tensor_of(&arrays, 0, count);
    options = options_for(&tensor, 1);
    add_sum(&options, &sum);
    CHECK(same_sum(&sum, &exact), "type %u, kind %u, %zu: another sum", dtype, kind, count);
    options.common.gradient_norm = &norm;
    options.common.found_infinite = &found;
    step(&options);
    CHECK(same_number(norm, wanted), "type %u, kind %u, %zu: norm %.17g, wanted %.17g", dtype, kind,
          count, norm, wanted);
    CHECK(found == 0, "type %u, kind %u, %zu: found_infinite", dtype, kind, count);
    /* Without tensors, from the sum. */
    options.common.tensor_count = 0;
    options.common.gradient_sum = &sum;
    options.common.gradient_scale = -0.3;
    step(&options);
    CHECK(same_number(norm, wanted * 0.3), "type %u, kind %u, %zu: norm %.17g of the sum, %.17g",
          dtype, kind, count, norm, wanted * 0.3);
    free_arrays(&arrays);
}

/* Sums halfway between two doubles but for a gradient of 2^-100: the larger double is nearer. */
static void check_rounding(void)
{
    double wanted;
    double norm;

    for (unsigned i = 0; i < 64; i++) {
        struct arrays arrays;
        struct ds_accel_optimizer_tensor tensor;
        union options options;
        struct exact exact;
        float gradients[3] = {1.5f + (float)(random_bits() % 0x400000) * 0x1p-23f, 0x1p-26f,
                              0x1p-100f};

        make_arrays(&arrays, F32, 3, 0);
        memcpy(arrays.gradients, gradients, sizeof(gradients));
        exact = exact_sum(F32, arrays.gradients, 3);
        wanted = exact_norm(&exact);
        tensor = tensor_of(&arrays, 0, 3);
        options = options_for(&tensor, 1);
        options.common.gradient_norm = &norm;
        step(&options);
        CHECK(same_number(norm, wanted), "norm %.17g, wanted %.17g, beside %.9g", norm, wanted,
              (double)gradients[0]);
        free_arrays(&arrays);
    }
}

/* Whole, in slices, as tensors for several threads, at another alignment, as ranks. */
static void check_division(uint32_t dtype, enum kind kind, size_t count)
{
    struct arrays arrays;
    struct arrays moved;
    struct ds_accel_optimizer_tensor tensor;
    struct ds_accel_optimizer_tensor tensors[32];
    size_t tensor_count = 0;
    union options options;
    struct ds_accel_gradient_sum whole = {0};
    struct ds_accel_gradient_sum slices = {0};
    struct ds_accel_gradient_sum ranks = {0};
    struct ds_accel_gradient_sum threads = {0};
    struct exact exact;
    double norm = -1;

    make_arrays(&arrays, dtype, count, 0);
    fill(dtype, arrays.gradients, count, kind);
    copy_arrays(&moved, &arrays, 1);
    tensor = tensor_of(&arrays, 0, count);
    options = options_for(&tensor, 1);
    add_sum(&options, &whole);
    exact = exact_sum(dtype, arrays.gradients, count);
    CHECK(same_sum(&whole, &exact), "type %u, kind %u, %zu: another sum", dtype, kind, count);
    for (size_t from = 0; from < count;) {
        size_t part = tensor_count < 30 ? random_bits() % 13000 : count - from;
        struct ds_accel_gradient_sum rank = {0};

        part = part < count - from ? part : count - from;
        tensor = tensor_of(&moved, from, part);
        tensors[tensor_count++] = tensor;
        add_sum(&options, &slices);
        add_sum(&options, &rank);
        for (unsigned i = 0; i < WORDS; i++)
            ranks.words[i] += rank.words[i];
        from += part;
    }
    CHECK(memcmp(&slices, &whole, sizeof(whole)) == 0, "type %u, kind %u: slices", dtype, kind);
    options = options_for(tensors, tensor_count);
    options.common.threads = 0;
    add_sum(&options, &threads);
    CHECK(memcmp(&threads, &whole, sizeof(whole)) == 0, "type %u, kind %u: threads", dtype, kind);
    /* As many ranks of the same gradients have 2^13 times the norm of one. */
    for (unsigned i = 0; i < WORDS; i++)
        ranks.words[i] *= (int64_t)1 << 26;
    options.common.tensor_count = 0;
    options.common.gradient_sum = &ranks;
    options.common.gradient_norm = &norm;
    options.common.gradient_scale = 0x1p-13;
    step(&options);
    CHECK(same_number(norm, exact_norm(&exact)), "type %u, kind %u: norm %.17g of ranks, %.17g",
          dtype, kind, norm, exact_norm(&exact));
    free_arrays(&arrays);
    free_arrays(&moved);
}

/* A step that clips is one whose gradient_scale has the coefficient. */
static void check_clipping(uint32_t dtype, size_t count)
{
    static const double parts[] = {1e-9, 0.3, 0.999999, 1.5, 1e6};
    size_t slice = count / 3 + 1666;
    struct arrays arrays;
    struct ds_accel_optimizer_tensor tensor;
    union options options;
    double norm;

    make_arrays(&arrays, dtype, count, 0);
    fill(dtype, arrays.gradients, count, CLOSE);
    tensor = tensor_of(&arrays, 0, count);
    options = options_for(&tensor, 1);
    options.common.gradient_norm = &norm;
    options.common.gradient_scale = 0.25;
    options.common.learning_rate = 0;
    step(&options);
    for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        double max_norm = norm * parts[i];
        double coefficient = max_norm / (norm + 1e-6) < 1 ? max_norm / (norm + 1e-6) : 1;
        struct arrays clipped;
        struct arrays scaled;
        struct arrays sliced;
        struct ds_accel_gradient_sum sum = {0};

        copy_arrays(&clipped, &arrays, 0);
        copy_arrays(&scaled, &arrays, 0);
        copy_arrays(&sliced, &arrays, 0);
        tensor = tensor_of(&clipped, 0, count);
        options = options_for(&tensor, 1);
        options.common.gradient_scale = 0.25;
        options.common.max_norm = max_norm;
        options.common.threads = 3;
        step(&options);
        add_sum(&options, &sum);
        tensor = tensor_of(&scaled, 0, count);
        options.common.max_norm = 0;
        options.common.gradient_scale = 0.25 * coefficient;
        step(&options);
        CHECK(same_arrays(&clipped, &scaled), "type %u, max_norm %g of %g: another step", dtype,
              max_norm, norm);
        options.common.gradient_scale = 0.25;
        options.common.max_norm = max_norm;
        options.common.gradient_sum = &sum;
        for (size_t from = 0; from < count; from += slice) {
            tensor = tensor_of(&sliced, from, count - from < slice ? count - from : slice);
            step(&options);
        }
        CHECK(same_arrays(&clipped, &sliced), "type %u, max_norm %g of %g: other slices", dtype,
              max_norm, norm);
        free_arrays(&clipped);
        free_arrays(&scaled);
        free_arrays(&sliced);
    }
    free_arrays(&arrays);
}

/* Infinite gradients and NaN: a step is skipped only if asked to be. */
static void check_infinite(uint32_t dtype, bool is_nan, size_t count, size_t index)
{
    uint32_t bits = (most_exponent(dtype) + 1) << fraction_bits(dtype);
    struct arrays arrays;
    struct arrays before;
    struct ds_accel_optimizer_tensor tensor;
    union options options;
    struct ds_accel_gradient_sum sum = {0};
    struct ds_accel_gradient_sum wanted = {.infinite_count = !is_nan, .nan_count = is_nan};
    double norm = 0;
    uint32_t found = 0;

    make_arrays(&arrays, dtype, count, 0);
    fill(dtype, arrays.gradients, count, CLOSE);
    /* A NaN is reported beside infinite gradients too. */
    if (is_nan)
        put_bits(dtype, arrays.gradients, count - 1 - index, bits);
    put_bits(dtype, arrays.gradients, index, bits | is_nan);
    copy_arrays(&before, &arrays, 0);
    tensor = tensor_of(&arrays, 0, count);
    options = options_for(&tensor, 1);
    options.common.flags = DS_ACCEL_OPTIMIZER_SKIP_INFINITE;
    options.common.threads = 2;
    step(&options);
    options.common.found_infinite = &found;
    options.common.gradient_norm = &norm;
    options.common.max_norm = 1;
    step(&options);
    CHECK(same_arrays(&arrays, &before), "type %u, element %zu of %zu: changed", dtype, index,
          count);
    CHECK(found == 1 && (is_nan ? isnan(norm) : norm == INFINITY),
          "type %u, element %zu of %zu: found_infinite %u, norm %g", dtype, index, count, found,
          norm);
    add_sum(&options, &sum);
    CHECK(memcmp(&sum, &wanted, sizeof(sum)) == 0,
          "type %u, element %zu of %zu: %lld infinite, %lld NaN", dtype, index, count,
          (long long)sum.infinite_count, (long long)sum.nan_count);
    /* The sum of all slices counts, not this slice. */
    memset(arrays.gradients, 0, count * bytes_of(dtype));
    options.common.gradient_sum = &sum;
    options.common.max_norm = 0;
    options.common.gradient_norm = NULL;
    found = 0;
    step(&options);
    CHECK(same_arrays(&arrays, &before) && found == 1, "type %u: changed beside a slice", dtype);
    found = 0;
    options.common.flags = 0;
    step(&options);
    CHECK(!same_arrays(&arrays, &before) && found == 1, "type %u: skipped, found_infinite %u",
          dtype, found);
    free_arrays(&arrays);
    free_arrays(&before);
}

/* A usable step is not skipped, and an infinite norm makes the coefficient 0. */
static void check_not_skipped(uint32_t dtype)
{
    struct arrays arrays;
    struct arrays before;
    struct ds_accel_optimizer_tensor tensor;
    union options options;
    uint32_t found = 0;

    make_arrays(&arrays, dtype, 100, 0);
    fill(dtype, arrays.gradients, 100, CLOSE);
    copy_arrays(&before, &arrays, 0);
    tensor = tensor_of(&before, 0, 100);
    options = options_for(&tensor, 1);
    step(&options);
    tensor = tensor_of(&arrays, 0, 100);
    options.common.flags = DS_ACCEL_OPTIMIZER_SKIP_INFINITE;
    options.common.found_infinite = &found;
    step(&options);
    CHECK(same_arrays(&arrays, &before) && found == 0, "type %u: a usable step", dtype);
    /* All gradients become 0 beside an infinite one, as torch's do. */
    put_bits(dtype, arrays.gradients, 50, (most_exponent(dtype) + 1) << fraction_bits(dtype));
    memset(before.gradients, 0, 100 * bytes_of(dtype));
    options.common.flags = 0;
    options.common.max_norm = 1;
    step(&options);
    tensor = tensor_of(&before, 0, 100);
    options.common.max_norm = 0;
    options.common.found_infinite = NULL;
    step(&options);
    CHECK(found == 1, "type %u: found_infinite %u", dtype, found);
    for (size_t i = 0; i < 100; i++)
        CHECK(i == 50 || arrays.updated[i] == before.updated[i],
              "type %u: parameter %zu is %g beside an infinite gradient, wanted %g", dtype, i,
              (double)arrays.updated[i], (double)before.updated[i]);
    free_arrays(&arrays);
    free_arrays(&before);
}

static void refused(int32_t status, const struct ds_accel_error *error, int32_t wanted,
                    const char *text)
{
    CHECK(status == wanted && error->code == wanted, "status %d, wanted %d", status, wanted);
    CHECK(strstr(error->message, text), "\"%s\", wanted \"%s\"", error->message, text);
}

/* Pass the options that ask for more than an update, one by one. */
static void check_refusals(step_fn call, int32_t wanted, const char *const texts[6])
{
    struct arrays arrays;
    struct arrays before;
    struct ds_accel_optimizer_tensor tensor;
    struct ds_accel_gradient_sum sum = {0};
    double norm = -1;
    uint32_t found = 7;

    make_arrays(&arrays, F32, 50, 0);
    copy_arrays(&before, &arrays, 0);
    tensor = tensor_of(&arrays, 0, 50);
    tensor.copy = NULL;
    for (unsigned i = 0; i < 6; i++) {
        struct ds_accel_error error = {.struct_size = sizeof(error)};
        union options options = options_for(&tensor, 1);

        if (i == 0)
            options.common.max_norm = 1;
        else if (i == 1)
            options.common.gradient_norm = &norm;
        else if (i == 2)
            options.common.gradient_sum = &sum;
        else if (i == 3)
            options.common.flags = DS_ACCEL_OPTIMIZER_SKIP_INFINITE;
        else if (i == 4)
            options.common.found_infinite = &found;
        else
            tensor.copy = arrays.updated + 150;
        if (texts[i])
            refused(call(op, &options, &error), &error, wanted, texts[i]);
    }
    CHECK(same_arrays(&arrays, &before) && norm == -1 && found == 7,
          "a refused call did something");
    free_arrays(&arrays);
    free_arrays(&before);
}

static void check_arguments(void)
{
    static const char *const of_rollback[] = {
        "max_norm is 1; wanted 0",     "gradient_norm is set; wanted NULL",
        "gradient_sum is set",         "flags has SKIP_INFINITE",
        "found_infinite is set; want", "tensor 0: copy is set; wanted NULL",
    };
    static const double norms[] = {-1, NAN, INFINITY};
    union options options = options_for(NULL, 0);
    struct ds_accel_gradient_sum sum = {{0}, 0, 0};
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    for (unsigned i = 0; i < 3; i++) {
        options.common.max_norm = norms[i];
        refused(tested->step(op, &options, &error), &error, DS_ACCEL_ERR_INVALID, "max_norm is ");
    }
    options.common.max_norm = 0;
    refused(tested->sum(op, &options, NULL, &error), &error, DS_ACCEL_ERR_INVALID, "sum is NULL");
    refused(tested->sum(op, NULL, &sum, &error), &error, DS_ACCEL_ERR_INVALID, "options is NULL");
    if (tested->rollback)
        check_refusals(tested->rollback, DS_ACCEL_ERR_INVALID, of_rollback);
}

struct tally check_gradients(const struct optimizer *optimizer, const struct ds_accel_op *of,
                             size_t most, size_t stride)
{
    size_t positions[] = {0, 1, 250, most / 2 - 1, most / 3};

    tested = optimizer;
    op = of;
    tally = (struct tally){0, 0};
    for (uint32_t dtype = F32; dtype <= B16; dtype++) {
        for (unsigned kind = 0; kind < KINDS; kind++) {
            for (size_t count = 0; count <= 257; count += stride)
                check_norm(dtype, (enum kind)kind, count);
            check_norm(dtype, (enum kind)kind, 2047 + kind);
            if (kind != ZEROS && kind != LONELY)
                check_division(dtype, (enum kind)kind, most);
        }
        for (unsigned i = 0; i < sizeof(positions) / sizeof(positions[0]); i++)
            for (unsigned is_nan = 0; is_nan < 2; is_nan++) {
                if (i < 3)
                    check_infinite(dtype, is_nan, 253, positions[i]);
                check_infinite(dtype, is_nan, most, positions[i]);
            }
        /* by several threads, unless the CPU is emulated */
        check_clipping(dtype, most > 10000 ? 70001 : 7001);
        check_not_skipped(dtype);
    }
    check_rounding();
    check_arguments();
    return tally;
}
