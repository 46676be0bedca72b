// Chapter 9. Tests of ranks, without MPI: the tree of gradients, equal bits for any number of them, failures.
#include "apps/training/ranks.h"

#include <doctest/doctest.h>
#include <cmath>
#include <numeric>

#include "apps/tasks/toy/training.h"
#include "apps/training/gradient_tree.h"
#include "autograd/observer.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "nn/module.h"
#include "tests/apps/training/line_task.h"
#include "tests/apps/training/thread_ranks.h"
#include "tests/core/support.h"

using namespace orrery;
using small::on_ranks;

namespace {

// The sum of these gradients, one for each micro-batch, of a parameter of one element or more; that of rank 0. Element
// i is 1 to 5 times as large as the first. NaN stands for no gradient.
Tensor tree_sum(const std::vector<float>& gradients, i64 size, i64 elements = 1) {
  const i64 count = std::ssize(gradients);
  Tensor result;
  const std::vector<std::string> problems = on_ranks(size, [&](Ranks& ranks) {
    Variable p = parameter(zeros({elements})), other = parameter(zeros({3})), small = parameter(zeros({2}));
    GradientTree tree({{"other", other}, {"p", p}, {"small", small}}, count);
    const auto [begin, end] = part_of({0, count}, ranks.rank(), size);
    for (i64 i = begin; i < end; ++i) {
      const double g = gradients[static_cast<size_t>(i)];
      if (!std::isnan(g)) {
        p.mutable_gradient() = full({elements}, g);
        for (i64 k = 0; k < elements; ++k) p.mutable_gradient().write<float>()[k] *= static_cast<float>(1 + k % 5);
        small.mutable_gradient() = full({2}, g);
      }
      tree.take(i);
      CHECK_FALSE(p.gradient().defined());
    }
    tree.finish(ranks);
    CHECK_FALSE(other.gradient().defined());
    if (p.gradient().defined()) CHECK(small.gradient().at(1) == p.gradient().at(0));
    if (p.gradient().defined() && elements == 1 && size < 3)
      CHECK(small.gradient().shares_memory_with(p.gradient()) == (size == 2));
    if (ranks.is_first()) result = p.gradient();
  });
  for (const std::string& problem : problems) CHECK(problem == "");
  return result;
}

std::string after_steps(Trainer& trainer, i64 steps) {
  small::train_until(trainer, steps);
  return trainer.hash();
}

// Hash and best score that a toy with dropout has after `steps` steps, the same on all ranks; from a state, if one is
// given, and with the state at the end.
std::string toy_hash(i64 size, i64 micro_batches, i64 steps, TrainingState* state = nullptr, bool goes_on = false) {
  ToyRecipe recipe;
  recipe.model.layer = {.d_model = 8, .num_heads = 2, .d_ff = 8, .dropout = 0.1};
  recipe.model.num_encoder_layers = recipe.model.num_decoder_layers = 1;
  recipe.batch = 2;
  recipe.micro_batches = micro_batches;
  recipe.steps = 100;
  recipe.evaluate_every = 4;
  std::vector<std::string> hashes(static_cast<size_t>(size));
  const std::vector<std::string> problems = on_ranks(size, [&](Ranks& ranks) {
    ToyRecipe own = recipe;
    ToyTrainingTask task(own);
    Trainer trainer(task, ranks);
    if (goes_on) trainer.load_state(*state);
    std::ostringstream text;
    text << after_steps(trainer, steps) << std::hexfloat << ' ' << trainer.best_score();
    hashes[static_cast<size_t>(ranks.rank())] = text.str();
    ranks.any(false);  // all have read the state
    if (state && !goes_on && ranks.is_first()) {
      *state = trainer.state();
      for (auto& [name, tensor] : state->tensors) tensor = tensor.clone();
    }
  });
  for (const std::string& problem : problems) CHECK(problem == "");
  for (const std::string& hash : hashes) CHECK(hash == hashes[0]);
  return hashes[0];
}

// One parameter w; micro-batch i costs the mean of w log(x_i), which is NaN where x_i is negative.
class Logarithm final : public Task, public nn::Module {
 public:
  std::string program() const override { return "logarithm"; }
  nn::Module& module() override { return *this; }
  TrainingRecipe& recipe() override { return recipe_; }
  void visit(nn::Visitor& v) override { v("w", w); }
  std::vector<Items> draw(i64, i64 micro_batches) override {
    return std::vector<Items>(static_cast<size_t>(micro_batches), Items{1});
  }
  BatchLoss loss(i64 micro_batch, nn::Pass&) override {
    if (micro_batch == fails_at) throw std::bad_alloc();
    return {mean(mul(w, log(constant(full({1}, micro_batch == negative_at ? -1.0 : 2.0)))))};
  }
  Variable w = parameter(full({1}, 0.5), "w");
  i64 negative_at = -1, fails_at = -1;

