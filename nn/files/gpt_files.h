// Chapter 9. GPTs in files: our own, and the published ones of GPT-2, which can be loaded as they are.
//
// Both have the same names and layout (nn/models/gpt.h). Our files also hold the configuration, in the metadata.
// Published files may differ in these points, which are handled here:
//   transformer.wte.weight    the prefix, which depends on the program that wrote the file
//   h.0.attn.bias             the causal mask as a table, with h.0.attn.masked_bias: not parameters, never read
//   lm_head.weight            a copy of wte.weight; one that differs is a head of its own, in files of untied models
//   F16, BF16                 half as many bits for each number: converted to f32
//   config.json               a file next to it, with what the shapes do not show, above all the number of heads
// Serves: nn/files/files.h
#pragma once

#include "core/files/safetensors.h"
#include "nn/models/gpt.h"

namespace orrery::nn {

/// Writes `model` with its configuration and `metadata` to `path`. Errors: those of `nn::save`.
void save_gpt(Gpt& model, const std::string& path, Metadata metadata = {});

/// Reads a model from `path`. Its configuration is taken from the file; if there is none, from a config.json in the
/// same folder, as Hugging Face publishes it (`published_gpt_config`); else from the shapes. In this last case the
/// number of heads is a guess (64 columns for each head, as in every GPT-2), and the other fields have their defaults.
/// Errors: those of `nn::load`, `gpt_config` and `published_gpt_config`; a config.json that contradicts a shape (the
/// message names both); a file that does not hold a GPT; a configuration of a model far larger than the file; a tied
/// model whose lm_head.weight differs from wte.weight.
Gpt load_gpt(const std::string& path);
/// The same with the caller's configuration, whatever the file says.
Gpt load_gpt(const std::string& path, const GptConfig& config);

}  // namespace orrery::nn
