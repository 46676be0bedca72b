// Chapter 8. The clock of all programs.
#pragma once

#include <ctime>

namespace orrery {

/// Seconds since the machine started, also those in which it slept: who promises to end in five minutes keeps the
/// promise when a notebook is closed in between. It never goes back, and a signal handler may call it.
inline double steady_seconds() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);  // std::chrono::steady_clock does not count what the machine slept
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace orrery
