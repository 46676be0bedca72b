// Chapter 9. The profile: recording operations, adding them up by name, linear maps also by shape; measuring, sorting
// and printing.
#include "apps/measure/bench/profile.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "apps/measure/bench/training.h"
#include "apps/program/command.h"
#include "apps/program/terminal.h"

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

namespace {

constexpr size_t operation_width = 36, direction_width = 10;

// Seconds of each part, over all observed steps.
struct PartTimes {
  OperationTimes operations;
  double pass = 0, update = 0;
};

void observed_step(BenchTraining& training, PartTimes& times) {
  {
    const ObserverScope scope(times.operations);
    times.pass += seconds_of([&] { training.pass(); });
  }
  times.update += seconds_of([&] { training.update(); });
}

std::vector<ProfileRow> rows_from(const PartTimes& times, i64 steps) {
  const double n = static_cast<double>(steps);
  std::vector<ProfileRow> rows;
  double tape = times.pass;
  for (const OperationTime& op : times.operations.summed_up()) {
    rows.push_back({.name = op.shape.empty() ? op.name : op.name + ' ' + op.shape,
                    .direction = op.backward ? "backward" : "forward",
                    .calls = static_cast<double>(op.calls) / n,
                    .seconds = op.seconds / n,
                    .flop_per_second = op.flop / op.seconds,
                    .bytes_per_second = op.bytes / op.seconds});
    tape -= op.seconds;
  }
  rows.push_back({.name = "clipping and Adam", .direction = "", .calls = 1, .seconds = times.update / n});
  rows.push_back({.name = "the tape, and the observer", .direction = "", .calls = 1, .seconds = tape / n});
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  for (ProfileRow& row : rows) row.share = row.seconds * n / (times.pass + times.update);
  return rows;
}

std::string rate_of(const ProfileRow& row) {
  if (row.flop_per_second > 0) return numbers("%9.1f GF/s", 1e-9 * row.flop_per_second);
  if (row.bytes_per_second > 0) return numbers("%9.1f GB/s", 1e-9 * row.bytes_per_second);
  return "";
}

nlohmann::ordered_json as_json(const ProfileRow& row) {
  return {{"name", row.name},
          {"direction", row.direction},
          {"calls", row.calls},
          {"ms", 1e3 * row.seconds},
          {"share", row.share},
          {"gflop_per_second", 1e-9 * row.flop_per_second},
          {"gbyte_per_second", 1e-9 * row.bytes_per_second}};
}

}  // namespace

double noise_of_median(std::vector<double> values) {
  if (values.size() < 2) return std::numeric_limits<double>::infinity();
  std::sort(values.begin(), values.end());
  const size_t quarter = values.size() / 4;
  return (values[values.size() - 1 - quarter] - values[quarter]) / std::sqrt(static_cast<double>(values.size()));
}

Profile measure_profile(const BenchConfig& config, const BenchOptions& options) {
  BenchTraining training(config, config.dropout_or_own(options.dropout), options.seed);
  for (int i = 0; i < warm_up_steps; ++i) training.step();
  PartTimes times;
  std::vector<double> observed, unobserved, differences;
  for (i64 i = 0; i < options.steps; ++i) {
    unobserved.push_back(seconds_of([&] { training.step(); }));
    observed.push_back(seconds_of([&] { observed_step(training, times); }));
    differences.push_back(observed.back() - unobserved.back());
  }
  return {.rows = rows_from(times, options.steps),
          .seconds = (times.pass + times.update) / static_cast<double>(options.steps),
          .observed = median(observed),
          .unobserved = median(unobserved),
          .noise = noise_of_median(differences)};
}

void print_profile(std::ostream& out, const Profile& profile) {
  out << fitted("operation", operation_width) << fitted("", direction_width)
      << "  calls   ms a step   share          rate\n";
  for (const ProfileRow& row : profile.rows) {
    out << fitted(row.name, operation_width) << fitted(row.direction, direction_width)
        << numbers("%7.0f%12.3f%6.1f %%", row.calls, 1e3 * row.seconds, 1e2 * row.share) << rate_of(row) << '\n';
  }
  out << fitted("a step", operation_width + direction_width)
      << numbers("%19.3f%6.1f %%\n", 1e3 * profile.seconds, 100.0)
      << numbers("median step %.3f ms observed, %.3f ms not: what the observer costs ", 1e3 * profile.observed,
                 1e3 * profile.unobserved)
      << (profile.observed - profile.unobserved > profile.noise ? numbers("is %.1f %%\n", 1e2 * profile.overhead())
                                                                : "cannot be told\n");
}

int bench_profile(const BenchOptions& options) {
  const BenchConfig config = scaled(bench_config(options.config), options.batch, options.length, options.width);
  announce(options);
  const Profile profile = measure_profile(config, options);
  print_profile(std::cout, profile);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const ProfileRow& row : profile.rows) rows.push_back(as_json(row));
  write_results(options, "profile",
                {{"config", as_json(config)},
                 {"steps", options.steps},
                 {"dropout", config.dropout_or_own(options.dropout)},
                 {"step_ms", 1e3 * profile.seconds},
                 {"median_ms_observed", 1e3 * profile.observed},
                 {"median_ms_unobserved", 1e3 * profile.unobserved},
                 {"rows", rows}});
  return done;
}

}  // namespace orrery
