// Chapter 3. The gated linear unit against a product with a sigmoid.
#include "tests/autograd/ops/fused.h"

using namespace orrery;
using namespace orrery::small;

TEST_CASE("glu is the first half times the sigmoid of the second") {
  for (const Shape& shape : {Shape{2}, {3, 8}, {2, 3, 66}, {41, 514}}) {
    INFO(shape);
    check_fused([](const Variables& x) { return glu(x[0]); },
                [](const Variables& x) {
                  const auto [a, b] = split(x[0], x[0].shape()[-1] / 2, -1);
                  return a * sigmoid(b);
                },
                normals({shape}));
  }
}

TEST_CASE("a gate of 0 lets half pass; one far below 0 nothing, one far above everything") {
  const Tensor y = glu(constant(Tensor::of<double>({3, 2}, {6, 0, 6, -800, 6, 800}))).value();
  CHECK(close(y, {3, 0, 6}));
}

TEST_CASE("bits do not depend on the number of threads") {
  CHECK(thread_proof([](const Variables& x) { return glu(x[0]); }, {{50, 700}}));
}

TEST_CASE("an odd number of columns is an error") {
  const std::string error = error_of([] { glu(constant(zeros({2, 3}))); });
  CHECK(error.substr(0, error.find('\n')) == "glu: needs an even number of columns, has shape [2, 3]");
  CHECK(error_of([] { glu(constant(zeros({}))); }).starts_with("glu: needs an even number of columns, has shape []"));
}
