// Chapter 9. `orrery lm export`: a model for Hugging Face's transformers.
//
//   model.safetensors       the weights with GPT2LMHeadModel's names (nn/files/gpt_files.h)
//   config.json             its configuration (nn/files/gpt_files.h)
//   tokenizer.json          its tokens, for the library tokenizers, with tokenizer_config.json; of a published GPT-2
//                           the vocab.json and merges.txt that it came with
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/data/vocabulary.h"
#include "apps/program/command.h"
#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "apps/tasks/lm/training.h"
#include "apps/training/training_files.h"
#include "core/files/file.h"
#include "core/files/json.h"
#include "nn/files/gpt_files.h"

namespace orrery {
namespace {

struct ExportOptions {
  std::string load, folder;
  i64 heads = 0;
};

using Object = nlohmann::json;  // unlike Json, quick to fill with very many fields

// A tokenizer as that library has it: text is normalised, cut, and looked up in a model; ids are decoded.
struct Parts {
  Object normalizer = nullptr, cutter, decoder, model;
};

Object cut_at(const char* kind, const char* pattern) {
  return {{"type", "Split"}, {"pattern", {{kind, pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
}
Object replace(std::string_view from, std::string_view to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

Parts of_characters(const Tokenizer& tokenizer) {
  Object ids = Object::object();
  for (i32 id = 0; id < tokenizer.size(); ++id) ids[tokenizer.text(id)] = id;
  // The name of the unknown token is no token, so that an unknown character is an error.
  return {.cutter = cut_at("Regex", "[\\s\\S]"),
          .decoder = {{"type", "Fuse"}},
          .model = {{"type", "WordLevel"}, {"vocab", ids}, {"unk_token", "<unknown>"}}};
}

Parts of_all_bytes() {
  Object ids = Object::object();
  const auto characters = byte_characters();
  for (size_t byte = 0; byte < byte_count; ++byte) {
    const size_t code = characters[byte];
    const std::string two_bytes{static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
    ids[code < 0x80 ? std::string(1, static_cast<char>(code)) : two_bytes] = byte;
  }
  const Object bytes{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  return {.cutter = bytes, .decoder = bytes, .model = {{"type", "BPE"}, {"vocab", ids}, {"merges", Object::array()}}};
}

// SentencePiece takes names and bytes for no pieces of text. This library takes all for pieces, so these get a score
// that makes them the last choice.
Parts of_pieces(const Vocabulary& vocabulary) {
  constexpr double last_choice = -1e6;
  Object pieces = Object::array();
  for (i32 id = 0; id < vocabulary.size(); ++id) {
    const bool is_piece = id >= static_cast<i32>(tokens_before_pieces(true));
    pieces.push_back(Object::array({vocabulary.token(id), is_piece ? vocabulary.score(id) : last_choice}));
  }
  const Object decoders = Object::array({replace(space_mark, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}});
  return {.normalizer = replace(" ", space_mark),
          .cutter = cut_at("String", "\n"),
          .decoder = {{"type", "Sequence"}, {"decoders", decoders}},
          .model = {{"type", "Unigram"}, {"unk_id", unknown_id}, {"byte_fallback", true}, {"vocab", pieces}}};
}

Parts parts_of(const Tokenizer& tokenizer) {
  switch (tokenizer.kind()) {
    case TokenKind::chars: return of_characters(tokenizer);
    case TokenKind::bytes: return of_all_bytes();
    case TokenKind::sentencepiece:
    case TokenKind::bpe: break;
  }
  return of_pieces(*tokenizer.vocabulary());
}

int export_model(const ExportOptions& options) {
  const std::filesystem::path folder = options.folder;
  const auto in_folder = [&](const char* name) { return (folder / name).string(); };
  std::error_code absent;
  for (const char* name :
       {"model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt"})
    check(!std::filesystem::exists(folder / name, absent), "lm", in_folder(name), " exists; name another folder");
  Metadata metadata = read_safetensors_metadata(options.load);
  check_is_finished("lm", options.load, metadata);
  const std::optional<Tokenizer> tokenizer = tokens_of_model(metadata, options.load);
  LanguageModel model = nn::load_gpt(options.load, options.heads);
  Json config = within("export " + options.load,
                       [&] { return parse_json_object(nn::published_json(model.config), "gpt config"); });
  if (tokenizer && tokenizer->end_of_text())
    config["bos_token_id"] = config["eos_token_id"] = *tokenizer->end_of_text();
  make_folder(folder.string());
  nn::save_published_gpt(model, in_folder("model.safetensors"), tokenizer ? tokenizer->metadata() : Metadata());
  write_text(in_folder("config.json"), json_text(config, 2) + "\n");
  if (tokenizer) {
    const std::optional<BytePairs>& pairs = tokenizer->byte_pairs();
    const Object about{{"tokenizer_class", pairs ? "GPT2Tokenizer" : "PreTrainedTokenizerFast"},
                       {"clean_up_tokenization_spaces", false},
                       {"model_max_length", model.config.max_len}};
    if (pairs) {
      write_text(in_folder("vocab.json"), pairs->vocab_json());
      write_text(in_folder("merges.txt"), pairs->merges_txt());
    } else {
      write_text(in_folder("tokenizer.json"), tokenizer_json(*tokenizer));
    }
    write_text(in_folder("tokenizer_config.json"), about.dump(2) + "\n");
  }
  std::cout << harmless(options.folder) << " has a GPT2LMHeadModel, "
            << (tokenizer ? "and a tokenizer whose tokens are " + std::string(tokenizer->name())
                          : "without a tokenizer: " + harmless(options.load) + " does not say what its tokens are")
            << std::endl;
  return done;
}

}  // namespace

std::string tokenizer_json(const Tokenizer& tokenizer) {
  const Parts parts = parts_of(tokenizer);
  const Object json{{"version", "1.0"},
                    {"truncation", nullptr},
                    {"padding", nullptr},
                    {"added_tokens", Object::array()},
                    {"normalizer", parts.normalizer},
                    {"pre_tokenizer", parts.cutter},
                    {"post_processor", nullptr},
                    {"decoder", parts.decoder},
                    {"model", parts.model}};
  return json.dump() + "\n";
}

void add_lm_export(CLI::App& lm, int& exit_code) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App& command = add_command(
      lm, "export", "Write a model for Hugging Face's transformers",
      "GPT2LMHeadModel.from_pretrained and AutoTokenizer.from_pretrained read the folder, and `orrery lm` does. What "
      "GPT-2 does not have is refused: rotary positions and normalised queries and keys, which --minutes chooses.\n"
      "Example:\n  orrery lm export --load shakespeare.safetensors --save for-transformers/");
  add_loaded_gpt(command, options->load, options->heads);
  require(
      add_file(command, "--save", options->folder,
               "Where model.safetensors, config.json, tokenizer.json and tokenizer_config.json go; none of them may "
               "exist",
               "FOLDER"));
  when_run(command, exit_code, [options] { return export_model(*options); });
}

}  // namespace orrery
