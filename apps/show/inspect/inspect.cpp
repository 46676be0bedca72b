// Chapter 9. `orrery inspect FILE`: what a file of a model or of an unfinished training holds, and whether it is whole.
//
//   orrery inspect shakespeare.safetensors
//   orrery inspect shakespeare.safetensors.resume
//   orrery inspect model.safetensors.index.json
// Every byte is read, once. Files of other programs are read too, with all dtypes of the format.
#include <iostream>
#include <memory>

#include "apps/program/command.h"
#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "apps/show/inspect/file_report.h"

namespace orrery {
namespace {

struct InspectOptions {
  std::string file, json;
};

int inspect(const InspectOptions& options) {
  check_can_write_text("inspect", "--json", options.json);
  const FileSummary file = summarise_safetensors(options.file);
  print_file(std::cout, options.file, file);
  if (!options.json.empty()) write_text(options.json, file_as_json(options.file, file));
  check_undamaged(options.file, file);
  return done;
}

}  // namespace

void add_inspect(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App& command = add_command(program, "inspect", "Show what a file of a model or of an unfinished training holds",
                                  "Any safetensors file can be read, with all dtypes. Checksums are CRC32C.\n"
                                  "Exit code 1: the file cannot be read, or a tensor is damaged.\n"
                                  "Example:\n  orrery inspect shakespeare.safetensors.resume");
  require(take_folders(
      add_file(command, "FILE", options->file, "The file, a folder with one or with shards, or their index")));
  add_output_file(command, "--json", options->json, "Write everything to this file too, in full");
  when_run(command, exit_code, [options] { return inspect(*options); });
}

}  // namespace orrery
