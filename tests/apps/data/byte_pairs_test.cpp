// Chapter 9. Tests of GPT-2's vocabulary: words, merges by rank, every byte back, and wrong files.
// tests/fixtures/compare_byte_pairs.py compares it with Hugging Face's on any text.
#include "apps/data/byte_pairs.h"

#include <doctest/doctest.h>

#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using small::error_of;
using Ids = std::vector<i32>;
using Words = std::vector<std::string_view>;

namespace {

// A vocabulary of the 256 bytes in their order, and these further tokens.
std::string vocabulary(const std::vector<std::string>& more) {
  std::string json = "{";
  int number = 0, next = 256;
  const auto add = [&](const std::string& token) {
    json += (number > 0 ? ",\"" : "\"") + token + "\":" + std::to_string(number);
    ++number;
  };
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
    const int code = printable ? byte : next++;
    if (code == '"' || code == '\\')
      add(std::string("\\") + static_cast<char>(code));
    else if (code < 0x80)
      add(std::string(1, static_cast<char>(code)));
    else
      add({static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))});
  }
  for (const std::string& token : more) add(token);
  return json + "}";
}

BytePairs read(const std::string& vocab, const std::string& merges) {
  const TemporaryFolder folder;
  return BytePairs::read(written(folder / "vocab.json", vocab), written(folder / "merges.txt", merges));
}

}  // namespace

TEST_CASE("text is cut into words with the space before them, as GPT-2's pattern cuts it") {
  CHECK(words_with_spaces("I'm  sure it's 42x, isn't") ==
        Words{"I", "'m", " ", " sure", " it", "'s", " 42", "x", ",", " isn", "'t"});
  CHECK(words_with_spaces("a \n\n b\n c  ") == Words{"a", " \n\n", " b", "\n", " c", "  "});
  CHECK(words_with_spaces("\u00e9t\u00e9\u00b2 \u4e2d\u00a0\u00a0d'S !?") ==
        Words{"\u00e9t\u00e9", "\u00b2", " \u4e2d", "\u00a0", "\u00a0", "d", "'", "S", " !?"});
  CHECK(words_with_spaces("").empty());
  CHECK(small::contains(error_of([] { words_with_spaces("\xff"); }), "is not UTF-8"));
}

TEST_CASE("neighbours are joined in the order of the merges, and tokens are the text again") {
  const std::string merges = "#version: 0.2\nh e\n\u0120 t\n\u0120t he\nl l\nhe ll\n";
  const BytePairs pairs = read(vocabulary({"he", "\u0120t", "\u0120the", "ll", "hell", "<|endoftext|>"}), merges);
  CHECK(pairs.size() == 262);
  CHECK(pairs.ids("hello") == Ids{260, 'o'});
  CHECK(pairs.ids(" then the") == Ids{258, 'n', 258});
  CHECK(pairs.ids("lll") == Ids{259, 'l'});
  CHECK(pairs.id_of("<|endoftext|>") == 261);
  CHECK_FALSE(pairs.id_of("zz").has_value());
  const std::string text = "\u00fc the \U0001f600\t\n\x01 hell";
  CHECK(pairs.text(pairs.ids(text)) == text);
  CHECK(pairs.text_of(258) == " the");
  CHECK(pairs.ids(std::string(100'000, 'l')).size() == 50'000);
}

TEST_CASE("a prefix of whole words ends where a word ends, whatever follows") {
  const auto prefix = [](const std::string& text) { return text.substr(0, prefix_of_whole_words(text)); };
  CHECK(prefix("the dog") == "the");
  CHECK(prefix("the dog ") == "the dog");
  CHECK(prefix("a  \n ") == "a");
  CHECK(prefix("isn't") == "isn");
  CHECK(prefix("x1y") == "x1");
  CHECK(prefix("one!") == "one");
  CHECK(prefix("'s") == "");
  CHECK(prefix("words") == "");
  CHECK(prefix("\u4e2d\u6587\u3002\u4e2d") == "\u4e2d\u6587");
}

TEST_CASE("a vocabulary goes through JSON with its two files as they are") {
  const std::string merges = "#version: 0.2\r\nh e\n", vocab = vocabulary({"he"});
  const BytePairs pairs = BytePairs::from_json(read(vocab, merges).to_json());
  CHECK(pairs.vocab_json() == vocab);
  CHECK(pairs.merges_txt() == merges);
  CHECK(pairs.ids("he") == Ids{256});
  CHECK(small::contains(error_of([] { BytePairs::from_json(R"({"kind":"x","vocab":"","merges":""})"); }),
                        "kind must be byte pairs, not 'x'"));
}

TEST_CASE("wrong files of a vocabulary are refused by name") {
  const auto error = [](const std::string& vocab, const std::string& merges) {
    const std::string text = error_of([&] { read(vocab, merges); });
    CHECK(text.find('\n') == text.npos);
    return text;
  };
  CHECK(small::contains(error("{\"a\":0,\"b\":0}", "x"), "vocab.json: token 'b' has the number 0; the 2 tokens need"));
  CHECK(small::contains(error("{\"a\":\"b\"}", "x"), "has the number \"b\""));
  CHECK(small::contains(error("{\"a\":0}", "x"), "vocab.json: byte 0 has no token"));
  CHECK(small::contains(error("[]", "x"), "vocab.json: is not a JSON object"));
  CHECK(small::contains(error(vocabulary({"he"}), "h e\nl l\n"), "merges.txt: line 2, 'l l', must be two tokens of"));
  CHECK(small::contains(error(vocabulary({"he"}), "he\n"), "merges.txt: line 1, 'he', must be"));
  CHECK(small::contains(error(vocabulary({"he"}), "#version \xff\n"), "merges.txt: is not UTF-8"));
}

TEST_CASE("every line of a text has Hugging Face's tokens, if tests/fixtures/compare_byte_pairs.py made them") {
  const char* made = std::getenv("ORRERY_BYTE_PAIRS");  // its folder
  if (made == nullptr) return;
  const std::string folder = std::string(made) + '/';
  const BytePairs pairs = BytePairs::read(folder + "vocab.json", folder + "merges.txt");
  std::ifstream lines(folder + "lines"), expected(folder + "ids");
  i64 compared = 0, different = 0;
  for (std::string line, tokens; std::getline(lines, line) && std::getline(expected, tokens); ++compared) {
    std::string ours;
    for (const i32 id : pairs.ids(line)) ours += (ours.empty() ? "" : " ") + std::to_string(id);
    if (ours != tokens && ++different <= 3) MESSAGE("line ", compared + 1, ": ", line);
  }
  MESSAGE(compared, " lines, ", different, " with other tokens");
  CHECK(compared > 0);
  CHECK(different == 0);
}
