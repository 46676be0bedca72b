// Chapter 9. Tests of `orrery classify`: it learns a small table, eval and run agree with it, errors name the row.
#include "core/tensor_ops.h"
#include "nn/files/files.h"
#include "tests/apps/run_program.h"

using namespace orrery::program;
using orrery::contents;

namespace {

// Animals and machines, told apart by one word of each sentence.
std::string small_table() {
  std::string table = "id\tsentence\tkind\n";
  for (const auto& [animal, machine] : std::vector<std::pair<std::string, std::string>>{
           {"cat", "car"}, {"dog", "train"}, {"horse", "lorry"}, {"cow", "tram"}})
    for (const std::string does : {"sleeps", "waits outside", "is old", "stands there"})
      table += "1\tthe " + animal + " " + does + "\tanimal\n2\tthe " + machine + " " + does + "\tmachine\n";
  return table;
}

const std::string columns = "--text sentence --label kind ",
                  form = columns + "--vocab-size 60 --layers 1 --heads 2 --d-model 16 --d-ff 32 ",
                  sizes = form + "--batch 8 ",
                  quick = sizes + "--dropout 0 --rate 0.005 --steps 120 --evaluate-every 120 ";

struct SmallTable {
  orrery::TemporaryFolder folder;
  std::string table = written(folder / "table.tsv", small_table()), model = folder / "model.safetensors";
  std::string begin = "classify train '" + table + "' --valid '" + table + "' ", train = begin + quick;
};

}  // namespace

TEST_CASE("classify learns a small table; eval and run agree with it, and name what they are least sure of") {
  const SmallTable small;
  const std::string log = small.folder / "log.jsonl";
  const std::string told = trained(small.train + "--log '" + log + "' --save '" + small.model + "'");
  CHECK(contains(run("report '" + log + "'").text, "\nanimal          16            0             1.0000\nmachine "));
  CHECK(contains(told, "32 texts to learn, 32 to validate with\n2 labels: animal (16), machine (16)\n"));
  CHECK(contains(told, "\naccuracy 1.0000  macro F1 1.0000  in "));
  const std::string load = " --load '" + small.model + "'";
  const Result judged = run("classify eval '" + small.table + "'" + load);
  CHECK(line(judged.text, 0) == "accuracy 1.0000  macro F1 1.0000  ");
  CHECK(contains(judged.text, "\nanimal          16            0             1.0000\n"));
  CHECK(contains(judged.text, "\nmachine         0             16            1.0000\n"));
  const std::string lines =
      "printf 'the tram is old\\n\\nthe cow waits outside\\n' | " + quoted_program + "classify run";
  const Result said = shell(lines + load + " 2>/dev/null");
  CHECK(line(said.text, 0).starts_with("machine\t0.9"));
  CHECK(line(said.text, 0).ends_with("\tthe tram is old"));
  CHECK(line(said.text, 1) == "");
  CHECK(line(said.text, 2).starts_with("animal\t0.9"));
  CHECK(contains(shell(lines + load + " 2>&1 >/dev/null").text, "1 line is empty, too long or not UTF-8 (line 2)"));
  const std::string sure = line(said.text, 0).substr(8, 6), other = line(said.text, 2).substr(7, 6);
  const Result unsure = shell(lines + load + " --unsure 1 2>/dev/null");
  CHECK(
      contains("machine\t" + sure + "\tline 1\tthe tram is old\nanimal\t" + other + "\tline 3\tthe cow waits outside\n",
               unsure.text));
  CHECK(contains(unsure.text, "\t" + std::min(sure, other) + "\t"));
  CHECK(std::count(unsure.text.begin(), unsure.text.end(), '\n') == 1);
  CHECK(contains(run("inspect '" + small.model + "'").text, "a model of "));
  const Result vectors = shell("printf 'the cow\\n\\n' | " + quoted_program + "embed" + load + " 2>/dev/null");
  CHECK(vectors.exit_code == 0);
  CHECK(std::count(vectors.text.begin(), vectors.text.end(), ' ') == 2 * 15);
  const std::string plants =
      written(small.folder / "other.tsv", "sentence\tkind\nthe cow is old\tanimal\n\nthe tram is old\tplant\n");
  const Result unseen = run("classify eval '" + plants + "'" + load, "2>&1");
  CHECK(contains(unseen.text, "accuracy 0.5000  macro F1 0.3333  \n"));
  CHECK(contains(unseen.text, "the model never saw the label of 1 answer, which counts as wrong: plant\n"));
  CHECK(contains(unseen.text, "other.tsv: 1 empty line is left out\n"));
  const Result wrong = run("classify eval '" + plants + "'" + load + " --wrong 9");
  const size_t at = wrong.text.find("answer\tprobability\tright\tplace\ttext\nmachine\t0.9");
  REQUIRE(at != wrong.text.npos);
  CHECK(wrong.text.ends_with("\tplant\trow 2 (line 4)\tthe tram is old\n"));
  CHECK(std::count(wrong.text.begin() + static_cast<std::ptrdiff_t>(at), wrong.text.end(), '\n') == 2);
}

