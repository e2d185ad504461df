/* The solved members of a forecast, for one target each: seasons again, ridge regression, exponential
 * smoothing, autoregression, ARIMA. Nothing is allocated: `work` is the caller's. */
#ifndef ENSUE_MEMBERS
#define ENSUE_MEMBERS

#include <math.h>
#include <stddef.h>

typedef struct {
    char kind; /* 'r' repeated, 'w' ridge, 's' smoothing, 'a' autoregression, 'm' ARIMA */
    double share;
    long season, lags, difference, inputs, groups, period_count;
    int logarithm, multiplies, scaled;
    char anchor; /* of ridge: 's' season, 'm' mean, 'l' last */
    const double *periods, *weight, *bias, *floor, *parameters;
} ensue_member;

/* raw, y: the numbers of a target, without gaps in y; wide: y with `room` numbers before it; beside: other
 * columns; work: 6 * (count + room + horizon) + 6 * season + 64 numbers. */
typedef struct {
    const double *raw, *y, *wide, *beside;
    long count, room, beside_count, horizon, target;
    double clock, *work;
} ensue_ground;

static inline double ensue_within(double v, double low, double high) { return v < low ? low : v > high ? high : v; }
static inline double ensue_level(double v, int logarithm, double least) { return !logarithm ? v : log(v < least ? least : v); }
static inline double ensue_unlogged(double v, int logarithm) { return logarithm ? exp(v < 60.0 ? v : 60.0) : v; }

static inline double ensue_mean(const double *values, long count)
{
    double sum = 0.0;
    for (long k = 0; k < count; k++) sum += values[k];
    return sum / (double)count;
}

static inline double ensue_again(const double *y, long count, long season, long step)
{
    long place = count - season + step % season;
    return y[place < 0 ? count - 1 : place];
}

/* Sines and cosines of the places in each period. */
static inline long ensue_harmonics(double clock, const ensue_member *own, double *found)
{
    long count = 0;
    for (long p = 0; p < own->period_count; p++)
        for (int k = 1; k < 3; k++) {
            double part = clock * k / own->periods[p], turn = 6.283185307179586 * (part - floor(part));
            found[count++] = sin(turn);
            found[count++] = cos(turn);
        }
    return count;
}

static inline void ensue_repeated(const ensue_ground *ground, const ensue_member *own, double *found)
{
    for (long h = 0; h < ground->horizon; h++) found[h] = ensue_again(ground->y, ground->count, own->season, h);
}

static inline void ensue_ridge(const ensue_ground *ground, const ensue_member *own, double *found)
{
    long end = ground->count + ground->room, k = ground->target, group = own->groups == 1 ? 0 : k, many = own->lags;
    double *level = ground->work, *x = level + end, spread = 1.0, middle;
    for (long t = 0; t < end; t++) level[t] = ensue_level(ground->wide[t], own->logarithm, own->floor[k]);
    long over = own->anchor == 'm' && own->season > 1 ? own->season : 1;
    middle = ensue_mean(level + end - over, over);
    if (own->scaled && !own->logarithm) {
        const double *last = ground->wide + end - ground->room;
        double mean = ensue_mean(last, ground->room), square = 0.0, least = 0.01 * fabs(mean) + 1e-9;
        for (long t = 0; t < ground->room; t++) square += (last[t] - mean) * (last[t] - mean);
        spread = sqrt(square / (double)ground->room);
        if (spread < least) spread = least;
    }
    for (long lag = 0; lag < own->lags; lag++) {
        long at = end - 1 - lag;
        x[lag] = (level[at] - (own->anchor == 's' ? level[at - own->season] : middle)) / spread;
    }
    many += ensue_harmonics(ground->clock, own, x + many);
    for (long j = 0; j < ground->beside_count; j++) x[many++] = ground->beside[j];
    for (long h = 0; h < ground->horizon; h++) {
        const double *weight = own->weight + (group * ground->horizon + h) * own->inputs;
        double sum = own->bias[group * ground->horizon + h];
        double anchor = own->anchor == 's' ? level[end - own->season + h % own->season] : middle;
        for (long j = 0; j < many; j++) sum += weight[j] * x[j];
        found[h] = ensue_unlogged(anchor + spread * sum, own->logarithm);
    }
}

