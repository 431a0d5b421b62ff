/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * PROGRAM FILE.so ...; OPS_SAMPLE=1: fewer elements; OPS_SAMPLE=2: even fewer, for an emulated CPU;
 * OPS_PATH=NAME: this path only.
 *
 * Every check runs on every code path that the CPU has, each in a process of its own, because a
 * process chooses its path once. A check that fails prints what differs. All paths must compute the
 * same bits: each process returns a hash of all results, and the hashes are compared.
 */
#include "ops/optimizer.h"

#include <assert.h>
#include <dlfcn.h>
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define F32 DS_ACCEL_DTYPE_FLOAT32
#define F16 DS_ACCEL_DTYPE_FLOAT16
#define B16 DS_ACCEL_DTYPE_BFLOAT16

/* How much is checked, by OPS_SAMPLE. Paths are compared by the bits of all results, so runs that
 * are compared must have the same amount. */
struct amount {
    size_t most;         /* elements of the largest cases: several chunks, and odd */
    size_t gradients;    /* elements of the largest sums of gradients: odd */
    size_t stride;       /* of all lengths up to 257, one in this many */
    size_t large_types;  /* types that are checked with `most` elements, one in this many */
    size_t roundings;    /* stochastic ones, on paths of this CPU */
    size_t emulated;     /* the same on other paths, where a million takes seconds */
    bool has_large_copy; /* one so large that it is stored past the caches */
};

static const struct amount amounts[] = {
    {.most = 200003,
     .gradients = 200003,
     .stride = 1,
     .large_types = 1,
     .roundings = 1000000,
     .emulated = 100000,
     .has_large_copy = true},
    {.most = 20011,
     .gradients = 20011,
     .stride = 19,
     .large_types = 1,
     .roundings = 1000000,
     .emulated = 25000,
     .has_large_copy = true},
    {.most = 20011,
     .gradients = 4099,
     .stride = 37,
     .large_types = 5,
     .roundings = 25000,
     .emulated = 25000,
     .has_large_copy = false},
};
static const struct amount *amount = &amounts[0];
static size_t roundings;

static const struct optimizer *optimizer;
static const struct ds_accel_op *op;
static uint64_t hash = 0xcbf29ce484222325u;
static unsigned failures;
static unsigned checks;

static const uint32_t types[][3] = {
    {F32, F32, F32}, {F32, F16, F32}, {F32, B16, F32}, {F16, F32, F32}, {F16, F16, F32},
    {F16, B16, F32}, {F16, F32, F16}, {F16, F16, F16}, {F16, B16, F16}, {B16, F32, F32},
    {B16, F16, F32}, {B16, B16, F32}, {B16, F32, B16}, {B16, F16, B16}, {B16, B16, B16},
};
#define TYPES (sizeof(types) / sizeof(types[0]))

#define CHECK(condition, ...) \
    do { \
        checks++; \
        if (!(condition) && failures++ < 20) { \
            fprintf(stderr, "%s, %s: ", optimizer->name, op->path()); \
            fprintf(stderr, __VA_ARGS__); \
            fputc('\n', stderr); \
        } \
    } while (0)

/* ---- numbers -------------------------------------------------------------------------------- */

static size_t bytes_of(uint32_t dtype)
{
    return dtype == F32 ? 4 : 2;
}

