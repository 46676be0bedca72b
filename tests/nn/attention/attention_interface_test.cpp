// Chapter 6. Attention: what your own attention leaves out is an error that says so.
#include "nn/attention/attention_interface.h"

#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "nn/attention/attention.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::nn;

namespace {

// Every position takes the mean of all.
struct MeanAttention : Attention {
  Variable self_attention(const Variable& x, const Mask&, Pass&) const override { return x * 0.0 + mean(x, {1}, true); }
  void visit(Visitor&) override {}
};

struct ScaledByPosition : QueryKeyMap {
  Variable queries(const Variable& Q, i64 first_position) const override {
    return Q * (2.0 + static_cast<double>(first_position));
  }
  void visit(Visitor&) override {}
};

}  // namespace

TEST_CASE("self-attention is called through the layer's own operator") {
  const MeanAttention attention;
  Pass pass;
  const Variable y = attention(constant(Tensor::of<double>({1, 2, 1}, {1, 3})), Mask(), pass);
  CHECK(y.value()(0, 0, 0) == 2);
  CHECK(y.value()(0, 1, 0) == 2);
}

TEST_CASE("what an attention does not have is an error, not a wrong answer") {
  const MeanAttention attention;
  Pass pass;
  const Variable x = constant(zeros({1, 2, 4}));
  AttentionState other = KeyValueCache{};
  const std::string no_state = "attention: MeanAttention does not generate: it has no state",
                    no_memory = "attention: MeanAttention has no cross-attention to generate with";
  CHECK(small::error_of([&] { attention(x, x, Mask(), pass); }) == "attention: MeanAttention has no cross-attention");
  CHECK(small::error_of([&] { attention.state(1, 4, f32); }) == no_state);
  CHECK(small::error_of([&] { attention.next(x, other); }) == no_state);
  CHECK(small::error_of([&] { attention.memory_state(x, Mask()); }) == no_memory);
}

TEST_CASE("a recorder has the weights of each attention's last call, and says which attention recorded none") {
  Rng rng(1);
  const MultiHeadAttention first(4, 2, rng), second(4, 2, rng);
  const MeanAttention third;
  const Variable x = constant(randn({1, 3, 4}, rng));
  AttentionRecorder seen;
  Pass pass;
  pass.recorder = &seen;
  first(x, Mask(), pass);
  second(x, x, Mask(), pass);
  third(first(x, Mask::causal(), pass), Mask(), pass);
  REQUIRE(seen.all.size() == 3);
  CHECK(seen.of(second).data<float>() == seen.all[1].weights.data<float>());
  CHECK(seen.of(first)(0, 1, 0, 2) == 0);  // causal
  CHECK(small::error_of([&] { seen.of(third); }) ==
        "attention recorder: this module has recorded no attention weights");
}

TEST_CASE("keys are changed as queries are, unless a map says otherwise") {
  const ScaledByPosition map;
  const Variable K = constant(full({1, 2, 1, 2}, 1.5));
  CHECK(map.keys(K, 3).value()(0, 0, 0, 0) == map.queries(K, 3).value()(0, 0, 0, 0));
  CHECK(map.keys(K, 3).value()(0, 1, 0, 1) == 7.5);
}
