// Chapter 9. `orrery translate decode`: order, answers at once, lines that cannot be translated, mistakes.
#include "apps/tasks/translate/decode.h"

#include <doctest/doctest.h>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/tensor_ops.h"
#include "nn/generate/decoding.h"
#include "tests/apps/run_program.h"
#include "tests/apps/show/attention/random_attention.h"
#include "tests/apps/tasks/translate/small_translation.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using namespace orrery::program;
using namespace orrery::translate;
using small::lively_words;

namespace {

// That translator in a file.
struct SavedTranslator {
  TemporaryFolder folder;
  std::string path = folder / "words.safetensors";
  SavedTranslator() {
    const Translator translator = lively_words();
    save_translator(*translator.model, translator.vocabulary, path);
  }
  std::string arguments(const std::string& more = "") const { return "translate decode --load '" + path + "' " + more; }
  std::string command(const std::string& more = "") const { return quoted_program + arguments(more); }
  std::string file(const std::string& text) const {
    set_contents(folder / "lines", text);
    return "'" + (folder / "lines") + "'";
  }
};

const std::vector<std::string> sentences{"a b c", "d",   "e f g h a b c d e f", "c c", "h g f e d",
                                         "j",     "b a", "a b i@@ j c"};

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

std::vector<Line> as_lines(const std::vector<std::string>& texts) {
  std::vector<Line> lines;
  for (const std::string& text : texts) lines.push_back({.text = text});
  return lines;
}

const auto not_stopped = [] { return false; };

std::vector<std::string> texts_of(const std::vector<Translation>& results) {
  std::vector<std::string> texts;
  for (const Translation& result : results) texts.push_back(result.text);
  return texts;
}

}  // namespace

TEST_CASE("each line gets its own translation in its place, whatever the batches are") {
  const Translator translator = lively_words();
  const auto expected = texts_of(translations(translator, as_lines(sentences), {}, not_stopped));
  CHECK(std::set<std::string>(expected.begin(), expected.end()).size() >= 4);
  for (const i64 batch_tokens : {1, 8, 20, 1000})
    CHECK(texts_of(translations(translator, as_lines(sentences), {.batch_tokens = batch_tokens}, not_stopped)) ==
          expected);
  for (size_t i = 0; i < sentences.size(); ++i)
    CHECK(translations(translator, as_lines({sentences[i]}), {}, not_stopped)[0].text == expected[i]);
}

TEST_CASE("a beam of 1 gives the model's greedy translations") {
  const Translator translator = lively_words();
  const nn::Transformer& model = dynamic_cast<const TransformerTranslator&>(*translator.model).model;
  std::vector<std::vector<i32>> ids;
  for (const std::string& sentence : sentences) ids.push_back(translator.vocabulary.ids(sentence));
  const std::vector<std::span<const i32>> spans(ids.begin(), ids.end());
  const Tensor written =
      nn::greedy_decode(model, source_tensor(spans), {.bos = begin_id, .eos = end_id, .max_len = 20});
  std::vector<std::string> greedy;
  for (i64 row = 0; row < written.size(0); ++row) {
    const i32* begin = written.data<i32>() + row * written.size(1);
    greedy.push_back(translator.vocabulary.text({begin, std::find(begin, begin + written.size(1), end_id)}));
  }
  CHECK(texts_of(translations(translator, as_lines(sentences), {.beam = 1}, not_stopped)) == greedy);
  CHECK(greedy_translations(*translator.model, translator.vocabulary, spans) == greedy);
}

