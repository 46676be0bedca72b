// Chapter 9. Tests that `kill -9` at any moment of a training loses nothing: it goes on to the bits of one that was
// never killed.
#include <doctest/doctest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/files/json.h"
#include "core/files/safetensors.h"
#include "core/random.h"
#include "tests/faults/trained_programs.h"

using namespace orrery;
using namespace orrery::faults;

namespace {

// Runs `orrery ARGUMENTS` in the background, and kills it after some time. Its exit code; none if it was killed.
std::optional<int> killed_after(double milliseconds, const std::string& arguments, const std::string& output) {
  // Without "exec" the shell would be killed, and the program would go on.
  std::string shell = "sh", option = "-c",
              command = "exec " + program::quoted_program + arguments + " >'" + output + "' 2>&1";
  char* const words[] = {shell.data(), option.data(), command.data(), nullptr};
  pid_t child = 0;
  REQUIRE(::posix_spawn(&child, "/bin/sh", nullptr, nullptr, words, environ) == 0);
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds));
  ::kill(child, SIGKILL);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? std::optional(WEXITSTATUS(status)) : std::nullopt;
}

double milliseconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// Half a second of training, with fifteen evaluations.
struct Length {
  int steps, every;
};
Length length_of(const TrainedProgram& program) { return program.name == "lm" ? Length{1500, 100} : Length{300, 20}; }

// How many steps of a training its state has; 0 without one.
int saved_steps_of(const std::string& state) {
  if (!std::filesystem::exists(state)) return 0;
  return Json::parse(read_safetensors(state).metadata.at("standing")).at("steps_done").get<int>();
}

// Kills a training this many times, each time going on with what is there; and begins anew when it has come to its end.
struct Killed {
  int ended = 0;         ///< trainings that came to their end between the kills
  int after_a_save = 0;  ///< kills after which a training could go on
};
Killed kill_again_and_again(const TrainedProgram& program, int kills, u64 seed) {
  const auto [steps, every] = length_of(program);
  const TemporaryFolder folder;
  const std::string model = folder / "model", state = model + ".resume", output = folder / "output";
  const std::string begin = program.begin(model, steps, every), resume = program.resume(model);
  program::Result whole{};
  const double milliseconds = milliseconds_of([&] { whole = program::run(begin); });
  REQUIRE(whole.exit_code == 0);
  const std::string hash = program::hash_in(whole.text), last_model = contents(model);
  const auto check_end = [&](const std::string& text) {
    CHECK(program::hash_in(text) == hash);
    CHECK(contents(model) == last_model);
    CHECK_FALSE(std::filesystem::exists(state));
    std::filesystem::remove(model);
  };
  check_end(whole.text);
  Rng rng(seed);
  Killed killed;
  for (int kill = 0; kill < kills;) {
    CAPTURE(kill);
    const bool goes_on = std::filesystem::exists(state);
    const int steps_before = saved_steps_of(state);
    const std::string arguments = goes_on ? resume : begin + "--overwrite";
    const std::optional<int> exit_code = killed_after(milliseconds * rng.uniform(), arguments, output);
    const std::string said = contents(output);
    CAPTURE(said);
    if (exit_code) {
      REQUIRE(*exit_code == 0);
      check_end(said);
      ++killed.ended;
      continue;
    }
    ++kill;
    if (std::filesystem::exists(state)) ++killed.after_a_save;
    for (const std::string& file : {model, state})
      if (std::filesystem::exists(file)) CHECK_FALSE(read_safetensors(file).tensors.empty());
    if (goes_on && !std::filesystem::exists(state))
      CHECK(contents(model) == last_model);  // killed after its end
    else
      CHECK(saved_steps_of(state) >= steps_before);
  }
  const program::Result rest = program::run(std::filesystem::exists(state) ? resume : begin + "--overwrite");
  CHECK(rest.exit_code == 0);
  check_end(rest.text);
  return killed;
}

}  // namespace

TEST_CASE("slow: promise 17: a training killed again and again ends with the bits of one that was not") {
  const TemporaryFolder texts;
  for (const TrainedProgram& program : trained_programs(texts)) {
    CAPTURE(program.name);
    CHECK(kill_again_and_again(program, 7, 1).after_a_save > 0);
  }
}

TEST_CASE("long: promise 17: 1,002 kills") {
  const TemporaryFolder texts;
  for (const TrainedProgram& program : trained_programs(texts)) {
    CAPTURE(program.name);
    const Killed killed = kill_again_and_again(program, 334, 2);
    MESSAGE(program.name << ": 334 kills, " << killed.after_a_save << " after a save, " << killed.ended << " ends");
    CHECK(killed.ended > 0);
    CHECK(killed.after_a_save > 334 / 4);
  }
}
