/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Random numbers compared with the published vectors and with a second implementation. All seeds
   are fixed, so each run has the same results. */
#include "rng.h"

#include <math.h>

/* ---- a second implementation, as in the paper ------------------------------------------------ */

static void philox(uint64_t seed, uint64_t subsequence, uint64_t block, uint32_t words[4])
{
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};

    words[0] = (uint32_t)block;
    words[1] = (uint32_t)(block >> 32);
    words[2] = (uint32_t)subsequence;
    words[3] = (uint32_t)(subsequence >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t left = UINT64_C(0xD2511F53) * words[0];
        uint64_t right = UINT64_C(0xCD9E8D57) * words[2];
        uint32_t next[4] = {(uint32_t)(right >> 32) ^ words[1] ^ key[0], (uint32_t)right,
                            (uint32_t)(left >> 32) ^ words[3] ^ key[1], (uint32_t)left};

        memcpy(words, next, sizeof(next));
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
}

static uint32_t word_at(uint64_t seed, uint64_t place)
{
    uint32_t words[4];

    philox(seed, 0, place / 4, words);
    return words[place % 4];
}

/* A number in [0, 1) made of 53 bits of two words. */
static double wide_at(uint64_t seed, uint64_t place)
{
    uint64_t bits = (uint64_t)word_at(seed, place + 1) << 32 | word_at(seed, place);

    return (double)(bits >> 11) * 0x1p-53;
}

static double normal_at(uint64_t seed, uint64_t place, bool is_wide)
{
    uint64_t first = place - place % (is_wide ? 4 : 2);
    double u = is_wide ? wide_at(seed, first) + 0x1p-53
                       : ((double)word_at(seed, first) + 1) * 0x1p-32;
    double v = is_wide ? wide_at(seed, first + 2) : word_at(seed, first + 1) * 0x1p-32;
    double radius = sqrt(-2 * log(u));
    double angle = 6.28318530717958647692 * v;

    return place == first ? radius * cos(angle) : radius * sin(angle);
}

static double from_half(uint16_t bits)
{
    int exponent = (bits >> 10) & 31;
    double size = exponent == 0 ? ldexp(bits & 1023, -24)
                                : ldexp((bits & 1023) + 1024, exponent - 25);

    if (exponent == 31) {
        size = INFINITY;
    }
    return (bits & 0x8000) != 0 ? -size : size;
}

static double from_bfloat(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float number;

    memcpy(&number, &wide, sizeof(number));
    return number;
}

/* ---- the generator -------------------------------------------------------------------------- */

Test(core_rng, equals_the_published_vectors)
{
    /* Random123, tests/kat_vectors, philox4x32 with 10 rounds: counter, key, result. */
    static const struct {
        uint64_t block;
        uint64_t subsequence;
        uint64_t seed;
        uint32_t words[4];
    } vectors[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {UINT64_C(0x85a308d3243f6a88),
         UINT64_C(0x0370734413198a2e),
         UINT64_C(0x299f31d0a4093822),
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    static const char *const names[] = {"mock", "cpu"};

    for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
        ds_accel_device_t *device;
        ds_accel_t *context = test_start(names[n], &device);
        uint32_t *words = allocate(device, 16);
        ds_accel_rng_t *rng;

        for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
            struct ds_accel_rng_position position = {.struct_size = sizeof(position),
                                                     .block = vectors[i].block,
                                                     .subsequence = vectors[i].subsequence};
            uint32_t got[4];

            MUST(ds_accel_rng_create(device, vectors[i].seed, 0, &rng));
            MUST(ds_accel_rng_set_position(rng, &position));
            MUST(ds_accel_rng_bits(rng, NULL, words, 4, DS_ACCEL_DTYPE_INT32));
            read_back(device, got, words, sizeof(got));
            cr_expect_arr_eq(got, vectors[i].words, sizeof(got), "%s, vector %zu", names[n], i);
            ds_accel_rng_destroy(rng);
        }
        MUST(ds_accel_mem_free(device, NULL, words));
        test_finish(context, device);
    }
}

/* The seed, and the count and position of each fill, are odd, so that no fill is aligned by
   chance. */
#define SEED UINT64_C(0x123456789abcdef1)
#define COUNT 1001u

