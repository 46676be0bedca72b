// Chapter 9. BERTs in files: what Hugging Face calls each field, and which parts a file may lack.
#include "nn/files/bert_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "core/files/file.h"
#include "core/files/shards.h"
#include "nn/files/files.h"
#include "nn/files/names.h"
#include "nn/models/config_json.h"

namespace orrery::nn {
namespace {

constexpr const char *labels_field = "id2label", *activation_field = "hidden_act";

// Our fields and theirs.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> fields{{
    {"vocab_size", "vocab_size"},
    {"d_model", "hidden_size"},
    {"num_layers", "num_hidden_layers"},
    {"num_heads", "num_attention_heads"},
    {"d_ff", "intermediate_size"},
    {"activation", activation_field},
    {"dropout", "hidden_dropout_prob"},
    {"attention_dropout", "attention_probs_dropout_prob"},
    {"max_positions", "max_position_embeddings"},
    {"type_vocab_size", "type_vocab_size"},
    {"layer_norm_eps", "layer_norm_eps"},
    {"pad_id", "pad_token_id"},
}};
// In the order of BertHead.
constexpr std::array<std::string_view, 7> architectures{"BertModel",
                                                        "BertForPreTraining",
                                                        "BertForMaskedLM",
                                                        "BertForNextSentencePrediction",
                                                        "BertForSequenceClassification",
                                                        "BertForTokenClassification",
                                                        "BertForQuestionAnswering"};

// "" if there the field is not.
std::string published_name(std::string_view field) {
  const auto* const found =
      std::find_if(fields.begin(), fields.end(), [&](const auto& row) { return row.first == field; });
  return found == fields.end() ? "" : std::string(found->second);
}

BertHead published_head(const Json& json, const std::string& operation) {
  const Json& named = json.contains("architectures") ? json.at("architectures") : Json(nullptr);
  if (named.is_null() || named.empty()) return BertHead::none;
  const auto* const found = std::find(architectures.begin(), architectures.end(),
                                      named.is_array() && named[0].is_string() ? named[0].get<std::string>() : "");
  check(found != architectures.end(), operation, "architectures cannot be ", Shown{named});
  return static_cast<BertHead>(found - architectures.begin());
}

// {"0": "bad", "1": "good"}; without it there are two.
std::vector<std::string> published_labels(const Json& json, const std::string& operation) {
  if (!json.contains(labels_field)) return {"LABEL_0", "LABEL_1"};
  const Json& named = json.at(labels_field);
  std::vector<std::string> labels;
  for (size_t i = 0; i < named.size(); ++i) {
    const auto found = named.find(std::to_string(i));
    check(found != named.end() && found->is_string(), operation, labels_field, " has no text \"", i, "\"");
    labels.push_back(found->get<std::string>());
  }
  return labels;
}

}  // namespace

bool is_of_task(const std::string& name) {
  const Family& bert = family("bert");
  const std::string bare = name.starts_with(bert.prefix) ? name.substr(bert.prefix.size()) : name;
  return bare.starts_with("pooler.") || bert.marks(bare, NamePattern::head) || bert.marks(bare, NamePattern::copy);
}

BertConfig published_bert_config(const std::string& text, const std::string& operation) {
  Json json = parse_json_object(text, operation);
  const auto check_usual = [&](const char* field, const Json& usual) {
    const Json& value = json.contains(field) ? json.at(field) : usual;
    check(value == usual, operation, field, " must be ", Shown{usual}, ", not ", Shown{value});
  };
  check_usual("model_type", "bert");
  check_usual("position_embedding_type", "absolute");
  check_usual("is_decoder", false);
  check_usual("add_cross_attention", false);
  check_usual("tie_word_embeddings", true);
  const Json activation = json.value(activation_field, Json("gelu"));
  if (activation == "gelu_new" || activation == "gelu_pytorch_tanh") json[activation_field] = "gelu_tanh";
  BertConfig config{.head = published_head(json, operation)};
  config_json::Reader read(operation, json);
  for_each_field(config, [&](const Field& field, auto& value) {
    const std::string name = published_name(field.name);
    if (!name.empty()) read(name, value);
  });
  if (config.head == BertHead::sentence || config.head == BertHead::token)
    config.labels = published_labels(json, operation);
  within(operation, [&] { config.validate(); });
  return config;
}

std::string published_json(const BertConfig& config) {
  config.validate();
  BertConfig complete = config, plain;
  complete.layer = config.layers();
  plain.layer = plain.layers();
  Json json{{"architectures", Json::array({architectures[static_cast<size_t>(config.head)]})}, {"model_type", "bert"}};
  const Json own = parse_json_object(config_json::text_of(complete), "bert config");
  const Json usual = parse_json_object(config_json::text_of(plain), "bert config");
  for (const auto& [field, value] : own.items()) {
    const std::string name = published_name(field);
    if (!name.empty()) json[name] = value;
    const bool is_known =
        !name.empty() || field == "head" || field == "labels" || field == "init";  // init: of the start
    check(is_known || value == usual.at(field), "bert config", "Hugging Face's BERT has no ",
          Json{{field, value}}.dump());
  }
  if (json[activation_field] == "gelu_tanh") json[activation_field] = "gelu_new";
  for (size_t i = 0; i < config.labels.size(); ++i) {
    json[labels_field][std::to_string(i)] = config.labels[i];
    json["label2id"][config.labels[i]] = i;
  }
  return json_text(json, 2) + "\n";
}

BertConfig bert_config(const std::string& given) {
  const std::string path = model_file(given);
  const Metadata metadata = read_safetensors_metadata(path);
  if (metadata.contains(std::string(config_key))) return config_of<BertConfig>(metadata, path);
  const std::string beside = std::filesystem::path(path).replace_filename("config.json").string();
  return published_bert_config(InputFile(beside).text(), "load " + beside);
}

Bert load_bert(const std::string& given, const BertConfig& config, Rng& rng) {
  const std::string path = model_file(given);
  config.validate();
  check_size(config, path);
  Bert model(config, rng);
  const Loaded loaded = load(model, path, {.partial = true});
  const bool fits = std::all_of(loaded.missing.begin(), loaded.missing.end(), is_of_task) &&
                    std::all_of(loaded.left_over.begin(), loaded.left_over.end(), is_of_task);
  if (!fits) load(model, path);  // its error says what is missing
  return model;
}

}  // namespace orrery::nn
