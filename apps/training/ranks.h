// Chapter 9. Ranks: the processes that make one training together, and what they tell one another.
//
//   const std::unique_ptr<Ranks> ranks = mpi_ranks();  // those that mpirun has started
//   Trainer trainer(task, *ranks);                     // the same task on each of them
// Each rank has the whole model, computes the gradients of some of a step's micro-batches, and makes the same update as
// all others. What is decided by a clock or a signal is decided once, and told to all. Rank 0 alone writes files and
// the progress line. One process is a rank by itself, and the functions below then do nothing.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace orrery {

/// All ranks call its functions in the same order.
class Ranks {
 public:
  Ranks() = default;
  virtual ~Ranks() = default;
  /// This process by itself.
  static Ranks& alone();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  virtual i64 rank() const { return 0; }
  virtual i64 size() const { return 1; }
  bool is_first() const { return rank() == 0; }
  /// How many of the ranks share this one's machine.
  virtual i64 on_this_host() const { return size(); }
  /// "rank 2 on node7", for messages.
  virtual std::string name_of(i64 rank) const { return "rank " + std::to_string(rank); }

  using Sent = std::vector<std::span<const std::byte>>;
  using Received = std::vector<std::span<std::byte>>;
  /// Gives the bytes to[r] to rank r, and fills from[r] with those that rank r gives, of equal number. Those for this
  /// rank itself stay where they are.
  virtual void exchange(const Sent& /*to*/, const Received& /*from*/) {}
  /// Bytes on their way, which must stay where they are. It ends when all have arrived.
  class Transfer {
   public:
    virtual ~Transfer() = default;
    /// Whether all have arrived, without waiting. Bytes travel only while one of these functions runs.
    virtual bool is_over() = 0;
  };
  /// The same, but it may go on afterwards; null: it is over. What one rank starts on a channel, 0 to 2, the others
  /// start there in the same order, but perhaps before or after what is on the other one, or an exchange.
  virtual std::unique_ptr<Transfer> start(int /*channel*/, const Sent& to, const Received& from) {
    exchange(to, from);
    return nullptr;
  }
  /// Whether gradients are added by `sum`, which is fast, and whose bits depend on the number of ranks.
  virtual bool adds_fast() const { return false; }
  /// Adds up the numbers of all ranks, in any order.
  virtual void sum(Tensor& /*numbers*/) {}

  /// What each rank has, in their order.
  template <class T> std::vector<T> each(const T& mine) {
    std::vector<T> all(static_cast<size_t>(size()), mine);
    Received from;
    for (T& one : all) from.push_back(std::as_writable_bytes(std::span(&one, 1)));
    exchange(Sent(all.size(), std::as_bytes(std::span(&mine, 1))), from);
    return all;
  }
  std::vector<std::string> each_text(const std::string& mine);
  /// What rank 0 has: for what a clock decides.
  double first(double mine) { return each(mine)[0]; }
  bool any(bool mine);

  using Numbers = std::vector<double>;
  /// What `judge` gives for each of `count` pieces, in their order and the same on all ranks, each of which judges
  /// some. Every rank draws all of them one after the other, as random numbers may ask for.
  template <class Draw, class Judge> std::vector<Numbers> share_out(i64 count, const Draw& draw, const Judge& judge) {
    std::vector<Numbers> mine;
    for (i64 i = 0; i < count; ++i) {
      const auto piece = draw(i);
      if (i % size() == rank()) mine.push_back(judge(piece));
    }
    return of_all(count, mine);
  }
  /// The sums of these numbers, of which each piece has as many, in the order of the pieces, at least one.
  template <class Draw, class Judge> Numbers sums(i64 count, const Draw& draw, const Judge& judge) {
    check(count > 0, "ranks", "there is nothing to judge");
    Numbers total;
    for (const Numbers& piece : share_out(count, draw, judge)) {
      total.resize(piece.size());
      for (size_t i = 0; i < piece.size(); ++i) total[i] += piece[i];
    }
    return total;
  }

  /// Lets rank 0 call f. If that fails, all ranks fail.
  void first_does(const std::function<void()>& f);
  /// Call it where a failure is caught first. If all ranks fail at this place, as one process would have, it returns;
  /// if not, all of them end, with a line that names this one and says why.
  void failed(const std::string& why);
  /// From here on rank 0 goes on without the others, and its failures are its own.
  void others_end() { failed_ = true; }
  /// Waits until all ranks have called it. Returns false if that takes longer.
  virtual bool meet(double /*seconds*/) { return true; }
  /// Ends all ranks, with this line.
  [[noreturn]] virtual void end_all(const std::string& line);

 private:
  std::vector<Numbers> of_all(i64 count, const std::vector<Numbers>& mine);
  bool failed_ = false;
};

/// Whether this library was built with MPI.
bool has_mpi();
/// The processes that mpirun has started. One that dies or does not answer any more ends all of them within ten
/// seconds. Errors: this library was built without MPI; the MPI does not let several threads call it.
std::unique_ptr<Ranks> mpi_ranks(bool adds_fast = false);

}  // namespace orrery
