// Chapter 2. Nodes: numbering, and freeing long chains.
#include "autograd/node.h"

#include <atomic>

#include "autograd/observer.h"

namespace orrery {
namespace {
std::atomic<u64> next_number{1};
thread_local Observer* current_observer = nullptr;
}  // namespace

Node::Node(std::string_view name, bool is_leaf)
    : name(name), number(next_number.fetch_add(1, std::memory_order_relaxed)), is_leaf(is_leaf) {}

// A chain of a million nodes must not be freed by a million nested destructors. So the first destructor takes all nodes
// that nobody else owns out of their edges, and frees them one after another. They wait in a list that links the nodes
// themselves: a destructor that allocated memory would end the program when there is none left.
Node::~Node() {
  std::shared_ptr<Node> dying;
  const auto take_inputs = [&dying](Node& of) {
    for (Edge& edge : of.inputs) {
      std::shared_ptr<Node> input = std::move(edge.node);
      if (input.use_count() != 1) continue;
      std::atomic_thread_fence(std::memory_order_acquire);  // other threads are finished with it (Tensor::sole_owner)
      input->next_dying_ = std::move(dying);
      dying = std::move(input);
    }
    of.inputs.clear();
  };
  take_inputs(*this);
  while (dying) {
    const std::shared_ptr<Node> node = std::move(dying);
    dying = std::move(node->next_dying_);
    take_inputs(*node);
  }
}

void Node::drop_gradients() {
  for (OutputSlot& output : outputs) output.gradient = Tensor();
}

void Node::use_up() {
  walked = true;
  release();
  drop_gradients();
}

Observer* observer() { return current_observer; }
ObserverScope::ObserverScope(Observer& observer) : before_(current_observer) { current_observer = &observer; }
ObserverScope::~ObserverScope() { current_observer = before_; }

}  // namespace orrery
