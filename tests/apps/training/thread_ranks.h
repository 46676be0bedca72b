// Chapter 9. Ranks that are threads of one process, so that no test of what they compute needs MPI.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <map>
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
  bool is_over() {
    const std::lock_guard lock(mutex_);
    return over_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable change_;
  i64 size_, here_ = 0, round_ = 0;
  bool over_ = false;
};

/// What the ranks of one run have in common.
struct Hall {
  Hall(i64 size, bool is_late)
      : given(static_cast<size_t>(size)), exchange(size), failure(size), transfers_are_late(is_late) {}
  std::vector<const Ranks::Sent*> given;
  Meeting exchange, failure;

  /// Transfers go on while others begin: bytes are copied when all ranks have begun one and this one has asked for the
  /// first to the fourth time if it is over, which differs from transfer to transfer.
  const bool transfers_are_late;
  struct Shared {
    std::map<i64, Ranks::Sent> given;
    i64 taken = 0;  ///< so many ranks have what is theirs
  };
  std::mutex mutex;
  std::map<std::pair<int, i64>, Shared> transfers;  ///< by channel, and number there
};

struct LateTransfer final : Ranks::Transfer {
  LateTransfer(Hall& h, i64 own, Hall::Shared& all, Ranks::Received to_fill, i64 times)
      : hall(h), rank(own), shared(all), from(std::move(to_fill)), waits(times) {}
  ~LateTransfer() override {
    while (!hall.exchange.is_over() && !is_over()) std::this_thread::yield();
  }
  LateTransfer(const LateTransfer&) = delete;
  LateTransfer& operator=(const LateTransfer&) = delete;
  bool is_over() override {
    check(!hall.exchange.is_over() || std::uncaught_exceptions() > 0, "ranks", "all have ended");
    const std::lock_guard lock(hall.mutex);
    if (!taken && --waits < 0 && shared.given.size() == from.size()) {
      for (size_t r = 0; r < from.size(); ++r)
        if (static_cast<i64>(r) != rank)
          std::ranges::copy(shared.given[static_cast<i64>(r)][static_cast<size_t>(rank)], from[r].begin());
      taken = true;
      ++shared.taken;
    }
    return shared.taken == std::ssize(from);
  }

  Hall& hall;
  const i64 rank;
  Hall::Shared& shared;
  const Ranks::Received from;
  i64 waits;
  bool taken = false;
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
  std::unique_ptr<Transfer> start(int channel, const Sent& to, const Received& from) override {
    if (!hall_.transfers_are_late) return Ranks::start(channel, to, from);
    const i64 number = started_[channel]++;
    const std::lock_guard lock(hall_.mutex);
    Hall::Shared& shared = hall_.transfers[{channel, number}];
    shared.given[rank_] = to;
    return std::make_unique<LateTransfer>(hall_, rank_, shared, from, (number + 3 * rank_ + channel) % 4);
  }
  bool meet(double seconds) override { return hall_.failure.wait(std::min(seconds, 0.2)); }
  void end_all(const std::string& line) override {
    hall_.exchange.end();
    fail("ended", line);
  }

 private:
  Hall& hall_;
  i64 rank_;
  std::map<int, i64> started_;  // transfers of each channel
};

/// Calls f on so many ranks at once; returns what each of them threw, "" for nothing.
template <class F> std::vector<std::string> on_ranks(i64 size, const F& f, bool transfers_are_late = false) {
  Hall hall(size, transfers_are_late);
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
