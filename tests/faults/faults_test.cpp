// Chapter 9. Tests that every system call of a training that saves may fail: nothing is lost, and the failure is told.
//
// Each run starts from the same files and has one fault. What it may leave behind is known from a run without one: the
// contents that each file had at any time.
#include <doctest/doctest.h>

#include <set>

#include "tests/faults/disk.h"
#include "tests/faults/trained_programs.h"

using namespace orrery;
using namespace orrery::faults;
using program::contains;

namespace {

// A training from its beginning or one that is resumed, from the files that stand there before.
struct Scenario {
  std::string name, command, again;  // `again` trains anew where nothing can be resumed
  std::string resume;
  FolderState before;
  bool replaces_unfinished = false;  // `before` is of another training, which can be resumed
};

std::optional<std::string> file_in(const FolderState& state, const std::string& name) {
  const auto found = state.find(name);
  return found == state.end() ? std::nullopt : std::optional(found->second);
}

// The log without what a clock decides: which steps have a line, and their seconds.
std::string without_times(const std::string& log) {
  std::string result;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);)
    if (!contains(line, "\"loss\":")) result += line.substr(0, line.find(",\"seconds\"")) + '\n';
  return result;
}

// What a run is judged by: the files that a user keeps.
FolderState kept(FolderState state) {
  std::erase_if(state, [](const auto& file) { return file.first.ends_with(".tmp") || file.first.ends_with(".lock"); });
  if (state.contains("log")) state["log"] = without_times(state["log"]);
  return state;
}

// What a training goes on from: whole files, and the names of those that are only in its way.
FolderState with_names_alone(FolderState state) {
  for (auto& [name, text] : state)
    if (name == "log" || name.ends_with(".tmp") || name.ends_with(".lock")) text = "";
  return state;
}

// Runs one scenario again and again, each time with another fault.
class Trial {
 public:
  Trial(const Scenario& scenario, const TemporaryFolder& folder) : scenario_(scenario), folder_(folder) {
    put(scenario.before, folder);
    const Outcome whole = run_with_faults(scenario.command, folder);
    REQUIRE(whole.exit_code == 0);
    after_ = kept(state_of(folder));
    hash_ = program::hash_in(whole.output);
    REQUIRE(hash_ != "");
    calls_ = whole.calls;
    const Disk disk(folder.path().string(), scenario.before, calls_);
    for (const std::string name : {"model", "model.resume"})
      for (const Disk::Version& version : disk.history(name)) versions_[name].insert(version.contents);
  }

  const std::vector<Call>& calls() const { return calls_; }
  int count(const std::string& call) const {
    return static_cast<int>(
        std::count_if(calls_.begin(), calls_.end(), [&](const Call& c) { return call == "any" || c.name == call; }));
  }

  // Returns whether the program told of the fault.
  bool run(const Fault& fault) {
    const std::string what = scenario_.name + ": " + fault.text();
    CAPTURE(what);
    put(scenario_.before, folder_);
    const Outcome outcome = run_with_faults(scenario_.command, folder_, fault);
    CAPTURE(outcome.errors);
    const FolderState state = state_of(folder_);
    for (const auto& file : versions_) {
      const auto& [name, known] = file;
      CAPTURE(file.first);
      CHECK(known.contains(file_in(state, name)));
    }
    // Both files of the older training stay until the state is ours.
    if (scenario_.replaces_unfinished && (has_older_state(state) || !state.contains("model.resume")))
      CHECK((file_in(state, "model") == file_in(scenario_.before, "model")) == has_older_state(state));
    // A state goes only when the last model is there.
    if (outcome.exit_code != 0 && scenario_.before.contains("model.resume") && !state.contains("model.resume"))
      CHECK(file_in(state, "model") == file_in(after_, "model"));
    const bool told = check_report(fault, outcome);
    if (outcome.exit_code == 0)
      CHECK(kept(state) == after_);
    else if (gone_on_.insert(with_names_alone(state)).second)
      check_goes_on();
    return told;
  }

 private:
  bool has_older_state(const FolderState& state) const {
    return scenario_.replaces_unfinished && file_in(state, "model.resume") == file_in(scenario_.before, "model.resume");
  }

  bool check_report(const Fault& fault, const Outcome& outcome) const {
    if (fault.error == "kill") {
      CHECK(outcome.exit_code == 137);
      return false;
    }
    if (fault.error == "short" || fault.error == by_signal) {
      CHECK(outcome.exit_code == 0);
      CHECK_FALSE(contains(outcome.errors, "orrery: "));
      CHECK_FALSE(contains(outcome.errors, "not saved"));
      CHECK_FALSE(contains(outcome.errors, "not whole"));
      return false;
    }
    const bool told = contains(outcome.errors, std::strerror(std::stoi(fault.error)));
    const size_t line = outcome.errors.find("orrery: ");
    CHECK(outcome.exit_code == (line == std::string::npos ? 0 : 1));
    if (line != std::string::npos) {  // the last line, and the only one of its kind
      CHECK(outcome.errors.find('\n', line) == outcome.errors.size() - 1);
      CHECK((line == 0 || outcome.errors[line - 1] == '\n'));
    }
    // Where nothing was lost, these need not be told: a descriptor that was only read or locked is closed, a file of
    // ours stays behind, and a file system that reserves no space.
    const bool may_be_silent = fault.call == "close" || fault.call == "unlink" || fault.call == "allocate";
    CHECK((told || (may_be_silent && outcome.exit_code == 0)));
    return told;
  }

