// Products of a block of rows with packed panels: what every kernel calls, compiled once.
#pragma once
#include "vector.hpp"

// The operands of a product, end to end: `rows` of K numbers each, a row every `stride`.
struct Segment {
  const real* a;
  long stride, K;
};

#if defined(__AVX512F__)
constexpr int WIDE = 4, TALL = 24;  // vectors side by side; accumulators (of 32 registers)
#else
constexpr int WIDE = 2, TALL = 12;  // (of 16 registers)
#endif
// units side by side, so that the vectors of all gates fill whole products
constexpr long blocks_for(int gates) {
  return gates >= WIDE ? (gates % WIDE && WIDE == 2 ? 2 : 1) : WIDE / gates;
}

typedef void (*Products)(long rows, const Segment* operands, int count, long vectors, const real* panel, long K,
                         real* tile, long tile_stride);
typedef void (*Pack)(real* panels, const real* matrix, long unit_step, long k_step, long units, long columns,
                     long at, long K, int gate, int gates, long J, long part, long parts);
