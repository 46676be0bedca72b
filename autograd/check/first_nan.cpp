// Chapter 3. First NaN: an observer that looks at every output forward, and at every contribution backward.
#include "autograd/check/first_nan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <utility>

#include "autograd/check/gradcheck.h"
#include "autograd/leaf.h"
#include "autograd/observer.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

// The parameter that was used last before `node`. It distinguishes one gelu of a model from another.
const Leaf* nearest_parameter(const Node& node) {
  const Node* at = &node;
  while (at) {
    const Node* newest = nullptr;
    for (const Edge& edge : at->inputs) {
      if (const auto* leaf = dynamic_cast<const Leaf*>(edge.node.get())) return leaf;
      if (edge.node && (!newest || edge.node->number > newest->number)) newest = edge.node.get();
    }
    at = newest;
  }
  return nullptr;
}

std::string origin_of(const Node* node) {
  if (!node) return "from a constant";
  std::string text = "from " + node->origin();
  if (dynamic_cast<const Leaf*>(node)) return text;
  const Leaf* parameter = nearest_parameter(*node);
  return parameter ? text + ", after " + parameter->origin() : text;
}

const char* name_of_severity(int severity) { return severity == 2 ? "NaN" : "infinity"; }

int worst(const std::vector<ValueRange>& ranges) {
  int severity = 0;
  for (const ValueRange& range : ranges) severity = std::max(severity, range.severity());
  return severity;
}

void add_line(std::ostream& text, const char* what, size_t i, const ValueRange& range, const std::string& origin = "") {
  text << "\n  " << what << ' ' << i << ": " << range << (origin.empty() ? "" : "  ") << origin;
}

class NonFiniteFinder final : public ForwardingObserver {
 public:
  void forward_ended(std::string_view name, std::span<const Variable* const> inputs,
                     std::span<const Tensor> outputs) override {
    ForwardingObserver::forward_ended(name, inputs, outputs);
    look_forward(name, inputs, outputs);
    ++forward_index_;
  }
  void backward_begins(const Node& node) override {
    ForwardingObserver::backward_begins(node);
    look_at_sum(node);
  }
  void backward_ended(const Node& node) override {
    ForwardingObserver::backward_ended(node);
    ++backward_index_;
  }
  bool changes_contributions() const override { return true; }
  void contribution(const Node& node, size_t input, Tensor& g) override {
    ForwardingObserver::contribution(node, input, g);
    if (g.defined()) look_backward(node, input, g);
  }
  void leaf_reached(const Leaf& leaf) override {
    ForwardingObserver::leaf_reached(leaf);
    look_at_sum(leaf);
  }

  /// Forward ended with a finite loss, so constants that are not finite were intended.
  void excuse_constants() {
    if (!certain_) first_found = {};
  }

  FirstNonFinite first_found;
  std::vector<Variable> leaves;  // parameters that forward read

 private:
  void look_forward(std::string_view name, std::span<const Variable* const> inputs, std::span<const Tensor> outputs);
  void look_backward(const Node& node, size_t input, const Tensor& g);
  void look_at_sum(const Node& node);
  void remember_leaf(const Variable& x);

  i64 forward_index_ = 0, backward_index_ = 0;
  int reported_ = 0;      // severity of `first_found`
  bool certain_ = false;  // `first_found` made it itself, or read it from a parameter; else it only passed it on
  std::map<std::pair<u64, int>, ValueRange> values_;  // by node number and output: what operations read in forward
};

void NonFiniteFinder::remember_leaf(const Variable& x) {
  if (!x.is_leaf()) return;
  const bool known =
      std::any_of(leaves.begin(), leaves.end(), [&](const Variable& leaf) { return leaf.node() == x.node(); });
  if (!known) leaves.push_back(x);
}

// A parameter that is not finite is reported, since no operation made it. A constant that is not finite may be intended
// (the -infinity of a mask), and is reported only if nothing else is found.
void NonFiniteFinder::look_forward(std::string_view name, std::span<const Variable* const> inputs,
                                   std::span<const Tensor> outputs) {
  std::vector<ValueRange> in, out;
  std::ostringstream lines;
  int known = 0;
  bool from_parameter = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Variable& x = *inputs[i];
    if (!x.defined()) continue;
    in.push_back(range_of(x.value()));
    if (x.node()) values_[{x.node()->number, x.output()}] = in.back();
    remember_leaf(x);
    if (!x.is_leaf()) known = std::max(known, in.back().severity());
    from_parameter |= x.is_leaf() && !in.back().finite();
    add_line(lines, "input", i, in.back(), origin_of(x.node().get()));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    out.push_back(range_of(outputs[i]));
    add_line(lines, "output", i, out.back());
  }
  const int severity = worst(out);
  const bool made_here = severity > known;
  if (severity == 0 || certain_ || (!made_here && severity <= reported_)) return;
  certain_ = made_here;
  reported_ = severity;
  std::ostringstream text;
  text << name << " (operation " << forward_index_ + 1 << " of forward) ";
  if (from_parameter)
    text << "read a parameter that is not finite, and ";
  else if (!made_here)
    text << "read a constant that is not finite, and ";
  text << "gave " << name_of_severity(severity) << (worst(in) == 0 ? " from finite inputs" : "") << lines.str();
  first_found = {true, false, std::string(name), forward_index_, text.str()};
}

