// Chapter 3. The parts of a proof about passes: with other numbers, others in between, many of them, on more threads,
// and with anything behind the padding lengths.
#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <limits>
#include <optional>
#include <sstream>
#include <thread>

#include "autograd/check/proof_parts.h"
#include "autograd/check/rounding.h"
#include "autograd/check/scheduling.h"
#include "autograd/observer.h"
#include "core/machine/parallel.h"

namespace orrery::parts {
namespace {

constexpr u64 other_seed = 0x9E3779B97F4A7C15;

}  // namespace

// The tolerance is at least 4e-12 times the largest norm in the pass: rounding, 2^-53 of that norm, divided by the
// smallest step, h / 16 = 6e-5, is 2e-12 of it, and we allow twice that.
std::string wrong_gradients(const Checkable& f, GradcheckOptions options) {
  const Tensor dy = cotangent_of(f.output().shape(), options.seed);
  options.atol = std::max(options.atol, 4e-12 * largest_norm(f, dy));
  GradcheckReport report = gradcheck(f, options);
  std::erase_if(report.problems, [](const GradcheckProblem& problem) {
    return problem.check != GradientCheck::missing_gradient && problem.check != GradientCheck::shape;
  });
  return report.describe();
}

i64 longest_leaf(const Checkable& f) {
  i64 longest = 1;
  for (const NamedParameter& leaf : f.leaves) longest = std::max(longest, leaf.value.value().count());
  return longest;
}

// A factor keeps what samples rely on: signs, order, the distance from 0.
ProofPart prove_far(const Sample& sample, u64 seed) {
  std::string tried;
  for (const auto& [factor, own_seed] : {std::pair{4, seed}, {8, seed + other_seed}}) {
    Checkable f = built(sample, f64, own_seed);
    if (factor > 4 && longest_leaf(f) >= long_tensor) break;  // among this many numbers some are far from 0 anyway
    for (NamedParameter& leaf : f.leaves) scale_in_place(leaf.value.mutable_value(), factor);
    if (!std::isfinite(largest_magnitude({f.output().value()}))) continue;
    GradcheckOptions options = sample.options;
    options.seed = own_seed;
    const std::string times = std::to_string(factor) + " times as large", wrong = wrong_gradients(f, options);
    if (!wrong.empty()) return part("far", "with inputs " + times + ":\n" + wrong);
    const SinglePrecision single = compare_precisions(sample, own_seed, factor);
    if (!single.problem.empty()) return part("far", "with inputs " + times + ", in f32:\n" + single.problem);
    tried += (tried.empty() ? "" : ", and ") + times + (single.beyond_f32 ? " in f64 alone" : "");
  }
  return part("far", "", tried.empty() ? "not tried: no finite value there" : "inputs " + tried);
}

namespace {

// The function with other numbers: the same layer, where it can be called with other inputs.
Checkable with_other_numbers(const Checkable& f, const Sample& sample, Dtype dtype, u64 seed) {
  Checkable other = built(sample, dtype, seed + other_seed);
  if (!f.of_inputs || f.inputs == 0 || f.inputs > f.leaves.size()) return other;
  std::vector<Variable> inputs;
  for (size_t i = 0; i < f.inputs; ++i) inputs.push_back(other.leaves[i].value);
  other.leaves.resize(f.inputs);
  other.leaves.insert(other.leaves.end(), f.leaves.begin() + static_cast<std::ptrdiff_t>(f.inputs), f.leaves.end());
  other.output = [call = f.of_inputs, inputs] { return call(inputs); };
  return other;
}

// The name of the first leaf of f with an unexpected gradient, or "". Expected is its gradient when f runs alone, plus,
// if `other` has the same leaf, its gradient when `other` runs alone.
std::string first_disturbed(const Checkable& f, const std::vector<Tensor>& alone, const Checkable& other,
                            const std::vector<Tensor>& other_alone) {
  for (size_t i = 0; i < f.leaves.size(); ++i) {
    Tensor expected = alone[i];
    for (size_t j = 0; j < other.leaves.size(); ++j)
      if (other.leaves[j].value.node() == f.leaves[i].value.node()) expected = expected + other_alone[j];
    const Tensor& got = f.leaves[i].value.gradient();
    if (!alike(got.defined() ? got : zeros(expected.shape(), expected.dtype()), expected)) return f.leaves[i].name;
  }
  return "";
}

}  // namespace

ProofPart prove_interleaved(const Sample& sample, u64 seed) {
  for (const Dtype dtype : {f32, f64}) {
    Checkable first = built(sample, dtype, seed), second = with_other_numbers(first, sample, dtype, seed);
    const Tensor dy = cotangent(first.output().shape(), dtype, seed);
    if (second.output().shape() != dy.shape())
      return part("interleaved", "", "not tried: other shapes with other seeds");
    const std::vector<Tensor> first_alone = gradients_of(first, dy), second_alone = gradients_of(second, dy);
    if (dtype == f64) {
      GradcheckOptions options = sample.options;
      options.seed = seed;
      options.coordinates = 2;
      options.directions = 2;
      const std::string wrong = wrong_gradients(second, options);
      if (!wrong.empty()) return part("interleaved", "with other numbers, after the first:\n" + wrong);
    }
    for (const bool in_order : {true, false}) {
      const Variable y1 = first.output(), y2 = second.output();
      run_backward(in_order ? y1 : y2, dy);
      run_backward(in_order ? y2 : y1, dy);
      std::string disturbed = first_disturbed(first, first_alone, second, second_alone);
      if (disturbed.empty()) disturbed = first_disturbed(second, second_alone, first, first_alone);
      take_gradients(first.leaves);
      take_gradients(second.leaves);
      if (!disturbed.empty())
        return part("interleaved", std::string("two forward passes before backward, that of the ") +
                                       (in_order ? "first" : "second") + " first: another gradient for " + disturbed);
    }
  }
  return part("interleaved", "", "two forward passes, then backward in both orders");
}

namespace {

// Records what the operations of a pass return, and what each adds to gradients.
class Watcher final : public ForwardingObserver {
 public:
  void forward_ended(std::string_view name, std::span<const Variable* const> inputs,
                     std::span<const Tensor> outputs) override {
    ForwardingObserver::forward_ended(name, inputs, outputs);
    for (const Tensor& y : outputs) values.push_back({"what " + std::string(name) + " returned", y});
  }
  bool changes_contributions() const override { return true; }
  void contribution(const Node& node, size_t input, Tensor& g) override {
    ForwardingObserver::contribution(node, input, g);
    contributions.push_back({std::string(node.name), g});
  }
  struct Value {
    std::string name;
    Tensor tensor;
  };
  std::vector<Value> values, contributions;
};

// The first operation that added something else than in the right pass, as far as both passes got; "" if none.
std::string first_misled(const Watcher& right, const Watcher& changed) {
  for (size_t i = 0; i < std::min(right.contributions.size(), changed.contributions.size()); ++i) {
    const Tensor &a = right.contributions[i].tensor, &b = changed.contributions[i].tensor;
    if (a.defined() != b.defined() || (a.defined() && !same_bits(a, b))) return changed.contributions[i].name;
  }
  return "";
}

// A pass in which value number `target` is overwritten after forward; what went wrong then, "" for a right error or
// none.
std::string pass_with_change(Checkable& f, size_t target, const Tensor& dy, Watcher& watcher, bool& noticed) {
  const ObserverScope scope(watcher);
  const Variable y = f.output();
  for (const NamedParameter& leaf : f.leaves) watcher.values.push_back({leaf.name, leaf.value.value()});
  if (target >= watcher.values.size() || watcher.values[target].tensor.count() == 0) return "";
  Tensor tensor = watcher.values[target].tensor;  // no reference: a backward that runs operations adds to the list
  const Tensor before = tensor.clone();
  fill(tensor, 0.37);
  std::string error;
  try {
    run_backward(y, dy);
  } catch (const Error& e) { error = e.what(); }
  copy_into(tensor, before);
  noticed = !error.empty();
  if (error.empty() || error.find("changed in place") != error.npos) return "";
  return "the error does not say so, but: " + error;
}

}  // namespace

ProofPart prove_changed(const Sample& sample, u64 seed) {
  size_t changes = 0, errors = 0;
  for (const Dtype dtype : {f32, f64}) {
    Checkable f = built(sample, dtype, seed);
    const Tensor dy = cotangent(f.output().shape(), dtype, seed);
    Watcher right;
    size_t targets = f.leaves.size();
    {
      const ObserverScope scope(right);
      const Variable y = f.output();
      targets += right.values.size();
      run_backward(y, dy);
      take_gradients(f.leaves);
    }
    for (size_t target = 0; target < targets; ++target) {
      Watcher watcher;
      bool noticed = false;
      std::string problem = pass_with_change(f, target, dy, watcher, noticed);
      take_gradients(f.leaves);
      const std::string misled = first_misled(right, watcher);
      if (!misled.empty()) problem = misled + " gives another gradient, and no error";
      if (!problem.empty())
        return {"changed", false, watcher.values[target].name + " was changed in place after forward: " + problem,
                misled.empty() ? "" : "a Tensor where a Saved belongs?"};
      ++changes;
      errors += noticed;
    }
  }
  return part("changed", "",
              std::to_string(changes) + " changes in place: " + std::to_string(errors) + " errors, else the same bits");
}

namespace {

// Holds every dy of a pass.
struct HeldGradients final : ForwardingObserver {
  void backward_begins(const Node& node) override {
    ForwardingObserver::backward_begins(node);
    for (const OutputSlot& output : node.outputs)
      if (output.gradient.defined()) tensors.push_back(output.gradient);
  }
  std::vector<Tensor> tensors;
};

// Whether somebody still holds a dy of one pass after another one, in which it was not used again.
bool keeps_gradients(const Checkable& f, u64 seed) {
  std::array<HeldGradients, 2> passes;
  for (HeldGradients& held : passes) {
    const ObserverScope scope(held);
    one_pass(f, seed);
  }
  std::vector<Tensor>& first = passes[0].tensors;
  while (!first.empty()) {
    const Tensor dy = std::move(first.back());
    first.pop_back();
    const auto shares = [&](const Tensor& other) { return dy.shares_memory_with(other); };
    if (dy.count() > 0 && !dy.sole_owner() && std::none_of(first.begin(), first.end(), shares) &&
        std::none_of(passes[1].tensors.begin(), passes[1].tensors.end(), shares))
      return true;
  }
  return false;
}

}  // namespace

// Often enough to find a mistake in every 50th pass; less often if tensors are long.
ProofPart prove_repeatable(const Sample& sample, u64 seed) {
  int passes = 0;
  for (const Dtype dtype : {f32, f64}) {
    const Checkable f = sample.build(dtype, seed);
    passes = longest_leaf(f) < long_tensor ? 64 : 4;
    const std::vector<Tensor> first = one_pass(f, seed);
    for (int pass = 2; pass <= passes; ++pass) {
      const std::string where = first_difference(f.leaves, first, one_pass(f, seed));
      if (!where.empty()) return part("repeatable", "pass " + std::to_string(pass) + " gives other bits for " + where);
    }
    if (keeps_gradients(f, seed)) return part("repeatable", "each pass keeps a dy for ever");
  }
  return part("repeatable", "", std::to_string(passes) + " fresh passes, equal bits");
}

namespace {

// The same as one_pass, but wholly, or in its backward alone, in a thread of its own.
std::vector<Tensor> pass_elsewhere(const Checkable& f, u64 seed, i64 grain, bool wholly) {
  std::vector<Tensor> result;
  std::exception_ptr error;
  Observer* const here = observer();
  const Variable y = wholly ? Variable() : f.output();
  std::thread elsewhere([&] {
    set_threads(1);
    const GrainScope cut(grain);
    std::optional<ObserverScope> scope;
    if (here) scope.emplace(*here);
    try {
      if (wholly) {
        result = one_pass(f, seed);
      } else {
        Parameters leaves = f.leaves;
        run_backward(y, cotangent(y.shape(), y.dtype(), seed));
        result = take_gradients(leaves);
      }
    } catch (...) { error = std::current_exception(); }
  });
  elsewhere.join();
  if (error) std::rethrow_exception(error);
  return result;
}

}  // namespace

// Loops over such small tensors would stay on one thread; a grain of one element gives every thread its share. Loops
// over long tensors are cut into about `chunks` chunks.
ProofPart prove_threads(const Sample& sample, u64 seed) {
  return prove_thread_counts(sample, seed, std::array{2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16}, "1 to 9, 12, 13, 16");
}
ProofPart prove_thread_counts(const Sample& sample, u64 seed, std::span<const int> counts, const std::string& shown) {
  constexpr i64 chunks = 64;
  const std::array f{sample.build(f32, seed), sample.build(f64, seed)};
  const i64 longest = longest_leaf(f[0]);
  const KeepThreads keep;
  const SleepingThreads sleeping;
  const i64 grain = longest < long_tensor ? 1 : longest / chunks;
  const GrainScope cut(grain);
  const auto sets_threads = [] { return part("threads", "a pass sets the number of threads"); };
  set_threads(1);
  const i64 loops_before = ExactThreads::loops();
  const std::array alone{one_pass(f[0], seed), one_pass(f[1], seed)};
  const i64 loops = (ExactThreads::loops() - loops_before) / 2;
  if (threads() != 1) return sets_threads();
  for (size_t i = 0; i < f.size(); ++i) {
    for (const bool wholly : {true, false}) {
      std::vector<Tensor> there = pass_elsewhere(f[i], seed, grain, wholly);
      const std::string where = first_difference(f[i].leaves, there, alone[i]);
      if (!where.empty()) return part("threads", "in another thread than the first, other bits for " + where);
    }
  }
  if (loops == 0) return part("threads", "", "not cut: no loop has two elements or tasks to share");
  for (const int count : counts) {
    set_threads(count);
    for (size_t i = 0; i < f.size(); ++i) {
      const std::string where = first_difference(f[i].leaves, alone[i], one_pass(f[i], seed));
      if (!where.empty()) return part("threads", std::to_string(count) + " threads give other bits for " + where);
      if (threads() != count) return sets_threads();
    }
  }
  return part("threads", "", "equal bits for " + shown + ", with " + std::to_string(loops) + " loops cut");
}

namespace {

// The padded rows of x [B, T, ...], or row 0 of a table, which has no lengths. They share the memory of x.
std::vector<Tensor> padded_rows(const Tensor& x, const std::vector<i32>& lengths) {
  if (lengths.empty()) return {x.rows(0, 1)};
  check(x.rank() >= 2 && x.size(0) == std::ssize(lengths), "padding", lengths.size(), " lengths do not fit ",
        x.shape());
  const i64 B = x.size(0), T = x.size(1);
  const Tensor positions = x.reshape({B * T, x.count() / std::max<i64>(1, B * T)});
  std::vector<Tensor> rows;
  for (i64 b = 0; b < B; ++b) rows.push_back(positions.rows(b * T + lengths[static_cast<size_t>(b)], (b + 1) * T));
  return rows;
}

void fill_padding(const Tensor& x, const std::vector<i32>& lengths, double value) {
  for (Tensor& rows : padded_rows(x, lengths)) fill(rows, value);
}

// x with 0 in the padded rows of the output.
Tensor real_rows(const Tensor& x, const Padding& padding) {
  Tensor real = x.clone();
  if (!padding.output.empty()) fill_padding(real, padding.output, 0);
  return real;
}

size_t leaf_number(const Checkable& f, const std::string& name) {
  const auto leaf =
      std::find_if(f.leaves.begin(), f.leaves.end(), [&](const NamedParameter& l) { return l.name == name; });
  check(leaf != f.leaves.end(), "padding", "there is no leaf ", name);
  return static_cast<size_t>(leaf - f.leaves.begin());
}

// The gradients of all leaves, and the real rows of the output.
std::vector<Tensor> pass_with(Checkable& f, double behind, u64 seed) {
  for (const Padding::Place& place : f.padding.places)
    fill_padding(f.leaves[leaf_number(f, place.leaf)].value.mutable_value(), place.lengths, behind);
  const Variable y = f.output();
  std::vector<Tensor> all = gradients_of(f, real_rows(cotangent(y.shape(), y.dtype(), seed), f.padding));
  all.push_back(real_rows(y.value(), f.padding));
  return all;
}

}  // namespace

// Compared with zeros behind the lengths. The cotangent is 0 in padded rows of the output, so that the loss depends on
// real rows only.
ProofPart prove_padding(const Sample& sample, u64 seed) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  for (const Dtype dtype : {f32, f64}) {
    Checkable f = built(sample, dtype, seed);
    if (f.padding.places.empty()) return {};
    const double largest = dtype == f32 ? 1e38 : 1e308, square = dtype == f32 ? 1e19 : 1e154;
    const std::vector<Tensor> expected = pass_with(f, 0, seed);
    for (const Padding::Place& place : f.padding.places)
      for (const Tensor& rows : padded_rows(expected[leaf_number(f, place.leaf)], place.lengths))
        if (!(largest_magnitude({rows}) == 0))
          return part("padding", "the padding of " + place.leaf + " has a gradient");
    for (const double behind : {nan, infinity, -infinity, largest, -largest, square, 1e12, -1e10, 1.0}) {
      const std::string where = first_difference(f.leaves, expected, pass_with(f, behind, seed));
      if (where.empty()) continue;
      std::ostringstream text;
      text << behind << " behind the padding lengths gives other bits for " << where;
      return part("padding", text.str());
    }
  }
  return part("padding", "", "NaN, infinity and huge numbers behind the padding lengths change no bit");
}

}  // namespace orrery::parts
