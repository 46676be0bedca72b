// Chapter 8. Promise 24, fork: a process that has trained forks, and both train on, each as if it were alone.
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "autograd/ops.h"
#include "core/files/hash.h"
#include "core/machine/parallel.h"
#include "core/tensor_ops.h"
#include "nn/models/gpt.h"
#include "optim/optim.h"
#include "tests/core/support.h"

using namespace orrery;
using orrery::small::Threads;

namespace {

// Large enough that loops and products are shared among threads.
struct SmallTraining {
  Rng weights{1}, data{2};
  nn::Gpt model{
      {.vocab_size = 31, .layer = {.d_model = 64, .num_heads = 4, .d_ff = 256}, .num_layers = 1, .max_len = 32},
      weights};
  optim::Adam adam{model.parameters()};
  i64 steps = 0;

  // Trains for two steps, and returns a hash of all parameters.
  u64 train() {
    for (int i = 0; i < 2; ++i) {
      const Tensor text = randint(0, 31, {16, 33}, data);
      nn::Pass pass = nn::Pass::training(3, ++steps);
      backward(model.loss(slice(text, 1, 0, -1), slice(text, 1, 1), pass));
      adam.step(1e-3);
    }
    Fingerprint bits;
    for (const NamedParameter& p : adam.parameters()) bits.add(p.value.value());
    return bits.mixed();
  }
};

// The hash of what a child trains, which it sends through a pipe; 0 if the child fails.
u64 trained_by_a_child(SmallTraining& training, int threads) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(60);
    set_threads(threads);
    const u64 hash = training.train();
    _exit(write(ends[1], &hash, sizeof hash) == sizeof hash ? 0 : 1);
  }
  close(ends[1]);
  u64 hash = 0;
  const ssize_t size = read(ends[0], &hash, sizeof hash);
  close(ends[0]);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 && size == sizeof hash ? hash : 0;
}

}  // namespace

TEST_CASE("promise 24: a child that is forked while another thread allocates can allocate too") {
  std::atomic<bool> stop = false;
  std::thread other([&] {
    while (!stop) zeros({16});
  });
  int ended = 0;
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      alarm(20);
      zeros({16});
      _exit(0);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    ended += WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  stop = true;
  other.join();
  CHECK(ended == 50);
}

TEST_CASE("promise 24: after training, a forked child can train with any number of threads, and so can its parent") {
  const Threads scope(4);
  SmallTraining training;
  const u64 before = training.train();
  const u64 one = trained_by_a_child(training, 1), two = trained_by_a_child(training, 2),
            four = trained_by_a_child(training, 4);
  const u64 own = training.train();
  CHECK(own != before);
  CHECK(one == own);
  CHECK(two == own);
  CHECK(four == own);
}