static void check_uniform(ds_accel_rng_t *rng, ds_accel_device_t *device, void *memory)
{
    static double wide[COUNT];
    static float narrow[COUNT];
    static uint16_t half[COUNT];

    MUST(ds_accel_rng_manual_seed(rng, SEED));
    MUST(ds_accel_rng_uniform(rng, NULL, memory, COUNT, DS_ACCEL_DTYPE_FLOAT32, 0, 1));
    read_back(device, narrow, memory, sizeof(narrow));
    for (size_t i = 0; i < COUNT; i++) {
        cr_assert_eq(narrow[i], (float)(word_at(SEED, i) >> 8) * 0x1p-24f, "float32 %zu", i);
    }
    MUST(ds_accel_rng_uniform(rng, NULL, memory, COUNT, DS_ACCEL_DTYPE_FLOAT64, -3, 5));
    read_back(device, wide, memory, sizeof(wide));
    for (size_t i = 0; i < COUNT; i++) { /* position 1001 is odd, so float64 starts at 1002 */
        cr_assert_eq(wide[i], -3 + 8 * wide_at(SEED, 1002 + 2 * i), "float64 %zu", i);
    }
    MUST(ds_accel_rng_uniform(rng, NULL, memory, COUNT, DS_ACCEL_DTYPE_FLOAT16, -1, 1));
    read_back(device, half, memory, sizeof(half));
    for (size_t i = 0; i < COUNT; i++) {
        double exact = -1 + 2 * ((word_at(SEED, 3004 + i) >> 8) * 0x1p-24);
        double got = from_half(half[i]);
        double above = from_half((uint16_t)(half[i] + 1));
        double below = half[i] == 0 ? -0x1p-24 : from_half((uint16_t)(half[i] - 1));

        /* the last value below 1, to which all larger values are rounded */
        if (half[i] == 0x3bff) {
            cr_assert_geq(exact, from_half(0x3bff) - 0x1p-12);
            continue;
        }
        /* No neighbour of the value is nearer to the exact number, and a tie is rounded to the even
           neighbour. */
        cr_assert(fabs(got - exact) <= fabs(above - exact) &&
                      fabs(got - exact) <= fabs(below - exact),
                  "float16 %zu: %g for %g", i, got, exact);
        cr_assert(half[i] % 2 == 0 || (fabs(got - exact) < fabs(above - exact) &&
                                       fabs(got - exact) < fabs(below - exact)),
                  "float16 %zu: tie to odd", i);
    }
}

Test(core_rng, maps_bits_to_uniform_numbers_as_documented)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    void *memory = allocate(device, COUNT * 8);
    ds_accel_rng_t *rng;

    MUST(ds_accel_rng_create(device, 0, 0, &rng));
    check_uniform(rng, device, memory);
    MUST(ds_accel_mem_free(device, NULL, memory));
    test_finish(context, device);
}

