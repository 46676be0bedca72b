// Chapter 9. Tests of vocabularies: sentences become tokens and sentences again, in every spelling of the file.
#include "apps/data/vocabulary.h"

#include <doctest/doctest.h>

#include "tests/core/support.h"

using namespace orrery;
using small::error_of;

namespace {

const std::vector<std::string_view>& animals() {
  static const std::vector<std::string_view> lines{"the big dog sees the old cat .",
                                                   "der große hund sieht die alte katze .",
                                                   "the cat sees the dog !",
                                                   "die katze sieht den hund !",
                                                   "Two dogs, 3 cats.",
                                                   "Zwei Hunde, 3 Katzen."};
  return lines;
}

std::string text_of(const Vocabulary& vocabulary, std::string_view line) {
  return vocabulary.text(vocabulary.ids(line));
}

void check_same(const Vocabulary& a, const Vocabulary& b) {
  CHECK(a.to_json() == b.to_json());
  CHECK(a.size() == b.size());
  for (const std::string_view line : animals()) CHECK(a.ids(line) == b.ids(line));
}

}  // namespace

TEST_CASE("sentencepiece: lines of the text come back as they were, with one space between words") {
  const Vocabulary vocabulary = Vocabulary::of_text(animals(), 60);
  CHECK_FALSE(vocabulary.is_segmented());
  CHECK(vocabulary.size() > first_piece_id + 20);
  CHECK(vocabulary.size() <= 60);
  for (const std::string_view line : animals()) {
    CAPTURE(line);
    CHECK(text_of(vocabulary, line) == line);
    for (const i32 id : vocabulary.ids(line)) CHECK(id >= first_piece_id);
  }
  CHECK(text_of(vocabulary, "  the   dogs ") == "the dogs");
  CHECK(text_of(vocabulary, "Hundekatzen") == "Hundekatzen");  // a new word of known pieces
  CHECK(vocabulary.ids("").empty());
}

TEST_CASE("named ids stand for no text, and no text stands for them") {
  // SentencePiece does not learn from such names, so their letters stand here once more.
  const std::vector<std::string_view> lines{"[CLS] <s> <pad> a b c", "[MASK] [SEP] </s> <unk> a b c",
                                            "[ C L S E P M A K ] < p a d s u n k / >"};
  for (const Vocabulary& vocabulary : {Vocabulary::of_text(lines, 100), Vocabulary::of_segmented(lines)}) {
    CHECK(vocabulary.token(pad_id) == "<pad>");
    CHECK(vocabulary.token(unknown_id) == "<unk>");
    CHECK(vocabulary.token(begin_id) == "<s>");
    CHECK(vocabulary.token(end_id) == "</s>");
    CHECK(vocabulary.token(cls_id) == "[CLS]");
    CHECK(vocabulary.token(sep_id) == "[SEP]");
    CHECK(vocabulary.token(mask_id) == "[MASK]");
    for (const std::string_view line : lines) {
      for (const i32 id : vocabulary.ids(line)) CHECK(id >= first_piece_id);
      CHECK(text_of(vocabulary, line) == line);
    }
    std::vector<i32> ids = vocabulary.ids("a b");
    ids.insert(ids.begin(), {begin_id, cls_id, mask_id});
    ids.insert(ids.end(), {sep_id, end_id, pad_id, pad_id});
    CHECK(vocabulary.text(ids) == "a b");
    CHECK(small::contains(error_of([&] { vocabulary.text(std::vector<i32>{static_cast<i32>(vocabulary.size())}); }),
                          "there is no token"));
    CHECK(small::contains(error_of([&] { vocabulary.text(std::vector<i32>{-1}); }), "there is no token -1"));
  }
}

TEST_CASE("what a vocabulary does not have is unknown, and seen in the text") {
  const Vocabulary pieces = Vocabulary::of_text(animals(), 60), segments = Vocabulary::of_segmented(animals());
  const std::vector<i32> ids = pieces.ids("dog \u4f60");
  CHECK(std::count(ids.begin(), ids.end(), unknown_id) == 1);
  CHECK(pieces.text(ids).starts_with("dog "));
  CHECK(pieces.text(ids) != "dog ");
  CHECK(segments.ids("dog doge cat") == std::vector<i32>{segments.ids("dog")[0], unknown_id, segments.ids("cat")[0]});
  CHECK(text_of(segments, "dog doge cat") == "dog <unk> cat");
}

