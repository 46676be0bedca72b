// Chapter 9. GPT-2's vocabulary: reading it, cutting text into words, and joining bytes.
#include "apps/data/byte_pairs.h"

#include <array>
#include <nlohmann/json.hpp>
#include <queue>
#include <unordered_map>

#include "apps/data/text_file.h"
#include "apps/data/unicode.h"
#include "apps/data/vocabulary.h"
#include "core/error.h"
#include "core/files/json.h"
#include "nn/models/config_json.h"

namespace orrery {
namespace {

constexpr std::string_view kind_of_byte_pairs = "byte pairs";  // in metadata

// The bytes that a token of the files stands for; a name with other characters stands for itself.
std::string bytes_of_token(const std::string& token) {
  static const std::unordered_map<size_t, char> byte_of = [] {
    std::unordered_map<size_t, char> result;
    for (size_t byte = 0; byte < byte_count; ++byte) result[byte_characters()[byte]] = static_cast<char>(byte);
    return result;
  }();
  std::string bytes;
  bool known = true;
  for_each_character(token, [&](size_t code, size_t, size_t) {
    const auto found = byte_of.find(code);
    known = known && found != byte_of.end();
    if (known) bytes += found->second;
  });
  return known ? bytes : token;
}

u64 pair_of(i32 left, i32 right) { return u64{static_cast<u32>(left)} << 32 | static_cast<u32>(right); }

enum class Kind { letter, number, space, other };

struct Letter {
  Kind kind;
  size_t begin, end;  // its bytes
};

Kind letter_kind(size_t code) {
  const bool separator = code >= 0x1C && code <= 0x1F;  // white space for Python, but not for \s
  if (is_white_space(code) && !separator) return Kind::space;
  if (is_letter(code)) return Kind::letter;
  return is_number(code) ? Kind::number : Kind::other;
}

// How many bytes at the beginning of `text` are one of English's contractions.
size_t contraction(std::string_view text) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.starts_with(ending)) return ending.size();
  return 0;
}

}  // namespace

std::array<size_t, byte_count> byte_characters() {
  std::array<size_t, byte_count> characters{};
  size_t next = byte_count;
  for (size_t byte = 0; byte < byte_count; ++byte) {
    const bool printable = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
    characters[byte] = printable ? byte : next++;
  }
  return characters;
}

struct BytePairs::Contents {
  struct Merge {
    i32 rank, id;
  };
  std::string vocab_json, merges_txt;
  std::vector<std::string> texts;  // of each token
  std::unordered_map<std::string, i32> ids;
  std::unordered_map<u64, Merge> merges;
  std::array<i32, byte_count> bytes{};  // the token of each

  void add_ids(std::string_view word, std::vector<i32>& to) const;
};

// Joins neighbours in the order of their ranks, and equal ones from left to right.
void BytePairs::Contents::add_ids(std::string_view word, std::vector<i32>& to) const {
  struct Piece {
    i32 id;
    i64 before, after;  // neighbours; -1 and the length of the word stand for none
  };
  struct Pair {
    i32 rank;
    i64 left;
    i32 id, first, second;  // the joined token, and what must still stand there
    bool operator>(const Pair& other) const { return std::pair(rank, left) > std::pair(other.rank, other.left); }
  };
  const i64 n = std::ssize(word);
  std::vector<Piece> pieces;
  for (i64 i = 0; i < n; ++i)
    pieces.push_back({bytes[static_cast<unsigned char>(word[static_cast<size_t>(i)])], i - 1, i + 1});
  const auto at = [&](i64 i) -> Piece& { return pieces[static_cast<size_t>(i)]; };
  std::priority_queue<Pair, std::vector<Pair>, std::greater<>> waiting;
  const auto look_at = [&](i64 left) {
    if (left < 0 || at(left).after >= n) return;
    const i32 first = at(left).id, second = at(at(left).after).id;
    if (const auto found = merges.find(pair_of(first, second)); found != merges.end())
      waiting.push({found->second.rank, left, found->second.id, first, second});
  };
  for (i64 i = 0; i + 1 < n; ++i) look_at(i);
  while (!waiting.empty()) {
    const Pair pair = waiting.top();
    waiting.pop();
    Piece& left = at(pair.left);
    if (left.id != pair.first || left.after >= n || at(left.after).id != pair.second) continue;  // joined before
    at(left.after).id = -1;
    left = {pair.id, left.before, at(left.after).after};
    if (left.after < n) at(left.after).before = pair.left;
    look_at(left.before);
    look_at(pair.left);
  }
  for (i64 i = 0; i < n; i = at(i).after) to.push_back(at(i).id);
}

BytePairs BytePairs::read(const std::string& vocab_path, const std::string& merges_path) {
  return of_texts(read_text(vocab_path), read_text(merges_path), vocab_path, merges_path);
}

