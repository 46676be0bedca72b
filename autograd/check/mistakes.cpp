// Chapter 3. The mistakes, one by one.
#include "autograd/check/mistakes.h"

#include <algorithm>
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

}  // namespace orrery
