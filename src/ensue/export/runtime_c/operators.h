/* The operators that exported networks are made of. */
#ifndef ENSUE_OPERATORS
#define ENSUE_OPERATORS

#include "indices.h"
#include "windows.h"

/* ---------------------------------------------------------------- sums */

static inline T op_clip(R *room, const T *a, const T *low, const T *high)
{
    float *data;
    T found = fresh(room, a->rank, a->dims, &data);
    long total = count(&found);
    for (long n = 0; n < total; n++) {
        float v = at(a, n);
        if (low && v < at(low, 0)) v = at(low, 0);
        if (high && v > at(high, 0)) v = at(high, 0);
        data[n] = v;
    }
    return found;
}

static inline T op_matmul(R *room, const T *a, const T *b)
{
    long dims[ENSUE_RANK] = {0}, p[ENSUE_RANK] = {0}, q[ENSUE_RANK] = {0};
    float *data;
    long m = a->rank == 1 ? 1 : a->dims[a->rank - 2], inner = a->dims[a->rank - 1];
    long n = b->rank == 1 ? 1 : b->dims[b->rank - 1];
    T one = viewed(a, a->rank > 2 ? a->rank - 2 : 0, a->dims), other = viewed(b, b->rank > 2 ? b->rank - 2 : 0, b->dims);
    int front = broadcast(&one, &other, dims), rank = front;
    long outer = volume(front, dims);
    spread(&one, front, dims, p);
    spread(&other, front, dims, q);
    long shape[ENSUE_RANK] = {0};
    for (int k = 0; k < front; k++) shape[k] = dims[k];
    if (a->rank > 1) shape[rank++] = m;
    if (b->rank > 1) shape[rank++] = n;
    T found = fresh(room, rank, shape, &data);
    if (room->failed) return found;
    for (long o = 0; o < outer; o++) {
        long left = place(o, front, dims, p) * m * inner, right = place(o, front, dims, q) * inner * n;
        for (long i = 0; i < m; i++)
            for (long j = 0; j < n; j++) {
                float sum = 0.0f;
                for (long k = 0; k < inner; k++) sum += at(a, left + i * inner + k) * at(b, right + k * n + j);
                data[(o * m + i) * n + j] = sum;
            }
    }
    return found;
}

static inline T op_gemm(R *room, const T *a, const T *b, const T *c, float alpha, float beta, int turn_a, int turn_b)
{
    float *data;
    long m = a->dims[turn_a ? 1 : 0], inner = a->dims[turn_a ? 0 : 1], n = turn_b ? b->dims[0] : b->dims[1], dims[2] = {m, n}, steps[2] = {0, 0};
    T found = fresh(room, 2, dims, &data);
    if (room->failed) return found;
    if (c) spread(c, 2, dims, steps);
    for (long i = 0; i < m; i++)
        for (long j = 0; j < n; j++) {
            float sum = 0.0f;
            for (long k = 0; k < inner; k++) sum += at(a, turn_a ? k * m + i : i * inner + k) * at(b, turn_b ? j * inner + k : k * n + j);
            data[i * n + j] = alpha * sum + (c ? beta * at(c, place(i * n + j, 2, dims, steps)) : 0.0f);
        }
    return found;
}

