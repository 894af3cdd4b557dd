/*
 * One 64-bit number over everything an inference returns, to compare machines bit for bit.
 *
 * FNV-1a over the bytes in memory. Every target here is little-endian, so equal values are equal bytes;
 * a float counts with its bits, -0.0 and 0.0 are different.
 */
#ifndef DIGEST_H
#define DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "spikelet.h"

#define DIGEST_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t digest_bytes(uint64_t digest, const void *bytes, size_t len)
{
    const unsigned char *byte = bytes;

    while (len--)
        digest = (digest ^ *byte++) * UINT64_C(0x100000001b3);
    return digest;
}

/* The reconstruction is not part of the estimate: add it with digest_bytes() after each call. */
static inline uint64_t digest_estimate(uint64_t digest, const spk_estimate *e)
{
    digest = digest_bytes(digest, e->selected, e->selected_len * sizeof *e->selected);
    digest = digest_bytes(digest, e->activity, e->latents * sizeof *e->activity);
    digest = digest_bytes(digest, e->mean, e->latents * sizeof *e->mean);
    digest = digest_bytes(digest, e->variance, e->latents * sizeof *e->variance);
    digest = digest_bytes(digest, e->map_latents, e->map_len * sizeof *e->map_latents);
    digest = digest_bytes(digest, e->map_values, e->map_len * sizeof *e->map_values);
    return digest_bytes(digest, &e->evidence, sizeof e->evidence);
}

#endif
