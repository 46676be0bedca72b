// Chapter 9. Tests that a training writes over nothing that it reads, and over none of its own files.
#include "apps/training/options.h"

#include <doctest/doctest.h>

#include "core/files/safetensors.h"
#include "core/tensor_ops.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using small::contains;

namespace {

// A folder with the files of a training, and what `check_outputs` says of them.
struct Outputs {
  std::string problem(const RunOptions& run, const std::vector<NamedFile>& others = {}) const {
    return small::error_of([&] { check_outputs(run, TrainingFiles("test", model), {{"--source", source}}, others); });
  }
  TemporaryFolder folder;
  std::string model = folder / "model", source = folder / "source", config = folder / "config", log = folder / "log";
};

}  // namespace

TEST_CASE("files of their own names may be written, and a name that is not given is none") {
  const Outputs outputs;
  CHECK(outputs.problem({}) == "");
  CHECK(outputs.problem({.config = outputs.config, .log = outputs.log}, {{"--losses", outputs.folder / "losses"}}) ==
        "");
  CHECK(outputs.problem({}, {{"--losses", ""}, {"--attention", ""}}) == "");
}

TEST_CASE("no output replaces a text, a configuration, a file of the training, a model, or another output") {
  const Outputs outputs;
  const auto said = [&](const std::string& path) { return outputs.problem({.config = outputs.config, .log = path}); };
  CHECK(said(outputs.source) == "test: --log " + outputs.source + " would write over --source " + outputs.source);
  CHECK(contains(said(outputs.folder / "./source"), " would write over --source "));
  CHECK(contains(said(outputs.config), " would write over the file of --config, " + outputs.config));
  CHECK(contains(said(outputs.model + ".lock"), " would write over the files of --save " + outputs.model));
  CHECK(contains(said("/nowhere/log"), "No such file or directory"));
  write_safetensors(outputs.log, {{"a", zeros({2})}});
  CHECK(contains(said(outputs.log), " is a file that holds a model"));
  const NamedFile losses{"--losses", outputs.folder / "both"};
  CHECK(contains(outputs.problem({.log = losses.path}, {losses}), "--log and --losses name the same file"));
  CHECK(contains(outputs.problem({}, {{"--losses", outputs.source}}), "--losses " + outputs.source + " would write"));
}

TEST_CASE("no model replaces a text") {
  Outputs outputs;
  outputs.source = outputs.model;
  CHECK(outputs.problem({}) == "test: --save " + outputs.model + " would write over --source " + outputs.model);
}