/* how: '+' sum, '/' mean, '>' greatest, '<' least */
static inline T op_reduce(R *room, const T *a, const T *axes, int keep, char how)
{
    long own[ENSUE_RANK] = {0}, dims[ENSUE_RANK] = {0}, steps[ENSUE_RANK] = {0}, inner[ENSUE_RANK] = {0}, inner_steps[ENSUE_RANK] = {0};
    float *data;
    int rank = 0, inside = 0, kept = 0;
    long shape[ENSUE_RANK] = {0};
    strides(a->rank, a->dims, own);
    for (int k = 0; k < a->rank; k++) {
        int gone = !axes;
        for (long j = 0; axes && j < count(axes); j++) {
            gone |= within(room, whole(room, axes, j), a->rank) == k;
        }
        if (gone) { inner[inside] = a->dims[k]; inner_steps[inside++] = own[k]; if (keep) shape[kept++] = 1; }
        else { dims[rank] = a->dims[k]; steps[rank++] = own[k]; shape[kept++] = a->dims[k]; }
    }
    T found = fresh(room, kept, shape, &data);
    long total = count(&found), each = volume(inside, inner);
    for (long n = 0; n < total; n++) {
        long base = place(n, rank, dims, steps);
        float sum = how == '>' ? -INFINITY : how == '<' ? INFINITY : 0.0f;
        for (long k = 0; k < each; k++) {
            float v = at(a, base + place(k, inside, inner, inner_steps));
            if (how == '>') sum = v > sum || v != v ? v : sum;
            else if (how == '<') sum = v < sum || v != v ? v : sum;
            else sum += v;
        }
        data[n] = how == '/' ? sum / (float)each : sum;
    }
    return found;
}

static inline T op_softmax(R *room, const T *a, int axis, int logarithm)
{
    float *data;
    int d = axis < 0 ? axis + a->rank : axis;
    long size = a->dims[d], inner = volume(a->rank - d - 1, a->dims + d + 1), outer = volume(d, a->dims);
    T found = fresh(room, a->rank, a->dims, &data);
    if (room->failed) return found;
    for (long n = 0; n < outer * inner; n++) {
        long base = n / inner * size * inner + n % inner;
        float top = -INFINITY, total = 0.0f;
        for (long k = 0; k < size; k++) top = fmaxf(top, at(a, base + k * inner));
        for (long k = 0; k < size; k++) total += expf(at(a, base + k * inner) - top);
        for (long k = 0; k < size; k++) {
            float v = at(a, base + k * inner) - top;
            data[base + k * inner] = logarithm ? v - logf(total) : expf(v) / total;
        }
    }
    return found;
}

static inline T op_normalise(R *room, const T *a, const T *scale, const T *bias, int axis, float epsilon)
{
    float *data;
    int d = axis < 0 ? axis + a->rank : axis;
    long size = volume(a->rank - d, a->dims + d), outer = volume(d, a->dims);
    T found = fresh(room, a->rank, a->dims, &data);
    if (room->failed) return found;
    for (long n = 0; n < outer; n++) {
        float mean = 0.0f, square = 0.0f;
        for (long k = 0; k < size; k++) mean += at(a, n * size + k) / (float)size;
        for (long k = 0; k < size; k++) square += (at(a, n * size + k) - mean) * (at(a, n * size + k) - mean) / (float)size;
        for (long k = 0; k < size; k++)
            data[n * size + k] = (at(a, n * size + k) - mean) / sqrtf(square + epsilon) * at(scale, k) + (bias ? at(bias, k) : 0.0f);
    }
    return found;
}

/* ---------------------------------------------------------------- functions of one or two numbers */

static inline float f_abs(float v) { return fabsf(v); }
static inline float f_neg(float v) { return -v; }
static inline float f_reciprocal(float v) { return 1.0f / v; }
static inline float f_relu(float v) { return v < 0.0f ? 0.0f : v; }
static inline float f_sigmoid(float v) { return 1.0f / (1.0f + expf(-v)); }
static inline float f_softplus(float v) { return fmaxf(v, 0.0f) + log1pf(expf(-fabsf(v))); }
static inline float f_not(float v) { return v == 0.0f; }
static inline float f_nan(float v) { return v != v; }
static inline float f_infinite(float v) { return v == v && v - v != 0.0f; }
static inline float f_same(float v) { return v; }
static inline float f_truth(float v) { return v != 0.0f; }
static inline float f_add(float a, float b) { return a + b; }
static inline float f_sub(float a, float b) { return a - b; }
static inline float f_mul(float a, float b) { return a * b; }
static inline float f_div(float a, float b) { return a / b; }
static inline float f_div_whole(float a, float b) { return truncf(a / b); }
static inline float f_mod(float a, float b) { return a - b * floorf(a / b); }
static inline float f_min(float a, float b) { return a < b || a != a ? a : b; }
static inline float f_max(float a, float b) { return a > b || a != a ? a : b; }
static inline float f_and(float a, float b) { return a != 0.0f && b != 0.0f; }
static inline float f_or(float a, float b) { return a != 0.0f || b != 0.0f; }
static inline float f_equal(float a, float b) { return a == b; }
static inline float f_less(float a, float b) { return a < b; }
static inline float f_greater(float a, float b) { return a > b; }
static inline float f_at_most(float a, float b) { return a <= b; }
static inline float f_at_least(float a, float b) { return a >= b; }

