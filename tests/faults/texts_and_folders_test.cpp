// Chapter 9. Tests that what a training needs besides its own files may fail: new folders, texts, and the file from
// which a large text is mapped.
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <set>

#include "tests/core/temporary_folder.h"
#include "tests/faults/calls.h"
#include "tests/faults/failures.h"
#include "tests/faults/trained_programs.h"

using namespace orrery;
using namespace orrery::faults;
using program::contains;

TEST_CASE("promise 18: a new folder that cannot be made, or not for good, is told before the training") {
  const TemporaryFolder texts, folder;
  const std::string outer = folder / "outer", inner = outer + "/inner/";
  for (const TrainedProgram& program : trained_programs(texts)) {
    const std::string begin = program.begin(inner, 2, 1);
    std::filesystem::remove_all(outer);
    REQUIRE(run_with_faults(begin, folder).exit_code == 0);
    for (const Failure& failure : failures) {
      if (failure.call != "mkdir" && failure.call != "fsync") continue;
      for (const auto& [at, times] : places_and_times(2, failure)) {  // the outer folder, and the one in it
        std::filesystem::remove_all(outer);
        const Fault fault{failure.call, at, times, failure.error};
        const std::string what = program.name + ": " + fault.text();
        CAPTURE(what);
        const Outcome outcome = run_with_faults(begin, folder, fault);
        CAPTURE(outcome.errors);
        const bool transient = failure.error == by_signal;
        CHECK(outcome.exit_code == (transient ? 0 : 1));
        CHECK(std::filesystem::exists(inner + "model.safetensors") == transient);
        if (transient) continue;
        CHECK(contains(outcome.errors, "orrery: make the folder " + outer + (at == 1 ? ": " : "/inner: ")));
        CHECK(outcome.errors.ends_with(std::string(std::strerror(std::stoi(failure.error))) + "\n"));
        CHECK(run_with_faults(begin, folder).exit_code == 0);
      }
    }
  }
}

TEST_CASE("promise 18: a text that cannot be opened or read is an error; signals and short reads change nothing") {
  const TemporaryFolder texts, folder;
  for (const TrainedProgram& program : trained_programs(texts)) {
    const std::string begin = program.begin(folder / "model", 2, 1);
    put({}, folder);
    const Outcome whole = run_with_faults(begin, texts);
    REQUIRE(whole.exit_code == 0);
    CHECK(whole.calls.empty() == (program.name == "toy"));  // which makes its sequences itself
    for (const Failure& failure : failures) {
      if (failure.call != "open" && failure.call != "read") continue;
      const auto count = std::count_if(whole.calls.begin(), whole.calls.end(),
                                       [&](const Call& call) { return call.name == failure.call; });
      for (const auto& [at, times] : places_and_times(static_cast<int>(count), failure)) {
        const Fault fault{failure.call, at, times, failure.error};
        const std::string what = program.name + ": " + fault.text();
        CAPTURE(what);
        put({}, folder);
        const Outcome outcome = run_with_faults(begin, texts, fault);
        CAPTURE(outcome.errors);
        const bool transient = failure.error == "short" || failure.error == by_signal;
        CHECK(outcome.exit_code == (transient ? 0 : 1));
        CHECK(program::hash_in(outcome.output) == (transient ? program::hash_in(whole.output) : ""));
        CHECK(std::filesystem::exists(folder / "model") == transient);
        if (!transient) CHECK(outcome.errors.ends_with(std::string(std::strerror(std::stoi(failure.error))) + "\n"));
      }
    }
  }
}

TEST_CASE("long: promise 18: a text too large for memory is mapped from a file, whose calls may fail") {
  const TemporaryFolder texts, folder;
  const std::string text = texts / "text", held_out = texts / "held out";
  set_contents(text, program::repeated("abcd efg\n", 2'000'000));
  set_contents(held_out, program::repeated("abcd efg\n", 100));
  const std::string model = texts / "model";
  const std::string train = "lm train '" + text + "' --valid '" + held_out + "' " + program::tiny +
                            "--steps 2 --estimate-batches 1 --threads 1 --hash --save '" + model + "' --overwrite";
  const TemporaryDirectory temporary_files(folder.path().string());
  REQUIRE(program::run(train + " --seed 7").exit_code == 0);
  const std::string old_model = contents(model);
  const Outcome whole = run_with_faults(train, folder);
  REQUIRE(whole.exit_code == 0);
  const std::string new_model = contents(model);
  REQUIRE(new_model != old_model);
  Rng rng(1);
  std::set<std::string> failed;
  for (const Failure& failure : failures) {
    const auto count = std::count_if(whole.calls.begin(), whole.calls.end(),
                                     [&](const Call& call) { return call.name == failure.call; });
    if (failure.call == "close") continue;  // nothing is kept there
    const std::set<int> chosen = places(static_cast<int>(count), failure.call == "write" ? 2 : 0, rng);
    for (const auto& [at, times] : places_and_times(static_cast<int>(count), failure)) {
      if (!chosen.contains(at)) continue;
      const Fault fault{failure.call, at, times, failure.error};
      const std::string what = fault.text();
      CAPTURE(what);
      set_contents(model, old_model);
      put({}, folder);
      const Outcome outcome = run_with_faults(train, folder, fault);
      failed.insert(failure.call);
      const bool transient = failure.error == "short" || failure.error == by_signal;
      CHECK(outcome.exit_code == (transient ? 0 : 1));
      CHECK(folder.count() == (failure.call == "unlink" ? 1 : 0));
      for (const auto& file : std::filesystem::directory_iterator(folder.path())) CHECK(file.file_size() == 0);
      CHECK(contents(model) == (transient ? new_model : old_model));
      if (transient)
        CHECK(program::hash_in(outcome.output) == program::hash_in(whole.output));
      else
        CHECK(contains(outcome.errors, std::strerror(std::stoi(failure.error))));
    }
  }
  CHECK(failed == std::set<std::string>{"mmap", "open", "unlink", "write"});
}