TEST_CASE("segmented text: every token has an id, the frequent ones first, and pieces are joined again") {
  const std::vector<std::string_view> lines{"viel@@ er bü@@ sche .", "viel@@ e bu\u0308@@ cher\t. ", "a\u00a0b ."};
  const Vocabulary vocabulary = Vocabulary::of_segmented(lines);
  CHECK(vocabulary.is_segmented());
  CHECK(vocabulary.size() == first_piece_id + 9);  // . bü@@ viel@@ a b cher e er sche
  CHECK(vocabulary.token(first_piece_id) == ".");
  CHECK(vocabulary.token(first_piece_id + 1) == "bü@@");
  CHECK(vocabulary.token(first_piece_id + 2) == "viel@@");
  CHECK(text_of(vocabulary, lines[0]) == "vieler büsche .");
  CHECK(text_of(vocabulary, lines[1]) == "viele bücher .");
  CHECK(text_of(vocabulary, "e viel@@") == "e viel");  // a word that was not finished
  CHECK(text_of(vocabulary, "a\u00a0b") == "a b");
}

TEST_CASE("a translator's text has one spelling, in training and later, and a vocabulary saved before has not") {
  const std::vector<std::string_view> lines{"Die große Brücke", "Die\u00a0gro\u00adße Bru\u0308cke\t"};
  for (const Vocabulary& vocabulary : {Vocabulary::of_text(lines, 60), Vocabulary::of_segmented(lines)}) {
    CHECK(vocabulary.is_normalized());
    CHECK(Vocabulary::from_json(vocabulary.to_json()).is_normalized());
    CHECK(vocabulary.to_json() == (vocabulary.is_segmented() ? Vocabulary::of_segmented({lines[0], lines[0]})
                                                             : Vocabulary::of_text({lines[0], lines[0]}, 60))
                                      .to_json());
    const std::vector<i32> ids = vocabulary.ids(lines[0]);
    CHECK(std::count(ids.begin(), ids.end(), unknown_id) == 0);
    for (const std::string_view same :
         {"Die große Bru\u0308cke", "Die\u00a0große Brücke", "Die\tgroße\u3000Brücke", "Die große\rBrücke",
          "Die\u202fgro\u00adße\u2028Brücke", "\ufeffDie gro\u200bße Brücke"})
      CHECK(vocabulary.ids(same) == ids);
    CHECK(vocabulary.ids("\u00a0 \u200b").empty());

    std::string saved_before = vocabulary.to_json();
    const std::string field = R"("normalization":"nfc",)";
    REQUIRE(small::contains(saved_before, field));
    saved_before.erase(saved_before.find(field), field.size());
    const Vocabulary older = Vocabulary::from_json(saved_before);
    CHECK_FALSE(older.is_normalized());
    CHECK(older.to_json() == saved_before);
    CHECK(older.ids(lines[0]) == ids);
    CHECK(older.ids("Die\u00a0große Brücke") != ids);
    CHECK_FALSE(older.ids("\u00a0").empty());
  }
  const Vocabulary exact = Vocabulary::of_running_text({"a b"}, 300);
  CHECK_FALSE(exact.is_normalized());
  CHECK(text_of(exact, "a\u00a0b\t\ufeffu\u0308") == "a\u00a0b\t\ufeffu\u0308");
  CHECK(small::contains(
      error_of([] { Vocabulary::from_json(R"({"kind":"segmented","normalization":"nfd","tokens":["a"]})"); }),
      "normalization must be nfc, not 'nfd'"));
  CHECK(small::contains(error_of([] { Vocabulary::of_text({"\u00a0", "\u200b"}, 100); }), "there is no text to learn"));
}

TEST_CASE("letters that a vocabulary does not know are counted, one by one") {
  const Vocabulary pieces = Vocabulary::of_text(animals(), 60), segments = Vocabulary::of_segmented(animals());
  CHECK(pieces.unknown_letters("the dog") == 0);
  CHECK(pieces.unknown_letters("the \u4f60\u597d dog \u4f60") == 3);  // of which the first two are one token
  CHECK(segments.unknown_letters("the dog doge \u4f60\u597d") == 2);  // tokens
  CHECK(Vocabulary::of_running_text(animals(), 320).unknown_letters("\u4f60") == 0);
}

TEST_CASE("the same text gives the same vocabulary, also from a file") {
  const Vocabulary pieces = Vocabulary::of_text(animals(), 60), segments = Vocabulary::of_segmented(animals());
  check_same(pieces, Vocabulary::of_text(animals(), 60));
  check_same(pieces, Vocabulary::from_json(pieces.to_json()));
  check_same(segments, Vocabulary::of_segmented(animals()));
  check_same(segments, Vocabulary::from_json(segments.to_json()));
  CHECK(Vocabulary::from_json(segments.to_json()).is_segmented());
  CHECK_FALSE(Vocabulary::from_json(pieces.to_json()).is_segmented());
}