BytePairs BytePairs::of_texts(std::string vocab, std::string merges, const std::string& vocab_name,
                              const std::string& merges_name) {
  auto contents = std::make_shared<Contents>();
  const std::string operation = "read " + vocab_name;
  const JsonLimits limits{.bytes = size_t{1} << 26, .values = largest_vocabulary + 1, .fields = largest_vocabulary};
  const Json vocabulary = parse_json_object(vocab, operation, limits);
  contents->texts.resize(vocabulary.size());
  std::vector<bool> taken(vocabulary.size());
  for (const auto& [token, number] : vocabulary.items()) {
    const bool fits = number.is_number_unsigned() && number.get<u64>() < taken.size();
    check(fits && !taken[number.get<size_t>()], operation, "token ", printable(token), " has the number ",
          number.dump(), "; the ", taken.size(), " tokens need 0, 1, ..., each once");
    taken[number.get<size_t>()] = true;
    contents->texts[number.get<size_t>()] = bytes_of_token(token);
    contents->ids[token] = number.get<i32>();
  }
  for (size_t byte = 0; byte < byte_count; ++byte) {
    const std::string one(1, static_cast<char>(byte));
    const auto found = std::find(contents->texts.begin(), contents->texts.end(), one);
    check(found != contents->texts.end(), operation, "byte ", byte, " has no token");
    contents->bytes[byte] = static_cast<i32>(found - contents->texts.begin());
  }
  check(first_not_utf8(merges) == merges.npos, "read " + merges_name, "is not UTF-8");
  i64 line_number = 0;
  for (const std::string_view line : lines_of(merges)) {
    ++line_number;
    if (line.empty() || (line_number == 1 && line.starts_with("#version"))) continue;
    const size_t space = line.find(' ');
    const auto id = [&](std::string_view token) {
      const auto found = contents->ids.find(std::string(token));
      check(space != line.npos && found != contents->ids.end(), "read " + merges_name, "line ", line_number, ", ",
            printable(line), ", must be two tokens of ", vocab_name, " whose union is one, too");
      return found->second;
    };
    const std::string_view left = line.substr(0, space), right = line.substr(std::min(space + 1, line.size()));
    contents->merges.try_emplace(
        pair_of(id(left), id(right)),
        Contents::Merge{static_cast<i32>(line_number), id(std::string(left) + std::string(right))});
  }
  contents->vocab_json = std::move(vocab);
  contents->merges_txt = std::move(merges);
  return BytePairs(std::move(contents));
}

const std::string& BytePairs::vocab_json() const { return contents_->vocab_json; }
const std::string& BytePairs::merges_txt() const { return contents_->merges_txt; }

std::string BytePairs::to_json() const {
  return ObjectText().add("kind", kind_of_byte_pairs).add("vocab", vocab_json()).add("merges", merges_txt()).text();
}

BytePairs BytePairs::from_json(const std::string& text) {
  const Json json = parse_json_object(text, "vocabulary", {.bytes = size_t{1} << 27});
  nn::config_json::Reader read("vocabulary", json, nn::config_json::Fields::all);
  std::string kind, vocab, merges;
  read("kind", kind);
  read("vocab", vocab);
  read("merges", merges);
  read.check_all_known();
  check(kind == kind_of_byte_pairs, "vocabulary", "kind must be ", kind_of_byte_pairs, ", not ", printable(kind));
  return of_texts(std::move(vocab), std::move(merges), "vocab", "merges");
}

i64 BytePairs::size() const { return std::ssize(contents_->texts); }

std::vector<i32> BytePairs::ids(std::string_view text) const {
  std::vector<i32> result;
  for (const std::string_view word : words_with_spaces(text)) contents_->add_ids(word, result);
  return result;
}

std::optional<i32> BytePairs::id_of(const std::string& token) const {
  const auto found = contents_->ids.find(token);
  return found == contents_->ids.end() ? std::nullopt : std::optional(found->second);
}

const std::string& BytePairs::text_of(i32 id) const {
  check(id >= 0 && id < size(), "vocabulary", "there is no token ", id, " among ", size());
  return contents_->texts[static_cast<size_t>(id)];
}

std::string BytePairs::text(std::span<const i32> ids) const {
  std::string result;
  for (const i32 id : ids) result += text_of(id);
  return result;
}

namespace {

std::vector<Letter> letters_of(std::string_view text) {
  std::vector<Letter> letters;
  for_each_character(text, [&](size_t code, size_t at, size_t bytes) {
    letters.push_back({letter_kind(code), at, at + bytes});
  });
  return letters;
}

}  // namespace

std::vector<std::string_view> words_with_spaces(std::string_view text) {
  const std::vector<Letter> letters = letters_of(text);
  std::vector<std::string_view> words;
  const size_t n = letters.size();
  for (size_t i = 0; i < n;) {
    const auto run = [&](size_t from) {  // the end of the letters of one kind
      size_t end = from;
      while (end < n && letters[end].kind == letters[from].kind) ++end;
      return end;
    };
    const size_t begin = letters[i].begin;
    if (const size_t bytes = contraction(text.substr(begin)); bytes > 0) {
      i += bytes;  // ASCII: a byte for each letter
    } else if (letters[i].kind != Kind::space) {
      i = run(i);
    } else if (text[begin] == ' ' && i + 1 < n && letters[i + 1].kind != Kind::space) {
      i = run(i + 1);
    } else {
      const size_t end = run(i);
      i = end < n && end > i + 1 ? end - 1 : end;  // the last space belongs to the next word, if there is one
    }
    words.push_back(text.substr(begin, letters[i - 1].end - begin));
  }
  return words;
}

// A word ends where its kind of characters ends. It may not after white space, a part of which the next word takes, and
// after an apostrophe before letters.
size_t prefix_of_whole_words(std::string_view text) {
  const std::vector<Letter> letters = letters_of(text);
  for (size_t i = letters.size(); i-- > 1;) {
    const Kind before = letters[i - 1].kind, after = letters[i].kind;
    const bool may_go_on = before == Kind::space || (before == Kind::other && after == Kind::letter);
    if (before != after && !may_go_on) return letters[i].begin;
  }
  return 0;
}

}  // namespace orrery
