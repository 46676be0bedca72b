// Chapter 9. `orrery claims`: what papers and tutorials say, measured.
//
// It prints claim, source, measurement and verdict of each. A claim that turns out wrong here is printed as wrong, and
// the exit code is 0: it says whether the measurements could be made.
#include "apps/measure/claims/claims.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/program/columns.h"
#include "apps/program/command.h"
#include "apps/program/interrupt.h"
#include "apps/program/machine.h"
#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "apps/program/progress.h"
#include "core/machine/parallel.h"

namespace orrery::claims {
namespace {

constexpr size_t indent = 12;

// "  claim     Without positions, ..." with the lines after the first below the text.
std::string labelled(const std::string& label, const std::string& text) {
  std::string lines = wrapped(text, indent, table_width, indent);
  return lines.replace(2, label.size(), label);
}

Colour colour_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::holds: return Colour::green;
    case Verdict::partly: return Colour::yellow;
    case Verdict::does_not_hold: break;
  }
  return Colour::red;
}

i64 count_of(const std::vector<Measured>& all, Verdict verdict) {
  return std::count_if(all.begin(), all.end(), [&](const Measured& m) { return m.finding.verdict == verdict; });
}

}  // namespace

void print_names(std::ostream& out, const std::vector<Claim>& claims) {
  for (const Claim& claim : claims) out << claim.name << '\n' << wrapped(claim.says, 2, table_width, 2);
}

void print_measured(std::ostream& out, const Measured& measured, const Terminal& terminal) {
  const auto& [claim, finding] = measured;
  out << claim.name << '\n' << labelled("claim", claim.says) << labelled("source", claim.source);
  std::string label = "  measured  ";
  for (const std::string& line : finding.measured) {
    out << label << line << '\n';
    label = std::string(indent, ' ');
  }
  out << labelled("holds if", claim.holds_if) << "  verdict   "
      << coloured(name_of(finding.verdict), colour_of(finding.verdict), terminal) << "\n\n";
}

std::string summary_of(const std::vector<Measured>& all) {
  const i64 hold = count_of(all, Verdict::holds), do_not = count_of(all, Verdict::does_not_hold),
            partly = count_of(all, Verdict::partly);
  return std::to_string(all.size()) + (all.size() == 1 ? " claim: " : " claims: ") + std::to_string(hold) +
         (hold == 1 ? " holds, " : " hold, ") + std::to_string(do_not) + (do_not == 1 ? " does not, " : " do not, ") +
         std::to_string(partly) + " partly";
}

std::string claims_as_json(const std::vector<Measured>& all, size_t chosen) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& [claim, finding] : all)
    rows.push_back({{"name", claim.name},
                    {"claim", claim.says},
                    {"source", claim.source},
                    {"measured", finding.measured},
                    {"holds_if", claim.holds_if},
                    {"verdict", name_of(finding.verdict)}});
  const nlohmann::ordered_json result{{"claims", std::move(rows)},
                                      {"hold", count_of(all, Verdict::holds)},
                                      {"do_not_hold", count_of(all, Verdict::does_not_hold)},
                                      {"partly", count_of(all, Verdict::partly)},
                                      {"complete", all.size() == chosen}};
  return result.dump(2) + "\n";
}

}  // namespace orrery::claims

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
