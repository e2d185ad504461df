"""The most that a file may ask for: each limit is checked before the work begins."""

from __future__ import annotations

RUN_FILE = 64 << 20  # bytes of a configuration, a manifest, a list: what Ensue reads whole
HISTORY_FILE = 4 << 30  # bytes of the rows of a training
PICTURE_FILE = 1 << 30  # bytes
PICTURE_PIXELS = 1 << 26
PICTURE_SIDE = 1 << 15  # pixels
PICTURE_HEADER = 4096  # bytes of a PGM or PPM header, comments included
IDX_FILE = 1 << 30  # bytes, unpacked
VECTOR_LINE = 1 << 20  # bytes of a line of word vectors
VECTOR_WIDTH = 1 << 16  # numbers of a word vector
COLUMNS = 100_000  # of a table, and keys of a JSON object
TREE_LENGTH = 1 << 20  # characters of a tree in brackets
TREE_DEPTH = 500  # brackets inside of each other: a network takes a step for each
TYPED_LINE = 1 << 24  # bytes of a line of the standard input
VECTOR_NUMBER = 1e15  # of a word vector: its square, and sums of squares, are finite in float32
COMPILER_SECONDS = 300.0
LAYER_WIDTH, LAYERS = 1 << 15, 1000  # of a network: no machine has room for more
DRAWS = 1 << 20  # futures of a forecast that are sampled at once
SEASON = 1 << 20  # steps: a year of minutes is half as long
NUMBERS = 1 << 28  # in memory at once, for what is forecast
LARGEST_NUMBER = 1e30  # of a data file: its square, and sums of squares, are finite
