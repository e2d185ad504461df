/* Windows over pictures (rows, channels, height, width) and sequences (rows, channels, time): convolutions and
 * poolings. A sequence is a picture of height 1. */
#ifndef ENSUE_WINDOWS
#define ENSUE_WINDOWS

#include "shapes.h"

/* how they move: of height and width each the size of a window, the step, the gap between its elements, and the
 * zeros before and after; up: whether a part of a window at the end counts. */
typedef struct { long size[2], step[2], gap[2], before[2], after[2]; int up; } ensue_windows;

/* Height and width, of the input and of what is computed. */
static inline void outside(const T *x, const ensue_windows *own, long *in, long *out)
{
    in[0] = x->rank == 4 ? x->dims[2] : 1;
    in[1] = x->dims[x->rank - 1];
    for (int k = 0; k < 2; k++) {
        long left = in[k] + own->before[k] + own->after[k] - (own->size[k] - 1) * own->gap[k] - 1;
        out[k] = (left + (own->up ? own->step[k] - 1 : 0)) / own->step[k] + 1;
        if (own->up && (out[k] - 1) * own->step[k] >= in[k] + own->before[k]) out[k]--;
    }
}

static inline T windowed(R *room, const T *x, long channels, const long *out, float **data)
{
    long dims[4] = {x->dims[0], channels, out[0], out[1]};
    if (x->rank == 3) dims[2] = out[1];
    return fresh(room, x->rank, dims, data);
}

/* The place in a channel under an element of a window; -1 where zeros stand. */
static inline long under(const ensue_windows *own, const long *in, long i, long j, long m)
{
    long y = i * own->step[0] + m / own->size[1] * own->gap[0] - own->before[0];
    long x = j * own->step[1] + m % own->size[1] * own->gap[1] - own->before[1];
    return y < 0 || y >= in[0] || x < 0 || x >= in[1] ? -1 : y * in[1] + x;
}

static inline T op_conv(R *room, const T *x, const T *w, const T *b, long groups, ensue_windows own)
{
    float *data;
    long in[2], out[2], filters = w->dims[0], each = w->dims[1];
    outside(x, &own, in, out);
    long reach = own.size[0] * own.size[1], size = in[0] * in[1], made = out[0] * out[1];
    T found = windowed(room, x, filters, out, &data);
    if (room->failed) return found;
    for (long row = 0; row < x->dims[0]; row++)
        for (long f = 0; f < filters; f++)
            for (long n = 0; n < made; n++) {
                float sum = b ? at(b, f) : 0.0f;
                for (long m = 0; m < reach; m++) {
                    long place = under(&own, in, n / out[1], n % out[1], m), first = f / (filters / groups) * each;
                    for (long c = 0; place >= 0 && c < each; c++)
                        sum += at(w, (f * each + c) * reach + m) * at(x, (row * x->dims[1] + first + c) * size + place);
                }
                data[(row * filters + f) * made + n] = sum;
            }
    return found;
}

/* how: '>' the greatest, '/' the mean; whole: zeros outside count for the mean. */
static inline T op_pool(R *room, const T *x, char how, int whole_window, ensue_windows own)
{
    float *data;
    long in[2], out[2];
    outside(x, &own, in, out);
    long reach = own.size[0] * own.size[1], size = in[0] * in[1], made = out[0] * out[1];
    T found = windowed(room, x, x->dims[1], out, &data);
    if (room->failed) return found;
    for (long plane = 0; plane < x->dims[0] * x->dims[1]; plane++)
        for (long n = 0; n < made; n++) {
            float best = how == '>' ? -INFINITY : 0.0f;
            long count = 0;
            for (long m = 0; m < reach; m++) {
                long place = under(&own, in, n / out[1], n % out[1], m);
                if (place < 0) continue;
                float v = at(x, plane * size + place);
                if (how == '/') best += v;
                else if (v > best || v != v) best = v;
                count++;
            }
            data[plane * made + n] = how == '/' ? best / (float)(whole_window ? reach : count) : best;
        }
    return found;
}

/* (x - mean) / sqrt(variance + epsilon) * scale + bias, by channel */
static inline T op_batch_normalise(R *room, const T *x, const T *scale, const T *bias, const T *mean, const T *variance, float epsilon)
{
    float *data;
    T found = fresh(room, x->rank, x->dims, &data);
    if (room->failed) return found;
    long inner = volume(x->rank - 2, x->dims + 2), total = count(x);
    for (long n = 0; n < total; n++) {
        long c = n / inner % x->dims[1];
        data[n] = (at(x, n) - at(mean, c)) / sqrtf(at(variance, c) + epsilon) * at(scale, c) + at(bias, c);
    }
    return found;
}

#endif
