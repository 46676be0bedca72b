// Chapter 9. Ranks by MPI, whose functions are called here alone.
#include <memory>

#include "apps/training/ranks.h"

#ifdef ORRERY_HAS_MPI
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <type_traits>

#include "core/machine/clock.h"
#endif

namespace orrery {

#ifdef ORRERY_HAS_MPI
namespace {

using namespace std::chrono_literals;

// A group of all ranks, whose messages do not meet those of another.
class Group {
 public:
  Group() { MPI_Comm_dup(MPI_COMM_WORLD, &all_); }
  ~Group() { MPI_Comm_free(&all_); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  operator MPI_Comm() const { return all_; }

 private:
  MPI_Comm all_ = MPI_COMM_NULL;
};

// MPI from its start to its end.
class Mpi {
 public:
  Mpi() {
    int given = MPI_THREAD_SINGLE;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &given);
    check(given == MPI_THREAD_MULTIPLE, "ranks", "this MPI does not let several threads call it");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
  }
  ~Mpi() { MPI_Finalize(); }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  int rank = 0, size = 1;
};

// mpirun ends all processes when one of them dies, but not when one is stopped, or its machine is gone. So twice a
// second each rank gives rank 0 a sign of life, and rank 0 gives one to each, by a thread that does nothing else. Time
// in which this thread does not run, since the machine sleeps or is busy, does not count against the others.
class Watch {
 public:
  Watch(const Mpi& mpi, std::function<void(int silent)> on_silence)
      : mpi_(mpi), on_silence_(std::move(on_silence)), thread_([this] { watch(); }) {}
  // No sign may be left, or MPICH would complain: each partner's last one comes after all others of it.
  ~Watch() {
    over_ = true;
    thread_.join();
    std::vector<MPI_Request> sent;
    for (int r = begin_; r < end_; ++r) MPI_Isend(&last_sign, 1, MPI_CHAR, r, 0, group_, &sent.emplace_back());
    for (int r = begin_; r < end_; ++r)
      while (newest_[static_cast<size_t>(r)] != last_sign) take_sign(r);
    MPI_Waitall(static_cast<int>(sent.size()), sent.data(), MPI_STATUSES_IGNORE);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  static constexpr char last_sign = 1;

  void take_sign(int rank) {
    MPI_Recv(&newest_[static_cast<size_t>(rank)], 1, MPI_CHAR, rank, 0, group_, MPI_STATUS_IGNORE);
    missed_[static_cast<size_t>(rank)] = 0;
  }
  void take_signs() {
    MPI_Status status;
    for (int there = 1; there != 0;) {
      MPI_Iprobe(MPI_ANY_SOURCE, 0, group_, &there, &status);
      if (there != 0) take_sign(status.MPI_SOURCE);
    }
  }
  void watch() {
    // Of many who miss rank 0, the first one says so.
    const int most_missed = mpi_.rank < 2 ? 9 : 12;
    while (true) {
      for (int i = 0; i < 25; ++i, std::this_thread::sleep_for(20ms))
        if (over_) return;
      const char sign = 0;
      for (int r = begin_; r < end_; ++r) MPI_Send(&sign, 1, MPI_CHAR, r, 0, group_);
      for (int r = begin_; r < end_; ++r) ++missed_[static_cast<size_t>(r)];
      take_signs();
      for (int r = begin_; r < end_; ++r)
        if (missed_[static_cast<size_t>(r)] > most_missed) on_silence_(r);
    }
  }

  const Mpi& mpi_;
  std::function<void(int)> on_silence_;
  Group group_;
  const int begin_ = mpi_.rank == 0 ? 1 : 0, end_ = mpi_.rank == 0 ? mpi_.size : 1;  // its partners
  std::vector<char> newest_ = std::vector<char>(static_cast<size_t>(mpi_.size), 0);  // signs
  std::vector<int> missed_ = std::vector<int>(static_cast<size_t>(mpi_.size), 0);
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

// Messages on their way. It ends when all of them have arrived.
struct Exchange final : Ranks::Transfer {
  Exchange() = default;
  ~Exchange() override { MPI_Waitall(static_cast<int>(open.size()), open.data(), MPI_STATUSES_IGNORE); }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  bool is_over() override {
    int all = 0;
    MPI_Testall(static_cast<int>(open.size()), open.data(), &all, MPI_STATUSES_IGNORE);
    return all != 0;
  }
  std::vector<MPI_Request> open;
};

class MpiRanks final : public Ranks {
 public:
  explicit MpiRanks(bool adds_fast) : adds_fast_(adds_fast) {
    char name[MPI_MAX_PROCESSOR_NAME];
    int length = 0;
    MPI_Get_processor_name(name, &length);
    hosts_ = each_text(std::string(name, static_cast<size_t>(length)));
    watch_.emplace(mpi_,
                   [this](int silent) { end_all(name_of(silent) + " has not answered for five seconds, so all end"); });
  }
  // Rank 0 may need minutes to judge and save the model. The others wait without keeping their cores busy.
  ~MpiRanks() override { all_come(end_, 1e9); }

  i64 rank() const override { return mpi_.rank; }
  i64 size() const override { return mpi_.size; }
  i64 on_this_host() const override {
    return std::count(hosts_.begin(), hosts_.end(), hosts_[static_cast<size_t>(mpi_.rank)]);
  }
  std::string name_of(i64 rank) const override {
    return Ranks::name_of(rank) + " on " + hosts_[static_cast<size_t>(rank)];
  }

  void exchange(const Sent& to, const Received& from) override { begin(0, to, from); }
  std::unique_ptr<Transfer> start(int channel, const Sent& to, const Received& from) override {
    return begin(1 + channel, to, from);
  }
  bool adds_fast() const override { return adds_fast_; }
  void sum(Tensor& numbers) override {
    dispatch_floating(numbers.dtype(), "ranks", [&](auto t) {
      using T = decltype(t);
      MPI_Allreduce(MPI_IN_PLACE, numbers.write<T>(), static_cast<int>(numbers.count()),
                    std::is_same_v<T, float> ? MPI_FLOAT : MPI_DOUBLE, MPI_SUM, group_);
    });
  }
  bool meet(double seconds) override { return all_come(failure_, seconds); }
  [[noreturn]] void end_all(const std::string& line) override {
    const std::string text = "orrery: " + harmless_lines(line) + "\n";
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    std::this_thread::sleep_for(100ms);  // so that mpirun passes the line on before it ends everything
    MPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
  }

 private:
  std::unique_ptr<Exchange> begin(int tag, const Sent& to, const Received& from) {
    auto exchange = std::make_unique<Exchange>();
    std::vector<MPI_Request>& open = exchange->open;
    for (int k = 1; k < mpi_.size; ++k) {  // in pairs: each has one partner to send to, and one to receive from
      const int next = (mpi_.rank + k) % mpi_.size, before = (mpi_.rank - k + mpi_.size) % mpi_.size;
      const std::span<std::byte> got = from[static_cast<size_t>(before)];
      const std::span<const std::byte> given = to[static_cast<size_t>(next)];
      if (!got.empty())
        MPI_Irecv(got.data(), static_cast<int>(got.size()), MPI_BYTE, before, tag, group_, &open.emplace_back());
      if (!given.empty())
        MPI_Isend(given.data(), static_cast<int>(given.size()), MPI_BYTE, next, tag, group_, &open.emplace_back());
    }
    return exchange;
  }
  static bool all_come(const Group& meeting, double seconds) {
    MPI_Request barrier = MPI_REQUEST_NULL;
    MPI_Ibarrier(meeting, &barrier);
    for (const double begin = steady_seconds(); steady_seconds() - begin < seconds; std::this_thread::sleep_for(5ms)) {
      int all_are_here = 0;
      MPI_Test(&barrier, &all_are_here, MPI_STATUS_IGNORE);
      if (all_are_here) return true;
    }
    return false;
  }

  Mpi mpi_;
  Group group_, failure_, end_;  // a rank that has failed does not meet one that is at its end
  bool adds_fast_;
  std::vector<std::string> hosts_;
  std::optional<Watch> watch_;
};

}  // namespace

bool has_mpi() { return true; }

std::unique_ptr<Ranks> mpi_ranks(bool adds_fast) { return std::make_unique<MpiRanks>(adds_fast); }
#else
bool has_mpi() { return false; }

std::unique_ptr<Ranks> mpi_ranks(bool) {
  fail("ranks",
       "this program was built without MPI. On Debian and Ubuntu: apt-get install libopenmpi-dev openmpi-bin; "
       "then remove build/CMakeCache.txt, and build again");
}
#endif

}  // namespace orrery
