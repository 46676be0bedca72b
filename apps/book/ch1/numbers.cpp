// Chapter 1. The worked numbers of the text: places in memory, views and copies, means, products.
// Question: where does element (1, 2, 3) of a [2, 3, 4] stand, what do reshape and permute do to the same six numbers,
//   and what is a matrix product as sums?
// Answer: at place 1 * 12 + 2 * 4 + 3 * 1 = 23. Reshape reads the same memory in rows of another length, permute copies
//   it in another order. Element (i, j) of a product is the sum of row i times column j, number by number.
#include <iostream>

#include "core/tensor_ops.h"

using namespace orrery;

namespace {

// Prints a tensor under its name, and compares its elements with those worked out by hand.
bool show(const char* name, const Tensor& x, const std::vector<double>& by_hand) {
  std::cout << name << '\n' << x << "\n\n";
  return same_bits(x, Tensor::of<double>(x.shape(), by_hand));
}

// Steps through memory: the stride of an axis is the product of all sizes after it.
bool places(const Shape& shape) {
  std::cout << "strides of " << shape << ':';
  i64 stride = shape.count();
  for (const i64 size : shape) {
    stride /= size;
    std::cout << ' ' << stride;
  }
  const Tensor numbered = arange(shape.count()).reshape(shape);
  std::cout << "\nelement (1, 2, 3) is number " << numbered(1, 2, 3) << ", element (1, 1, 1) is number "
            << numbered(1, 1, 1) << "\n\n";
  return numbered(1, 2, 3) == 23 && numbered(1, 1, 1) == 17;
}

bool views_and_copies() {
  bool right = true;
  const Tensor x = Tensor::of<double>({2, 3}, {0, 1, 2, 3, 4, 5});
  right &= show("x", x, {0, 1, 2, 3, 4, 5});
  right &= show("x reshaped to [3, 2]: the same memory", x.reshape({3, 2}), {0, 1, 2, 3, 4, 5});
  right &= show("x with its axes exchanged: a copy", permute(x, {1, 0}), {0, 3, 1, 4, 2, 5});
  right &= show("row 1 of x: the same memory", x.rows(1, 2), {3, 4, 5});
  right &= show("column 1 of x: a copy", slice(x, 1, 1, 2), {1, 4});
  right &= x.reshape({3, 2}).shares_memory_with(x) && x.rows(1, 2).shares_memory_with(x);
  right &= !permute(x, {1, 0}).shares_memory_with(x) && !slice(x, 1, 1, 2).shares_memory_with(x);
  return right;
}

bool reductions() {
  bool right = true;
  const Tensor x = Tensor::of<double>({2, 3}, {1, 2, 6, 2, 4, 9}), square = Tensor::of<double>({2, 2}, {1, 3, 10, 50});
  right &= show("means of columns, mean(x, {0})", mean(x, {0}), {1.5, 3, 7.5});
  right &= show("means of rows, mean(x, {1})", mean(x, {1}), {3, 5});
  right &= show("x minus the means of its rows, kept as [2, 1]", x - mean(x, {1}, true), {-2, -1, 3, -3, -1, 4});
  right &= show("a square minus the means of its rows as [2]: wrong, no error", square - mean(square, {1}),
                {-1, -27, 8, 20});
  right &=
      show("ones [3, 4] summed down to the column's shape [3, 1]", sum_to(full({3, 4}, 1, f64), {3, 1}), {4, 4, 4});
  return right;
}

bool products() {
  bool right = true;
  const Tensor a = Tensor::of<double>({2, 3}, {1, 2, 3, 4, 5, 6}), b = Tensor::of<double>({3, 2}, {1, 0, 2, 1, 0, 3});
  right &= show("a b", matmul(a, b), {5, 11, 14, 23});
  const Tensor batch = Tensor::of<double>({2, 1, 3}, {1, 2, 3, 4, 5, 6});
  right &= show("two matrices [1, 3] times the same b", matmul(batch, b), {5, 11, 14, 23});
  const Tensor table = Tensor::of<double>({4, 2}, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8});
  right &= show("the one-hot row of token 2 times a table", matmul(Tensor::of<double>({1, 4}, {0, 0, 1, 0}), table),
                {0.5, 0.6});
  return right;
}

}  // namespace

int main() {
  bool right = places({2, 3, 4});
  right &= views_and_copies();
  right &= reductions();
  right &= products();
  const float most = 16777216;
  std::cout << "in f32, 16777216 + 1 is " << static_cast<i64>(most + 1) << '\n';
  return right && most + 1 == most ? 0 : 1;
}
