// Chapter 11. A training on one to five ranks, which are threads here, or processes that mpirun has started.
// Question: has a training the same bits, however many ranks share it?
// Answer: yes, if a tree says in which order gradients are added; no, if each rank first adds up all that it has.
#include <barrier>
#include <ctime>
#include <iostream>
#include <thread>

#include "apps/tasks/toy/training.h"
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
    const Tensor mine = numbers.clone();
    const std::vector<const Tensor*> all = each(&mine);
    copy_into(numbers, *all[0]);
    for (size_t r = 1; r < all.size(); ++r) add_in_place(numbers, *all[r]);
    any(false);  // all have read mine
  }
  Hall& hall;
  const size_t me;
  const bool fast;
};

std::pair<std::string, double> train(const std::unique_ptr<Ranks>& ranks) {
  set_threads(1);
  ToyRecipe recipe;  // with dropout
  recipe.batch = 8;
  recipe.micro_batches = 5;
  recipe.steps = 10;
  ToyTrainingTask task(recipe);
  Trainer trainer(task, *ranks);
  while (!trainer.finished()) trainer.step();
  return {trainer.hash(), trainer.losses().back()};  // the hash is of all parameters and losses
}

auto on_threads(size_t size, bool fast) {
  Hall hall{std::vector<const Ranks::Sent*>(size)};
  std::vector<std::pair<std::string, double>> results(size);
  std::vector<std::thread> threads;
  for (size_t r = 0; r < size; ++r)
    threads.emplace_back([&, r] { results[r] = train(std::make_unique<ThreadRanks>(hall, r, fast)); });
  for (std::thread& thread : threads) thread.join();
  return results[0];
}

int main(int argc, char**) {
  if (argc > 1) {  // mpirun -np 2 build/book/ch11_ranks mpi
    const std::unique_ptr<Ranks> ranks = mpi_ranks();
    const std::string hash = train(ranks).first;
    if (ranks->is_first()) std::cout << ranks->size() << " processes: " << hash << '\n';
    return 0;
  }
  const float a = 16777216, b = 1, c = 1, d = -16777216;
  std::cout << "from left to right " << ((a + b) + c) + d << ", in pairs " << (a + b) + (c + d) << std::endl;
  const auto [one, loss] = on_threads(1, false);
  std::cout << "one rank: loss " << std::round(100 * loss) / 100 << ", hash " << one << "\nranks  by a tree  fast\n";
  for (size_t size = 2; size <= 5; ++size)
    std::cout << size << (on_threads(size, false).first == one ? "      same       " : "      other      ")
              << (on_threads(size, true).first == one ? "same" : "other") << std::endl;
  std::cout << "measured: nine trainings in " << std::clock() / CLOCKS_PER_SEC << " s of CPU time\n";
}
