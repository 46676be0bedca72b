// Chapter 7. The checker for layers: a layer of one's own, and a `visit` that forgets.
#include "nn/check/gradcheck.h"

#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "nn/layers/feed_forward.h"
#include "tests/nn/compare.h"

using namespace orrery;

namespace {

// y = x sigmoid(gate(x)) scale
struct Gate : nn::Module {
  nn::Linear gate;
  Variable scale;
  bool visit_all;
  Gate(Rng& rng, bool visit_all) : gate(3, 3, rng), scale(parameter(full({3}, 1.5))), visit_all(visit_all) {}
  Variable operator()(const Variable& x) const { return x * sigmoid(gate(x)) * scale; }
  void visit(nn::Visitor& v) override {
    v("gate", gate);
    if (visit_all) v("scale", scale);
  }
};

// Names a parameter it never uses.
struct Idle : nn::Module {
  nn::Linear used, idle;
  explicit Idle(Rng& rng) : used(3, 3, rng), idle(3, 3, rng) {}
  void visit(nn::Visitor& v) override {
    v("used", used);
    v("idle", idle);
  }
};

}  // namespace

TEST_CASE("a layer is checked in its inputs and its parameters") {
  Rng rng(1);
  Gate layer(rng, true);
  to(layer, f64);
  const GradcheckReport report =
      nn::gradcheck(layer, [&](const Variable& x) { return layer(x); }, {randn({2, 3}, rng, f64)});
  CHECK_MESSAGE(report.ok, report.message);
  CHECK(report.inputs == 4);
}

TEST_CASE("a parameter that visit forgets is caught") {
  Rng rng(1);
  Gate layer(rng, false);
  to(layer, f64);
  layer.scale.replace_value(layer.scale.value().to(f64));
  const GradcheckReport report =
      nn::gradcheck(layer, [&](const Variable& x) { return layer(x); }, {randn({2, 3}, rng, f64)});
  CHECK_FALSE(report.ok);
  CHECK(report.message.starts_with("backward reached a parameter of shape [3] without a name, made after gate.bias, "));
}

TEST_CASE("a named parameter that gets no gradient is caught") {
  Rng rng(1);
  Idle layer(rng);
  to(layer, f64);
  const GradcheckReport report =
      nn::gradcheck(layer, [&](const Variable& x) { return layer.used(x); }, {randn({2, 3}, rng, f64)});
  CHECK_FALSE(report.ok);
  CHECK(report.message.find("idle.weight") != std::string::npos);
}
