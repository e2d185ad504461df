/* cc -std=c99 example.c forecast.c model.c -lm -o example && ./example < numbers
 * Forecasts a series: a line of the standard input is a step, and has the numbers that FORECAST_LINE names, `nan`
 * where one is missing. Of a model with a calendar each line begins with its phases, and lines of the steps ahead
 * follow, with `nan` behind the phases. A first argument is the clock of the last step (see forecast.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forecast.h"

#define STEPS 20000
#define EACH (FORECAST_CALENDAR + FORECAST_COLUMNS)

static float memory[4000000];
static char line[64 * (EACH + 1)];
static double values[STEPS * FORECAST_COLUMNS], phases[STEPS * FORECAST_CALENDAR + 1], work[FORECAST_WORK(STEPS)];
static const char *const why[] = {
    "", "the room is too small", "there are too few steps", "a number has no logarithm",
    "a number is larger than 1e30", "a phase is not from 0 to 1",
    "expected the clock of the last step as the first argument (see forecast.h)",
};

/* The numbers of a line, at most one more than there should be; how many there are, -1 where a word is none. */
static int numbers_of(char *text, double *found)
{
    int count = 0;
    for (char *word = strtok(text, " \t\r\n"), *end; word && count <= EACH; word = strtok(NULL, " \t\r\n")) {
        found[count++] = strtod(word, &end);
        if (*end) return -1;
    }
    return count;
}

/* All lines; how many steps they are, -1 where one is not as it should be. */
static long read_steps(void)
{
    long steps = 0;
    for (long number = 1; fgets(line, sizeof line, stdin); number++) {
        double found[EACH + 1];
        int whole_line = strchr(line, '\n') || feof(stdin), count = whole_line ? numbers_of(line, found) : EACH + 1;
        if (!count) continue;
        if (steps == STEPS) {
            fprintf(stderr, "line %ld: expected at most %d steps, got more\n", number, STEPS);
            return -1;
        }
        if (count != EACH) {
            fprintf(stderr, "line %ld: expected %d number%s (" FORECAST_LINE "), got ", number, EACH, EACH == 1 ? "" : "s");
            if (count < 0) fprintf(stderr, "a word that is no number\n");
            else fprintf(stderr, "%d%s\n", count, count > EACH ? " or more" : "");
            return -1;
        }
        memcpy(phases + steps * FORECAST_CALENDAR, found, FORECAST_CALENDAR * sizeof *found);
        memcpy(values + steps++ * FORECAST_COLUMNS, found + FORECAST_CALENDAR, FORECAST_COLUMNS * sizeof *found);
    }
    return steps;
}

/* Whether the steps after these are there by their phases alone. */
static int are_ahead(long steps)
{
    for (long k = 0; FORECAST_CALENDAR && k < FORECAST_HORIZON * FORECAST_COLUMNS; k++)
        if (!isnan(values[steps * FORECAST_COLUMNS + k])) return 0;
    return 1;
}

int main(int argc, char **argv)
{
    static double value[FORECAST_HORIZON * FORECAST_TARGETS], low[FORECAST_HORIZON * FORECAST_TARGETS], high[FORECAST_HORIZON * FORECAST_TARGETS];
    ensue_room room = {memory, sizeof memory / sizeof *memory, 0, 0};
    char *end = "";
    double clock = argc > 1 ? strtod(argv[1], &end) : NAN;
    if (argc > 1 && (*end || !(fabs(clock) <= FORECAST_LARGEST))) {
        fprintf(stderr, "expected the clock of the last step as the first argument, a number (see forecast.h), got %s\n", argv[1]);
        return 2;
    }
    long steps = read_steps();
    if (steps < 0) return 2;
    if (FORECAST_CALENDAR) steps = steps > FORECAST_HORIZON ? steps - FORECAST_HORIZON : 0;
    if (steps && !are_ahead(steps)) {
        fprintf(stderr, "the last %d lines: expected nan behind the phases, for they are the steps ahead, got numbers\n", FORECAST_HORIZON);
        return 2;
    }
    int failed = forecast(values, steps, clock, phases, value, low, high, work, &room);
    if (failed) {
        fprintf(stderr, "%s\n", why[-failed]);
        return 1;
    }
    for (long k = 0; k < FORECAST_HORIZON * FORECAST_TARGETS; k++) printf("%.9g %.9g %.9g\n", value[k], low[k], high[k]);
    return 0;
}
