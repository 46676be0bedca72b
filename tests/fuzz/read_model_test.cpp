// Chapter 9. Tests that the files from which fuzzing begins are still read: behind an error nothing would be reached.
#include "tests/fuzz/read_model.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <set>

#include "core/files/safetensors.h"
#include "tests/apps/run_program.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;

TEST_CASE("models and unfinished trainings with which fuzzing begins are read to their end") {
  const std::set<std::string> refused{"every_dtype", "pytorch_linear", "pytorch_softmax", "pytorch_state_dict_run"};
  const TemporaryFolder folder, seeds;
  REQUIRE(program::shell("tar -C '" + seeds.path().string() + "' -xzf '" ORRERY_SOURCE_DIR "/tests/fuzz/seeds.tar.gz'")
              .exit_code == 0);
  const std::string model = folder / "model";
  int read = 0;
  for (const auto& seed : std::filesystem::directory_iterator(seeds / "seeds/checkpoint")) {
    const std::string name = seed.path().filename().string();
    CAPTURE(name);
    for (const std::string& copy : {model, model + ".resume"})
      std::filesystem::copy_file(seed.path(), copy, std::filesystem::copy_options::overwrite_existing);
    const Metadata metadata = summarise_safetensors(model).metadata;
    const std::string error = small::error_of([&] { fuzz::read_model(model, metadata); });
    CAPTURE(error);
    CHECK(error.empty() != refused.contains(name));
    read += error.empty();
  }
  CHECK(read >= 8);
}
