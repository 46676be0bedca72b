// Chapter 9. Tests of terminals: when lines may redraw and colours may show.
#include "apps/program/terminal.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/core/temporary_folder.h"

using namespace orrery;

TEST_CASE("a terminal shows colours unless NO_COLOR is set to something") {
  CHECK(terminal_rule(true, nullptr, "xterm", 80).colours);
  CHECK(terminal_rule(true, "", "xterm", 80).colours);
  CHECK_FALSE(terminal_rule(true, "1", "xterm", 80).colours);
  CHECK(terminal_rule(true, "1", "xterm", 80).live);
}

TEST_CASE("a pipe and a dumb terminal are neither live nor coloured") {
  for (const Terminal& terminal : {terminal_rule(false, nullptr, "xterm", 0), terminal_rule(true, nullptr, "dumb", 80),
                                   terminal_rule(true, nullptr, nullptr, 80)}) {
    CHECK_FALSE(terminal.live);
    CHECK_FALSE(terminal.colours);
  }
}

TEST_CASE("the width is what the terminal answered, 80 if it did not") {
  CHECK(terminal_rule(true, nullptr, "xterm", 132).width == 132);
  CHECK(terminal_rule(true, nullptr, "xterm", 0).width == 80);
}

TEST_CASE("/dev/null is not a terminal") {
  const int null = open("/dev/null", O_WRONLY);
  REQUIRE(null >= 0);
  CHECK_FALSE(terminal_of(null).live);
  close(null);
}

TEST_CASE("text is coloured only where colours show") {
  CHECK(coloured("FAILED", Colour::red, {.live = true, .colours = true}) == "\033[31mFAILED\033[0m");
  CHECK(coloured("FAILED", Colour::red, {}) == "FAILED");
}

TEST_CASE("a part of the work that takes long says what it is, also into a file; one that takes short does not") {
  const TemporaryFolder folder;
  const int before = dup(STDERR_FILENO), file = open((folder / "errors").c_str(), O_RDWR | O_CREAT, 0600);
  REQUIRE(file >= 0);
  dup2(file, STDERR_FILENO);
  { const Phase phase("resting"); }
  {
    const Phase phase("reading a\x1B", 0);
    for (int i = 0; i < 10'000 && contents(folder / "errors").empty(); ++i) usleep(1000);
  }
  dup2(before, STDERR_FILENO);
  close(before);
  close(file);
  CHECK(contents(folder / "errors") == "reading a? ...\n");
}

TEST_CASE("text of others is made harmless for a terminal, and stays as it is for anything else") {
  const std::string text = "a\x1B[31m\nb\x07";
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY), null = open("/dev/null", O_WRONLY);
  REQUIRE(terminal >= 0);
  REQUIRE(null >= 0);
  CHECK(for_reader(text, terminal) == "a?[31m\nb?");
  CHECK(for_reader(text, null) == text);
  close(terminal);
  close(null);
}
