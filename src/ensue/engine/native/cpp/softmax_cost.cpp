// What a softmax over many classes costs, and its gradient, without the matrix of all scores:
//
//   z = W·h + b,   cost = log sum of e^z - (1 - s) z[target] - s mean z,   for each row h
//
// Rows are taken a piece at a time, and classes in blocks that stay in the second cache. Scores
// stand the other way round, classes by rows, `WIDTH` rows side by side in a panel: so the three
// products z = W·h, dW = dz·h and dh = dz·W need no other order of the large matrices.
//
//   first   each block: its scores, their largest one `top` of each row, e^(z - top) in place of z
//   second  each block: dz = e^(z - top) e^(top - most) / sum - (1 - s)[k = target] - s/K, dW, dh
//
// `most` is a row's largest score of all, and `sum` that of e^(z - most): they are kept apart, since
// their log sum, beside scores far from 0, would have few digits left for the differences.
//
// Threads share the classes. Each has sums of its own, which are added in a fixed order.
#include "tiles.hpp"

constexpr long BLOCK = 20 * MOST;  // classes of a block

struct SoftmaxCost {
  const real *h, *weight, *bias;  // (rows, width), (classes, width), (classes) or none
  const long* targets;
  long rows, width, classes, piece;  // piece: of rows
  double smoothing;
  real* costs;                     // (rows)
  real *d_h, *d_weight, *d_bias;   // none where nobody asks
  real* room;
};

// ---------------------------------------------------------------- the room
constexpr long some_size() { return upwards(BLOCK * (MOST + L) + L, 16); }

// Where everything stands for a piece of rows. Shared, then each thread's own.
struct Room {
  real *across, *along;           // h by panels of rows [width][WIDTH], and of width [rows][WIDTH]
  real *z, *tops;                 // [block][panel][BLOCK][WIDTH]; [block][rows]
  real* wanted;                   // [rows]
  real *most, *sum, *total;       // [thread][rows]: of the scores that a thread has seen
  real* d_h;                      // [thread][panel][width][WIDTH]
  real* some;                     // [thread][some_size()]: of biases [BLOCK][L], of weights [BLOCK][MOST]
  long panels, rows, blocks, own;  // own: numbers of a thread's d_h

  Room(const SoftmaxCost& c, long threads) {
    rows = upwards(least(c.piece, c.rows), WIDTH);
    panels = rows / WIDTH, blocks = (c.classes + BLOCK - 1) / BLOCK;
    own = upwards(rows * c.width, 16);
    real* at = c.room;
    const auto take = [&at](long n) { return (at += upwards(n, 16)) - upwards(n, 16); };
    across = take(rows * c.width), along = take(rows * upwards(c.width, WIDTH));
    z = take((c.d_h || c.d_weight || c.d_bias ? blocks : threads) * rows * BLOCK), tops = take(blocks * rows);
    wanted = take(rows);
    most = take(threads * rows), sum = take(threads * rows), total = take(threads * rows);
    d_h = take(threads * own), some = take(threads * some_size());
    end = at;
  }
  real* end;
};

struct Piece {
  const SoftmaxCost& cost;
  const Room& room;
  const Threads& threads;
  long first, rows, count;  // count: of threads
  void (*work)(const Piece&, long);

  long block(long who) const { return room.blocks * who / count; }
  long classes(long b) const { return least(BLOCK, cost.classes - b * BLOCK); }
  bool derive() const { return cost.d_h || cost.d_weight || cost.d_bias; }
  real* scores(long b, long who) const { return room.z + (derive() ? b : who) * room.rows * BLOCK; }
};

// ---------------------------------------------------------------- first: scores
static void pack_rows(const Piece& p, long who) {
  const SoftmaxCost& c = p.cost;
  for (long panel = who; panel < p.room.panels; panel += p.count)
    for (long l = 0; l < WIDTH; l++) {
      const long row = panel * WIDTH + l;
      real* across = p.room.across + panel * WIDTH * c.width + l;
      const real* h = c.h + (p.first + row) * c.width;
      for (long k = 0; k < c.width; k++) across[k * WIDTH] = row < p.rows ? h[k] : 0;
      if (!c.d_weight) continue;
      for (long k = 0; k < c.width; k += WIDTH) {
        const long wide = c.width - k > L ? WIDTH : L;
        real* along = p.room.along + k * p.room.rows + row * wide;
        for (long w = 0; w < wide; w++) along[w] = row < p.rows && k + w < c.width ? h[k + w] : 0;
      }
    }
}

// Where all scores so far are -infinity, they are compared with 0: -infinity - -infinity is no number.
INLINE vec finite(vec top) { return choose(top == all(-__builtin_inf()), vec{}, top); }

