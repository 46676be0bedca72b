// Chapter 7. LoRA: a trained GPT learns another text through small matrices beside its own, which stay as they are.
// Question: what does it take to teach a model something new without changing it?
// Answer: y = W x + (alpha / r) B A x with A [r, in] and B [out, r] ("LoRA", Hu et al. 2021, section 4.1). B starts at
//   0, so that nothing changes at first; all else is frozen (nn/module.h), and A and B alone learn. For use they can be
//   added to W. Taken out again, the model knows its first text as before.
#include <cmath>
#include <iostream>

#include "core/tensor_ops.h"
#include "nn/check/proof.h"
#include "nn/nn.h"
#include "optim/optim.h"

using namespace orrery;

struct LowRank : nn::LinearMap {
  nn::Linear base;
  Variable A, B;
  double scale;
  LowRank(nn::Linear linear, i64 r, double alpha, Rng& rng)
      : base(std::move(linear)), scale(alpha / static_cast<double>(r)) {
    A = parameter(randn({r, base.weight.size(1)}, rng) * 0.1);
    B = parameter(zeros({base.weight.size(0), r}));
  }
  Variable operator()(const Variable& x, RowRange rows) const override {
    return base(x, rows) + linear(linear(x, A, {}), B, {}, rows) * scale;
  }
  nn::Linear merged() const {
    nn::Linear one = base.clone();
    add_in_place(one.weight.mutable_value(), matmul(B.value(), A.value()) * scale);
    return one;
  }
  void visit(nn::Visitor& v) override {
    v.inlined(base);
    v("lora_A", A);
    v("lora_B", B);
  }
};

// The loss on `text` after `steps` steps in which everything that is not frozen learns.
double train(nn::Gpt& model, const Tensor& text, i64 steps) {
  optim::Adam adam(model.parameters());
  for (i64 step = 1;; ++step) {
    nn::Pass pass;
    const Variable loss = model.loss(slice(text, 1, 0, -1), slice(text, 1, 1), pass);
    if (step > steps) return loss.item();
    backward(loss);
    adam.step(3e-3);
  }
}

int main() {
  const auto make = [](Rng& rng) { return nn::Linear(LowRank(nn::Linear(4, 6, rng), 2, 4, rng)); };
  const Proof proof = nn::prove("LowRank", make, [](const nn::Linear& f, const Variable& x) { return f(x); }, {{3, 4}});
  Rng rng(1);
  const Tensor first = randint(0, 30, {4, 33}, rng), second = randint(0, 30, {4, 33}, rng);
  nn::Gpt teacher({.vocab_size = 30, .layer = {.d_model = 64, .num_heads = 4, .d_ff = 256}, .num_layers = 1}, rng);
  const double learned = train(teacher, first, 150);
  nn::Gpt model = teacher.clone();
  nn::freeze(model);
  nn::Linear& in_proj = model.layers[0].self_attn.as<nn::MultiHeadAttention>().in_proj;
  in_proj = LowRank(std::move(in_proj), 8, 8, rng);
  const double before = train(model, second, 0), after = train(model, second, 250);
  nn::Linear plain = in_proj.map.as<LowRank>().base.clone();
  in_proj = in_proj.map.as<LowRank>().merged();
  const double merged = train(model, second, 0);
  in_proj = std::move(plain);
  const double kept = train(model, first, 0);
  std::cout << proof << "\nfirst " << learned << "\nsecond " << before << " -> " << after << ", merged " << merged
            << "\nfirst " << kept << '\n';
  return proof && before > 3 && after < 1 && std::fabs(merged - after) < 1e-4 && kept == learned ? 0 : 1;
}
