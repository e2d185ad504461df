/* The operators that exported networks are made of. */
#ifndef ENSUE_OPERATORS
#define ENSUE_OPERATORS

#include <math.h>
#include <stddef.h>

#include "tensors.h"

typedef ensue_tensor T;
typedef ensue_room R;

static inline long volume(int rank, const long *dims)
{
    long found = 1;
    for (int k = 0; k < rank; k++) found *= dims[k];
    return found;
}

static inline long count(const T *a) { return volume(a->rank, a->dims); }

static inline float at(const T *a, long k)
{
    if (a->kind == 'f') return ((const float *)a->data)[k];
    if (a->kind == 'h') {
        union { unsigned int bits; float value; } own;
        own.bits = (unsigned int)((const unsigned short *)a->data)[k] << 16;
        return own.value;
    }
    return (float)((const signed char *)a->data)[k] * a->scale[k / (count(a) / a->dims[0])];
}

static inline long whole(const T *a, long k) { return (long)at(a, k); }

/* A fresh tensor; of no size where the memory is too small. */
static inline T fresh(R *room, int rank, const long *dims, float **data)
{
    T found = {rank, {0}, NULL, NULL, 'f'};
    long size = volume(rank, dims);
    if (rank > ENSUE_RANK || size > room->size - room->used) {
        room->failed = 1;
        *data = room->memory;
        found.rank = 1;
        found.data = room->memory;
        return found;
    }
    for (int k = 0; k < rank; k++) found.dims[k] = dims[k];
    *data = room->memory + room->used;
    found.data = *data;
    room->used += size;
    return found;
}

static inline T viewed(const T *a, int rank, const long *dims)
{
    T found = *a;
    found.rank = rank;
    for (int k = 0; k < rank; k++) found.dims[k] = dims[k];
    return found;
}

static inline void strides(int rank, const long *dims, long *found)
{
    long size = 1;
    for (int k = rank - 1; k >= 0; k--) { found[k] = size; size *= dims[k]; }
}

/* The steps of each axis of `dims` through a tensor that is spread over them. */
static inline void spread(const T *a, int rank, const long *dims, long *found)
{
    long own[ENSUE_RANK] = {0};
    (void)dims;
    strides(a->rank, a->dims, own);
    for (int k = 0; k < rank; k++) {
        int j = k - (rank - a->rank);
        found[k] = j < 0 || a->dims[j] == 1 ? 0 : own[j];
    }
}

static inline int broadcast(const T *a, const T *b, long *dims)
{
    int rank = a->rank > b->rank ? a->rank : b->rank;
    for (int k = 0; k < rank; k++) {
        int i = k - (rank - a->rank), j = k - (rank - b->rank);
        long p = i < 0 ? 1 : a->dims[i], q = j < 0 ? 1 : b->dims[j];
        dims[k] = p == 1 ? q : p;
    }
    return rank;
}

/* Where the n-th element of `dims` lies for these steps. */
static inline long place(long n, int rank, const long *dims, const long *steps)
{
    long found = 0;
    for (int k = rank - 1; k >= 0; k--) { found += n % dims[k] * steps[k]; n /= dims[k]; }
    return found;
}

static inline T moved(R *room, const T *a, int rank, const long *dims, const long *steps, long base)
{
    float *data;
    T found = fresh(room, rank, dims, &data);
    long total = count(&found);
    for (long n = 0; n < total; n++) data[n] = at(a, base + place(n, rank, dims, steps));
    return found;
}

/* ---------------------------------------------------------------- one element after another */

typedef float Unary(float);
typedef float Binary(float, float);

static inline T op_each(R *room, const T *a, Unary *f)
{
    float *data;
    T found = fresh(room, a->rank, a->dims, &data);
    long total = count(&found);
    for (long n = 0; n < total; n++) data[n] = f(at(a, n));
    return found;
}

static inline T op_pair(R *room, const T *a, const T *b, Binary *f)
{
    long dims[ENSUE_RANK] = {0}, p[ENSUE_RANK] = {0}, q[ENSUE_RANK] = {0};
    float *data;
    int rank = broadcast(a, b, dims);
    T found = fresh(room, rank, dims, &data);
    spread(a, rank, dims, p);
    spread(b, rank, dims, q);
    long total = count(&found);
    for (long n = 0; n < total; n++)
        data[n] = f(at(a, place(n, rank, dims, p)), at(b, place(n, rank, dims, q)));
    return found;
}

