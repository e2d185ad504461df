/* Tensors made, moved and read: the operators that do not sum. */
#ifndef ENSUE_SHAPES
#define ENSUE_SHAPES

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

#define ENSUE_MOST 1073741824.0f /* of a whole number; slices to the end have it */

/* What fails first is kept. */
static inline void refuse(R *room, int why) { if (!room->failed) room->failed = why; }

/* A place or a size; 0 where it is no whole number, which the conversion alone would not tell. */
static inline long whole(R *room, const T *a, long k)
{
    float v = at(a, k);
    if (v >= -ENSUE_MOST && v <= ENSUE_MOST && v == truncf(v)) return (long)v;
    refuse(room, ENSUE_NO_INDEX);
    return 0;
}

/* One of so many elements, -many ... many - 1; 0 where it is beyond them. */
static inline long within(R *room, long number, long many)
{
    if (number >= -many && number < many) return number < 0 ? number + many : number;
    refuse(room, ENSUE_NO_INDEX);
    return 0;
}

/* A fresh tensor; of no size where the memory is too small, or something failed before. */
static inline T fresh(R *room, int rank, const long *dims, float **data)
{
    T found = {rank, {0}, NULL, NULL, 'f'};
    long size = 1, left = room->size - room->used;
    for (int k = 0; k < rank; k++) {
        if (dims[k] < 0) refuse(room, ENSUE_NO_INDEX);
        else if (dims[k] && size > left / dims[k]) refuse(room, ENSUE_NO_ROOM);
        if (room->failed) break;
        size *= dims[k];
    }
    if (rank > ENSUE_RANK || size > left) refuse(room, ENSUE_NO_ROOM);
    if (room->failed) {
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

/* ---------------------------------------------------------------- shapes */

static inline T op_shape(R *room, const T *a, int first, int last)
{
    float *data;
    long dims[1] = {last > a->rank ? a->rank - first : last - first};
    T found = fresh(room, 1, dims, &data);
    for (long k = 0; k < found.dims[0]; k++) data[k] = (float)a->dims[first + k];
    return found;
}

/* The numbers of a tensor as sizes of axes; how many there are. */
static inline int sizes_of(R *room, const T *shape, long *dims)
{
    long rank = count(shape);
    if (rank > ENSUE_RANK) refuse(room, ENSUE_NO_INDEX);
    for (long k = 0; k < rank && !room->failed; k++) dims[k] = whole(room, shape, k);
    return room->failed ? 0 : (int)rank;
}

static inline T op_reshape(R *room, const T *a, const T *shape, int keep_zero)
{
    long dims[ENSUE_RANK] = {0}, all = count(a), known = 1;
    int rank = sizes_of(room, shape, dims), open = -1;
    for (int k = 0; k < rank; k++) {
        if (dims[k] == 0 && !keep_zero) dims[k] = k < a->rank ? a->dims[k] : 0;
        if (dims[k] < 0) open = k;
        else if (dims[k] && known > all / dims[k]) refuse(room, ENSUE_NO_INDEX);
        else known *= dims[k];
    }
    if (open >= 0) known *= dims[open] = known ? all / known : 0;
    if (known != all) refuse(room, ENSUE_NO_INDEX);
    return viewed(a, rank, dims);
}

static inline T op_squeeze(R *room, const T *a, const T *axes)
{
    long dims[ENSUE_RANK] = {0};
    int rank = 0;
    for (int k = 0; k < a->rank; k++) {
        int gone = !axes && a->dims[k] == 1;
        for (long j = 0; axes && j < count(axes); j++) {
            gone |= within(room, whole(room, axes, j), a->rank) == k;
        }
        if (!gone) dims[rank++] = a->dims[k];
    }
    return viewed(a, rank, dims);
}

static inline T op_unsqueeze(R *room, const T *a, const T *axes)
{
    long dims[ENSUE_RANK] = {0};
    int rank = a->rank + (int)count(axes), left = 0;
    if (rank > ENSUE_RANK) refuse(room, ENSUE_NO_INDEX);
    for (int k = 0; k < rank && !room->failed; k++) {
        int fresh_axis = 0;
        for (long j = 0; j < count(axes); j++) {
            fresh_axis |= within(room, whole(room, axes, j), rank) == k;
        }
        dims[k] = fresh_axis ? 1 : a->dims[left++];
    }
    return viewed(a, room->failed ? 0 : rank, dims);
}

static inline T op_expand(R *room, const T *a, const T *shape)
{
    long dims[ENSUE_RANK] = {0}, steps[ENSUE_RANK] = {0};
    T wanted = {0, {0}, NULL, NULL, 'f'};
    wanted.rank = sizes_of(room, shape, wanted.dims);
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
        long d = within(room, axes ? whole(room, axes, j) : j, a->rank), step = by ? whole(room, by, j) : 1;
        long size = a->dims[d], first = whole(room, starts, j), last = whole(room, ends, j);
        if (!step) refuse(room, ENSUE_NO_INDEX);
        if (room->failed) break;
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
    long d = axis < 0 ? axis + a->rank : axis, size = whole(room, sizes, 0);
    long many = size > 0 ? (a->dims[d] + size - 1) / size : 0, first = within(room, whole(room, number, 0), many) * size;
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

static inline T op_range(R *room, const T *first, const T *end, const T *step)
{
    float *data, from = at(first, 0), by = at(step, 0), many = ceilf((at(end, 0) - from) / by);
    T counted = {0, {0}, &many, NULL, 'f'};
    long dims[1] = {whole(room, &counted, 0)};
    if (dims[0] < 0) dims[0] = 0;
    T found = fresh(room, 1, dims, &data);
    for (long k = 0; k < found.dims[0]; k++) data[k] = from + (float)k * by;
    return found;
}

static inline T op_filled(R *room, const T *shape, float value)
{
    long dims[ENSUE_RANK] = {0};
    float *data;
    int rank = sizes_of(room, shape, dims);
    T found = fresh(room, rank, dims, &data);
    long total = count(&found);
    for (long n = 0; n < total; n++) data[n] = value;
    return found;
}

/* The k-th of so many equal parts of an axis; the last one may be smaller. */
static inline T op_equal_part(R *room, const T *a, int axis, long many, long k)
{
    long all = a->dims[axis < 0 ? axis + a->rank : axis], size = (all + many - 1) / many;
    return op_part(room, a, axis, k * size, k + 1 < many ? size : all - k * size);
}

#endif
