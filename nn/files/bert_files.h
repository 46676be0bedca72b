// Chapter 9. BERTs in files: the folders of Hugging Face's transformers, and models that start from another's encoder.
//
// A folder has the weights (model.safetensors, with the names of nn/files/names.h) and a config.json. Ours have the
// configuration in the weights' metadata, too, and are read by `nn::load<Bert>` alone.
//   nn::save(model, "folder/model.safetensors", {{"format", "pt"}});   with published_json as folder/config.json
//   BertConfig config = nn::bert_config("folder");                     then choose another head
//   config.head = BertHead::sentence, config.labels = {"bad", "good"};
//   Bert classifier = nn::load_bert("folder", config, rng);
#pragma once

#include "core/files/safetensors.h"
#include "nn/models/bert.h"

namespace orrery::nn {

/// The configuration in a config.json as Hugging Face writes it for BERT; what it does not say is as there. But
/// "vocab_size" must be there, and without "attention_probs_dropout_prob" it is "hidden_dropout_prob". The head follows
/// from its "architectures", the labels from "id2label". Errors of `operation`, naming the field: text that is not a
/// JSON object; values of a wrong type; what a Bert does not have; sizes out of range.
BertConfig published_bert_config(const std::string& json, const std::string& operation);
/// The same file for a model of ours. Errors: those of `validate`; a field that Hugging Face's BERT does not have, such
/// as dropout inside the feed-forward network.
std::string published_json(const BertConfig& config);

/// The configuration of the model at `path`, a file, a folder or an index of shards: from its metadata or, if they have
/// none, from the config.json beside it. Errors: those of `read_safetensors`, of "read PATH" for a missing config.json,
/// and of `published_bert_config`.
BertConfig bert_config(const std::string& path);

/// A model as `config` says that starts from the one at `path`: its head and pooler are drawn from `rng` where the file
/// has none that fits; what the file has of others is not used. Errors: those of `nn::load` for everything else.
Bert load_bert(const std::string& path, const BertConfig& config, Rng& rng);

/// Whether a tensor of this name, as files have it, is of a head or of the pooler, which another model may lack.
bool is_of_task(const std::string& name);

}  // namespace orrery::nn