TEST_CASE("lines that cannot be translated are told apart, and the limit of tokens holds") {
  const Translator translator = lively_words();
  const std::string longest = repeated("a ", 19), longer = longest + "a";
  const std::vector<std::string> lines{"", " \t", "a \xFF b", std::string("a\0b", 3), longest, longer, "unseen", "a b"};
  const auto results = translations(translator, as_lines(lines), {.max_length = 2}, not_stopped);
  const std::vector<LineKind> kinds{LineKind::empty,      LineKind::empty,      LineKind::not_utf8,
                                    LineKind::with_nul,   LineKind::translated, LineKind::too_long,
                                    LineKind::translated, LineKind::translated};
  for (size_t i = 0; i < lines.size(); ++i) {
    CHECK(results[i].kind == kinds[i]);
    CHECK((results[i].tokens > 0) == (kinds[i] == LineKind::translated));
    CHECK(results[i].tokens <= 2);
    CHECK((results[i].log_probability < 0) == (kinds[i] == LineKind::translated));
  }
  CHECK(results[6].unknown_letters == 1);
  CHECK(results[7].unknown_letters == 0);
  CHECK(translations(translator, {{.text = "a", .is_whole = false}}, {}, not_stopped)[0].kind == LineKind::too_long);
  CHECK(translations(translator, as_lines(sentences), {}, [] { return true; }).empty());
}

TEST_CASE("the program translates a file and standard input alike, with any number of threads") {
  const SavedTranslator saved;
  const auto texts = texts_of(translations(lively_words(), as_lines(sentences), {}, not_stopped));
  const std::string expected = joined(texts), file = saved.file(joined(sentences));
  CHECK(run(saved.arguments(file)).text == expected);
  CHECK(run(saved.arguments(file + " --threads 1 --batch-tokens 7")).text == expected);
  CHECK(shell(saved.command() + "2>/dev/null < " + file).text == expected);
  const std::string told = errors(saved.arguments(file)).text;
  CHECK(contains(told, " s, 8 lines, "));
  CHECK(contains(told, "tokens/s"));
  CHECK_FALSE(contains(told, " line is "));
  CHECK_FALSE(contains(told, " lines are "));
}

TEST_CASE("several models translate together, in any order, and must have one vocabulary") {
  const SavedTranslator saved;
  const Translator other = lively_words(2);
  const std::string second = saved.folder / "second", third = saved.folder / "third",
                    with_second = "--load '" + second + "' ", file = saved.file(joined(sentences));
  save_translator(*other.model, other.vocabulary, second);
  Translator both = lively_words();
  both.others.push_back(lively_words(2).model);
  const auto texts = texts_of(translations(both, as_lines(sentences), {}, not_stopped));
  CHECK(texts != texts_of(translations(lively_words(), as_lines(sentences), {}, not_stopped)));
  CHECK(texts != texts_of(translations(other, as_lines(sentences), {}, not_stopped)));
  CHECK(run(saved.arguments(with_second + file)).text == joined(texts));
  CHECK(run("translate decode " + with_second + "--load '" + saved.path + "' " + file).text == joined(texts));
  CHECK(contains(errors(saved.arguments(with_second + file)).text,
                 "model of " + std::to_string(2 * other.parameter_count()) + " parameters"));
  save_translator(*other.model, Vocabulary::of_segmented({"a b c d e f g h i@@ k"}), third);
  CHECK(contains(errors(saved.arguments("--load '" + third + "' " + file)).text,
                 third + " has another vocabulary than " + saved.path + ": they cannot write together"));
}

TEST_CASE("an ensemble reads and writes as much as the model that can do least") {
  for (const bool least_is_first : {true, false}) {
    Translator both = lively_words(1, least_is_first ? 5 : 20);
    both.others.push_back(lively_words(2, least_is_first ? 20 : 5).model);
    CHECK(both.most_tokens() == 5);
    const auto results = translations(both, as_lines({"a b c d", "a b c d e"}), {}, not_stopped);
    CHECK(results[0].kind == LineKind::translated);
    CHECK(results[0].tokens <= 5);
    CHECK(results[1].kind == LineKind::too_long);
  }
}

TEST_CASE("--scores puts the log-probability and a tab before each translation") {
  const SavedTranslator saved;
  const auto results = translations(lively_words(), as_lines({"a b c", "", "d"}), {}, not_stopped);
  const std::string text = run(saved.arguments("--scores " + saved.file("a b c\n\nd\n"))).text;
  for (const int i : {0, 2}) {
    const std::string printed = line(text, i);
    const size_t tab = printed.find('\t');
    CHECK(std::abs(std::stod(printed) - results[static_cast<size_t>(i)].log_probability) < 1e-4);
    CHECK(printed.substr(tab + 1) == results[static_cast<size_t>(i)].text);
  }
  CHECK(line(text, 1) == "\t");
}

