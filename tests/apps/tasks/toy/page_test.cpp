// Chapter 9. Tests of the page in which a toy runs: what it holds, and in headless Chromium that it computes what the
// model computes, also with heads or positions switched off.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "apps/tasks/toy/figures.h"
#include "core/files/safetensors.h"
#include "core/random.h"
#include "tests/apps/chromium.h"
#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using browser::text_of_id;
using program::contains;
using program::quick_toy;

namespace {

const ToyTask five_symbols{.symbols = 5, .min_length = 2, .max_length = 6};

// A model for these, in which no parameter, not even a bias, is where it began.
nn::Transformer stirred(nn::TransformerConfig config) {
  config.src_vocab_size = config.tgt_vocab_size = five_symbols.vocab_size();
  config.max_len = five_symbols.target_length();
  Rng rng(5);
  nn::Transformer model(config, rng);
  for (NamedParameter& p : model.parameters()) {
    const Tensor noise = rand_uniform(p.value.shape(), -0.3, 0.3, rng, f32);
    float* values = p.value.mutable_value().write<float>();
    for (i64 i = 0; i < noise.count(); ++i) values[i] += noise.data<float>()[i];
  }
  return model;
}

// The paper's layers; and what they can be instead: norms first, learned positions, a table for all, heads of an own
// size, no biases.
nn::Transformer paper_model() {
  return stirred(
      {.layer = {.d_model = 12, .num_heads = 3, .d_ff = 20}, .num_encoder_layers = 2, .num_decoder_layers = 1});
}
nn::Transformer other_model() {
  return stirred(
      {.layer = {.d_model = 10, .num_heads = 2, .d_ff = 8, .d_k = 3, .d_v = 4, .norm_first = true, .bias = false},
       .num_encoder_layers = 1,
       .num_decoder_layers = 2,
       .final_norm = true,
       .share_embeddings = true,
       .positions = nn::Positions::learned});
}

nlohmann::json data_of(const std::string& page) {
  const std::string before = "<script id=\"page-data\" type=\"application/json\">";
  const size_t begin = page.find(before) + before.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

std::vector<float> floats_of(const std::string& base64) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned bits = 0;
  int waiting = 0;
  for (const char digit : base64.substr(0, base64.find('='))) {
    bits = bits << 6 | static_cast<unsigned>(digits.find(digit));
    waiting += 6;
    if (waiting < 8) continue;
    waiting -= 8;
    bytes += static_cast<char>(bits >> waiting & 255u);
  }
  std::vector<float> result(bytes.size() / sizeof(float));
  std::memcpy(result.data(), bytes.data(), result.size() * sizeof(float));
  return result;
}

}  // namespace

TEST_CASE("the page of the toy holds every parameter, the names of its tokens, and an exam that is held out") {
  nn::Transformer model = other_model();
  const std::string page = toy_page(model, five_symbols);
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK_FALSE(contains(page, "/* model.js */"));
  CHECK_FALSE(contains(page, "/* page."));
  const nlohmann::json data = data_of(page);
  CHECK(data.at("words") == nlohmann::json{"pad", "^", ".", "a", "b", "c", "d", "e"});
  CHECK(data.at("lengths") == "2 to 6");
  CHECK(data.at("alphabet") == "a to e");
  CHECK(data.at("longest") == 7);
  REQUIRE(data.at("exam").size() == 100);
  for (const nlohmann::json& sequence : data["exam"]) CHECK(is_held_out(sequence.get<Sequence>()));
  const std::vector<float> numbers = floats_of(data.at("numbers"));
  const Parameters parameters = model.named_parameters();
  REQUIRE(data.at("parameters").size() == parameters.size());
  size_t at = 0;
  bool same = true;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& values = parameters[i].value.value();
    CHECK(data["parameters"][i].at("name") == parameters[i].name);
    CHECK(data["parameters"][i].at("shape") ==
          nlohmann::json(std::vector<i64>(values.shape().begin(), values.shape().end())));
    for (i64 k = 0; k < values.count(); ++k) same = same && numbers.at(at++) == values.data<float>()[k];
  }
  CHECK(at == numbers.size());
  CHECK(same);
}

TEST_CASE("a model that is too large for a page, that computes otherwise or that is not finite is refused") {
  const nn::TransformerConfig base{.src_vocab_size = 16, .tgt_vocab_size = 16};
  CHECK(refused_by_page(base, {}).starts_with("takes at most 4000000 parameters, not 44"));
  nn::TransformerConfig small{.src_vocab_size = 16, .tgt_vocab_size = 16, .layer = {.d_model = 8, .d_ff = 8}};
  CHECK(refused_by_page(small, {}) == "");
  CHECK(refused_by_page(small, {.max_length = 512}).starts_with("takes at most 4000000 weights of heads, not 3"));
  small.layer.activation = nn::Activation::gelu;
  CHECK(contains(refused_by_page(small, {}), "computes with ReLU"));
  nn::Transformer broken = paper_model();
  broken.generator.bias.mutable_value()(0) = NAN;
  CHECK(small::error_of([&] { toy_page(broken, five_symbols); }) ==
        "toy: the page needs parameters that are all finite");
}

