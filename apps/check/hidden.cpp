// Chapter 9. Mistakes that a single backward pass does not show: each must be caught by a certain part of a proof.
//
// They test the checker, not the function that is proven: `orrery gradcheck --mutate` makes them in each operation.
#include "apps/check/table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "autograd/check/mistakes.h"
#include "autograd/check/proof_parts.h"
#include "autograd/check/rounding.h"
#include "autograd/leaf.h"
#include "core/machine/parallel.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

// bf16 is the upper half of f32. A number in the middle between two of bf16 becomes the larger one in magnitude.
Tensor rounded_to_bf16(const Tensor& x) {
  Tensor result = x.clone();
  float* values = result.write<float>();
  for (i64 i = 0; i < x.count(); ++i)
    values[i] = std::bit_cast<float>((std::bit_cast<u32>(values[i]) + 0x8000U) & 0xFFFF0000U);
  return result;
}

}  // namespace

const std::vector<Hidden::Named>& Hidden::kinds() {
  static const std::vector<Named> all{{Kind::overwrites, "overwrites what is there", "accumulates"},
                                      {Kind::adds_twice, "adds twice to what is there", "accumulates"},
                                      {Kind::others_frozen, "x 2 where another input is frozen", "subsets"},
                                      {Kind::writes_dy, "writes into dy", "shared"},
                                      {Kind::remembers, "adds what the first pass added", "interleaved"},
                                      {Kind::latest, "x 2 after a later forward", "interleaved"},
                                      {Kind::coarse, "rounded to bf16 in f32", "f32"},
                                      {Kind::far, "x 2 where an input is beyond 6", "far"},
                                      {Kind::far_in_f32, "x 2 in f32 where an input is beyond 6", "far"},
                                      {Kind::four_threads, "x 2 with 4 threads", "threads"},
                                      {Kind::many_threads, "x 2 with more than 8 threads", "threads"},
                                      {Kind::other_thread, "x 2 in another thread", "threads"},
                                      {Kind::sets_threads, "sets the number of threads", "threads"},
                                      {Kind::fiftieth, "x 2 in every 50th pass", "repeatable"},
                                      {Kind::keeps_dy, "keeps every dy", "repeatable"},
                                      {Kind::dy_of_1, "x 2 where dy is 1 everywhere", "linear"},
                                      {Kind::uniform_dy, "x 2 where dy is the same everywhere", "linear"},
                                      {Kind::dy_with_0, "x 2 where some of dy is 0", "linear"},
                                      {Kind::small_dy, "x 2 where all of dy is below 1e-3", "linear"},
                                      {Kind::large_dy, "x 2 where some of dy is above 100", "linear"},
                                      {Kind::at_0, "x 2 where some of an input is 0", "small"},
                                      {Kind::tiny_in_f32, "x 2 in f32 where some of an input is tiny", "small"},
                                      {Kind::computed, "x 2 behind a computed input", "composed"},
                                      {Kind::one_tensor, "x 2 for an input that is an earlier one too", "composed"}};
  return all;
}

void Hidden::forward_ended(std::string_view name, std::span<const Variable* const> inputs, std::span<const Tensor>) {
  constexpr std::array of_inputs{Kind::far, Kind::far_in_f32, Kind::at_0, Kind::tiny_in_f32};
  if (name != operation_ || std::find(of_inputs.begin(), of_inputs.end(), kind_) == of_inputs.end()) return;
  const double limit = kind_ == Kind::tiny_in_f32 ? std::numeric_limits<double>::denorm_min() : 0;
  smallest_input_ = std::numeric_limits<double>::infinity();
  largest_input_ = 0;
  for (const Variable* input : inputs) {
    for (i64 i = 0; input->defined() && i < input->value().count(); ++i) {
      const double magnitude = std::fabs(input->value().at(i));
      largest_input_ = std::max(largest_input_, magnitude);
      if (magnitude >= limit) smallest_input_ = std::min(smallest_input_, magnitude);
    }
  }
}

void Hidden::recorded(const Node& node) {
  if (node.name == operation_) latest_ = node.number;
}

// A pass visits its newest node first.
void Hidden::backward_begins(const Node& node) {
  if (node.number > at_) {
    root_ = node.number;
    ++passes_;
    place_ = 0;
  }
  at_ = node.number;
}

