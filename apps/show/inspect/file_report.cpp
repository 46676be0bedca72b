// Chapter 9. `orrery inspect FILE`: what a file of a model or of an unfinished training holds, and whether it is whole.
//
//   orrery inspect shakespeare.safetensors
//   orrery inspect shakespeare.safetensors.resume
//   orrery inspect model.safetensors.index.json
// Every byte is read, once. Files of other programs are read too, with all dtypes of the format.
#include "apps/show/inspect/file_report.h"

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "apps/program/command.h"
#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "apps/program/terminal.h"
#include "apps/tasks/lm/training.h"
#include "apps/tasks/tasks.h"
#include "core/utf8.h"
#include "nn/files/files.h"
#include "nn/files/gpt_files.h"
#include "nn/models/config_json.h"
#include "nn/models/transformer.h"

namespace orrery {
namespace {

constexpr std::string_view steps_done = "steps_done", steps_of_all = "steps", parameter_prefix = "parameter.";
constexpr size_t most_metadata = 40;        // entries of the metadata that are printed
constexpr size_t most_shown = 600;          // bytes of an entry that is a text
constexpr size_t most_fields_shown = 2000;  // bytes of an entry that is an object

u64 count_of(const TensorEntry& entry) {
  return 8 * (entry.end - entry.begin) / static_cast<u64>(bits_of(entry.dtype));
}

size_t damaged_tensors(const FileSummary& file) {
  return static_cast<size_t>(std::count_if(file.tensors.begin(), file.tensors.end(),
                                           [](const TensorSummary& tensor) { return tensor.damaged(); }));
}

bool has_checksums(const FileSummary& file) { return !file.tensors.empty() && !file.tensors[0].stored.empty(); }

// The object in a piece of metadata; nothing for other text.
std::optional<Json> object_in(const std::string& text) {
  if (!text.starts_with('{')) return std::nullopt;
  try {
    return parse_json_object(text, "inspect");
  } catch (const Error&) { return std::nullopt; }
}

// What `count` returns; nothing for sizes that no model can have.
template <class Count> std::optional<i64> if_possible(const Count& count) {
  try {
    return count();
  } catch (const Error&) { return std::nullopt; }
}

// The parameters of the model that `config` describes; nothing for other models.
std::optional<i64> parameters_of_config(const std::string& config) {
  if (!object_in(config)) return std::nullopt;
  for (const ListedTask& task : all_tasks())
    for (const SavedModel& model : task.models)
      if (model.is_described_by(config)) return if_possible([&] { return model.parameter_count(config); });
  return std::nullopt;
}

// One line, whole characters of at most `most` bytes: "abc... (1234 bytes)".
std::string shortened(const std::string& text, size_t most) {
  if (text.size() <= most) return harmless(text);
  size_t length = most;
  while (length > 0 && continues_character(text[length])) --length;
  return harmless(text.substr(0, length)) + "... (" + std::to_string(text.size()) + " bytes)";
}

// A value as text without quotes, or as JSON.
std::string value_of(const Json& json) { return json.is_string() ? json.get<std::string>() : json.dump(); }

// "d_model 64, num_heads 4, ..." for an object; other text in quotes.
std::string shown_text(const std::string& text) {
  const std::optional<Json> object = object_in(text);
  if (!object) return "'" + shortened(text, most_shown) + "'";
  std::string fields;
  for (const auto& [name, value] : object->items())
    fields += (fields.empty() ? "" : ", ") + name + " " + value_of(value);
  return shortened(fields, most_fields_shown);
}

// The metadata, except what `print_training` prints.
void print_metadata(std::ostream& out, Metadata metadata) {
  std::erase_if(metadata, [](const auto& piece) {
    const std::optional<Json> object = object_in(piece.second);
    return object && object->contains(steps_done);
  });
  if (metadata.empty()) return;
  out << "\nmetadata\n";
  size_t printed = 0;
  for (const auto& [key, text] : metadata) {
    if (printed++ == most_metadata) {
      out << "  ... and " << metadata.size() - most_metadata << " more\n";
      return;
    }
    out << wrapped(shortened(key, 40) + ": " + shown_text(text), 2, table_width, 4);
  }
}

// "2.1046 at step 6880"; "none yet".
std::string best_of(const Json& training) {
  const auto estimate = training.find("best_loss"), step = training.find("best_step");
  if (estimate == training.end() || !estimate->is_number()) return "none yet";
  std::ostringstream text;
  text << std::setprecision(6) << estimate->get<double>();
  if (step != training.end()) text << " at step " << value_of(*step);
  return text.str();
}

void print_training(std::ostream& out, const Json& training) {
  const auto line = [&](std::string label, const std::string& text) {
    std::replace(label.begin(), label.end(), '_', ' ');
    out << wrapped(fitted_middle(harmless(label), 22) + " " + shortened(text, most_shown), 2, table_width, 25);
  };
  out << "\nstate of the training\n";
  const auto all = training.find(steps_of_all);
  line("steps done",
       value_of(training.at(std::string(steps_done))) + (all == training.end() ? "" : " of " + value_of(*all)));
  if (training.contains("best_loss")) line("best loss", best_of(training));
  for (const auto& [name, value] : training.items())
    if (name != steps_done && name != steps_of_all && name != "best_loss" && name != "best_step")
      line(name, value_of(value));
}

// "128013 of F32, 9 of I32"
std::string counts_by_dtype(const FileSummary& file) {
  std::map<FileDtype, u64> counts;
  for (const TensorSummary& tensor : file.tensors) counts[tensor.entry.dtype] += count_of(tensor.entry);
  std::string text;
  for (const auto& [dtype, count] : counts)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " of " + std::string(name_of(dtype));
  return text;
}

// "a GPT with GPT-2's names: vocab_size 65, ..."
std::string sizes_of(const LanguageModelConfig& gpt) {
  const i64 heads = gpt.layer.num_heads;
  const auto field = [](const char* name, i64 value) { return std::string(name) + " " + std::to_string(value) + ", "; };
  return "a GPT with GPT-2's names: " + field("vocab_size", gpt.vocab_size) + field("max_len", gpt.max_len) +
         field("d_model", gpt.layer.d_model) + field("d_ff", gpt.layer.d_ff) + field("num_layers", gpt.num_layers) +
         (heads == 0 ? "num_heads is not in the file: see --heads of lm and leakcheck"
                     : "num_heads " + std::to_string(heads) + ", which published models of this size have");
}

void print_totals(std::ostream& out, const std::string& path, const FileSummary& file) {
  const size_t tensors = file.tensors.size(), damaged = damaged_tensors(file);
  out << harmless(path) << ": ";
  if (file.files > 1)
    out << file.files << " safetensors files";
  else
    out << "a safetensors file";
  out << " of " << file.bytes << " bytes, " << file.header_bytes << " of them the header"
      << (file.files > 1 ? "s\n" : "\n");
  std::string numbers = counts_by_dtype(file);
  out << wrapped(std::to_string(tensors) + (tensors == 1 ? " tensor" : " tensors") +
                     (numbers.empty() ? "" : "; numbers: " + numbers),
                 0);
  if (const auto parameters = parameters_in(file)) out << "a model of " << *parameters << " parameters\n";
  if (const auto gpt = nn::gpt_of_shapes(file)) out << wrapped(sizes_of(*gpt), 0);
  if (tensors == 0) return;
  if (!has_checksums(file))
    out << "the file has no checksums of its own\n";
  else if (damaged == 0)
    out << "all checksums are right\n";
  else
    out << damaged << " of " << tensors << " checksums are wrong: the file is damaged\n";
}

// A column as wide as its widest text, within limits.
size_t width_of(const std::vector<std::string>& column, size_t least, size_t most) {
  size_t width = least;
  for (const std::string& text : column) width = std::max(width, text.size());
  return std::min(width, most);
}

void print_tensors(std::ostream& out, const FileSummary& file) {
  if (file.tensors.empty()) return;
  std::vector<std::string> names, shapes, dtypes, sizes;
  for (const TensorSummary& tensor : file.tensors) {
    std::ostringstream shape;
    shape << tensor.entry.shape;
    names.push_back(harmless(tensor.entry.name));
    shapes.push_back(shape.str());
    dtypes.emplace_back(name_of(tensor.entry.dtype));
    sizes.push_back(std::to_string(tensor.entry.end - tensor.entry.begin));
  }
  constexpr size_t checksum_width = 8, mark_width = 7;
  const size_t shape_width = width_of(shapes, 5, 24), dtype_width = width_of(dtypes, 5, 11),
               size_width = width_of(sizes, 5, 20);
  const size_t others = shape_width + dtype_width + size_width + checksum_width + mark_width + 5 * 2;
  const size_t name_width = width_of(names, 4, table_width - others);
  const auto row = [&](const std::string& name, const std::string& shape, const std::string& dtype,
                       const std::string& size, const std::string& checksum, const std::string& mark) {
    out << fitted_middle(name, name_width) << "  " << fitted(shape, shape_width) << "  " << fitted(dtype, dtype_width)
        << "  " << std::setw(static_cast<int>(size_width)) << size << "  " << checksum << mark << '\n';
  };
  out << '\n';
  row("name", "shape", "dtype", "bytes", "CRC32C", "");
  for (size_t i = 0; i < names.size(); ++i)
    row(names[i], shapes[i], dtypes[i], sizes[i], file.tensors[i].checksum,
        file.tensors[i].damaged() ? "  DAMAGED" : "");
}

}  // namespace

std::optional<Json> training_in(const Metadata& metadata) {
  std::optional<Json> training;
  Json all_steps;
  for (const auto& [key, text] : metadata) {
    const std::optional<Json> object = object_in(text);
    if (!object) continue;
    if (object->contains(steps_done) && !training) training = *object;
    if (object->contains(steps_of_all) && all_steps.is_null()) all_steps = object->at(std::string(steps_of_all));
  }
  if (training && !training->contains(steps_of_all) && !all_steps.is_null())
    (*training)[std::string(steps_of_all)] = all_steps;
  return training;
}

std::optional<i64> parameters_in(const FileSummary& file) {
  const auto config = file.metadata.find(std::string(nn::config_key));
  if (config != file.metadata.end())
    if (const auto described = parameters_of_config(config->second)) return described;
  if (auto gpt = nn::gpt_of_shapes(file)) {
    gpt->layer.num_heads = std::max<i64>(1, gpt->layer.num_heads);  // which changes no count
    return if_possible([&] { return gpt->parameter_count(); });
  }
  if (!training_in(file.metadata)) return std::nullopt;
  u64 count = 0;
  for (const TensorSummary& tensor : file.tensors)
    if (tensor.entry.name.starts_with(parameter_prefix)) count += count_of(tensor.entry);
  return static_cast<i64>(count);
}

void print_file(std::ostream& out, const std::string& path, const FileSummary& file) {
  print_totals(out, path, file);
  if (const auto training = training_in(file.metadata)) print_training(out, *training);
  print_metadata(out, file.metadata);
  print_tensors(out, file);
  out << std::flush;
}

std::string file_as_json(const std::string& path, const FileSummary& file) {
  Json tensors = Json::array();
  for (const TensorSummary& tensor : file.tensors) {
    const TensorEntry& entry = tensor.entry;
    tensors.push_back({{"name", entry.name},
                       {"dtype", name_of(entry.dtype)},
                       {"shape", std::vector<i64>(entry.shape.begin(), entry.shape.end())},
                       {"file", tensor.file},
                       {"begin", entry.begin},
                       {"bytes", entry.end - entry.begin},
                       {"crc32c", tensor.checksum},
                       {"stored_crc32c", tensor.stored.empty() ? Json(nullptr) : Json(tensor.stored)}});
  }
  const auto parameters = parameters_in(file);
  const auto training = training_in(file.metadata);
  const Json report{{"file", path},
                    {"bytes", file.bytes},
                    {"header_bytes", file.header_bytes},
                    {"parameters", parameters ? Json(*parameters) : Json(nullptr)},
                    {"damaged", damaged_tensors(file)},
                    {"training", training ? *training : Json(nullptr)},
                    {"metadata", file.metadata},
                    {"tensors", tensors}};
  return json_in_ascii(report, 2) + "\n";
}

void check_undamaged(const std::string& path, const FileSummary& file) {
  const size_t damaged = damaged_tensors(file);
  if (damaged == 0) return;
  const auto first = std::find_if(file.tensors.begin(), file.tensors.end(),
                                  [](const TensorSummary& tensor) { return tensor.damaged(); });
  fail("inspect", path, ": ", damaged, " of ", file.tensors.size(), " tensors ", damaged == 1 ? "is" : "are",
       " damaged; the first is ", printable(first->entry.name));
}

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