TEST_CASE("a training of labels that was stopped ends with the bits of an uninterrupted one") {
  const SmallTable small;
  const std::string held_out =
      "classify train '" + small.table + "' " + sizes + "--dropout 0.1 --steps 100 --evaluate-every 40 ";
  const std::string whole = trained_hash(held_out + "--hash");
  CHECK(trained_hash(held_out + "--hash --threads 2") == whole);
  CHECK(trained_hash(held_out + "--hash --seed 2") != whole);
  CHECK(resumed_hash(held_out, small.model) == whole);
  CHECK(contains(errors(held_out).text, "29 texts to learn, 3 held out of them, drawn by the seed"));
}

TEST_CASE("a tenth of the texts is held out; equal texts stay together, and frequent ones are learned") {
  const SmallTable small;
  const auto parts = [&](int frequent, int pairs) {
    std::string table = "text\tlabel\n" + repeated("the cow\tcow\n", frequent);
    for (int i = 0; i < pairs; ++i)
      table += repeated("dog " + std::to_string(i) + "\t" + std::to_string(i % 2) + "\n", 2);
    return errors("classify train '" + written(small.folder / "equal.tsv", table) +
                  "' --vocab-size 60 --layers 1 --heads 2 --d-model 16 --d-ff 32 --steps 1")
        .text;
  };
  CHECK(contains(parts(20, 20), "54 texts to learn, 6 held out of them, drawn by the seed"));
  CHECK(contains(parts(0, 2), "2 texts to learn, 2 held out of them, drawn by the seed"));
}

TEST_CASE("--init starts from another model, with its tokens and sizes and a new head") {
  const SmallTable small;
  REQUIRE(run(small.train + "--max-tokens 40 --save '" + small.model + "'").exit_code == 0);
  const std::string three =
      written(small.folder / "three.tsv", "text\tlabel\na cat\t1\na dog\t2\na tram\t3\nthe cow\t1\n");
  const std::string init = "classify train '" + three + "' --init '" + small.model + "' ",
                    saved = small.folder / "three.safetensors";
  const std::string told = trained(init + "--steps 2 --save '" + saved + "'");
  CHECK(contains(told, "  not in it: classifier.weight, classifier.bias\n"));
  CHECK(contains(told, "3 labels: 1 ("));
  const auto tokens = [](const std::string& path) { return orrery::read_safetensors_metadata(path).at("vocabulary"); };
  CHECK(tokens(saved) == tokens(small.model));
  check_usage_error(init + "--layers 3", "--layers", "--init");
  check_usage_error(init + "--max-tokens 41", "--max-tokens", "40");
  orrery::TensorFile file = orrery::read_safetensors(small.model);
  const auto erased =
      std::erase_if(file.tensors, [](const auto& each) { return contains(each.first, "layer.0.output.dense.weight"); });
  CHECK(erased == 1);
  const std::string lacking = small.folder / "lacking.safetensors";
  orrery::write_safetensors(lacking, file.tensors, file.metadata);
  check_failure(quoted_program + "classify train '" + three + "' --init '" + lacking + "' --steps 2",
                "layer.0.output.dense.weight");
}

TEST_CASE("--init keeps a classifier only of the same labels") {
  const SmallTable small;
  REQUIRE(run(small.train + "--save '" + small.model + "'").exit_code == 0);
  const auto distance = [&](const std::string& table) {
    const std::string saved = small.folder / "started.safetensors";
    const Result trained = run("classify train '" + written(small.folder / "two.tsv", table) + "' --init '" +
                                   small.model + "' --steps 1 --overwrite --save '" + saved + "'",
                               "2>&1");
    CHECK(trained.exit_code == 0);
    CHECK(contains(trained.text, "other labels: its classifier is left out") == contains(table, "alive"));
    const auto classifier = [](const std::string& path) {
      return orrery::read_safetensors(path).tensors.at("classifier.weight");
    };
    return orrery::sum_of_squares(classifier(saved) - classifier(small.model));
  };
  CHECK(distance("text\tlabel\na cat\tanimal\na tram\tmachine\nthe cow\tanimal\n") < 1e-5);
  CHECK(distance("text\tlabel\na cat\talive\na tram\tmachine\nthe cow\talive\n") > 1e-3);
}

TEST_CASE("--minutes chooses the batch of classify and no more steps than are worth it; --epochs or --steps is typed") {
  const SmallTable small;
  const Result fitted = run(small.begin + form + "--minutes 2", "2>&1");
  CAPTURE(fitted.text);
  CHECK(fitted.exit_code == 0);
  CHECK(contains(fitted.text, "chosen: batches of 8, rate "));
  CHECK(contains(fitted.text, ", 1000 steps, 250 epochs\n"));
  CHECK(contains(fitted.text, "the same again: orrery classify train "));
  check_usage_error(small.begin + "--minutes 1 --batch 8", "--batch", " excludes --minutes");
  check_usage_error(small.begin + "--epochs 2 --steps 3", "--epochs", "--steps");
  const std::string config = written(small.folder / "steps.json", R"({"steps": 3})");
  const Result printed = run(small.begin + "--config '" + config + "' --epochs 2 --print-config");
  CHECK(contains(printed.text, "\"epochs\": 2"));
  CHECK_FALSE(contains(printed.text, "\"steps\""));
}

