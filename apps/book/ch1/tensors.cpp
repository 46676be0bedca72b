// Chapter 1. Tensors by example: creating, reshaping, broadcasting.
// Question: what is the sum of a column 10, 20, 30 and a row 1, 2, 3, 4, and what does reshape copy?
// Answer: shapes are aligned at the last axis, and an axis of size 1 is repeated: [3, 1] with [4] gives [3, 4], whose
//   element (i, j) is column i + row j. Reshape copies nothing: both tensors share the same memory.
// Read next: autograd/variable.h
#include <iostream>

#include "apps/book/measured.h"
#include "core/tensor_ops.h"

using namespace orrery;

int main() {
  const Tensor column = Tensor::of<float>({3, 1}, {10, 20, 30});
  const Tensor row = Tensor::of<float>({4}, {1, 2, 3, 4});
  const Tensor table = column + row;
  std::cout << "column\n" << column << "\nrow\n" << row << "\ncolumn + row\n" << table << "\n\n";

  Tensor flat = table.reshape({-1});  // -1: computed from the count
  std::cout << "reshaped to one axis\n" << flat << '\n';
  flat.write<float>()[5] = 0;
  std::cout << "after a write to element 5 of it, the table is\n" << table << "\n\n";

  // Element (i, j) of [3, 4] is number i * 4 + j of the memory, so (1, 1) is number 5.
  const bool shared = flat.shares_memory_with(table) && table.at(5) == 0;
  const bool added = table.shape() == Shape{3, 4} && table.at(0) == 11 && table.at(11) == 34;

  try {
    column + Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  } catch (const Error& error) {
    std::cout << "what does not fit is an error that says why:\n  " << error.what() << '\n';
  }

  const Tensor large = zeros({2048, 2048});
  const double view = book::shortest_ms([&] { large.reshape({-1}); });
  const double copy = book::shortest_ms([&] { permute(large, {1, 0}); });
  std::cout << "measured: [2048, 2048] reshaped moves no byte, in " << view << " ms; permuted, it reads and writes "
            << 2 * large.count() * bytes_of(f32) << " bytes, in " << copy << " ms\n";
  return shared && added ? 0 : 1;
}