static uint64_t hash_bytes(const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

Test(core_rng, maps_bits_to_normal_numbers_as_documented)
{
    static double wide[COUNT];
    static float narrow[COUNT];
    static uint16_t brain[COUNT];
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    void *memory = allocate(device, COUNT * 8);
    ds_accel_rng_t *rng;

    MUST(ds_accel_rng_create(device, SEED, 0, &rng));
    MUST(ds_accel_rng_normal(rng, NULL, memory, COUNT, DS_ACCEL_DTYPE_FLOAT32, 0, 1));
    read_back(device, narrow, memory, sizeof(narrow));
    MUST(ds_accel_rng_normal(rng, NULL, memory, COUNT, DS_ACCEL_DTYPE_FLOAT64, 0, 1));
    read_back(device, wide, memory, sizeof(wide));
    MUST(ds_accel_rng_normal(rng, NULL, memory, COUNT, DS_ACCEL_DTYPE_BFLOAT16, 10, 0.5));
    read_back(device, brain, memory, sizeof(brain));
    for (size_t i = 0; i < COUNT; i++) {
        double exact = normal_at(SEED, i, false);

        cr_assert(fabs(narrow[i] - exact) <= 0x1p-23 * fabs(exact), "float32 %zu", i);
        exact = normal_at(SEED, 1002 + 2 * i, true);
        cr_assert(fabs(wide[i] - exact) <= 1e-14 * (1 + fabs(exact)), "float64 %zu: %g, not %g", i,
                  wide[i], exact);
        exact = 10 + 0.5 * normal_at(SEED, 3004 + i, false);
        cr_assert(fabs(from_bfloat(brain[i]) - exact) <= 0x1p-8 * fabs(exact), "bfloat16 %zu", i);
    }
    /* The results are the same to the last bit on every compiler and machine. */
    cr_expect_eq(hash_bytes(narrow, sizeof(narrow)), UINT64_C(0x301fe84e1b22a857), "%#llx",
                 (unsigned long long)hash_bytes(narrow, sizeof(narrow)));
    cr_expect_eq(hash_bytes(wide, sizeof(wide)), UINT64_C(0x0601259e8ebd0daa), "%#llx",
                 (unsigned long long)hash_bytes(wide, sizeof(wide)));
    cr_expect_eq(hash_bytes(brain, sizeof(brain)), UINT64_C(0x5430c379b8f499e6), "%#llx",
                 (unsigned long long)hash_bytes(brain, sizeof(brain)));
    MUST(ds_accel_mem_free(device, NULL, memory));
    test_finish(context, device);
}

Test(core_rng, gives_raw_bits_to_every_integer_type)
{
    static unsigned char bytes[8 * COUNT];
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    void *memory = allocate(device, sizeof(bytes));
    ds_accel_rng_t *rng;

    MUST(ds_accel_rng_create(device, SEED, 0, &rng));
    MUST(ds_accel_rng_bits(rng, NULL, memory, COUNT, DS_ACCEL_DTYPE_BOOL));
    read_back(device, bytes, memory, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        cr_assert_eq(bytes[i], word_at(SEED, i) >> 31);
    }
    MUST(ds_accel_rng_bits(rng, NULL, memory, COUNT, DS_ACCEL_DTYPE_INT64));
    read_back(device, bytes, memory, 8 * COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        uint64_t number;

        memcpy(&number, bytes + 8 * i, 8);
        cr_assert_eq((uint32_t)number, word_at(SEED, 1002 + 2 * i));
        cr_assert_eq((uint32_t)(number >> 32), word_at(SEED, 1003 + 2 * i));
    }
    MUST(ds_accel_rng_bits(rng, NULL, memory, COUNT, DS_ACCEL_DTYPE_INT16));
    read_back(device, bytes, memory, 2 * COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        uint16_t number;

        memcpy(&number, bytes + 2 * i, 2);
        cr_assert_eq(number, (uint16_t)word_at(SEED, 3004 + i));
    }
    MUST(ds_accel_rng_bits(rng, NULL, memory, COUNT, DS_ACCEL_DTYPE_UINT8));
    read_back(device, bytes, memory, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        cr_assert_eq(bytes[i], (uint8_t)word_at(SEED, 4005 + i));
    }
    MUST(ds_accel_mem_free(device, NULL, memory));
    test_finish(context, device);
}

/* A fill in pieces of any size produces the same numbers as a single fill. */
Test(core_rng, does_not_care_how_a_fill_is_divided)
{
    static const struct {
        uint32_t dtype;
        uint32_t bytes;
        bool is_normal;
    } cases[] = {{DS_ACCEL_DTYPE_FLOAT32, 4, false}, {DS_ACCEL_DTYPE_FLOAT32, 4, true},
                 {DS_ACCEL_DTYPE_FLOAT64, 8, false}, {DS_ACCEL_DTYPE_FLOAT64, 8, true},
                 {DS_ACCEL_DTYPE_BFLOAT16, 2, true}, {DS_ACCEL_DTYPE_FLOAT16, 2, false}};
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    char *whole = allocate(device, 5000 * 8);
    char *pieces = allocate(device, 5000 * 8);
    ds_accel_rng_t *rng;

    MUST(ds_accel_rng_create(device, 0, 0, &rng));
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        int32_t (*fill)(ds_accel_rng_t *, ds_accel_stream_t *, void *, uint64_t, uint32_t, double,
                        double) = cases[c].is_normal ? ds_accel_rng_normal : ds_accel_rng_uniform;
        struct ds_accel_rng_position after = {.struct_size = sizeof(after)};
        struct ds_accel_rng_position position = {.struct_size = sizeof(position)};
        uint64_t done = 0;

        MUST(ds_accel_rng_manual_seed(rng, 77));
        MUST(fill(rng, NULL, whole, 5000, cases[c].dtype, 0, 1));
        MUST(ds_accel_rng_position(rng, &after));
        MUST(ds_accel_rng_manual_seed(rng, 77));
        for (uint64_t size = 0; done < 5000; size = size * 2 + 1) {
            uint64_t count = size < 5000 - done ? size : 5000 - done;

            MUST(fill(rng, NULL, pieces + done * cases[c].bytes, count, cases[c].dtype, 0, 1));
            done += count;
        }
        MUST(ds_accel_rng_position(rng, &position));
        MUST(ds_accel_device_synchronize(device));
        cr_expect_eq(memcmp(whole, pieces, 5000 * cases[c].bytes), 0, "case %zu", c);
        cr_expect_eq(memcmp(&position, &after, sizeof(after)), 0, "case %zu", c);
        cr_expect_eq(position.block, 5000u * (cases[c].bytes == 8 ? 2 : 1) / 4);
    }
    MUST(ds_accel_mem_free(device, NULL, whole));
    MUST(ds_accel_mem_free(device, NULL, pieces));
    test_finish(context, device);
}