  // Without the fault, the same parameters are reached from what is there.
  void check_goes_on() const {
    const bool resumes = std::filesystem::exists(folder_ / "model.resume") && !has_older_state(state_of(folder_));
    const Outcome next = run_with_faults(resumes ? scenario_.resume : scenario_.again, folder_);
    CAPTURE(resumes);
    CAPTURE(next.errors);
    CHECK(next.exit_code == 0);
    CHECK(program::hash_in(next.output) == hash_);
    FolderState state = kept(state_of(folder_)), after = after_;
    state.erase("log");
    after.erase("log");
    CHECK(state == after);
  }

  const Scenario scenario_;
  const TemporaryFolder& folder_;
  FolderState after_;
  std::string hash_;
  std::vector<Call> calls_;
  std::map<std::string, std::set<std::optional<std::string>>> versions_;
  std::set<FolderState> gone_on_;  // the folders from which the training went on, each once
};

// Over an old model of another seed; from the state that a program leaves which is killed after its first save; and
// over such a state, without an evaluation before the end. A training that saves once before its end has half as many
// calls as one that does so twice.
std::vector<Scenario> scenarios(const TrainedProgram& program, const TemporaryFolder& folder, bool saves_twice) {
  const int steps = saves_twice ? 4 : 2, every = saves_twice ? 2 : 1;
  const std::string model = folder / "model", log = "--log '" + (folder / "log") + "' ";
  const std::string begin = program.begin(model, steps, every), resume = program.resume(model),
                    unevaluated = program.begin(model, steps, 0) + "--seed 8 --overwrite ";
  put({}, folder);
  REQUIRE(program::run(begin + "--seed 7").exit_code == 0);
  const FolderState old = state_of(folder);
  put({}, folder);
  const std::vector<Call> calls = run_with_faults(begin + log, folder).calls;
  int kill_at = 0;
  for (int i = 0; kill_at == 0; ++i) {
    const Call& call = calls.at(static_cast<size_t>(i));
    // Calls i + 1 to i + 3 are the rename, and the opening and flushing of its folder. The next call dies.
    if (call.name == "rename" && call.about[1] == model) kill_at = i + 4;  // the state is there already
  }
  put({}, folder);
  REQUIRE(run_with_faults(begin + log, folder, {"any", kill_at, 1, "kill"}).exit_code == 137);
  return {
      {program.name + " over an old model", begin + log + "--overwrite", begin + "--overwrite", resume, old},
      {program.name + " resumed", resume + log, begin + "--overwrite", resume, state_of(folder)},
      {program.name + " over an unfinished training", unevaluated + log, unevaluated, resume, state_of(folder), true}};
}

// Faults that were tried: how many, and of which calls.
struct Tried {
  int faults = 0;
  std::set<std::string> calls;
};

void try_all(Trial trial, int few, Rng& rng, Tried& tried) {
  int closings_told = 0;
  for (const Failure& failure : failures)
    for (const int times : failure.times) {
      const bool closes = failure.call == "close" && failure.error == io_error && times == 1;
      for (const int at : places(trial.count(failure.call), closes ? 0 : few, rng)) {
        const bool told = trial.run({failure.call, at, times, failure.error});
        if (closes && told) ++closings_told;
        ++tried.faults;
        tried.calls.insert(failure.call);
      }
    }
  CHECK(closings_told == trial.count("rename") + 1);  // each file that was written, and the log
}

Tried try_programs(int few, u64 seed, const std::function<bool(const Scenario&)>& chosen) {
  const TemporaryFolder texts, folder;
  Rng rng(seed);
  Tried tried;
  for (const TrainedProgram& program : trained_programs(texts))
    for (const Scenario& scenario : scenarios(program, folder, few > 0)) {
      if (!chosen(scenario)) continue;
      const int before = tried.faults;
      try_all(Trial(scenario, folder), few, rng, tried);
      MESSAGE(scenario.name << ": " << tried.faults - before << " faults");
    }
  return tried;
}

// All programs end a training with the same code, so one of them is enough for what takes the place of a state.
bool is_tried(const Scenario& scenario) { return !scenario.replaces_unfinished || scenario.name.starts_with("toy "); }

int faults_of_every_call(const std::string& program) {
  const auto chosen = [&](const Scenario& scenario) {
    return scenario.name.starts_with(program + " ") && is_tried(scenario);
  };
  return try_programs(0, 0, chosen).faults;
}

}  // namespace

TEST_CASE("promise 18: a training whose system calls fail loses nothing, and tells") {
  const auto chosen = [](const Scenario& scenario) { return scenario.name == "toy over an unfinished training"; };
  CHECK(try_programs(1, 1, chosen).faults > 50);
}

TEST_CASE("long: promise 18: the same for every program, with more of the calls") {
  const Tried tried = try_programs(4, 2, is_tried);
  CHECK(tried.faults > 1000);
  std::set<std::string> listed;
  for (const Failure& failure : failures) listed.insert(failure.call);
  listed.erase("mmap");   // only a large text is mapped: outputs_test.cpp
  listed.erase("mkdir");  // only for a new folder: there, too
  CHECK(tried.calls == listed);
}

// These take long: apps/book/appendix.md says how to run them.
TEST_CASE("long: promise 18: every system call of lm fails, in every way" * doctest::skip()) {
  CHECK(faults_of_every_call("lm") > 2000);
}

TEST_CASE("long: promise 18: every system call of toy fails, in every way" * doctest::skip()) {
  CHECK(faults_of_every_call("toy") > 2000);
}

TEST_CASE("long: promise 18: every system call of translate fails, in every way" * doctest::skip()) {
  CHECK(faults_of_every_call("translate") > 2000);
}
