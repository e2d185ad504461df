/* cc -std=c99 example.c forecast.c model.c -lm -o example && ./example < numbers
 * Forecasts a series: numbers on the standard input, a row for each step, `nan` where one is missing. A first
 * argument is the clock of the last step (see forecast.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "forecast.h"

#define STEPS 20000

static float memory[4000000];
static double values[STEPS * FORECAST_COLUMNS], work[FORECAST_WORK(STEPS)];

int main(int argc, char **argv)
{
    static double value[FORECAST_HORIZON * FORECAST_TARGETS], low[FORECAST_HORIZON * FORECAST_TARGETS], high[FORECAST_HORIZON * FORECAST_TARGETS];
    ensue_room room = {memory, sizeof memory / sizeof *memory, 0, 0};
    long count = 0;
    while (count < STEPS * FORECAST_COLUMNS && scanf("%lf", values + count) == 1) count++;
    int failed = forecast(values, count / FORECAST_COLUMNS, argc > 1 ? atof(argv[1]) : NAN, value, low, high, work, &room);
    if (failed) {
        fprintf(stderr, failed == -1 ? "the room is too small\n" : failed == -2 ? "there are too few steps\n" : "a number has no logarithm\n");
        return 1;
    }
    for (long k = 0; k < FORECAST_HORIZON * FORECAST_TARGETS; k++) printf("%.9g %.9g %.9g\n", value[k], low[k], high[k]);
    return 0;
}