static inline T op_where(R *room, const T *test, const T *a, const T *b)
{
    long dims[ENSUE_RANK] = {0}, inner[ENSUE_RANK] = {0}, s[3][ENSUE_RANK];
    float *data;
    T both = {broadcast(a, b, inner), {0}, NULL, NULL, 'f'};
    for (int k = 0; k < both.rank; k++) both.dims[k] = inner[k];
    int rank = broadcast(test, &both, dims);
    T found = fresh(room, rank, dims, &data);
    spread(test, rank, dims, s[0]);
    spread(a, rank, dims, s[1]);
    spread(b, rank, dims, s[2]);
    long total = count(&found);
    for (long n = 0; n < total; n++)
        data[n] = at(test, place(n, rank, dims, s[0])) != 0.0f ? at(a, place(n, rank, dims, s[1]))
                                                               : at(b, place(n, rank, dims, s[2]));
    return found;
}

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

/* ---------------------------------------------------------------- shapes */

static inline T op_shape(R *room, const T *a, int first, int last)
{
    float *data;
    long dims[1] = {last > a->rank ? a->rank - first : last - first};
    T found = fresh(room, 1, dims, &data);
    for (long k = 0; k < found.dims[0]; k++) data[k] = (float)a->dims[first + k];
    return found;
}

static inline T op_reshape(const T *a, const T *shape, int keep_zero)
{
    long dims[ENSUE_RANK] = {0}, known = 1;
    int rank = (int)count(shape), open = -1;
    for (int k = 0; k < rank; k++) {
        dims[k] = whole(shape, k);
        if (dims[k] == 0 && !keep_zero) dims[k] = a->dims[k];
        if (dims[k] < 0) open = k;
        else known *= dims[k];
    }
    if (open >= 0) dims[open] = known ? count(a) / known : 0;
    return viewed(a, rank, dims);
}

static inline T op_squeeze(const T *a, const T *axes)
{
    long dims[ENSUE_RANK] = {0};
    int rank = 0;
    for (int k = 0; k < a->rank; k++) {
        int gone = !axes && a->dims[k] == 1;
        for (long j = 0; axes && j < count(axes); j++) {
            long axis = whole(axes, j);
            gone |= (axis < 0 ? axis + a->rank : axis) == k;
        }
        if (!gone) dims[rank++] = a->dims[k];
    }
    return viewed(a, rank, dims);
}

static inline T op_unsqueeze(const T *a, const T *axes)
{
    long dims[ENSUE_RANK] = {0};
    int rank = a->rank + (int)count(axes), left = 0;
    for (int k = 0; k < rank; k++) {
        int fresh_axis = 0;
        for (long j = 0; j < count(axes); j++) {
            long axis = whole(axes, j);
            fresh_axis |= (axis < 0 ? axis + rank : axis) == k;
        }
        dims[k] = fresh_axis ? 1 : a->dims[left++];
    }
    return viewed(a, rank, dims);
}

static inline T op_expand(R *room, const T *a, const T *shape)
{
    long dims[ENSUE_RANK] = {0}, steps[ENSUE_RANK] = {0};
    T wanted = {(int)count(shape), {0}, NULL, NULL, 'f'};
    for (int k = 0; k < wanted.rank; k++) wanted.dims[k] = whole(shape, k);
    int rank = broadcast(a, &wanted, dims);
    spread(a, rank, dims, steps);
    return moved(room, a, rank, dims, steps, 0);
}

static inline T op_transpose(R *room, const T *a, const long *order)
{
    long own[ENSUE_RANK] = {0}, dims[ENSUE_RANK] = {0}, steps[ENSUE_RANK] = {0};
    strides(a->rank, a->dims, own);
    for (int k = 0; k < a->rank; k++) { dims[k] = a->dims[order[k]]; steps[k] = own[order[k]]; }
    return moved(room, a, a->rank, dims, steps, 0);
}

