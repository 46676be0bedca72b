// Chapter 3. The parts of a proof about gradients: those that exist already, a choice of them, shared memory.
#include "autograd/check/proof_parts.h"

#include <algorithm>

#include "autograd/check/rounding.h"
#include "autograd/observer.h"
#include "autograd/ops.h"

namespace orrery::parts {

Tensor cotangent(const Shape& shape, Dtype dtype, u64 seed) {
  Rng rng(23 * seed);
  return randn(shape, rng).to(dtype);
}

std::string first_difference(const Parameters& leaves, const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (!same_bits(a[i], b[i])) return i < leaves.size() ? leaves[i].name : "the output";
  return "";
}

std::vector<Tensor> one_pass(const Checkable& f, u64 seed) {
  const Variable y = f.output();
  std::vector<Tensor> result = gradients_of(f, cotangent(y.shape(), y.dtype(), seed));
  result.push_back(y.value());
  return result;
}

ProofPart part(std::string name, const std::string& problem, const std::string& detail) {
  return {std::move(name), problem.empty(), problem.empty() ? detail : problem};
}

Checkable built(const Sample& sample, Dtype dtype, u64 seed) {
  Checkable f = sample.build(dtype, seed);
  std::set<const Node*> seen;
  std::erase_if(f.leaves, [&](const NamedParameter& leaf) { return !seen.insert(leaf.value.node().get()).second; });
  return f;
}

bool alike(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return false;
  const double scale = std::max(largest_magnitude({a}), largest_magnitude({b}));
  const double tolerance = a.dtype() == f32 ? 1e-6 + 1e-3 * scale : 1e-12 + 1e-10 * scale;
  return largest_magnitude({a - b}) <= tolerance;
}

void run_backward(const Variable& y, const Tensor& dy) {
  if (y.wants_gradient()) backward(y, dy);
}

std::vector<Tensor> take_gradients(Parameters& leaves) {
  std::vector<Tensor> result;
  for (NamedParameter& leaf : leaves) {
    const Tensor& g = leaf.value.gradient();
    result.push_back(g.defined() ? g : zeros(leaf.value.shape(), leaf.value.dtype()));
    leaf.value.clear_gradient();
  }
  return result;
}

namespace {

// The name of the first leaf whose gradient is not a + b; "" if none.
std::string first_unlike(const Parameters& leaves, const std::vector<Tensor>& got, const std::vector<Tensor>& a,
                         const std::vector<Tensor>& b) {
  for (size_t i = 0; i < leaves.size(); ++i)
    if (!alike(got[i], a[i] + b[i])) return leaves[i].name;
  return "";
}

std::vector<Tensor> random_like(const Parameters& leaves, u64 seed) {
  Rng rng(29 * seed);
  std::vector<Tensor> result;
  for (const NamedParameter& leaf : leaves) result.push_back(randn(leaf.value.shape(), rng).to(leaf.value.dtype()));
  return result;
}

// L = <dy, f> + sum <c, leaf>, where the leaves are used once more before f is computed, or after it: backward then
// comes to this second use after f, or before it.
std::vector<Tensor> gradients_with_second_use(Checkable& f, const Tensor& dy, const std::vector<Tensor>& c,
                                              bool before) {
  std::vector<Variable> parts;
  std::vector<Tensor> slopes;
  const auto flat = [](const Variable& x) { return reshape(x, {x.value().count()}); };
  const auto use_leaves = [&] {
    for (size_t i = 0; i < f.leaves.size(); ++i) {
      parts.push_back(flat(mul(f.leaves[i].value, constant(c[i]))));
      slopes.push_back(full({c[i].count()}, 1.0, c[i].dtype()));
    }
  };
  if (before) use_leaves();
  parts.push_back(flat(f.output()));
  slopes.push_back(dy.reshape({dy.count()}));
  if (!before) use_leaves();
  run_backward(concat(parts, 0), concat(slopes, 0));
  return take_gradients(f.leaves);
}

}  // namespace

// The gradient that exists already is a random p, so that its loss is noticed even if the function's own gradient is 0.
ProofPart prove_accumulates(const Sample& sample, u64 seed) {
  const auto failed = [](const std::string& what, const std::string& leaf) {
    return part("accumulates", what + ": the gradient of " + leaf + " is not the sum");
  };
  for (const Dtype dtype : {f32, f64}) {
    Checkable f = built(sample, dtype, seed);
    const Tensor dy = cotangent(f.output().shape(), dtype, seed);
    const std::vector<Tensor> g = gradients_of(f, dy), p = random_like(f.leaves, seed);
    std::vector<Tensor> sum = p;
    for (size_t i = 0; i < p.size(); ++i) f.leaves[i].value.mutable_gradient() = p[i].clone();
    for (const char* what : {"with a gradient there already", "two passes without clearing"}) {
      run_backward(f.output(), dy);
      std::vector<Tensor> now;
      for (const NamedParameter& leaf : f.leaves) now.push_back(leaf.value.gradient().clone());
      const std::string wrong = first_unlike(f.leaves, now, sum, g);
      if (!wrong.empty()) return failed(what, wrong);
      sum = now;
    }
    std::vector<Tensor> kept_gradients;
    for (size_t i = 0; i < p.size(); ++i) kept_gradients.push_back(f.leaves[i].value.mutable_gradient() = p[i].clone());
    run_backward(f.output(), dy);
    const std::string wrong = first_unlike(f.leaves, take_gradients(f.leaves), p, g);
    if (!wrong.empty()) return failed("with a gradient that somebody else holds", wrong);
    const std::string written = first_difference(f.leaves, kept_gradients, p);
    if (!written.empty()) return part("accumulates", "writes into a gradient of " + written + " that others hold");
    for (const bool before : {true, false}) {
      const std::string lost = first_unlike(f.leaves, gradients_with_second_use(f, dy, p, before), p, g);
      if (!lost.empty()) return failed(before ? "used before as well" : "used afterwards as well", lost);
    }
  }
  return part("accumulates", "", "adds to what is there: two passes, a second use before and after");
}

void keep_only(const Variable& y, const std::set<const Node*>& leaves_to_keep) {
  std::vector<std::shared_ptr<Node>> nodes{y.node()};
  std::set<const Node*> seen{y.node().get()}, leading;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (size_t input = 0; input < nodes[i]->inputs.size(); ++input) {
      const std::shared_ptr<Node> node = nodes[i]->inputs[input].node;
      if (node && seen.insert(node.get()).second) nodes.push_back(node);
    }
  }
  std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a->number < b->number; });
  for (const std::shared_ptr<Node>& node : nodes) {
    bool leads = leaves_to_keep.contains(node.get());
    for (Edge& edge : node->inputs) {
      if (edge.node && !leading.contains(edge.node.get())) edge.node.reset();
      leads = leads || edge.node;
    }
    if (leads) leading.insert(node.get());
  }
}

