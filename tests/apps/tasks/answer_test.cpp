// Chapter 9. Tests of `orrery answer`: what was said last holds, stories are held out whole, and errors name the line.
#include "core/files/safetensors.h"
#include "tests/apps/run_program.h"

using namespace orrery::program;

namespace {

// Who is where: all pairs of moves of two people, and a question about each who moved. The last move of a person holds.
std::string small_stories() {
  const std::vector<std::string> people{"Mary", "John"}, places{"garden", "kitchen", "hall"};
  std::vector<std::pair<std::string, std::string>> moves;
  for (const std::string& who : people)
    for (const std::string& where : places) moves.emplace_back(who, where);
  std::string text;
  for (const auto& [first, from] : moves)
    for (const auto& [second, to] : moves) {
      text += "1 " + first + " went to the " + from + ".\n2 " + second + " went to the " + to + ".\n";
      text += "3 Where is " + second + "? \t" + to + "\t2\n";
      if (first != second) text += "4 Where is " + first + "? \t" + from + "\t1\n";
    }
  return text;
}

const std::string story_sizes = "--layers 1 --heads 4 --d-model 32 --d-ff 64 --batch 18 ",
                  story_training =
                      story_sizes + "--repeats 2 --dropout 0 --rate 0.005 --steps 1000 --evaluate-every 1000 ";

struct SmallStories {
  orrery::TemporaryFolder folder;
  std::string file = written(folder / "stories.txt", small_stories()), model = folder / "model.safetensors",
              train = "answer train '" + file + "' ", load = " --load '" + model + "'",
              save = " --overwrite --save '" + model + "'";

  std::string answered(const std::string& lines) const {
    return shell("printf '" + lines + "' | " + quoted_program + "answer run" + load + " 2>/dev/null").text;
  }
};

}  // namespace

TEST_CASE("answer learns where people are; the last sentence holds, and an empty line ends a story") {
  const SmallStories small;
  const std::string told = trained(small.train + story_training + "--valid '" + small.file + "'" + small.save);
  CHECK(contains(told, "54 texts to learn, 54 to validate with\n3 labels: garden (18), hall (18), kitchen (18)\n"));
  CHECK(contains(told, "\naccuracy 1.0000  macro F1 1.0000  in "));
  const Result judged = run("answer eval '" + small.file + "'" + small.load);
  CHECK(line(judged.text, 0) == "accuracy 1.0000  macro F1 1.0000  ");
  const std::string garden = "1 Mary went to the garden.\\n", hall = "Mary went to the hall.\\n",
                    where = "Where is Mary?\\n";
  const std::string late = small.answered(garden + hall + where);
  CHECK(late.starts_with("hall\t0."));
  CHECK(late.ends_with("\tWhere is Mary?\n"));
  CHECK(std::count(late.begin(), late.end(), '\n') == 1);
  CHECK(small.answered(hall + "2 mary went to the garden.\\n3 where is mary?\\tunknown\\n").starts_with("garden\t0."));
  const std::string apart = small.answered(hall + "\\n" + garden + where),
                    again = small.answered(hall + garden + where);
  CHECK(apart.starts_with("garden\t0."));
  CHECK(apart == again);  // the number 1 begins a story, too
}

TEST_CASE("the stories at the end of a file are held out whole; a training that was stopped ends with the same bits") {
  const SmallStories small;
  const std::string held_out = small.train + story_sizes + "--steps 60 --evaluate-every 30 ";
  CHECK(contains(errors(held_out).text, "51 texts to learn, 3 held out of them, the last stories, to validate with\n"));
  const std::string whole = trained_hash(held_out + "--hash");
  for (const std::string other : {"--repeats 2", "--no-sentence-sums"})
    CHECK(trained_hash(held_out + "--hash " + other) != whole);
  CHECK(resumed_hash(held_out, small.model, "--threads 2") == whole);
}

TEST_CASE(
    "what a model reads of a story: the question first, then sentences from the last to the first, until it is full") {
  const SmallStories small;
  trained(small.train + story_sizes + "--steps 1" + small.save);
  const orrery::Metadata metadata = orrery::read_safetensors_metadata(small.model);
  CHECK(contains(metadata.at("config"), R"("type_vocab_size":3)"));
  CHECK(contains(metadata.at("config"), R"("max_positions":512)"));
  CHECK(contains(metadata.at("vocabulary"), R"("mary")"));
  CHECK_FALSE(contains(metadata.at("vocabulary"), "Mary"));
  const std::string cut = " --max-tokens 13", last = "John went to the hall.\\nWhere is John?\\n";
  const auto said = [&](const std::string& before) {
    return shell("printf '" + before + last + "' | " + quoted_program + "answer run" + small.load + cut + " 2>&1").text;
  };
  CHECK(line(said("Mary went to the garden.\\n"), -2) == line(said("Mary went to the kitchen.\\n"), -2));
  CHECK(contains(said("Mary went to the garden.\\n"), "1 line is cut off at 13 tokens"));
  CHECK_FALSE(contains(said(""), "cut off"));
}

TEST_CASE("what is wrong with a story or a model is said in a line, with file and line") {
  const SmallStories small;
  const auto train = [&](const std::string& text) {
    return quoted_program + "answer train '" + written(small.folder / "wrong.txt", text) + "'";
  };
  const std::string good = "1 It is red.\n2 What is it?\tred\t1\n";
  check_failure(train("It is red.\n"), "wrong.txt, line 1 begins with no number; lines are numbered from 1");
  check_failure(train(good + "4 It is blue.\n"), "wrong.txt, line 3 has the number 4");
  check_failure(train(good + "3 What is it?\n"), "wrong.txt, line 3 is a question without an answer");
  check_failure(train(good + "3\n"), "wrong.txt, line 3 is empty");
  check_failure(train(good + "3 What is it?\t\t1\n"), "wrong.txt, line 3 has an empty answer");
  check_failure(train("1 It is red.\n"), "wrong.txt has no question");
  check_failure(train(good), "wrong.txt has only one label, 'red'");
  check_failure(train(good + "1 It is blue.\n2 What is it?\tb\xff\t1\n"), "wrong.txt");
  trained(small.train + story_sizes + "--steps 1" + small.save);
  check_failure(quoted_program + "classify run" + small.load,
                "was not saved by orrery classify, but by orrery 'answer'");
  const std::string save = " --save '" + (small.folder / "out") + "'";
  check_failure(quoted_program + "answer export" + small.load + save, "train with --no-sentence-sums");
  trained(small.train + story_sizes + "--steps 1 --no-sentence-sums" + small.save);
  CHECK(
      contains(run("answer export" + small.load + save).text, "has a BertForSequenceClassification and its vocab.txt"));
  check_usage_error("answer train '" + small.file + "' --vocab-size 9", "--vocab-size", "");
  check_usage_error("answer train", "FILE", "is required");
}
