// Chapter 9. A picture of attention weights: shades of grey, two characters for each cell to make it look square. Means
// over the steps of a training, with the two losses they lie between. The data of the page that computes.

#include "apps/tasks/toy/figures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

#include "apps/program/shipped_files.h"
#include "apps/training/recipe.h"
#include "core/files/json.h"

namespace orrery {
namespace {

std::vector<std::string> labels(const ToyTask& task, const Sequence& tokens) {
  std::vector<std::string> result;
  for (i32 token : tokens) {
    const bool begins = token == task.begin && !task.begin_is_symbol;
    if (token == task.end)
      result.push_back(".");
    else
      result.push_back(begins ? "^" : task.text({token}));
  }
  return result;
}

// The first `rows` queries and `columns` keys of a head, from weights [1, h, n, m].
std::vector<std::vector<double>> head_weights(const Tensor& weights, i64 head, size_t rows, size_t columns) {
  std::vector<std::vector<double>> result(rows, std::vector<double>(columns));
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j) result[i][j] = weights(0, head, static_cast<i64>(i), static_cast<i64>(j));
  return result;
}

// The weights of each head of each layer, for this many queries and keys.
std::vector<HeadMap> heads_of(const std::vector<Tensor>& layers, size_t rows, size_t columns) {
  std::vector<HeadMap> result;
  for (size_t layer = 0; layer < layers.size(); ++layer)
    for (i64 head = 0; head < layers[layer].size(1); ++head)
      result.push_back({.layer = static_cast<int>(layer),
                        .head = static_cast<int>(head),
                        .weights = head_weights(layers[layer], head, rows, columns)});
  return result;
}

// The decoder's input is the target without its last token.
AttentionMaps maps_of(const nn::Transformer& model, const ToyTask& task, const Sequence& source,
                      const Sequence& input) {
  return attention_maps(model, batch_of({source}, task.source_length(), task.pad),
                        batch_of({input}, static_cast<i64>(input.size()), task.pad));
}

// What the decoder reads and what it writes for the right answer: the target without its last and its first token.
struct RightAnswer {
  Sequence input, written;
};
RightAnswer right_answer(const ToyTask& task, const Sequence& source) {
  const Sequence target = task.target(source);
  return {{target.begin(), target.end() - 1}, {target.begin() + 1, target.end()}};
}

}  // namespace

double sharpness(const std::vector<std::vector<double>>& weights) {
  double total = 0;
  for (const std::vector<double>& row : weights) total += row.empty() ? 0 : *std::max_element(row.begin(), row.end());
  return weights.empty() ? 0 : total / static_cast<double>(weights.size());
}

AttentionFigure sharpest_head(const nn::Transformer& model, const ToyTask& task, const Sequence& source) {
  const auto [input, written] = right_answer(task, source);
  AttentionFigure best{
      .task = task.name, .written = labels(task, written), .read = labels(task, source), .weights = {}};
  const AttentionMaps maps = maps_of(model, task, source, input);
  for (HeadMap& map : heads_of(maps.decoder_cross, written.size(), source.size())) {
    if (!best.weights.empty() && sharpness(map.weights) <= sharpness(best.weights)) continue;
    best.layer = map.layer;
    best.head = map.head;
    best.weights = std::move(map.weights);
  }
  return best;
}

HeadsFigure every_head(const nn::Transformer& model, const ToyTask& task, const Sequence& source) {
  const auto [input, written] = right_answer(task, source);
  const AttentionMaps maps = maps_of(model, task, source, input);
  return {.task = task.name,
          .source = labels(task, source),
          .input = labels(task, input),
          .written = labels(task, written),
          .encoder = heads_of(maps.encoder, source.size(), source.size()),
          .decoder_self = heads_of(maps.decoder_self, input.size(), input.size()),
          .decoder_cross = heads_of(maps.decoder_cross, written.size(), source.size())};
}

AttentionPage attention_page(const nn::Transformer& model, const ToyTask& task, const std::vector<Sequence>& sources) {
  AttentionPage page("What every head of the toy reads (task: " + task.name + ")",
                     "A Transformer of " + std::to_string(model.config.parameter_count()) +
                         " parameters, while its decoder is given the right answer. ^ begins an answer, . ends it.");
  for (const Sequence& source : sources) {
    const auto [input, written] = right_answer(task, source);
    if (!page.has_room(attention_weights(model.config, std::ssize(source), std::ssize(input)))) break;
    page.add(task.text(source), task.text(written),
             shown_attentions(maps_of(model, task, source, input), labels(task, source), labels(task, input),
                              labels(task, written)));
  }
  return page;
}

namespace {

std::string base64(std::span<const std::byte> bytes) {
  static constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    unsigned bits = 0;
    for (size_t k = 0; k < 3; ++k) bits = bits << 8 | (k < count ? std::to_integer<unsigned>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) text += k <= count ? digits[bits >> (18 - 6 * k) & 63u] : '=';
  }
  return text;
}

