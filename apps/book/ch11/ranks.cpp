// Chapter 11. A training on one to four ranks, which are threads here, or processes that mpirun has started.
// Question: has a training the same bits, however many ranks share it?
// Answer: yes, if a tree says in which order gradients are added; no, if each rank first adds up all that it has.
#include <barrier>
#include <ctime>
#include <future>
#include <iomanip>
#include <iostream>

#include "apps/tasks/toy/training.h"
#include "apps/training/gradient_tree.h"
#include "core/machine/parallel.h"
#include "core/tensor_ops.h"
using namespace orrery;

struct Hall {  // what the threads have in common
  std::vector<const Ranks::Sent*> given;
  std::barrier<> all_are_here{std::ssize(given)};
};

struct ThreadRanks final : Ranks {
  ThreadRanks(Hall& h, size_t rank, bool adds_fast) : hall(h), me(rank), fast(adds_fast) {}
  i64 rank() const override { return static_cast<i64>(me); }
  i64 size() const override { return std::ssize(hall.given); }
  bool adds_fast() const override { return fast; }
  void exchange(const Sent& to, const Received& from) override {
    hall.given[me] = &to;
    hall.all_are_here.arrive_and_wait();
    for (size_t r = 0; r < from.size(); ++r)
      if (r != me) std::ranges::copy((*hall.given[r])[me], from[r].begin());
    hall.all_are_here.arrive_and_wait();
  }
  void sum(Tensor& numbers) override {  // in the order of the ranks
    Tensor total = zeros(numbers.shape());
    for (const Tensor* of_rank : each<const Tensor*>(&numbers)) add_in_place(total, *of_rank);
    any(false);  // all have read these numbers
    copy_into(numbers, total);
  }
  Hall& hall;
  const size_t me;
  const bool fast;
};

// The sum of four gradients of a parameter; the hash of all parameters and losses of the toy after ten steps.
std::pair<double, std::string> results(const std::unique_ptr<Ranks>& ranks) {
  set_threads(1);
  const double gradients[] = {16777216, 1, 1, -16777216};
  Variable p = parameter(zeros({1}));
  GradientTree tree({{"p", p}}, 4);
  const auto [begin, end] = part_of({0, 4}, ranks->rank(), ranks->size());
  for (i64 i = begin; i < end; tree.take(i++)) p.mutable_gradient() = full({1}, gradients[i]);
  tree.finish(*ranks);
  ToyRecipe recipe;
  recipe.batch = 8;
  recipe.micro_batches = 5;
  recipe.steps = 10;
  ToyTrainingTask task(recipe);
  Trainer trainer(task, *ranks);
  while (!trainer.finished()) trainer.step();
  return {p.gradient().at(0), trainer.hash()};
}

auto on_threads(size_t size, bool fast = false) {
  Hall hall{std::vector<const Ranks::Sent*>(size)};
  std::vector<std::future<std::pair<double, std::string>>> all;
  for (size_t r = 0; r < size; ++r)
    all.push_back(std::async(std::launch::async, results, std::make_unique<ThreadRanks>(hall, r, fast)));
  return all[0].get();
}

int main(int argc, char**) {
  const auto [sum, hash] = argc > 1 ? results(mpi_ranks()) : on_threads(1);
  std::cout << "sum " << sum << ", hash " << hash << '\n';
  if (argc > 1) return 0;  // mpirun -np 2 build/book/ch11_ranks mpi
  std::cout << "ranks  tree: sum  training  fast: sum  training\n";
  for (size_t n = 2; n <= 4; ++n) {
    const auto tree = on_threads(n), fast = on_threads(n, true);
    std::cout << n << std::setw(12) << tree.first << std::setw(11) << (tree.second == hash ? "same" : "other")
              << std::setw(10) << fast.first << std::setw(11) << (fast.second == hash ? "same" : "other") << std::endl;
  }
  std::cout << "measured: seven trainings in " << std::clock() / CLOCKS_PER_SEC << " s of CPU time\n";
}