TEST_CASE("--n-best writes a list for each line, and --prefix-file says how each translation begins") {
  const SavedTranslator saved;
  const std::string file = saved.file(joined({"a b c", "", "d"})), usual = run(saved.arguments(file)).text;
  const Result best = run(saved.arguments("--n-best 3 " + file));
  double score = 0, last = 0;
  for (int row = 0, number = 0; row < 6; ++row, last = score) {
    CHECK(std::sscanf(line(best.text, row).c_str(), "%d\t%lf\t", &number, &score) == 2);
    CHECK(number == (row < 3 ? 1 : 3));
    CHECK((row % 3 == 0 ? line(best.text, row).ends_with('\t' + line(usual, number - 1)) : score <= last));
  }
  const std::string prefixes = written(saved.folder / "prefixes", "j c\n\n\n");
  const std::string begun = run(saved.arguments("--prefix-file '" + prefixes + "' " + file)).text;
  CHECK((line(begun, 0) + " ").starts_with("j c "));
  CHECK(line(begun, 2) == line(usual, 2));
  for (const std::string option : {"--no-repeat-ngram 1 ", "--repetition-penalty 99 "})
    CHECK(run(saved.arguments(option + file)).text != usual);
  const std::string few = written(saved.folder / "few", "j\n");
  CHECK(
      contains(errors(saved.arguments("--prefix-file '" + few + "' " + file)).text, "no line 2, but the text has one"));
  const auto said_of = [&](const std::string& text) {
    return errors(saved.arguments("--prefix-file '" + written(saved.folder / "wrong", text) + "' " + file)).text;
  };
  CHECK(contains(said_of("j\n\n\n\n"), "has more lines than the text, which has 3"));
  CHECK(contains(said_of(std::string("j\n\0\n\n", 5)), ", line 2 is too long or not UTF-8, or has a NUL character"));
  CHECK(contains(said_of(repeated("j ", 2000) + "\n\n\n"), "1 line or its prefix is too long for the model"));
  // What several models say together are log-probabilities, and of one it is the same.
  const std::string penalty = "--repetition-penalty 1.5 " + file;
  CHECK(run(saved.arguments("--load '" + saved.path + "' " + penalty)).text == run(saved.arguments(penalty)).text);
  check_usage_error(saved.arguments("--n-best 6 " + file), "--n-best", "at most --beam, 5");
  check_usage_error(saved.arguments("--n-best 2 --scores " + file), "--n-best", "--scores");
}

TEST_CASE("--attention writes a page of the translated lines, as many as it holds, and says which") {
  const SavedTranslator saved;
  const std::string page = saved.folder / "page.html", with_page = "--attention '" + page + "' ";
  const std::string file = saved.file(joined({"a b c", "", "d"}));
  CHECK(run(saved.arguments(with_page + file)).text == run(saved.arguments(file)).text);
  const auto data = [&] {
    const std::string text = contents(page), start = "type=\"application/json\">";
    const size_t begin = text.find(start) + start.size();
    return nlohmann::json::parse(text.substr(begin, text.find("</script>", begin) - begin));
  };
  const auto results = translations(lively_words(), as_lines({"a b c", "d"}), {}, not_stopped);
  REQUIRE(data().at("pairs").size() == 2);
  CHECK(data()["pairs"][1].at("source") == "d");
  CHECK(data()["pairs"][0].at("target") == results[0].text);
  // The weights are those of one pass over the line and its translation.
  const Translator translator = lively_words();
  AttentionPage expected = attention_page(translator);
  REQUIRE(add_attention(expected, translator, "a b c", results[0].ids));
  REQUIRE(add_attention(expected, translator, "d", results[1].ids));
  CHECK(data() == nlohmann::json::parse(expected.json()));
  CHECK_FALSE(contains(errors(saved.arguments(with_page + file)).text, "shows the first"));
  const std::string many = saved.file(joined(std::vector<std::string>(25, "a b c")));
  CHECK(
      contains(errors(saved.arguments(with_page + many)).text, page + " shows the first 20 of 25 translated lines\n"));
  CHECK(data().at("pairs").size() == 20);
  const std::string empty = saved.file("\n"), other = saved.folder / "other";
  CHECK(contains(errors(saved.arguments("--attention '" + other + "' " + empty)).text,
                 "warning: " + other + " is not written: no line was translated\n"));
  CHECK_FALSE(std::filesystem::exists(other));
  check_failure(saved.command("--attention /nowhere/page " + empty), "--attention");
  check_failure(saved.command("--attention '" + saved.path + "' " + empty), "is a file that holds a model");
  check_failure(saved.command("--attention " + empty + ' ' + empty), "would write over the lines to translate");
  check_failure(saved.command("--attention " + empty + " < " + empty), "would write over the lines to translate");
}

