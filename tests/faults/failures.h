// Chapter 9. How system calls may fail, and which of them: the table of the tests of faults.
#pragma once

#include <algorithm>
#include <cerrno>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/random.h"

namespace orrery::faults {

inline const std::string no_space = std::to_string(ENOSPC), io_error = std::to_string(EIO),
                         by_signal = std::to_string(EINTR);
inline constexpr int for_good = 1'000'000, many_signals = 20;

/// How each call may fail. A signal does not interrupt a call for ever; the others may last. It cannot interrupt
/// rename, mmap or unlink (POSIX).
struct Failure {
  std::string call, error;
  std::vector<int> times{1, for_good};
};
inline const std::vector<Failure> failures{{"open", no_space},
                                           {"open", io_error},
                                           {"open", by_signal, {1, many_signals}},
                                           {"write", no_space},
                                           {"write", io_error},
                                           {"write", by_signal, {1, many_signals}},
                                           {"write", "short"},
                                           {"fsync", no_space},
                                           {"fsync", io_error},
                                           {"fsync", by_signal, {1, many_signals}},
                                           {"close", no_space, {1}},
                                           {"close", io_error},
                                           {"close", by_signal, {1}},
                                           {"rename", no_space},
                                           {"rename", io_error},
                                           {"mmap", std::to_string(ENOMEM)},
                                           {"read", io_error},
                                           {"read", by_signal, {1, many_signals}},
                                           {"read", "short"},
                                           {"truncate", io_error},
                                           {"truncate", by_signal, {1, many_signals}},
                                           {"chmod", io_error},
                                           {"chmod", by_signal, {1, many_signals}},
                                           {"allocate", no_space},
                                           {"allocate", io_error},
                                           {"allocate", by_signal},
                                           {"lock", io_error},
                                           {"lock", by_signal, {1, many_signals}},
                                           {"dup", std::to_string(EMFILE)},
                                           {"unlink", io_error},
                                           {"mkdir", no_space},
                                           {"mkdir", io_error},
                                           {"mkdir", by_signal, {1, many_signals}},
                                           {"any", "kill", {1}}};

/// Which of `count` calls fail: `few` at random, or all if it is 0.
inline std::set<int> places(int count, int few, Rng& rng) {
  std::set<int> chosen;
  for (int at = 1; at <= count && few == 0; ++at) chosen.insert(at);
  while (std::ssize(chosen) < std::min(few, count))
    chosen.insert(1 + static_cast<int>(rng.bits64() % static_cast<u64>(count)));
  return chosen;
}

/// Each of `count` calls, as many times in a row as that failure is tried.
inline std::vector<std::pair<int, int>> places_and_times(int count, const Failure& failure) {
  std::vector<std::pair<int, int>> all;
  for (const int times : failure.times)
    for (int at = 1; at <= count; ++at) all.emplace_back(at, times);
  return all;
}

}  // namespace orrery::faults
