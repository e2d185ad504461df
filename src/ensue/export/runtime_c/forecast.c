#include "forecast.h"

#include "members.h"
#include "model.h"

static double to_level(double v)
{
    return FORECAST_TRANSFORM == 'n' ? v : FORECAST_TRANSFORM == 'l' ? log(v) : log1p(v);
}

static double from_level(double v)
{
    return FORECAST_TRANSFORM == 'n' ? v : FORECAST_TRANSFORM == 'l' ? exp(v) : expm1(v);
}

/* A number of a target as the model sees it, before it is scaled; `failed` where it has no logarithm. */
static double level_of(double v, long k, int *failed)
{
    if (FORECAST_FLOORED && FORECAST_TRANSFORM != 'n' && v < forecast_floor[k]) v = forecast_floor[k];
    if (FORECAST_TRANSFORM != 'n' && v <= (FORECAST_TRANSFORM == 'l' ? 0.0 : -1.0)) *failed = 1;
    return to_level(v);
}

static double scaled(const double *values, long t, long k, int *failed)
{
    double v = values[t * FORECAST_COLUMNS + k];
    if (k < FORECAST_TARGETS) {
        v = level_of(v, k, failed);
        if (FORECAST_LAG) v = t < FORECAST_LAG ? NAN : v - level_of(values[(t - FORECAST_LAG) * FORECAST_COLUMNS + k], k, failed);
    }
    return (v - forecast_mean[k]) / forecast_spread[k];
}

/* The last steps, scaled, with the last number that was there in the place of a missing one; of a mixed forecast
 * with a column for each target that says which were there. */
static void read_past(const double *values, long now, double *before, float *past, int *failed)
{
    for (long k = 0; k < FORECAST_COLUMNS; k++) before[k] = 0.0;
    for (long k = 0; k < FORECAST_LOOK_BACK * FORECAST_WIDTH; k++) past[k] = 0.0f;
    for (long t = 0; t < now; t++) {
        long at = (t - now + FORECAST_LOOK_BACK) * FORECAST_WIDTH;
        for (long k = 0; k < FORECAST_COLUMNS; k++) {
            double z = scaled(values, t, k, failed);
            if (!isnan(z)) before[k] = z;
            if (at >= 0) past[at + k] = (float)before[k];
        }
        for (long k = 0; at >= 0 && FORECAST_MEMBERS && k < FORECAST_TARGETS; k++)
            past[at + FORECAST_COLUMNS + k] = !isnan(values[t * FORECAST_COLUMNS + k]);
    }
}

/* Sine and cosine of each phase of a step. */
static void turns(const double *phases, long t, float *found)
{
    for (long k = 0; k < FORECAST_CALENDAR; k++) {
        double turn = 6.283185307179586 * phases[t * FORECAST_CALENDAR + k];
        found[2 * k] = (float)sin(turn);
        found[2 * k + 1] = (float)cos(turn);
    }
}

/* What the solved members say, scaled. */
static void read_base(const double *values, long now, double clock, double *work, float *base, int *failed)
{
    double *beside = work, *raw = beside + FORECAST_COLUMNS, *y = raw + now, *wide = y + now;
    double *each = wide + now + FORECAST_ROOM, *rest = each + FORECAST_HORIZON;
    long others = FORECAST_COLUMNS - FORECAST_TARGETS;
    for (long j = 0; j < others; j++) {
        beside[j] = 0.0;
        for (long t = 0; t < now; t++) {
            double v = values[t * FORECAST_COLUMNS + FORECAST_TARGETS + j];
            if (!isnan(v)) beside[j] = v;
        }
    }
    for (long k = 0; k < FORECAST_TARGETS; k++) {
        ensue_ground ground = {raw, y, wide, beside, now, FORECAST_ROOM, others, FORECAST_HORIZON, k, clock, rest};
        for (long t = 0; t < now; t++) {
            raw[t] = values[t * FORECAST_COLUMNS + k];
            y[t] = !isnan(raw[t]) ? raw[t] : t >= FORECAST_SEASON ? y[t - FORECAST_SEASON] : t ? y[t - 1] : 0.0;
            wide[FORECAST_ROOM + t] = y[t];
        }
        for (long t = 0; t < FORECAST_ROOM; t++) wide[t] = y[0];
        double sum[FORECAST_HORIZON] = {0};
        for (long m = 0; m < FORECAST_MEMBERS; m++) {
            ensue_said(&ground, forecast_members + m, each);
            for (long h = 0; h < FORECAST_HORIZON; h++) sum[h] += forecast_members[m].share * each[h];
        }
        for (long h = 0; h < FORECAST_HORIZON; h++)
            base[h * FORECAST_TARGETS + k] = (float)((level_of(sum[h], k, failed) - forecast_mean[k]) / forecast_spread[k]);
    }
}

