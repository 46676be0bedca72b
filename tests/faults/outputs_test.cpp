// Chapter 9. Tests of trainings whose output nobody reads or nothing holds: a closed pipe, a full device, a full disk.
#include <doctest/doctest.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstdlib>

#include "core/files/safetensors.h"
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
    // The disk fills up after the first save; the next one fails, and the training is then stopped. What that save had
    // written is free again, so the disk is filled once more, while the training stands still between two saves.
    const std::string fill = "cat /dev/zero >>'" + (disk.folder() / "filling") + "' 2>/dev/null";
    const program::Result result = program::shell(
        quoted_program + program.begin(model, 400'000, 200) + ">/dev/null 2>'" + log + "' & until [ -e '" + model +
        ".resume' ]; do kill -0 $! || break; sleep 0.005; done; " + fill + "; until grep -q '^not saved: ' '" + log +
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
