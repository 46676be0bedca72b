// Chapter 9. Claims about cost, counted in operations: no clock is read.
#include <algorithm>
#include <cmath>

#include "apps/measure/bench/operation_times.h"
#include "apps/measure/claims/measures.h"
#include "apps/program/columns.h"
#include "core/mask.h"
#include "core/tensor_ops.h"
#include "nn/attention/attention.h"

namespace orrery::claims {
namespace {

// Multiplications and additions of one self-attention over n tokens, forward.
struct Operations {
  double scores = 0;       // Q K^T, and weights times V
  double projections = 0;  // to Q, K and V, and of the output
};
Operations operations_of(i64 n, i64 d_model) {
  Rng rng(1);
  const nn::MultiHeadAttention attention(d_model, 4, rng);
  const Variable x = constant(randn({1, n, d_model}, rng));
  const NoGradient no_gradient;
  nn::Pass pass = nn::Pass::inference();
  OperationTimes operations;
  {
    const ObserverScope scope(operations);
    nn::AttentionRecorder seen;  // asking for the weights chooses the composed form, product by product
    pass.recorder = &seen;
    attention(x, Mask(), pass);
  }
  Operations result;
  for (const OperationTime& o : operations.summed_up())
    (o.name.starts_with("linear") ? result.projections : result.scores) += o.flop;
  return result;
}

}  // namespace

Finding quadratic_operations(const Run& run) {
  constexpr i64 d_model = 128;
  Finding finding{.measured = {"operations of one layer of width 128, forward, in millions; growth from row to row",
                               "    n     with the scores     of the projections     together"}};
  Operations before;
  double least_together = 1e9, least_scores = 1e9, most_scores = 0;
  for (const i64 n : {32, 128, 512, 2048}) {
    run.go_on();
    const Operations now = operations_of(n, d_model);
    std::string line = numbers("%5d %15.1f %22.1f %18.1f", static_cast<int>(n), now.scores / 1e6, now.projections / 1e6,
                               (now.scores + now.projections) / 1e6);
    if (n > 32) {
      const double scores = now.scores / before.scores,
                   together = (now.scores + now.projections) / (before.scores + before.projections);
      line += numbers("     x %.0f, x %.0f, x %.1f", scores, now.projections / before.projections, together);
      least_scores = std::min(least_scores, scores);
      most_scores = std::max(most_scores, scores);
      least_together = std::min(least_together, together);
    }
    finding.measured.push_back(line);
    before = now;
  }
  const bool quadratic = least_scores == 16 && most_scores == 16, layer_too = least_together > 12;
  finding.verdict = verdict_of(quadratic, quadratic && layer_too);
  return finding;
}

}  // namespace orrery::claims
