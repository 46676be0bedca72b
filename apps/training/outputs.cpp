// Chapter 9. What a training writes must replace no text that it learns from, and no other file that it needs.
#include "apps/training/outputs.h"

#include "apps/program/output_file.h"
#include "core/error.h"

namespace orrery {

void check_outputs(const RunOptions& run, const TrainingFiles& files, const std::vector<NamedFile>& texts,
                   const std::vector<NamedFile>& others) {
  const std::string& program = files.program();
  for (const NamedFile& text : texts)
    check(!files.writes(text.path), program, "--save ", files.model(), " would write over ", text.name, ' ', text.path);
  std::vector<NamedFile> read = texts, outputs = others;
  read.push_back({"the file of --config,", run.config});
  outputs.push_back({"--log", run.log});
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& [option, path] = outputs[i];
    check_can_write_text(program, option, path);
    check(!files.writes(path), program, option, ' ', path, " would write over the files of --save ", files.model());
    for (const NamedFile& file : read)
      check(!is_same_file(path, file.path), program, option, ' ', path, " would write over ", file.name, ' ',
            file.path);
    for (size_t k = 0; k < i; ++k)
      check(!is_same_file(path, outputs[k].path), program, option, " and ", outputs[k].name, " name the same file, ",
            path);
  }
}

}  // namespace orrery
