// Chapter 9. Tests of Ctrl-C: the first is a request, the second ends the program.
#include "apps/program/interrupt.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/program/command.h"

using namespace orrery;

namespace {

// How a child process ends that sends itself `signals` times Ctrl-C, or another signal, with `pause` microseconds
// between them, and would exit with 7 afterwards. It calls nothing but what is allowed after fork.
int end_of_child(int signals, int signal = SIGINT, useconds_t pause = 600'000) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    close(STDERR_FILENO);
    const Interrupt interrupt;
    for (int i = 0; i < signals; ++i) {
      if (i > 0) usleep(pause);
      raise(signal);
    }
    _exit(interrupt.requested() ? 7 : 8);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

int calls_of_old_handler = 0;

}  // namespace

TEST_CASE("without Ctrl-C nothing is requested") { CHECK(end_of_child(0) == 8); }

TEST_CASE("the first Ctrl-C is a request") { CHECK(end_of_child(1) == 7); }

TEST_CASE("the second Ctrl-C ends the program at once") { CHECK(end_of_child(2) == interrupted); }

TEST_CASE("one signal that arrives twice is one request") {
  CHECK(end_of_child(2, SIGINT, 0) == 7);
  CHECK(end_of_child(5, SIGTERM, 0) == 7);
}

TEST_CASE("SIGTERM is understood like Ctrl-C") {
  CHECK(end_of_child(1, SIGTERM) == 7);
  CHECK(end_of_child(2, SIGTERM) == interrupted);
}

TEST_CASE("SIGHUP, when a terminal closes, is a request however often it comes, and none under nohup") {
  const auto before = std::signal(SIGHUP, SIG_DFL);  // the tests may run under nohup
  CHECK(end_of_child(1, SIGHUP) == 7);
  CHECK(end_of_child(2, SIGHUP) == 7);
  std::signal(SIGHUP, SIG_IGN);
  CHECK(end_of_child(1, SIGHUP) == 8);
  std::signal(SIGHUP, before);
}

TEST_CASE("afterwards Ctrl-C does what it did before") {
  const auto before = std::signal(SIGINT, [](int) { ++calls_of_old_handler; });
  { const Interrupt interrupt; }
  raise(SIGINT);
  CHECK(calls_of_old_handler == 1);
  std::signal(SIGINT, before);
}
