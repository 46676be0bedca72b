// Chapter 9. Tests that two processes which save at once, in one folder or in one file, do not harm each other.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/files/file.h"
#include "tests/core/support.h"
#include "tests/faults/trained_programs.h"

using namespace orrery;
using namespace orrery::faults;
using program::contains;
using program::quoted_program;

namespace {

// Runs two commands at the same time. Their outputs go to the files `first` and `second` in the folder `beside`.
struct Both {
  program::Result first, second;
};
Both at_once(const std::string& first, const std::string& second, const TemporaryFolder& beside) {
  const program::Result result =
      program::shell(quoted_program + first + " >'" + (beside / "first") + "' 2>&1 & " + quoted_program + second +
                     " >'" + (beside / "second") + "' 2>&1; code=$?; wait $!; echo $? $code");
  Both both{};
  std::istringstream(result.text) >> both.first.exit_code >> both.second.exit_code;
  both.first.text = contents(beside / "first");
  both.second.text = contents(beside / "second");
  return both;
}

}  // namespace

TEST_CASE("promise 28: two trainings at once in one folder, under two names, leave what each leaves alone") {
  const TemporaryFolder texts, folder, beside;
  constexpr int steps = 20, every = 2;
  for (const TrainedProgram& program : trained_programs(texts)) {
    CAPTURE(program.name);
    const auto command = [&](const std::string& name, const std::string& seed) {
      return program.begin(folder / name, steps, every) + "--seed " + seed + " --log '" + (folder / (name + " log")) +
             "' ";
    };
    put({}, folder);
    const std::string first_hash = program::trained_hash(command("one", "1"));
    const std::string second_hash = program::trained_hash(command("two", "2"));
    const FolderState alone = state_of(folder);
    REQUIRE(first_hash != second_hash);
    put({}, folder);
    const Both both = at_once(command("one", "1"), command("two", "2"), beside);
    CHECK(both.first.exit_code == 0);
    CHECK(both.second.exit_code == 0);
    CHECK(program::hash_in(both.first.text) == first_hash);
    CHECK(program::hash_in(both.second.text) == second_hash);
    const FolderState together = state_of(folder);
    CHECK(together.size() == 4);
    for (const std::string name : {"one", "two"}) CHECK(together.at(name) == alone.at(name));
  }
}

TEST_CASE("promise 28: of two trainings with one file or one log, one is refused and the other ends as alone") {
  const TemporaryFolder texts, folder, beside;
  const std::string log = " --log '" + (beside / "log") + "' ";
  const TrainedProgram program = trained_programs(texts)[0];
  constexpr int steps = 2000;  // enough for the second one to start in time
  const std::string begin = program.begin(folder / "model", steps, 100);
  const std::string same_log = program.begin(folder / "other", steps, 100) + log;
  put({}, folder);
  const std::string hash = program::trained_hash(begin);
  const FolderState alone = state_of(folder);
  const auto check_one = [&](const std::string& second, const std::string& refusal) {
    CAPTURE(second);
    put({}, folder);
    std::filesystem::remove(beside / "log");
    const program::Result result = program::shell(
        quoted_program + begin + log + " >'" + (beside / "first") + "' 2>&1 & until grep -q '\"step\":' '" +
        (beside / "log") + "' 2>/dev/null; do kill -0 $! || break; sleep 0.005; done; " + quoted_program + second +
        " 2>&1 >/dev/null; echo $?; wait $!; echo $?");
    CHECK(contains(result.text, refusal));
    CHECK(result.text.ends_with("\n1\n0\n"));
    CHECK(program::hash_in(contents(beside / "first")) == hash);
    CHECK(state_of(folder) == alone);
    CHECK(contents(beside / "log").starts_with("{\"start\":"));
    CHECK_FALSE(contains(contents(beside / "log"), std::string(1, '\0')));
  };
  check_one(begin, "another training saves its model in " + (folder / "model") + ": process ");
  check_one(begin + "--overwrite", "another training saves its model in ");
  check_one(program.resume(folder / "model"), "another training saves its model in ");
  check_one(same_log, "write " + (beside / "log") + ": somebody else is writing it");
}

TEST_CASE("promise 28: of two trainings that start at once with one file, one trains as alone") {
  const TemporaryFolder texts, folder, beside;
  const std::string begin = trained_programs(texts)[0].begin(folder / "model", 4, 2);
  REQUIRE(program::run(begin).exit_code == 0);
  const FolderState alone = state_of(folder);
  for (int round = 0; round < 5; ++round) {
    put({}, folder);
    const Both both = at_once(begin, begin, beside);
    CAPTURE(both.first.text);
    CAPTURE(both.second.text);
    CHECK(both.first.exit_code + both.second.exit_code == 1);  // exactly one trained
    for (const program::Result& each : {both.first, both.second}) {
      const bool refused =
          contains(each.text, "orrery: ") &&
          (contains(each.text, "another training saves its model in ") ||
           contains(each.text, " already holds a model") || contains(each.text, " holds an unfinished training"));
      CHECK(each.exit_code == (refused ? 1 : 0));
    }
    CHECK(state_of(folder) == alone);
  }
}

TEST_CASE("promise 28: a model has no name that another training needs for its own files") {
  const TemporaryFolder texts, folder;
  for (const TrainedProgram& program : trained_programs(texts)) {
    for (const std::string end : {".resume", ".lock", ".tmp"})
      program::check_failure(
          quoted_program + program.begin(folder / ("model" + end), 2, 2),
          ": names that end in " + end + " are those of files beside a model; name another, such as ");
  }
  CHECK(folder.count() == 0);
}

TEST_CASE("promise 28: processes that replace one file at once leave one text whole, and readers see no other") {
  const TemporaryFolder folder;
  const std::string path = folder / "file", busy = "somebody else is writing " + path + ".tmp";
  constexpr int writers = 4, replacements = 10;
  constexpr size_t size = 50'000;
  const auto replace = [&](const std::string& text) {
    const std::vector<std::span<const std::byte>> parts{std::as_bytes(std::span(text))};
    return small::error_of([&] { replace_file(path, parts); });
  };
  const auto text_of = [](int writer) { return std::string(size, static_cast<char>('a' + writer)); };
  // Writes until it has been the only one often enough. Exit code 0: every other attempt was told that it is not.
  const auto write_often = [&](int writer) {
    for (int written = 0; written < replacements;) {
      const std::string error = replace(text_of(writer));
      written += error.empty() ? 1 : 0;
      if (!error.empty() && !error.ends_with(busy)) ::_exit(1);
      ::usleep(static_cast<useconds_t>(500 * (writer + 1)));
    }
    ::_exit(0);
  };
  REQUIRE(replace(text_of(0)) == "");
  for (int writer = 0; writer < writers; ++writer) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) write_often(writer);
  }
  int torn = 0;
  for (int ended = 0; ended < writers;) {
    const std::string seen = contents(path);
    torn += seen.size() == size && seen == std::string(size, seen[0]) ? 0 : 1;
    int status = 0;
    if (::waitpid(-1, &status, WNOHANG) <= 0) continue;
    ++ended;
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
  CHECK(torn == 0);
  CHECK(folder.count() == 1);
}
