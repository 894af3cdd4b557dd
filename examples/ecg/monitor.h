/*
 * The part of the example that belongs on a device: one sample of all electrodes in, beats and alarms out. No heap, no files, a
 * fixed amount of memory; firmware calls the same two functions as ecg.c does.
 *
 *   sample --spk_process--> strength of each source --> beats
 *                       \-> evidence, mean of 0.1 s --> does the model explain this?
 *
 * The first seconds set the measure: how strong each source gets, and how low the evidence.
 */
#ifndef MONITOR_H
#define MONITOR_H

#include "model.h" /* spikelet export ecg.spk --format c --out model.h */
#include "spikelet.h"
#include <string.h>

enum {
    MONITOR_RATE = 250,                      /* samples a second of the recording the model was trained on */
    MONITOR_SETTLE = 5 * MONITOR_RATE,       /* samples that set the measure */
    MONITOR_WINDOW = MONITOR_RATE / 10,      /* samples that the evidence is averaged over */
    MONITOR_REFRACTORY = MONITOR_RATE * 3 / 10 /* samples in which no heart beats twice: 200 beats a minute */
};

typedef struct monitor {
    MODEL_ALIGNED unsigned char memory[MODEL_STATE_SIZE];
    spk_state *state;
    uint32_t samples;                    /* seen so far */
    float window[MONITOR_WINDOW];        /* the latest evidences, in a circle */
    float mean, lowest;                  /* evidence while settling: its mean, and the lowest mean of a window */
    float evidence;                      /* mean of the window now */
    float loudest[MODEL_LATENTS];        /* strength of each source while settling */
    uint32_t last_beat[MODEL_LATENTS];   /* sample number; 0: none yet */
} monitor;

/* What one sample told. */
typedef struct monitor_report {
    spk_estimate estimate;     /* strength of each source: estimate.mean */
    int settled;               /* 0 in the first seconds: nothing else below is set */
    int unexplained;           /* the model has no good explanation of the last 0.1 s */
    unsigned char beat[MODEL_LATENTS]; /* 1: this source beats now */
} monitor_report;

static inline spk_status monitor_init(monitor *m)
{
    memset(m, 0, sizeof *m);
    return spk_init(m->memory, sizeof m->memory, model_blob, sizeof model_blob, &m->state);
}

static inline float monitor_average(const monitor *m)
{
    float sum = 0.0f;
    for (int i = 0; i < MONITOR_WINDOW; i++)
        sum += m->window[i];
    return sum / MONITOR_WINDOW;
}

static inline spk_status monitor_sample(monitor *m, const float sample[MODEL_DIMS], monitor_report *report)
{
    memset(report, 0, sizeof *report);
    spk_status status = spk_process(m->state, sample, MODEL_DIMS, &report->estimate);
    if (status != SPK_OK)
        return status;

    m->window[m->samples++ % MONITOR_WINDOW] = report->estimate.evidence;
    m->evidence = monitor_average(m);
    report->settled = m->samples > MONITOR_SETTLE;
    if (!report->settled) {
        m->mean += report->estimate.evidence / MONITOR_SETTLE;
        if (m->samples == MONITOR_WINDOW || (m->samples > MONITOR_WINDOW && m->evidence < m->lowest))
            m->lowest = m->evidence;
    } else {
        /* Twice as far below the mean as the lowest that was normal. */
        report->unexplained = m->evidence < m->lowest - (m->mean - m->lowest);
    }
    for (uint32_t h = 0; h < MODEL_LATENTS; h++) {
        const float mean = report->estimate.mean[h], strength = mean < 0.0f ? -mean : mean;

        if (!report->settled) {
            if (strength > m->loudest[h])
                m->loudest[h] = strength;
        } else if (!report->unexplained && strength > 0.45f * m->loudest[h]
                   && (m->last_beat[h] == 0 || m->samples - m->last_beat[h] > MONITOR_REFRACTORY)) {
            report->beat[h] = 1;
            m->last_beat[h] = m->samples;
        }
    }
    return SPK_OK;
}

#endif
