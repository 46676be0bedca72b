// Chapter 9. `orrery doctor`: whether this machine, this build and this environment let trainings run at full speed.
//
//   orrery doctor
//   orrery doctor --threads 2 --json doctor.json
// One line for each finding, and what to do about it. A training prints the harmful ones that need no measuring.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/measure/doctor/checks.h"
#include "apps/program/command.h"
#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "apps/program/terminal.h"
#include "core/files/json.h"
#include "core/machine/parallel.h"

namespace orrery {
namespace {

struct DoctorOptions {
  std::string json;
  i64 threads = 1;
  ProductOptions products{};
};

constexpr std::string_view verdict_names[] = {"ok", "note", "harmful"};
constexpr Colour verdict_colours[] = {Colour::green, Colour::yellow, Colour::red};

size_t count_of_verdict(const std::vector<Finding>& all, Verdict verdict) {
  return static_cast<size_t>(
      std::count_if(all.begin(), all.end(), [&](const Finding& finding) { return finding.verdict == verdict; }));
}

std::string findings_as_json(const Machine& machine, const Speed& speed, const std::vector<Finding>& all) {
  Json list = Json::array();
  for (const Finding& finding : all)
    list.push_back({{"subject", finding.subject},
                    {"verdict", name_of(finding.verdict)},
                    {"finding", finding.text},
                    {"advice", finding.advice}});
  const Json report{{"harmful", count_of_verdict(all, Verdict::harmful)},
                    {"cpu", machine.cpu},
                    {"vectors", name_of(machine.level)},
                    {"cores", machine.cores},
                    {"cores_allowed", machine.allowed},
                    {"cores_granted", machine.granted > 0 ? Json(machine.granted) : Json()},
                    {"threads", machine.threads},
                    {"blas", described(machine.blas)},
                    {"memory_bytes", machine.memory.total},
                    {"memory_available_bytes", machine.memory.available},
                    {"gflop_per_second", 1e-9 * speed.ours},
                    {"gflop_per_second_of_openblas", 1e-9 * speed.blas},
                    {"peak_gflop_per_second", 1e-9 * speed.peak},
                    {"findings", list}};
  return json_in_ascii(report, 2) + "\n";
}

int examine_machine(const DoctorOptions& options) {
  check_can_write_text("doctor", "--json", options.json);
  set_threads(static_cast<int>(options.threads));
  set_products(options.products);
  const Machine machine = read_machine();
  Speed speed;
  const std::vector<Finding> all = all_findings(machine, speed);
  print_findings(std::cout, all, terminal_of(STDOUT_FILENO));
  if (!options.json.empty()) write_text(options.json, findings_as_json(machine, speed, all));
  check_harmless(all);
  return done;
}

}  // namespace

std::string_view name_of(Verdict verdict) { return verdict_names[static_cast<size_t>(verdict)]; }

void print_findings(std::ostream& out, const std::vector<Finding>& all, const Terminal& terminal) {
  size_t subject_width = 0;
  for (const Finding& finding : all) subject_width = std::max(subject_width, finding.subject.size());
  for (const Finding& finding : all) {
    const auto which = static_cast<size_t>(finding.verdict);
    out << coloured(fitted(std::string(verdict_names[which]), 7), verdict_colours[which], terminal) << "  "
        << fitted(finding.subject, subject_width) << "  "
        << harmless(finding.text + (finding.advice.empty() ? "" : "; " + finding.advice)) << '\n';
  }
  out << all.size() << " findings: " << count_of_verdict(all, Verdict::note) << " to note, "
      << count_of_verdict(all, Verdict::harmful) << " harmful" << std::endl;
}

void check_harmless(const std::vector<Finding>& all) {
  std::vector<std::string> subjects;
  for (const Finding& finding : all)
    if (finding.verdict == Verdict::harmful) subjects.push_back(finding.subject);
  check(subjects.empty(), "doctor", "harmful: ", listed(subjects));
}

void add_doctor(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App& command = add_command(
      program, "doctor", "Say what slows trainings down on this machine, and what to do about it",
      "Measures for about a second. Exit code 1: something is harmful, so that runs take at least twice as long, or "
      "fail.\nExample:\n  orrery doctor --threads 2");
  add_threads(command, options->threads);
  add_products(command, options->products);
  add_output_file(command, "--json", options->json, "Write the results to this file too, in full");
  when_run(command, exit_code, [options] { return examine_machine(*options); });
}

}  // namespace orrery
