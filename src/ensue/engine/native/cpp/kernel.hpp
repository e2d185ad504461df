// The frame of every kernel: rows, steps, threads.
//
// A kernel walks over time for a range of rows. In each phase of a step it multiplies a block
// of rows by packed panels into a small tile, and evaluates the equations on that tile while
// it is in the first cache. Sizes, rows and steps are not known at compile time.
#include "products.hpp"

// ---------------------------------------------------------------- rows and steps
// What a call gives to the kernel. Rows are split over `threads`; each walks over time alone.
// Unequal lengths: rows are stored step by step, and in a step thread by thread (`base`, `alive`);
// otherwise (base == 0) by step, all rows of a step together, the last step first if `reverse`.
struct Call {
  real** buffers;
  const long* sizes;
  const long *base, *alive;  // [steps + 1][threads]
  const long* time_row;      // stored row -> row of the (time, batch) tensors
  const long* first;         // [threads + 1] rows in front of each thread's
  long steps, batch, threads, began;  // began: rows of the first step
  int reverse, train;
  Products products;
  Pack pack;
};

struct Step {
  long rows, staying;    // of this thread; how many of them go on to the next step
  long row;              // the first one in buffers that hold every step
  long old_row, new_row; // in the buffers of states
};

INLINE Step step_of(const Call& c, long s, long who) {
  if (!c.base) {
    const long first = c.first[who], n = c.first[who + 1] - first;
    const long at = c.reverse ? c.steps - 1 - s : s, before = c.reverse ? at + 1 : at - 1;
    return {n, n, at * c.batch + first, before * c.batch + first, at * c.batch + first};
  }
  const long at = c.base[s * c.threads + who], next = c.base[(s + 1) * c.threads + who];
  return {c.alive[s * c.threads + who], c.alive[(s + 1) * c.threads + who], at, at - c.began, next - c.began};
}

// Denormal numbers are flushed while a kernel runs; the flag is put back afterwards.
struct FlushDenormals {
#if defined(__x86_64__)
  unsigned before = __builtin_ia32_stmxcsr();
  FlushDenormals() { __builtin_ia32_ldmxcsr(before | 0x8040); }
  ~FlushDenormals() { __builtin_ia32_ldmxcsr(before); }
#endif
};

constexpr long CHUNK = 48;  // rows of a tile

// The sums of one step, added to those of all steps, which stand behind them: one long sum of
// single numbers would lose digits.
INLINE void add_up(real* sums, long width) {
  for (long k = 0; k < width; k += L) {
    *(vec*)(sums + width + k) += *(vec*)(sums + k);
    *(vec*)(sums + k) = vec{};
  }
}

// ---------------------------------------------------------------- threads
// The OpenMP runtime that is already in the process: two of them would fight for the cores.
struct Threads {
  void (*parallel)(void (*)(void*), void*, unsigned, unsigned);
  int (*number)();
  int (*count)();
};
typedef void (*Work)(const Call&, long);
struct Team {
  const Call& call;
  const Threads& threads;
  Work work;
};
static void member(void* given) {
  const Team& team = *(const Team*)given;
  const FlushDenormals flush;
  for (long who = team.threads.number(); who < team.call.threads; who += team.threads.count())
    team.work(team.call, who);
}
static void together(const Call& call, const Threads& threads, Work work) {
  Team team = {call, threads, work};
  if (call.threads > 1) return threads.parallel(member, &team, (unsigned)call.threads, 0);
  const FlushDenormals flush;
  work(call, 0);
}
