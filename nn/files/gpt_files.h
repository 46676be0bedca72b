// Chapter 9. GPTs in files: our own, and those of other programs, which can be loaded as they are.
//
// Ours have the names and the layout of GPT-2's published files, and the configuration in the metadata (`nn::save`).
// Others may differ in these points, which are handled here or in nn/files/names.h:
//   transformer.wte.weight    the prefix, which depends on the program that wrote the file
//   h.0.attn.bias             the causal mask as a table, with h.0.attn.masked_bias: not parameters, never read
//   lm_head.weight            a copy of wte.weight; one that differs is a head of its own, in files of untied models
//   [3 d_model, d_model]      the shape of h.0.attn.c_attn.weight where layers are Linear, as in nanoGPT and minGPT:
//                             then all weights of layers are [out, in], also those whose shape does not show it
//   F16, BF16                 half as many bits for each number: converted to f32
//   config.json               a file next to it, with what the shapes do not show, above all the number of heads
#pragma once

#include <optional>

#include "core/files/safetensors.h"
#include "nn/models/gpt.h"

namespace orrery::nn {

/// The configuration in a published model's config.json, as Hugging Face writes it for GPT-2. Fields without a
/// counterpart there keep their defaults, and so does dropout. Errors of `operation`, naming the field: text that is
/// not a JSON object; a missing n_head, n_layer, n_embd, n_positions or vocab_size; values of a wrong type; options
/// that a Gpt does not have; sizes out of range, under the names that GptConfig has.
GptConfig published_gpt_config(const std::string& json, const std::string& operation);
/// The same file for a model of ours, for GPT2LMHeadModel. Errors: those of `validate`; an option that GPT-2 does not
/// have, such as rotary positions. Dropout inside the feed-forward network is not in it.
std::string published_json(const GptConfig& config);

/// Writes `model` and `metadata` for Hugging Face's GPT2LMHeadModel, which always has biases: absent ones are zeros.
/// Its config.json is `published_json(model.config)`. `load_gpt` reads such a file as well. Errors: those of `nn::save`
/// and `published_json`; an attention, a buffer or another part that GPT-2 does not have.
void save_published_gpt(Gpt& model, const std::string& path, Metadata metadata = {});

/// Reads a model from `path`, a file, a folder or an index of shards (core/files/shards.h). Its configuration is taken
/// from the file; if there is none, from a config.json in the same folder, as Hugging Face publishes it
/// (`published_gpt_config`); else from the shapes, and the other fields are as in GPT-2. Weights as [out, in] with a
/// tied head are nanoGPT's, whose GELU is exact. No shape shows the number of heads: for the sizes of the published
/// GPTs (`gpt_preset`), also with nanoGPT's 50,304 tokens, it is theirs unless `num_heads` says another; otherwise
/// `num_heads` has to say it. Errors: those of `nn::load`, `GptConfig::of_json` and `published_gpt_config`; a number of
/// heads that is not known, or another one than that of a configuration; a config.json that contradicts a shape (the
/// message names both); a file that does not hold a GPT; a configuration of a model far larger than the file; a tied
/// model whose lm_head.weight differs from wte.weight. `load<Gpt>(path, config)` reads such files as `config` says.
Gpt load_gpt(const std::string& path, i64 num_heads = 0);

/// The configuration of the model that `load_gpt` makes of `path`. Weights are read only if neither the file nor a
/// config.json says it. `num_heads` counts only then. Errors: those of `load_gpt` that concern it.
GptConfig gpt_config(const std::string& path, i64 num_heads = 0);

/// What the shapes say of a GPT of another program; num_heads is that of a published GPT of these sizes, else 0.
/// Nothing for other files, and for those that have a configuration.
std::optional<GptConfig> gpt_of_shapes(const FileSummary& file);

}  // namespace orrery::nn
