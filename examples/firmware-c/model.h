/* What model.S places in flash. The Makefile defines MODEL_NAME, MODEL_DIMS, MEMORY_BYTES and the like. */
#ifndef MODEL_H
#define MODEL_H

#include <stdint.h>

extern const unsigned char model_blob[];
extern const uint32_t model_blob_size;
extern const float model_samples[]; /* rows of MODEL_DIMS, or bytes of a WAV file (MODEL_PCM) */
extern const uint32_t model_samples_size;

#endif
