/* Tensors of an exported network. Whole numbers and truths are kept as floats. */
#ifndef ENSUE_TENSORS
#define ENSUE_TENSORS

#define ENSUE_RANK 6

typedef struct {
    int rank;
    long dims[ENSUE_RANK];
    const void *data; /* float; or weights as they are stored */
    const float *scale; /* of int8, one for each row */
    char kind; /* 'f' float, 'h' bfloat16, 'q' int8 */
} ensue_tensor;

/* Memory that a run takes its results from: nothing is allocated. */
typedef struct {
    float *memory;
    long size, used;
    int failed; /* 0, or which of the two below */
} ensue_room;

#define ENSUE_NO_ROOM 1 /* the memory was too small */
#define ENSUE_NO_INDEX 2 /* a number that stands for a place or a size is none, or beyond the end */

#endif
