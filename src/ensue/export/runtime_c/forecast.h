/* A whole forecast: from the numbers of a series to the steps after it. */
#ifndef ENSUE_FORECAST
#define ENSUE_FORECAST

#include "forecast_facts.h"
#include "tensors.h"

#define FORECAST_LARGEST 1e30 /* of a number, whatever its sign */

/* Numbers of `work` that a series of so many steps needs. */
#define FORECAST_WORK(steps) \
    (FORECAST_COLUMNS * 3 + FORECAST_TARGETS * FORECAST_HORIZON + 16 * (FORECAST_SEASON + FORECAST_ROOM + FORECAST_HORIZON + 16) + 9 * (steps))

/* values: `steps` rows of FORECAST_COLUMNS numbers, the oldest first, evenly spaced, the targets first; NAN is a
 * number that is missing. clock: how many steps the last row is after the beginning of 1970, of months after that
 * of the year 0 (12 * year + month - 1); NAN where FORECAST_CLOCK is 0. phases: of each step, and of
 * the FORECAST_HORIZON steps after them, FORECAST_CALENDAR numbers, in the order of preprocess.json ("calendar"):
 * month (month - 1) / 12, weekday day / 7 from Monday, hour / 24, yearday day / 365.25, each from 0 on; NULL where
 * there are none. value, low, high:
 * FORECAST_HORIZON rows of FORECAST_TARGETS numbers each; low and high are NAN where intervals are drawn.
 *
 * Gives 0; -1 where the room is too small, -2 of fewer than FORECAST_LEAST steps, -3 of a number that has no
 * logarithm, -4 of a number beyond FORECAST_LARGEST, -5 of a phase that is not from 0 to 1, -6 of no clock where
 * FORECAST_CLOCK says that it is read. */
int forecast(const double *values, long steps, double clock, const double *phases, double *value, double *low,
    double *high, double *work, ensue_room *room);

#endif
