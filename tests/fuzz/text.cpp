// Chapter 9. A fuzz target: texts of training and of translation, as whole files and as lines that come in; tables,
// CoNLL's columns and NumPy's arrays.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "apps/data/corpus.h"
#include "apps/data/npy.h"
#include "apps/data/table.h"
#include "apps/data/text_data.h"
#include "apps/data/text_file.h"
#include "apps/data/unicode.h"
#include "apps/data/words.h"
#include "core/files/file.h"
#include "core/tensor_ops.h"
#include "tests/core/temporary_folder.h"
#include "tests/fuzz/fuzz.h"

using namespace orrery;
using fuzz::accepted;
using fuzz::expect;

namespace {

// Two files of this process, in a folder that vanishes with it.
struct Files {
  TemporaryFolder folder;
  std::string first = folder / "a", second = folder / "b";
};
const Files& files() {
  static const Files both;
  return both;
}

void check_characters(const std::string& text) {
  const bool is_utf8 = first_not_utf8(text) == std::string::npos;
  expect(whole_characters(text) <= text.size(), "whole characters are part of their text");
  const bool walked = accepted([&] {
    size_t bytes = 0;
    for_each_character(text, [&](size_t, size_t at, size_t length) {
      expect(at == bytes, "characters follow one another");
      bytes += length;
    });
    expect(bytes == text.size(), "characters cover their text");
  });
  expect(walked == is_utf8, "there is one meaning of UTF-8");
  accepted([&] { lowercase(text); });
  accepted([&] {
    const std::string once = normalized(text);
    expect(normalized(once) == once, "one spelling has one spelling");
  });
  expect(translate::ascii_lowercase(text).size() == text.size(), "lc keeps the length");
  harmless(text);
}

void check_tokens(const std::string& text) {
  accepted([&] {
    const Tokenizer tokenizer{Alphabet(text)};
    std::string back;
    for (const i32 token : tokenizer.tokens(text)) back += tokenizer.text(token);
    expect(back == text, "characters give the same text back");
  });
  std::string back;
  const Tokenizer bytes = Tokenizer::of_bytes();
  for (const i32 token : bytes.tokens(text)) back += bytes.text(token);
  expect(back == text, "bytes give the same text back");
  std::string joined;
  for (const std::string_view line : lines_in(text)) joined += line;
  expect(joined == text, "the lines of a text are the text");
}

// A reader of lines and a reader of files see the same lines.
void check_lines(const std::string& text) {
  set_contents(files().first, text);
  const Descriptor file(::open(files().first.c_str(), O_RDONLY | O_CLOEXEC));
  LineReader reader(file.number(), "fuzz");
  std::vector<std::string> lines;
  for (;;) {
    const std::vector<Line> some = reader.read(7, [] { return false; });
    if (some.empty()) break;
    for (const Line& line : some) lines.push_back(line.text);
  }
  const std::vector<std::string_view> expected = lines_of(text);
  expect(std::equal(lines.begin(), lines.end(), expected.begin(), expected.end()),
         "lines are the same however they come");
}

void check_pairs(const std::string& source, const std::string& target) {
  set_contents(files().first, source);
  set_contents(files().second, target);
  accepted([&] {
    const translate::LinePairs pairs = translate::read_pairs(files().first, files().second);
    const Vocabulary vocabulary = Vocabulary::of_segmented(pairs.source);
    const translate::Corpus corpus = translate::corpus_of(pairs, vocabulary, 16);
    expect(corpus.source.size() == corpus.target.size(), "two sides have as many lines");
    translate::hold_out(pairs);
  });
}

void check_text_data(const std::string& text, TokenKind kind) {
  set_contents(files().first, text);
  accepted([&] {
    const TextFiles of_training{.training = {files().first}};
    const Tokenizer tokenizer = tokenizer_of(of_training, kind, 320);
    const FileText read = read_tokens({files().first}, tokenizer, 1 << 10);
    split(read, tokenizer, 4);
  });
}

// The first two bits of `choice` are the options.
void check_table(const std::string& text, unsigned choice) {
  set_contents(files().first, text);
  TableOptions options{.header = choice % 2 == 0};
  if (choice / 2 % 2 == 0) options.separator = '\t';
  accepted([&] {
    const Table table = read_table(files().first, options);
    expect(table.rows.size() == table.lines.size() && !table.names.empty(), "every row has a line");
    for (const auto& row : table.rows) expect(row.size() == table.names.size(), "every row has all columns");
    for (size_t i = 0; i < table.names.size(); ++i) expect(table.column(table.names[i]) == i, "columns have own names");
    table.place(table.rows.size() - 1);
  });
}

void check_conll(const std::string& text, unsigned choice) {
  set_contents(files().first, text);
  accepted([&] {
    const TaggedText read =
        read_conll(files().first, {.token = choice % 3, .tag = -1 - static_cast<i64>(choice / 3 % 3)});
    expect(!read.sentences.empty(), "there is a sentence");
    for (const TaggedSentence& sentence : read.sentences)
      expect(!sentence.tokens.empty() && sentence.tokens.size() == sentence.tags.size() &&
                 sentence.tokens.size() == sentence.lines.size(),
             "every token has a tag and a line");
  });
}

void check_npy(const std::string& text) {
  set_contents(files().first, text);
  accepted([&] {
    const Tensor x = read_npy(files().first);
    write_npy(files().second, x);
    fuzz::expect_accepted([&] { return same_bits(read_npy(files().second), x); },
                          "an array that is written and read again is the same");
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::Input input(data, size);
  const auto [first, second] = input.halves();
  constexpr unsigned learns = 255;
  constexpr size_t most_to_learn_from = 2048;
  if (input.choice == learns && size % 16 == 0)  // rarely: it takes a hundred times as long as the others
    check_text_data(input.text.substr(0, most_to_learn_from), TokenKind::sentencepiece);
  else
    switch (input.choice % 9) {
      case 0: check_characters(input.text); break;
      case 1: check_tokens(input.text); break;
      case 2: check_lines(input.text); break;
      case 3: check_pairs(first, second); break;
      case 4: check_text_data(input.text, TokenKind::chars); break;
      case 6: check_table(input.text, input.choice / 9); break;
      case 7: check_conll(input.text, input.choice / 9); break;
      case 8: check_npy(input.text); break;
      default: check_text_data(input.text, TokenKind::bytes);
    }
  return 0;
}
