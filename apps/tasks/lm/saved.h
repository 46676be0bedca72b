// Chapter 9. `orrery lm sample` and `orrery lm eval`: sampling from a saved model, and evaluating it.
//
//   sample   writes token after token, each drawn from the model's probabilities given all earlier ones
//            (nn/generate/sampling.h)
//   eval     the mean over a text of -ln p(token | the earlier ones in its block): in nats, and as perplexity (its
//            exponential). A perplexity of 7 means that each token is as uncertain as a choice among 7 equally likely
//            ones. Models with other tokens are compared by bits: the sum over all tokens, divided by ln 2 and by the
//            number of characters, or of bytes.
//
// `orrery lm export`: a model for Hugging Face's transformers.
//
//   model.safetensors       the weights with GPT2LMHeadModel's names (nn/files/gpt_files.h)
//   config.json             its configuration (nn/files/gpt_files.h)
//   tokenizer.json          its tokens, for the library tokenizers, with tokenizer_config.json; of a published GPT-2
//                           the vocab.json and merges.txt that it came with
#pragma once

#include <optional>
#include <string>

#include "apps/data/tokenizer.h"
#include "apps/tasks/lm/training.h"

namespace CLI {
class App;
}  // namespace CLI

namespace orrery {

/// A saved model and its tokens.
struct LmModel {
  Tokenizer tokenizer;
  LanguageModel model;
};
/// A model to read, and what its file may not say if another program wrote it.
struct LmSource {
  std::string path;
  i64 heads = 0;           ///< 0: what the file says
  std::string characters;  ///< the name of a text whose characters are the tokens; "": what the file says
  std::string separator;   ///< the line between documents; "": what the file says
};
/// The tokens that the metadata of the model at `path` say or, of a published GPT-2, the vocab.json and merges.txt
/// beside it; nothing if there are neither. Errors: damaged metadata; those of `BytePairs::read`.
std::optional<Tokenizer> tokens_of_model(const Metadata& metadata, const std::string& path);
/// Reads a model. Errors: those of `nn::load_gpt`; tokens that neither the file nor `characters` says, or both; as many
/// tokens as the model does not have; those of `Tokenizer::separate_at`; a separator besides that of the file.
LmModel load_lm(const LmSource& source);

/// --load and --heads, which find a GPT. Heads are 0 if the option is not given.
void add_loaded_gpt(CLI::App& command, std::string& path, i64& heads);

void add_lm_sample(CLI::App& lm, int& exit_code);
void add_lm_eval(CLI::App& lm, int& exit_code);
void add_lm_export(CLI::App& lm, int& exit_code);

/// The contents of a tokenizer.json whose ids are those of `tokenizer`, which has no byte pairs. Characters: text with
/// another one is an error there, too. Bytes: any text that is UTF-8. Pieces: the same model, in which U+2581 and the
/// names of tokens, such as "<0x0A>", cannot be told from what they stand for.
std::string tokenizer_json(const Tokenizer& tokenizer);

}  // namespace orrery