void Hidden::backward_ended(const Node& node) {
  if ((kind_ != Kind::writes_dy && kind_ != Kind::keeps_dy) || node.name != operation_) return;
  for (const OutputSlot& output : node.outputs) {
    Tensor dy = output.gradient;
    if (!dy.defined()) continue;
    if (kind_ == Kind::writes_dy)
      double_values(dy);
    else
      kept_.push_back(dy);
    changed_ = changed_ || (kind_ == Kind::keeps_dy && dy.count() > 0);
  }
}

void Hidden::double_values(Tensor& g) {
  if (is_zero(g) || std::isinf(largest_magnitude({g}))) return;
  changed_ = true;
  scale_in_place(g, 2);
}

void Hidden::replace(Tensor& g, const Tensor& wrong) {
  changed_ = changed_ || !is_zero(wrong - g);
  g = wrong;
}

void Hidden::recall(Tensor& g) {
  Tensor& first = first_pass_[{g.dtype(), place_}];
  if (!first.defined()) first = g.clone();
  if (first.shape() != g.shape() || same_bits(first, g)) return;
  replace(g, first.clone());
}

namespace {

// Magnitudes of the numbers of dL/dy, of the first output that has one.
struct Numbers {
  double smallest = std::numeric_limits<double>::infinity(), largest = 0;
  bool equal = true, all_1 = true;
  i64 count = 0;
};
Numbers numbers_of_dy(const Node& node) {
  Numbers result;
  for (const OutputSlot& output : node.outputs) {
    const Tensor& dy = output.gradient;
    if (!dy.defined()) continue;
    for (i64 i = 0; i < dy.count(); ++i) {
      result.smallest = std::min(result.smallest, std::fabs(dy.at(i)));
      result.largest = std::max(result.largest, std::fabs(dy.at(i)));
      result.equal = result.equal && dy.at(i) == dy.at(0);
      result.all_1 = result.all_1 && dy.at(i) == 1;
    }
    result.count = dy.count();
    return result;
  }
  return result;
}

bool is_computed(const Edge& edge) { return edge.node && !dynamic_cast<const Leaf*>(edge.node.get()); }

// Whether an earlier input is the same tensor.
bool is_repeated(const Node& node, size_t input) {
  const Edge& edge = node.inputs[input];
  return std::any_of(node.inputs.begin(), node.inputs.begin() + static_cast<std::ptrdiff_t>(input),
                     [&](const Edge& other) { return other.node == edge.node && other.output == edge.output; });
}

}  // namespace

// Whether a mistake that doubles g where something is special does so here.
bool Hidden::applies(const Node& node, size_t input) const {
  const bool single = !node.outputs.empty() && node.outputs[0].dtype == f32;
  switch (kind_) {
    case Kind::far: return largest_input_ > 6;
    case Kind::far_in_f32: return single && largest_input_ > 6;
    case Kind::at_0: return smallest_input_ == 0 && largest_input_ > 0;  // alone it may be a kink, as of ELU
    case Kind::tiny_in_f32: return single && smallest_input_ < 1e-15;
    case Kind::four_threads: return threads() == 4;
    case Kind::many_threads: return threads() > 8;
    case Kind::other_thread: return std::this_thread::get_id() != home_;
    case Kind::fiftieth: return passes_ % 50 == 0;
    case Kind::latest: return latest_ > root_;
    case Kind::computed: return std::any_of(node.inputs.begin(), node.inputs.end(), is_computed);
    case Kind::one_tensor: return is_repeated(node, input);
    default: break;
  }
  const Numbers dy = numbers_of_dy(node);
  switch (kind_) {
    case Kind::dy_of_1: return dy.all_1;
    case Kind::uniform_dy: return dy.equal && dy.count > 1;
    case Kind::dy_with_0: return dy.smallest == 0 && dy.largest > 0;
    case Kind::small_dy: return dy.largest < 1e-3;
    case Kind::large_dy: return dy.largest > 100;
    default: return false;
  }
}

void Hidden::contribution(const Node& node, size_t input, Tensor& g) {
  ++place_;
  if (node.name != operation_) return;
  const Tensor& so_far = node.inputs[input].slot().gradient;
  const auto inputs_with_gradient = static_cast<size_t>(
      std::count_if(node.inputs.begin(), node.inputs.end(), [](const Edge& edge) { return edge.node != nullptr; }));
  most_inputs_with_gradient_ = std::max(most_inputs_with_gradient_, inputs_with_gradient);
  switch (kind_) {
    case Kind::overwrites:
      changed_ = changed_ || (so_far.defined() && !is_zero(so_far));
      if (so_far.defined()) g = g - so_far;
      break;
    case Kind::adds_twice:
      if (so_far.defined()) double_values(g);
      break;
    case Kind::others_frozen:
      if (inputs_with_gradient < most_inputs_with_gradient_) double_values(g);
      break;
    case Kind::remembers: recall(g); break;
    case Kind::coarse:
      if (g.dtype() == f32) replace(g, rounded_to_bf16(g));
      break;
    case Kind::sets_threads:
      set_threads(threads() + 1);
      changed_ = true;
      break;
    case Kind::writes_dy:
    case Kind::keeps_dy: break;
    default:
      if (applies(node, input)) double_values(g);
  }
}

