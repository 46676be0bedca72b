// Chapter 9. Tests of `orrery tag`: parts of sentences as conlleval finds them, and the command as its users type it.
#include <fstream>
#include <iterator>
#include <tuple>

#include "tests/apps/run_program.h"

namespace orrery {
std::vector<std::tuple<size_t, size_t, std::string>> spans(const std::vector<std::string>& tags);  // apps/tasks/tag.cpp
}  // namespace orrery

using namespace orrery::program;

namespace {

auto spans_of(const std::string& tags) {
  std::istringstream words(tags);
  return orrery::spans({std::istream_iterator<std::string>(words), {}});
}

// "0-2 X, 3-4 Y"
std::string parts_of(const std::string& tags) {
  std::string parts;
  for (const auto& [begin, end, type] : spans_of(tags))
    parts += (parts.empty() ? "" : ", ") + std::to_string(begin) + "-" + std::to_string(end) + " " + type;
  return parts;
}

// Names after "mr", towns after "in".
std::string small_text() {
  std::string text;
  for (const std::string name : {"smith", "jones", "brown", "green"})
    for (const std::string town : {"london", "new york", "oslo"}) {
      text += "mr X O\n" + name + " X B-person\nlives X O\nin X O\n";
      text += town == "new york" ? "new X B-town\nyork X I-town\n" : town + " X B-town\n";
      text += ". X O\n\n";
    }
  return text;
}

const std::string small_model =
    "--vocab-size 70 --layers 1 --heads 2 --d-model 16 --d-ff 32 --dropout 0 --batch 4 --rate 0.005 --steps 120 "
    "--evaluate-every 120 ";

}  // namespace

TEST_CASE("parts begin and end where conlleval says") {
  CHECK(parts_of("O O") == "");
  CHECK(parts_of("B-X I-X O B-Y") == "0-2 X, 3-4 Y");
  CHECK(parts_of("B-X B-X") == "0-1 X, 1-2 X");        // startOfChunk: B after B
  CHECK(parts_of("O I-X I-X") == "1-3 X");             // I after O
  CHECK(parts_of("I-X I-Y") == "0-1 X, 1-2 Y");        // another type
  CHECK(parts_of("B-X I-Y I-Y O") == "0-1 X, 1-3 Y");  // the same after B
  CHECK(parts_of("I-X B-X I-X") == "0-1 X, 1-3 X");    // B after I
  CHECK(parts_of("B-X O I-X") == "0-1 X, 2-3 X");      // endOfChunk: O
  CHECK(parts_of("B-a-b I-a-b") == "0-2 a-b");         // a type may have a hyphen
  std::ifstream fixture(ORRERY_SOURCE_DIR "/tests/fixtures/conlleval.txt");
  int sequences = 0;
  for (std::string right, said, counts; std::getline(fixture, right); ++sequences) {
    std::getline(std::getline(fixture, said), counts);
    const auto all = spans_of(right), found = spans_of(said);
    const auto both = std::count_if(found.begin(), found.end(), [&](const auto& span) {
      return std::find(all.begin(), all.end(), span) != all.end();
    });
    CAPTURE(right);
    CAPTURE(said);
    CHECK(std::to_string(all.size()) + " " + std::to_string(found.size()) + " " + std::to_string(both) == counts);
  }
  CHECK(sequences == 40);
}

TEST_CASE("tag learns a small text; eval and run agree with it") {
  const orrery::TemporaryFolder folder;
  const std::string text = written(folder / "text.conll", small_text()), model = folder / "model.safetensors",
                    load = " --load '" + model + "'";
  const std::string train = "tag train '" + text + "' --valid '" + text + "' " + small_model;
  const std::string told = trained(train + "--save '" + model + "'");
  CHECK(contains(told, "4 labels: B-person (12), B-town (12), I-town (4), O (48)\n"));
  CHECK(contains(told, "\nF1 1.0000  precision 1.0000  recall 1.0000  accuracy 1.0000  in "));
  const Result judged = run("tag eval '" + text + "'" + load);
  CHECK(line(judged.text, 0) == "F1 1.0000  precision 1.0000  recall 1.0000  accuracy 1.0000  ");
  CHECK(contains(judged.text, "\ntown                   12     12     12     1.0000  1.0000  1.0000\n"));
  const Result said = shell("printf 'mr jones lives in new york .\\n' | " + quoted_program + "tag run" + load);
  CHECK(line(said.text, 1).starts_with("jones\tB-person\t0."));
  CHECK(line(said.text, 4).starts_with("new\tB-town\t0."));
  CHECK(line(said.text, 5).starts_with("york\tI-town\t0."));
  CHECK(trained_hash(train + "--hash") == trained_hash(train + "--hash"));
  CHECK(resumed_hash(train, model) == trained_hash(train + "--hash"));
}

