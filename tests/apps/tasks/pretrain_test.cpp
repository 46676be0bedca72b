// Chapter 10. Tests of `orrery pretrain`: which words are hidden and which texts follow, counted; a training, what
// starts from it, its errors.
#include "apps/tasks/text_encoder.h"

#include <numeric>

#include "core/tensor_ops.h"
#include "nn/files/files.h"
#include "tests/apps/run_program.h"

using namespace orrery::program;
using namespace orrery;

namespace {

constexpr i64 texts_count = 400, text_length = 40;

// Two documents of different words, each of two tokens, of which the second never begins one.
std::string paired_words() {
  std::string lines = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (int i = 0; i < 40; ++i) lines += (i % 2 == 0 ? "w" : "##w") + std::to_string(i) + "\n";
  return lines;
}

EncodedTexts paired_texts() {
  EncodedTexts texts(texts_count);
  for (i64 i = 0; i < texts_count; ++i)
    for (i64 k = 0; k < text_length; ++k) {
      auto& text = texts[static_cast<size_t>(i)];
      text.document = i / (texts_count / 2);
      if (k % 2 == 0) text.places.push_back(static_cast<i32>(k));
      text.ids.push_back(static_cast<i32>(5 + 20 * text.document + 2 * (i % 10) + k % 2));
    }
  return texts;
}

std::vector<i32> row_of(const Tensor& x, i64 row) {
  const i32* from = x.data<i32>() + row * x.size(1);
  return {from, from + x.size(1)};
}

// Sentences in which a word follows from another, in documents of one subject each.
std::string hidden_text() {
  std::string text;
  for (int times = 0; times < 6; ++times)
    for (const std::string animal : {"cat", "dog", "cow", "hen"})
      text += "the " + animal + " eats at the farm . the " + animal + " sleeps at the farm .\n\nthe car of the " +
              animal + " stops in town .\nthe train of the " + animal + " waits in town .\n\n";
  return text;
}

std::string hidden_vocabulary() {
  return "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\ndog\ncow\nhen\neats\nsleeps\nat\nfarm\n.\ncar\nof\nstops\nin\n"
         "town\ntrain\nwaits\n";
}

const std::string bert_sizes = "--layers 1 --heads 2 --d-model 32 --d-ff 64 --max-tokens 32 --batch 8 ";

struct HiddenText {
  TemporaryFolder folder;
  std::string text = written(folder / "text.txt", hidden_text()),
              vocab = written(folder / "vocab.txt", hidden_vocabulary());
  std::string model = folder / "model.safetensors";
  std::string form = "--vocab '" + vocab + "' " + bert_sizes;
  std::string train = "pretrain train '" + text + "' --valid '" + text + "' " + form;
};

}  // namespace

TEST_CASE("three words in twenty are hidden: of these eight in ten as [MASK], one as another word, one not at all") {
  const TextTokens tokens{WordPiece(paired_words())};
  const EncodedTexts texts = paired_texts();
  std::vector<i64> items(texts_count);
  std::iota(items.begin(), items.end(), 0);
  Rng numbers(3), same(3);
  const PretrainingBatch batch = pretraining_batch(tokens, texts, items, numbers);
  CHECK(same_bits(pretraining_batch(tokens, texts, items, same).ids, batch.ids));
  double hidden = 0, masked = 0, kept = 0, follow = 0;
  for (i64 row = 0; row < texts_count; ++row) {
    CAPTURE(row);
    std::vector<i32> ids = row_of(batch.ids, row);
    const std::vector<i32> words = row_of(batch.words, row), segments = row_of(batch.segments, row);
    for (size_t i = 0; i < ids.size(); ++i) {
      if (words[i] < 0) continue;
      ++hidden;
      masked += ids[i] == tokens.mask();
      kept += ids[i] == words[i];
      CHECK(!tokens.is_special(words[i]));
      CHECK((ids[i] == tokens.mask() || !tokens.is_special(ids[i])));
      ids[i] = words[i];
    }
    // Now as it was: [CLS] A [SEP] B [SEP].
    const std::vector<i32>& text = texts[static_cast<size_t>(row)].ids;
    REQUIRE(ids[0] == tokens.cls());
    const auto first_end = std::find(ids.begin(), ids.end(), tokens.sep()),
               second_end = std::find(first_end + 1, ids.end(), tokens.sep());
    REQUIRE(second_end != ids.end());
    const std::ptrdiff_t of_first = first_end - ids.begin() - 1, of_second = second_end - first_end - 1;
    CHECK(of_first % 2 == 0);  // whole words
    CHECK(of_first + of_second == text_length);
    CHECK(std::equal(ids.begin() + 1, first_end, text.begin()));
    CHECK(tokens.begins_word(first_end[1]));
    const bool follows = batch.next.at(row) == 0;
    follow += follows;
    if (follows) CHECK(std::equal(first_end + 1, second_end, text.begin() + of_first));
    for (auto id = first_end + 1; !follows && id != second_end; ++id) CHECK(((*id < 25) != (row < texts_count / 2)));
    for (std::ptrdiff_t i = 0; i < std::ssize(ids); ++i)
      CHECK(segments[static_cast<size_t>(i)] == (i > of_first + 1 && i <= second_end - ids.begin()));
    CHECK(std::all_of(second_end + 1, ids.end(), [&](i32 id) { return id == tokens.pad(); }));
  }
  CHECK(hidden == texts_count * 6);  // 15 % of 40
  CHECK(batch.hidden == texts_count * 6);
  CHECK(std::abs(masked / hidden - 0.8) < 0.03);
  CHECK(std::abs(kept / hidden - 0.1 - 0.1 / 40) < 0.02);
  CHECK(std::abs(follow / texts_count - 0.5) < 0.08);
}