namespace {

// One of the four draws of a proof is enough here.
ProofPart prove_f32(const Sample& sample, u64 seed) {
  return parts::part("f32", compare_precisions(sample, seed).problem);
}

bool part_passes(const std::string& part, const Sample& sample, u64 seed, Observer& mistake) {
  using namespace parts;
  using Prove = ProofPart (*)(const Sample&, u64);
  static const std::map<std::string, Prove> all{
      {"accumulates", prove_accumulates}, {"subsets", prove_subsets}, {"shared", prove_shared},
      {"interleaved", prove_interleaved}, {"far", prove_far},         {"threads", prove_threads},
      {"repeatable", prove_repeatable},   {"f32", prove_f32},         {"linear", prove_linear},
      {"composed", prove_composed},       {"small", prove_small}};
  const ObserverScope scope(mistake);
  try {
    return all.at(part)(sample, seed).ok;
  } catch (const std::exception&) { return false; }
}

// An operation with a mistake that a single pass may hide: caught by the part of a proof that it is made for, or by a
// gradient check.
Mutant judge_hidden(const Hidden::Named& hidden, const std::string& operation, const Sample& sample,
                    const GradcheckOptions& options) {
  Mutant mutant{.operation = operation, .contribution = -1, .input = -1, .change = hidden.change};
  Hidden mistake(hidden.kind, operation), again(hidden.kind, operation);
  if (!part_passes(hidden.part, sample, options.seed, mistake)) {
    mutant.fate = Mutant::Fate::caught;
    mutant.why_not = hidden.part;
  } else if (!mistake.changed_anything()) {
    mutant.fate = Mutant::Fate::equivalent;
    mutant.why_not = "there is nothing that it could change";
  } else {
    // An operation that adds to one gradient twice shows it in the first pass already.
    const ObserverScope scope(again);
    mutant.caught_by = gradcheck(sample.build(f64, options.seed), options).failed_check();
    mutant.fate = mutant.caught_by == GradientCheck::none ? Mutant::Fate::survived : Mutant::Fate::caught;
    mutant.why_not = std::string("the part \"") + hidden.part + "\" passes";
  }
  return mutant;
}

}  // namespace

MutationReport hidden_mutants(const Sample& sample, u64 seed) {
  const parts::KeepThreads keep;
  set_threads(1);  // fastest for tiny tensors; no result depends on it
  GradcheckOptions options = sample.options;
  options.seed = gradcheck(sample, seed).seed;
  const Checkable f = sample.build(f64, options.seed);
  MutationReport report;
  if (parts::longest_leaf(f) >= parts::long_tensor) return report;
  if (std::all_of(f.leaves.begin(), f.leaves.end(), [](const auto& leaf) { return leaf.value.value().count() == 0; }))
    return report;  // no gradient has a number that could be wrong
  const std::vector<Change> none;
  Recorder recorder(f, none);
  {
    const ObserverScope scope(recorder);
    gradients_of(f, parts::cotangent(f.output().shape(), f64, options.seed));
  }
  std::vector<std::string> operations;
  for (const Contribution& contribution : recorder.contributions)
    if (std::find(operations.begin(), operations.end(), contribution.operation) == operations.end())
      operations.push_back(contribution.operation);
  // A large sample, of which only some coordinates are checked, hides mistakes in one operation alone.
  if (options.coordinates > 0 && operations.size() > 1) operations.resize(1);
  for (const std::string& operation : operations) {
    for (const Hidden::Named& hidden : Hidden::kinds()) {
      // Far out, the rounding of functions with weights hides it (autograd/check/rounding.h).
      if (hidden.kind == Hidden::Kind::far_in_f32 && f.inputs < f.leaves.size()) continue;
      report.mutants.push_back(judge_hidden(hidden, operation, sample, options));
    }
  }
  return report;
}

}  // namespace orrery
