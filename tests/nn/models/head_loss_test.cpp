// Chapter 7. The loss from the last layer: fused where it is plain, composed where it was replaced.
#include "nn/models/head_loss.h"

#include <doctest/doctest.h>

#include "core/tensor_ops.h"

using namespace orrery;
using namespace orrery::nn;

namespace {

struct Doubled : LinearMap {
  Linear base;
  explicit Doubled(Linear linear) : base(std::move(linear)) {}
  Variable operator()(const Variable& x, RowRange rows) const override { return scale(base(x, rows), 2.0); }
  Doubled clone() const { return Doubled(base.clone()); }
  void visit(Visitor& v) override { v.inlined(base); }
};

}  // namespace

TEST_CASE("the loss of a head is the cross entropy of its logits, whatever the head is") {
  Rng rng(1);
  Linear plain(5, 7, rng);
  to(plain, f64);
  const Variable last = parameter(randn({2, 3, 5}, rng, f64));
  const Tensor labels = Tensor::of<i32>({2, 3}, {1, 6, -100, 0, 3, 3});
  const CrossEntropyOptions options{.label_smoothing = 0.1};
  const double expected = cross_entropy(plain(last), labels, options).value().item(),
               doubled = cross_entropy(scale(plain(last), 2.0), labels, options).value().item();
  CHECK(head_loss(plain, last, labels, options).value().item() == doctest::Approx(expected).epsilon(1e-12));
  CHECK(head_loss(Linear(Doubled(plain.clone())), last, labels, options).value().item() ==
        doctest::Approx(doubled).epsilon(1e-12));
  CHECK(doubled != doctest::Approx(expected).epsilon(1e-3));
}
