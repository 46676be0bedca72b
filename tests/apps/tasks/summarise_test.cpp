// Chapter 9. Tests of `orrery summarise`: ROUGE as rouge_score counts it, and the command as its users type it.
#include <fstream>

#include "apps/tasks/rouge.h"
#include "core/files/safetensors.h"
#include "tests/apps/run_program.h"

using namespace orrery::program;

namespace {

// Mails about something, whose subject is what they are about and for when.
std::string invented_mails() {
  std::string table = "id,body,subject\n";
  for (const std::string what : {"budget", "contract", "party", "lunch"})
    for (const std::string when : {"monday", "friday", "june"})
      for (const std::string who : {"please find", "we need"})
        table += "1,\"" + who + " the " + what + "\nuntil \"\"" + when + "\"\"\",the " + what + " for " + when + "\n";
  return table;
}

const std::string mail_columns = "--text body --summary subject ",
                  mail_sizes = mail_columns +
                               "--vocab-size 80 --encoder-layers 1 --decoder-layers 1 --heads 2 --d-model 24 "
                               "--d-ff 48 --batch-tokens 200 ",
                  mail_training =
                      mail_sizes +
                      "--max-tokens 30 --dropout 0 --rate 0.01 --warmup 10 --steps 400 --evaluate-every 400 ";

struct SmallMails {
  orrery::TemporaryFolder folder;
  std::string table = written(folder / "table.csv", invented_mails()), model = folder / "model.safetensors",
              train = "summarise train '" + table + "' ", load = " --load '" + model + "'",
              save = " --save '" + model + "'";
};

}  // namespace

TEST_CASE("stems and ROUGE are those of NLTK and rouge_score") {
  std::ifstream fixture(ORRERY_SOURCE_DIR "/tests/fixtures/rouge.txt");
  int words = 0, pairs = 0;
  for (std::string row; std::getline(fixture, row) && !row.empty(); ++words) {
    const size_t space = row.find(' ');
    CHECK(orrery::stem_of(row.substr(0, space)) == row.substr(space + 1));
  }
  for (std::string reference, summary; std::getline(fixture, reference); ++pairs) {
    std::array<double, 3> expected{};
    std::getline(fixture, summary);
    for (double& score : expected) fixture >> score;
    fixture.ignore();
    CAPTURE(reference);
    CAPTURE(summary);
    const std::array<double, 3> counted = orrery::rouge(reference, summary);
    for (size_t i = 0; i < 3; ++i) CHECK(counted[i] == doctest::Approx(expected[i]).epsilon(1e-12));
  }
  CHECK(words > 500);
  CHECK(pairs == 48);
}

TEST_CASE("summarise learns a small table; eval and run agree with it, and cut off what is too long") {
  const SmallMails small;
  const std::string learned = trained(small.train + mail_training + "--valid '" + small.table + "'" + small.save);
  CHECK(contains(learned, "training: 24 pairs, with "));
  CHECK(contains(learned, "\n  please find the budget until \"monday\"  ->  "));
  const std::string output = small.folder / "output.txt";
  const Result judged = run("summarise eval '" + small.table + "'" + small.load + " --output '" + output + "'", "2>&1");
  CHECK(contains(judged.text, "ROUGE-1 100.00  ROUGE-2 100.00  ROUGE-L 100.00\n"));
  CHECK(contains(judged.text, "24 pairs of "));
  CHECK(orrery::contents(output).starts_with("the budget for monday\nthe budget for monday\nthe budget for friday\n"));
  const std::string texts = "printf 'we need the party until \"june\"\\n\\nwe need the lunch until \"friday\"" +
                            orrery::small::repeated(" the lunch", 30) + "\\n' | ",
                    answered = texts + quoted_program + "summarise run" + small.load;
  const Result said = shell(answered + " 2>/dev/null");
  CHECK(line(said.text, 0) == "the party for june");
  CHECK(line(said.text, 1) == "");
  CHECK(contains(line(said.text, 2), "lunch"));
  const std::string told = shell(answered + " 2>&1 >/dev/null").text;
  CHECK(contains(told, "warning: 1 line is empty (line 2); its summary is an empty line\n"));
  CHECK(contains(told, "warning: 1 line is cut off at 30 tokens\n"));
  const Result greedy = shell(texts + quoted_program + "summarise run --beam 1 --scores" + small.load + " 2>/dev/null");
  CHECK(line(greedy.text, 0).ends_with("\tthe party for june"));
  const std::string parts = run("inspect '" + small.model + "'").text;
  CHECK(contains(parts, "a model of "));
  CHECK(contains(parts, "copy.query.weight"));
}

TEST_CASE("a training of summaries that was stopped ends with the same bits, and long texts are cut off and counted") {
  const SmallMails small;
  const std::string held_out = small.train + mail_sizes + "--max-tokens 8 --steps 40 --evaluate-every 20 ";
  const std::string whole = trained_hash(held_out + "--hash");
  CHECK(resumed_hash(held_out, small.model, "--threads 2") == whole);
  const std::string told = errors(held_out).text;
  CHECK(contains(told, "training: 23 pairs, 23 cut off at 8 tokens, with "));
  CHECK(contains(told, "validation, held out of these files: 1 pair, 1 cut off at 8 tokens, with "));
}

TEST_CASE("what is wrong with a table of summaries or a model is said in a line, with file and row") {
  const SmallMails small;
  const auto table = [&](const std::string& text) { return " '" + written(small.folder / "wrong.tsv", text) + "' "; };
  const auto train = [&](const std::string& text) {
    return quoted_program + "summarise train" + table(text) + mail_sizes + "--max-tokens 30";
  };
  check_failure(train("body\tsummary\na\tb\n"),
                "wrong.tsv has no column 'subject'; its columns are body, summary; choose one with --summary");
  check_failure(train("body\tsubject\na b\tb\n \tb\n"), "wrong.tsv, row 2 (line 3): 'body' is empty");
  check_failure(train("body\tsubject\na b\tb\nc\t\n"), "wrong.tsv, row 2 (line 3): 'subject' is empty");
  check_failure(train("body\tsubject\na\tb\n"), "there is no pair of sentences to validate with");
  trained(small.train + mail_sizes + "--max-tokens 30 --steps 1 --no-copy" + small.save);
  CHECK_FALSE(contains(run("inspect '" + small.model + "'").text, "copy.query.weight"));
  CHECK(contains(run("summarise eval '" + small.table + "'" + small.load).text, "ROUGE-1"));
  check_failure(quoted_program + "translate decode" + small.load,
                "was not saved by orrery translate, but by orrery 'summarise'");
  check_failure(
      quoted_program + "summarise eval '" + small.table + "'" + small.load + " --output '" + small.table + "'",
      "would write over");
  check_usage_error("summarise train --layers 2", "--layers", "(--encoder-layers, --decoder-layers?)");
}
