/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A fast 64-bit hash for checksums and cache keys. It does not protect against forgery. */
#include "base/text.h"

#include <assert.h>
#include <string.h>

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

uint64_t ds_accel__hash(const void *data, size_t size_bytes, uint64_t seed)
{
    const unsigned char *at = data;
    uint64_t hash = mix(seed, size_bytes + 1);
    uint64_t word;

    assert(data != NULL || size_bytes == 0);
    for (; size_bytes >= sizeof(word); size_bytes -= sizeof(word), at += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        hash = mix(hash, word);
    }
    if (size_bytes > 0) {
        word = 0;
        memcpy(&word, at, size_bytes);
        hash = mix(hash, word);
    }
    return mix(hash, hash >> 32);
}

uint64_t ds_accel__hash_text(const char *text, uint64_t seed)
{
    return ds_accel__hash(text, strlen(text), seed);
}
