// Chapter 9. `orrery report`: a page with the curves, the configuration, samples and scores of trainings.
//
//   orrery report run.log --out report.html
//   orrery report gru.log transformer.log --out comparison.html
// The page has sections, each a table or charts.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <sstream>

#include "apps/program/command.h"
#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "apps/program/progress.h"
#include "apps/program/shipped_files.h"
#include "apps/program/stopwatch.h"
#include "apps/program/terminal.h"
#include "apps/show/report/run_log.h"
#include "core/error.h"

namespace orrery::run_report {
namespace {

std::string element(const std::string& tag, const std::string& inside, const std::string& attributes = "") {
  return "<" + tag + (attributes.empty() ? "" : " " + attributes) + ">" + inside + "</" + tag + ">";
}
std::string words(const std::string& tag, const std::string& text, const std::string& attributes = "") {
  return element(tag, in_markup(text), attributes);
}

std::string section(const std::string& title, const std::string& inside) {
  return inside.empty() ? "" : element("section", words("h2", title) + "\n" + inside) + "\n";
}

// What the logs are called in the page: by their file names, or by their paths where two file names are the same.
std::vector<std::string> names_of(const std::vector<RunLog>& logs) {
  std::vector<std::string> names;
  for (const RunLog& log : logs) {
    const std::string name = std::filesystem::path(log.path).filename().string();
    const auto same = std::count_if(logs.begin(), logs.end(), [&](const RunLog& other) {
      return std::filesystem::path(other.path).filename().string() == name;
    });
    names.push_back(same > 1 ? log.path : name);
  }
  return names;
}

// 2545920 as "2,545,920".
std::string with_commas(i64 number) {
  std::string digits = std::to_string(number);
  for (i64 at = std::ssize(digits) - 3; at > 0; at -= 3) digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

// In one line of `words`, line breaks would not be seen.
std::string lines_in_markup(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) lines.push_back(in_markup(line));
  return joined(lines, "\n");
}

const std::string none = "&ndash;";
std::string cell(const std::string& text) { return element("td", text.empty() ? none : in_markup(text)); }

std::string best_text(const RunLog& log) {
  const std::optional<CurvePoint> best = log.best();
  return best ? numbers("%.4f at step ", best->value) + with_commas(best->step) : "";
}

std::string last_text(const Curve& curve) {
  if (curve.empty()) return "";
  const size_t count = (curve.size() + 19) / 20;  // a twentieth
  double sum = 0;
  for (size_t i = curve.size() - count; i < curve.size(); ++i) sum += curve[i].value;
  return numbers("%.4f", sum / static_cast<double>(count));
}

std::string median_text(const Curve& curve) {
  if (curve.empty()) return "";
  std::vector<double> values;
  for (const CurvePoint& point : curve) values.push_back(point.value);
  return with_commas(std::llround(std::clamp(median(std::move(values)), -1e15, 1e15)));
}

std::string summary(const std::vector<RunLog>& logs, const std::vector<std::string>& names) {
  if (logs.empty()) return "";
  std::string rows;
  for (size_t i = 0; i < logs.size(); ++i) {
    const RunLog& log = logs[i];
    const std::string steps =
        with_commas(log.last_step()) + (log.steps > log.last_step() ? " of " + with_commas(log.steps) : "");
    rows += element("tr", element("th", legend_line(i) + " " + in_markup(names[i]), "scope=\"row\"") +
                              cell(log.program) + cell(log.parameters > 0 ? with_commas(log.parameters) : "") +
                              cell(steps) + cell(duration(log.seconds())) + cell(median_text(log.units_per_second)) +
                              cell(last_text(log.loss)) + cell(best_text(log))) +
            "\n";
  }
  const std::string judged_by = common_score(logs);
  return element("table", "<tr><th>log</th><th>program</th><th>parameters</th><th>steps</th><th>time</th>" +
                              words("th", common_speed(logs) + ", median") + "<th>training loss, last 5 %</th>" +
                              words("th", (judged_by == "validation loss" ? "lowest " : "best ") + judged_by) +
                              "</tr>\n" + rows);
}

std::string charts(const std::vector<RunLog>& logs, const std::vector<std::string>& names) {
  std::string result;
  for (const CurveKind& kind : curve_kinds()) {
    const std::string drawn = draw_curves(logs, kind, Against::steps) + draw_curves(logs, kind, Against::time);
    if (!drawn.empty()) result += element("div", drawn, "class=\"charts\"") + "\n";
  }
  if (result.empty() || logs.size() < 2) return result;
  std::string legend;
  for (size_t i = 0; i < logs.size(); ++i) legend += element("span", legend_line(i) + " " + in_markup(names[i]));
  return element("p", legend, "class=\"legend\"") + "\n" + result;
}

std::string scores(const RunFiles& files, const std::vector<std::string>& names) {
  std::string rows;
  const auto add = [&](const std::string& name, const NamedScore& score) {
    rows += element("tr", words("th", name, "scope=\"row\"") + cell(score.name) + cell(numbers("%.4f", score.value))) +
            "\n";
  };
  for (size_t i = 0; i < files.logs.size(); ++i)
    for (const NamedScore& score : files.logs[i].scores) add(names[i], score);
  for (const ScoreFile& file : files.scores)
    for (const NamedScore& score : file.scores) add(file.path, score);
  return rows.empty() ? "" : element("table", "<tr><th>of</th><th>score</th><th>value</th></tr>\n" + rows);
}

// The last samples are seen at once, the earlier ones when they are asked for.
std::string samples(const RunLog& log, const std::string& name) {
  constexpr i64 shown = 3;
  const i64 count = std::ssize(log.samples), earlier = std::max<i64>(0, count - shown);
  const auto rows = [&](i64 begin, i64 end) {
    std::string text;
    for (i64 i = begin; i < end; ++i) {
      const LoggedSample& sample = log.samples[static_cast<size_t>(i)];
      text += element("tr", words("th", "step " + with_commas(sample.step), "scope=\"row\"") +
                                element("td", lines_in_markup(sample.text), "class=\"sample\"")) +
              "\n";
    }
    return element("table", text);
  };
  if (count == 0) return "";
  std::string result = words("h3", name) + "\n" + rows(earlier, count);
  if (earlier > 0)
    result += element("details", words("summary", "earlier samples: " + std::to_string(earlier)) + rows(0, earlier));
  return result;
}

// A column of the table of options: a log, or a model whose options no log has.
struct OptionsColumn {
  std::string name;
  const Options* options;
};

std::string configuration(const RunFiles& files, const std::vector<std::string>& names) {
  std::vector<OptionsColumn> columns;
  for (size_t i = 0; i < files.logs.size(); ++i)
    if (!files.logs[i].options.empty()) columns.push_back({names[i], &files.logs[i].options});
  for (const SavedModel& model : files.models) {
    const bool known = std::any_of(columns.begin(), columns.end(),
                                   [&](const OptionsColumn& column) { return *column.options == model.options; });
    if (!known && !model.options.empty()) columns.push_back({model.path, &model.options});
  }
  std::vector<std::string> options;  // of any column, in the order of the first that has it
  for (const OptionsColumn& column : columns)
    for (const auto& option : *column.options)
      if (std::find(options.begin(), options.end(), option.first) == options.end()) options.push_back(option.first);
  std::string head = "<th>option</th>", rows;
  for (const OptionsColumn& column : columns) head += words("th", column.name);
  for (const std::string& option : options) {
    std::vector<std::string> values;
    for (const OptionsColumn& column : columns) {
      const auto found = std::find_if(column.options->begin(), column.options->end(),
                                      [&](const auto& entry) { return entry.first == option; });
      values.push_back(found == column.options->end() ? "" : found->second);
    }
    const bool differs = std::count(values.begin(), values.end(), values[0]) < std::ssize(values);
    std::string row = words("th", option, "scope=\"row\"");
    for (const std::string& value : values) row += cell(value);
    rows += element("tr", row, differs ? "class=\"differs\"" : "") + "\n";
  }
  return rows.empty() ? "" : element("table", element("tr", head) + "\n" + rows, "class=\"options\"");
}

std::string models(const std::vector<SavedModel>& models) {
  std::string rows;
  for (const SavedModel& model : models) {
    std::error_code unknown;
    const double megabytes = static_cast<double>(std::filesystem::file_size(model.path, unknown)) / 1e6;
    rows +=
        element("tr", words("th", model.path, "scope=\"row\"") + cell(unknown ? "" : numbers("%.1f MB", megabytes)) +
                          cell(model.options.empty() ? "not in the file" : "in the file"));
  }
  return rows.empty() ? "" : element("table", "<tr><th>model</th><th>size</th><th>options</th></tr>\n" + rows);
}

}  // namespace

std::string report_page(const RunFiles& files) {
  const std::vector<std::string> names = names_of(files.logs);
  std::string notes, all_samples;
  for (const std::string& note : files.notes) notes += words("p", note, "class=\"note\"") + "\n";
  if (files.logs.empty())
    notes += "<p class=\"note\">Without a log there are no curves: a training writes one with --log FILE.</p>\n";
  for (size_t i = 0; i < files.logs.size(); ++i) all_samples += samples(files.logs[i], names[i]);
  const std::string title = files.logs.size() > 1 ? std::to_string(files.logs.size()) + " trainings" : "A training";
  std::string page = shipped_text("apps/show/report/page.html");
  fill_in(page, "<!-- title -->", title);
  fill_in(page, "<!-- report -->",
          words("h1", title) + "\n" + notes + summary(files.logs, names) + "\n" +
              section("Curves", charts(files.logs, names)) + section("Scores", scores(files, names)) +
              section("Samples", all_samples) + section("Configuration", configuration(files, names)) +
              section("Models", models(files.models)));
  return page;
}

}  // namespace orrery::run_report