Test(core_rng, keeps_within_the_bounds_that_were_asked_for)
{
    static const struct {
        double low;
        double high;
    } ranges[] = {{0, 1}, {0.1, 0.3}, {-1000, 60000}, {1, 1.0078125}, {-0x1p-14, 0x1p-14}};
    static const uint32_t dtypes[] = {DS_ACCEL_DTYPE_FLOAT16, DS_ACCEL_DTYPE_BFLOAT16,
                                      DS_ACCEL_DTYPE_FLOAT32, DS_ACCEL_DTYPE_FLOAT64};
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    void *memory = allocate(device, 100000 * 8);
    ds_accel_rng_t *rng;

    MUST(ds_accel_rng_create(device, 5, 0, &rng));
    for (size_t d = 0; d < 4; d++) {
        for (size_t r = 0; r < sizeof(ranges) / sizeof(ranges[0]); r++) {
            bool is_in_range = true;

            MUST(ds_accel_rng_uniform(rng, NULL, memory, 100000, dtypes[d], ranges[r].low,
                                      ranges[r].high));
            MUST(ds_accel_device_synchronize(device));
            for (size_t i = 0; i < 100000; i++) { /* the host can read the mock's memory */
                double number = d == 0   ? from_half(((uint16_t *)memory)[i])
                                : d == 1 ? from_bfloat(((uint16_t *)memory)[i])
                                : d == 2 ? (double)((float *)memory)[i]
                                         : ((double *)memory)[i];

                is_in_range = is_in_range && number >= ranges[r].low && number < ranges[r].high;
            }
            cr_expect(is_in_range, "dtype %u, range %zu", dtypes[d], r);
        }
    }
    EXPECT_REFUSED(
        ds_accel_rng_uniform(rng, NULL, memory, 1, DS_ACCEL_DTYPE_FLOAT16, 1.0001, 1.0002),
        DS_ACCEL_ERR_INVALID, "has no number in");
    EXPECT_REFUSED(ds_accel_rng_uniform(rng, NULL, memory, 1, DS_ACCEL_DTYPE_FLOAT16, 70000, 80000),
                   DS_ACCEL_ERR_INVALID, "has no number in");
    EXPECT_REFUSED(
        ds_accel_rng_uniform(rng, NULL, memory, 1, DS_ACCEL_DTYPE_FLOAT64, -1e308, 1e308),
        DS_ACCEL_ERR_INVALID, "not a finite range");
    MUST(ds_accel_rng_normal(rng, NULL, memory, 1, DS_ACCEL_DTYPE_FLOAT16, 1e6, 0));
    MUST(ds_accel_device_synchronize(device));
    cr_expect_eq(*(uint16_t *)memory, 0x7c00, "infinity");
    MUST(ds_accel_mem_free(device, NULL, memory));
    test_finish(context, device);
}

