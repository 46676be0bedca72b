// Chapter 9. Ctrl-C: the first asks the run to finish its step and save, the second ends the program at once.
//
// SIGTERM, with which the system ends programs, has the same effect, and so has SIGHUP, which comes when a terminal or
// a connection closes; under nohup it is ignored. Some programs send each signal twice, so a second one within half a
// second is taken for the first one again. A second Ctrl-C from a keyboard always ends the program, a second
// SIGHUP never.
//   const Interrupt interrupt;
//   while (!interrupt.requested()) train_one_step();
#pragma once

#include <array>
#include <csignal>

namespace orrery {

/// Catches Ctrl-C, SIGTERM and SIGHUP during its lifetime; afterwards they have their former effect. At most one may
/// exist. If it `tells`, the first of them is answered with a line.
class Interrupt {
 public:
  explicit Interrupt(bool tells = true);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// True after the first of these signals.
  bool requested() const;

 private:
  std::array<struct sigaction, 3> before_{};
};

}  // namespace orrery