static inline T op_slice(R *room, const T *a, const T *starts, const T *ends, const T *axes, const T *by)
{
    long dims[ENSUE_RANK] = {0}, steps[ENSUE_RANK] = {0}, base = 0;
    strides(a->rank, a->dims, steps);
    for (int k = 0; k < a->rank; k++) dims[k] = a->dims[k];
    for (long j = 0; j < count(starts); j++) {
        long d = axes ? whole(axes, j) : j, step = by ? whole(by, j) : 1;
        if (d < 0) d += a->rank;
        long size = a->dims[d], first = whole(starts, j), last = whole(ends, j);
        long top = step > 0 ? size : size - 1, least = step > 0 ? 0 : -1;
        if (first < 0) first += size;
        if (last < 0) last = step < 0 && last < -size ? -1 : last + size;
        first = first < 0 ? 0 : first > top ? top : first;
        last = last < least ? least : last > top ? top : last;
        dims[d] = step > 0 ? (last - first + step - 1) / step : (first - last - step - 1) / -step;
        if (dims[d] < 0) dims[d] = 0;
        base += first * steps[d];
        steps[d] *= step;
    }
    return moved(room, a, a->rank, dims, steps, base);
}

/* `size` places of an axis, from `first` on. */
static inline T op_part(R *room, const T *a, int axis, long first, long size)
{
    long dims[ENSUE_RANK] = {0}, steps[ENSUE_RANK] = {0};
    int d = axis < 0 ? axis + a->rank : axis;
    strides(a->rank, a->dims, steps);
    for (int k = 0; k < a->rank; k++) dims[k] = k == d ? size : a->dims[k];
    return moved(room, a, a->rank, dims, steps, first * steps[d]);
}

/* The part of this number, of parts of `sizes` places each. */
static inline T op_chunk(R *room, const T *a, int axis, const T *sizes, const T *number)
{
    long d = axis < 0 ? axis + a->rank : axis, size = whole(sizes, 0), first = whole(number, 0) * size;
    long left = a->dims[d] - first;
    return op_part(room, a, (int)d, first, left < size ? left : size);
}

static inline T op_concat(R *room, const T *const *all, int many, int axis)
{
    long dims[ENSUE_RANK] = {0}, begin = 0, outer = 1, inner = 1;
    float *data;
    int d = axis < 0 ? axis + all[0]->rank : axis;
    for (int k = 0; k < all[0]->rank; k++) dims[k] = all[0]->dims[k];
    for (int j = 1; j < many; j++) dims[d] += all[j]->dims[d];
    for (int k = 0; k < d; k++) outer *= dims[k];
    for (int k = d + 1; k < all[0]->rank; k++) inner *= dims[k];
    T found = fresh(room, all[0]->rank, dims, &data);
    if (room->failed) return found;
    for (int j = 0; j < many; j++) {
        long size = all[j]->dims[d] * inner;
        for (long n = 0; n < outer; n++)
            for (long k = 0; k < size; k++) data[n * dims[d] * inner + begin + k] = at(all[j], n * size + k);
        begin += size;
    }
    return found;
}

static inline T op_gather(R *room, const T *a, const T *index, int axis)
{
    long dims[2 * ENSUE_RANK] = {0}, outer = 1, inner = 1;
    float *data;
    int d = axis < 0 ? axis + a->rank : axis, rank = 0;
    for (int k = 0; k < d; k++) { outer *= a->dims[k]; dims[rank++] = a->dims[k]; }
    for (int k = 0; k < index->rank; k++) dims[rank++] = index->dims[k];
    for (int k = d + 1; k < a->rank; k++) { inner *= a->dims[k]; dims[rank++] = a->dims[k]; }
    T found = fresh(room, rank, dims, &data);
    long many = count(index);
    if (room->failed) return found;
    for (long n = 0; n < outer; n++)
        for (long k = 0; k < many; k++) {
            long own = whole(index, k);
            if (own < 0) own += a->dims[d];
            for (long j = 0; j < inner; j++)
                data[(n * many + k) * inner + j] = at(a, (n * a->dims[d] + own) * inner + j);
        }
    return found;
}

static inline T op_gather_elements(R *room, const T *a, const T *index, int axis)
{
    long own[ENSUE_RANK] = {0}, steps[ENSUE_RANK] = {0};
    float *data;
    int d = axis < 0 ? axis + a->rank : axis;
    strides(a->rank, a->dims, own);
    for (int k = 0; k < a->rank; k++) steps[k] = k == d ? 0 : own[k];
    T found = fresh(room, index->rank, index->dims, &data);
    long total = count(&found);
    for (long n = 0; n < total; n++) {
        long j = whole(index, n);
        data[n] = at(a, place(n, index->rank, index->dims, steps) + (j < 0 ? j + a->dims[d] : j) * own[d]);
    }
    return found;
}

