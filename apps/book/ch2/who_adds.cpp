// Chapter 2. Contributions: what each operation adds to the gradient of each input.
// Question: in L = sum of x w + w, where w [3] is broadcast to [2, 3] twice, what adds up to dL/dw?
// Answer: `add` gives [2, 2, 2] and `mul` gives [5, 7, 9], each summed down from [2, 3] to [3] by the engine; the
//   first is written, the second added.
#include <iostream>

#include "autograd/observer.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

// Prints each contribution, and what stood in that gradient before.
struct Bookkeeper : Observer {
  int written = 0, added = 0;
  bool changes_contributions() const override { return true; }
  void contribution(const Node& node, size_t input, Tensor& g) override {
    const Edge& edge = node.inputs[input];
    const bool first = !edge.slot().gradient.defined();
    ++(first ? written : added);
    std::cout << node.name << (first ? " writes to " : " adds to ") << edge.node->origin() << ": " << g << '\n';
  }
};

}  // namespace

int main() {
  const Variable x = parameter(Tensor::of<double>({2, 3}, {1, 2, 3, 4, 5, 6}), "x");
  const Variable w = parameter(Tensor::of<double>({3}, {10, 20, 30}), "w");
  const Variable loss = sum(x * w + w);
  std::cout << "L = " << loss.item() << '\n';

  Bookkeeper bookkeeper;
  {
    const ObserverScope watching(bookkeeper);
    backward(loss);
  }
  std::cout << "dL/dw = " << w.gradient() << '\n';
  std::cout << bookkeeper.written << " contributions were written, " << bookkeeper.added << " added\n";
  return same_bits(w.gradient(), Tensor::of<double>({3}, {7, 9, 11})) && bookkeeper.added == 1 ? 0 : 1;
}
