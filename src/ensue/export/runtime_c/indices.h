/* Elements chosen by their numbers: an axis of n elements has -n ... n - 1, a negative one counts from the end. */
#ifndef ENSUE_INDICES
#define ENSUE_INDICES

#include "shapes.h"

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
            long own = within(room, whole(room, index, k), a->dims[d]);
            if (room->failed) return found;
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
        long j = within(room, whole(room, index, n), a->dims[d]);
        if (room->failed) return found;
        data[n] = at(a, place(n, index->rank, index->dims, steps) + j * own[d]);
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
        for (int k = 0; k < last; k++)
            from += within(room, whole(room, index, n * last + k), a->dims[batch + k]) * own[batch + k];
        if (room->failed) return found;
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
        for (int k = 0; k < last; k++) to += within(room, whole(room, index, n * last + k), a->dims[k]) * own[k];
        if (room->failed) return found;
        for (long k = 0; k < inner; k++) data[to + k] = at(updates, n * inner + k);
    }
    return found;
}

#endif
