// Chapter 9. `orrery gradcheck`: the table of proofs, one row for each sample of an operation or a layer.
//
// A sample that cannot even be built or run is a failed row too, so that one mistake does not hide the other rows.
// Read next: apps/machine.h
#include "autograd/gradcheck.h"

#include <fnmatch.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>

#include "apps/command.h"
#include "apps/interrupt.h"
#include "apps/machine.h"
#include "apps/progress.h"
#include "apps/terminal.h"
#include "autograd/samples.h"
#include "core/parallel.h"
#include "nn/samples.h"

namespace orrery {
namespace {

struct Options {
  std::vector<std::string> names;
  bool list = false;
  i64 seed = 1;
  i64 threads = 1;
};

// A sample under the name the table gives it: layers stand under "nn/".
struct Row {
  std::string name;
  const Sample* sample;
};

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  for (const Sample& sample : operation_samples()) rows.push_back({sample.name, &sample});
  for (const Sample& sample : nn::module_samples()) rows.push_back({"nn/" + sample.name, &sample});
  return rows;
}

bool matches(const std::string& pattern, const Row& row) { return fnmatch(pattern.c_str(), row.name.c_str(), 0) == 0; }

// The rows that some name matches, in the table's order; all rows when there are no names.
std::vector<Row> chosen_rows(const std::vector<std::string>& names) {
  const std::vector<Row> rows = all_rows();
  if (names.empty()) return rows;
  for (const std::string& name : names) {
    const bool known = std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return matches(name, row); });
    if (!known)
      usage_error("gradcheck", "no operation or layer is called '" + name + "'; orrery gradcheck --list names all");
  }
  std::vector<Row> chosen;
  for (const Row& row : rows)
    if (std::any_of(names.begin(), names.end(), [&](const std::string& name) { return matches(name, row); }))
      chosen.push_back(row);
  return chosen;
}

size_t longest_name(const std::vector<Row>& rows) {
  size_t length = 4;
  for (const Row& row : rows) length = std::max(length, row.name.size());
  return length;
}

// `text` filled or cut to `width`; what is cut away shows as "..".
std::string fitted(const std::string& text, size_t width) {
  if (text.size() <= width) return text + std::string(width - text.size(), ' ');
  return text.substr(0, width - 2) + "..";
}
// The same, but the end of the text stays: in "encoder.linear1.weight[7]" it says the most.
std::string fitted_end(const std::string& text, size_t width) {
  return text.size() <= width ? fitted(text, width) : ".." + text.substr(text.size() - (width - 2));
}

// The table is 100 columns wide: name and variant share what the numbers leave.
class Table {
 public:
  explicit Table(const std::vector<Row>& rows)
      : name_width_(std::min<size_t>(longest_name(rows), 26)), variant_width_(text_width - 1 - name_width_) {}

  void print_header() const {
    std::cout << fitted("name", name_width_) << ' ' << fitted("variant", variant_width_) << " in coords   error "
              << fitted("where", where_width) << "    norm kinks" << std::endl;
  }

  void print(const Row& row, const GradcheckReport& report) const {
    std::cout << fitted(row.name, name_width_) << ' ' << fitted(row.sample->variant, variant_width_)
              << numbers(" %2ld %6ld %7.1e ", report.inputs, report.coordinates, report.worst_error)
              << fitted_end(report.worst_at, where_width)
              << numbers(" %7.1e %5ld ", report.gradient_norm, report.skipped)
              << (report.ok ? coloured("ok", Colour::green, terminal_) : coloured("FAILED", Colour::red, terminal_))
              << '\n';
    if (!report.ok) std::cout << indented(report.message) << '\n';
    std::cout << std::flush;
  }

 private:
  static constexpr size_t text_width = 44, where_width = 16;

  template <class... Numbers>
  static std::string numbers(const char* pattern, Numbers... values) {
    char text[80];
    std::snprintf(text, sizeof text, pattern, values...);
    return text;
  }
  static std::string indented(const std::string& message) {
    std::string result = "  ";
    for (const char c : message) result += c == '\n' ? std::string("\n  ") : std::string(1, c);
    return result;
  }

  Terminal terminal_ = terminal_of(STDOUT_FILENO);
  size_t name_width_, variant_width_;
};

GradcheckReport check_sample(const Sample& sample, i64 seed) {
  try {
    GradcheckOptions options = sample.options;
    options.seed = static_cast<u64>(seed);
    return gradcheck(sample.build(f64), options);
  } catch (const Error& error) {
    GradcheckReport report;
    report.message = error.what();
    return report;
  }
}

int list(const std::vector<Row>& rows) {
  const size_t width = longest_name(rows);
  for (const Row& row : rows) std::cout << fitted(row.name, width) << "  " << row.sample->variant << '\n';
  return done;
}

int run(const Options& options) {
  const std::vector<Row> rows = chosen_rows(options.names);
  if (options.list) return list(rows);
  set_threads(static_cast<int>(options.threads));
  print_start(std::cerr, {.seed = options.seed});

  const Interrupt interrupt;
  const Table table(rows);
  LiveLine live(std::cerr, terminal_of(STDERR_FILENO));
  table.print_header();
  size_t checked = 0, wrong = 0;
  for (; checked < rows.size() && !interrupt.requested(); ++checked) {
    const Row& row = rows[checked];
    live.show(std::to_string(checked + 1) + "/" + std::to_string(rows.size()) + " " + row.name + " " +
              row.sample->variant);
    const GradcheckReport report = check_sample(*row.sample, options.seed);
    live.clear();
    table.print(row, report);
    if (!report.ok) ++wrong;
  }
  if (interrupt.requested()) std::cerr << "stopped after " << checked << " of " << rows.size() << " rows\n";
  std::cout << checked << " checked, " << wrong << " failed\n";
  if (interrupt.requested()) return interrupted;
  return wrong == 0 ? done : failed;
}

}  // namespace

void add_gradcheck(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("gradcheck", "Check every derivative against its function, in f64");
  command->add_option("NAME", options->names, "Operations and layers, such as softmax or 'nn/*'; without any: all")
      ->type_name("")
      ->default_str("");
  command->add_flag("--list", options->list, "Print the names and variants, check nothing");
  add_seed(*command, options->seed);
  add_threads(*command, options->threads);
  command->footer("Example:\n  orrery gradcheck softmax 'nn/*Attention'");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace orrery
