// Chapter 9. Tests of `orrery embed`: vectors against the pooling written down again, the nearest lines, and errors;
// all-MiniLM-L6-v2 against PyTorch, if the environment variable ORRERY_MINILM names its folder (apps/tasks/README.md).
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/data/word_piece.h"
#include "core/files/file.h"
#include "core/files/json.h"
#include "nn/files/bert_files.h"
#include "nn/files/files.h"
#include "tests/apps/run_program.h"

using namespace orrery::program;
using namespace orrery;

namespace {

constexpr const char* words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\ndog\nruns\nbig\n##ger\n.\n";
const std::string sentences = "a dog runs.\nbig bigger dog\n\na dog runs .\nthe cat\n";

// A folder as Hugging Face has it, of a model with random weights.
struct Folder {
  TemporaryFolder folder;
  std::string path = folder.path().string(), model = folder / "model.safetensors", text = folder / "text";
  nn::BertConfig config{
      .vocab_size = 11, .layer = {.d_model = 8, .num_heads = 2, .d_ff = 12}, .num_layers = 2, .max_positions = 9};
  nn::Bert bert = built();

  Folder() {
    nn::save(static_cast<nn::Module&>(bert), model);
    set_contents(folder / "config.json", nn::published_json(config));
    set_contents(folder / "vocab.txt", words);
    set_contents(text, sentences);
  }
  nn::Bert built() const {
    Rng rng(4);
    nn::Bert made(config, rng);
    for (NamedParameter& p : made.parameters()) copy_into(p.value.mutable_value(), randn(p.value.shape(), rng));
    return made;
  }
  std::string embed(const std::string& options = "") const { return "embed --load '" + path + "' " + options; }
};

std::vector<double> numbers_in(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<double>(in), {}};
}

}  // namespace

TEST_CASE("embed prints the mean of each line's hidden states, scaled to length 1, whatever its batch") {
  Folder f;
  const Result result = run(f.embed("< '" + f.text + "'"));
  REQUIRE(result.exit_code == 0);
  nn::to(f.bert, f64);
  const WordPiece pieces(words);
  std::istringstream lines(sentences);
  int row = 0;
  for (std::string one; std::getline(lines, one); ++row) {
    const std::vector<i32> ids = pieces.read(one, 9).ids;
    nn::Pass pass;
    const Tensor hidden = f.bert.hidden(Tensor::of<i32>({1, std::ssize(ids)}, ids), {}, pass).value();
    const Tensor mean = sum(hidden, {0, 1}) / static_cast<double>(ids.size());
    const Tensor vector = mean / std::sqrt(sum_of_squares(mean));
    const std::vector<double> printed = numbers_in(line(result.text, row));
    REQUIRE(printed.size() == 8);
    for (i64 i = 0; i < 8; ++i) CHECK(std::abs(printed[static_cast<size_t>(i)] - vector.at(i)) < 2e-6);
  }
  CHECK(row == 5);
  CHECK(line(run(f.embed("--ids < '" + f.text + "'")).text, 1) == "2 8 8 9 6 3");
}

TEST_CASE("embed --attention writes a page of what every head reads, word by word") {
  Folder f;
  const std::string page = f.folder / "heads.html";
  const Result result = run(f.embed("--attention '" + page + "' < '" + f.text + "'"));
  REQUIRE(result.exit_code == 0);
  CHECK(result.text == "");
  const std::string html = contents(page);
  const std::string begin = "<script id=\"page-data\" type=\"application/json\">";
  const size_t at = html.find(begin);
  REQUIRE(at != html.npos);
  const size_t from = at + begin.size();
  const nlohmann::json pairs =
      nlohmann::json::parse(html.substr(from, html.find("</script>", from) - from)).at("pairs");
  REQUIRE(pairs.size() == 5);
  const nlohmann::json& shown = pairs[1].at("attentions").at(0);
  CHECK(shown.at("rows") == nlohmann::json{"[CLS]", "big", "big", "##ger", "dog", "[SEP]"});
  nn::Pass pass;
  nn::AttentionRecorder seen;
  pass.recorder = &seen;
  f.bert.hidden(Tensor::of<i32>({1, 6}, {2, 8, 8, 9, 6, 3}), {}, pass);
  REQUIRE(shown.at("layers").size() == 2);
  const Tensor last = seen.of(*f.bert.encoder.layers[1].self_attn);
  for (i64 head = 0; head < 2; ++head)
    for (i64 i = 0; i < 6; ++i)
      for (i64 k = 0; k < 6; ++k)
        CHECK(std::abs(shown["layers"][1][static_cast<size_t>(head)][static_cast<size_t>(i)][static_cast<size_t>(k)]
                               .get<double>() /
                           10'000 -
                       last(0, head, i, k)) < 1e-4);
  check_usage_error("embed --load x --attention y --ids", "--ids", "--attention");
  check_failure("printf '' | " + quoted_program + f.embed("--attention '" + (f.folder / "none.html") + "'"),
                "is not written: there is no line");
}

