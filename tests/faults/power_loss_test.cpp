// Chapter 9. Tests that a power failure at any moment of a training leaves a whole checkpoint, the last that the
// program had finished writing; and that `kill -9` at any moment loses nothing: it goes on to the bits of one that was
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
#include "tests/faults/disk.h"
#include "tests/faults/trained_programs.h"

using namespace orrery;
using namespace orrery::faults;

namespace {

constexpr int saved_steps = 4, saved_every = 2;

// The folders that crashes may leave, and how many of them are bad.
struct Crashes {
  int folders = 0, bad = 0;
  std::set<std::pair<std::string, std::string>> distinct;  // model and state, of the good ones
};

// After each call that changes the disk; of the calls that write, one in `stride`. Of an unfinished training that stood
// there before, both files must stay until the state is the new one's: beside another model, the older training would
// be continued in the new one's place, and without its state it would be lost.
Crashes crashes_of(const std::string& folder, const FolderState& before, const std::vector<Call>& calls, int stride) {
  const Disk disk(folder, before, calls);
  std::map<std::string, std::vector<Disk::Version>> histories;
  for (const std::string name : {"model", "model.resume"}) histories[name] = disk.history(name);
  Rng rng(1);
  Crashes crashes;
  int writes = 0;
  for (size_t call = 0; call <= disk.calls(); ++call) {
    if (call > 0 && calls[call - 1].name == "write" && ++writes % stride != 0) continue;
    std::map<std::string, std::set<std::optional<std::string>>> allowed;
    for (const auto& [name, history] : histories) allowed[name] = disk.allowed(history, call);
    disk.crash(call, rng, [&](const Disk::State& state) {
      ++crashes.folders;
      const auto model = Disk::contents_of("model", state), unfinished = Disk::contents_of("model.resume", state);
      const bool older_state = before.contains("model.resume") && unfinished == before.at("model.resume"),
                 older_model = before.contains("model.resume") && model == before.at("model");
      const bool torn = older_state != older_model && (older_state || !unfinished);
      const bool good = !torn && allowed["model"].contains(model) && allowed["model.resume"].contains(unfinished);
      if (!good) ++crashes.bad;
      if (good) crashes.distinct.emplace(model.value_or(""), unfinished.value_or(""));
    });
  }
  return crashes;
}

std::vector<Call> without(std::vector<Call> calls, const std::function<bool(const Call&)>& left_out) {
  std::erase_if(calls, left_out);
  return calls;
}

// Each rename before the write that it needs, as a careless program would do it.
std::vector<Call> renamed_early(std::vector<Call> calls) {
  for (size_t i = 1; i < calls.size(); ++i)
    for (size_t at = i; calls[at].name == "rename" && calls[at - 1].name != "dup" && at > 1; --at)
      std::swap(calls[at], calls[at - 1]);
  return calls;
}

// The files of an unfinished training, whose program was killed at its second save.
FolderState unfinished_training(const std::string& command, const TemporaryFolder& folder) {
  put({}, folder);
  run_with_faults(command, folder, {.call = "rename", .at = 3, .error = "kill"});
  FolderState state = state_of(folder);
  std::erase_if(state, [](const auto& file) { return !(file.first == "model" || file.first == "model.resume"); });
  REQUIRE(state.size() == 2);
  return state;
}

// A folder after a crash. Bytes of the lock and of the temporary file were not flushed, and may be lost: zeros, or a
// part of a file.
FolderState folder_with(const std::string& model, const std::string& unfinished) {
  FolderState left;
  if (!model.empty()) left["model"] = model;
  if (!unfinished.empty()) left["model.resume"] = unfinished;
  left["model.lock"] = std::string(30, '\0');
  left["model.tmp"] = model.substr(0, model.size() / 2);
  return left;
}

// Tries a crash at each point of a training that finds `before` in its folder, and goes on from what the crash leaves:
// the training must end as one without a crash. It saves after every `every` steps; 0: only at its end. Returns how
// many folders there were.
int try_crashes_of(const TrainedProgram& program, const FolderState& before, const TemporaryFolder& folder, int stride,
                   int every) {
  const std::string model = folder / "model";
  const std::string begin = program.begin(model, saved_steps, every) + "--overwrite";
  put(before, folder);
  const Outcome whole = run_with_faults(begin, folder);
  REQUIRE(whole.exit_code == 0);
  const FolderState after = state_of(folder);
  const Crashes crashes = crashes_of(folder.path().string(), before, whole.calls, stride);
  CHECK(crashes.bad == 0);
  CHECK(crashes.distinct.size() >= (every == 0 ? 4 : 5));
  for (const auto& [left_model, left_state] : crashes.distinct) {
    put(folder_with(left_model, left_state), folder);
    if (!left_model.empty()) CHECK_FALSE(read_safetensors(model).tensors.empty());
    const bool begins_anew =
        left_state.empty() || (before.contains("model.resume") && left_state == before.at("model.resume"));
    const program::Result next = program::run(begins_anew ? begin : program.resume(model));
    CHECK(next.exit_code == 0);
    CHECK(program::hash_in(next.text) == program::hash_in(whole.output));
    CHECK(state_of(folder) == after);
  }
  return crashes.folders;
}

// The same for the first of the programs, in an empty folder, over a finished training and over an unfinished one; for
// the toy, there also without evaluations.
int try_crashes(int stride, size_t programs) {
  const TemporaryFolder texts, folder;
  int folders = 0;
  std::vector<TrainedProgram> tried = trained_programs(texts);
  tried.resize(programs);
  for (const TrainedProgram& program : tried) {
    CAPTURE(program.name);
    const std::string earlier = program.begin(folder / "model", saved_steps, saved_every) + "--seed 7";
    put({}, folder);
    REQUIRE(program::run(earlier).exit_code == 0);
    const FolderState finished = state_of(folder), unfinished = unfinished_training(earlier, folder);
    for (const FolderState& before : {FolderState{}, finished, unfinished})
      folders += try_crashes_of(program, before, folder, stride, saved_every);
    if (program.name == "toy") folders += try_crashes_of(program, unfinished, folder, stride, 0);
  }
  MESSAGE(folders << " folders after a crash");
  return folders;
}

}  // namespace

