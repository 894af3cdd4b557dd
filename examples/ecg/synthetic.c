/*
 * A recording to try the example with: five electrodes on the belly of a mother, who has two hearts.
 *
 *     synthetic normal >normal.csv        half a minute, to train on
 *     synthetic today  >today.csv         as much of the same electrodes; at 15 s a beat that comes from elsewhere in
 *                                         the heart, at 22 s half a second of a loose electrode
 *
 * 250 samples a second, a row each, in microvolts. A heart is a current that turns and swells: three directions for the
 * mother, at slightly different times of a beat, one for the child. Breathing moves the baseline, muscles and amplifiers add noise.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { RATE = 250, ELECTRODES = 5 };

/* What each of the electrodes sees of a current; a column could be anything, as long as no two are alike. */
static const double mother[3][ELECTRODES] = {
    {-40, 95, -65, -30, -85}, /* the ventricles, first half */
    {35, 20, 30, -20, 45},    /* second half, turned */
    {8, 22, -10, 12, -6},     /* recovery: the T wave */
};
static const double child[ELECTRODES] = {22, -18, -9, 16, 12};
static const double elsewhere[ELECTRODES] = {70, 60, -40, 80, 30};

static uint64_t state = 1;

static double uniform(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(state >> 33) / 2147483648.0;
}

/* Twelve uniform numbers make a normal one that is good enough here. */
static double normal(void)
{
    double sum = -6.0;
    for (int i = 0; i < 12; i++)
        sum += uniform();
    return sum;
}

/* A bump `since` seconds from its middle. */
static double bump(double since, double width)
{
    return exp(-0.5 * since * since / (width * width));
}

int main(int argc, char **argv)
{
    if (argc != 2 || (strcmp(argv[1], "normal") && strcmp(argv[1], "today"))) {
        fprintf(stderr, "usage: synthetic normal|today\n");
        return 2;
    }
    const int today = !strcmp(argv[1], "today"), samples = 30 * RATE;
    double next_mother = 0.3, next_child = 0.1, last_mother = -9, last_child = -9;

    state += (uint64_t)today;
    for (int i = 0; i < samples; i++) {
        const double t = (double)i / RATE;

        /* Hearts never beat like clocks. */
        if (t >= next_mother) {
            last_mother = next_mother;
            next_mother += 60.0 / 84 + 0.02 * normal();
        }
        if (t >= next_child) {
            last_child = next_child;
            next_child += 60.0 / 132 + 0.006 * normal();
        }
        const double since = t - last_mother, since_child = t - last_child;
        const int loose = today && t >= 22.0 && t < 22.5;

        for (int e = 0; e < ELECTRODES; e++) {
            double y = mother[0][e] * bump(since - 0.050, 0.010) + mother[1][e] * bump(since - 0.070, 0.010)
                       + mother[2][e] * bump(since - 0.300, 0.040) + child[e] * bump(since_child - 0.040, 0.007)
                       + 2.0 * (1 + 0.2 * e) * sin(6.283185307 * 0.25 * t) + 1.5 * normal();
            if (today)
                y += elsewhere[e] * bump(t - 15.0, 0.030);
            if (loose && e == 2)
                y += 60.0 * sin(6.283185307 * 50 * t + 1.0) + 20.0 * normal();
            printf("%.3f%c", y, e + 1 < ELECTRODES ? ',' : '\n');
        }
    }
    return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
