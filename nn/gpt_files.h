// Chapter 9. GPTs in files: ours, and GPT-2's published ones, which load unchanged.
//
// Both have the same names and layout (nn/gpt.h). What ours have besides is the configuration, in the metadata. What
// published files may have besides is dealt with here:
//   transformer.wte.weight    the prefix, which depends on the program that wrote the file
//   h.0.attn.bias             the causal mask as a table, with h.0.attn.masked_bias: no parameters, never read
//   lm_head.weight            a copy of wte.weight; one that differs is a head of its own, in files of untied models
//   F16, BF16                 half as many bits for each number: converted to f32
// Read next: nn/gpt_files.cpp
#pragma once

#include "core/safetensors.h"
#include "nn/gpt.h"

namespace orrery::nn {

/// Writes `model` with its configuration and `metadata` to `path`. Errors: those of `nn::save`.
void save_gpt(Gpt& model, const std::string& path, Metadata metadata = {});

/// Reads a model from `path`. Its configuration stands in the file, or follows from shapes: heads are then of 64
/// columns, as all of GPT-2's, and the other fields have their defaults. Errors: those of `nn::load` and `gpt_config`;
/// a file that holds no GPT, or a configuration of a model far larger than it, or of a tied one whose lm_head.weight
/// differs from wte.weight.
Gpt load_gpt(const std::string& path);
/// The same with a configuration of the caller's, whatever the file says.
Gpt load_gpt(const std::string& path, const GptConfig& config);

}  // namespace orrery::nn