/* Level, trend and season before the first step, by the first two seasons. */
static inline void ensue_begun(const double *first, long count, const ensue_member *own, double *level, double *trend, double *ring)
{
    long season = own->season;
    if (season == 1) {
        *trend = (first[count - 1] - first[0]) / (double)(count > 1 ? count - 1 : 1);
        *level = first[0] - *trend;
        ring[0] = 0.0;
        return;
    }
    double begin = ensue_mean(first, season), middle = (double)(season - 1) / 2, even;
    *trend = (ensue_mean(first + season, count - season) - begin) / (double)season;
    for (long s = 0; s < season; s++) {
        double sum = 0.0;
        long many = 0;
        for (long t = s; t < count; t += season, many++) {
            double line = begin + *trend * ((double)t - middle);
            sum += own->multiplies ? first[t] / (line > 1e-9 ? line : 1e-9) : first[t] - line;
        }
        ring[s] = sum / (double)many;
    }
    even = ensue_mean(ring, season);
    for (long s = 0; s < season; s++)
        ring[s] = own->multiplies ? ensue_within(ring[s] / (even > 1e-9 ? even : 1e-9), 0.05, 20.0) : ring[s] - even;
    *level = begin - *trend * (middle + 1);
}

static inline void ensue_smoothing(const ensue_ground *ground, const ensue_member *own, double *found)
{
    long count = ground->count, season = own->season, needed = season > 1 ? 2 * season : 4, k = ground->target;
    double least = own->floor[k];
    if (count < needed) {
        for (long h = 0; h < ground->horizon; h++)
            found[h] = ensue_unlogged(ensue_level(ensue_again(ground->y, count, season, h), own->logarithm, least), own->logarithm);
        return;
    }
    double *first = ground->work, *ring = first + needed, before = 0.0, level, trend, highest = 0.0;
    const double *p = own->parameters + 4 * k;
    double alpha = p[0], beta = p[1], gamma = p[2], phi = p[3], low, steps = 0.0, power = 1.0;
    for (long t = needed - 1; t >= 0; t--) if (!isnan(ground->raw[t])) before = ensue_level(ground->raw[t], own->logarithm, least);
    for (long t = 0; t < needed; t++) {
        if (!isnan(ground->raw[t])) before = ensue_level(ground->raw[t], own->logarithm, least);
        first[t] = before;
    }
    low = fmax(0.01 * fabs(ensue_mean(first, needed)), 1e-9);
    ensue_begun(first, needed, own, &level, &trend, ring);
    if (!(beta > 0)) trend = 0.0;
    for (long t = 0; t < count; t++) {
        double value = ensue_level(ground->raw[t], own->logarithm, least), damped = phi * trend, base = level + damped, error = 0.0;
        long place = t % season;
        if (!t) highest = isnan(value) ? 0.0 : value;
        else if (!isnan(value) && value > highest) highest = value;
        else if (isnan(value) && highest < 0.0) highest = 0.0;
        if (own->multiplies) {
            if (base < low) base = low;
            if (!isnan(value)) error = value / ring[place] - base;
            ring[place] = ensue_within(ring[place] * (1 + gamma * (1 - alpha) * error / base), 0.05, 20.0);
        } else {
            if (!isnan(value)) error = value - base - ring[place];
            ring[place] += gamma * (1 - alpha) * error;
        }
        level = base + alpha * error;
        trend = damped + alpha * beta * error;
    }
    for (long h = 0; h < ground->horizon; h++) {
        steps += power *= phi;
        double said = level + trend * steps, more = ring[(count + h) % season];
        if (season > 1) said = own->multiplies ? fmin(said * more, 3 * highest) : said + more;
        found[h] = ensue_unlogged(said, own->logarithm);
    }
}

static inline void ensue_autoregression(const ensue_ground *ground, const ensue_member *own, double *found)
{
    long end = ground->count + ground->room, k = ground->target, lags = own->lags;
    double *level = ground->work, *back = level + end, *turns = back + lags, last;
    const double *weight = own->weight + k * own->inputs;
    for (long t = 0; t < end; t++) level[t] = ensue_level(ground->wide[t], own->logarithm, own->floor[k]);
    for (long lag = 0; lag < lags; lag++) {
        long at = end - 1 - lag < 0 ? 0 : end - 1 - lag;
        back[lag] = !own->difference ? level[at] : at ? level[at] - level[at - 1] : 0.0;
    }
    last = level[end - 1];
    for (long h = 0; h < ground->horizon; h++) {
        double now = own->bias[k];
        long more = ensue_harmonics(ground->clock + (double)(h + 1), own, turns);
        for (long j = 0; j < lags; j++) now += weight[j] * back[j];
        for (long j = 0; j < more; j++) now += weight[lags + j] * turns[j];
        for (long j = lags - 1; j > 0; j--) back[j] = back[j - 1];
        if (lags) back[0] = now;
        last = own->difference ? last + now : now;
        found[h] = ensue_unlogged(last, own->logarithm);
    }
}