TEST_CASE("what is wrong with a table or a model is said in a line, with file and row") {
  const SmallTable small;
  const auto table = [&](const std::string& text) { return "'" + written(small.folder / "wrong.tsv", text) + "'"; };
  const auto train = [&](const std::string& text) { return quoted_program + "classify train " + table(text); };
  check_failure(train("text\tkind\na\tb\n"),
                "wrong.tsv has no column 'label'; its columns are text, kind; choose one with --label");
  check_failure(train("text\tlabel\na\tb\n \tb\n"), "wrong.tsv, row 2 (line 3): 'text' is empty");
  check_failure(train("text\tlabel\na\tb\n \tb\nc\t\n"),
                "wrong.tsv, row 2 (line 3): 'text' is empty, the first of 2 empty fields");
  check_failure(train("text\tlabel\na\tb\nc\tb\n"), "wrong.tsv has only one label, 'b'");
  std::string ids;
  for (int i = 0; i < 1001; ++i) ids += "a\t" + std::to_string(i) + "\n";
  check_failure(train("text\tlabel\n" + ids), "wrong.tsv has more than 1000 different labels: is it the right column?");
  check_failure(train("text\tlabel\na\tb\na\tc\n"), "too few different texts");
  REQUIRE(run(small.begin + sizes + "--steps 2 --save '" + small.model + "'").exit_code == 0);
  const std::string load = " --load '" + small.model + "'";
  check_failure(quoted_program + "classify train '" + small.table + "' " + columns + "--valid " +
                    table("sentence\tkind\nthe cat\tplant\n"),
                "wrong.tsv, row 1 (line 2): 'plant' is none of the model's, animal, machine");
  check_failure(quoted_program + "tag run" + load, "was not saved by orrery tag, but by orrery 'classify'");
  const orrery::TensorFile file = orrery::read_safetensors(small.model);
  orrery::Metadata bare = file.metadata;
  bare.erase("vocabulary");
  const std::string without = small.folder / "without.safetensors";
  orrery::write_safetensors(without, file.tensors, bare);
  check_failure(quoted_program + "classify run --load '" + without + "'", "vocab.txt");
  check_usage_error("classify train " + table("a\tlabel\n1\t2\n") + " --text label", "--label",
                    "names the same column as --text");
}

TEST_CASE("an exported classifier is a folder of Hugging Face's, and says the same of every line") {
  const SmallTable small;
  const std::string out = small.folder / "out", load = " --load '" + small.model + "'";
  const std::string vocabulary =
      "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\ncar\ndog\ntrain\nhorse\nlorry\ncow\ntram\nis\nold\n##s\n";
  const std::string words = written(small.folder / "vocab.txt", vocabulary);
  REQUIRE(run(small.train + "--vocab '" + words + "' --save '" + small.model + "'").exit_code == 0);
  const Result exported = run("classify export" + load + " --save '" + out + "'");
  CHECK(exported.exit_code == 0);
  CHECK(exported.text == out + " has a BertForSequenceClassification and its vocab.txt\n");
  CHECK(contents(out + "/vocab.txt") == vocabulary);
  CHECK(contains(contents(out + "/tokenizer_config.json"), "\"do_lower_case\": true"));
  CHECK(contains(contents(out + "/config.json"), "\"0\": \"animal\""));
  const orrery::TensorFile ours = orrery::read_safetensors(small.model), theirs = orrery::read_safetensors(out);
  CHECK(theirs.metadata.at("format") == "pt");
  CHECK_FALSE(theirs.metadata.contains("options"));  // names of files are nobody else's business
  CHECK(ours.tensors.size() == theirs.tensors.size());
  for (const auto& each : ours.tensors) CHECK(orrery::same_bits(each.second, theirs.tensors.at(each.first)));
  const auto said = [&](const std::string& model) {
    return shell("printf 'the tram is old\\nthe Cows\\n' | " + quoted_program + "classify run --load '" + model +
                 "' 2>/dev/null")
        .text;
  };
  CHECK(said(out) == said(small.model));
  CHECK(said(out).starts_with("machine\t"));
  check_failure(quoted_program + "classify export" + load + " --save '" + out + "'", "exists; name another folder");
  check_usage_error("classify export" + load, "--save", "required");
  REQUIRE(run(small.train + "--overwrite --save '" + small.model + "'").exit_code == 0);
  const Result pieces = run("classify export" + load + " --save '" + (small.folder / "other") + "'");
  CHECK(contains(pieces.text, "without a tokenizer: its pieces are SentencePiece's"));
}
