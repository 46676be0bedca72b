// Chapter 9. A fuzz target: vocabularies from a model's metadata, SentencePiece's model built from them, BERT's and
// GPT-2's, and the tokens of texts.
//
// The input is a byte that chooses the kind of tokens, the JSON of a vocabulary or BERT's vocab.txt, a zero byte, and
// text. GPT-2's tokens are the bytes and what the vocabulary has as merges, a line each.
#include "apps/data/vocabulary.h"

#include <nlohmann/json.hpp>

#include "apps/data/text_data.h"
#include "apps/data/text_file.h"
#include "apps/data/word_piece.h"
#include "tests/fuzz/fuzz.h"

using namespace orrery;
using fuzz::accepted;
using fuzz::expect;

namespace {

void use(const Vocabulary& vocabulary, const std::string& text) {
  accepted([&] {
    const std::vector<i32> ids = vocabulary.ids(text);
    for (const i32 id : ids) expect(id >= 0 && id < vocabulary.size(), "a token's number is one of the vocabulary");
    const std::string back = vocabulary.text(ids);
    expect(!vocabulary.is_exact() || back == text, "an exact vocabulary gives the same text back");
  });
  const std::string written = vocabulary.to_json();
  fuzz::expect_accepted([&] { return Vocabulary::from_json(written).to_json() == written; },
                        "a vocabulary that is written and read again is the same");
}

// Any text has tokens, and these are the text again, whole or cut where it may be cut.
void check_tokens(const Tokenizer& tokenizer, const std::string& text) {
  accepted([&] {
    const std::vector<i32> whole = tokenizer.tokens(text);
    std::string back;
    for (const i32 token : whole) back += tokenizer.text(token);
    expect(back == text, "tokens are the text again");
    const size_t cut = tokenizer.separable_prefix(text);
    std::vector<i32> tokens = tokenizer.tokens(text.substr(0, cut));
    const std::vector<i32> rest = tokenizer.tokens(text.substr(cut));
    tokens.insert(tokens.end(), rest.begin(), rest.end());
    expect(tokens == whole, "a text that is cut where it may be cut has the same tokens");
  });
}

void use_byte_pairs(const std::string& merges, const std::string& text) {
  nlohmann::json ids = nlohmann::json::object();
  const auto add = [&](const std::string& token) {
    if (!ids.contains(token)) ids.emplace(token, ids.size());
  };
  for (int byte = 0, next = 256; byte < 256; ++byte) {
    const bool printable = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
    const int code = printable ? byte : next++;
    add(code < 0x80 ? std::string(1, static_cast<char>(code))
                    : std::string{static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))});
  }
  add("<|endoftext|>");
  for (const std::string_view line : lines_of(merges)) {
    const size_t space = line.find(' ');
    if (space == line.npos || first_not_utf8(line) != line.npos) continue;
    add(std::string(line.substr(0, space)));
    add(std::string(line.substr(space + 1)));
    add(std::string(line.substr(0, space)) + std::string(line.substr(space + 1)));
  }
  const std::string json = nlohmann::json{{"kind", "byte pairs"}, {"vocab", ids.dump()}, {"merges", merges}}.dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
  accepted([&] {
    Tokenizer tokenizer{BytePairs::from_json(json)};
    check_tokens(tokenizer, text);
    tokenizer.separate_at("--");
    check_tokens(tokenizer, text);
    const Metadata written = tokenizer.metadata();
    fuzz::expect_accepted([&] { return Tokenizer::of_metadata(written).metadata() == written; },
                          "byte pairs that are written and read again are the same");
  });
}

void use_word_piece(const std::string& vocabulary, const std::string& text, bool lower_case) {
  accepted([&] {
    const WordPiece pieces(vocabulary, lower_case);
    fuzz::expect_accepted([&] { return WordPiece::from_json(pieces.to_json()).vocab_txt() == pieces.vocab_txt(); },
                          "a vocab.txt that is written and read again is the same");
    const BertText read = pieces.read(text, 16);
    expect(read.ids.size() <= 16, "a BERT reads no more than it can");
    for (const i32 id : read.ids) expect(id >= 0 && id < pieces.size(), "an id is a piece's");
    pieces.text(pieces.ids(text));
  });
  accepted([&] { WordPiece::from_json(vocabulary); });
  accepted([&] { BytePairs::from_json(vocabulary); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::Input input(data, size);
  const auto [json, text] = input.halves();
  if (input.choice % 8 >= 4) {
    use_byte_pairs(json, text);
    use_word_piece(json, text, input.choice % 2 == 0);
    return 0;
  }
  accepted([&, &json = json, &text = text] { use(Vocabulary::from_json(json), text); });
  accepted([&, &json = json, &text = text] {  // as metadata of a language model
    const std::string kind = input.choice % 2 == 0 ? "sentencepiece" : "chars";
    const Tokenizer tokenizer = Tokenizer::of_metadata({{"tokens", kind}, {"vocabulary", json}, {"alphabet", json}});
    tokenizer.tokens(text);
    expect(tokenizer.separable_prefix(text) <= text.size(), "a prefix is part of its text");
    const Metadata written = tokenizer.metadata();
    fuzz::expect_accepted([&] { return Tokenizer::of_metadata(written).metadata() == written; },
                          "tokens that are written and read again are the same");
  });
  return 0;
}
