// Chapter 9. Parallel text: reading it, holding a part of it out, and turning it into tokens.
#include "apps/data/corpus.h"

#include <algorithm>

#include "apps/data/table.h"
#include "apps/data/text_file.h"
#include "apps/data/unicode.h"
#include "apps/data/vocabulary.h"
#include "core/error.h"
#include "core/files/hash.h"

namespace orrery::translate {
namespace {

constexpr std::string_view corpus_operation = "text";

bool is_utf8(std::string_view line) { return first_not_utf8(line) == line.npos; }

// The lines of a text, which in one spelling become a text of their own.
std::vector<std::string_view> lines_spelled(std::shared_ptr<const std::string>& text, Spelling spelling) {
  std::vector<std::string_view> lines = lines_of(*text);
  if (spelling == Spelling::as_it_is) return lines;
  std::string joined;
  joined.reserve(text->size() + 1);
  for (const std::string_view line : lines) (joined += is_utf8(line) ? normalized(line) : std::string(line)) += '\n';
  text = std::make_shared<const std::string>(std::move(joined));
  return lines_of(*text);
}

// Whether a line has more than `most` tokens in every vocabulary that has its characters. Of characters that it does
// not have, SentencePiece makes one token for a whole run: such a line may be short, but there is nothing to learn from
// it.
bool is_surely_too_long(std::string_view line, bool segmented, i64 most) {
  i64 words = 0, characters = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool space = ascii_space.find(line[i]) != ascii_space.npos;
    if (!space && (i == 0 || ascii_space.find(line[i - 1]) != ascii_space.npos)) ++words;
    if (!space && !continues_character(line[i])) ++characters;
  }
  return words > most || (!segmented && characters > most * static_cast<i64>(longest_piece));
}

// The pairs of two texts. Error: they have different numbers of lines.
LinePairs pairs_of(std::string source, std::string target, Spelling spelling, const std::string& source_path,
                   const std::string& target_path) {
  LinePairs pairs{.source_text = std::make_shared<const std::string>(std::move(source)),
                  .target_text = std::make_shared<const std::string>(std::move(target))};
  const std::vector<std::string_view> sources = lines_spelled(pairs.source_text, spelling),
                                      targets = lines_spelled(pairs.target_text, spelling);
  check(sources.size() == targets.size(), corpus_operation, source_path, " has ", sources.size(), " lines and ",
        target_path, " has ", targets.size(), "; line i of one must be the translation of line i of the other");
  pairs.counts.lines = static_cast<i64>(sources.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!is_utf8(sources[i]) || !is_utf8(targets[i])) {
      ++pairs.counts.not_utf8;
    } else if (has_nul(sources[i]) || has_nul(targets[i])) {
      ++pairs.counts.with_nul;
    } else if (is_empty(sources[i]) || is_empty(targets[i])) {
      ++pairs.counts.empty;
    } else {
      pairs.source.push_back(sources[i]);
      pairs.target.push_back(targets[i]);
    }
  }
  return pairs;
}

// The first words of a field, as a line.
std::string field_line(std::string_view field, i64 most_words) {
  std::string line;
  for (size_t begin = 0; most_words > 0; --most_words) {
    begin = field.find_first_not_of(ascii_space, begin);
    if (begin == field.npos) break;
    const size_t end = std::min(field.find_first_of(ascii_space, begin), field.size());
    line.append(line.empty() ? "" : " ").append(field.substr(begin, end - begin));
    begin = end;
  }
  return line;
}

}  // namespace

bool has_nul(std::string_view line) { return line.find('\0') != line.npos; }

bool is_empty(std::string_view line) { return line.find_first_not_of(ascii_space) == line.npos; }

std::string PairCounts::text(i64 most_tokens) const {
  std::string left_out;
  const auto add = [&](i64 count, const std::string& kind) {
    if (count > 0) left_out += (left_out.empty() ? "" : ", ") + std::to_string(count) + ' ' + kind;
  };
  add(empty, "with an empty side");
  add(not_utf8, "not UTF-8 text");
  add(with_nul, "with a NUL character");
  add(too_long, "longer than " + std::to_string(most_tokens) + " tokens");
  const std::string all = std::to_string(lines) + (lines == 1 ? " pair" : " pairs");
  const std::string of_all =
      left_out.empty() ? all : std::to_string(used()) + " of " + all + " (left out: " + left_out + ')';
  if (cut == 0) return of_all;
  return of_all + ", " + std::to_string(cut) + " cut off at " + std::to_string(most_tokens) + " tokens";
}

LinePairs read_pairs(const std::string& source_path, const std::string& target_path, Spelling spelling) {
  std::string source = read_text(source_path);  // first: of two files that are missing, its error is told
  return pairs_of(std::move(source), read_text(target_path), spelling, source_path, target_path);
}