namespace {

// Every choice among up to 4 leaves; among more each alone, and all but each.
std::vector<std::vector<bool>> choices(size_t leaves) {
  std::vector<std::vector<bool>> result;
  if (leaves <= 4) {
    for (unsigned mask = 1; mask + 1 < 1U << leaves; ++mask) {
      result.emplace_back();
      for (size_t i = 0; i < leaves; ++i) result.back().push_back(mask >> i & 1);
    }
    return result;
  }
  for (const bool alone : {true, false}) {
    for (size_t i = 0; i < leaves; ++i) {
      result.emplace_back(leaves, !alone);
      result.back()[i] = alone;
    }
  }
  return result;
}

}  // namespace

ProofPart prove_subsets(const Sample& sample, u64 seed) {
  size_t tried = 0;
  for (const Dtype dtype : {f32, f64}) {
    Checkable f = built(sample, dtype, seed);
    const Tensor dy = cotangent(f.output().shape(), dtype, seed);
    const std::vector<Tensor> all = gradients_of(f, dy);
    const std::vector<std::vector<bool>> subsets = choices(f.leaves.size());
    tried = subsets.size();
    for (const std::vector<bool>& chosen : subsets) {
      std::set<const Node*> leaves_to_keep;
      std::string names;
      for (size_t i = 0; i < chosen.size(); ++i) {
        if (!chosen[i]) continue;
        leaves_to_keep.insert(f.leaves[i].value.node().get());
        names += (names.empty() ? "" : ", ") + f.leaves[i].name;
      }
      const Variable y = f.output();
      if (!y.wants_gradient()) continue;
      keep_only(y, leaves_to_keep);
      backward(y, dy);
      const std::vector<Tensor> some = take_gradients(f.leaves);
      for (size_t i = 0; i < chosen.size(); ++i)
        if (chosen[i] && !alike(some[i], all[i]))
          return part("subsets", "another gradient for " + f.leaves[i].name + " when gradients are wanted for " +
                                     names + " alone");
    }
  }
  return part("subsets", "",
              tried == 0 ? "one input: nothing to choose" : std::to_string(tried) + " choices of inputs, the same");
}

namespace {

// Keeps every dy and every output, as other code might, and checks that they do not change.
class SharedTensors final : public ForwardingObserver {
 public:
  void forward_ended(std::string_view name, std::span<const Variable* const> inputs,
                     std::span<const Tensor> outputs) override {
    ForwardingObserver::forward_ended(name, inputs, outputs);
    for (const Tensor& y : outputs) values_.push_back(snapshot(name, y));
  }
  void backward_begins(const Node& node) override {
    ForwardingObserver::backward_begins(node);
    dy_.clear();
    for (const OutputSlot& output : node.outputs)
      if (output.gradient.defined()) dy_.push_back(snapshot(node.name, output.gradient));
  }
  void backward_ended(const Node& node) override {
    ForwardingObserver::backward_ended(node);
    for (const Snapshot& dy : dy_)
      if (problem.empty() && dy.changed()) problem = dy.name + " writes into dy, which others may share";
  }
  void look_at_values() {
    for (const Snapshot& y : values_)
      if (problem.empty() && y.changed()) problem = "backward writes into what " + y.name + " returned";
  }

  std::string problem;

 private:
  struct Snapshot {
    std::string name;
    Tensor tensor, before;
    u64 version;
    bool changed() const { return tensor.version() != version || !same_bits(tensor, before); }
  };
  static Snapshot snapshot(std::string_view name, const Tensor& x) {
    return {std::string(name), x, x.clone(), x.version()};
  }

  std::vector<Snapshot> dy_, values_;
};

}  // namespace

ProofPart prove_shared(const Sample& sample, u64 seed) {
  for (const Dtype dtype : {f32, f64}) {
    const Checkable f = built(sample, dtype, seed);
    std::vector<Tensor> before;
    for (const NamedParameter& leaf : f.leaves) before.push_back(leaf.value.value().clone());
    SharedTensors shared;
    {
      const ObserverScope scope(shared);
      const Variable y = f.output();
      run_backward(y, cotangent(y.shape(), dtype, seed));
    }
    shared.look_at_values();
    if (!shared.problem.empty()) return part("shared", shared.problem);
    std::vector<Tensor> after;
    for (const NamedParameter& leaf : f.leaves) after.push_back(leaf.value.value());
    const std::string written = first_difference(f.leaves, before, after);
    if (!written.empty()) return part("shared", "a pass writes into " + written);
  }
  return part("shared", "", "dy, inputs and outputs stay as they are");
}

}  // namespace orrery::parts
