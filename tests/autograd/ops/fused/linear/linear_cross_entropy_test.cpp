// Chapter 8. The head and its loss in one against linear and cross_entropy, in one chunk of rows and in several.
#include "tests/autograd/ops/fused.h"

using namespace orrery;
using namespace orrery::small;

namespace {

// Every seventh of `rows` targets does not count.
Tensor some_targets(i64 rows, i64 K) {
  Rng rng(4);
  Tensor ids = randint(0, K, {rows}, rng);
  i32* id = ids.write<i32>();
  for (i64 i = 0; i < rows; i += 7) id[i] = -100;
  return ids;
}

void check_head(i64 rows, i64 d, i64 K, bool bias, const CrossEntropyOptions& options) {
  const Tensor targets = some_targets(rows, K);
  std::vector<Shape> shapes{{rows, d}, {K, d}};
  if (bias) shapes.push_back({K});
  const auto bias_of = [](const Variables& x) { return x.size() > 2 ? x[2] : Variable(); };
  check_fused([&](const Variables& x) { return linear_cross_entropy(x[0], x[1], bias_of(x), targets, options); },
              [&](const Variables& x) { return cross_entropy(linear(x[0], x[1], bias_of(x)), targets, options); },
              normals(shapes));
}

}  // namespace

TEST_CASE("the head with its loss is linear and cross entropy, one chunk of rows") {
  check_head(13, 5, 7, true, {});
  check_head(13, 5, 7, false, {.label_smoothing = 0.2});
  check_head(13, 5, 7, true, {.label_smoothing = 0.2, .smoothing = Smoothing::wrong_classes});
  check_head(13, 5, 7, true, {.label_smoothing = 0.1, .reduction = Reduction::sum});
  check_head(13, 5, 7, true, {.reduction = Reduction::divisor, .divisor = 4});
  check_head(2, 1, 2, true, {});
}

TEST_CASE("in several chunks of rows it is linear and cross entropy, and has equal bits for any threads") {
  // 600 rows of 5,000 classes are 12 MB in f32 and 24 MB in f64: 2 and 3 chunks.
  check_head(600, 3, 5000, true, {.label_smoothing = 0.1});
  const Tensor targets = some_targets(600, 5000);
  const auto head = [&](const Variables& x) { return linear_cross_entropy(x[0], x[1], {}, targets); };
  CHECK(same_for_any_threads([&] { return value_and_gradients(head, normals({{600, 6}, {5000, 6}}, f32)); }));
}

TEST_CASE("all leading axes of x are rows") {
  const Tensor x = normal({2, 3, 4}), W = normal({5, 4}, 2), targets = Tensor::of<i32>({2, 3}, {0, 1, 2, 3, 4, 0});
  const double together = linear_cross_entropy(constant(x), constant(W), {}, targets).item();
  CHECK(together == linear_cross_entropy(constant(x.reshape({6, 4})), constant(W), {}, targets.reshape({6})).item());
}

TEST_CASE("promise 13: NaN, infinity and huge numbers in rows that do not count change no bit") {
  for (const i64 K : {7, 5000}) {  // one chunk of rows, and several
    const i64 rows = K == 7 ? 13 : 600;
    const Tensor targets = some_targets(rows, K), W = normal({K, 3}, 2);
    std::vector<Tensor> expected;
    for (const double ignored : {0.0, double{NAN}, double{INFINITY}, 1e308}) {
      Tensor x = normal({rows, 3});
      for (i64 row = 0; row < rows; row += 7) {
        Tensor of_row = x.rows(row, row + 1);
        fill(of_row, ignored);
      }
      const std::vector<Tensor> got = value_then_gradients(
          [&](const Variables& in) { return linear_cross_entropy(in[0], in[1], {}, targets); }, {x, W});
      if (expected.empty()) expected = got;
      for (size_t i = 0; i < got.size(); ++i) CHECK(same_bits(got[i], expected[i]));
      CHECK(got[1].at(0) == 0);  // the gradient of row 0, which does not count
    }
  }
}

TEST_CASE("nothing that counts, and no rows, give loss 0 and gradient 0") {
  for (const i64 rows : {0, 3}) {
    const Variable x = parameter(normal({rows, 4})), W = parameter(normal({5, 4}, 2)), b = parameter(normal({5}, 3));
    const Variable loss = linear_cross_entropy(x, W, b, full({rows}, -100, Dtype::i32));
    backward(loss);
    CHECK(loss.item() == 0);
    for (const Variable& leaf : {x, W, b}) CHECK(same_bits(leaf.gradient(), zeros(leaf.shape(), f64)));
  }
}

TEST_CASE("large logits give finite losses and gradients") {
  const Variable x = parameter(full({2, 1}, 1e3)), W = parameter(Tensor::of<float>({3, 1}, {1, -1, 0.5}));
  const Variable loss = linear_cross_entropy(x, W, {}, Tensor::of<i32>({2}, {0, 1}));
  backward(loss);
  CHECK(loss.item() == 1000);  // 0 for the first row, 2,000 for the second
  CHECK(close(x.gradient(), {0, 1}));
}

TEST_CASE("while nothing is recorded the loss is the same") {
  const Tensor x = normal({9, 4}), W = normal({5, 4}, 2), b = normal({5}, 3), targets = some_targets(9, 5);
  const double recorded = linear_cross_entropy(parameter(x), parameter(W), parameter(b), targets).item();
  const NoGradient nothing_recorded;
  CHECK(linear_cross_entropy(parameter(x), parameter(W), parameter(b), targets).item() == recorded);
}

TEST_CASE("shapes that do not fit the head are errors") {
  const auto message = [](const Shape& x, const Shape& W, const Shape& b, const Tensor& targets) {
    return error_of([&] { linear_cross_entropy(constant(zeros(x)), constant(zeros(W)), constant(zeros(b)), targets); });
  };
  const Tensor targets = full({2}, 0, Dtype::i32);
  CHECK(message({2, 3}, {5, 4}, {5}, targets).starts_with("linear_cross_entropy: inner sizes differ (3 != 4)"));
  CHECK(message({2, 4}, {5, 4}, {4}, targets).starts_with("linear_cross_entropy: the bias needs shape [5], has [4]"));
  CHECK(message({2, 4}, {5}, {5}, targets).starts_with("linear_cross_entropy: the weight needs shape [out, in]"));
  CHECK(message({3, 4}, {5, 4}, {5}, targets)
            .starts_with("linear_cross_entropy: logits [3, 5] need targets of shape [3], got [2]"));
  CHECK(message({2, 4}, {5, 4}, {5}, full({2}, 5, Dtype::i32))
            .starts_with("linear_cross_entropy: target 5 at position 0 is outside [0, 5)"));
}