static double get(uint32_t dtype, const char *array, size_t index)
{
    float number;
    uint16_t bits;
    uint32_t wide;
    int exponent;
    double magnitude;

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
    if (exponent == 31)
        magnitude = bits & 0x3FF ? NAN : INFINITY;
    else if (exponent == 0)
        magnitude = ldexp(bits & 0x3FF, -24);
    else
        magnitude = ldexp(0x400 + (bits & 0x3FF), exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

/* Round a number to a multiple of the type's quantum there: -1 down, 0 to nearest even, 1 up. */
static double rounded(uint32_t dtype, double number, int direction)
{
    int digits = dtype == F32 ? 24 : dtype == F16 ? 11 : 8;
    int least = dtype == F32 ? -149 : dtype == F16 ? -24 : -133;
    double largest = dtype == F32 ? (double)FLT_MAX : dtype == F16 ? 65504 : 0x1.FEp127;
    int exponent;
    double quotient;

    if (number == 0 || !isfinite(number))
        return number;
    frexp(number, &exponent);
    exponent = exponent - digits > least ? exponent - digits : least;
    quotient = ldexp(number, -exponent);
    quotient = direction < 0 ? floor(quotient) : direction > 0 ? ceil(quotient) : rint(quotient);
    number = ldexp(quotient, exponent);
    if (fabs(number) > largest)
        return number > 0 ? INFINITY : -INFINITY;
    return number;
}

/* Store a number that the type can represent. */
static void put(uint32_t dtype, char *array, size_t index, double number)
{
    float narrow = (float)rounded(dtype, number, 0);
    uint32_t wide;
    uint16_t bits;
    int exponent;
    double magnitude = fabs((double)narrow);

    if (dtype == F32) {
        memcpy(array + index * 4, &narrow, 4);
        return;
    }
    memcpy(&wide, &narrow, 4);
    if (dtype == B16) {
        bits = (uint16_t)(wide >> 16);
    } else {
        bits = (uint16_t)((wide >> 16) & 0x8000);
        if (narrow != narrow) {
            bits = 0x7E00;
        } else if (isinf(magnitude)) {
            bits |= 0x7C00;
        } else if (magnitude >= 0x1p-14) {
            frexp(magnitude, &exponent);
            bits |= (uint16_t)((exponent + 14) << 10 |
                               ((unsigned)ldexp(magnitude, 11 - exponent) & 0x3FF));
        } else {
            bits |= (uint16_t)ldexp(magnitude, 24);
        }
    }
    memcpy(array + index * 2, &bits, 2);
}

static uint64_t state = 88172645463325252u;

static uint64_t random_bits(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Return a number in [-1, 1]. */
static double random_number(void)
{
    return (double)(int64_t)random_bits() * 0x1p-63;
}

/* ---- cases ---------------------------------------------------------------------------------- */

/* Arrays of one tensor; each begins offset bytes behind an aligned address. */
struct arrays {
    const uint32_t *types; /* parameter, gradient, state */
    size_t count;
    size_t offset;
    char *memory[5];
    char *at[5]; /* parameter, gradient, two states, copy */
    size_t bytes[5];
};

static void allocate_arrays(struct arrays *arrays, const uint32_t *of, size_t count, size_t offset)
{
    uint32_t dtypes[5] = {of[0], of[1], of[2], of[2], F32};

    /* A device reads elements at multiples of their size only. */
    if (strcmp(op->path(), "cuda") == 0)
        offset *= 4;
    arrays->types = of;
    arrays->count = count;
    arrays->offset = offset;
    for (unsigned i = 0; i < 5; i++) {
        arrays->bytes[i] = count * bytes_of(dtypes[i]);
        arrays->memory[i] = calloc(1, arrays->bytes[i] + offset + 8);
        if (!arrays->memory[i])
            abort();
        arrays->at[i] = arrays->memory[i] + offset;
        /* Bytes behind the arrays, which must stay. */
        memset(arrays->at[i] + arrays->bytes[i], 0x5A, 8);
    }
}

static void make_arrays(struct arrays *arrays, const uint32_t *of, size_t count, size_t offset)
{
    allocate_arrays(arrays, of, count, offset);
    for (size_t i = 0; i < count; i++) {
        put(of[0], arrays->at[0], i, random_number());
        put(of[1], arrays->at[1], i, random_number() * exp2(random_number() * 8 - 4));
        put(of[2], arrays->at[2], i,
            optimizer->first_state_positive ? fabs(random_number()) : random_number() * 0.1);
        put(of[2], arrays->at[3], i,
            optimizer->second_state_positive ? fabs(random_number()) * 0.01 : random_number());
    }
}

static void copy_arrays(struct arrays *to, const struct arrays *from, size_t offset)
{
    allocate_arrays(to, from->types, from->count, offset);
    for (unsigned i = 0; i < 5; i++)
        memcpy(to->at[i], from->at[i], from->bytes[i]);
}

static void free_arrays(struct arrays *arrays)
{
    for (unsigned i = 0; i < 5; i++) {
        for (unsigned byte = 0; byte < 8; byte++)
            CHECK(arrays->at[i][arrays->bytes[i] + byte] == 0x5A,
                  "array %u: byte behind it changed", i);
        free(arrays->memory[i]);
    }
}

static void set_tensor(struct ds_accel_optimizer_tensor *tensor, const struct arrays *arrays,
                       size_t from, size_t count)
{
    *tensor = (struct ds_accel_optimizer_tensor){
        .count = count,
        .first_element = from,
        .parameter = arrays->at[0] + from * bytes_of(arrays->types[0]),
        .gradient = arrays->at[1] + from * bytes_of(arrays->types[1]),
        .state = {arrays->at[2] + from * bytes_of(arrays->types[2]),
                  arrays->at[3] + from * bytes_of(arrays->types[2])},
        .parameter_dtype = arrays->types[0],
        .gradient_dtype = arrays->types[1],
        .state_dtype = arrays->types[2],
    };
}

static void set_options(union options *options, const struct step *step,
                        const struct ds_accel_optimizer_tensor *tensors, size_t count)
{
    memset(options, 0, sizeof(*options));
    options->common = (struct ds_accel_optimizer_step){
        .struct_size = (uint32_t)optimizer->options_bytes,
        .flags = step->flags,
        .tensors = tensors,
        .tensor_count = count,
        .tensor_bytes = sizeof(*tensors),
        .threads = 1,
        .step = step->step,
        .learning_rate = step->learning_rate,
        .weight_decay = step->weight_decay,
        .gradient_scale = step->gradient_scale,
    };
    optimizer->options(options);
}

static void take_step(const struct step *step, const struct arrays *arrays)
{
    struct ds_accel_optimizer_tensor tensor;
    union options options;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    int32_t status;

    set_tensor(&tensor, arrays, 0, arrays->count);
    set_options(&options, step, &tensor, 1);
    status = optimizer->step(op, &options, &error);
    CHECK(status == DS_ACCEL_OK, "step: %d: %s", status, error.message);
}

/* Add an array to the hash. A NaN counts as one value: its bits are not fixed. */
static void add_to_hash(const struct arrays *arrays)
{
    uint32_t dtypes[4] = {arrays->types[0], arrays->types[1], arrays->types[2], arrays->types[2]};

    for (unsigned i = 0; i < 4; i++) {
        size_t bytes = bytes_of(dtypes[i]);

        for (size_t element = 0; element < arrays->count; element++) {
            const unsigned char *at = (const unsigned char *)arrays->at[i] + element * bytes;
            bool is_nan = isnan(get(dtypes[i], arrays->at[i], element));

            for (size_t byte = 0; byte < bytes; byte++)
                hash = (hash ^ (is_nan ? 0xEE : at[byte])) * 0x100000001b3u;
        }
    }
}

static bool same(const struct arrays *one, const struct arrays *other)
{
    for (unsigned i = 0; i < 4; i++)
        if (memcmp(one->at[i], other->at[i], one->bytes[i]) != 0)
            return false;
    return true;
}

/* ---- checks --------------------------------------------------------------------------------- */

/* A stored number must be the rounding of one that lies within slack of the reference. */
static void check_number(const char *what, uint32_t dtype, double stored, double reference,
                         double slack, const struct arrays *arrays, size_t index, int spread)
{
    double low = rounded(dtype, reference - slack, -spread);
    double high = rounded(dtype, reference + slack, spread);

    CHECK(stored >= low && stored <= high,
          "%s %zu of %zu, types %u %u %u: %.9g, wanted %.9g to %.9g", what, index, arrays->count,
          arrays->types[0], arrays->types[1], arrays->types[2], stored, low, high);
}

/* Take a step of the arrays, and free them. */
static void compare_step(struct arrays *arrays, const struct step *step)
{
    const uint32_t *of = arrays->types;
    struct element *elements = calloc(arrays->count + 1, sizeof(*elements));
    bool stochastic = (step->flags & DS_ACCEL_OPTIMIZER_STOCHASTIC) != 0;

    if (!elements)
        abort();
    for (size_t i = 0; i < arrays->count; i++)
        elements[i] = (struct element){
            .parameter = get(of[0], arrays->at[0], i),
            .gradient = get(of[1], arrays->at[1], i),
            .state = {get(of[2], arrays->at[2], i), get(of[2], arrays->at[3], i)},
        };
    take_step(step, arrays);
    for (size_t i = 0; i < arrays->count; i++) {
        struct element *e = &elements[i];
        double gradient = fabs(e->gradient * step->gradient_scale) +
                          step->weight_decay * fabs(e->parameter);
        double before[2] = {fabs(e->state[0]), fabs(e->state[1])};

        optimizer->reference(step, e);
        check_number("parameter", of[0], get(of[0], arrays->at[0], i), e->parameter, e->slack,
                     arrays, i, stochastic);
        check_number("state 0", of[2], get(of[2], arrays->at[2], i), e->state[0],
                     3e-7 * (before[0] + gradient * (optimizer->states == 1 ? gradient + 1 : 1)) +
                         DENORMAL_SLACK,
                     arrays, i, 0);
        if (optimizer->states > 1)
            check_number("state 1", of[2], get(of[2], arrays->at[3], i), e->state[1],
                         3e-7 * (before[1] + gradient * gradient) + DENORMAL_SLACK, arrays, i, 0);
    }
    add_to_hash(arrays);
    free_arrays(arrays);
    free(elements);
}

static void check_reference(const uint32_t *of, size_t count, const struct step *step)
{
    struct arrays arrays;

    make_arrays(&arrays, of, count, bytes_of(of[0]) * (count % 7));
    compare_step(&arrays, step);
}

/* Denormal numbers are numbers: they are read and stored as such, in one array or in all. */
static void check_denormal(const uint32_t *of)
{
    enum {
        COUNT = 67,
        ALL = 4
    };

    for (unsigned which = 0; which <= ALL; which++) {
        struct step step = {.step = 2, .learning_rate = 1e-3, .gradient_scale = 1};
        struct arrays arrays;

        step.flags = optimizer->flags[which % optimizer->flags_count];
        step.weight_decay = which % 2 * 0.1;
        make_arrays(&arrays, of, COUNT, 0);
        for (unsigned array = 0; array < 4; array++) {
            uint32_t dtype = of[array < 2 ? array : 2];
            double largest = dtype == F16 ? 0x1p-14 : 0x1p-126;
            bool is_positive = (array == 2 && optimizer->first_state_positive) ||
                               (array == 3 && optimizer->second_state_positive);

            for (size_t i = 0; (which == array || which == ALL) && i < COUNT; i++) {
                double number = largest * random_number() / (double)(1 + random_bits() % 64);

                put(dtype, arrays.at[array], i, is_positive ? fabs(number) : number);
            }
        }
        compare_step(&arrays, &step);
    }
}

static void check_references(void)
{
    static const size_t lengths[] = {16391, 16384, 65537};
    static const double scales[] = {1, 1.0 / 1024};

    for (size_t i = 0; i < TYPES; i++) {
        for (unsigned flag = 0; flag < optimizer->flags_count; flag++) {
            for (unsigned decay = 0; decay < 2; decay++) {
                struct step step = {
                    .flags = optimizer->flags[flag],
                    .step = 1 + random_bits() % 20,
                    .learning_rate = 1e-3,
                    .weight_decay = decay * 0.1,
                    .gradient_scale = scales[random_bits() % 2],
                };

                check_reference(types[i], 200 + random_bits() % 64, &step);
            }
        }
        for (size_t count = 0; count <= 257; count += amount->stride) {
            struct step step = {.step = 1 + count, .learning_rate = 0.01, .gradient_scale = 1};

            step.flags = optimizer->flags[count % optimizer->flags_count];
            step.weight_decay = count % 3 * 0.01;
            check_reference(types[i], count, &step);
            if (types[i][0] == B16) {
                step.flags |= DS_ACCEL_OPTIMIZER_STOCHASTIC;
                check_reference(types[i], count, &step);
            }
        }
        for (size_t length = 0; length < (amount->stride == 1 ? 3u : i % 5 == 0); length++) {
            struct step step = {.step = 3, .learning_rate = 0.01, .gradient_scale = 1};

            check_reference(types[i], lengths[length], &step);
        }
    }
}

/* The whole at once, in slices, in slices as several tensors by several threads, and at another
 * alignment: the same bits. */
static void check_slices(const uint32_t *of, uint32_t flags, size_t most)
{
    struct step step = {
        .flags = flags,
        .step = 5,
        .learning_rate = 0.01,
        .weight_decay = 0.01,
        .gradient_scale = 0.5,
    };
    struct arrays whole;
    struct arrays parts;
    struct arrays together;
    struct arrays original;
    struct arrays most_threads;
    struct ds_accel_optimizer_tensor tensors[32];
    size_t tensor_count = 0;
    union options options;
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    make_arrays(&whole, of, most, 0);
    copy_arrays(&parts, &whole, 1);
    copy_arrays(&original, &whole, 0);
    copy_arrays(&together, &whole, 6);
    take_step(&step, &whole);
    for (size_t from = 0; from < most;) {
        size_t count = tensor_count < 30 ? random_bits() % 13000 : most - from;

        if (count > most - from)
            count = most - from;
        set_tensor(&tensors[tensor_count], &parts, from, count);
        set_options(&options, &step, &tensors[tensor_count], 1);
        CHECK(optimizer->step(op, &options, &error) == DS_ACCEL_OK, "slice: %s", error.message);
        set_tensor(&tensors[tensor_count++], &together, from, count);
        from += count;
    }
    set_options(&options, &step, tensors, tensor_count);
    options.common.threads = 3;
    CHECK(optimizer->step(op, &options, &error) == DS_ACCEL_OK, "together: %s", error.message);
    /* Again, with a number of threads that no machine has. */
    copy_arrays(&most_threads, &original, 3);
    set_tensor(&tensors[0], &most_threads, 0, most);
    set_options(&options, &step, tensors, 1);
    options.common.threads = UINT32_MAX;
    CHECK(optimizer->step(op, &options, &error) == DS_ACCEL_OK, "threads: %s", error.message);
    CHECK(same(&whole, &most_threads), "the largest number of threads changes the result");
    free_arrays(&most_threads);
    free_arrays(&original);
    CHECK(same(&whole, &parts), "types %u %u %u: slices differ from the whole", of[0], of[1],
          of[2]);
    CHECK(same(&whole, &together), "types %u %u %u: several threads differ from one", of[0], of[1],
          of[2]);
    add_to_hash(&whole);
    free_arrays(&whole);
    free_arrays(&parts);
    free_arrays(&together);
}

/* Many parameters of one value: the mean of their roundings is the exact value. */
static void check_stochastic(void)
{
    struct step step = {
        .flags = DS_ACCEL_OPTIMIZER_STOCHASTIC,
        .step = 1,
        .learning_rate = 1e-3,
        .gradient_scale = 1,
    };
    struct arrays arrays;
    struct element element = {.parameter = 0.75, .gradient = 0.5};
    size_t strangers = 0;
    double sum = 0;
    double low;
    double high;
    double part;
    double sigma;

    make_arrays(&arrays, types[TYPES - 4], roundings, 0); /* bfloat16, states float32 */
    for (size_t i = 0; i < roundings; i++) {
        put(B16, arrays.at[0], i, element.parameter);
        put(B16, arrays.at[1], i, element.gradient);
    }
    memset(arrays.at[2], 0, arrays.bytes[2]);
    memset(arrays.at[3], 0, arrays.bytes[3]);
    take_step(&step, &arrays);
    optimizer->reference(&step, &element);
    low = rounded(B16, element.parameter, -1);
    high = rounded(B16, element.parameter, 1);
    for (size_t i = 0; i < roundings; i++) {
        double number = get(B16, arrays.at[0], i);

        strangers += number != low && number != high;
        sum += number;
    }
    CHECK(strangers == 0, "stochastic: %zu numbers are not next to %g", strangers,
          element.parameter);
    part = (element.parameter - low) / (high - low);
    sigma = (high - low) * sqrt(part * (1 - part) / (double)roundings);
    CHECK(fabs(sum / (double)roundings - element.parameter) < 4 * sigma,
          "stochastic: the mean is %.9g, wanted %.9g within %.3g", sum / (double)roundings,
          element.parameter, 4 * sigma);
    free_arrays(&arrays);
}

/* Infinite numbers, NaN and denormal ones in each array, in and behind full vectors. */
static void check_special(const uint32_t *of)
{
    static const double values[] = {NAN, INFINITY, -INFINITY, 1e-40, -1e-42, 6e-8, 0.0, -0.0};
    struct step step = {.step = 2, .learning_rate = 1e-3, .weight_decay = 0.1, .gradient_scale = 1};

    for (unsigned array = 0; array < 4; array++) {
        for (size_t value = 0; value < sizeof(values) / sizeof(values[0]); value++) {
            struct arrays arrays;
            struct ds_accel_optimizer_tensor tensor;
            union options options;
            struct ds_accel_error error = {.struct_size = sizeof(error)};
            uint32_t found = 0;
            size_t index = 3 + value * 5;
            uint32_t dtype = array == 0 ? of[0] : array == 1 ? of[1] : of[2];

            make_arrays(&arrays, of, 45, 0);
            put(dtype, arrays.at[array], index, values[value]);
            set_tensor(&tensor, &arrays, 0, 45);
            tensor.copy = arrays.at[4];
            tensor.copy_dtype = F32;
            set_options(&options, &step, &tensor, 1);
            options.common.found_infinite = &found;
            CHECK(optimizer->step(op, &options, &error) == DS_ACCEL_OK, "special: %s",
                  error.message);
            CHECK(found == (array == 1 && !isfinite(values[value])),
                  "gradient %g: found_infinite is %u", values[value], found);
            for (size_t i = 0; i < 45; i++) {
                double parameter = get(of[0], arrays.at[0], i);
                double copy = get(F32, arrays.at[4], i);

                CHECK(i == index || isfinite(parameter), "element %zu became %g beside %g", i,
                      parameter, values[value]);
                CHECK(copy == parameter || (isnan(copy) && isnan(parameter)),
                      "copy %zu is %g, the parameter %g", i, copy, parameter);
            }
            if (array < 3 && isnan(values[value]))
                CHECK(isnan(get(of[0], arrays.at[0], index)) ||
                          (array == 1 && optimizer->states == 1),
                      "array %u: NaN became %g", array, get(of[0], arrays.at[0], index));
            add_to_hash(&arrays);
            free_arrays(&arrays);
        }
    }
}

/* Elements that are repeated to fill large arrays, and so many that copies are streamed. */
#define PERIOD 1009u
#define LARGE ((1u << 20) + 777)

/* Make arrays whose elements repeat themselves, one parameter of each period a NaN. */
static void make_periodic(struct arrays *arrays, const uint32_t *of, size_t count)
{
    struct arrays period;

    make_arrays(&period, of, PERIOD, 0);
    put(of[0], period.at[0], 3, NAN);
    allocate_arrays(arrays, of, count, 0);
    for (unsigned i = 0; i < 4; i++)
        for (size_t from = 0; from < arrays->bytes[i]; from += period.bytes[i]) {
            size_t rest = arrays->bytes[i] - from;

            memcpy(arrays->at[i] + from, period.at[i],
                   rest < period.bytes[i] ? rest : period.bytes[i]);
        }
    free_arrays(&period);
}

/* Compare a copy with the parameters: the first period by value, the others with the first. */
static void compare_copy(const struct arrays *arrays, uint32_t dtype, const char *copy)
{
    size_t bytes = bytes_of(dtype);
    size_t period = arrays->count < PERIOD ? arrays->count : PERIOD;
    size_t differing = 0;

    for (size_t i = 0; i < period; i++) {
        double parameter = get(arrays->types[0], arrays->at[0], i);
        double copied = get(dtype, copy, i);

        CHECK(copied == rounded(dtype, parameter, 0) || (isnan(copied) && isnan(parameter)),
              "types %u %u %u, copy in %u: element %zu is %g, the parameter %g", arrays->types[0],
              arrays->types[1], arrays->types[2], dtype, i, copied, parameter);
    }
    for (size_t from = period; from < arrays->count; from += period) {
        size_t rest = arrays->count - from;

        differing += memcmp(copy + from * bytes, copy, (rest < period ? rest : period) * bytes) !=
                     0;
    }
    CHECK(differing == 0, "types %u %u %u, copy in %u: %zu of %zu periods differ", arrays->types[0],
          arrays->types[1], arrays->types[2], dtype, differing, arrays->count / period);
}

/* Copies in each type, at an address that vectors are stored to at once, and at one that they are
 * not. The step itself is the one without a copy. */
static void check_copy(const uint32_t *of, size_t count)
{
    struct step step = {
        .step = 3, .learning_rate = 0.01, .weight_decay = 0.1, .gradient_scale = 0.5};
    struct arrays original;
    struct arrays plain;

    make_periodic(&original, of, count);
    copy_arrays(&plain, &original, 0);
    take_step(&step, &plain);
    for (unsigned i = 0; i < 6; i++) {
        uint32_t dtype = i < 2 ? F32 : i < 4 ? F16 : B16;
        size_t bytes = count * bytes_of(dtype);
        size_t offset = i % 2 * bytes_of(dtype);
        char *memory = aligned_alloc(64, (bytes + offset + 8 + 63) / 64 * 64);
        struct ds_accel_error error = {.struct_size = sizeof(error)};
        struct ds_accel_optimizer_tensor tensor;
        struct arrays arrays;
        union options options;

        if (!memory)
            abort();
        memset(memory + offset + bytes, 0x5A, 8);
        copy_arrays(&arrays, &original, 0);
        set_tensor(&tensor, &arrays, 0, count);
        tensor.copy = memory + offset;
        tensor.copy_dtype = dtype;
        set_options(&options, &step, &tensor, 1);
        options.common.threads = 2;
        CHECK(optimizer->step(op, &options, &error) == DS_ACCEL_OK, "copy: %s", error.message);
        CHECK(same(&arrays, &plain), "types %u %u %u: another step with a copy in %u", of[0], of[1],
              of[2], dtype);
        compare_copy(&arrays, dtype, memory + offset);
        for (unsigned byte = 0; byte < 8; byte++)
            CHECK(memory[offset + bytes + byte] == 0x5A, "a byte behind the copy changed");
        free_arrays(&arrays);
        free(memory);
    }
    free_arrays(&original);
    free_arrays(&plain);
}

/* A step and its rollback: what was there before, up to roundings of both. */
static void check_rollback(const uint32_t *of, uint32_t flags)
{
    struct step step = {
        .flags = flags,
        .step = 4,
        .learning_rate = 1e-3,
        .weight_decay = 0.1,
        .gradient_scale = 0.5,
    };
    double unit = of[0] == F32 ? 1e-6 : of[0] == F16 ? 0x1p-10 : 0x1p-7;
    double state_unit = of[2] == F32 ? 1e-6 : of[2] == F16 ? 0x1p-10 : 0x1p-7;
    struct arrays before;
    struct arrays after;
    struct ds_accel_optimizer_tensor tensor;
    union options options;
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    make_arrays(&before, of, 1003, 0);
    copy_arrays(&after, &before, 0);
    take_step(&step, &after);
    set_tensor(&tensor, &after, 0, 1003);
    set_options(&options, &step, &tensor, 1);
    CHECK(optimizer->rollback(op, &options, &error) == DS_ACCEL_OK, "rollback: %s", error.message);
    for (size_t i = 0; i < 1003; i++) {
        double gradient = fabs(get(of[1], before.at[1], i)) * step.gradient_scale +
                          step.weight_decay * fabs(get(of[0], before.at[0], i));
        double was = get(of[0], before.at[0], i);
        double is = get(of[0], after.at[0], i);
        double m = get(of[2], before.at[2], i);
        double v = get(of[2], before.at[3], i);
        double root = sqrt(v + gradient * gradient * 1e-3) + 1e-8;
        /* The change of the parameter is computed again from stored, so rounded moments. */
        double change = step.learning_rate * 30 * (fabs(m) + gradient) / root;
        double off = 3 * unit * (fabs(was) + 1e-3) + 2 * state_unit * change;
        /* With weight decay in the gradient, the error of the parameter becomes one of it. */
        double gradient_off = step.weight_decay * off;

        CHECK(fabs(is - was) <= off, "rollback, types %u %u %u: parameter %zu was %.9g, is %.9g",
              of[0], of[1], of[2], i, was, is);
        CHECK(fabs(get(of[2], after.at[2], i) - m) <=
                  3 * state_unit * (fabs(m) + gradient) + gradient_off,
              "rollback: state 0 %zu was %.9g, is %.9g", i, m, get(of[2], after.at[2], i));
        CHECK(fabs(get(of[2], after.at[3], i) - v) <=
                  3 * state_unit * (v + gradient * gradient) + gradient * gradient_off + 0x1p-24,
              "rollback: state 1 %zu was %.9g, is %.9g", i, v, get(of[2], after.at[3], i));
    }
    add_to_hash(&after);
    free_arrays(&before);
    free_arrays(&after);
}

/* ---- the caller's floating-point mode ------------------------------------------------------- */

/* Round up, and take denormals for zeros, as -ffast-math does. */
static void spoil_mode(void)
{
    fesetround(FE_UPWARD);
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#elif defined(__aarch64__)
    uint64_t control;

    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("msr fpcr, %0" : : "r"(control | 1u << 24));
#endif
}

/* The mode, and the exceptions that were raised. */
static uint64_t mode_of_caller(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_stmxcsr();
#elif defined(__aarch64__)
    uint64_t control;
    uint64_t status;

    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(control), "=r"(status));
    return control | status << 32;
#else
    return (uint64_t)fegetround();
#endif
}

/* Results depend neither on the mode nor, as it is that of one thread, on the number of threads. */
static void check_mode(const uint32_t *of)
{
    struct step step = {
        .step = 2,
        .learning_rate = 0.01,
        .weight_decay = 0.01,
        .gradient_scale = 0.7,
    };
    struct arrays original;
    struct arrays plain;
    double wanted = -1;

    make_arrays(&original, of, 70001, 0);
    for (size_t i = 0; i < original.count; i += 3) { /* denormal ones, if they are float32 */
        put(of[0], original.at[0], i, random_number() * 1e-39);
        put(of[1], original.at[1], i, random_number() * 1e-39);
        put(of[2], original.at[2], i, fabs(random_number()) * 1e-39);
        put(of[2], original.at[3], i, fabs(random_number()) * 1e-39);
    }
    copy_arrays(&plain, &original, 0);
    for (unsigned i = 0; i < 4; i++) {
        struct ds_accel_error error = {.struct_size = sizeof(error)};
        struct arrays arrays;
        struct ds_accel_optimizer_tensor tensor;
        union options options;
        double norm = -1;
        uint64_t mode;
        uint64_t mode_after;
        int32_t status;

        copy_arrays(&arrays, &original, 0);
        set_tensor(&tensor, &arrays, 0, arrays.count);
        set_options(&options, &step, &tensor, 1);
        options.common.threads = i < 2 ? 3 : 1;
        options.common.gradient_norm = &norm;
        options.common.max_norm = 3;
        if (i % 2 == 1)
            spoil_mode();
        mode = mode_of_caller();
        status = optimizer->step(op, &options, &error);
        mode_after = mode_of_caller();
        fesetenv(FE_DFL_ENV);
        CHECK(status == DS_ACCEL_OK, "%s", error.message);
        CHECK(mode == mode_after, "the mode was 0x%llx, is 0x%llx", (unsigned long long)mode,
              (unsigned long long)mode_after);
        if (i == 0) {
            wanted = norm;
            free_arrays(&plain);
            copy_arrays(&plain, &arrays, 0);
        }
        CHECK(norm == wanted && norm > 3, "types %u %u %u, case %u: norm %.17g, wanted %.17g",
              of[0], of[1], of[2], i, norm, wanted);
        CHECK(same(&arrays, &plain), "types %u %u %u, case %u: other results", of[0], of[1], of[2],
              i);
        free_arrays(&arrays);
    }
    free_arrays(&original);
    free_arrays(&plain);
}

/* ---- refusals ------------------------------------------------------------------------------- */

/* What is refused, and that nothing was changed then. */
static void check_refusals(void)
{
    struct step step = {.step = 1, .learning_rate = 1e-3, .gradient_scale = 1};
    struct arrays arrays;
    struct arrays before;
    struct ds_accel_optimizer_tensor tensors[2];
    union options good;

    make_arrays(&arrays, types[0], 100, 0);
    copy_arrays(&before, &arrays, 0);
    set_tensor(&tensors[0], &arrays, 0, 50);
    set_tensor(&tensors[1], &arrays, 50, 50);
    set_options(&good, &step, tensors, 2);
#define REFUSED(change, undo, text) \
    do { \
        union options options = good; \
        struct ds_accel_error error = {.struct_size = sizeof(error)}; \
        int32_t status; \
        change; \
        status = optimizer->step(op, &options, &error); \
        CHECK(status == DS_ACCEL_ERR_INVALID && error.code == status, #change ": status %d", \
              status); \
        CHECK(strstr(error.message, text), #change ": \"%s\"", error.message); \
        CHECK(optimizer->step(op, &options, NULL) == DS_ACCEL_ERR_INVALID, #change); \
        CHECK(same(&arrays, &before), #change ": something was changed"); \
        undo; \
    } while (0)
#define SET(change, text) REFUSED(options.common.change, , text)
#define TENSOR(member, value, text) \
    do { \
        struct ds_accel_optimizer_tensor kept = tensors[1]; \
        REFUSED(tensors[1].member = value, tensors[1] = kept, text); \
    } while (0)
    SET(struct_size -= 1, "struct_size");
    SET(flags = 0x80000000u, "flags has unknown bits: 0x80000000");
    SET(flags = DS_ACCEL_OPTIMIZER_STOCHASTIC, "only bfloat16");
    SET(tensors = NULL, "tensors is NULL, tensor_count is 2");
    SET(tensor_bytes = 8, "tensor_bytes is 8");
    SET(tensor_bytes += 4, "a multiple of 8");
    SET(step = 0, "step is 0");
    SET(learning_rate = NAN, "learning_rate is");
    SET(learning_rate = -1, "learning_rate is -1");
    SET(weight_decay = -0.5, "weight_decay is -0.5");
    SET(weight_decay = INFINITY, "weight_decay is inf");
    SET(gradient_scale = NAN, "gradient_scale is");
    SET(learning_rate = 1e39, "learning_rate is 1e+39");
    SET(weight_decay = 1e39, "weight_decay is 1e+39");
    SET(gradient_scale = -1e39, "gradient_scale is -1e+39");
    REFUSED(options.common.learning_rate = options.common.weight_decay = 1e20, ,
            "learning_rate * weight_decay is 1e+40");
    TENSOR(parameter_dtype, DS_ACCEL_DTYPE_FLOAT64, "tensor 1: parameter_dtype is 4");
    TENSOR(gradient_dtype, 0, "tensor 1: gradient_dtype is 0");
    TENSOR(state_dtype, B16, "tensor 1: state_dtype is 3; wanted float32 (1)");
    TENSOR(parameter, NULL, "tensor 1: parameter, gradient or state is NULL");
    TENSOR(gradient, NULL, "tensor 1: parameter, gradient or state is NULL");
    TENSOR(state[0], NULL, "tensor 1: parameter, gradient or state is NULL");
    TENSOR(count, UINT64_MAX / 2, "too many");
    TENSOR(first_element, UINT64_MAX, "too many");
    if (optimizer->states > 1)
        TENSOR(state[1], NULL, "tensor 1: parameter, gradient or state is NULL");
    {
        struct ds_accel_optimizer_tensor kept = tensors[1];

        tensors[1].copy = arrays.at[4];
        REFUSED(tensors[1].copy_dtype = 9, tensors[1] = kept, "tensor 1: copy_dtype is 9");
    }
    {
        struct ds_accel_error error = {.struct_size = sizeof(error)};

        CHECK(optimizer->step(op, NULL, &error) == DS_ACCEL_ERR_INVALID, "NULL options");
        CHECK(strstr(error.message, "options is NULL"), "\"%s\"", error.message);
    }
    for (const struct spoiled *spoiled = optimizer->spoiled; spoiled->text; spoiled++) {
        struct ds_accel_gradient_sum sum = {{0}, 0, 0};
        struct ds_accel_error error = {.struct_size = sizeof(error)};
        union options options = good;

        spoiled->spoil(&options);
        if (spoiled->rolls_back) {
            CHECK(optimizer->rollback(op, &options, &error) == DS_ACCEL_ERR_INVALID, "%s",
                  spoiled->text);
        } else {
            CHECK(optimizer->step(op, &options, &error) == DS_ACCEL_ERR_INVALID, "%s",
                  spoiled->text);
            CHECK(strstr(error.message, spoiled->text), "\"%s\"", error.message);
            CHECK(optimizer->sum(op, &options, &sum, &error) == DS_ACCEL_ERR_INVALID, "sum: %s",
                  spoiled->text);
        }
        CHECK(strstr(error.message, spoiled->text), "\"%s\"", error.message);
        CHECK(same(&arrays, &before), "%s: something was changed", spoiled->text);
    }
    /* No tensor, or an empty one without arrays, is a step that does nothing. */
    good.common.tensor_count = 0;
    good.common.tensors = NULL;
    CHECK(optimizer->step(op, &good, NULL) == DS_ACCEL_OK, "no tensors");
    memset(tensors, 0, sizeof(tensors));
    tensors[0].parameter_dtype = tensors[0].gradient_dtype = tensors[0].state_dtype = F32;
    good.common.tensors = tensors;
    good.common.tensor_count = 1;
    CHECK(optimizer->step(op, &good, NULL) == DS_ACCEL_OK, "an empty tensor");
    free_arrays(&arrays);
    free_arrays(&before);
}

static void run_checks(void)
{
    struct tally gradients = check_gradients(optimizer, op, amount->gradients, amount->stride);

    checks += gradients.checks;
    failures += gradients.failures;
    CHECK(strcmp(op->name, optimizer->name) == 0, "the op is called %s", op->name);
    check_references();
    for (size_t i = 0; i < TYPES; i++) {
        size_t most = i % amount->large_types == 0 ? amount->most : 2 * PERIOD + 3;
        bool is_large = amount->has_large_copy &&
                        (i == 0 || (types[i][0] == F32 && amount->stride == 1));

        check_slices(types[i], optimizer->flags[i % optimizer->flags_count], most);
        if (types[i][0] == B16)
            check_slices(types[i], DS_ACCEL_OPTIMIZER_STOCHASTIC, most);
        check_special(types[i]);
        check_copy(types[i], is_large ? LARGE : 2 * PERIOD + 3);
        check_denormal(types[i]);
        for (unsigned flag = 0; optimizer->rollback && flag < optimizer->flags_count; flag++)
            check_rollback(types[i], optimizer->flags[flag]);
    }
    check_mode(types[0]);
    check_mode(types[TYPES - 1]);
    for (size_t i = 0; optimizer->rollback && i < TYPES; i++) {
        if (types[i][0] == B16)
            check_rollback(types[i], DS_ACCEL_OPTIMIZER_STOCHASTIC);
    }
    check_stochastic(); /* as often as roundings says: the ones before compare bits */
    check_refusals();
}

/* OPS_SVE_BYTES is the length that the registers are meant to have: an emulator may give less. */
static void check_vector_length(const char *path)
{
    const char *wanted = getenv("OPS_SVE_BYTES");

    if (!wanted || strcmp(path, "sve") != 0)
        return;
#ifdef PR_SVE_GET_VL
    int bytes = prctl(PR_SVE_GET_VL) & PR_SVE_VL_LEN_MASK;

    CHECK(bytes == atoi(wanted), "vectors of %d bytes, wanted %s", bytes, wanted);
#else
    CHECK(false, "the length of vectors is not known");
#endif
}

/* ---- paths ---------------------------------------------------------------------------------- */

struct outcome {
    unsigned checks;
    unsigned failures;
    uint64_t hash;
};

static const struct ds_accel_op *open_op(const char *file)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    ds_accel_op_entry_v1_fn entry = NULL;

    if (library)
        entry = (ds_accel_op_entry_v1_fn)dlsym(library, DS_ACCEL_OP_ENTRY);
    if (!entry) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return entry();
}

/* Run all checks on one path in a child process. */
static struct outcome run_path(const char *file, const char *path)
{
    struct outcome outcome = {0, 1, 0};
    int pipe_ends[2];
    int status;
    pid_t child;

    if (pipe(pipe_ends) || (child = fork()) < 0) {
        perror("pipe, fork");
        exit(1);
    }
    if (child == 0) {
        setenv("DS_ACCEL_OPS_ISA", path, 1);
        op = open_op(file);
        CHECK(strcmp(op->path(), path) == 0, "DS_ACCEL_OPS_ISA=%s", path);
        check_vector_length(path);
        run_checks();
        outcome = (struct outcome){checks, failures, hash};
        _exit(write(pipe_ends[1], &outcome, sizeof(outcome)) == sizeof(outcome) ? 0 : 1);
    }
    close(pipe_ends[1]);
    if (read(pipe_ends[0], &outcome, sizeof(outcome)) != sizeof(outcome))
        outcome = (struct outcome){0, 1, 0};
    close(pipe_ends[0]);
    if (waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "%s, %s: ended with status 0x%x\n", file, path, (unsigned)status);
        outcome.failures++;
    }
    return outcome;
}

/* Store the names of the paths of an op in names, ended by NULL; text is their memory. The op is
 * loaded by a child, because this process must not choose a path. */
static void list_paths(const char *file, char text[128], const char *names[8])
{
    int ends[2];
    pid_t child;
    ssize_t length;

    if (pipe(ends) || (child = fork()) < 0) {
        perror("pipe, fork");
        exit(1);
    }
    if (child == 0) {
        for (const char *const *list = open_op(file)->paths(); *list; list++)
            dprintf(ends[1], "%s\n", *list);
        _exit(0);
    }
    close(ends[1]);
    waitpid(child, NULL, 0);
    length = read(ends[0], text, 127);
    close(ends[0]);
    text[length > 0 ? length : 0] = '\0';
    for (unsigned i = 0; i < 7; i++)
        names[i] = strtok(i == 0 ? text : NULL, "\n");
    names[7] = NULL;
}

int optimizer_main(const struct optimizer *described, int argc, char **argv)
{
    uint64_t first_hash = 0;
    bool have_hash = false;
    unsigned passed = 0;
    unsigned failed = 0;
    const char *only = getenv("OPS_PATH");
    const char *sample = getenv("OPS_SAMPLE");

    optimizer = described;
    if (sample)
        amount = &amounts[strcmp(sample, "2") == 0 ? 2 : 1];
    for (int i = 1; i < argc; i++) {
        char text[128];
        const char *names[8];

        list_paths(argv[i], text, names);
        for (unsigned n = 0; names[n]; n++) {
            struct outcome outcome;

            if (only && strcmp(only, names[n]) != 0)
                continue;
            /* a path of another file is emulated */
            roundings = i > 1 ? amount->emulated : amount->roundings;
            outcome = run_path(argv[i], names[n]);

            if (!have_hash)
                first_hash = outcome.hash;
            have_hash = true;
            if (outcome.hash != first_hash) {
                fprintf(stderr, "%s, %s: bits differ from the first path's\n", argv[i], names[n]);
                outcome.failures++;
            }
            passed += outcome.checks > outcome.failures ? outcome.checks - outcome.failures : 0;
            failed += outcome.failures;
            printf("%s: path %s, %u checks, bits %016llx\n", described->name, names[n],
                   outcome.checks, (unsigned long long)outcome.hash);
        }
    }
    printf("%s: %u passed, %u failed\n", described->name, passed, failed);
    return failed > 0 || passed == 0;
}
