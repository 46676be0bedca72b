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

#include "apps/program/command.h"
#include "apps/program/interrupt.h"
#include "apps/program/machine.h"
#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "apps/program/progress.h"
#include "apps/program/terminal.h"
#include "core/machine/parallel.h"

namespace orrery {
namespace claims {
namespace {

constexpr size_t indent = 12;
constexpr const char* verdict_names[] = {"holds", "partly", "does not hold"};
constexpr Colour verdict_colours[] = {Colour::green, Colour::yellow, Colour::red};

// "  claim     Without positions, ..." with the lines after the first below the text.
std::string labelled(const std::string& label, const std::string& text) {
  std::string lines = wrapped(text, indent, table_width, indent);
  return lines.replace(2, label.size(), label);
}

void print_measured(const Measured& measured) {
  const auto& [claim, finding] = measured;
  std::cout << claim.name << '\n' << labelled("claim", claim.says) << labelled("source", claim.source);
  std::string label = "  measured  ";
  for (const std::string& line : finding.measured) {
    std::cout << label << line << '\n';
    label = std::string(indent, ' ');
  }
  const Colour colour = verdict_colours[static_cast<size_t>(finding.verdict)];
  std::cout << labelled("holds if", claim.holds_if) << "  verdict   "
            << coloured(name_of(finding.verdict), colour, terminal_of(STDOUT_FILENO)) << "\n\n"
            << std::flush;
}

i64 count_of(const std::vector<Measured>& all, Verdict verdict) {
  return std::count_if(all.begin(), all.end(), [&](const Measured& m) { return m.finding.verdict == verdict; });
}

struct ClaimsOptions {
  std::vector<std::string> names;
  std::string json;
  bool list = false;
  i64 threads = 1;
};

std::vector<Claim> chosen_claims(const std::vector<std::string>& names) {
  const std::vector<Claim>& all = all_claims();
  for (const std::string& name : names) {
    if (std::none_of(all.begin(), all.end(), [&](const Claim& claim) { return matches_any({name}, claim.name); }))
      usage_error("claims", "no claim is called '" + name + "'; orrery claims --list names all");
  }
  std::vector<Claim> chosen;
  std::copy_if(all.begin(), all.end(), std::back_inserter(chosen),
               [&](const Claim& claim) { return matches_any(names, claim.name); });
  return chosen;
}

int run(const ClaimsOptions& options) {
  const std::vector<Claim> chosen = chosen_claims(options.names);
  if (options.list) {
    for (const Claim& claim : chosen) std::cout << claim.name << '\n' << wrapped(claim.says, 2, table_width, 2);
    return done;
  }
  check_can_write_text("claims", "--json", options.json);
  set_threads(static_cast<int>(options.threads));
  print_start(std::cerr, {.seed = 1});
  const Interrupt interrupt;
  LiveLine live(std::cerr, terminal_of(STDERR_FILENO));
  std::vector<Measured> all;
  bool stopped = false;
  size_t failures = 0;
  for (const Claim& claim : chosen) {
    const Run progress{[&] {
      live.show(std::to_string(all.size() + failures + 1) + "/" + std::to_string(chosen.size()) + "  measuring " +
                claim.name);
      return interrupt.requested();
    }};
    try {
      progress.go_on();
      all.push_back({claim, claim.measure(progress)});
    } catch (const Stopped&) {
      stopped = true;
      break;
    } catch (const Error& error) {  // the other claims are measured nevertheless
      ++failures;
      live.clear();
      std::cerr << claim.name << ": " << error.what() << '\n';
      continue;
    }
    live.clear();
    print_measured(all.back());
    if (!std::cout) break;  // nobody can read it: the disk is full, or the reader of the pipe has gone
  }
  live.clear();
  std::cout << summary_of(all) << std::endl;
  if (!options.json.empty()) write_text(options.json, claims_as_json(all, chosen.size()));
  if (stopped) std::cerr << "stopped after " << all.size() << " of " << chosen.size() << " claims\n";
  if (stopped) return interrupted;
  return failures > 0 ? failed : done;
}

}  // namespace

std::string name_of(Verdict verdict) { return verdict_names[static_cast<size_t>(verdict)]; }

Verdict verdict_of(bool first_met, bool second_met) {
  if (first_met && second_met) return Verdict::holds;
  return first_met || second_met ? Verdict::partly : Verdict::does_not_hold;
}

std::string summary_of(const std::vector<Measured>& all) {
  const i64 hold = count_of(all, Verdict::holds), do_not = count_of(all, Verdict::does_not_hold);
  return std::to_string(all.size()) + (all.size() == 1 ? " claim: " : " claims: ") + std::to_string(hold) +
         (hold == 1 ? " holds, " : " hold, ") + std::to_string(do_not) + (do_not == 1 ? " does not, " : " do not, ") +
         std::to_string(count_of(all, Verdict::partly)) + " partly";
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

}  // namespace claims

void add_claims(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<claims::ClaimsOptions>();
  CLI::App& command = add_command(program, "claims", "Measure what papers and tutorials say about Transformers",
                                  "Examples:\n  orrery claims\n  orrery claims label-smoothing 'extrapolation-*'");
  add_arguments(command, "NAME", options->names,
                "Claims, such as label-smoothing or 'extrapolation-*'; without any: all");
  CLI::Option* list =
      add_flag(command, "--list", options->list, "Print the names of the claims and what they say, measure nothing");
  CLI::Option* json =
      add_output_file(command, "--json", options->json, "Write claims, measurements and verdicts to this file too");
  exclude(list, {json, add_threads(command, options->threads)});
  when_run(command, exit_code, [options] { return claims::run(*options); });
}

}  // namespace orrery
