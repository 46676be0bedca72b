// Chapter 9. `orrery claims`: what papers and tutorials say, measured.
//
// It prints claim, source, measurement and verdict of each. A claim that turns out wrong here is printed as wrong, and
// the exit code is 0: it says whether the measurements could be made.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "apps/measure/claims/report.h"
#include "apps/program/command.h"
#include "apps/program/interrupt.h"
#include "apps/program/machine.h"
#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "apps/program/progress.h"
#include "core/machine/parallel.h"

namespace orrery {
namespace {

struct ClaimsOptions {
  std::vector<std::string> names;
  std::string json;
  bool list = false;
  i64 threads = 1;
};

std::vector<claims::Claim> chosen_claims(const std::vector<std::string>& names) {
  const std::vector<claims::Claim>& all = claims::all_claims();
  for (const std::string& name : names) {
    if (std::none_of(all.begin(), all.end(),
                     [&](const claims::Claim& claim) { return matches_any({name}, claim.name); }))
      usage_error("claims", "no claim is called '" + name + "'; orrery claims --list names all");
  }
  std::vector<claims::Claim> chosen;
  std::copy_if(all.begin(), all.end(), std::back_inserter(chosen),
               [&](const claims::Claim& claim) { return matches_any(names, claim.name); });
  return chosen;
}

int run(const ClaimsOptions& options) {
  const std::vector<claims::Claim> chosen = chosen_claims(options.names);
  if (options.list) {
    claims::print_names(std::cout, chosen);
    return done;
  }
  check_can_write_text("claims", "--json", options.json);
  set_threads(static_cast<int>(options.threads));
  print_start(std::cerr, {.seed = 1});
  const Interrupt interrupt;
  const Terminal terminal = terminal_of(STDOUT_FILENO);
  LiveLine live(std::cerr, terminal_of(STDERR_FILENO));
  std::vector<claims::Measured> all;
  bool stopped = false;
  size_t failures = 0;
  for (const claims::Claim& claim : chosen) {
    const claims::Run progress{[&] {
      live.show(std::to_string(all.size() + failures + 1) + "/" + std::to_string(chosen.size()) + "  measuring " +
                claim.name);
      return interrupt.requested();
    }};
    try {
      progress.go_on();
      all.push_back({claim, claim.measure(progress)});
    } catch (const claims::Stopped&) {
      stopped = true;
      break;
    } catch (const Error& error) {  // the other claims are measured nevertheless
      ++failures;
      live.clear();
      std::cerr << claim.name << ": " << error.what() << '\n';
      continue;
    }
    live.clear();
    claims::print_measured(std::cout, all.back(), terminal);
    std::cout << std::flush;
    if (!std::cout) break;  // nobody can read it: the disk is full, or the reader of the pipe has gone
  }
  live.clear();
  std::cout << claims::summary_of(all) << std::endl;
  if (!options.json.empty()) write_text(options.json, claims::claims_as_json(all, chosen.size()));
  if (stopped) std::cerr << "stopped after " << all.size() << " of " << chosen.size() << " claims\n";
  if (stopped) return interrupted;
  return failures > 0 ? failed : done;
}

}  // namespace

void add_claims(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<ClaimsOptions>();
  CLI::App& command = add_command(program, "claims", "Measure what papers and tutorials say about Transformers",
                                  "Examples:\n  orrery claims\n  orrery claims label-smoothing 'extrapolation-*'");
  add_arguments(command, "NAME", options->names,
                "Claims, such as label-smoothing or 'extrapolation-*'; without any: all");
  CLI::Option* list =
      add_flag(command, "--list", options->list, "Print the names of the claims and what they say, measure nothing");
  CLI::Option* json =
      add_output_file(command, "--json", options->json, "Write claims, measurements and verdicts to this file too");
  exclude(list, {json, add_threads(command, options->threads)});
  when_run(command, exit_code, [options] { return run(*options); });
}

}  // namespace orrery