TEST_CASE("lines that cannot be translated stay empty lines, with one warning for each kind") {
  const SavedTranslator saved;
  const std::string file = saved.file("a b c\n\nx\xFFy\n" + repeated("a ", 20) + "\n \nd\n");
  const std::string text = run(saved.arguments(file)).text;
  const auto expected = texts_of(translations(lively_words(), as_lines({"a b c", "d"}), {}, not_stopped));
  CHECK(text == expected[0] + "\n\n\n\n\n" + expected[1] + "\n");
  const std::string told = errors(saved.arguments(file)).text;
  CHECK(contains(told, "warning: 2 lines are empty (line 2 is the first); their translations are empty lines\n"));
  CHECK(contains(told, "warning: 1 line is not UTF-8 text (line 3); its translation is an empty line\n"));
  CHECK(contains(told,
                 "warning: 1 line is too long for the model, which reads 19 tokens (line 4); its translation is an "
                 "empty line\n"));
}

TEST_CASE("lines that look the same have the same translation, and what a model does not know is counted") {
  const SavedTranslator saved;
  const std::string plain = texts_of(translations(lively_words(), as_lines({"a b c"}), {}, not_stopped))[0];
  const std::string file = saved.file(
      "a b c\na\u00a0b c\na\tb c\na\u202fb c\na b\u2028c\na\rb c\na \u00adb c\n\u00a0\n"
      "a x b\nx\u0301 y\n" +
      std::string("a\0b\n", 4));
  const std::string text = run(saved.arguments(file)).text, told = errors(saved.arguments(file)).text;
  for (int i = 0; i < 7; ++i) CHECK(line(text, i) == plain);
  CHECK(line(text, 7).empty());
  CHECK(contains(told, "warning: 1 line is empty (line 8); its translation is an empty line\n"));
  CHECK(contains(told, "warning: 1 line has a NUL character (line 11); its translation is an empty line\n"));
  CHECK(contains(told, "warning: the model does not know 3 tokens, in 2 lines (line 9 is the first)\n"));
  CHECK_FALSE(contains(errors(saved.arguments(saved.file("a b\n"))).text, "does not know"));
}

TEST_CASE("what is wrong is one clear error") {
  const SavedTranslator saved;
  const std::string decode = quoted_program + "translate decode ", file = saved.file(joined(sentences));
  check_failure(decode + "--load " + file + ' ' + file, "lines");
  check_failure(saved.command("/nowhere/lines"), "read /nowhere/lines: No such file or directory");
  const auto last_error = [](const std::string& command) { return line(shell(command).text, -1); };
  CHECK(last_error(saved.command("/") + " 2>&1 >/dev/null") == "orrery: read /: Is a directory");
  CHECK(last_error(saved.command(file) + " 2>&1 >/dev/full") == "orrery: cannot write the results to standard output");
  CHECK(shell(saved.command(file) + " 2>/dev/null >/dev/full").exit_code == 1);
  check_usage_error(saved.arguments(file + ' ' + file), "lines", "unexpected argument");
  CHECK(contains(errors(saved.arguments("--beam 18 " + file)).text,
                 "--beam: must be at most 17, the tokens of the model"));
}

