// Chapter 9. Tests of pieces: they are learned with scores, cut a text so that the sum of scores is largest, and join.
#include "apps/data/sentencepiece.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>

using namespace orrery;

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

TEST_CASE("an exact vocabulary has a piece for a space, also where the text has none") {
  const ScoredPieces learned = learn_pieces({"abcabc"}, 300, true);
  CHECK(std::count(learned.pieces.begin(), learned.pieces.end(), space_mark) == 1);
  CHECK(learned.scores.size() == learned.pieces.size());
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