/* The errors of an ARIMA one step ahead: the last season of them, and the number before. */
typedef struct { const double *p; long season; double *ring, before; } ensue_recursion;

static inline double ensue_expected(const ensue_recursion *own)
{
    double found = own->p[0] * own->before + own->p[1] * own->ring[own->season];
    return own->season > 1 ? found + own->p[2] * own->ring[1] + own->p[1] * own->p[2] * own->ring[0] : found;
}

static inline double ensue_taken(ensue_recursion *own, double v)
{
    double error = isnan(v) ? 0.0 : v - ensue_expected(own);
    for (long k = 0; k < own->season; k++) own->ring[k] = own->ring[k + 1];
    own->ring[own->season] = error;
    own->before = isnan(v) ? 0.0 : v;
    return error;
}

static inline void ensue_arima(const ensue_ground *ground, const ensue_member *own, double *found)
{
    long count = ground->count, m = own->season, d = own->difference, needed = d + (m > 1 ? m : 0), k = ground->target;
    double *y = ground->work, *w = y + count + ground->horizon, *errors = w + count + 1, *earlier = errors + count + ground->horizon;
    for (long t = 0; t < count; t++) y[t] = ensue_level(ground->y[t], own->logarithm, own->floor[k]);
    if (count < 2 * needed) {
        for (long h = 0; h < ground->horizon; h++) found[h] = ensue_unlogged(ensue_again(y, count, m, h), own->logarithm);
        return;
    }
    const double *p = own->parameters + 4 * k;
    double *rings = earlier + m + 1, before;
    ensue_recursion backward = {p, m, rings, 0.0}, forward = {p, m, rings + m + 1, 0.0};
    for (long j = 0; j < 2 * (m + 1); j++) rings[j] = 0.0;
    for (long t = 0; t < count; t++) w[t] = ensue_level(ground->raw[t], own->logarithm, own->floor[k]);
    if (m > 1) for (long t = count - 1; t >= 0; t--) w[t] = t < m ? NAN : w[t] - w[t - m];
    if (d) for (long t = count - 1; t >= 0; t--) w[t] = t < 1 ? NAN : w[t] - w[t - 1];
    long left = count - needed;
    for (long t = 0; t < left; t++) w[t] = w[t + needed] - p[3];
    for (long t = (needed < left ? needed : left) - 1; t >= 0; t--) (void)ensue_taken(&backward, w[t]);
    for (long t = m; t >= 0; t--) {
        earlier[t] = ensue_expected(&backward);
        (void)ensue_taken(&backward, earlier[t]);
    }
    for (long t = 0; t <= m; t++) (void)ensue_taken(&forward, earlier[t]);
    for (long t = 0; t < needed; t++) errors[t] = 0.0;
    for (long t = 0; t < left; t++) errors[needed + t] = ensue_taken(&forward, w[t]);
    before = left && !isnan(w[left - 1]) ? w[left - 1] : 0.0;
    for (long t = count; t < count + ground->horizon; t++) {
        errors[t] = 0.0;
        before = p[0] * before + p[1] * errors[t - 1];
        if (m > 1) before += p[2] * errors[t - m] + p[1] * p[2] * (t - m - 1 < 0 ? 0.0 : errors[t - m - 1]);
        y[t] = before + p[3] + (m > 1 ? y[t - m] : 0.0) + (d ? y[t - 1] - (m > 1 ? y[t - m - 1] : 0.0) : 0.0);
        found[t - count] = ensue_unlogged(y[t], own->logarithm);
    }
}

static inline void ensue_said(const ensue_ground *ground, const ensue_member *own, double *found)
{
    if (own->kind == 'r') ensue_repeated(ground, own, found);
    else if (own->kind == 'w') ensue_ridge(ground, own, found);
    else if (own->kind == 's') ensue_smoothing(ground, own, found);
    else if (own->kind == 'a') ensue_autoregression(ground, own, found);
    else ensue_arima(ground, own, found);
}

#endif
