// Chapter 9. WordPiece: words as BERT's basic tokenizer cuts them, and the longest pieces of each.
#include "apps/data/word_piece.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <unordered_map>

#include "apps/data/text_file.h"
#include "apps/data/unicode.h"
#include "nn/models/config_json.h"

namespace orrery {
namespace {

constexpr std::string_view word_piece = "WordPiece", continuation = "##";
constexpr std::array<std::string_view, 5> special_names{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
constexpr size_t longest_word = 100;  // characters

bool is_category(i32 code, std::initializer_list<utf8proc_category_t> categories) {
  return std::find(categories.begin(), categories.end(), utf8proc_category(code)) != categories.end();
}

// Control characters but tab and the ends of lines, and what stands for no character.
bool is_removed(i32 code) {
  constexpr i32 replacement = 0xFFFD;
  if (code == '\t' || code == '\n' || code == '\r') return false;
  return code == replacement || is_category(code, {UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CF, UTF8PROC_CATEGORY_CO});
}

// Unicode's punctuation, and all of ASCII that is neither letter nor digit.
bool is_punctuation(i32 code) {
  if (code < 0x80) return code > ' ' && code < 0x7F && std::isalnum(code) == 0;
  return is_category(code, {UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PD, UTF8PROC_CATEGORY_PS, UTF8PROC_CATEGORY_PE,
                            UTF8PROC_CATEGORY_PI, UTF8PROC_CATEGORY_PF, UTF8PROC_CATEGORY_PO});
}

// Of the blocks of ideographs, as they were when BERT was made.
bool is_chinese(i32 code) {
  constexpr std::array<std::array<i32, 2>, 8> blocks{{{0x4E00, 0x9FFF},
                                                      {0x3400, 0x4DBF},
                                                      {0x20000, 0x2A6DF},
                                                      {0x2A700, 0x2B73F},
                                                      {0x2B740, 0x2B81F},
                                                      {0x2B920, 0x2CEAF},
                                                      {0xF900, 0xFAFF},
                                                      {0x2F800, 0x2FA1F}}};
  return std::any_of(blocks.begin(), blocks.end(), [&](const auto& b) { return b[0] <= code && code <= b[1]; });
}

// Calls each(word, characters) for every word of a text. Accents are what a letter is decomposed into besides itself.
template <class Each> void for_each_word(std::string_view text, bool lower_case, const Each& each) {
  std::string word;
  size_t characters = 0;
  const auto end_word = [&] {
    if (characters > 0) each(word, characters);
    word.clear();
    characters = 0;
  };
  const auto add = [&](i32 code) {
    const bool is_word = is_punctuation(code);
    if (is_word) end_word();
    std::array<utf8proc_uint8_t, 4> bytes;
    const auto count = utf8proc_encode_char(code, bytes.data());
    word.append(bytes.begin(), bytes.begin() + count);
    ++characters;
    if (is_word) end_word();
  };
  for_each_character(text, [&](size_t character, size_t, size_t) {
    const i32 code = static_cast<i32>(character);
    if (is_removed(code)) return;
    if (is_white_space(character)) return end_word();
    const bool is_word = is_chinese(code);
    if (is_word) end_word();
    if (lower_case) {
      std::array<utf8proc_int32_t, 16> parts;
      int boundary = 0;
      const auto count = utf8proc_decompose_char(code, parts.data(), std::ssize(parts), UTF8PROC_DECOMPOSE, &boundary);
      for (i64 i = 0; i < count; ++i)
        if (!is_category(parts[static_cast<size_t>(i)], {UTF8PROC_CATEGORY_MN}))
          add(utf8proc_tolower(parts[static_cast<size_t>(i)]));
    } else {
      add(code);
    }
    if (is_word) end_word();
  });
  end_word();
}

}  // namespace

struct WordPiece::Contents {
  bool lower_case;
  std::vector<std::string> tokens;
  std::unordered_map<std::string_view, i32> begins, goes_on;  // what a word begins and goes on with
  std::array<i32, special_names.size()> special;

  Contents(const std::string& vocabulary, bool lower_case) : lower_case(lower_case) {
    const size_t wrong = first_not_utf8(vocabulary);  // which could not be saved in a model
    check(wrong == vocabulary.npos, word_piece, "the vocabulary is not UTF-8: byte ", wrong + 1,
          " begins no character");
    for (const std::string_view line : lines_of(vocabulary))
      tokens.emplace_back(line.substr(0, line.find_last_not_of(ascii_space) + 1));
    for (i32 id = 0; id < static_cast<i32>(tokens.size()); ++id) {
      const std::string_view token = tokens[static_cast<size_t>(id)];
      begins[token] = id;
      if (token.starts_with(continuation)) goes_on[token.substr(continuation.size())] = id;
    }
    for (size_t i = 0; i < special.size(); ++i) {
      const auto found = begins.find(special_names[i]);
      check(found != begins.end(), word_piece, "the vocabulary has no ", special_names[i]);
      special[i] = found->second;
    }
  }

