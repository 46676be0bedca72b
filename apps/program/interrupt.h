// Chapter 9. Ctrl-C: the first asks the run to finish its step and save, the second ends the program at once.
//
// SIGTERM, with which systems end programs, is understood in the same way.
//   const Interrupt interrupt;
//   while (!interrupt.requested()) train_one_step();
// Serves: apps/toy/toy.cpp
#pragma once

#include <csignal>

namespace orrery {

/// Watches for Ctrl-C and SIGTERM while it lives; afterwards they do again what they did before. At most one at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// True from the first of them on.
  bool requested() const;

 private:
  struct sigaction interrupt_before_ {
  }, terminate_before_{};
};

}  // namespace orrery
