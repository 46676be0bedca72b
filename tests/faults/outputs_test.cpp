// Chapter 9. Tests of trainings whose output nobody reads or nothing holds, a closed pipe, a full device, a full disk;
// and that what a training needs besides its own files may fail: new folders, texts, the file from which a large text
// is mapped.
#include <doctest/doctest.h>
#include <sys/mount.h>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "core/files/safetensors.h"
#include "tests/core/temporary_folder.h"
#include "tests/faults/trained_programs.h"

using namespace orrery;
using namespace orrery::faults;
using program::contains;
using program::quoted_program;

namespace {

// A small disk in memory, where the system lets us have one.
class SmallDisk {
 public:
  SmallDisk() : mounted_(::mount("orrery-test", folder_.path().c_str(), "tmpfs", 0, "size=8m") == 0) {}
  ~SmallDisk() {
    if (mounted_) ::umount2(folder_.path().c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool mounted() const { return mounted_; }
  const TemporaryFolder& folder() const { return folder_; }
  // Leaves no page free.
  void fill() const {
    std::ofstream file(folder_ / "filling");
    while (file << std::string(4096, 'x') << std::flush) {}
  }

 private:
  const TemporaryFolder folder_;
  const bool mounted_;
};

}  // namespace

TEST_CASE("promise 18: a training whose output nobody reads (| head -1) saves its model, and does not fail") {
  const TemporaryFolder texts, folder;
  const std::string model = folder / "model", code = folder / "code";
  for (const TrainedProgram& program : trained_programs(texts)) {
    CAPTURE(program.name);
    const std::string begin = quoted_program + program.begin(model, 4, 2) + "--overwrite ";
    REQUIRE(program::shell(begin + "2>/dev/null").exit_code == 0);
    const std::string whole = contents(model);
    for (const std::string& reader :
         {"2>/dev/null; echo $? >'" + code + "'; } | head -1", "2>/dev/null; echo $? >'" + code + "'; } | true",
          "2>&1; echo $? >'" + code + "'; } | true"}) {
      CAPTURE(reader);
      std::filesystem::remove(model);
      program::shell("{ " + begin + reader);
      CHECK(contents(code) == "0\n");
      CHECK(contents(model) == whole);
    }
  }
}

TEST_CASE("promise 18: a training whose results cannot be written saves its model, and fails") {
  const TemporaryFolder texts, folder;
  const std::string model = folder / "model";
  for (const TrainedProgram& program : trained_programs(texts)) {
    CAPTURE(program.name);
    const std::string begin = quoted_program + program.begin(model, 4, 2) + "--overwrite ";
    REQUIRE(program::shell(begin + "2>/dev/null").exit_code == 0);
    const std::string whole = contents(model);
    std::filesystem::remove(model);
    const program::Result results = program::shell(begin + "2>&1 >/dev/full");
    CHECK(results.exit_code == 1);
    CHECK(results.text.ends_with("orrery: cannot write the results to standard output\n"));
    CHECK(contents(model) == whole);
    std::filesystem::remove(model);
    CHECK(program::shell(begin + "2>/dev/full").exit_code == 0);
    CHECK(contents(model) == whole);
  }
}

TEST_CASE("promise 18: a full disk is told before a training, and one that fills up keeps the last save") {
  const SmallDisk disk;
  if (!disk.mounted()) {
    MESSAGE("not tested: mounting a small disk needs root, and many containers forbid it");
    return;
  }
  const TemporaryFolder texts, beside;
  const std::string model = disk.folder() / "model", log = beside / "log";
  for (const TrainedProgram& program : trained_programs(texts)) {
    CAPTURE(program.name);
    put({}, disk.folder());
    disk.fill();
    program::check_failure(quoted_program + program.begin(model, 4, 2), "No space left on device");
    CHECK(disk.folder().count() == 1);
    put({}, disk.folder());
    // The disk fills up after the first save, of both files; the next one fails, and the training is then stopped. What
    // that save had written is free again, so the disk is filled once more, while the training stands still between two
    // saves.
    const std::string fill = "cat /dev/zero >>'" + (disk.folder() / "filling") + "' 2>/dev/null";
    const program::Result result = program::shell(
        quoted_program + program.begin(model, 400'000, 200) + ">/dev/null 2>'" + log + "' & until [ -e '" + model +
        "' ] && [ -e '" + model + ".resume' ]; do kill -0 $! || break; sleep 0.005; done; " + fill +
        "; until grep -q '^not saved: ' '" + log +
        "'; do kill -0 $! || break; sleep 0.005; done; until kill -STOP $!; ! ls '" + model +
        "'*.tmp >/dev/null 2>&1;" + " do kill -CONT $! || break; sleep 0.005; done; " + fill +
        "; kill -CONT $!; kill -TERM $!; wait $!; echo $?");
    CHECK(result.text == "1\n");
    const std::string said = contents(log);
    CAPTURE(said);
    CHECK(contains(said, "No space left on device; the training continues\n"));
    CHECK(contains(said, "orrery: " + program.name + ": the model is not saved: write " + model));
    for (const std::string& file : {model, model + ".resume"}) CHECK_FALSE(read_safetensors(file).tensors.empty());
    std::filesystem::remove(disk.folder() / "filling");
    const program::Result next =
        program::shell(quoted_program + program.resume(model) + "--time-limit 0.001 >/dev/null 2>&1");
    CHECK(next.exit_code == 130);
  }
}

TEST_CASE("promise 18: a new folder that cannot be made, or not for good, is told before the training") {
  const TemporaryFolder texts, folder;
  const std::string outer = folder / "outer", inner = outer + "/inner/";
  const std::string begin = trained_programs(texts)[0].begin(inner, 2, 1);
  for (const Failure& failure : failures) {
    if (failure.call != "mkdir" && failure.call != "fsync") continue;
    for (const auto& [at, times] : places_and_times(2, failure)) {  // the outer folder, and the one in it
      std::filesystem::remove_all(outer);
      const Fault fault{failure.call, at, times, failure.error};
      const std::string what = fault.text();
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
