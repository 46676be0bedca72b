// Chapter 9. Reads the files, counts, and prints what multi-bleu.perl and sacreBLEU would print.
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/data/text_file.h"
#include "apps/data/words.h"
#include "apps/program/command.h"
#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "apps/program/terminal.h"
#include "apps/tasks/translate/score.h"
#include "core/files/json.h"

namespace orrery {
namespace translate {
namespace {

constexpr const char *multi_bleu_name = "multi-bleu", *sacrebleu_name = "sacrebleu", *chrf_name = "chrf";

struct ScoreOptions {
  std::string translation, baseline, metric = "all", json;
  std::vector<std::string> references;
  bool lowercase = false;
  i64 samples = 1000, seed = 1;
};

struct TextFile {
  std::string path;
  Sentences lines;
};

// One file under one metric.
struct MetricResult {
  std::string name, line;  // the line that the metric's tool prints
  Json json;
  ScoreOfLines score_of;
};

struct SystemResult {
  std::string path;
  std::vector<MetricResult> metrics;
};

TextFile read_lines(const std::string& path) {
  const std::string text = read_text(path);
  TextFile file{path, {}};
  for (const std::string_view line : lines_of(text)) {
    file.lines.emplace_back(line);
    const size_t wrong = first_not_utf8(line);
    check(wrong == line.npos, "score", path, " is not UTF-8: byte ", wrong + 1, " of line ", file.lines.size(),
          " begins no character");
  }
  return file;
}

void check_same_lines(const TextFile& a, const TextFile& b) {
  const bool a_is_shorter = a.lines.size() < b.lines.size();
  const TextFile &shorter = a_is_shorter ? a : b, &longer = a_is_shorter ? b : a;
  check(a.lines.size() == b.lines.size(), "score", shorter.path, " ends after line ", shorter.lines.size(), ", but ",
        longer.path, " has ", longer.lines.size(), " lines");
}

Json json_of(const Bleu& bleu) {
  return {{"score", bleu.score},   {"precisions", bleu.precisions}, {"brevity_penalty", bleu.brevity_penalty},
          {"ratio", bleu.ratio()}, {"length", bleu.length},         {"reference_length", bleu.reference_length}};
}

// sacreBLEU's description of how a score was computed, without its version.
std::string signature_of(size_t references, bool lowercase, const std::string& rest) {
  return "nrefs:" + std::to_string(references) + "|case:" + (lowercase ? "lc" : "mixed") + '|' + rest;
}

std::string precisions_of(const Bleu& bleu) {
  const auto& p = bleu.precisions;
  return numbers("%.1f/%.1f/%.1f/%.1f", p[0], p[1], p[2], p[3]);
}

MetricResult bleu_result(BleuKind kind, const TextFile& file, const std::vector<Sentences>& references,
                         bool lowercase) {
  auto counts = bleu_counts(kind, file.lines, references, lowercase);
  const Bleu all = bleu(kind, sum(counts));
  MetricResult result{.name = {}, .line = {}, .json = json_of(all), .score_of = {}};
  const auto length = static_cast<long long>(all.length),
             reference_length = static_cast<long long>(all.reference_length);
  if (kind == BleuKind::multi_bleu) {
    result.name = multi_bleu_name;
    result.line = numbers("BLEU = %.2f, ", all.score) + precisions_of(all) +
                  numbers(" (BP=%.3f, ratio=%.3f, hyp_len=%lld, ref_len=%lld)", all.brevity_penalty, all.ratio(),
                          length, reference_length);
  } else {
    const std::string signature = signature_of(references.size(), lowercase, "eff:no|tok:13a|smooth:exp");
    result.name = sacrebleu_name;
    result.json["signature"] = signature;
    result.line = "BLEU|" + signature + numbers(" = %.2f ", all.score) + precisions_of(all) +
                  numbers(" (BP = %.3f ratio = %.3f hyp_len = %lld ref_len = %lld)", all.brevity_penalty, all.ratio(),
                          length, reference_length);
  }
  result.score_of = [kind, counts = std::move(counts)](std::span<const i64> lines) {
    return bleu(kind, sum(counts, lines)).score;
  };
  return result;
}

MetricResult chrf_result(const TextFile& file, const std::vector<Sentences>& references, bool lowercase) {
  auto counts = chrf_counts(file.lines, references, lowercase);
  const double score = chrf(sum(counts));
  const std::string signature = signature_of(references.size(), lowercase, "eff:yes|nc:6|nw:0|space:no");
  return {.name = chrf_name,
          .line = "chrF2|" + signature + numbers(" = %.2f", score),
          .json = {{"score", score}, {"signature", signature}},
          .score_of = [counts = std::move(counts)](std::span<const i64> lines) { return chrf(sum(counts, lines)); }};
}

// sacreBLEU expects text as people write it. Like sacreBLEU, we look for full stops that stand alone.
void note_what_is_odd(const TextFile& file, bool with_sacrebleu) {
  constexpr i64 many = 100;
  const auto count = [&](auto holds) { return std::count_if(file.lines.begin(), file.lines.end(), holds); };
  const i64 empty = count([](const std::string& line) { return without_whitespace(line).empty(); });
  const i64 tokenised = count([](const std::string& line) { return line.ends_with(" ."); });
  if (empty > 0)
    std::cerr << "note: " << empty << " of " << file.lines.size() << " lines of " << harmless(file.path)
              << " are empty\n";
  if (with_sacrebleu && tokenised >= many)
    std::cerr << "note: " << tokenised << " lines of " << harmless(file.path)
              << " end in a full stop that stands alone. If the text is tokenised, take multi-bleu's number; "
                 "sacrebleu and chrf are for text as people write it\n";
}

SystemResult result_of(const TextFile& file, const std::vector<Sentences>& references, const ScoreOptions& options) {
  const auto wanted = [&](const std::string& name) { return options.metric == "all" || options.metric == name; };
  note_what_is_odd(file, wanted(sacrebleu_name));
  SystemResult result{file.path, {}};
  if (wanted(multi_bleu_name))
    result.metrics.push_back(bleu_result(BleuKind::multi_bleu, file, references, options.lowercase));
  if (wanted(sacrebleu_name))
    result.metrics.push_back(bleu_result(BleuKind::sacrebleu, file, references, options.lowercase));
  if (wanted(chrf_name)) result.metrics.push_back(chrf_result(file, references, options.lowercase));
  return result;
}

// "multi-bleu: ", as wide as the widest of the names.
std::string label_of(const std::string& name) { return fitted(name + ":", 12); }

void print_result(const SystemResult& result) {
  for (const MetricResult& metric : result.metrics) std::cout << label_of(metric.name) << metric.line << '\n';
}

Json json_of(const SystemResult& result) {
  Json json{{"file", result.path}};
  for (const MetricResult& metric : result.metrics) json[metric.name] = metric.json;
  return json;
}

Json json_of(const Spread& spread) { return {{"mean", spread.mean}, {"half_width", spread.half_width}}; }

// Prints how the systems compare, and returns it as JSON.
Json compare(const SystemResult& system, const SystemResult& baseline, i64 lines, const ScoreOptions& options) {
  std::vector<Paired> pairs;
  for (size_t m = 0; m < system.metrics.size(); ++m)
    pairs.push_back({system.metrics[m].score_of, baseline.metrics[m].score_of});
  const auto comparisons = paired_bootstrap(pairs, lines, options.samples, static_cast<u64>(options.seed));
  Json json{{"method", "paired bootstrap"}, {"samples", options.samples}, {"seed", options.seed}};
  std::cout << harmless(system.path) << " minus " << harmless(baseline.path) << ", paired bootstrap with "
            << options.samples << " samples, seed " << options.seed << ":\n";
  for (size_t m = 0; m < comparisons.size(); ++m) {
    const Comparison& c = comparisons[m];
    const std::string& name = system.metrics[m].name;
    std::cout << label_of(name)
              << numbers("%+.2f (means %.2f ± %.2f and %.2f ± %.2f), p = %.4f, higher in %.1f %% of the samples\n",
                         c.difference, c.system.mean, c.system.half_width, c.baseline.mean, c.baseline.half_width,
                         c.p_value, 100 * c.higher);
    json[name] = {{"difference", c.difference},
                  {"p_value", c.p_value},
                  {"higher", c.higher},
                  {"system", json_of(c.system)},
                  {"baseline", json_of(c.baseline)}};
  }
  return json;
}

int score(const ScoreOptions& options) {
  check_can_write_text("score", "--json", options.json);
  std::vector<std::string> read{options.translation, options.baseline};
  read.insert(read.end(), options.references.begin(), options.references.end());
  for (const std::string& path : read)
    check(!is_same_file(options.json, path), "score", "--json ", options.json, " would write over ", path);
  const TextFile translation = read_lines(options.translation);
  std::vector<Sentences> references;
  for (const std::string& path : options.references) {
    TextFile reference = read_lines(path);
    check_same_lines(translation, reference);
    references.push_back(std::move(reference.lines));
  }
  const auto lines = static_cast<i64>(translation.lines.size());
  Json json{{"lines", lines}, {"references", options.references}, {"lowercase", options.lowercase}};
  if (options.baseline.empty()) {
    const SystemResult system = result_of(translation, references, options);
    print_result(system);
    json["system"] = json_of(system);
  } else {
    const TextFile other = read_lines(options.baseline);
    check_same_lines(translation, other);
    const SystemResult system = result_of(translation, references, options),
                       baseline = result_of(other, references, options);
    for (const SystemResult* result : {&system, &baseline}) {
      std::cout << harmless(result->path) << '\n';
      print_result(*result);
    }
    json["system"] = json_of(system);
    json["baseline"] = json_of(baseline);
    json["comparison"] = compare(system, baseline, lines, options);
  }
  if (!options.json.empty()) write_text(options.json, json_text(json, 2) + "\n");
  return done;
}

}  // namespace
}  // namespace translate

void add_translate_score(CLI::App& translate, int& exit_code) {
  using namespace orrery::translate;
  auto options = std::make_shared<ScoreOptions>();
  CLI::App& command = add_command(
      translate, "score", "Score a translation: BLEU as multi-bleu.perl and as sacreBLEU count it, and chrF",
      "multi-bleu is BLEU of the words as they stand: for tokenised text. sacrebleu is BLEU of the words that its "
      "tokeniser 13a makes of a line, and chrf is sacreBLEU's chrF2: both for text as people write it.\n"
      "Examples:\n  orrery translate score translated.de reference.de\n"
      "  orrery translate score new.de reference.de --baseline old.de");
  require(add_file(command, "TRANSLATION", options->translation, "The file to score, UTF-8, a sentence on each line"));
  require(
      add_files(command, "REFERENCE", options->references, "Translations by people, with the same number of lines"));
  add_choice(command, "--metric", options->metric, {"all", multi_bleu_name, sacrebleu_name, chrf_name},
             "Which score to print");
  add_flag(command, "--lowercase", options->lowercase,
           "Capitals count as small letters: for multi-bleu A to Z, as with its -lc, for the others all letters");
  add_output_file(command, "--json", options->json, "Write the results to this file too, in full");
  begin_group(command, "Comparison");
  add_file(command, "--baseline", options->baseline,
           "Another system's translation: say by paired bootstrap resampling whether TRANSLATION is better");
  add_whole_number(command, "--samples", options->samples, 1, 1000000, "Samples of the lines, drawn with replacement");
  add_seed(command, options->seed);
  when_run(command, exit_code, [options] { return score(*options); });
}

}  // namespace orrery