// How each token is shown.
std::vector<std::string> token_words(const ToyTask& task) {
  Sequence all(static_cast<size_t>(task.vocab_size()));
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::string> words = labels(task, all);
  words[static_cast<size_t>(task.pad)] = "pad";
  return words;
}

// The task as its own JSON, which the page's script reads, and what follows from it.
Json page_data(const ToyTask& task) {
  constexpr int asked = 100;
  Json data = parse_json_object(to_json(task), "toy");
  data["alphabet"] = task.alphabet();
  data["lengths"] = task.lengths();
  data["longest"] = task.target_length() - 1;
  data["as_letters"] = task.as_letters();
  data["words"] = token_words(task);
  Rng numbers = random_numbers(1, Purpose::held_out);
  for (int i = 0; i < asked; ++i) data["exam"].push_back(task.draw(numbers, true));
  return data;
}

}  // namespace

std::string refused_by_page(const nn::TransformerConfig& config, const ToyTask& task) {
  constexpr i64 most_parameters = 4'000'000, most_weights = AttentionPage::most_weights;
  const auto refused = [](const std::string& what, i64 most, i64 count) {
    return count <= most ? "" : "takes at most " + std::to_string(most) + what + ", not " + std::to_string(count);
  };
  const nn::LayerOptions layers = config.layers();
  if (layers.activation != nn::Activation::relu || layers.layer_norm_form != LayerNormForm::root_of_variance_plus_eps)
    return "computes with ReLU, and norms that divide by sqrt(var + eps), alone";
  const std::string too_large = refused(" parameters", most_parameters, config.parameter_count());
  if (!too_large.empty()) return too_large;
  return refused(" weights of heads", most_weights,
                 attention_weights(config, task.source_length(), task.target_length() - 1));
}

std::string toy_page(nn::Transformer& model, const ToyTask& task) {
  const std::string refused = refused_by_page(model.config, task);
  check(refused.empty(), "toy", "the page ", refused);
  Json data = page_data(task);
  data["config"] = parse_json_object(nn::to_json(model.config), "toy");
  std::vector<float> numbers;
  for (const NamedParameter& p : model.named_parameters()) {
    const Tensor& values = p.value.value();
    data["parameters"].push_back(
        {{"name", p.name}, {"shape", std::vector<i64>(values.shape().begin(), values.shape().end())}});
    for (i64 i = 0; i < values.count(); ++i) numbers.push_back(static_cast<float>(values.at(i)));
  }
  check(std::all_of(numbers.begin(), numbers.end(), [](float x) { return std::isfinite(x); }), "toy",
        "the page needs parameters that are all finite");
  data["numbers"] = base64(std::as_bytes(std::span(numbers)));
  std::string page = html_page("apps/show/playground", json_in_script(json_text(data)));
  fill_in(page, "/* model.js */", shipped_text("apps/show/playground/model.js"));
  return page;
}

void print_attention(std::ostream& out, const AttentionFigure& figure) {
  static constexpr std::array<std::string_view, 5> shades{"  ", "░░", "▒▒", "▓▓", "██"};
  size_t width = 1;
  for (const std::string& label : figure.written) width = std::max(width, label.size());
  const std::string margin(width + 3, ' ');
  out << margin << ' ';
  for (const std::string& label : figure.read) out << std::left << std::setw(2) << label.substr(0, 2);
  out << '\n';
  for (size_t i = 0; i < figure.written.size(); ++i) {
    out << "  " << std::right << std::setw(static_cast<int>(width)) << figure.written[i] << " |";
    for (const double weight : figure.weights[i]) {
      const double steps = static_cast<double>(shades.size());
      out << shades[static_cast<size_t>(std::clamp(weight * steps, 0.0, steps - 1))];
    }
    out << "|\n";
  }
}

double least_loss(i64 classes, double smoothing) {
  const double K = static_cast<double>(classes), other = smoothing / K, right = 1 - smoothing + other;
  const auto term = [](double p) { return p > 0 ? -p * std::log(p) : 0; };
  return term(right) + (K - 1) * term(other);
}

LossFigure loss_curve(const ToyRecipe& recipe, const std::vector<StepResult>& steps) {
  constexpr size_t most_points = 120;
  const size_t every = (steps.size() + most_points - 1) / most_points;
  const i64 classes = recipe.task.vocab_size();
  LossFigure figure{.task = recipe.task.name,
                    .steps = static_cast<int>(steps.size()),
                    .every = static_cast<int>(every),
                    .guess = std::log(static_cast<double>(classes)),
                    .least = least_loss(classes, recipe.smoothing),
                    .loss = {},
                    .accuracy = {}};
  for (size_t begin = 0; begin < steps.size(); begin += every) {
    const size_t end = std::min(steps.size(), begin + every);
    double loss = 0, accuracy = 0;
    for (size_t i = begin; i < end; ++i) {
      loss += steps[i].loss;
      accuracy += steps[i].accuracy.value_or(0);
    }
    figure.loss.push_back(loss / static_cast<double>(end - begin));
    figure.accuracy.push_back(accuracy / static_cast<double>(end - begin));
  }
  return figure;
}

}  // namespace orrery
