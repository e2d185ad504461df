/* cc -std=c99 example.c forecast.c model.c -lm -o example && ./example < numbers
 * Forecasts a series: numbers on the standard input, a row for each step, `nan` where one is missing. Of a model with
 * a calendar each row begins with its phases, and rows of the steps ahead follow, with `nan`. A first argument is the
 * clock of the last step (see forecast.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "forecast.h"

#define STEPS 20000

static float memory[4000000];
static double values[STEPS * FORECAST_COLUMNS], phases[STEPS * FORECAST_CALENDAR + 1], work[FORECAST_WORK(STEPS)];

int main(int argc, char **argv)
{
    static double value[FORECAST_HORIZON * FORECAST_TARGETS], low[FORECAST_HORIZON * FORECAST_TARGETS], high[FORECAST_HORIZON * FORECAST_TARGETS];
    ensue_room room = {memory, sizeof memory / sizeof *memory, 0, 0};
    long steps = 0, there = 1;
    for (; there == 1 && steps < STEPS; steps += there == 1) {
        for (long k = 0; there == 1 && k < FORECAST_CALENDAR; k++) there = scanf("%lf", phases + steps * FORECAST_CALENDAR + k);
        for (long k = 0; there == 1 && k < FORECAST_COLUMNS; k++) there = scanf("%lf", values + steps * FORECAST_COLUMNS + k);
    }
    if (FORECAST_CALENDAR) steps -= FORECAST_HORIZON;
    int failed = forecast(values, steps > 0 ? steps : 0, argc > 1 ? atof(argv[1]) : NAN, phases, value, low, high, work, &room);
    if (failed) {
        fprintf(stderr, failed == -1 ? "the room is too small\n" : failed == -2 ? "there are too few steps\n" : "a number has no logarithm\n");
        return 1;
    }
    for (long k = 0; k < FORECAST_HORIZON * FORECAST_TARGETS; k++) printf("%.9g %.9g %.9g\n", value[k], low[k], high[k]);
    return 0;
}