/* ---------------------------------------------------------------- cells over sequences */

typedef void Run(const float *x, long steps, float *state, float *y);

static inline void recurrence(R *room, const T *x, T *parts, int many, const T *lengths, int reverse, Run *run, long width, T *y)
{
    float *out, *row, *found, *state, *final[ENSUE_RANK];
    long time = x->dims[0], batch = x->dims[1], input = x->dims[2], dims[3] = {time, batch, width}, size = 0;
    long all[1] = {time * input}, said[1] = {time * width}, sizes[1];
    *y = fresh(room, 3, dims, &out);
    for (int k = 0; k < many; k++) {
        T own = fresh(room, parts[k].rank, parts[k].dims, &final[k]);
        if (room->failed) return;
        for (long n = 0; n < count(&own); n++) final[k][n] = at(parts + k, n);
        size += own.dims[1];
        parts[k] = own;
    }
    sizes[0] = size;
    (void)fresh(room, 1, all, &row);
    (void)fresh(room, 1, said, &found);
    (void)fresh(room, 1, sizes, &state);
    if (room->failed) return;
    for (long n = 0; n < time * batch * width; n++) out[n] = 0.0f;
    for (long b = 0; b < batch; b++) {
        long steps = lengths ? whole(room, lengths, b) : time, from = 0;
        if (steps < 0) refuse(room, ENSUE_NO_INDEX);
        if (room->failed) return;
        if (steps > time) steps = time;
        for (long t = 0; t < steps; t++)
            for (long k = 0; k < input; k++)
                row[t * input + k] = at(x, ((reverse ? steps - 1 - t : t) * batch + b) * input + k);
        for (int k = 0; k < many; k++)
            for (long j = 0; j < parts[k].dims[1]; j++) state[from++] = final[k][b * parts[k].dims[1] + j];
        run(row, steps, state, found);
        for (long t = 0; t < steps; t++)
            for (long k = 0; k < width; k++) out[((reverse ? steps - 1 - t : t) * batch + b) * width + k] = found[t * width + k];
        from = 0;
        for (int k = 0; k < many; k++)
            for (long j = 0; j < parts[k].dims[1]; j++) final[k][b * parts[k].dims[1] + j] = state[from++];
    }
}

/* The whole again and again along each axis. */
static inline T op_tile(R *room, const T *a, const T *times)
{
    long dims[ENSUE_RANK] = {0}, steps[ENSUE_RANK] = {0};
    float *data;
    strides(a->rank, a->dims, steps);
    for (int k = 0; k < a->rank; k++) dims[k] = a->dims[k] * whole(room, times, k);
    T found = fresh(room, a->rank, dims, &data);
    long total = count(&found);
    for (long n = 0; n < total; n++) {
        long rest = n, from = 0;
        for (int k = a->rank - 1; k >= 0; k--) {
            from += rest % dims[k] % a->dims[k] * steps[k];
            rest /= dims[k];
        }
        data[n] = at(a, from);
    }
    return found;
}

#endif