TEST_CASE("embed --nearest prints the nearest lines of a file with their cosines, the best first") {
  Folder f;
  const Result result = run("embed --load '" + f.model + "' --nearest '" + f.text + "' --top 2 < '" + f.text + "'");
  REQUIRE(result.exit_code == 0);
  CHECK(line(result.text, 0) == "a dog runs.\t1.000000\ta dog runs.");
  CHECK(line(result.text, 1) == "a dog runs.\t1.000000\ta dog runs .");
  CHECK(line(result.text, 2) == "big bigger dog\t1.000000\tbig bigger dog");
  CHECK(std::count(result.text.begin(), result.text.end(), '\n') == 5 * 2);
  const Result cut = errors(f.embed("--max-tokens 4 < '" + f.text + "'"));
  CHECK(contains(cut.text, "warning: 3 lines of standard input (line 1 is the first) were cut to 4 tokens\n"));
}

TEST_CASE("embed says in one line what is wrong with a folder, a file or a line") {
  Folder f;
  const std::string command = quoted_program + f.embed() + " < '" + f.text + "'";
  const auto fails_with = [&](const std::string& name, const std::string& contents, const std::string& message) {
    const std::string path = f.folder / name, before = orrery::contents(path);
    set_contents(path, contents);
    check_failure(command, message);
    set_contents(path, before);
  };
  check_failure("printf 'a\\n\\377\\n' | " + quoted_program + f.embed("--ids"),
                "read standard input: line 2: text: is not UTF-8: byte 1");
  const std::string weights = contents(f.model);
  fails_with("model.safetensors", weights.substr(0, weights.size() - 100), "read " + f.model + ": ");
  nn::BertConfig other = f.config;
  other.type_vocab_size = 3;
  fails_with("config.json", nn::published_json(other), "embeddings.token_type_embeddings.weight is f32 [2, 8] in the");
  fails_with("config.json", "{\"model_type\": \"roberta\"}",
             "config.json: model_type must be \"bert\", not \"roberta\"");
  std::filesystem::create_directory(f.folder / "1_Pooling");
  fails_with("1_Pooling/config.json", "{\"pooling_mode_cls_token\": true}", "only pooling_mode_mean_tokens is known");
  set_contents(f.folder / "1_Pooling/config.json", "{\"pooling_mode_mean_tokens\": true}");
  fails_with("1_Pooling/config.json", "{\"pooling_mode_mean_tokens\": 1}", "must be true or false, not 1");
  fails_with("vocab.txt", "a\n", "vocab.txt: WordPiece: the vocabulary has no [PAD]");
  fails_with("vocab.txt", std::string(words) + "more\n", "the vocabulary has 12 tokens, the model only 11");
  std::filesystem::remove(f.folder / "vocab.txt");
  check_failure(command, "vocab.txt");
  check_usage_error(f.embed("--ids --nearest x"), "--ids", "--nearest");
}

TEST_CASE("all-MiniLM-L6-v2 has the tokens and vectors of PyTorch") {
  const char* const folder = std::getenv("ORRERY_MINILM");
  if (!folder) return;
  const Json reference = Json::parse(InputFile(ORRERY_SOURCE_DIR "/tests/fixtures/minilm.json").text());
  const TemporaryFolder temporary;
  std::string text;
  for (const Json& sentence : reference["sentences"]) text += sentence["text"].get<std::string>() + "\n";
  const std::string command =
      "embed --load '" + std::string(folder) + "' < '" + written(temporary / "text", text) + "'";
  const Result ids = run(command + " --ids"), vectors = run(command);
  std::vector<std::vector<double>> all;
  for (size_t i = 0; i < reference["sentences"].size(); ++i) {
    const Json& sentence = reference["sentences"][i];
    CHECK(numbers_in(line(ids.text, static_cast<int>(i))) == sentence["ids"].get<std::vector<double>>());
    all.push_back(numbers_in(line(vectors.text, static_cast<int>(i))));
    REQUIRE(all.back().size() == 384);
    for (size_t k = 0; k < 8; ++k)
      CHECK(std::abs(all.back()[k] - sentence["embedding_first8"][k].get<double>()) < 1e-6);
    for (size_t j = 0; j <= i; ++j)
      CHECK(std::abs(std::inner_product(all[i].begin(), all[i].end(), all[j].begin(), 0.0) -
                     reference["cosine"][i][j].get<double>()) < 1e-5);
  }
}