/* Whether all phases of so many steps are from 0 to 1; the last hours of a leap year are a little beyond. */
static int are_phases(const double *phases, long steps)
{
    for (long k = 0; k < steps * FORECAST_CALENDAR; k++)
        if (!(phases && phases[k] >= 0.0 && phases[k] < 366.0 / 365.25)) return 0;
    return 1;
}

static int are_numbers(const double *values, long steps)
{
    for (long k = 0; k < steps * FORECAST_COLUMNS; k++)
        if (fabs(values[k]) > FORECAST_LARGEST) return 0;
    return 1;
}

int forecast(const double *values, long steps, double clock, const double *phases, double *value, double *low,
    double *high, double *work, ensue_room *room)
{
    long reads = FORECAST_LOOK_BACK * FORECAST_WIDTH, says = FORECAST_HORIZON * FORECAST_TARGETS;
    long knows = FORECAST_HORIZON * 2 * FORECAST_CALENDAR;
    float *past = room->memory + room->used, *base = past + reads, *known_ahead = base + says;
    if (room->size - room->used < reads + says + knows) return -1;
    room->used += reads + says + knows;
    ensue_tensor outputs[MODEL_OUTPUTS], inputs[3] = {
        {3, {FORECAST_LOOK_BACK, 1, FORECAST_WIDTH}, past, NULL, 'f'},
        {3, {FORECAST_HORIZON, 1, FORECAST_TARGETS}, base, NULL, 'f'},
        {3, {FORECAST_HORIZON, 1, 2 * FORECAST_CALENDAR}, known_ahead, NULL, 'f'},
    };
    if (!FORECAST_MEMBERS) inputs[1] = inputs[2];
    int failed = 0;
    for (int known = 0; steps && !known; steps -= !known)
        for (long k = 0; k < FORECAST_TARGETS; k++) known |= !isnan(values[(steps - 1) * FORECAST_COLUMNS + k]);
    if (steps < FORECAST_LEAST || !steps) return -2;
    if (!are_numbers(values, steps)) return -4;
    if (!are_phases(phases, steps + FORECAST_HORIZON)) return -5;
    if (FORECAST_CLOCK && isnan(clock)) return -6;
    read_past(values, steps, work, past, &failed);
    for (long b = 0; FORECAST_CALENDAR && b < FORECAST_LOOK_BACK; b++)
        if (b >= FORECAST_LOOK_BACK - steps)
            turns(phases, steps - FORECAST_LOOK_BACK + b, past + (b + 1) * FORECAST_WIDTH - 2 * FORECAST_CALENDAR);
    for (long h = 0; FORECAST_CALENDAR && h < FORECAST_HORIZON; h++) turns(phases, steps + h, known_ahead + h * 2 * FORECAST_CALENDAR);
    if (FORECAST_MEMBERS) read_base(values, steps, isnan(clock) ? (double)(steps - 1) : clock, work, base, &failed);
    if (failed) return -3;
    if (model_run(inputs, outputs, room)) return -1;
    const float *ahead = outputs[0].data;
    double *levels = work;
    for (long h = 0; h < FORECAST_HORIZON; h++)
        for (long k = 0; k < FORECAST_TARGETS; k++) {
            long at = h * FORECAST_TARGETS + k, before = (steps - FORECAST_LAG + h) * FORECAST_COLUMNS + k;
            double back = !FORECAST_LAG ? 0.0 : h < FORECAST_LAG ? level_of(values[before], k, &failed) : levels[at - FORECAST_LAG * FORECAST_TARGETS];
            double away = FORECAST_WIDENED ? forecast_widening[at] : 0.0;
            levels[at] = (double)ahead[at] * forecast_spread[k] + forecast_mean[k] + back;
            if (away < 0.0) away = 0.0;
            value[at] = from_level(levels[at]);
            low[at] = FORECAST_WIDENED ? from_level(levels[at] - away) : NAN;
            high[at] = FORECAST_WIDENED ? from_level(levels[at] + away) : NAN;
        }
    return 0;
}
