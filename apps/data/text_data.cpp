// Chapter 9. Reading text as tokens.
#include "apps/data/text_data.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>
#include <functional>
#include <iomanip>
#include <sstream>

#include "apps/data/text_file.h"
#include "apps/program/shipped_files.h"
#include "core/error.h"
#include "core/files/crc32c.h"
#include "core/utf8.h"

namespace orrery {
namespace {

constexpr u64 most_sampled = u64{8} << 20, stretch_length = u64{1} << 16;  // bytes that SentencePiece learns from

void check_is_utf8(std::string_view bytes, u64 offset) {
  const size_t at = first_not_utf8(bytes);
  check(at == bytes.npos, "text", "is not UTF-8: byte ", offset + at + 1,
        " begins no character; a training with --tokens bytes takes any file");
}

// Calls take(piece) for the pieces of all files. A byte order mark, with which a file may begin, is left out.
void for_each_piece(const std::vector<std::string>& paths, const std::function<size_t(const FilePiece&)>& take) {
  for (const std::string& path : paths)
    read_in_pieces(path, [&](const FilePiece& piece) {
      const size_t mark = piece.offset == 0 && piece.bytes.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
      const FilePiece rest{piece.bytes.substr(mark), piece.offset + mark, piece.last};
      return mark + within("read " + path, [&] { return take(rest); });
    });
}

Alphabet alphabet_of(const std::vector<std::string>& paths) {
  std::string found;
  for_each_piece(paths, [&](const FilePiece& piece) {
    const size_t used = piece.last ? piece.bytes.size() : whole_characters(piece.bytes);
    check_is_utf8(piece.bytes.substr(0, used), piece.offset);
    found = Alphabet(found + std::string(piece.bytes.substr(0, used))).text();
    return used;
  });
  return Alphabet(found);
}

// Lines from a stretch of a file. Unless it begins or ends with the file, it may begin or end within a line, and even
// within a character.
void add_lines(std::string_view text, u64 offset, bool last, std::vector<std::string_view>& lines) {
  if (offset > 0) {
    const size_t line = text.find('\n');
    const auto begin = std::find_if_not(text.begin(), text.end(), continues_character);
    const size_t character = static_cast<size_t>(begin - text.begin());
    const size_t skipped = line == text.npos ? character : line + 1;
    text.remove_prefix(skipped);
    offset += skipped;
  } else if (text.starts_with(byte_order_mark)) {
    text.remove_prefix(byte_order_mark.size());
    offset = byte_order_mark.size();
  }
  if (!last) text = text.substr(0, whole_characters(text));
  check_is_utf8(text, offset);
  for (std::string_view line : lines_in(text)) {
    if (line.ends_with('\n')) line.remove_suffix(1);
    if (!line.empty()) lines.push_back(line);
  }
}

// Pieces learned from the first `part` of the bytes of all files.
Vocabulary vocabulary_of(const std::vector<std::string>& paths, double part, i64 size) {
  u64 all = 0, before = 0;
  for (const std::string& path : paths) all += InputFile(path).size();
  const u64 used = static_cast<u64>(part * static_cast<double>(all));
  std::deque<std::string> texts;
  std::vector<std::string_view> lines;  // in the texts
  for (const std::string& path : paths) {
    const InputFile file(path);
    check(file.size() > 0, "text", path, " is empty");
    const u64 size_used = std::min(file.size(), used - std::min(used, before));
    before += file.size();
    if (size_used == 0) continue;
    // Stretches at equal distances; one if the files are learned from as a whole.
    const bool whole = used <= most_sampled;
    const double share = static_cast<double>(size_used) / static_cast<double>(used);
    const u64 stretches = whole ? 1 : 1 + static_cast<u64>(share * static_cast<double>(most_sampled / stretch_length));
    for (u64 i = 0; i < stretches; ++i) {
      std::string& text = texts.emplace_back(whole ? size_used : std::min(stretch_length, size_used / stretches), ' ');
      const u64 begin = size_used / stretches * i;
      file.read(begin, std::as_writable_bytes(std::span(text)));
      within("read " + path, [&] { add_lines(text, begin, begin + text.size() == file.size(), lines); });
    }
  }
  return Vocabulary::of_running_text(lines, size);
}

i64 characters_in(std::string_view bytes) {
  return std::count_if(bytes.begin(), bytes.end(), [](char c) { return !continues_character(c); });
}

}  // namespace

std::vector<std::string> TextFiles::all() const {
  std::vector<std::string> result = training;
  if (!validation.empty()) result.push_back(validation);
  return result;
}

Tokenizer tokenizer_of(const TextFiles& files, TokenKind kind, i64 vocabulary_size) {
  if (kind == TokenKind::chars) return Tokenizer(alphabet_of(files.all()));
  if (kind == TokenKind::bytes) return Tokenizer::of_bytes();
  check(kind != TokenKind::bpe, "lm", "--tokens bpe are those of a published GPT-2, which --init names");
  constexpr double for_training = 0.9;
  return Tokenizer(vocabulary_of(files.training, files.validation.empty() ? for_training : 1, vocabulary_size));
}

FileText read_tokens(const std::vector<std::string>& paths, const Tokenizer& tokenizer, size_t most) {
  TextWriter writer(tokenizer.size(), most);
  bool is_utf8 = true, file_has_ended = false;
  const std::optional<i32> separator = tokenizer.separator();
  std::optional<i32> latest;
  for_each_piece(paths, [&](const FilePiece& piece) {
    const std::string_view characters =
        piece.bytes.substr(0, piece.last ? piece.bytes.size() : whole_characters(piece.bytes));
    const std::string_view used =
        piece.last ? characters : characters.substr(0, tokenizer.separable_prefix(characters));
    if (tokenizer.kind() == TokenKind::bytes)
      is_utf8 = is_utf8 && first_not_utf8(used) == used.npos;
    else
      check_is_utf8(used, piece.offset);
    const std::string_view last_line = used.substr(used.rfind('\n') + 1);
    const bool ends_with_separator =
        separator && piece.last && std::string(last_line) + '\n' == tokenizer.text(*separator);
    const auto add = [&] {
      std::vector<i32> tokens = tokenizer.tokens(ends_with_separator ? std::string(used) + '\n' : std::string(used));
      if (separator && file_has_ended && latest != separator && !tokens.empty() && tokens.front() != *separator)
        tokens.insert(tokens.begin(), *separator);
      writer.add(tokens);
      if (!tokens.empty()) latest = tokens.back();
    };
    if (piece.offset == 0)
      add();
    else
      within("from byte " + std::to_string(piece.offset + 1) + " on", add);
    file_has_ended = piece.last;
    return used.size();
  });
  return {writer.finish(), is_utf8};
}

u32 checksum_of(const std::vector<std::string>& paths) {
  u32 checksum = 0;
  for_each_piece(paths, [&](const FilePiece& piece) {
    checksum = crc32c(std::as_bytes(std::span(piece.bytes)), checksum);
    return piece.bytes.size();
  });
  return checksum;
}

std::vector<std::string> text_paths(const std::vector<std::string>& given) {
  if (!given.empty()) return given;
  const std::string shipped = shipped_path("apps/data/tinyshakespeare.txt");
  check(std::filesystem::exists(shipped), "lm", "no text is given, and the one that comes with the program is not at ",
        shipped);
  return {shipped};
}

TextData split(const FileText& file, const Tokenizer& tokenizer, i64 block) {
  constexpr i64 most_validation = 1'000'000;
  const i64 count = file.text.count(), validation = std::min(count - count * 9 / 10, most_validation);
  check(validation > block, "lm", "a text of ", count, ' ', tokenizer.name(),
        " is too short: the last tenth, for validation, must be longer than a block of ", block,
        "; take more text, a smaller --block, or a text for --valid");
  const i64 training = count - validation;
  return {tokenizer, file.text.part(0, training), file.text.part(training, count), file.is_utf8};
}

TextData joined(const FileText& training, const FileText& validation, const Tokenizer& tokenizer, i64 block) {
  check(validation.text.count() > block, "lm", "a text for validation of ", validation.text.count(), ' ',
        tokenizer.name(), " is too short: it must be longer than a block of ", block);
  check(training.text.count() >= 2 * block, "lm", "a text for training of ", training.text.count(), ' ',
        tokenizer.name(), " is too short: it must have at least two blocks of ", block);
  return {tokenizer, training.text, validation.text, training.is_utf8 && validation.is_utf8};
}

TextData text_data(const std::string& text, i64 block) {
  const Tokenizer tokenizer{Alphabet(text)};
  return split({short_text(tokenizer.tokens(text), tokenizer.size())}, tokenizer, block);
}

namespace {

// How often each of `kinds` tokens stands in a text from its token `first` on.
std::vector<i64> counts_in(const Text& text, i64 first, i64 kinds) {
  std::vector<i64> counts(static_cast<size_t>(kinds));
  std::vector<i32> tokens;
  constexpr i64 at_once = 1 << 16;
  for (i64 at = first; at < text.count(); at += at_once) {
    tokens.resize(static_cast<size_t>(std::min(at_once, text.count() - at)));
    text.copy(at, tokens);
    for (const i32 token : tokens) ++counts[static_cast<size_t>(token)];
  }
  return counts;
}

}  // namespace

i64 count_of(const Text& text, i32 token) { return counts_in(text, 0, largest_vocabulary)[static_cast<size_t>(token)]; }

TextLength length_of(const Text& text, const Tokenizer& tokenizer) {
  const std::vector<i64> counts = counts_in(text, 1, tokenizer.size());
  TextLength length;
  for (i32 token = 0; token < tokenizer.size(); ++token) {
    const i64 count = counts[static_cast<size_t>(token)];
    const std::string& bytes = tokenizer.text(token);
    length.tokens += count;
    length.characters += count * characters_in(bytes);
    length.bytes += count * static_cast<i64>(bytes.size());
  }
  return length;
}

std::string in_bits(double loss, const TextLength& length, bool is_utf8) {
  const double bits = loss / std::log(2.0) * static_cast<double>(length.tokens);
  std::ostringstream text;
  text << std::fixed << std::setprecision(4);
  if (is_utf8 && length.characters > 0)
    text << bits / static_cast<double>(length.characters) << " bits per character, ";
  text << bits / static_cast<double>(length.bytes) << (is_utf8 ? " per byte" : " bits per byte");
  return text.str();
}

}  // namespace orrery
