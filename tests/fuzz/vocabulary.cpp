// Chapter 9. A fuzz target: vocabularies from a model's metadata, SentencePiece's model built from them, and the tokens
// of texts.
//
// The input is a byte that chooses the kind of tokens, the JSON of a vocabulary, a zero byte, and text.
#include "apps/data/vocabulary.h"
#include "apps/data/text_file.h"
#include "apps/data/tokenizer.h"
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::Input input(data, size);
  const auto [json, text] = input.halves();
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