/* ---- sanity of the numbers ------------------------------------------------------------------ */

#define MANY 1000000u

/* Check moments 1 to 4 of MANY numbers: each is within 5 standard errors of its expected value. */
Test(core_rng, has_the_moments_of_its_distributions)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    float *numbers = allocate(device, MANY * sizeof(*numbers));
    ds_accel_rng_t *rng;

    MUST(ds_accel_rng_create(device, 2026, 0, &rng));
    for (int is_normal = 0; is_normal < 2; is_normal++) {
        double sums[4] = {0};
        double wanted[4] = {0, 1, 0, 3};
        double errors[4] = {1, sqrt(2), sqrt(15), sqrt(96)};

        if (is_normal) {
            MUST(ds_accel_rng_normal(rng, NULL, numbers, MANY, DS_ACCEL_DTYPE_FLOAT32, 0, 1));
        } else { /* variance 1, so the fourth moment is 9/5 */
            MUST(ds_accel_rng_uniform(rng, NULL, numbers, MANY, DS_ACCEL_DTYPE_FLOAT32, -sqrt(3),
                                      sqrt(3)));
            wanted[3] = 1.8;
            errors[1] = sqrt(0.8);
            errors[2] = sqrt(27.0 / 7);
            errors[3] = sqrt(9 - 3.24);
        }
        MUST(ds_accel_device_synchronize(device));
        for (size_t i = 0; i < MANY; i++) {
            double power = 1;

            for (int k = 0; k < 4; k++) {
                power *= numbers[i];
                sums[k] += power / MANY;
            }
        }
        for (int k = 0; k < 4; k++) {
            cr_expect(fabs(sums[k] - wanted[k]) < 5 * errors[k] / sqrt(MANY),
                      "%s, moment %d: %.5f, not %.5f", is_normal ? "normal" : "uniform", k + 1,
                      sums[k], wanted[k]);
        }
    }
    MUST(ds_accel_mem_free(device, NULL, numbers));
    test_finish(context, device);
}

/* Chi-square of 256 classes: with 255 degrees of freedom, its mean is 255 and its standard
   deviation 22.6. */
static double chi_square(const size_t *counts)
{
    double expected = MANY / 256.0;
    double sum = 0;

    for (size_t i = 0; i < 256; i++) {
        sum += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    return sum;
}

Test(core_rng, fills_all_classes_equally)
{
    static size_t high[256];
    static size_t low[256];
    static size_t pairs[256];
    static size_t normal[256];
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);
    uint32_t *words = allocate(device, MANY * sizeof(*words));
    ds_accel_rng_t *rng;

    MUST(ds_accel_rng_create(device, 31, 0, &rng));
    MUST(ds_accel_rng_bits(rng, NULL, words, MANY, DS_ACCEL_DTYPE_INT32));
    MUST(ds_accel_device_synchronize(device));
    for (size_t i = 0; i < MANY; i++) {
        high[words[i] >> 24]++;
        low[words[i] & 255]++;
        pairs[(words[i] >> 28) << 4 | words[(i + 1) % MANY] >> 28]++;
    }
    MUST(ds_accel_rng_normal(rng, NULL, words, MANY, DS_ACCEL_DTYPE_FLOAT32, 0, 1));
    MUST(ds_accel_device_synchronize(device));
    /* the distribution function maps normal numbers to uniform */
    for (size_t i = 0; i < MANY; i++) {
        double below = 0.5 * erfc(-((float *)words)[i] / sqrt(2));

        normal[below < 1 ? (size_t)(below * 256) : 255]++;
    }
    cr_expect(chi_square(high) > 150 && chi_square(high) < 370, "%f", chi_square(high));
    cr_expect(chi_square(low) > 150 && chi_square(low) < 370, "%f", chi_square(low));
    cr_expect(chi_square(pairs) > 150 && chi_square(pairs) < 370, "%f", chi_square(pairs));
    cr_expect(chi_square(normal) > 150 && chi_square(normal) < 370, "%f", chi_square(normal));
    MUST(ds_accel_mem_free(device, NULL, words));
    test_finish(context, device);
}