TEST_CASE("tag counts parts as conlleval does, and words that are cut off as outside") {
  const orrery::TemporaryFolder folder;
  const std::string text = written(folder / "text.conll", small_text()), model = folder / "model.safetensors";
  REQUIRE(run("tag train '" + text + "' --valid '" + text + "' " + small_model + "--save '" + model + "'").exit_code ==
          0);
  // The model finds "jones" and "new york"; the file calls the one a town, and ends the other after "new".
  const std::string other = written(folder / "other.conll",
                                    "mr O\njones B-town\nlives O\nin O\nnew B-town\nyork O\n. O\n\n"
                                    "mr O\nsmith B-person\nlives O\nin O\noslo B-town\n. O\n");
  const Result judged = run("tag eval '" + other + "' --load '" + model + "'");
  CHECK(line(judged.text, 0) == "F1 0.5000  precision 0.5000  recall 0.5000  accuracy 0.8462  ");
  CHECK(contains(judged.text, "\nperson                  1      2      1     0.5000  1.0000  0.6667\n"));
  CHECK(contains(judged.text, "\ntown                    3      2      1     0.5000  0.3333  0.4000"));
  const Result wrong = run("tag eval '" + other + "' --load '" + model + "' --wrong 1");
  CHECK(contains(wrong.text, "\nanswer\tprobability\tright\tplace\tword\tsentence\n"));
  CHECK(wrong.text.ends_with("mr jones lives in new york .\n"));
  CHECK((contains(wrong.text, "\tB-town\tline 2\tjones\t") || contains(wrong.text, "\tO\tline 6\tyork\t")));
  const Result cut = run("tag eval '" + text + "' --max-tokens 5 --load '" + model + "'", "2>&1");
  CHECK(contains(cut.text, "12 texts of " + text + ", 12 of them cut off at 5 tokens"));
  CHECK(contains(cut.text, "warning: every tag is 'O', the commonest label; "));
  CHECK(contains(cut.text, "recall 0.0000  accuracy 0.6316  \n"));  // 48 of 76 words are O; "mr" alone is not cut off
  CHECK(line(shell("printf 'mr smith lives\\n' | " + quoted_program + "tag run --unsure 9 --max-tokens 5 --load '" +
                   model + "' 2>/dev/null")
                 .text,
             1) == "(no such line)");
  CHECK(contains(cut.text, "\ntown                   12      0      0     0.0000  0.0000  0.0000"));
}

TEST_CASE("what is wrong with tags is said in a line, with file and line") {
  const orrery::TemporaryFolder folder;
  const auto train = [&](const std::string& text) {
    return quoted_program + "tag train '" + written(folder / "wrong.conll", text) + "'";
  };
  check_failure(train("a B-x\nb S-x\n"), "wrong.conll, line 2: 'S-x' is neither O nor B- or I- and a type");
  check_failure(train("a O\nb O\n"), "wrong.conll has only one label, 'O'");
  check_failure(train("a B-x\nb O\n. O\n"),
                "wrong.conll is one text of 3 words: an empty line must stand after each sentence");
  const std::string words = written(folder / "words.conll", "a DET\ndog NOUN\n"),
                    valid = written(folder / "valid.conll", "-DOCSTART- O\n\na DET\nruns VERB\n");
  const Result other = errors("tag train '" + words + "' --valid '" + valid + "'");
  CHECK(other.exit_code == 1);
  CHECK(contains(other.text, "valid.conll, line 4: 'VERB' is none of the model's, DET, NOUN"));
  CHECK(contains(other.text,
                 "valid.conll: 1 line of -DOCSTART-, comments, or words that are several or none left out\n"));
}

TEST_CASE("tags that are no parts are judged by accuracy") {
  const orrery::TemporaryFolder folder;
  const std::string text = written(folder / "text.conll", "a DET\ndog NOUN\n\nthe DET\ncat NOUN\n");
  const Result trained = run("tag train '" + text + "' --valid '" + text + "' " + small_model);
  CHECK(contains(trained.text, "accuracy 1.0000  in "));
  CHECK_FALSE(contains(trained.text, "F1"));
}