TEST_CASE("toy writes its page after the training, or that of a saved model, and tells before what cannot be written") {
  const TemporaryFolder folder;
  const std::string model = folder / "model", page = folder / "page.html", again = folder / "again.html";
  REQUIRE(program::run(quick_toy + "--save '" + model + "' --page '" + page + "'").exit_code == 0);
  CHECK(data_of(contents(page)).at("name") == "reverse");
  const std::string load = "toy --load '" + model + "' --page '";
  const program::Result made = program::run(load + again + "'", "2>&1 </dev/null");
  CHECK(made.exit_code == 0);
  CHECK(made.text == "");
  CHECK(contents(again) == contents(page));
  const std::string orrery = program::quoted_program, kept = contents(model);
  program::check_failure(orrery + load + model + "'", "is a file that holds a model");
  program::check_failure(orrery + load + "/nowhere/page.html'", "cannot write --page /nowhere/page.html");
  program::check_failure(orrery + quick_toy + "--page /nowhere/page.html", "cannot write --page /nowhere/page.html");
  program::check_failure(orrery + quick_toy + "--page '" + model + "'", "is a file that holds a model");
  program::check_failure(orrery + quick_toy + "--page '" + page + "' --losses '" + page + "'", "name the same file");
  CHECK(contents(model) == kept);
  program::check_usage_error("toy --preset annotated --page x", "--page", "takes at most 4000000 parameters");
  program::check_usage_error("toy --page ''", "--page", "must not be empty");
}

namespace {

// Without the positions, or without a head: its columns of out_proj are 0.
using Change = std::function<void(nn::Transformer&)>;
void set_to_zero(nn::Transformer& model, const std::string& name, i64 from, i64 to) {
  for (NamedParameter& p : model.named_parameters())
    for (i64 i = 0; p.name == name && i < p.value.size(0); ++i)
      for (i64 j = from; j < to; ++j) p.value.mutable_value()(i, j) = 0;
}
Change without_head(const std::string& attention, i64 head, i64 d_v) {
  return
      [=](nn::Transformer& model) { set_to_zero(model, attention + ".out_proj.weight", head * d_v, (head + 1) * d_v); };
}
void without_positions(nn::Transformer& model) {
  for (const std::string side : {"src", "tgt"})
    set_to_zero(model, side + "_positions.weight", 0, model.config.layer.d_model);
}

// What is switched off on the page, and the same of the model.
struct Case {
  std::string script;
  Change change;
};

// The page as Chromium leaves it after `script`, which may use what the page's own scripts define.
std::string dom_after(nn::Transformer& model, const ToyTask& task, const std::string& script) {
  std::string page = toy_page(model, task);
  page.insert(page.rfind("</body>"), "<script>" + script + "</script>");
  return browser::dom_of_page(page, "#en");
}

// The largest differences between the logits of the page and those of the model, in its own f32 and in f64, over
// several sequences in each case.
struct Differences {
  double f32 = 0, f64 = 0;
};
Differences differences(nn::Transformer& model, const std::vector<Case>& cases) {
  const std::vector<std::pair<Sequence, Sequence>> asked{
      {{3, 4, 5}, {1, 5, 4, 3}}, {{7, 7, 3, 6, 4, 5}, {1, 5, 4, 6, 3, 7, 7}}, {{6}, {1}}};
  std::string script = "{ const asked = " + nlohmann::json(asked).dump() + ", found = [];\n";
  for (const Case& each : cases)
    script += "off.heads.clear(); off.positions = false; " + each.script +
              ";\nfor (const [source, target] of asked) {\n"
              "  const pass = newPass(model, off), state = model.begin(model.encode(source, pass));\n"
              "  found.push(target.map((token) => [...model.next(token, state, pass)]));\n}\n";
  script += "byId('about').textContent = JSON.stringify(found); }";
  const nlohmann::json found = nlohmann::json::parse(text_of_id(dom_after(model, five_symbols, script), "about"));
  REQUIRE(found.size() == cases.size() * asked.size());
  Differences largest;
  size_t number = 0;
  for (const Case& each : cases) {
    nn::Transformer changed = model.clone();
    each.change(changed);
    nn::Transformer exact = changed.clone();
    nn::to(exact, Dtype::f64);
    for (const auto& [source, target] : asked) {
      const auto rows = found[number++].get<std::vector<std::vector<double>>>();
      const auto difference = [&rows = rows, &from = source, &to = target](const nn::Transformer& computed) {
        nn::Pass pass = nn::Pass::inference();
        const Tensor logits =
            computed(batch_of({from}, std::ssize(from), 0), batch_of({to}, std::ssize(to), 0), pass).value();
        double most = 0;
        for (i64 t = 0; t < logits.size(1); ++t)
          for (i64 k = 0; k < logits.size(2); ++k)
            most = std::max(most, std::abs(rows.at(static_cast<size_t>(t)).at(static_cast<size_t>(k)) -
                                           logits.at(t * logits.size(2) + k)));
        return most;
      };
      largest.f32 = std::max(largest.f32, difference(changed));
      largest.f64 = std::max(largest.f64, difference(exact));
    }
  }
  return largest;
}

Case head_off(const std::string& name, const std::string& attention, i64 head, i64 d_v) {
  return {"off.heads.add('" + name + " " + std::to_string(head) + "')", without_head(attention, head, d_v)};
}

}  // namespace

