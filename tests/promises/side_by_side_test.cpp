// Chapter 8. Promise 27, threads side by side: two of them train, prove and search for the first NaN at once, each as
// if it were alone (autograd/variable.h says what they may share). .ci/run runs this under ThreadSanitizer as well:
// ctest --preset tsan.
#include <doctest/doctest.h>

#include <array>
#include <barrier>
#include <exception>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "autograd/check/first_nan.h"
#include "autograd/check/proof.h"
#include "autograd/check/scheduling.h"
#include "autograd/observer.h"
#include "autograd/ops.h"
#include "core/files/hash.h"
#include "core/machine/parallel.h"
#include "core/tensor_ops.h"
#include "nn/models/gpt.h"
#include "optim/optim.h"

using namespace orrery;

namespace {

// Loops and products that are cut, so that each thread has a team of its own at work.
const nn::GptConfig side_by_side_config{
    .vocab_size = 31, .layer = {.d_model = 24, .num_heads = 3, .d_ff = 48}, .num_layers = 1, .max_len = 16};

Variable gpt_loss(const nn::Gpt& model, const Tensor& text, i64 step) {
  nn::Pass pass = nn::Pass::training(3, step);
  return model.loss(slice(text, 1, 0, -1), slice(text, 1, 1), pass);
}

// The loss and a hash of all parameters after each of a few steps.
std::string trained(u64 seed) {
  Rng weights(seed), data(seed + 100);
  nn::Gpt model(side_by_side_config, weights);
  optim::Adam adam(model.parameters());
  std::ostringstream text;
  for (i64 step = 1; step <= 4; ++step) {
    const Variable loss = gpt_loss(model, randint(0, 31, {6, 17}, data), step);
    backward(loss);
    check_finite(loss.item(), adam.parameters(), [&] { return loss; });
    adam.step(1e-2, 1.0);
    Fingerprint bits;
    for (const NamedParameter& p : adam.parameters()) bits.add(p.value.value());
    text << loss.item() << ' ' << bits.hex() << '\n';
  }
  return text.str();
}

// Every part of two proofs. Those with mutants depend on observers. A proof prints no times.
std::string proven(u64 seed) {
  std::ostringstream text;
  text << prove("normed", [](const Variable& x, const Variable& w) { return layer_norm(gelu(x + w), w, w); },
                {{3, 4}, {4}}, {}, {.seed = seed})
       << prove("weighted", [](const Variable& a, const Variable& b) { return softmax(matmul(a, b)); },
                {{2, 3}, {3, 4}}, {}, {.seed = seed});
  return text.str();
}

// The logarithm of a negative number, in a model's loss.
std::string searched(u64 seed) {
  Rng weights(seed), data(seed + 100);
  const nn::Gpt model(side_by_side_config, weights);
  const Tensor text = randint(0, 31, {6, 17}, data);
  std::ostringstream story;
  for (int round = 0; round < 3; ++round) {
    const FirstNonFinite first = find_first_non_finite([&] {
      const Variable loss = gpt_loss(model, text, 1);
      return loss + log(-loss);
    });
    story << first.operation << ' ' << first.index << ' ' << first.text << '\n';
  }
  return story.str();
}

using Job = std::function<std::string(u64)>;
const std::array<Job, 3> jobs{trained, proven, searched};

}  // namespace

// As where other programs take a core away now and then: of five loops in a row, two have one thread.
Team changing_team(int asked) {
  static thread_local int loops = 0;
  return {++loops % 5 < 2 ? 1 : asked};
}

// Every job beside every job: in each phase both threads begin at once.
TEST_CASE("promise 27: two threads that train, prove and search for NaN at once do what each does alone") {
  const SleepingThreads sleeping;
  constexpr size_t n = jobs.size(), phases = n * n;
  std::array<std::array<std::string, n>, 2> alone;
  for (size_t who = 0; who < 2; ++who)
    for (size_t job = 0; job < n; ++job) alone[who][job] = jobs[job](who + 1);
  CHECK(alone[0][1].find(": proven") != std::string::npos);
  CHECK(alone[0][1].find("NOT PROVEN") == std::string::npos);
  CHECK(alone[0][2].starts_with("log "));

  std::array<std::vector<std::string>, 2> beside;
  std::barrier phase_begins(2);
  const auto work = [&](size_t who) {
    loop_rules.team = changing_team;
    for (size_t phase = 0; phase < phases; ++phase) {
      const size_t job = who == 0 ? phase / n : phase % n;
      phase_begins.arrive_and_wait();
      std::string result;
      try {
        result = jobs[job](who + 1);
      } catch (const std::exception& error) { result = error.what(); }
      if (result != alone[who][job]) beside[who].push_back("phase " + std::to_string(phase) + ":\n" + result);
    }
  };
  std::array<std::thread, 2> threads{std::thread(work, 0), std::thread(work, 1)};
  for (std::thread& thread : threads) thread.join();
  for (size_t who = 0; who < 2; ++who) {
    CAPTURE(who);
    CHECK(beside[who] == std::vector<std::string>());
  }
}

namespace {

// What a thread reads of a model that another reads too.
std::string read_forward(const nn::Gpt& model, const Tensor& text, bool recorded) {
  Fingerprint bits;
  for (i64 step = 1; step <= 6; ++step) {
    if (recorded) {
      bits.add(gpt_loss(model, text, step).value());
    } else {
      const NoGradient no_gradient;
      bits.add(gpt_loss(model, text, step).value());
    }
  }
  return bits.hex();
}

}  // namespace

TEST_CASE("promise 27: two threads run one model forward at once, one of them recording") {
  const SleepingThreads sleeping;
  Rng weights(1), data(2);
  nn::Gpt model(side_by_side_config, weights);
  const Tensor text = randint(0, 31, {6, 17}, data);
  const std::string alone = read_forward(model, text, true);
  const size_t named = model.parameters().size();
  std::array<std::string, 2> beside;
  std::array<size_t, 2> counted{};
  const auto work = [&](size_t who) {
    counted[who] = model.parameters().size();
    beside[who] = read_forward(model, text, who == 0);
    if (!gradients_are_recorded() || observer()) beside[who] = "modes of another thread";
  };
  std::array<std::thread, 2> threads{std::thread(work, 0), std::thread(work, 1)};
  for (std::thread& thread : threads) thread.join();
  CHECK(beside == std::array{alone, alone});
  CHECK(counted == std::array{named, named});
}