// The scores of a panel become e^(z - top); sums are those of all blocks of this thread so far.
static void exponentials(const Piece& p, long b, long panel, long who) {
  const SoftmaxCost& c = p.cost;
  const long n = p.classes(b), first = panel * WIDTH;
  real* z = p.scores(b, who) + panel * BLOCK * WIDTH;
  for (long w = 0; w < WIDTH; w += L) {
    vec top = all(-__builtin_inf()), total = {};
    for (long k = 0; k < n; k++) {
      const vec v = *(vec*)(z + k * WIDTH + w) + (c.bias ? c.bias[b * BLOCK + k] : 0);
      *(vec*)(z + k * WIDTH + w) = v;
      top = larger(top, v);
      total += v;
    }
    for (long l = 0; l < L && first + w + l < p.rows; l++) {
      const long target = c.targets[p.first + first + w + l] - b * BLOCK;
      if (target >= 0 && target < n) p.room.wanted[first + w + l] = z[target * WIDTH + w + l];
    }
    const vec zero = finite(top);
    vec sum = {};
    for (long k = 0; k < n; k++) {
      const vec e = exponential(*(vec*)(z + k * WIDTH + w) - zero);
      *(vec*)(z + k * WIDTH + w) = e;
      sum += e;
    }
    const long at = who * p.room.rows + first + w;
    vec &most = *(vec*)(p.room.most + at), &sums = *(vec*)(p.room.sum + at);
    const vec now = larger(most, top), from = finite(now);
    sums = sums * exponential(most - from) + sum * exponential(top - from);
    most = now;
    *(vec*)(p.room.total + at) += total;
    *(vec*)(p.room.tops + b * p.room.rows + first + w) = top;
  }
}

static void first_pass(const Piece& p, long who) {
  const SoftmaxCost& c = p.cost;
  for (long row = who * p.room.rows; row < (who + 1) * p.room.rows; row++)
    p.room.most[row] = -__builtin_inf(), p.room.sum[row] = p.room.total[row] = 0;
  for (long b = p.block(who); b < p.block(who + 1); b++)
    for (long panel = 0; panel < p.room.panels; panel++) {
      const real* h = p.room.across + panel * WIDTH * c.width;
      real* z = p.scores(b, who) + panel * BLOCK * WIDTH;
      const long n = p.classes(b);
      for (long k = 0; k < n; k += MOST)
        multiply_rows<2, false, false>(least(MOST, n - k), c.weight + (b * BLOCK + k) * c.width, c.width, c.width, 1,
                                       0, h, z + k * WIDTH, WIDTH, WIDTH);
      exponentials(p, b, panel, who);
    }
}

// The threads' sums together, where the first had its own: and what each row costs.
static void sum_up(const Piece& p) {
  const SoftmaxCost& c = p.cost;
  for (long row = 0; row < p.rows; row++) {
    real most = p.room.most[row], sum = 0, total = 0;
    for (long t = 1; t < p.count; t++) {
      const real own = p.room.most[t * p.room.rows + row];
      most = own > most || own != own ? own : most;
    }
    for (long t = 0; t < p.count; t++) {
      const long at = t * p.room.rows + row;
      sum += p.room.sum[at] * exponential(all(p.room.most[at] - most))[0];
      total += p.room.total[at];
    }
    p.room.most[row] = most, p.room.sum[row] = sum;
    const real s = (real)c.smoothing;
    const real right = s < 1 ? (1 - s) * (most - p.room.wanted[row]) : 0;
    const real spread = s > 0 ? s * (most - total / (real)c.classes) : 0;
    c.costs[p.first + row] = logarithm(all(sum))[0] + right + spread;
  }
}

// ---------------------------------------------------------------- second: gradients
// Of a block: e^(z - top) become dz; rows beyond the last have none.
static void derivatives(const Piece& p, long b, real* bias_sums) {
  const SoftmaxCost& c = p.cost;
  const long n = p.classes(b);
  const real right = (real)(1 - c.smoothing), spread = (real)(c.smoothing / (double)c.classes);
  for (long k = 0; k < n; k++) *(vec*)(bias_sums + k * L) = vec{};
  for (long first = 0; first < p.room.rows; first += L) {
    real* z = p.scores(b, 0) + first / WIDTH * BLOCK * WIDTH + first % WIDTH;
    const long left = p.rows > first ? p.rows - first : 0;
    const vec top = *(const vec*)(p.room.tops + b * p.room.rows + first);
    const vec most = *(const vec*)(p.room.most + first), sum = *(const vec*)(p.room.sum + first);
    const vec scale = first_lanes(exponential(top - most) / sum, left);
    const vec less = first_lanes(all(spread), left);
    for (long k = 0; k < n; k++) {
      const vec d = *(vec*)(z + k * WIDTH) * scale - less;
      *(vec*)(z + k * WIDTH) = d;
      *(vec*)(bias_sums + k * L) += d;
    }
    for (long l = 0; l < L && l < left; l++) {
      const long target = c.targets[p.first + first + l] - b * BLOCK;
      if (target < 0 || target >= n) continue;
      z[target * WIDTH + l] -= right;
      bias_sums[target * L + l] -= right;
    }
  }
}

