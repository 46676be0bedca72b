// Chapter 9. The signal handler behind Interrupt, which does only what a signal handler may do.
#include "apps/program/interrupt.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <string_view>

#include "apps/program/command.h"
#include "core/dtype.h"
#include "core/machine/clock.h"

namespace orrery {
namespace {

constexpr std::array caught{SIGINT, SIGTERM, SIGHUP};

// When the first signal came, in milliseconds; 0 before it. A signal handler gets no arguments of ours, so it is stored
// here.
std::atomic<i64> first_signal = 0;
static_assert(std::atomic<i64>::is_always_lock_free);  // so a handler may use it

i64 milliseconds() {
  return static_cast<i64>(1000 * steady_seconds()) + 1;  // never 0
}

void write_line(std::string_view text) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

// Some programs send one signal twice, such as `timeout`: to the program, and to its process group. So a second one
// within half a second is the first one again, unless it comes from a keyboard.
template <bool tells> void on_interrupt(int number, siginfo_t* signal, void*) {
  constexpr i64 the_same = 500;
  const int error = errno;
  const i64 now = milliseconds(), first = first_signal;
  const bool typed = number == SIGINT && signal->si_code == SI_KERNEL;
  if (first != 0 && number != SIGHUP && (typed || now - first >= the_same)) _exit(interrupted);
  if (first == 0) {
    first_signal = now;
    if (tells) write_line("\norrery: finishing what is begun; Ctrl-C again stops at once\n");
  }
  errno = error;
}

}  // namespace

Interrupt::Interrupt(bool tells) {
  first_signal = 0;
  struct sigaction action {};
  action.sa_sigaction = tells ? on_interrupt<true> : on_interrupt<false>;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < caught.size(); ++i) {
    sigaction(caught[i], nullptr, &before_[i]);
    if (caught[i] == SIGHUP && before_[i].sa_handler == SIG_IGN) continue;  // nohup: the training goes on
    sigaction(caught[i], &action, nullptr);
  }
}

Interrupt::~Interrupt() {
  for (size_t i = 0; i < caught.size(); ++i) sigaction(caught[i], &before_[i], nullptr);
}

bool Interrupt::requested() const { return first_signal != 0; }

}  // namespace orrery
