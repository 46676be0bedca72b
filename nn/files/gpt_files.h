// Chapter 9. GPTs in files: ours, and GPT-2's published ones, which load unchanged.
//
// Both have the same names and layout (nn/models/gpt.h). What ours have besides is the configuration, in the metadata. What
// published files may have besides is dealt with here:
//   transformer.wte.weight    the prefix, which depends on the program that wrote the file
//   h.0.attn.bias             the causal mask as a table, with h.0.attn.masked_bias: no parameters, never read
//   lm_head.weight            a copy of wte.weight; one that differs is a head of its own, in files of untied models
//   F16, BF16                 half as many bits for each number: converted to f32
//   config.json               a file beside it that says what no shape shows, above all the number of heads
// Serves: nn/files/files.h
#pragma once

#include "core/files/safetensors.h"
#include "nn/models/gpt.h"

namespace orrery::nn {

/// Writes `model` with its configuration and `metadata` to `path`. Errors: those of `nn::save`.
void save_gpt(Gpt& model, const std::string& path, Metadata metadata = {});

/// Reads a model from `path`. Its configuration stands in the file; or else in a config.json in the same folder, as
/// Hugging Face publishes it (`published_gpt_config`); or else follows from shapes, and then the number of heads is a
/// guess: heads of 64 columns, as all of GPT-2's, the other fields with their defaults. Errors: those of `nn::load`,
/// `gpt_config` and `published_gpt_config`; a config.json that contradicts a shape, naming both; a file that holds no
/// GPT, or a configuration of a model far larger than it, or of a tied one whose lm_head.weight differs from
/// wte.weight.
Gpt load_gpt(const std::string& path);
/// The same with a configuration of the caller's, whatever the file says.
Gpt load_gpt(const std::string& path, const GptConfig& config);

}  // namespace orrery::nn