TEST_CASE("a text of which SentencePiece leaves out everything is an error, and does not end the program") {
  using namespace std::string_view_literals;
  for (const std::string_view line : {"\0"sv, "\0\t\0"sv, "\0 <pad></s>[MASK]"sv, "a \u2585"sv}) {
    const std::vector<std::string_view> lines{line, "\0"sv};
    CHECK(error_of([&] { Vocabulary::of_running_text(lines, 320); }) ==
          "vocabulary: SentencePiece finds nothing to learn from");
  }
}

TEST_CASE("a text that gives no vocabulary says why") {
  CHECK(small::contains(error_of([] { Vocabulary::of_text({}, 100); }), "there is no text to learn from"));
  CHECK(small::contains(error_of([] { Vocabulary::of_text({"", "  "}, 100); }), "there is no text to learn from"));
  CHECK(small::contains(error_of([] { Vocabulary::of_segmented({" \t"}); }), "there is no text to learn from"));
  CHECK(small::contains(error_of([] { Vocabulary::of_text({"a", "\xff"}, 100); }), "is not UTF-8"));
  CHECK(small::contains(error_of([] { Vocabulary::of_text(animals(), 20); }),
                        "a vocabulary of 20 tokens does not hold the "));
  CHECK(small::contains(error_of([] { Vocabulary::of_text(animals(), 7); }),
                        "a vocabulary has from 8 to 1048576 tokens"));
  const Vocabulary vocabulary = Vocabulary::of_segmented({"a"});
  CHECK(small::contains(error_of([&] { vocabulary.ids("a \xc3"); }), "the text is not UTF-8: byte 3 "));
}

TEST_CASE("a text of one word, or one line, is enough") {
  CHECK(text_of(Vocabulary::of_text({"a"}, 8000), "a a") == "a a");
  CHECK(text_of(Vocabulary::of_segmented({"a"}), "a a") == "a a");
}

TEST_CASE("a damaged vocabulary is one clear error") {
  const auto refused = [](const std::string& json) { return error_of([&] { Vocabulary::from_json(json); }); };
  CHECK(small::contains(refused("{}"), "vocabulary: has no field \"kind\""));
  CHECK(small::contains(refused(R"({"kind":"words","tokens":["a"]})"),
                        "kind must be sentencepiece, sentencepiece-exact or segmented, not 'words'"));
  CHECK(small::contains(refused(R"({"kind":"segmented","tokens":[]})"), "has no tokens"));
  CHECK(small::contains(refused(R"({"kind":"segmented","tokens":["a",""]})"),
                        "has a token that is empty or has a zero byte"));
  CHECK(small::contains(refused(R"({"kind":"segmented","tokens":["a","a"]})"), "has the token 'a' twice"));
  CHECK(
      small::contains(refused(R"({"kind":"segmented","tokens":["a"],"scores":[1]})"), "there is no field \"scores\""));
  CHECK(small::contains(refused(R"({"kind":"segmented","tokens":"a"})"), "tokens must be a list"));
  CHECK(small::contains(refused(R"({"kind":"sentencepiece","tokens":["a"]})"), "has no field \"scores\""));
  CHECK(small::contains(refused(R"({"kind":"sentencepiece","tokens":["a"],"scores":[1,2]})"),
                        "has 1 pieces and 2 scores"));
  CHECK(small::contains(refused(R"({"kind":"sentencepiece","tokens":["a"],"scores":[1e300]})"),
                        "has a score out of range"));
  CHECK(small::contains(refused(R"({"kind":"sentencepiece","tokens":["<s>"],"scores":[1]})"),
                        "has the token '<s>' twice"));
  CHECK(small::contains(refused(R"({"kind":"sentencepiece","tokens":["a\u0000"],"scores":[1]})"),
                        "has a token that is empty or has a zero byte"));
}

TEST_CASE("sentencepiece learns from long lines too") {
  std::string longer;
  for (int i = 0; i < 1000; ++i) longer += i % 2 == 0 ? "zebra " : "quagga ";
  CHECK(longer.size() > 4192);  // what SentencePiece takes if it is not told otherwise
  for (const std::vector<std::string_view>& lines :
       {std::vector<std::string_view>(20, longer), std::vector<std::string_view>{longer, "a b"}}) {
    const Vocabulary vocabulary = Vocabulary::of_text(lines, 100);
    const std::vector<i32> ids = vocabulary.ids("zebra quagga");
    CHECK(std::count(ids.begin(), ids.end(), unknown_id) == 0);
    CHECK(ids.size() < 8);  // pieces of several letters
  }
}