TEST_CASE("pretrain learns hidden words and what follows; run fills in; a tagger and a classifier start from it") {
  const HiddenText small;
  const std::string train =
      small.train + "--dropout 0 --rate 0.005 --steps 600 --evaluate-every 600 --save '" + small.model + "'";
  const std::string told = trained(train);
  CHECK(contains(told, "48 parts of texts to learn, 48 to validate with\n"));
  const auto score = [&](const std::string& name) {
    const size_t at = told.rfind(name + ' ');
    REQUIRE(at != told.npos);
    return std::stod(told.substr(at + name.size() + 1));
  };
  CHECK(score("masked loss") < 1.2);  // ln 22 is 3.1
  CHECK(score("masked accuracy") > 0.6);
  CHECK(score("next accuracy") > 0.6);
  const std::string load = " --load '" + small.model + "'";
  const Result filled = shell("echo 'the cow sleeps at the [MASK] .' | " + quoted_program + "pretrain run" + load);
  CHECK(line(filled.text, 0) == "the cow sleeps at the farm .");
  CHECK(contains(line(filled.text, 1), "farm 0."));
  CHECK(contains(run("inspect '" + small.model + "'").text, "a model of "));
  const std::string table =
                        written(small.folder / "two.tsv", "text\tlabel\nthe cat eats\ta\nthe car stops\tb\nhen\ta\n"),
                    conll = written(small.folder / "two.conll", "cat A\neats B\n\nthe A\ncar B\n");
  for (const std::string& task : {"classify train '" + table, "tag train '" + conll}) {
    const Result started = run(task + "' --init '" + small.model + "' --steps 2", "2>&1");
    CAPTURE(started.text);
    CHECK(started.exit_code == 0);
    CHECK(contains(started.text, "  not in it: classifier.weight, classifier.bias\n"));
  }
  CHECK(run("classify train '" + table + "' --init '" + small.model + "' --steps 2 --save '" +
            (small.folder / "classifier") + "'")
            .exit_code == 0);
  check_failure(quoted_program + "pretrain run --load '" + (small.folder / "classifier") + "'",
                "was not saved by orrery pretrain, but by orrery 'classify'");
}

TEST_CASE("a pretraining that was stopped ends with the bits of an uninterrupted one, with any number of threads") {
  const HiddenText small;
  const std::string train = "pretrain train '" + small.text + "' " + small.form + "--steps 80 --evaluate-every 40 ";
  const std::string whole = trained_hash(train + "--hash");
  CHECK(trained_hash(train + "--hash --threads 2") == whole);
  CHECK(trained_hash(train + "--hash --seed 2") != whole);
  CHECK(resumed_hash(train, small.model) == whole);
  const std::string shorter = train + "--first-tokens 16 ",
                    told = trained(shorter + "--overwrite --save '" + small.model + "'");
  CHECK(contains(told, "in the first 72 steps, 60 of at most 16 tokens\n"));
  CHECK(trained_hash(shorter + "--hash") != whole);
  CHECK(resumed_hash(shorter, small.model) == trained_hash(shorter + "--hash"));
  const std::string further = "pretrain train '" + small.text + "' --init '" + small.model + "' --steps 1";
  CHECK(!contains(trained(further + " --first-tokens 16"), "in the first"));
}

TEST_CASE("pretrain reads texts between empty lines, each line, or a column, and says what is wrong with them") {
  const HiddenText small;
  const auto counted = [&](const std::string& name, const std::string& text, const std::string& options = "") {
    const std::string path = written(small.folder / name, text);
    return line(errors("pretrain train '" + path + "' --valid '" + path + "' --vocab '" +
                       written(small.folder / "vocab.txt", paired_words()) +
                       "' --layers 1 --heads 1 --d-model 8 --d-ff 8 " + "--max-tokens 9 --steps 1 " + options)
                    .text,
                0);
  };
  CHECK(counted("a", "w0 w2\nw4\n\nw6 w8\n").starts_with("2 parts of texts"));
  CHECK(counted("b", "w0 w2\nw4 w4\nw6 w8\n").starts_with("3 parts of texts"));
  CHECK(counted("c", "w0 w2 w4w5 w6 w8 w0 w2\n").starts_with("2 parts of texts"));  // at most six tokens in each
  CHECK(counted("d.tsv", "x\ty\n1\tw0 w2\n2\tw4 w6\n", "--text y ").starts_with("2 parts of texts"));
  CHECK(contains(counted("e.tsv", "x\ty\n1\tw0 w2\n", "--text z "), "e.tsv has no column 'z'"));
  CHECK(counted("i", "w0 w2\n\nw4\n").starts_with("1 texts, or ends of texts, of fewer than two words are"));
  CHECK(counted("j.tsv", "x\ty\n1\tw0 w2\n2\t\n", "--text y ").starts_with("1 texts, or ends of texts, of fewer"));
  CHECK(counted("k", "[SEP] [CLS]\n").starts_with("1 parts of texts"));  // words like others
  CHECK(contains(counted("l", "\n \n"), "l has nothing but empty lines"));
  CHECK(contains(counted("f", "w0\n\nw1\n"), "has no text of two words"));
  CHECK(contains(counted("g", "w0 w2\n\xFF\n"), "g, line 2: byte 7 begins no UTF-8 character"));
  CHECK(contains(counted("h", "w0 w2\nw4 w6\n", "--max-tokens 4 "), "--max-tokens"));
  const std::string special = written(small.folder / "special.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n");
  check_failure(quoted_program + "pretrain train '" + small.text + "' --vocab '" + special + "'",
                "the vocabulary has nothing but special tokens");
}
