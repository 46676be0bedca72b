// Chapter 9. Claims about cost, counted in operations and bytes: no clock is read.
#include <algorithm>
#include <cmath>

#include "apps/measure/bench/operation_times.h"
#include "apps/measure/claims/measures.h"
#include "apps/program/columns.h"
#include "autograd/check/proof_parts.h"
#include "autograd/check/rounding.h"
#include "autograd/ops/arithmetic.h"
#include "autograd/ops/attention.h"
#include "autograd/ops/fused/attention/tiled_attention.h"
#include "autograd/ops/layout.h"
#include "autograd/ops/reduce.h"
#include "core/machine/memory.h"
#include "core/machine/parallel.h"
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
    Tensor weights;  // asking for the weights chooses the composed form, product by product
    attention(x, Mask(), pass, &weights);
  }
  Operations result;
  for (const OperationTime& o : operations.summed_up())
    (o.name.starts_with("linear") ? result.projections : result.scores) += o.flop;
  return result;
}

// The largest number of bytes that forward and backward of one attention over n tokens hold beyond their input.
enum class Form { composed, tiled };
i64 peak_bytes_of(Form form, i64 n, Tensor* output = nullptr) {
  constexpr i64 h = 2, d_k = 32;
  Rng rng(1);
  const Variable qkv = parameter(randn({1, n, 3 * h * d_k}, rng));
  const auto heads = [&](const Variable& x) { return permute(reshape(x, {1, n, h, d_k}), {0, 2, 1, 3}); };
  const i64 before = memory_counters().live_bytes;
  reset_peak();
  Variable y;
  if (form == Form::tiled) {
    y = tiled_attention(qkv, {h, d_k, d_k}, Mask());
  } else {
    const auto [Q, K, V] = split3(qkv, -1);
    y = reshape(permute(attention(heads(Q), heads(K), heads(V), Mask()).output, {0, 2, 1, 3}), {1, n, h * d_k});
  }
  if (output) *output = y.value();
  backward(sum(y));
  return memory_counters().peak_bytes - before;
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

Finding linear_memory(const Run& run) {
  const parts::KeepThreads keep;
  set_threads(1);  // each thread has a tile of its own, so bytes are counted on one
  Finding finding{.measured = {"peak of forward and backward beyond the input, 2 heads of 32; growth from row to row",
                               "    n  all scores, MB     in tiles, MB"}};
  constexpr i64 most_composed = 2048, linear_from = 2048;
  double composed_before = 0, tiled_before = 0, least_composed = 1e9, most_tiled = 0;
  for (const i64 n : {512, 1024, 2048, 4096, 8192}) {
    run.go_on();
    const double tiled = static_cast<double>(peak_bytes_of(Form::tiled, n)) / 1e6,
                 composed = n > most_composed ? 0 : static_cast<double>(peak_bytes_of(Form::composed, n)) / 1e6;
    check(tiled > 0, "claims", "this build does not count memory, as under AddressSanitizer");
    std::string line = numbers("%5d ", static_cast<int>(n));
    line += composed > 0 ? numbers("%13.2f", composed) : numbers("%13s", "-");
    line += numbers(" %16.2f", tiled);
    if (composed > 0 && composed_before > 0) {
      line += numbers("     x %.2f", composed / composed_before);
      least_composed = std::min(least_composed, composed / composed_before);
    } else if (tiled_before > 0) {
      line += "          ";
    }
    if (tiled_before > 0) line += numbers("  x %.2f", tiled / tiled_before);
    if (n > linear_from) most_tiled = std::max(most_tiled, tiled / tiled_before);
    finding.measured.push_back(line);
    composed_before = composed;
    tiled_before = tiled;
  }
  Tensor composed, tiled;
  peak_bytes_of(Form::composed, 1024, &composed);
  peak_bytes_of(Form::tiled, 1024, &tiled);
  const double difference = largest_magnitude({composed - tiled});  // infinity for NaN
  finding.measured.push_back(numbers("largest difference between the two results: %.0e", difference));
  finding.verdict = verdict_of(least_composed > 3.5 && most_tiled < 2.3 && difference < 1e-5);
  return finding;
}

}  // namespace orrery::claims