namespace orrery {
namespace {

struct ReportOptions {
  std::vector<std::string> files;
  std::string out;
};

int write_report(const ReportOptions& options) {
  if (options.out.empty() && isatty(STDOUT_FILENO) == 1)
    usage_error("--out", "must name a file for the page, which is for a browser, not for a terminal");
  check_can_write_text("report", "--out", options.out);
  const run_report::RunFiles files = run_report::read_run_files(options.files);
  for (const std::string& path : files.paths)
    check(!is_same_file(options.out, path), "report", "--out ", options.out, " would write over what it reports on");
  for (const std::string& note : files.notes) std::cerr << harmless(note) << '\n';
  const std::string page = run_report::report_page(files);
  if (options.out.empty())
    std::cout << page << std::flush;
  else
    write_text(options.out, page);
  return done;
}

}  // namespace

void add_report(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App& command = add_command(
      program, "report", "Write a page with the curves, the configuration, samples and scores of trainings",
      "A RUN is a log that `--log` wrote, a model that `--save` wrote, the scores that `translate score --json` wrote, "
      "or a folder of these. The curves of up to " +
          std::to_string(run_report::most_logs) +
          " logs are drawn over each other.\n"
          "Examples:\n  orrery report run/ --out report.html\n"
          "  orrery report gru.log transformer.log --out comparison.html");
  require(add_files(command, "RUN", options->files, "What trainings wrote"));
  add_output_file(command, "--out", options->out,
                  "Write the page to this file; without it to stdout, unless that is a terminal");
  when_run(command, exit_code, [options] { return write_report(*options); });
}

}  // namespace orrery
