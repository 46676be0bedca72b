// Chapter 9. Ctrl-C: the first asks the run to finish its step and save, the second ends the program at once.
//
//   const Interrupt interrupt;
//   while (!interrupt.requested()) train_one_step();
// Read next: apps/interrupt.cpp
#pragma once

#include <csignal>

namespace orrery {

/// Watches for Ctrl-C while it lives; afterwards Ctrl-C does again what it did before. At most one at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// True from the first Ctrl-C on.
  bool requested() const;

 private:
  struct sigaction before_ {};
};

}  // namespace orrery
