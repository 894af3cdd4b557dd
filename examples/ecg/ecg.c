/*
 * Takes a recording of several electrodes apart: which sources beat, how often, and which stretches the model cannot explain.
 *
 *     ecg recording.csv sources.csv      a row of numbers for each sample in, strength of each source and evidence out
 */
#include "monitor.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum { LONGEST_LINE = 4096 };

/* Intervals between the beats of a source, in samples. */
typedef struct beats {
    uint32_t last;    /* sample number of the beat before; 0: none */
    uint32_t pending; /* the interval before that: counts when another beat follows, since alarms come a little late */
    uint32_t intervals, sum, shortest, longest;
} beats;

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "error: %s: %s\n", what, why);
    exit(1);
}

static void must(const char *what, spk_status status)
{
    if (status != SPK_OK)
        fail(what, spk_status_str(status));
}

/* How many numbers a line has, with commas or space between; -1 when there is something else. The first MODEL_DIMS are kept. */
static int numbers(const char *line, float sample[MODEL_DIMS])
{
    int count = 0;

    for (;;) {
        char *end;

        while (isspace((unsigned char)*line))
            line++;
        if (!*line)
            return count;
        const float value = strtof(line, &end);
        if (end == line)
            return -1;
        if (count < MODEL_DIMS)
            sample[count] = value;
        count++;
        for (line = end; isspace((unsigned char)*line); line++)
            ;
        if (*line == ',' || *line == ';')
            line++;
    }
}

static void count_beat(beats *b, uint32_t now)
{
    if (b->pending > 0) {
        b->shortest = b->intervals == 0 || b->pending < b->shortest ? b->pending : b->shortest;
        b->longest = b->pending > b->longest ? b->pending : b->longest;
        b->intervals++;
        b->sum += b->pending;
    }
    b->pending = b->last > 0 ? now - b->last : 0;
    b->last = now;
}

/* A heart is regular; strong samples of anything else come as they like. */
static void print_beats(unsigned source, const beats *b)
{
    if (b->intervals < 4 || 5 * b->longest > 7 * b->shortest)
        printf("source %u: no regular beat\n", source);
    else
        printf("source %u: %.0f beats a minute, %.2f to %.2f s apart\n", source, 60.0 * MONITOR_RATE * b->intervals / b->sum,
               (double)b->shortest / MONITOR_RATE, (double)b->longest / MONITOR_RATE);
}

int main(int argc, char **argv)
{
    static monitor m;
    static beats found[MODEL_LATENTS];
    char line[LONGEST_LINE], where[32];
    float sample[MODEL_DIMS];
    uint32_t row = 0, stretches = 0;
    double start = -1.0, time = 0.0;
    monitor_report report;

    if (argc != 3)
        fail("usage", "ecg recording.csv sources.csv");
    FILE *in = fopen(argv[1], "r");
    if (!in)
        fail(argv[1], "cannot read it");
    FILE *out = fopen(argv[2], "w");
    if (!out)
        fail(argv[2], "cannot write it");
    must("model.h", monitor_init(&m));

    for (uint32_t h = 0; h < MODEL_LATENTS; h++)
        fprintf(out, "source_%u,", (unsigned)h);
    fprintf(out, "evidence\n");
    while (fgets(line, sizeof line, in)) {
        const int count = numbers(line, sample);

        sprintf(where, "line %u", (unsigned)++row);
        if (count < 0 && row == 1)
            continue; /* names of the electrodes */
        if (count != MODEL_DIMS)
            fail(where, "need a row of as many numbers as the model has electrodes");
        must(where, monitor_sample(&m, sample, &report));

        for (uint32_t h = 0; h < MODEL_LATENTS; h++) {
            fprintf(out, "%.6g,", (double)report.estimate.mean[h]);
            if (report.beat[h])
                count_beat(&found[h], m.samples);
            if (report.unexplained)
                found[h].last = found[h].pending = 0;
        }
        fprintf(out, "%.6g\n", (double)report.estimate.evidence);

        time = (double)(m.samples - 1) / MONITOR_RATE;
        if (report.unexplained && start < 0.0) {
            start = time;
        } else if (!report.unexplained && start >= 0.0) {
            printf("unexplained: %.2f to %.2f s\n", start, time);
            start = -1.0;
            stretches++;
        }
    }
    if (ferror(in) || fclose(in))
        fail(argv[1], "cannot read it");
    if (ferror(out) || fclose(out))
        fail(argv[2], "cannot write it");
    if (m.samples <= MONITOR_SETTLE)
        fail(argv[1], "too short: five seconds set the measure, and nothing is left after them");
    if (start >= 0.0) {
        printf("unexplained: %.2f s to the end\n", start);
        stretches++;
    }

    for (uint32_t h = 0; h < MODEL_LATENTS; h++)
        print_beats((unsigned)h, &found[h]);
    printf("%u stretches in %.0f s that the model does not explain\n", (unsigned)stretches, time);
    return 0;
}
