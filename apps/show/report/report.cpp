// Chapter 9. `orrery report`: a page with the curves, the configuration, samples and scores of trainings.
//
//   orrery report run.log --out report.html
//   orrery report gru.log transformer.log --out comparison.html
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <memory>

#include "apps/program/command.h"
#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "apps/show/report/run_files.h"
#include "core/error.h"

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