template <bool ADD>
static void weights_gradient(const Piece& p, long b) {
  const SoftmaxCost& c = p.cost;
  const long n = p.classes(b), width = c.width, rows = p.room.rows;
  const real* z = p.scores(b, 0);
  for (long w = 0; w < width; w += WIDTH) {
    const real* h = p.room.along + w * rows;
    for (long k = 0; k < n; k += MOST) {
      real* out = c.d_weight + (b * BLOCK + k) * width + w;
      if (width - w > L)
        multiply_rows<2, false, ADD>(least(MOST, n - k), z + k * WIDTH, WIDTH, WIDTH, p.room.panels, BLOCK * WIDTH, h,
                                     out, width, width - w);
      else
        multiply_rows<1, false, ADD>(least(MOST, n - k), z + k * WIDTH, WIDTH, WIDTH, p.room.panels, BLOCK * WIDTH, h,
                                     out, width, width - w);
    }
  }
}

static void inputs_gradient(const Piece& p, long b, long who, real* some) {
  const SoftmaxCost& c = p.cost;
  const long n = p.classes(b);
  real* to = p.room.d_h + who * p.room.own;
  for (long j = 0; j < c.width; j += MOST) {
    const long m = least(MOST, c.width - j);
    pack_beside(some, c.weight + b * BLOCK * c.width + j, c.width, n, c.width - j);
    for (long panel = 0; panel < p.room.panels; panel++)
      multiply_rows<2, true, true>(m, some, MOST, n, 1, 0, p.scores(b, 0) + panel * BLOCK * WIDTH,
                                   to + (panel * c.width + j) * WIDTH, WIDTH, WIDTH);
  }
}

static void second_pass(const Piece& p, long who) {
  const SoftmaxCost& c = p.cost;
  real *bias_sums = p.room.some + who * some_size(), *some = bias_sums + BLOCK * L;
  for (long k = 0; c.d_h && k < p.room.own; k++) p.room.d_h[who * p.room.own + k] = 0;
  for (long b = p.block(who); b < p.block(who + 1); b++) {
    derivatives(p, b, bias_sums);
    for (long k = 0; c.d_bias && k < p.classes(b); k++) {
      const real sum = sum_of_lanes(*(vec*)(bias_sums + k * L));
      c.d_bias[b * BLOCK + k] = p.first ? c.d_bias[b * BLOCK + k] + sum : sum;
    }
    if (c.d_weight && p.first) weights_gradient<true>(p, b);
    else if (c.d_weight) weights_gradient<false>(p, b);
    if (c.d_h) inputs_gradient(p, b, who, some);
  }
}

static void unpack_rows(const Piece& p, long who) {
  const SoftmaxCost& c = p.cost;
  for (long row = p.rows * who / p.count; row < p.rows * (who + 1) / p.count; row++) {
    const real* from = p.room.d_h + row / WIDTH * c.width * WIDTH + row % WIDTH;
    for (long k = 0; k < c.width; k++) {
      real sum = from[k * WIDTH];
      for (long t = 1; t < p.count; t++) sum += from[t * p.room.own + k * WIDTH];
      c.d_h[(p.first + row) * c.width + k] = sum;
    }
  }
}

// ---------------------------------------------------------------- threads
static void softmax_cost_member(void* given) {
  const Piece& p = *(const Piece*)given;
  const FlushDenormals flush;
  for (long who = p.threads.number(); who < p.count; who += p.threads.count()) p.work(p, who);
}
static void all_threads(Piece& p, void (*work)(const Piece&, long)) {
  p.work = work;
  if (p.count > 1) return p.threads.parallel(softmax_cost_member, &p, (unsigned)p.count, 0);
  const FlushDenormals flush;
  work(p, 0);
}

extern "C" long softmax_room(const SoftmaxCost& c, long threads) { return Room(c, threads).end - c.room; }

extern "C" void softmax_cost(const SoftmaxCost& c, const Threads& threads, long count) {
  const Room room(c, count);
  for (long first = 0; first < c.rows; first += c.piece) {
    Piece p = {c, room, threads, first, least(c.piece, c.rows - first), count, nullptr};
    all_threads(p, pack_rows);
    all_threads(p, first_pass);
    sum_up(p);
    if (p.derive()) all_threads(p, second_pass);
    if (c.d_h) all_threads(p, unpack_rows);
  }
}
