// Chapter 9. What `orrery inspect` says of a file: its tensors, its metadata, and how far its training is.
//
// The file may come from anybody, so all of its text is made harmless and shortened before it is shown.
#pragma once

#include <optional>
#include <ostream>
#include <string>

#include "core/files/json.h"
#include "core/files/safetensors.h"

namespace orrery {

/// The number of parameters of the model in a file: as its configuration says, if that is one of ours; else, in an
/// unfinished training, the numbers that are trained. Nothing for other files: not all of their numbers need be
/// parameters.
std::optional<i64> parameters_in(const FileSummary& file);

/// The state of the unfinished training that metadata describe: the JSON object that has the field "steps_done", with
/// "steps", how many there will be, if any object names it. Nothing if no object has "steps_done".
std::optional<Json> training_in(const Metadata& metadata);

/// The report: at most 100 columns, except that the file's name is never cut.
void print_file(std::ostream& out, const std::string& path, const FileSummary& file);

/// The same in full, in ASCII alone.
std::string file_as_json(const std::string& path, const FileSummary& file);

/// Error: tensors whose checksums are wrong, naming the first.
void check_undamaged(const std::string& path, const FileSummary& file);

}  // namespace orrery
