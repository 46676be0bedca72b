// Chapter 9. The signal handler behind Interrupt, which does only what a signal handler may do.
//
// Serves: apps/toy/toy.cpp
#include "apps/program/interrupt.h"

#include <unistd.h>

#include <string_view>

#include "apps/program/exit_code.h"

namespace orrery {
namespace {

// A signal handler gets no arguments of ours, so its result is stored here.
volatile std::sig_atomic_t signals = 0;

void write_line(std::string_view text) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

void on_interrupt(int) {
  if (signals != 0) _exit(interrupted);
  signals = 1;
  write_line("\norrery: finishing what is begun; Ctrl-C again stops at once\n");
}

}  // namespace

Interrupt::Interrupt() {
  signals = 0;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &interrupt_before_);
  sigaction(SIGTERM, &action, &terminate_before_);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &interrupt_before_, nullptr);
  sigaction(SIGTERM, &terminate_before_, nullptr);
}

bool Interrupt::requested() const { return signals != 0; }

}  // namespace orrery
