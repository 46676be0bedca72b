// Chapter 2. The tape by example: what backward visits, and in which order.
// Question: for y = a b + c with a = 2, b = 3, c = 4, which nodes does backward visit, and what do a, b, c receive?
// Answer: first `add`, then `mul`, newest first; da = b = 3, db = a = 2, dc = 1.
// Read next: autograd/elementwise.h
#include <iostream>
#include <optional>

#include "apps/book/measured.h"
#include "autograd/leaf.h"
#include "autograd/observer.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

// Writes down what runs. An Observer only watches: results do not depend on it.
struct Diary : Observer {
  std::string visited;
  void forward_begins(std::string_view name, std::span<const Variable* const>) override {
    std::cout << "forward   " << name << '\n';
  }
  void backward_begins(const Node& node) override {
    std::cout << "backward  " << node.name << "  (node " << node.number << ")\n";
    visited += std::string(node.name) + ' ';
  }
  void leaf_reached(const Leaf& leaf) override { std::cout << "reached   " << leaf.label << '\n'; }
};

// What a node costs: a chain of sums of single numbers, and one sum of a tensor of as many.
void measure() {
  constexpr i64 count = 100'000;
  const Variable one = parameter(full({}, 1.0)), all = parameter(full({count}, 1.0));
  Variable y;
  const auto chain = [&] {
    for (i64 i = 0; i < count; ++i) y = y + one;
  };
  const double forward = book::shortest_ms(chain, [&] { y = one; });
  const double back = book::shortest_ms([&] { backward(y); },
                                        [&] {
                                          y = one;
                                          chain();
                                        });
  const double tensor = book::shortest_ms([&] { backward(sum(all + all)); });
  std::cout << "measured: " << count << " nodes of a single number each: " << forward << " ms forward, " << back
            << " ms back; one node of " << count << " numbers: " << tensor << " ms both ways\n";
}

}  // namespace

int main() {
  Diary diary;
  std::optional<ObserverScope> looking_on(std::in_place, diary);
  const Variable a = parameter(full({}, 2.0), "a");
  const Variable b = parameter(full({}, 3.0), "b");
  const Variable c = parameter(full({}, 4.0), "c");
  const Variable y = a * b + c;
  std::cout << "y = " << y.item() << ", made by " << y.node()->name << ", number " << y.node()->number << "\n\n";

  backward(y);
  const double da = a.gradient().item(), db = b.gradient().item(), dc = c.gradient().item();
  std::cout << "da = " << da << ", db = " << db << ", dc = " << dc << '\n';

  bool refused = false;
  try {
    backward(y);
  } catch (const Error& error) {
    std::cout << "\na second walk is refused:\n  " << error.what() << '\n';
    refused = true;
  }
  looking_on.reset();
  measure();
  return diary.visited == "add mul " && da == 3 && db == 2 && dc == 1 && refused ? 0 : 1;
}