TEST_CASE("promise 19: whatever a power failure keeps of what was not flushed, a whole checkpoint is left") {
  CHECK(try_crashes(25, 1) > 10'000);
}

TEST_CASE("long: promise 19: the same for every program, after each call") { CHECK(try_crashes(1, 3) > 500'000); }

TEST_CASE("promise 19: the names of new folders are flushed before anything is written in them") {
  const TemporaryFolder texts, folder;
  const std::string outer = folder / "outer", inner = outer + "/inner";
  for (const TrainedProgram& program : trained_programs(texts)) {
    CAPTURE(program.name);
    std::filesystem::remove_all(outer);
    const Outcome whole = run_with_faults(program.begin(inner + "/", saved_steps, saved_every), folder);
    REQUIRE(whole.exit_code == 0);
    std::map<int, std::string> opened;      // by descriptor
    std::set<std::string> made, unflushed;  // folders, and those around new ones
    for (const Call& call : whole.calls) {
      if (call.name == "open") opened[call.file()] = call.about.at(1);
      if (call.name == "fsync") unflushed.erase(opened[call.file()]);
      if (call.name == "write") CHECK(unflushed.empty());
      if (call.name != "mkdir") continue;
      made.insert(call.about.at(0));
      unflushed.insert(std::filesystem::path(call.about.at(0)).parent_path().string() + "/");
    }
    CHECK(made == std::set<std::string>{outer, inner});
  }
}

TEST_CASE("the model of a disk finds what a program forgets") {
  const TemporaryFolder texts, folder;
  const std::string path = folder.path().string();
  const TrainedProgram lm = trained_programs(texts)[1];
  const std::vector<Call> calls = run_with_faults(lm.begin(folder / "model", saved_steps, saved_every), folder).calls;
  REQUIRE(crashes_of(path, {}, calls, 10).bad == 0);
  const auto saves = std::count_if(calls.begin(), calls.end(), [](const Call& call) { return call.name == "rename"; });
  std::set<int> folders;  // descriptors
  const auto is_flush = [&](const Call& call, bool of_folder) {
    if (call.name == "open") {
      folders.erase(call.file());
      if (call.about[1] == path + "/") folders.insert(call.file());
    }
    return call.name == "fsync" && folders.contains(call.file()) == of_folder;
  };
  for (const bool of_folder : {false, true}) {
    CAPTURE(of_folder);
    const auto forgetful = without(calls, [&](const Call& call) { return is_flush(call, of_folder); });
    const i64 removals = of_folder ? 1 : 0;  // of the state, at the end
    CHECK(std::ssize(forgetful) == std::ssize(calls) - saves - removals);
    CHECK(crashes_of(path, {}, forgetful, 10).bad > 0);
  }
  CHECK(crashes_of(path, {}, renamed_early(calls), 10).bad > 0);
}

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