TEST_CASE("when nobody reads its output any more, it stops with one line that says so") {
  const SavedTranslator saved;
  const std::string file = saved.file(repeated("a b c\n", 5000)), told = saved.folder / "told";
  const Result result = shell("( " + saved.command(file) + " --beam 1 2> '" + told + "'; echo $? >> '" + told +
                              "' ) | true; cat '" + told + "'");
  CHECK(line(result.text, -1) == "1");
  CHECK(line(result.text, -2) == "orrery: translate: standard output was closed before all lines were written");
}

TEST_CASE("a batch takes as many sentences as its tokens allow, and fewer with a wide beam") {
  const auto rows = [](i64 length, i64 beam, i64 vocabulary) {
    return rows_of_batch(length, vocabulary, {.beam = beam, .batch_tokens = 1024});
  };
  CHECK(rows(10, 1, 8000) == 102);
  CHECK(rows(10, 5, 8000) == 102);
  CHECK(rows(10, 50, 8000) == 10);
  CHECK(rows(2000, 5, 8000) == 1);
  CHECK(rows(2, 5, 8000) == 512);
  CHECK(rows(2, 1000, 8000) == 2);
  CHECK(rows(2, 5, 1'000'000) == 6);
  CHECK(rows(2, 1000, 1'000'000) == 1);
}

TEST_CASE("translations can be written as soon as all lines before them have theirs") {
  const Translator translator = lively_words();
  const auto expected = texts_of(translations(translator, as_lines(sentences), {}, not_stopped));
  std::vector<std::string> written;
  std::vector<i64> done;
  size_t calls_with_some = 0;
  const WhenReady gather = [&](std::span<const Translation> ready, i64 count) {
    for (const Translation& translation : ready) written.push_back(translation.text);
    done.push_back(count);
    calls_with_some += !ready.empty();
  };
  translations(translator, as_lines(sentences), {.batch_tokens = 1}, not_stopped, gather);
  CHECK(written == expected);
  CHECK(done.size() == sentences.size() + 1);  // the first call is before the first batch
  CHECK(std::is_sorted(done.begin(), done.end()));
  CHECK(done.back() == std::ssize(sentences));
  CHECK(calls_with_some > 2);
}

TEST_CASE("when it is stopped, what is ready stays, and not even the step of a long search is waited for") {
  const Translator translator = lively_words();
  const std::vector<Line> lines = as_lines({"a b c d e f g h", "", "a b c", "d"});
  const auto expected = texts_of(translations(translator, lines, {}, not_stopped));
  std::vector<std::string> written;
  bool stop = false;
  const auto kept = translations(
      translator, lines, {.batch_tokens = 1}, [&] { return stop; },
      [&](std::span<const Translation> ready, i64 done) {
        for (const Translation& translation : ready) written.push_back(translation.text);
        stop = done == 2;  // the empty line and the first batch: that of the longest line
      });
  CHECK(texts_of(kept) == std::vector<std::string>{expected[0], ""});
  CHECK(written == texts_of(kept));
  i64 asked = 0;
  translations(translator, as_lines({"a b c d e f g h"}), {.beam = 1}, [&] { return ++asked == 2; });
  CHECK(asked == 2);  // the search itself asks
}

TEST_CASE("a stop, as by Ctrl-C, keeps what is written, and says how much that is") {
  const SavedTranslator saved;
  const std::string in = "'" + (saved.folder / "in") + "'", out = "'" + (saved.folder / "out") + "'",
                    told = "'" + (saved.folder / "told") + "'";
  const Result result = shell("bash -c \"mkfifo " + in + "; " + saved.command() + "< " + in + " > " + out + " 2> " +
                              told + " & exec 3> " + in + "; echo a b c >&3; for i in {1..600}; do [ -s " + out +
                              " ] && break; sleep 0.1; done; kill -TERM \\$!; wait \\$!; echo \\$?\"");
  CHECK(result.text == "130\n");
  const std::string written = contents(saved.folder / "out");
  CHECK(std::count(written.begin(), written.end(), '\n') == 1);
  CHECK(contains(contents(saved.folder / "told"), " s, 1 line, "));
}
