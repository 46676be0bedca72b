// Chapter 5. Rows of a table by id, and gradients added up by id.
#include "tests/autograd/ops/support.h"

using namespace orrery;
using namespace orrery::small;

TEST_CASE("embedding picks rows, and repeated ids add up") {
  const Variable weight = parameter(Tensor::of<double>({3, 2}, {1, 2, 3, 4, 5, 6}), "weight");
  const Variable y = embedding(weight, Tensor::of<i32>({2, 2}, {2, 0, 2, 2}));
  CHECK(y.shape() == Shape{2, 2, 2});
  CHECK(close(y.value(), {5, 6, 1, 2, 5, 6, 5, 6}));
  backward(y, Tensor::of<double>({2, 2, 2}, {1, 10, 2, 20, 3, 30, 4, 40}));
  CHECK(close(weight.gradient(), {2, 20, 0, 0, 8, 80}));
}

TEST_CASE("embedding of no id") {
  const Variable weight = parameter(normal({3, 2}));
  const Variable y = embedding(weight, Tensor::empty({0, 4}, Dtype::i32));
  CHECK(y.shape() == Shape{0, 4, 2});
  backward(y, zeros({0, 4, 2}, f64));
  CHECK(close(weight.gradient(), {0, 0, 0, 0, 0, 0}));
}

TEST_CASE("an id out of range is named with its position") {
  const Variable weight = parameter(normal({3, 2}), "embed.weight");
  CHECK(error_of([&] {
          (void)embedding(weight, Tensor::of<i32>({2, 2}, {0, 1, 3, 2}));
        }) == "embedding: id 3 at position 2 is outside [0, 3)\n  input 0: [3, 2]  from parameter embed.weight");
  CHECK(contains(error_of([&] { (void)embedding(weight, Tensor::of<i32>({1}, {-1})); }), "id -1 at position 0"));
  CHECK(contains(error_of([&] { (void)embedding(weight, zeros({2})); }), "embedding: ids must be i32\n  input 0: "));
}

TEST_CASE("embedding's bits do not depend on the number of threads") {
  Rng rng(4);
  const Tensor ids = randint(0, 57, {1501}, rng);
  CHECK(thread_proof([&](const auto& x) { return embedding(x[0], ids); }, {{57, 33}}));
}
