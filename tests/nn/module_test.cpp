// Chapter 5. Modules: names, counts, ties, conversion, copies and printing; and what a pass draws.
#include "nn/module.h"

#include <doctest/doctest.h>

#include <sstream>

#include "autograd/node.h"
#include "autograd/observer.h"
#include "autograd/ops.h"
#include "nn/layers/embedding.h"
#include "nn/layers/linear.h"
#include "nn/pass.h"
#include "tests/nn/compare.h"

using namespace orrery;

namespace {

struct Tied : nn::Module {
  nn::Embedding embed;
  nn::Linear out;
  Tensor steps = arange(3), mean = full({2}, 0.5);
  explicit Tied(Rng& rng) : embed(5, 4, rng), out(4, 5, rng) { out.weight = embed.weight; }
  void visit(nn::Visitor& v) override {
    v("embed", embed);
    v("out", out);
    v("steps", steps);
    v("mean", mean);
  }
};

struct Stack : nn::Module {
  std::vector<nn::Linear> layers;
  std::optional<nn::Linear> last;
  explicit Stack(Rng& rng) {
    for (int i = 0; i < 2; ++i) layers.emplace_back(2, 2, rng, nn::LinearOptions{.bias = i == 0});
  }
  void visit(nn::Visitor& v) override {
    v("layers", layers);
    v("last", last);
  }
};

struct Around : nn::Module {
  Stack stack;
  explicit Around(Rng& rng) : stack(rng) {}
  void visit(nn::Visitor& v) override { v.inlined(stack); }
};

struct Twice : nn::Module {
  nn::Linear a;
  explicit Twice(Rng& rng) : a(2, 2, rng) {}
  void visit(nn::Visitor& v) override {
    v("a", a);
    v("a", a);
  }
};

// A constant where a parameter belongs, and a table that is no parameter.
struct Constants : nn::Module {
  Variable first = constant(zeros({2})), second = constant(zeros({3}));
  void visit(nn::Visitor& v) override {
    v("first", first);
    v("second", second);
  }
};

// Has a table that it computes itself.
struct Tabled : nn::Module {
  Tensor table = arange(4).to(f32), undefined;
  void visit(nn::Visitor& v) override {
    v.derived("table", table);
    v.derived("undefined", undefined);
  }
};

// The operations that backward visits.
struct Visited : Observer {
  std::vector<std::string> names;
  void backward_begins(const Node& node) override { names.emplace_back(node.name); }
};

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("lists name their parts, undefined and missing ones are passed over") {
  Rng rng(1);
  Stack stack(rng);
  CHECK(names_of(stack.parameters()) == Names{"layers.0.weight", "layers.0.bias", "layers.1.weight"});
  CHECK(stack.parameter_count() == 4 + 2 + 4);
  stack.last.emplace(2, 1, rng);
  CHECK(names_of(stack.parameters()).back() == "last.bias");
  Around around(rng);
  CHECK(names_of(around.parameters()) == Names{"layers.0.weight", "layers.0.bias", "layers.1.weight"});
}

TEST_CASE("a tied parameter has two names and is counted once") {
  Rng rng(1);
  Tied tied(rng);
  CHECK(names_of(tied.parameters()) == Names{"embed.weight", "out.bias"});
  CHECK(names_of(tied.named_parameters()) == Names{"embed.weight", "out.weight", "out.bias"});
  CHECK(tied.parameter_count() == 20 + 5);
  CHECK(tied.out.weight.name() == "embed.weight");
  REQUIRE(tied.buffers().size() == 2);
  CHECK(tied.buffers()[0].name == "steps");
}

TEST_CASE("conversion keeps values and ties, and forgets gradients") {
  Rng rng(1);
  Tied tied(rng);
  const Tensor before = tied.embed.weight.value().clone();
  backward(sum(tied.embed.weight * tied.embed.weight));
  REQUIRE(tied.embed.weight.gradient().defined());
  to(tied, f64);
  CHECK(tied.embed.weight.dtype() == f64);
  CHECK(tied.out.weight.value().shares_memory_with(tied.embed.weight.value()));
  CHECK(tied.out.weight.node() == tied.embed.weight.node());
  CHECK_FALSE(tied.embed.weight.gradient().defined());
  CHECK(distance(tied.embed.weight.value(), before.to(f64)) == 0);
  CHECK(tied.mean.dtype() == f64);
  CHECK(tied.steps.dtype() == Dtype::i32);
  backward(sum(tied.out.weight) + sum(tied.embed.weight));
  CHECK(tied.embed.weight.gradient().at(0) == 2);
  CHECK_THROWS_WITH(to(tied, Dtype::i32), "to: parameters are f32 or f64, not i32");
}

TEST_CASE("values are copied by name, between dtypes too") {
  Rng rng(1);
  Tied from(rng), into(rng);
  from.mean = full({2}, 0.25);
  to(into, f64);
  CHECK(distance(from.embed.weight.value().to(f64), into.embed.weight.value()) > 0);
  copy_parameters(from, into);
  CHECK(distance(from.embed.weight.value().to(f64), into.out.weight.value()) == 0);
  CHECK(into.mean.at(0) == 0.25);
  into.embed.weight.mutable_value().write<double>()[0] = 7;
  CHECK(from.embed.weight.value().at(0) != 7);
  from.out.weight = parameter(from.embed.weight.value().clone());
  copy_parameters(from, into);  // no longer tied, and still equal
  from.out.weight.mutable_value().write<float>()[0] += 1;
  CHECK_THROWS_WITH_AS(copy_parameters(from, into),
                       "copy_parameters: embed.weight and out.weight are one parameter in the copy, and differ", Error);
  Stack other(rng);
  CHECK_THROWS_WITH_AS(copy_parameters(from, other), doctest::Contains("the modules have 5 and 3"), Error);
  nn::Linear small(2, 2, rng), large(3, 2, rng);
  CHECK_THROWS_WITH_AS(copy_parameters(small, large), doctest::Contains("weight [2, 2] does not fit weight [2, 3]"),
                       Error);
}

TEST_CASE("a name given twice is an error") {
  Rng rng(1);
  Twice twice(rng);
  CHECK_THROWS_WITH(twice.parameters(), "visit: the name \"a.weight\" is given twice");
}

TEST_CASE("a constant in place of a parameter is refused by its name") {
  Constants constants;
  CHECK_THROWS_WITH(constants.parameters(),
                    "visit: first is no parameter; nn::freeze keeps a parameter from learning, and a Tensor can be "
                    "visited as a buffer");
}

TEST_CASE("a derived buffer is converted and listed like any other") {
  Tabled tabled;
  to(tabled, f64);
  CHECK(tabled.table.dtype() == f64);
  REQUIRE(tabled.buffers().size() == 1);
  CHECK(tabled.buffers()[0].derived);
  Rng rng(1);
  CHECK_FALSE(Tied(rng).buffers()[0].derived);
}

TEST_CASE("backward computes nothing for a frozen module, whose names and counts stay") {
  Rng rng(1);
  Stack stack(rng);
  stack.last.emplace(2, 1, rng);
  const Names all = names_of(stack.parameters());
  const auto pass = [&] {
    const Variable x = constant(full({3, 2}, 1.0));
    backward(sum((*stack.last)(stack.layers[1](stack.layers[0](x)))));
  };
  Visited before, after;
  {
    const ObserverScope scope(before);
    pass();
  }
  nn::freeze(stack);
  nn::unfreeze(*stack.last);
  for (const NamedParameter& p : stack.parameters())
    CHECK(p.value.gradient().defined() == false);  // those of another pass
  {
    const ObserverScope scope(after);
    pass();
  }
  CHECK(before.names == Names{"sum", "linear", "linear", "linear"});
  CHECK(after.names == Names{"sum", "linear"});
  for (const NamedParameter& p : stack.parameters()) CHECK(p.value.gradient().defined() == p.name.starts_with("last."));
  CHECK(names_of(stack.parameters()) == all);
  CHECK(stack.parameter_count() == 4 + 2 + 4 + 2 + 1);
  to(stack, f64);
  CHECK(stack.layers[0].weight.is_frozen());
  CHECK_FALSE(stack.last->weight.is_frozen());
  std::ostringstream out;
  out << stack;
  CHECK(out.str() ==
        "Stack, 13 parameters, 10 of them frozen\n"
        "  layers.0: Linear, 6\n"
        "    weight [2, 2] frozen\n"
        "    bias [2] frozen\n"
        "  layers.1: Linear, 4\n"
        "    weight [2, 2] frozen\n"
        "  last: Linear, 3\n"
        "    weight [1, 2]\n"
        "    bias [1]\n");
}

TEST_CASE("a tied parameter is frozen wherever it is used") {
  Rng rng(1);
  Tied tied(rng);
  nn::freeze(tied.embed);
  CHECK(tied.out.weight.is_frozen());
  CHECK_FALSE(tied.out.bias.is_frozen());
  nn::unfreeze(tied.out);
  CHECK_FALSE(tied.embed.weight.is_frozen());
}

TEST_CASE("a copy is frozen like its original, if it has the same names") {
  Rng rng(1);
  Tied original(rng), copy(rng);
  nn::freeze(original.embed);
  freeze_like(original, copy);
  CHECK(copy.out.weight.is_frozen());
  CHECK_FALSE(copy.out.bias.is_frozen());
  Stack other(rng);
  nn::Embedding one(5, 4, rng);
  nn::Linear without_bias(2, 2, rng, {.bias = false}), longer(2, 2, rng);
  nn::freeze(longer);
  CHECK_THROWS_WITH_AS(freeze_like(longer, without_bias), "freeze_like: the modules have 2 and 1 parameters", Error);
  CHECK_FALSE(without_bias.weight.is_frozen());
  nn::freeze(original);
  CHECK_THROWS_WITH_AS(freeze_like(original, other), "freeze_like: embed.weight does not fit layers.0.weight", Error);
  for (const NamedParameter& p : other.parameters()) CHECK_FALSE(p.value.is_frozen());
}

TEST_CASE("modules print as a tree with types, shapes, counts and ties") {
  Rng rng(1);
  Tied tied(rng);
  std::ostringstream out;
  out << tied;
  CHECK(out.str() ==
        "Tied, 25 parameters\n"
        "  embed: Embedding, 20\n"
        "    weight [5, 4]\n"
        "  out: Linear, 25\n"
        "    weight [5, 4] = embed.weight\n"
        "    bias [5]\n"
        "  steps [3] buffer\n"
        "  mean [2] buffer\n");
  nn::Linear large(1200, 1000, rng, {.bias = false});
  out.str("");
  out << large;
  CHECK(out.str() == "Linear, 1,200,000 parameters\n  weight [1000, 1200]\n");
}

TEST_CASE("draws carry seed, step and micro-batch, and are numbered") {
  nn::Pass pass = nn::Pass::training(7, 3, 2);
  CHECK(pass.train);
  const Draw first = pass.next_draw(), second = pass.next_draw();
  CHECK(first.seed == 7);
  CHECK(first.step == 3);
  CHECK(first.micro == 2);
  CHECK(first.index == 0);
  CHECK(second.index == 1);
  CHECK_FALSE(nn::Pass::inference().train);
}

TEST_CASE("where nothing is dropped no draw is used up") {
  nn::Pass pass = nn::Pass::training(7, 3);
  pass.draw_for(0);
  CHECK(pass.draws == 0);
  CHECK(pass.draw_for(0.1).index == 0);
  CHECK(pass.draw_for(0.1).index == 1);
  CHECK(pass.draw_for(0.1).seed == 7);
}

TEST_CASE("a step or micro-batch whose masks would be another's is refused") {
  constexpr i64 steps = i64{1} << 32;
  CHECK(nn::Pass::training(1, steps - 1, 65535).micro == 65535);
  CHECK_THROWS_WITH_AS(nn::Pass::training(1, 1, 65536), "pass: micro must be in [0, 65536), not 65536", Error);
  CHECK_THROWS_WITH_AS(nn::Pass::training(1, 1, -1), "pass: micro must be in [0, 65536), not -1", Error);
  CHECK_THROWS_WITH_AS(nn::Pass::training(1, steps), "pass: step must be in [0, 2^32), not 4294967296", Error);
  CHECK_THROWS_WITH_AS(nn::Pass::training(1, -1), "pass: step must be in [0, 2^32), not -1", Error);
}