  void append_pieces(std::string_view word, size_t characters, std::vector<i32>& ids) const {
    const size_t before = ids.size();
    size_t at = 0;
    while (at < word.size() && characters <= longest_word) {
      const auto& pieces = at == 0 ? begins : goes_on;
      auto found = pieces.end();
      size_t end = word.size();
      for (; end > at && found == pieces.end(); --end)
        if (end == word.size() || !continues_character(word[end])) found = pieces.find(word.substr(at, end - at));
      if (found == pieces.end()) break;
      ids.push_back(found->second);
      at = end + 1;
    }
    if (at >= word.size()) return;
    ids.resize(before);
    ids.push_back(special[1]);
  }
};

WordPiece::WordPiece(const std::string& vocabulary, bool lower_case)
    : contents_(std::make_shared<const Contents>(vocabulary, lower_case)) {}

WordPiece WordPiece::of_file(const std::string& vocabulary) {
  const std::string options = std::filesystem::path(vocabulary).replace_filename("tokenizer_config.json").string();
  bool lower_case = true;
  if (std::filesystem::exists(options)) {
    const Json json = parse_json_object(read_text(options), "read " + options);
    const std::string operation = "read " + options;
    nn::config_json::Reader read(operation, json);
    std::optional<bool> strip_accents;
    bool chinese = true;
    read("do_lower_case", lower_case);
    read("strip_accents", strip_accents);
    read("tokenize_chinese_chars", chinese);
    check(chinese && strip_accents.value_or(lower_case) == lower_case, "read " + options,
          "accents must be stripped with do_lower_case alone, and Chinese characters be words");
  }
  const std::string text = read_text(vocabulary);
  return within("read " + vocabulary, [&] { return WordPiece(text, lower_case); });
}

i64 WordPiece::size() const { return std::ssize(contents_->tokens); }
i32 WordPiece::pad() const { return contents_->special[0]; }
i32 WordPiece::unknown() const { return contents_->special[1]; }
i32 WordPiece::cls() const { return contents_->special[2]; }
i32 WordPiece::sep() const { return contents_->special[3]; }
i32 WordPiece::mask() const { return contents_->special[4]; }

const std::string& WordPiece::token(i32 id) const {
  check(id >= 0 && id < size(), word_piece, "there is no token ", id, " among ", size());
  return contents_->tokens[static_cast<size_t>(id)];
}

std::vector<i32> WordPiece::ids(std::string_view text) const {
  std::vector<i32> ids;
  const auto append = [&](std::string_view part) {
    for_each_word(part, contents_->lower_case,
                  [&](std::string_view word, size_t characters) { contents_->append_pieces(word, characters, ids); });
  };
  size_t begin = 0;
  for (size_t at = 0; (at = text.find('[', at)) != text.npos;) {
    const std::string_view rest = text.substr(at);
    const auto* const name = std::find_if(special_names.begin(), special_names.end(),
                                          [&](std::string_view each) { return rest.starts_with(each); });
    ++at;
    if (name == special_names.end()) continue;
    append(text.substr(begin, at - 1 - begin));
    ids.push_back(contents_->special[static_cast<size_t>(name - special_names.begin())]);
    begin = at = at - 1 + name->size();
  }
  append(text.substr(begin));
  return ids;
}

BertText WordPiece::read(std::string_view text, i64 most) const {
  constexpr i64 special = 2;
  BertText result{.ids = ids(text), .segments = {}};
  const i64 count = std::min(std::ssize(result.ids), std::max<i64>(most - special, 0));
  result.left_out = std::ssize(result.ids) - count;
  result.ids.resize(static_cast<size_t>(count));
  result.ids.insert(result.ids.begin(), cls());
  result.ids.push_back(sep());
  result.segments.resize(result.ids.size());
  return result;
}

BertText WordPiece::read(std::string_view first, std::string_view second, i64 most) const {
  constexpr i64 special = 3;
  const std::vector<i32> of_first = ids(first), of_second = ids(second);
  // The shorter text keeps what it has, up to a half.
  i64 a = std::ssize(of_first), b = std::ssize(of_second);
  const i64 all = a + b, room = std::max<i64>(most - special, 0);
  if (all > room) {
    i64& shorter = a <= b ? a : b;
    i64& longer = a <= b ? b : a;
    shorter = std::min(shorter, room / 2);
    longer = room - shorter;
  }
  BertText result{.ids = {cls()}, .segments = {}, .left_out = all - a - b};
  result.ids.insert(result.ids.end(), of_first.begin(), of_first.begin() + a);
  result.ids.push_back(sep());
  result.segments.resize(result.ids.size(), 0);
  result.ids.insert(result.ids.end(), of_second.begin(), of_second.begin() + b);
  result.ids.push_back(sep());
  result.segments.resize(result.ids.size(), 1);
  return result;
}

std::string WordPiece::text(std::span<const i32> ids) const {
  std::string text;
  for (const i32 id : ids) {
    const std::string_view piece = token(id);
    if (std::find(special_names.begin(), special_names.end(), piece) != special_names.end()) continue;
    if (piece.starts_with(continuation))
      text += piece.substr(continuation.size());
    else
      text.append(text.empty() ? "" : " ").append(piece);
  }
  return text;
}

std::string WordPiece::vocab_txt() const {
  std::string vocabulary;
  for (const std::string& token : contents_->tokens) vocabulary += token + '\n';
  return vocabulary;
}

bool WordPiece::lower_case() const { return contents_->lower_case; }

std::string WordPiece::to_json() const {
  return ObjectText().add("kind", word_piece).add("lower_case", lower_case()).add("tokens", vocab_txt()).text();
}

WordPiece WordPiece::from_json(const std::string& text) {
  const Json json = parse_json_object(text, word_piece, {.bytes = size_t{1} << 27});
  nn::config_json::Reader read(word_piece, json, nn::config_json::Fields::all);
  std::string kind, vocabulary;
  bool lower_case = true;
  read("kind", kind);
  read("lower_case", lower_case);
  read("tokens", vocabulary);
  read.check_all_known();
  check(kind == word_piece, word_piece, "kind must be ", word_piece, ", not ", printable(kind));
  return WordPiece(vocabulary, lower_case);
}

}  // namespace orrery
