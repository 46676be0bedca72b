// Chapter 5. Rows of a table by id: errors, and the fused sum with positions. Their values are PyTorch's (tests/torch).
#include "tests/autograd/ops/fused.h"

using namespace orrery;
using namespace orrery::small;

TEST_CASE("an id out of range is named with its position") {
  const Variable weight = parameter(normal({3, 2}), "embed.weight");
  const Tensor ids = Tensor::of<i32>({2, 2}, {0, 1, 3, 2});
  CHECK(error_of([&] { (void)embedding(weight, ids); }) ==
        "embedding: id 3 at position 2 is outside [0, 3)\n  input 0: [3, 2]  from parameter embed.weight");
  CHECK(contains(error_of([&] { (void)embedding(weight, Tensor::of<i32>({1}, {-1})); }), "id -1 at position 0"));
  CHECK(contains(error_of([&] { (void)embedding(weight, zeros({2})); }), "embedding: ids must be i32\n  input 0: "));
}

namespace {

constexpr Draw embedding_draw{.seed = 3, .step = 7, .micro = 1, .index = 4};

// Paper, section 3.4 and 3.5, one operation after another; x = {table, positions}.
Variable composed_sum(const Variables& x, const Tensor& ids, double factor, double p) {
  const Variable positions = slice(x[1], 0, 0, ids.size(1));
  return dropout(scale(embedding(x[0], ids), factor) + positions, p, embedding_draw);
}

}  // namespace

TEST_CASE("embedding_sum equals embedding, scale, positions and dropout: the same elements are dropped") {
  Rng rng(4);
  for (const std::array<i64, 4>& sizes :
       {std::array<i64, 4>{1, 1, 1, 1}, {2, 3, 4, 13}, {3, 7, 2, 16}, {41, 17, 57, 33}, {2, 3, 5, 1030}}) {
    const i64 B = sizes[0], T = sizes[1], rows = sizes[2], columns = sizes[3];
    const Tensor ids = randint(0, rows, {B, T}, rng);
    for (const i64 spare : {0, 2}) {
      for (const double p : {0.0, 0.3}) {
        INFO(B, " ", T, " ", rows, " ", columns, " ", spare, " ", p);
        check_fused([&](const Variables& x) { return embedding_sum(x[0], ids, 2.5, x[1], p, embedding_draw); },
                    [&](const Variables& x) { return composed_sum(x, ids, 2.5, p); },
                    normals({{rows, columns}, {T + spare, columns}}));
      }
    }
  }
}

TEST_CASE("embedding_sum's errors") {
  const Variable weight = parameter(normal({3, 2}), "embed.weight"), positions = parameter(normal({4, 2}));
  const auto error = [&](const Tensor& ids, const Variable& rows, double p = 0) {
    return error_of([&] { (void)embedding_sum(weight, ids, 2, rows, p); });
  };
  const Tensor five = full({1, 5}, 0, Dtype::i32);
  CHECK(error(Tensor::of<i32>({2, 2}, {0, 1, 3, 2}), positions)
            .starts_with("embedding_sum: id 3 at position 2 is outside [0, 3)\n  input 0: [3, 2]"));
  CHECK(contains(error(full({2}, 0, Dtype::i32), positions), "embedding_sum: ids need shape [B, T], have [2]"));
  CHECK(contains(error(Tensor(), positions), "ids must be i32"));
  CHECK(contains(error(five, constant(zeros({5, 3}, f64))), "positions need shape [5 or more, 2], have [5, 3]"));
  CHECK(contains(error(five, positions), "positions need shape [5 or more, 2], have [4, 2]"));
  CHECK(contains(error(full({1, 2}, 0, Dtype::i32), positions, 2), "needs a probability in [0, 1], got 2"));
}
