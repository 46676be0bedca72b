// Chapter 9. Characters, bytes and pieces as tokens: every text comes back to the byte, whole or in parts; pieces are
// learned with scores, and cut a text so that the sum of scores is largest.
#include "apps/data/text_data.h"

#include <doctest/doctest.h>
#include <cstdio>

#include "apps/data/vocabulary.h"
#include "core/random.h"
#include "tests/core/support.h"

using namespace orrery;
using small::error_of;

namespace {

// Has spaces at the ends and in a row, tabs, empty lines, a long line, and what SentencePiece has a use of its own for.
std::string odd_text() {
  std::string text =
      "  the big dog  sees\tthe old cat.\r\n\n\u2581the\u2581 \u2585 \u4f60\u597d \U0001F600 <s> [MASK] <0x0A>\n ";
  for (int i = 0; i < 300; ++i) text += "the old dog sees the c\u00e4t ";
  text += '\0';
  return text + "\x01\x7f end\n- -\n--\nx--\n--\n -- \n- -\nthe end--\n\n--\n--";
}

const Vocabulary& pieces() {
  static const Vocabulary vocabulary = Vocabulary::of_running_text(
      {"the then them they there other", " dog dogs doggy old older oldest", "sees c\u00e4t cats the dog, <s>"}, 340);
  return vocabulary;
}

const std::string gpt2_folder = std::string(ORRERY_SOURCE_DIR) + "/tests/fixtures/gpt2/";

Tokenizer of_byte_pairs() { return Tokenizer(BytePairs::read(gpt2_folder + "vocab.json", gpt2_folder + "merges.txt")); }

Tokenizer separated(Tokenizer tokenizer, const std::string& line) {
  tokenizer.separate_at(line);
  return tokenizer;
}

std::vector<Tokenizer> all_kinds() {
  return {Tokenizer(Alphabet(odd_text())),
          Tokenizer::of_bytes(),
          Tokenizer(pieces()),
          of_byte_pairs(),
          separated(of_byte_pairs(), "--"),
          separated(Tokenizer(pieces()), "- -")};
}

std::string joined(const Tokenizer& tokenizer, const std::vector<i32>& tokens) {
  std::string text;
  for (const i32 token : tokens) text += tokenizer.text(token);
  return text;
}

}  // namespace

TEST_CASE("whatever the tokens are, a text comes back to the byte") {
  for (const Tokenizer& tokenizer : all_kinds()) {
    CAPTURE(static_cast<int>(tokenizer.kind()));
    CHECK(joined(tokenizer, tokenizer.tokens(odd_text())) == odd_text());
    for (const std::string part : {"", " ", "\n", "a", "\n\n \n", "the  "})
      if (odd_text().find(part) != std::string::npos) CHECK(joined(tokenizer, tokenizer.tokens(part)) == part);
  }
  const std::string binary("\xff\xfe\x00\x80 a", 6);
  CHECK(joined(Tokenizer::of_bytes(), Tokenizer::of_bytes().tokens(binary)) == binary);
  CHECK(Tokenizer::of_bytes().size() == 256);
}

TEST_CASE("pieces: any text that is UTF-8 comes back, drawn at random") {
  const Tokenizer tokenizer(pieces());
  const std::vector<std::string> parts{
      "the",        " ", "  ",    "\n",     "\t", "\u2581", "\u2585", std::string(1, '\0'), "dog", "\u00e4",
      "\U0001F600", "c", "<unk>", "\u0301", "\r", "\u00a0", "\ufeff"};
  Rng rng(1);
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (i64 n = rng.integer(0, 12); n > 0; --n)
      text += parts[static_cast<size_t>(rng.integer(0, static_cast<i64>(parts.size())))];
    CAPTURE(text);
    CHECK(joined(tokenizer, tokenizer.tokens(text)) == text);
  }
  CHECK(tokenizer.tokens("the old dog").size() < 8);  // pieces, not characters
}

TEST_CASE("a text that is read in parts has the tokens of the whole, wherever the parts end") {
  const std::string text = odd_text();
  for (const Tokenizer& tokenizer : all_kinds()) {
    CAPTURE(static_cast<int>(tokenizer.kind()));
    const std::vector<i32> whole = tokenizer.tokens(text);
    for (size_t cut = 1; cut < text.size(); cut += cut < 120 ? 1 : 501) {
      CAPTURE(cut);
      const size_t end = tokenizer.separable_prefix(std::string_view(text).substr(0, cut));
      CHECK(end <= cut);
      std::vector<i32> tokens = tokenizer.tokens(text.substr(0, end));
      const std::vector<i32> rest = tokenizer.tokens(text.substr(end));
      tokens.insert(tokens.end(), rest.begin(), rest.end());
      CHECK(tokens == whole);
    }
  }
  CHECK(Tokenizer::of_bytes().separable_prefix("ab\xc3") == 3);
  CHECK(Tokenizer(Alphabet("ab\u00e4")).separable_prefix("ab\xc3") == 2);
  CHECK(Tokenizer(pieces()).separable_prefix("the\nold") == 4);
  CHECK(Tokenizer(pieces()).separable_prefix("the old") == 0);
  // A document may be one line, longer than the part of a file that is read at once.
  CHECK(separated(Tokenizer(pieces()), "--").separable_prefix(std::string(5000, 'a')) == 4096);
  const Tokenizer byte_pairs = separated(of_byte_pairs(), "--");
  CHECK(byte_pairs.separable_prefix("the dog sees") == 7);
  CHECK(byte_pairs.separable_prefix("the dog--") == 3);  // "--\n" after it would look like a separator
  CHECK(byte_pairs.separable_prefix("the\n--\n") == 7);
}

