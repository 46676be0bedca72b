// Chapter 9. `orrery lm export`: a model for Hugging Face's transformers.
//
//   model.safetensors       the weights with GPT2LMHeadModel's names (nn/files/gpt_files.h)
//   config.json             its configuration (nn/files/gpt_files.h)
//   tokenizer.json          its tokens, for the library tokenizers, with tokenizer_config.json
#pragma once

#include <string>

#include "apps/data/tokenizer.h"

namespace CLI {
class App;
}  // namespace CLI

namespace orrery {

void add_lm_export(CLI::App& lm, int& exit_code);

/// The contents of a tokenizer.json whose ids are those of `tokenizer`. Characters: text with another one is an error
/// there, too. Bytes: any text that is UTF-8. Pieces: the same model, in which U+2581 and the names of tokens, such as
/// "<0x0A>", cannot be told from what they stand for.
std::string tokenizer_json(const Tokenizer& tokenizer);

}  // namespace orrery