 private:
  TrainingRecipe recipe_{.steps = 4, .micro_batches = 4, .schedule = Schedule::constant, .rate = 0.1, .warmup = 0};
};

}  // namespace

TEST_CASE("gradients are added in the order of a tree, whoever has them") {
  // ((1e8 + 1) + (-1e8 + 1)) + 1; from left to right it would be 2, and exactly 3.
  const std::vector<float> five{1e8f, 1, -1e8f, 1, 1};
  for (const i64 size : {1, 2, 3, 4, 5}) CHECK(tree_sum(five, size).item() == 1);
  Rng numbers(3);
  for (const i64 count : {1, 2, 3, 6, 7, 13, 64}) {
    std::vector<float> gradients;
    for (i64 i = 0; i < count; ++i) gradients.push_back(static_cast<float>(numbers.uniform() - 0.5));
    const double expected = tree_sum(gradients, 1).item();
    CHECK(expected == doctest::Approx(std::accumulate(gradients.begin(), gradients.end(), 0.0)).epsilon(1e-5));
    for (const i64 size : {2, 3, 4, 7, 8, 64})
      if (size <= count) CHECK(tree_sum(gradients, size).item() == expected);
  }
}

TEST_CASE("a gradient that is not there adds nothing, not even to the sign of zero, and long ones are added in parts") {
  const float none = NAN;
  for (const i64 size : {1, 2, 3}) {
    CHECK(std::signbit(tree_sum({none, -0.0f, none}, size).item()));
    CHECK_FALSE(tree_sum({none, none, none}, size).defined());
  }
  for (const std::vector<float>& gradients : {std::vector{0.1f, none, 0.2f, 0.3f}, {0.1f, 0.2f, 0.3f}}) {
    const Tensor sum = tree_sum(gradients, 1, 600'001);
    CHECK(sum.at(1) == sum.at(0) * 2);
    for (const i64 size : {2, 3}) CHECK(same_bits(tree_sum(gradients, size, 600'001), sum));
  }
}

TEST_CASE("a gradient is complete when all that read its parameter have run backward, and nothing may read it then") {
  Variable a = parameter(full({1}, 3.0)), b = parameter(full({1}, 2.0)), unused = parameter(zeros({1}));
  const Parameters all{{"a", a}, {"b", b}, {"unused", unused}};
  std::vector<std::pair<size_t, double>> complete;
  int nodes = 0;
  CompleteGradients observer(
      all, [&](size_t i) { complete.emplace_back(i, all[i].value.gradient().item()); }, [&] { ++nodes; });
  const ObserverScope scope(observer);
  backward(sum(add(mul(b, mul(a, a)), a)));  // a^2 b + a
  CHECK(nodes == 4);
  CHECK(complete == std::vector<std::pair<size_t, double>>{{1, 9}, {0, 13}});
  CHECK(small::contains(small::error_of([&] { mul(b, b); }), "mul reads a parameter whose gradient was complete"));
  backward(sum(unused));
  CHECK(complete.back() == std::pair<size_t, double>{2, 1});
}

// Of four parameters, each long enough for a strip: w[0] is complete last, and odd micro-batches do not read w[2].
TEST_CASE("gradients taken in the middle of backward, in another order on each rank, have the bits of one process") {
  const auto sums_on = [](i64 size, i64 micro_batches, bool transfers_are_late) {
    std::vector<Tensor> sums;
    const auto sum_up = [&](Ranks& ranks) {
      Rng numbers(1);
      const auto drawn = [](Rng& rng) { return rand_uniform({i64{1} << 16}, -1, 1, rng); };
      std::vector<Variable> w;
      Parameters parameters;
      for (int i = 0; i < 4; ++i)
        parameters.push_back({"w" + std::to_string(i), w.emplace_back(parameter(drawn(numbers)))});
      GradientTree tree(parameters, micro_batches);
      const auto [begin, end] = part_of({0, micro_batches}, ranks.rank(), size);
      for (i64 i = begin; i < end; ++i) {
        const bool last = i + 1 == end;
        const auto pass = [&] {
          Rng of_pass(static_cast<u64>(2 + i));
          Variable y = mul(w[1], mul(w[0], constant(drawn(of_pass))));
          if (i % 2 == 0) y = add(y, w[2]);
          backward(sum(add(mul(y, w[3]), w[0])));
          CHECK(w[3].gradient().defined() == (size == 1 || !last));
        };
        if (last) {
          tree.take_last(i, ranks, pass);
        } else {
          pass();
          tree.take(i);
        }
      }
      tree.finish(ranks);
      for (const Variable& p : w) {
        CHECK(p.gradient().defined());
        if (ranks.is_first()) sums.push_back(p.gradient());
      }
    };
    for (const std::string& problem : on_ranks(size, sum_up, transfers_are_late)) CHECK(problem == "");
    return sums;
  };
  for (const i64 micro_batches : {4, 6}) {  // of 6, some ranks have two nodes
    const std::vector<Tensor> expected = sums_on(1, micro_batches, false);
    for (const i64 size : {2, 3, 4})
      for (const bool transfers_are_late : {false, true}) {
        const std::vector<Tensor> sums = sums_on(size, micro_batches, transfers_are_late);
        REQUIRE(sums.size() == expected.size());
        for (size_t i = 0; i < sums.size(); ++i) CHECK(same_bits(sums[i], expected[i]));
      }
  }
}

TEST_CASE("a training has equal bits on 1, 2, 3, 4, 8 and 64 ranks, with dropout, micro-batches of any number") {
  const std::string of_64 = toy_hash(1, 64, 3);
  for (const i64 size : {2, 3, 4, 8, 64}) CHECK(toy_hash(size, 64, 3) == of_64);
  const std::string of_5 = toy_hash(1, 5, 6);
  for (const i64 size : {2, 3, 4, 5}) CHECK(toy_hash(size, 5, 6) == of_5);
}

TEST_CASE("ranks share out the pieces of an evaluation, whose sums have equal bits for any number of them") {
  for (const i64 count : {1, 5, 13}) {
    double expected = 0;
    for (i64 i = 0; i < count; ++i) expected += std::sqrt(static_cast<double>(i));
    for (const i64 size : {1, 2, 3, 4, 8}) {
      const std::vector<std::string> problems = on_ranks(size, [&](Ranks& ranks) {
        i64 drawn = 0, judged = 0;
        const auto draw = [&](i64) { return drawn++; };
        CHECK(ranks.sums(count, draw, [&](i64 piece) {
          ++judged;
          return Ranks::Numbers{std::sqrt(static_cast<double>(piece)), 1};
        }) == Ranks::Numbers{expected, static_cast<double>(count)});
        CHECK(drawn == count);
        CHECK(judged == (count - ranks.rank() + size - 1) / size);
        const auto pieces = ranks.share_out(count, draw, [&](i64 piece) {
          return Ranks::Numbers(static_cast<size_t>(piece - count), static_cast<double>(piece));
        });
        CHECK(std::ssize(pieces) == count);
        for (i64 i = 0; i < count; ++i)
          CHECK(pieces[static_cast<size_t>(i)] ==
                Ranks::Numbers(static_cast<size_t>(i), static_cast<double>(count + i)));
      });
      for (const std::string& problem : problems) CHECK(problem == "");
    }
  }
}

TEST_CASE("each rank judges its part of a validation, and all get the scores of one process") {
  ToyRecipe recipe = annotated_recipe();
  recipe.model.layer.d_model = recipe.model.layer.d_ff = 8;
  recipe.model.layer.num_heads = 2;
  recipe.batch = 2;
  recipe.micro_batches = 8;
  struct Counter final : Observer {
    void forward_ended(std::string_view, std::span<const Variable* const>, std::span<const Tensor>) override { ++all; }
    i64 all = 0;
  };
  i64 of_piece = 0;
  const auto scores_on = [&](i64 size) {
    std::vector<double> scores(static_cast<size_t>(size));
    const std::vector<std::string> problems = on_ranks(size, [&](Ranks& ranks) {
      ToyRecipe own = recipe;
      ToyTrainingTask task(own);
      Trainer trainer(task, ranks);
      Counter operations;
      {
        const ObserverScope scope(operations);
        scores[static_cast<size_t>(ranks.rank())] = trainer.evaluate()[0].value;
      }
      if (size == 1) of_piece = operations.all / 10;
      CHECK(operations.all == of_piece * ((10 - ranks.rank() + size - 1) / size));
      CHECK(trainer.seconds_of_evaluation() > 0);
    });
    for (const std::string& problem : problems) CHECK(problem == "");
    return scores;
  };
  const double expected = scores_on(1)[0];
  for (const i64 size : {2, 3, 4, 8})
    CHECK(scores_on(size) == std::vector<double>(static_cast<size_t>(size), expected));
}

TEST_CASE("a training that was stopped on some ranks goes on with the same bits on others") {
  const std::string whole = toy_hash(1, 6, 9);
  for (const auto& sizes : {std::pair<i64, i64>{4, 1}, {1, 4}, {2, 3}, {6, 5}}) {
    CAPTURE(sizes.first);
    TrainingState state;
    toy_hash(sizes.first, 6, 5, &state);
    CHECK(toy_hash(sizes.second, 6, 9, &state, true) == whole);
  }
}

TEST_CASE("loss and accuracy of a step are those of all ranks, unequal micro-batches and one without items included") {
  TrainingRecipe recipe = small::line_recipe();
  recipe.micro_batches = 3;
  for (const bool empty_first : {false, true}) {
    small::LineTraining whole(recipe);
    whole.task.empty_first = empty_first;
    const std::string expected = after_steps(whole.trainer, 12);
    for (const i64 size : {2, 3}) {
      const std::vector<std::string> problems = on_ranks(size, [&](Ranks& ranks) {
        small::Line line(recipe);
        line.empty_first = empty_first;
        Trainer trainer(line, ranks);
        CHECK(trainer.seconds_of_step() > 0);
        CHECK(after_steps(trainer, 12) == expected);
        CHECK(trainer.losses() == whole.trainer.losses());
        CHECK(trainer.best_step() == whole.trainer.best_step());
      });
      for (const std::string& problem : problems) CHECK(problem == "");
    }
  }
}

TEST_CASE("ranks that cannot share a training are refused") {
  const auto problem_of = [](const TrainingRecipe& recipe, const std::function<void(small::Line&)>& change) {
    const std::vector<std::string> problems = on_ranks(2, [&](Ranks& ranks) {
      small::Line line(recipe);
      change(line);
      const Trainer trainer(line, ranks);
    });
    CHECK(problems[0] == problems[1]);
    return problems[0];
  };
  TrainingRecipe recipe = small::line_recipe();
  CHECK(problem_of(recipe, [](small::Line&) {}) ==
        "line: --micro-batches must be at least 2, one for each rank, not 1");
  recipe.micro_batches = 2;
  CHECK(problem_of(recipe, [](small::Line&) {}) == "");
  CHECK(problem_of(recipe, [](small::Line& line) { line.whole_batch = true; }) ==
        "line: the loss compares all items of a batch, so ranks cannot share a step");
  CHECK(problem_of(recipe, [](small::Line& line) { line.mean = full({2}, 0.0); }) ==
        "line: the buffer mean depends on all micro-batches of a step, so ranks cannot share them");
}

TEST_CASE("a number that is not finite on one rank is found, and named on all as one process would name it") {
  Logarithm one;
  one.negative_at = 2;
  const std::string expected = small::error_of([&] { Trainer(one).step(); });
  CHECK(small::contains(expected, "log (operation "));
  CHECK(small::contains(expected, "gave NaN from finite inputs"));
  const std::vector<std::string> problems = on_ranks(4, [&](Ranks& ranks) {
    Logarithm task;
    task.negative_at = 2;
    Trainer trainer(task, ranks);
    const std::string problem = small::error_of([&] { trainer.step(); });
    CHECK(problem.substr(0, problem.find("(operation")) == expected.substr(0, expected.find("(operation")));
    CHECK(task.w.value().item() == 0.5);
    task.negative_at = -1;
    CHECK(trainer.step().loss == doctest::Approx(0.5 * std::log(2)));
  });
  for (const std::string& problem : problems) CHECK(problem == "");
}

TEST_CASE("what fails on one rank alone ends all of them, with a line that names it; what fails on all, does not") {
  std::vector<std::string> problems = on_ranks(3, [&](Ranks& ranks) {
    Logarithm task;
    if (ranks.rank() == 1) task.fails_at = 1;
    Trainer trainer(task, ranks);
    try {
      trainer.step();
    } catch (const std::bad_alloc&) { ranks.failed("out of memory"); }
  });
  CHECK(problems[1] == "ended: rank 1: out of memory");
  CHECK(problems[0] == "ranks: all have ended");
  problems = on_ranks(3, [&](Ranks& ranks) {
    const std::string problem = small::error_of([&] { ranks.first_does([] { fail("file", "is there"); }); });
    CHECK(problem == (ranks.is_first() ? "file: is there" : "ranks: rank 0 has failed"));
    ranks.failed(problem);
    ranks.failed(problem);  // told once
    CHECK(ranks.any(ranks.rank() == 2));
    CHECK(ranks.first(static_cast<double>(ranks.rank())) == 0);
    CHECK(ranks.each_text(std::string(static_cast<size_t>(ranks.rank()), 'x')) ==
          std::vector<std::string>{"", "x", "xx"});
  });
  for (const std::string& problem : problems) CHECK(problem == "");
}
