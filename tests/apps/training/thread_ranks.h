// Chapter 9. Ranks that are threads of one process, so that no test of what they compute needs MPI.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "apps/training/ranks.h"
#include "core/machine/parallel.h"

namespace orrery::small {

/// Where threads wait for one another.
class Meeting {
 public:
  explicit Meeting(i64 size) : size_(size) {}
  /// Returns false if not all have come so soon. Error: it is over.
  bool wait(double seconds = 60) {
    std::unique_lock lock(mutex_);
    const i64 round = round_;
    if (++here_ == size_) {
      here_ = 0;
      ++round_;
      change_.notify_all();
      return true;
    }
    change_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return round_ != round || over_; });
    check(!over_, "ranks", "all have ended");
    return round_ != round;
  }
  void end() {
    const std::lock_guard lock(mutex_);
    over_ = true;
    change_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable change_;
  i64 size_, here_ = 0, round_ = 0;
  bool over_ = false;
};

/// What the ranks of one run have in common.
struct Hall {
  explicit Hall(i64 size) : given(static_cast<size_t>(size)), exchange(size), failure(size) {}
  std::vector<const Ranks::Sent*> given;
  Meeting exchange, failure;
};

class ThreadRanks final : public Ranks {
 public:
  ThreadRanks(Hall& hall, i64 rank) : hall_(hall), rank_(rank) {}
  i64 rank() const override { return rank_; }
  i64 size() const override { return std::ssize(hall_.given); }
  void exchange(const Sent& to, const Received& from) override {
    hall_.given[static_cast<size_t>(rank_)] = &to;
    hall_.exchange.wait();
    for (size_t r = 0; r < from.size(); ++r) {
      const std::span<const std::byte> mine = (*hall_.given[r])[static_cast<size_t>(rank_)];
      if (static_cast<i64>(r) == rank_) continue;
      check(mine.size() == from[r].size(), "ranks", "rank ", rank_, " expects ", from[r].size(), " bytes of rank ", r,
            ", which gives ", mine.size());
      if (!mine.empty()) std::memcpy(from[r].data(), mine.data(), mine.size());
    }
    hall_.exchange.wait();
  }
  bool meet(double seconds) override { return hall_.failure.wait(std::min(seconds, 0.2)); }
  void end_all(const std::string& line) override {
    hall_.exchange.end();
    fail("ended", line);
  }

 private:
  Hall& hall_;
  i64 rank_;
};

/// Calls f on so many ranks at once; returns what each of them threw, "" for nothing.
template <class F> std::vector<std::string> on_ranks(i64 size, const F& f) {
  Hall hall(size);
  std::vector<std::string> problems(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (i64 r = 0; r < size; ++r)
    threads.emplace_back([&, r] {
      set_threads(1);
      ThreadRanks ranks(hall, r);
      try {
        f(ranks);
      } catch (const std::exception& error) {
        problems[static_cast<size_t>(r)] = error.what();
        hall.exchange.end();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return problems;
}

}  // namespace orrery::small
