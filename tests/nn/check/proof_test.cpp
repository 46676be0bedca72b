// Chapter 5. Tests of the checker and of the proof for layers: their parameters, and their way through a file.
#include "nn/check/proof.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "nn/check/gradcheck.h"
#include "nn/layers/dropout.h"
#include "nn/layers/feed_forward.h"
#include "nn/layers/linear.h"
#include "tests/core/temporary_folder.h"
#include "tests/nn/compare.h"

using namespace orrery;

namespace {

nn::Linear make_linear(Rng& rng) { return nn::Linear(4, 3, rng); }

// A layer that forgets to name its second part.
struct Forgetful : nn::Module {
  nn::Linear named, forgotten;
  explicit Forgetful(Rng& rng) : named(4, 4, rng), forgotten(4, 4, rng) {}
  void visit(nn::Visitor& v) override { v("named", named); }
};

// A layer whose buffer keeps its dtype.
struct Unconverted : nn::Module {
  Tensor factors = full({3}, 2.0);
  void visit(nn::Visitor&) override {}
};

// Random features, fixed numbers and a frozen weight: x -> relu(x F^T) G^T, scaled by what a table of integers chooses.
struct Features : nn::Module {
  Tensor features, chosen = Tensor::of<i32>({2}, {1, 0}), halves = full({2}, 0.5);
  nn::Linear out;
  explicit Features(Rng& rng) : features(randn({5, 4}, rng)), out(5, 2, rng) {
    halves.write<float>()[1] = 2;
    nn::freeze(out);
    out.bias.set_frozen(false);
  }
  Variable operator()(const Variable& x) const {
    return out(relu(matmul(x, constant(features), Trans::b))) * halves.at(chosen.data<i32>()[0]);
  }
  void visit(nn::Visitor& v) override {
    v("features", features);
    v("chosen", chosen);
    v.derived("halves", halves);
    v("out", out);
  }
};

}  // namespace

TEST_CASE("buffers go through the file of a proof, and frozen parameters are left out of it") {
  const Proof proof = nn::prove(
      "Features", [](Rng& rng) { return Features(rng); },
      [](const Features& layer, const Variable& x) { return layer(x); }, {{2, 4}});
  CHECK_MESSAGE(static_cast<bool>(proof), proof);
  CHECK(proof.gradients.inputs == 2);  // x and the bias
  CHECK(proof.parts.back().name == "file");
}

TEST_CASE("a module that takes two inputs, or a list of them, is proved") {
  CHECK(nn::prove("sum", make_linear,
                  [](const nn::Linear& layer, const Variable& a, const Variable& b) { return layer(add(a, b)); },
                  {{2, 4}, {2, 4}}));
  CHECK(nn::prove("sum", make_linear,
                  [](const nn::Linear& layer, const nn::Inputs& x) { return layer(add(x[0], x[1])); }, {{2, 4}, {4}}));
}

TEST_CASE("a Pass with dropout on may come last, and follows from the seed like all else") {
  const auto values = [](u64 seed) {
    const Sample sample = nn::module_sample(
        "Dropout", "", {{4, 8}}, [](Rng&) { return nn::Dropout(0.5); },
        [](const nn::Dropout& layer, const Variable& x, nn::Pass& pass) { return layer(x, pass); });
    return sample.build(f64, seed).output().value();
  };
  const auto kept = [](const Tensor& y) {
    std::vector<bool> result;
    for (i64 i = 0; i < y.count(); ++i) result.push_back(y.at(i) != 0);
    return result;
  };
  const std::vector<bool> mask = kept(values(1));
  CHECK(std::count(mask.begin(), mask.end(), false) > 0);
  CHECK(mask == kept(values(1)));
  CHECK(mask != kept(values(2)));
}

TEST_CASE("a part that visit forgets is found") {
  const auto run = [](const Forgetful& layer, const Variable& x) { return layer.forgotten(layer.named(x)); };
  const Proof proof = nn::prove("Forgetful", [](Rng& rng) { return Forgetful(rng); }, run, {{2, 4}});
  CHECK_FALSE(proof);
  const std::string message = proof.message();
  CHECK(message.find("visit: does not name a parameter of shape [4] without a name, made after named.bias") !=
        std::string::npos);
  CHECK(message.find("a parameter of shape [4, 4] without a name, made after named.bias") != std::string::npos);
}

TEST_CASE("a buffer that visit forgets is found by what the error says") {
  const auto run = [](const Unconverted& layer, const Variable& x) { return x * constant(layer.factors); };
  const Proof proof = nn::prove("Unconverted", [](Rng&) { return Unconverted(); }, run, {{2, 3}});
  CHECK_MESSAGE(proof.message().find("visit: does not reach every tensor: a buffer that it does not name, or a "
                                     "constant that is made in one dtype") != std::string::npos,
                proof);
}

TEST_CASE("save_and_load really loses the parameters in between") {
  struct Watched : nn::Module {
    Variable weight = parameter(full({2}, 1.5));
    bool was_lost = false;
    void visit(nn::Visitor& v) override {
      was_lost |= std::isnan(weight.value().at(0));
      v("weight", weight);
    }
  } module;
  const TemporaryFolder folder;
  nn::save_and_load(module, folder / "watched.safetensors");
  CHECK(module.was_lost);
  CHECK(same_bits(module.weight.value(), full({2}, 1.5)));
  CHECK_THROWS_AS(nn::save_and_load(module, folder / "missing/watched.safetensors"), Error);
}

namespace {

// y = x sigmoid(gate(x)) scale
struct Gate : nn::Module {
  nn::Linear gate;
  Variable scale = parameter(full({3}, 1.5));
  explicit Gate(Rng& rng) : gate(3, 3, rng) {}
  Variable operator()(const Variable& x) const { return x * sigmoid(gate(x)) * scale; }
  void visit(nn::Visitor& v) override {
    v("gate", gate);
    v("scale", scale);
  }
};

}  // namespace

TEST_CASE("a layer is checked in its inputs and its parameters") {
  Rng rng(1);
  Gate layer(rng);
  to(layer, f64);
  const GradcheckReport report =
      nn::gradcheck(layer, [&](const Variable& x) { return layer(x); }, {randn({2, 3}, rng, f64)});
  CHECK_MESSAGE(report.ok, report.message);
  CHECK(report.inputs == 4);
}