static inline T op_gather_nd(R *room, const T *a, const T *index, int batch)
{
    long own[ENSUE_RANK] = {0}, dims[2 * ENSUE_RANK] = {0}, inner = 1, rows = 1, each = 1;
    float *data;
    int last = (int)index->dims[index->rank - 1], rank = 0;
    strides(a->rank, a->dims, own);
    for (int k = 0; k + 1 < index->rank; k++) { rows *= index->dims[k]; dims[rank++] = index->dims[k]; }
    for (int k = batch + last; k < a->rank; k++) { inner *= a->dims[k]; dims[rank++] = a->dims[k]; }
    for (int k = batch; k + 1 < index->rank; k++) each *= index->dims[k];
    T found = fresh(room, rank, dims, &data);
    if (room->failed) return found;
    for (long n = 0; n < rows; n++) {
        long from = batch ? n / each * own[batch - 1] : 0;
        for (int k = 0; k < last; k++) {
            long j = whole(index, n * last + k);
            from += (j < 0 ? j + a->dims[batch + k] : j) * own[batch + k];
        }
        for (long k = 0; k < inner; k++) data[n * inner + k] = at(a, from + k);
    }
    return found;
}

static inline T op_scatter_nd(R *room, const T *a, const T *index, const T *updates)
{
    long own[ENSUE_RANK] = {0}, inner = 1, rows = 1;
    float *data;
    int last = (int)index->dims[index->rank - 1];
    strides(a->rank, a->dims, own);
    for (int k = 0; k + 1 < index->rank; k++) rows *= index->dims[k];
    for (int k = last; k < a->rank; k++) inner *= a->dims[k];
    T found = fresh(room, a->rank, a->dims, &data);
    if (room->failed) return found;
    for (long n = 0; n < count(a); n++) data[n] = at(a, n);
    for (long n = 0; n < rows; n++) {
        long to = 0;
        for (int k = 0; k < last; k++) {
            long j = whole(index, n * last + k);
            to += (j < 0 ? j + a->dims[k] : j) * own[k];
        }
        for (long k = 0; k < inner; k++) data[to + k] = at(updates, n * inner + k);
    }
    return found;
}

static inline T op_range(R *room, const T *first, const T *end, const T *step)
{
    float *data, from = at(first, 0), by = at(step, 0);
    long dims[1] = {(long)ceilf((at(end, 0) - from) / by)};
    if (dims[0] < 0) dims[0] = 0;
    T found = fresh(room, 1, dims, &data);
    for (long k = 0; k < found.dims[0]; k++) data[k] = from + (float)k * by;
    return found;
}

static inline T op_filled(R *room, const T *shape, float value)
{
    long dims[ENSUE_RANK] = {0};
    float *data;
    int rank = (int)count(shape);
    for (int k = 0; k < rank; k++) dims[k] = whole(shape, k);
    T found = fresh(room, rank, dims, &data);
    long total = count(&found);
    for (long n = 0; n < total; n++) data[n] = value;
    return found;
}

/* ---------------------------------------------------------------- sums */

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

static inline T op_gemm(R *room, const T *a, const T *b, const T *c, float alpha, float beta, int turn_b)
{
    float *data;
    long m = a->dims[0], inner = a->dims[1], n = turn_b ? b->dims[0] : b->dims[1], dims[2] = {m, n}, steps[2];
    T found = fresh(room, 2, dims, &data);
    if (room->failed) return found;
    if (c) spread(c, 2, dims, steps);
    for (long i = 0; i < m; i++)
        for (long j = 0; j < n; j++) {
            float sum = 0.0f;
            for (long k = 0; k < inner; k++) sum += at(a, i * inner + k) * at(b, turn_b ? j * inner + k : k * n + j);
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
            long axis = whole(axes, j);
            gone |= (axis < 0 ? axis + a->rank : axis) == k;
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
        long steps = lengths && whole(lengths, b) < time ? whole(lengths, b) : time, from = 0;
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

#endif
