// Chapter 3. The walk of an engine that lacks a rule.
#include "autograd/check/faulty_engine.h"

#include <map>
#include <vector>

#include "autograd/grads.h"
#include "autograd/leaf.h"
#include "autograd/observer.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

class FaultyWalk {
 public:
  FaultyWalk(EngineRule missing, bool& needed) : missing_(missing), needed_(needed) {}

  void run(const Variable& y, const Tensor& dy) {
    try {
      Edge start;
      lead_to(y, start);
      add(start, dy);
      while (!waiting_.empty()) visit(take());
    } catch (...) {
      for (const auto& node : reached_)
        for (OutputSlot& output : node->outputs) output.gradient = Tensor();
      throw;
    }
  }

 private:
  void add(const Edge& edge, const Tensor& g);
  std::shared_ptr<Node> take();
  void visit(const std::shared_ptr<Node>& node);

  const EngineRule missing_;
  bool& needed_;
  std::map<u64, std::shared_ptr<Node>> waiting_;  // by number: the oldest first
  std::vector<std::shared_ptr<Node>> reached_;
};

void FaultyWalk::add(const Edge& edge, const Tensor& g) {
  OutputSlot& slot = edge.slot();
  reached_.push_back(edge.node);
  waiting_[edge.node->number] = edge.node;
  const bool broadcast = g.shape() != slot.shape;
  if (broadcast && missing_ == EngineRule::unbroadcast) needed_ = true;
  const Tensor fitting = broadcast && missing_ != EngineRule::unbroadcast ? sum_to(g, slot.shape) : g;
  slot.gradient = slot.gradient.defined() ? slot.gradient + fitting : fitting.clone();
}

std::shared_ptr<Node> FaultyWalk::take() {
  const bool oldest = missing_ == EngineRule::newest_first;
  if (oldest && waiting_.size() > 1) needed_ = true;
  const auto at = oldest ? waiting_.begin() : std::prev(waiting_.end());
  const std::shared_ptr<Node> node = at->second;
  waiting_.erase(at);
  return node;
}

void FaultyWalk::visit(const std::shared_ptr<Node>& node) {
  if (const auto* leaf = dynamic_cast<const Leaf*>(node.get())) {
    if (Observer* o = observer()) o->leaf_reached(*leaf);
    return;
  }
  check(!node->walked, "faulty engine", node->name, " was visited before");
  for (const OutputSlot& output : node->outputs)
    check(!output.gradient.defined() || output.gradient.shape() == output.shape, "faulty engine",
          "a gradient of shape ", output.gradient.shape(), " reached an output of shape ", output.shape);
  Grads dx(*node, true);
  node->backward(dx);
  for (size_t i = 0; i < node->inputs.size(); ++i)
    if (dx.isolated(i).defined()) add(node->inputs[i], dx.isolated(i));
  node->use_up();
  node->inputs.clear();
}

}  // namespace

void backward_without(EngineRule rule, const Variable& y, const Tensor& dy, bool& needed) {
  FaultyWalk(rule, needed).run(y, dy);
}

}  // namespace orrery