void NonFiniteFinder::look_backward(const Node& node, size_t input, const Tensor& g) {
  const ValueRange result = range_of(g);
  if (first_found.found || result.finite()) return;
  std::ostringstream text;
  text << node.name << " (operation " << backward_index_ + 1 << " of backward) gave "
       << name_of_severity(result.severity()) << " as gradient of its input " << input
       << ", from finite gradients of its outputs; forward was finite";
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Edge& edge = node.inputs[i];
    if (edge.node) add_line(text, "input", i, values_[{edge.node->number, edge.output}], origin_of(edge.node.get()));
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].gradient.defined()) add_line(text, "dL/d output", i, range_of(node.outputs[i].gradient));
  }
  add_line(text, "dL/d input", input, result);
  first_found = {true, true, std::string(node.name), backward_index_, text.str()};
}

// Contributions that are finite, each by itself, may add up to infinity.
void NonFiniteFinder::look_at_sum(const Node& node) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (first_found.found || !node.outputs[i].gradient.defined()) continue;
    const ValueRange sum = range_of(node.outputs[i].gradient);
    if (sum.finite()) continue;
    std::ostringstream text;
    text << "the gradients that reach " << node.origin() << " are finite, but add up to "
         << name_of_severity(sum.severity());
    add_line(text, "dL/d output", i, sum);
    first_found = {true, true, std::string(node.name), backward_index_, text.str()};
  }
}

// Sets the gradients of parameters aside while it lives.
class KeptGradients {
 public:
  explicit KeptGradients(std::vector<Variable> leaves) : leaves_(std::move(leaves)) {
    for (const Variable& leaf : leaves_) kept_.push_back(leaf.gradient());
    for (Variable& leaf : leaves_) leaf.clear_gradient();
  }
  ~KeptGradients() {
    for (size_t i = 0; i < leaves_.size(); ++i) leaves_[i].mutable_gradient() = kept_[i];
  }
  KeptGradients(const KeptGradients&) = delete;
  KeptGradients& operator=(const KeptGradients&) = delete;

 private:
  std::vector<Variable> leaves_;
  std::vector<Tensor> kept_;
};

}  // namespace

ValueRange range_of(const Tensor& x) {
  ValueRange range{.shape = x.shape()};
  bool any = false;
  dispatch_floating(x.dtype(), "range_of", [&](auto t) {
    const auto* value = x.data<decltype(t)>();
    for (i64 i = 0; i < x.count(); ++i) {
      const double v = static_cast<double>(value[i]);
      if (std::isfinite(v)) {
        range.min = any ? std::min(range.min, v) : v;
        range.max = any ? std::max(range.max, v) : v;
        any = true;
      } else {
        ++(std::isnan(v) ? range.nans : range.infinities);
        if (range.first_non_finite < 0) range.first_non_finite = i;
      }
    }
  });
  return range;
}

std::ostream& operator<<(std::ostream& out, const ValueRange& range) {
  out << range.shape << " min " << range.min << " max " << range.max;
  if (range.finite()) return out << ", all finite";
  if (range.nans > 0) out << ", " << range.nans << " NaN";
  if (range.infinities > 0) out << ", " << range.infinities << " infinite";
  return out << ", first at " << place("", range.shape, range.first_non_finite);
}

FirstNonFinite find_first_non_finite(const std::function<Variable()>& loss) {
  NonFiniteFinder finder;
  const ObserverScope scope(finder);
  const Variable y = loss();
  if (range_of(y.value()).finite()) finder.excuse_constants();
  if (!finder.first_found.found && y.wants_gradient()) {
    const KeptGradients kept(finder.leaves);
    backward(y);
  }
  if (!finder.first_found.found) finder.first_found.text = "run once more, every number of the pass was finite";
  return finder.first_found;
}

void check_finite(double loss, const Parameters& parameters, const std::function<Variable()>& replay) {
  std::string problem;
  if (!std::isfinite(loss)) problem = "the loss is not finite";
  for (const NamedParameter& p : parameters) {
    const Tensor& g = p.value.gradient();
    // The sum of squares is fast, but it may overflow although the numbers themselves are finite.
    if (!problem.empty() || !g.defined() || std::isfinite(sum_of_squares(g)) || range_of(g).finite()) continue;
    problem = "the gradient of parameter " + p.name + " is not finite";
  }
  if (!problem.empty())
    fail("train", problem, ", so the optimiser's step must not be made\n", Lines{explain_non_finite(replay)});
}

std::string explain_non_finite(const std::function<Variable()>& loss) { return find_first_non_finite(loss).text; }

}  // namespace orrery