TEST_CASE("a text without a prompt begins after a new line") {
  CHECK(Tokenizer(Alphabet("b\na")).beginning() == std::vector<i32>{0});
  CHECK(Tokenizer(Alphabet("\tba\n")).beginning() == std::vector<i32>{1});
  CHECK(Tokenizer(Alphabet("cba")).beginning() == std::vector<i32>{0});
  CHECK(Tokenizer::of_bytes().beginning() == std::vector<i32>{'\n'});
  const Tokenizer of_pieces(pieces());
  CHECK(of_pieces.text(of_pieces.beginning()[0]) == "\n");
}

TEST_CASE("a line between documents is one token, which stands for nothing else, and no other crosses it") {
  for (const Tokenizer& tokenizer : {separated(of_byte_pairs(), "--"), separated(Tokenizer(pieces()), "--")}) {
    const auto join = [&](const std::vector<std::string>& documents) {
      std::vector<i32> tokens;
      for (const std::string& document : documents) {
        if (&document != &documents.front()) tokens.push_back(*tokenizer.separator());
        const std::vector<i32> more = tokenizer.tokens(document);
        tokens.insert(tokens.end(), more.begin(), more.end());
      }
      return tokens;
    };
    CHECK(tokenizer.tokens("the\n--\n dog --\n--") == join({"the\n", " dog --\n--"}));
    CHECK(tokenizer.tokens("--\n--\na") == join({"", "", "a"}));
    for (const i32 token : tokenizer.tokens(" --\na--\n--\r\n--")) CHECK(token != *tokenizer.separator());
    CHECK(tokenizer.beginning() == std::vector<i32>{*tokenizer.separator()});
    CHECK(tokenizer.text(*tokenizer.separator()) == "--\n");
  }
  CHECK(separated(Tokenizer(pieces()), "--").separator() == end_id);
  CHECK(of_byte_pairs().text(*of_byte_pairs().end_of_text()) == "<|endoftext|>");
  CHECK(of_byte_pairs().beginning() == std::vector<i32>{*of_byte_pairs().end_of_text()});
  CHECK(
      small::contains(error_of([] { separated(Tokenizer::of_bytes(), "--"); }), "bytes have no token that is no text"));
  CHECK(small::contains(error_of([] { separated(of_byte_pairs(), "a\nb"); }), "a separator must be one line, not"));
}

TEST_CASE("tokens go through metadata unchanged, and those of older models are characters") {
  for (const Tokenizer& tokenizer : all_kinds()) {
    const Metadata metadata = tokenizer.metadata();
    const Tokenizer read = Tokenizer::of_metadata(metadata);
    CHECK(read.kind() == tokenizer.kind());
    CHECK(read.size() == tokenizer.size());
    CHECK(read.tokens(odd_text()) == tokenizer.tokens(odd_text()));
    CHECK(read.separator() == tokenizer.separator());
    CHECK(metadata.at("tokens") == names(TokenKind())[static_cast<size_t>(tokenizer.kind())]);
  }
  CHECK(Tokenizer::of_metadata({{"alphabet", "ab"}}).kind() == TokenKind::chars);
  const auto refused = [](const Metadata& metadata) { return error_of([&] { Tokenizer::of_metadata(metadata); }); };
  CHECK(refused({}) == "text: the file does not name its tokens");
  CHECK(refused({{"tokens", "chars"}}) == "text: the file does not name its alphabet");
  CHECK(refused({{"tokens", "words"}}) == "text: tokens must be chars, bytes, sentencepiece or bpe, not 'words'");
  CHECK(small::contains(refused({{"tokens", "sentencepiece"}, {"vocabulary", "{}"}}),
                        "vocabulary: has no field \"kind\""));
  const std::string of_lines = Vocabulary::of_text({"a b c"}, 20).to_json();  // a translator's
  CHECK(small::contains(refused({{"tokens", "sentencepiece"}, {"vocabulary", of_lines}}), "has no text of its own"));
}

