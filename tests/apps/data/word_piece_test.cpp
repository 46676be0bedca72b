// Chapter 9. WordPiece: the ids of Hugging Face's tokenizers on lines that are easy to get wrong, and its files.
#include "apps/data/word_piece.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "apps/data/vocabulary.h"
#include "apps/tasks/text_encoder.h"
#include "core/files/file.h"
#include "core/files/json.h"
#include "core/files/safetensors.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using Ids = std::vector<i32>;
using small::error_of;

namespace {

const Json& fixture() {
  static const Json json = Json::parse(InputFile(ORRERY_SOURCE_DIR "/tests/fixtures/word_piece.json").text());
  return json;
}

std::string fixture_vocabulary() {
  std::string text;
  for (const Json& token : fixture()["tokens"]) text += token.get<std::string>() + "\n";
  return text;
}

constexpr const char* few = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\n,\n";

}  // namespace

TEST_CASE("WordPiece has the ids of Hugging Face's tokenizers, with small letters and with letters as they are") {
  const WordPiece small_letters(fixture_vocabulary()), as_is(fixture_vocabulary(), false);
  CHECK(fixture()["lines"].size() > 30);
  for (const Json& line : fixture()["lines"]) {
    const std::string text = line["text"];
    CAPTURE(text);
    CHECK(small_letters.read(text, 1000).ids == line["ids"].get<Ids>());
    CHECK(as_is.read(text, 1000).ids == line["ids_as_is"].get<Ids>());
  }
}

TEST_CASE("two texts are one row with two segments, and the longer one loses its end first, as there") {
  const WordPiece pieces(fixture_vocabulary());
  for (const Json& pair : fixture()["pairs"]) {
    const BertText text =
        pieces.read(pair["first"].get<std::string>(), pair["second"].get<std::string>(), pair["most"]);
    CAPTURE(pair.dump());
    CHECK(text.ids == pair["ids"].get<Ids>());
    CHECK(text.segments == pair["segments"].get<Ids>());
  }
  const BertText cut = WordPiece(few).read("unaffable, unaffable", 5);
  CHECK(cut.ids == Ids{2, 5, 6, 7, 3});
  CHECK(cut.segments == Ids{0, 0, 0, 0, 0});
  CHECK(cut.left_out == 4);
}

TEST_CASE("pieces become words again, special tokens vanish, and a vocabulary comes back from JSON") {
  const WordPiece pieces(few), again = WordPiece::from_json(pieces.to_json());
  const Ids ids = again.read("Unaffable, [MASK]", 100).ids;
  CHECK(ids == Ids{2, 5, 6, 7, 8, 4, 3});
  CHECK(again.text(ids) == "unaffable ,");
  CHECK(again.size() == 9);
  CHECK(again.token(again.mask()) == "[MASK]");
  CHECK(error_of([&] { again.text(Ids{9}); }) == "WordPiece: there is no token 9 among 9");
  CHECK(error_of([&] { again.ids("a\xff"); }) == "text: is not UTF-8: byte 2 begins no character");
  CHECK(error_of([] { WordPiece("[PAD]\n[UNK]\n"); }) == "WordPiece: the vocabulary has no [CLS]");
  CHECK(error_of([] { WordPiece("[PAD]\na\xff"); }) ==
        "WordPiece: the vocabulary is not UTF-8: byte 8 begins no character");
}

TEST_CASE("a model's vocabulary is in its metadata or in vocab.txt beside it, whose options are beside that") {
  const TemporaryFolder folder;
  const std::string model = folder / "model.safetensors", vocabulary = folder / "vocab.txt";
  const auto tokens_of = [](const std::string& path) {
    return TextTokens::of_model(read_safetensors_metadata(path), path);
  };
  write_safetensors(model, {}, {{std::string(vocabulary_key), WordPiece(few, false).to_json()}});
  CHECK(tokens_of(model).ids("Un un") == Ids{1, 5});
  write_safetensors(model, {});
  CHECK(small::contains(error_of([&] { tokens_of(model); }), "vocab.txt"));
  set_contents(vocabulary, few);
  CHECK(tokens_of(folder.path().string()).ids("Un un") == Ids{5, 5});
  set_contents(folder / "tokenizer_config.json", R"({"do_lower_case": false})");
  CHECK(tokens_of(model).ids("Un un") == Ids{1, 5});
  CHECK(WordPiece::of_file(vocabulary).ids("Un un") == Ids{1, 5});
  set_contents(folder / "tokenizer_config.json", R"({"do_lower_case": false, "strip_accents": true})");
  CHECK(small::contains(error_of([&] { tokens_of(model); }), "accents must be stripped with do_lower_case"));
  set_contents(folder / "tokenizer_config.json", "{}");
  set_contents(vocabulary, "a\n");
  CHECK(error_of([&] { tokens_of(model); }) == "read " + vocabulary + ": WordPiece: the vocabulary has no [PAD]");
  write_safetensors(model, {}, {{std::string(vocabulary_key), R"({"kind": 3})"}});
  CHECK(error_of([&] { tokens_of(model); }) == "load " + model + ": vocabulary: kind must be text, not 3");
}