TEST_CASE("browser: the page's logits are those of the model within 1e-5, with any head or the positions off") {
  nn::Transformer paper = paper_model(), other = other_model();
  const auto unchanged = [](nn::Transformer&) {};
  const Differences of_paper = differences(paper, {{"", unchanged},
                                                   head_off("encoder 1", "encoder.layers.1.self_attn", 2, 4),
                                                   head_off("decoder 0", "decoder.layers.0.self_attn", 0, 4),
                                                   head_off("cross 0", "decoder.layers.0.multihead_attn", 1, 4)});
  const Differences of_other = differences(other, {{"", unchanged},
                                                   {"off.positions = true", without_positions},
                                                   head_off("cross 1", "decoder.layers.1.multihead_attn", 0, 4)});
  for (const Differences& each : {of_paper, of_other}) {
    MESSAGE("largest difference from the model in f32: " << each.f32 << ", in f64: " << each.f64);
    CHECK(each.f32 < 1e-5);
    CHECK(each.f64 < 1e-9);
  }
}

namespace {

// A copier that learns most of its task in a moment.
ToyRecipe copier() {
  ToyRecipe recipe;
  recipe.task = {.name = "copy", .symbols = 4, .min_length = 2, .max_length = 4};
  recipe.model.layer.d_model = 32;
  recipe.model.layer.d_ff = 64;
  recipe.model.num_encoder_layers = recipe.model.num_decoder_layers = 1;
  recipe.steps = 200;
  recipe.batch = 32;
  recipe.warmup = 100;
  return recipe;
}

i64 right_answers(const nn::Transformer& model, const ToyTask& task) { return examine(model, task, 100, 1).right; }

}  // namespace

TEST_CASE("browser: a head switches off on the page as in the model, steps go back, and a weight is told") {
  const ToyRecipe recipe = copier();
  ToyTraining training(recipe);
  while (!training.trainer.finished()) training.trainer.step();
  nn::Transformer& model = training.task.model;
  nn::Transformer without = model.clone();
  without_head("decoder.layers.0.multihead_attn", 1, 8)(without);
  const i64 before = right_answers(model, recipe.task), after = right_answers(without, recipe.task);
  CHECK(before > after);
  const std::string whole =
      dom_after(model, recipe.task, "ask(parsed('abcd').tokens); byId('back').click(); byId('back').click();");
  const std::string clicked = dom_after(model, recipe.task,
                                        "document.querySelector('[data-name=\"cross 0 1\"] input').click();"
                                        "ask(parsed('abcd').tokens); document.querySelector('#weights td')"
                                        ".dispatchEvent(new MouseEvent('pointermove', {bubbles: true}));");
  CHECK(text_of_id(whole, "exam-result") == std::to_string(before) + " of 100 right");
  CHECK(text_of_id(clicked, "exam-result") == std::to_string(after) + " of 100 right");
  CHECK(program::times(whole, "class=\"head off\"") == 0);
  CHECK(program::times(clicked, "class=\"head off\"") == 1);
  CHECK(program::times(whole, "<canvas") == 12);
  CHECK(program::times(whole, "<li class=\"later") == 2);  // tokens that are not written any more, two steps back
  CHECK(text_of_id(clicked, "tip").starts_with("to write "));
  CHECK(text_of_id(whole, "about").starts_with("It has learned to copy sequences of 2 to 4 symbols, a to d. Its "));
}

TEST_CASE("browser: the page is in Chinese where it should be, and then leaves no text of its own in English") {
  nn::Transformer model = paper_model();
  std::string page = toy_page(model, five_symbols);
  page.insert(page.rfind("</body>"), R"html(<p id="english"></p><script>{
    const said = [];
    for (const each of document.querySelectorAll("body :not(script, #language)"))
      said.push(each.title, each.getAttribute("aria-label"), ...[...each.childNodes].map((node) => node.nodeValue));
    const isEnglish = (text) => text && /[a-z]{4}/i.test(text) && !/[一-龥]/.test(text);
    byId("english").textContent = said.filter(isEnglish).join("|");
  }</script>)html");
  const std::string english = browser::dom_of_page(page, "#en"), chinese = browser::dom_of_page(page, "#zh");
  CHECK(text_of_id(english, "language") == "中文");
  CHECK(text_of_id(english, "english").starts_with("A Transformer to touch|It has learned to reverse sequences of "));
  CHECK(text_of_id(chinese, "language") == "English");
  CHECK(text_of_id(chinese, "about").starts_with("它学会了把 2 到 6 个符号（a 到 e）的序列倒过来写。"));
  CHECK(text_of_id(chinese, "english") == "");
}
