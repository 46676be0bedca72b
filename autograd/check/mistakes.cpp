// Chapter 3. The mistakes, one by one.
#include "autograd/check/mistakes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "autograd/check/rounding.h"
#include "autograd/leaf.h"
#include "core/machine/parallel.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

// The gradient before a contribution is added; not defined if it is the first.
const Tensor& gradient_so_far(const Node& node, size_t input) { return node.inputs[input].slot().gradient; }

// The numbers of the transposed matrix in the shape of x: rows and columns mixed up.
Tensor transposed(const Tensor& x) {
  std::vector<i64> order(static_cast<size_t>(x.rank()));
  std::iota(order.begin(), order.end(), i64{0});
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return permute(x, order).reshape(x.shape());
}

bool can_be_transposed(const Tensor& x) { return x.rank() >= 2 && x.size(-1) > 1 && x.size(-2) > 1 && x.count() > 0; }

bool is_symmetric(const Tensor& x) { return can_be_transposed(x) && same_bits(x, transposed(x)); }

// True if every element is 0 up to rounding. A difference of two nearly equal numbers keeps the rounding of its terms:
// in f32, where these may be in the hundreds, up to 1e-3.
bool is_zero(const Tensor& x) {
  const double rounding = x.dtype() == f32 ? 1e-3 : 1e-14;
  for (i64 i = 0; i < x.count(); ++i)
    if (!(std::fabs(x.at(i)) <= rounding)) return false;
  return true;
}

// The leaves that `node` was computed from; `node` itself if it is one.
std::set<const Node*> leaves_below(const Node& node) {
  std::set<const Node*> seen{&node}, leaves;
  for (std::vector<const Node*> waiting{&node}; !waiting.empty();) {
    const Node* at = waiting.back();
    waiting.pop_back();
    if (dynamic_cast<const Leaf*>(at)) leaves.insert(at);
    for (const Edge& edge : at->inputs)
      if (edge.node && seen.insert(edge.node.get()).second) waiting.push_back(edge.node.get());
  }
  return leaves;
}

// bf16 is the upper half of f32. A number in the middle between two of bf16 becomes the larger one in magnitude.
Tensor rounded_to_bf16(const Tensor& x) {
  Tensor result = x.clone();
  float* values = result.write<float>();
  for (i64 i = 0; i < x.count(); ++i)
    values[i] = std::bit_cast<float>((std::bit_cast<u32>(values[i]) + 0x8000U) & 0xFFFF0000U);
  return result;
}

constexpr i64 first_late_row = elementwise_grain;  // no loop over rows has this row in its first chunk
bool has_late_rows(const Tensor& x) {
  return x.rank() > 0 && x.count() > 0 && x.size(0) > first_late_row && !is_zero(x.rows(first_late_row, x.size(0)));
}

}  // namespace

std::vector<Change> all_changes() {
  std::vector<Change> changes;
  const auto anywhere = [](const Tensor&, const Tensor&) { return true; };
  const auto factor = [&](const std::string& name, double value) {
    changes.push_back({name, anywhere, [value](const Tensor& g, const Tensor&) { return g * value; }});
  };
  factor("x 0", 0);
  factor("x -1", -1);
  factor("x 2", 2);
  factor("x 1.0001", 1.0001);
  changes.push_back({"dropped", anywhere, [](const Tensor&, const Tensor&) { return Tensor(); }});
  changes.push_back({"overwriting", [](const Tensor&, const Tensor& so_far) { return so_far.defined(); },
                     [](const Tensor& g, const Tensor& so_far) { return g - so_far; }});
  changes.push_back({"transposed", [](const Tensor& g, const Tensor&) { return can_be_transposed(g); },
                     [](const Tensor& g, const Tensor&) { return transposed(g); }});
  changes.push_back({"x 2 from row " + std::to_string(first_late_row) + " on",
                     [](const Tensor& g, const Tensor&) { return has_late_rows(g); },
                     [](const Tensor& g, const Tensor&) {
                       Tensor wrong = g.clone(), late = wrong.rows(first_late_row, g.size(0));
                       scale_in_place(late, 2);
                       return wrong;
                     }});
  return changes;
}

void Recorder::contribution(const Node& node, size_t input, Tensor& g) {
  const Tensor& so_far = gradient_so_far(node, input);
  Contribution found{.operation = std::string(node.name),
                     .input = static_cast<i64>(input),
                     .from = node.number,
                     .to = node.inputs[input].node->number,
                     .empty = g.count() == 0,
                     .zero = is_zero(g),
                     .symmetric = is_symmetric(g),
                     .declared_zero = declared_zero(*node.inputs[input].node),
                     .possible = {}};
  for (const Change& change : changes_) found.possible.push_back(change.possible(g, so_far));
  accumulates = accumulates || so_far.defined();
  contributions.push_back(std::move(found));
}

std::string Recorder::declared_zero(const Node& node) const {
  if (f_.zeros.empty()) return "";
  std::string reasons;
  for (const Node* reached : leaves_below(node)) {
    const auto leaf = std::find_if(f_.leaves.begin(), f_.leaves.end(),
                                   [&](const NamedParameter& p) { return p.value.node().get() == reached; });
    const auto zero = std::find_if(f_.zeros.begin(), f_.zeros.end(), [&](const DeclaredZero& z) {
      return leaf != f_.leaves.end() && z.name == leaf->name;
    });
    if (zero == f_.zeros.end()) return "";
    if (reasons.find(zero->reason) == reasons.npos) reasons += (reasons.empty() ? "" : "; ") + zero->reason;
  }
  return reasons;
}

void ChangeOne::contribution(const Node& node, size_t input, Tensor& g) {
  const Tensor& so_far = gradient_so_far(node, input);
  if (seen_++ == target_) g = change_.apply(g, so_far);
}

void OverwriteAll::contribution(const Node& node, size_t input, Tensor& g) {
  const Tensor& so_far = gradient_so_far(node, input);
  if (so_far.defined()) g = g - so_far;
}

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
    case Kind::at_0: return smallest_input_ == 0;
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
  const Tensor& so_far = gradient_so_far(node, input);
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

}  // namespace orrery