TEST_CASE("an exact vocabulary has the bytes, goes through JSON, and says when it is too small") {
  CHECK(pieces().is_exact());
  CHECK(pieces().token(first_piece_id + 10) == "<0x0A>");
  CHECK(pieces().text_of(first_piece_id + 10) == "\n");
  CHECK(pieces().text_of(end_id) == "");
  CHECK(pieces().size() > first_piece_id + 256);
  CHECK(pieces().size() <= 340);
  const Vocabulary read = Vocabulary::from_json(pieces().to_json());
  CHECK(read.to_json() == pieces().to_json());
  CHECK(read.is_exact());
  CHECK(read.ids("the  c\u00e4t\n") == pieces().ids("the  c\u00e4t\n"));
  CHECK(read.text(read.ids(" the  c\u00e4t\n")) == " the  c\u00e4t\n");
  const Vocabulary no_spaces = Vocabulary::of_running_text({"abcabc", "abab"}, 300);
  CHECK(no_spaces.text(no_spaces.ids("ab  c ")) == "ab  c ");
  CHECK(small::contains(
      error_of([] { Vocabulary::from_json(R"({"kind":"sentencepiece-exact","tokens":["a"],"scores":[1]})"); }),
      "has no token for a space"));
  CHECK(small::contains(error_of([] { Vocabulary::of_running_text({"abc"}, 263); }),
                        "a vocabulary has from 264 to 1048576 tokens"));
  CHECK(
      small::contains(error_of([] { Vocabulary::of_running_text({"abcdefghijklmnop"}, 266); }),
                      "a vocabulary of 266 tokens does not hold the 16 different characters of the text, besides the"));
}

namespace {

// A model of seven tokens with names, in an exact vocabulary 256 more for the bytes, and then these pieces.
PieceModel model_of(const ScoredPieces& learned, bool exact = false) {
  std::vector<std::string> tokens{"<pad>", "<unk>", "<s>", "</s>", "[CLS]", "[SEP]", "[MASK]"};
  for (int byte = 0; exact && byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
    tokens.emplace_back(name);
  }
  CHECK(tokens.size() == tokens_before_pieces(exact));
  std::vector<float> scores(tokens.size(), 0.0F);
  tokens.insert(tokens.end(), learned.pieces.begin(), learned.pieces.end());
  scores.insert(scores.end(), learned.scores.begin(), learned.scores.end());
  return PieceModel(tokens, scores, exact);
}

std::vector<i32> ids_of(const PieceModel& model, std::string_view text) {
  std::vector<i32> ids;
  model.add_ids(text, ids);
  return ids;
}

}  // namespace

TEST_CASE("pieces are learned with the logarithm of their probability, at most as many as fit") {
  const std::vector<std::string_view> lines{"the dog sees the cat", "the cat sees the dogs"};
  const ScoredPieces learned = learn_pieces(lines, 40, false);
  CHECK(learned.pieces.size() > 8);
  CHECK(learned.pieces.size() <= 33);
  REQUIRE(learned.scores.size() == learned.pieces.size());
  for (const float score : learned.scores) CHECK(score <= 0);
  CHECK(learn_pieces(lines, 40, false).pieces == learned.pieces);
}

TEST_CASE("a text is cut where the sum of the scores is largest") {
  const std::string mark(space_mark);
  const std::vector<std::string> pieces{mark + "ab", mark + "a", "b", "bc", "c"};
  // " ab" + "c": -3 - 1; " a" + "bc": -1 - 2; " a" + "b" + "c": -1 - 4 - 1.
  const PieceModel model = model_of({pieces, {-3, -1, -4, -2, -1}});
  CHECK(ids_of(model, "abc") == std::vector<i32>{first_piece_id + 1, first_piece_id + 3});
  CHECK(ids_of(model, " ab  abc ") == std::vector<i32>{first_piece_id, first_piece_id + 1, first_piece_id + 3});
  CHECK(ids_of(model, "ax").back() == unknown_id);
  CHECK(model.joined({first_piece_id, first_piece_id + 1, first_piece_id + 3}) == "ab abc");
}

TEST_CASE("an exact model keeps spaces, and makes bytes of what has no piece, of line ends and of the space's mark") {
  const std::string mark(space_mark);
  const PieceModel model = model_of({{mark, "a"}, {-1, -1}}, true);
  const i32 space = static_cast<i32>(tokens_before_pieces(true)), letter = space + 1;
  const auto byte = [](int value) { return first_piece_id + value; };
  CHECK(ids_of(model, " a  a") == std::vector<i32>{space, letter, space, space, letter});
  CHECK(ids_of(model, "a\na") == std::vector<i32>{letter, byte('\n'), letter});
  CHECK(ids_of(model, "a" + mark) == std::vector<i32>{letter, byte(0xE2), byte(0x96), byte(0x81)});
  CHECK(ids_of(model, "b") == std::vector<i32>{byte('b')});
}
