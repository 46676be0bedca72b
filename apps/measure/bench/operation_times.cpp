// Chapter 9. Recording operations, and adding them up by name; linear maps also by shape.
#include "apps/measure/bench/operation_times.h"

#include <cmath>
#include <map>
#include <tuple>

namespace orrery {
namespace {

using Inputs = std::span<const Variable* const>;

// 2 m n k for y = op(a) op(b). With B products of a [m, k] and b [k, n], |a| |b| / (B |y|) = k^2, transposed or not.
double matmul_flop(const Shape& a, const Shape& b, const Shape& y) {
  if (y.count() == 0) return 0;
  const double size_a = static_cast<double>(a.count()), size_b = static_cast<double>(b.count()),
               size_y = static_cast<double>(y.count());
  const double batch = b.rank() > 2 ? static_cast<double>(b.without_last(2).count()) : 1.0;
  return 2 * size_y * std::round(std::sqrt(size_a * size_b / (batch * size_y)));
}

// Scores and weighted sums of values: 2 B h n m (d_k + d_v). The heads are packed side by side, in qkv or in q and kv.
double attention_flop(Inputs inputs, const Shape& y) {
  const bool packed = inputs.size() == 1 || !inputs[1]->defined();  // a bias by distance may follow
  const Shape &q = inputs[0]->shape(), &kv = packed ? q : inputs[1]->shape();
  const i64 h_d_v = y[-1], h_d_k = packed ? (q[-1] - h_d_v) / 2 : q[-1];
  return 2.0 * static_cast<double>(q[0] * q[1] * kv[1]) * static_cast<double>(h_d_k + h_d_v);
}

// The head computes its gradients together with its loss: three products forward, none backward.
constexpr std::string_view head_with_loss = "linear_cross_entropy";

double flop_of(std::string_view name, Inputs inputs, std::span<const Tensor> outputs) {
  const Shape& y = outputs[0].shape();
  if (name == head_with_loss) return 6.0 * static_cast<double>(inputs[0]->value().count() * inputs[1]->size(0));
  if (name == "matmul") return matmul_flop(inputs[0]->shape(), inputs[1]->shape(), y);
  if (name == "packed_attention") return attention_flop(inputs, y);
  if (name.ends_with("feed_forward")) {  // its inputs are x, W1, b1, W2 and b2
    const i64 weights = inputs[1]->value().count() + inputs[3]->value().count();
    return 2.0 * static_cast<double>(y.without_last().count() * weights);
  }
  if (name.starts_with("linear"))  // whatever follows the product in the same pass
    return 2.0 * static_cast<double>(y.count() * inputs[1]->size(-1));
  return 0;
}

// The sizes of y = x W^T, given the shape of y. `in` comes from whichever of x and W is available.
LinearSizes linear_sizes(std::string_view name, const Shape& y, const Shape& x_or_W) {
  if (!name.starts_with("linear") || name == head_with_loss) return {};
  return {.rows = y.without_last().count(), .in = x_or_W[-1], .out = y[-1]};
}
LinearSizes linear_sizes(const Node& node) {
  for (const Edge& edge : node.inputs)
    if (edge.node) return linear_sizes(node.name, node.outputs[0].shape, edge.slot().shape);
  return {};
}

std::string text_of(const LinearSizes& sizes) {
  if (sizes.rows == 0) return "";
  return '[' + std::to_string(sizes.rows) + ',' + std::to_string(sizes.in) + "] to " + std::to_string(sizes.out);
}

bool shares_memory(const Tensor& x, const Node& node) {
  return std::any_of(node.outputs.begin(), node.outputs.end(),
                     [&](const OutputSlot& output) { return x.shares_memory_with(output.gradient); });
}

double bytes_of(const Tensor& x) { return x.defined() ? static_cast<double>(x.bytes()) : 0; }

// Forward: what is read and written. A lookup reads as much of its table as it writes to the output.
double traffic(std::string_view name, Inputs inputs, std::span<const Tensor> outputs) {
  double read = 0, written = 0;
  for (const Tensor& output : outputs) {
    written += bytes_of(output);
    for (const Variable* input : inputs)
      if (output.shares_memory_with(input->value())) return 0;  // a view
  }
  if (name.starts_with("embedding")) return 2 * written;
  for (const Variable* input : inputs) read += bytes_of(input->value());
  return read + written;
}

// The number of changes of dL/dy so far: an operation may overwrite it with dL/dx.
u64 changes(const Node& node) {
  u64 count = 0;
  for (const OutputSlot& output : node.outputs)
    if (output.gradient.defined()) count += output.gradient.version();
  return count;
}

}  // namespace

void OperationTimes::forward_ended(std::string_view name, Inputs inputs, std::span<const Tensor> outputs) {
  const double seconds = watch_.seconds(), flop = flop_of(name, inputs, outputs);
  const LinearSizes sizes = linear_sizes(name, outputs[0].shape(), inputs[0]->shape());
  events_.push_back({name, sizes, false, seconds, flop, flop > 0 ? 0 : traffic(name, inputs, outputs)});
}

void OperationTimes::backward_begins(const Node& node) {
  changes_before_ = changes(node);
  watch_ = {};
}

void OperationTimes::backward_ended(const Node& node) {
  const double seconds = watch_.seconds();
  const bool in_place = changes(node) != changes_before_;
  double read = 0, written = 0;
  for (const OutputSlot& output : node.outputs) read += bytes_of(output.gradient);
  for (const Edge& edge : node.inputs) {
    if (!edge.node) continue;
    const Tensor& gradient = edge.slot().gradient;
    if (in_place || !shares_memory(gradient, node)) written += bytes_of(gradient);
  }
  events_.push_back({node.name, linear_sizes(node), true, seconds, 0, written > 0 ? read + written : 0});
}

std::vector<OperationTime> OperationTimes::summed_up() const {
  std::map<std::tuple<std::string_view, LinearSizes, bool>, OperationTime> sums;
  for (const Event& event : events_) {
    OperationTime& sum = sums[{event.name, event.sizes, event.backward}];
    sum.name = event.name;
    sum.shape = text_of(event.sizes);
    sum.backward = event.backward;
    ++sum.calls;
    sum.seconds += event.seconds;
    sum.flop += event.flop;
    sum.bytes += event.bytes;
  }
  std::vector<OperationTime> result;
  for (auto& [key, sum] : sums) {
    const auto forward = sums.find({std::get<0>(key), std::get<1>(key), false});
    if (sum.backward && std::get<0>(key) != head_with_loss && forward != sums.end() && forward->second.flop > 0) {
      sum.flop = 2 * forward->second.flop;
      sum.bytes = 0;
    }
    result.push_back(sum);
  }
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return result;
}

}  // namespace orrery