LinePairs read_pairs(const std::string& path, const PairColumns& columns, i64 most_words, Spelling spelling) {
  const Table table = read_table(path);
  std::string texts[2];
  for (const bool is_target : {false, true}) {
    const size_t column = is_target ? table.column(columns.target, columns.target_option)
                                    : table.column(columns.source, columns.source_option);
    for (size_t i = 0; i < table.rows.size(); ++i) {
      const std::string line = field_line(table.rows[i][column], most_words);
      check(!line.empty(), corpus_operation, table.place(i), ": ", printable(table.names[column]), " is empty");
      texts[is_target].append(line) += '\n';
    }
  }
  LinePairs pairs = pairs_of(std::move(texts[0]), std::move(texts[1]), spelling, path, path);
  pairs.counts.lines += table.empty_lines;
  pairs.counts.empty += table.empty_lines;
  return pairs;
}

SplitPairs hold_out(const LinePairs& pairs) {
  constexpr i64 one_in = 20, most = 2000;
  const i64 all = pairs.size();
  const PairCounts& counts = pairs.counts;
  const std::string left_out = counts.used() < counts.lines ? ": " + counts.text(0) : "";  // none is too long so far
  check(all > 1, corpus_operation, "there is no pair of sentences to validate with, because the files have ", all,
        all == 1 ? " usable pair" : " usable pairs", left_out);
  std::vector<u64> hashes;
  for (const std::string_view line : pairs.source) {
    Fingerprint fingerprint;
    fingerprint.add(std::as_bytes(std::span(line)));
    hashes.push_back(fingerprint.mixed());
  }
  std::vector<u64> sorted = hashes;
  std::sort(sorted.begin(), sorted.end());
  const i64 wanted = std::clamp<i64>(all / one_in, 1, most);
  // Equal sources have equal hashes: those below the limit are held out, at least all with the lowest one.
  const auto second = std::upper_bound(sorted.begin(), sorted.end(), sorted[0]);
  check(second != sorted.end(), corpus_operation, "there is no pair to validate with, because all sources are equal");
  const u64 limit = std::max(sorted[static_cast<size_t>(wanted)], *second);
  SplitPairs held;
  for (LinePairs* part : {&held.training, &held.validation}) {
    part->source_text = pairs.source_text;
    part->target_text = pairs.target_text;
  }
  for (size_t i = 0; i < hashes.size(); ++i) {
    LinePairs& part = hashes[i] < limit ? held.validation : held.training;
    part.source.push_back(pairs.source[i]);
    part.target.push_back(pairs.target[i]);
  }
  held.validation.counts.lines = held.validation.size();
  held.training.counts = pairs.counts;
  held.training.counts.lines -= held.validation.size();
  return held;
}

void TokenLines::add(std::span<const i32> ids) {
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  ends_.push_back(ids_.size());
}

std::span<const i32> TokenLines::operator[](i64 line) const {
  const size_t i = static_cast<size_t>(line), begin = i == 0 ? 0 : ends_[i - 1];
  return std::span(ids_).subspan(begin, ends_[i] - begin);
}

std::vector<std::string_view> lines_to_learn(const LinePairs& pairs, bool segmented, i64 most_tokens) {
  std::vector<std::string_view> sources, targets;
  for (size_t i = 0; i < pairs.source.size(); ++i) {
    if (is_surely_too_long(pairs.source[i], segmented, most_tokens) ||
        is_surely_too_long(pairs.target[i], segmented, most_tokens))
      continue;
    sources.push_back(pairs.source[i]);
    targets.push_back(pairs.target[i]);
  }
  check(!sources.empty(), corpus_operation, "no pair of sentences is left: all are longer than ", most_tokens,
        " tokens");
  sources.insert(sources.end(), targets.begin(), targets.end());
  return sources;
}

Corpus corpus_of(const LinePairs& pairs, const Vocabulary& vocabulary, i64 most_tokens, TooLong too_long) {
  Corpus corpus;
  corpus.counts = pairs.counts;
  for (size_t i = 0; i < pairs.source.size(); ++i) {
    std::vector<i32> source = vocabulary.ids(pairs.source[i]), target = vocabulary.ids(pairs.target[i]);
    const size_t most = static_cast<size_t>(most_tokens);
    const bool is_long = std::max(source.size(), target.size()) > most;
    if (is_long && too_long == TooLong::cut) {
      ++corpus.counts.cut;
      source.resize(std::min(source.size(), most));
      target.resize(std::min(target.size(), most));
    }
    if (is_long && too_long == TooLong::left_out) {
      ++corpus.counts.too_long;
    } else if (source.empty() || target.empty()) {
      ++corpus.counts.empty;
    } else {
      corpus.source.add(source);
      corpus.target.add(target);
    }
  }
  check(corpus.size() > 0, corpus_operation, "no pair of sentences is left: ", corpus.counts.text(most_tokens));
  return corpus;
}

}  // namespace orrery::translate
