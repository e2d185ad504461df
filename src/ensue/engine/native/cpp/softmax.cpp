// Rows of scores z into what a softmax costs: log sum of e^z - z[target], and its derivative
// softmax(z) - [k = target] in place of z. A row stays in the second cache from the first pass
// to the last.
#include "kernel.hpp"

struct Scores {
  real* z;
  long rows, columns, stride;
  const long* targets;
  real* costs;
  int derive;  // whether z becomes the derivative
};
struct SoftmaxTeam {
  const Scores& scores;
  const Threads& threads;
};

static void softmax_row(const Scores& s, long row) {
  real* z = s.z + row * s.stride;
  const long n = s.columns;
  vec most = all(z[0]);
  for (long k = 0; k + L <= n; k += L) most = larger(most, *(const loose*)(z + k));
  real top = most[0];
  for (int i = 1; i < L; i++) top = most[i] > top || most[i] != most[i] ? most[i] : top;
  for (long k = n / L * L; k < n; k++) top = z[k] > top || z[k] != z[k] ? z[k] : top;
  const real wanted = z[s.targets[row]];
  vec sums = {};
  for (long k = 0; k < n; k += L) {
    const long left = n - k;
    const vec e = first_lanes(exponential(load(z + k, left) - top), left);
    sums += e;
    if (s.derive) store(z + k, e, left);
  }
  const real sum = sum_of_lanes(sums);
  s.costs[row] = logarithm(all(sum))[0] + (top - wanted);
  if (!s.derive) return;
  const real scale = 1 / sum;
  for (long k = 0; k < n; k += L) store(z + k, load(z + k, n - k) * scale, n - k);
  z[s.targets[row]] -= 1;
}

static void softmax_member(void* given) {
  const SoftmaxTeam& team = *(const SoftmaxTeam*)given;
  const FlushDenormals flush;
  const long who = team.threads.number(), count = team.threads.count(), rows = team.scores.rows;
  for (long row = rows * who / count; row < rows * (who + 1) / count; row++)
    softmax_row(team.scores, row);
}

extern "C" void softmax_rows(const Scores& scores, const Threads& threads, long count) {
  SoftmaxTeam team = {scores, threads};
  if (count > 1) return threads.parallel(softmax_member, &team, (unsigned)count, 0);
  const FlushDenormals flush;
  for (long row = 0; row < scores.rows; row++) softmax_row(scores, row);
}
