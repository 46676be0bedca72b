// Chapter 9. What can stand in a translator: a model that learns from sentence pairs and writes translations.
//
// The Transformer is one. Two that it replaced are trained and compared on the same data: a recurrent one, GRUs with
// attention, and a convolutional one (apps/tasks/translate/rivals/).
//
// Translators in files: a model with its vocabulary, and what a training needs to be resumed.
//   FILE          the model's parameters; as metadata its kind, its configuration and the vocabulary
// A translator is used from FILE alone: `load_translator` returns all that decoding needs.
//
// Translations of lines are made in batches of similar lengths, and come in the order of the lines. A batch is a
// rectangle, so a short sentence beside a long one costs as much as the long one. So the sentences are sorted by
// length, cut into batches, translated by beam search (nn/generate/beam_search.h), and put back in order.
//
// What a translator attends to while it translates a line, for the page of `decode --attention`: the translation is
// found by beam search. Then the whole pair goes through the model once, as in training, and the attention weights of
// this pass are kept.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/data/corpus.h"
#include "apps/data/text_file.h"
#include "apps/show/attention/attention_page.h"
#include "apps/tasks/translate/rivals/convolutional_translator.h"
#include "apps/tasks/translate/rivals/recurrent_translator.h"
#include "apps/tasks/translate/rivals/states.h"
#include "core/files/safetensors.h"
#include "nn/generate/constraints.h"
#include "nn/models/transformer.h"

namespace CLI {
class App;
}  // namespace CLI

namespace orrery::translate {

enum class ModelKind { transformer, recurrent, convolutional };
/// The names of its values, in their order.
constexpr std::array<std::string_view, 3> names(ModelKind) { return {"transformer", "recurrent", "convolutional"}; }
inline std::string name_of(ModelKind kind) { return std::string(names(kind)[static_cast<size_t>(kind)]); }

class TranslationModel {
 public:
  virtual ~TranslationModel() = default;
  virtual ModelKind kind() const = 0;
  /// Its parameters by name: what is trained and saved.
  virtual nn::Module& module() = 0;
  /// Its configuration as JSON, from which `load_model` builds it again.
  virtual std::string config() const = 0;
  virtual i64 source_vocabulary_size() const = 0;
  virtual i64 vocabulary_size() const = 0;  ///< of what it writes
  virtual i32 padding_id() const = 0;
  /// The width that Noam's schedule needs: of the decoder.
  virtual i64 d_model() const = 0;
  /// The longest sentence that it reads or writes, with begin or end.
  virtual i64 most_tokens() const = 0;

  /// The cross entropy of the labels.
  virtual Variable loss(const TranslationBatch& batch, nn::Pass& pass, const CrossEntropyOptions& options) const = 0;
  /// Its decoder after reading source i32 [B, S], for `nn::beam_search`: for translations of at most `most_tokens`
  /// tokens. It refers to the model.
  virtual std::unique_ptr<nn::StepwiseDecoder> decoder(const Tensor& source, i64 most_tokens) const = 0;

  /// The attention weights of one pass over source i32 [B, S] and target i32 [B, T]. The recurrent model has one layer
  /// of cross-attention, the convolutional one as many as its decoder has layers, each with one head.
  virtual AttentionMaps attention(const Tensor& source, const Tensor& target) const = 0;
  /// How many weights these are for one pair.
  virtual i64 attention_weights(i64 S, i64 T) const = 0;
};

/// One of the three models.
template <class Model> class TranslatorOf final : public TranslationModel {
 public:
  explicit TranslatorOf(Model translator) : model(std::move(translator)) {}

  ModelKind kind() const override;
  nn::Module& module() override { return model; }
  std::string config() const override { return to_json(model.config); }
  i64 source_vocabulary_size() const override { return model.config.src_vocab_size; }
  i64 vocabulary_size() const override { return model.config.tgt_vocab_size; }
  i32 padding_id() const override { return model.config.pad_id; }
  i64 d_model() const override;
  i64 most_tokens() const override;
  Variable loss(const TranslationBatch& batch, nn::Pass& pass, const CrossEntropyOptions& options) const override {
    return model.loss(batch.source, batch.target, batch.labels, pass, options);
  }
  std::unique_ptr<nn::StepwiseDecoder> decoder(const Tensor& source, i64 most_tokens) const override {
    return stepwise_decoder(model, source, most_tokens);
  }
  AttentionMaps attention(const Tensor& source, const Tensor& target) const override;
  i64 attention_weights(i64 S, i64 T) const override;

  Model model;
};
using TransformerTranslator = TranslatorOf<nn::Transformer>;

/// The model that the metadata of `path` describe, with the parameters of that file. Errors: those of `nn::load`; a
/// kind of model that is not known.
std::unique_ptr<TranslationModel> load_model(const std::string& path, const Metadata& metadata,
                                             const std::string& program = "translate");
/// The metadata key of a model's kind.
inline constexpr std::string_view kind_key = "translation_model";

/// Translations of some sentences, in their order, each by the likeliest token at each step. Each has at most twice as
/// many tokens as the longest source and ten more, as far as the model can write them.
std::vector<std::string> greedy_translations(const TranslationModel& model, const Vocabulary& vocabulary,
                                             const std::vector<std::span<const i32>>& sources);

/// A saved model and its vocabulary, or several that write together (nn/generate/ensemble.h).
struct Translator {
  Vocabulary vocabulary;
  std::unique_ptr<TranslationModel> model;
  std::vector<std::unique_ptr<TranslationModel>> others{};

  /// The longest sentence that all of them read and write, with begin or end.
  i64 most_tokens() const;
  i64 parameter_count() const;  ///< of all models together
  /// Their decoder, as `TranslationModel::decoder`.
  std::unique_ptr<nn::StepwiseDecoder> decoder(const Tensor& source, i64 most_tokens) const;
};
/// What FILE says about the model.
Metadata metadata_of(const TranslationModel& model, const Vocabulary& vocabulary);
/// Writes FILE, or leaves it as it was, with `more` metadata. Errors: those of `nn::save`.
void save_translator(TranslationModel& model, const Vocabulary& vocabulary, const std::string& path,
                     const Metadata& more = {});
/// Reads FILE, a model of `program`. Errors: those of `load_model`; a file without a vocabulary, or with one that does
/// not fit the model.
Translator load_translator(const std::string& path, const std::string& program = "translate");
/// Reads several files as one translator. Errors also: no file; a file with another vocabulary than the first.
Translator load_ensemble(const std::vector<std::string>& paths, const std::string& program = "translate");

struct DecodeOptions {
  i64 beam = 5;                   ///< 1 is greedy decoding
  i64 n_best = 1;                 ///< translations of a line, at most `beam`
  double length_penalty = 1;      ///< alpha: nn/generate/beam_search.h
  nn::Constraints constraints{};  ///< without prefixes: those are of the lines
  /// Source tokens of a batch, padding included; fewer with a wide beam (`rows_of_batch`). A longer sentence is a batch
  /// of its own.
  i64 batch_tokens = 1024;
  i64 max_length = most;  ///< tokens of a translation; also at most 50 more than its source has, as in the paper
  bool cut = false;       ///< a line that is too long for the model is cut off, not left out
  static constexpr i64 most = 1'000'000;
};

/// What became of a line.
enum class LineKind { translated, empty, not_utf8, with_nul, too_long };

/// One of the n best translations of a line.
struct RankedText {
  std::string text;
  double score;  ///< log-probability / length^alpha
};

struct Translation {
  LineKind kind = LineKind::translated;
  std::string text{};          ///< "" if the line was not translated
  double log_probability = 0;  ///< of all tokens
  i64 tokens = 0;              ///< with the end
  std::vector<i32> ids{};      ///< these tokens
  i64 unknown_letters = 0;     ///< of the line and its prefix: `Vocabulary::unknown_letters`
  bool is_cut = false;         ///< the line was cut off
  std::vector<RankedText> n_best{};
};

/// How many sentences of `length` tokens, the end included, make a batch: at least 1. The beam multiplies what the
/// decoder computes and keeps, so with a beam of more than 5 a batch has proportionally fewer sentences. The logits of
/// one step, one for each sentence, hypothesis and token of the vocabulary, are at most 2^25 numbers (128 MB), unless
/// those of a single sentence are already more.
i64 rows_of_batch(i64 length, i64 vocabulary, const DecodeOptions& options);

/// Receives, before the first batch and after each, the translations that can be written now because all lines before
/// them have theirs, and the number of lines that are done, in order or not.
using WhenReady = std::function<void(std::span<const Translation> ready, i64 done)>;
/// The translation of each line. If `stopped()` becomes true, it ends within a step of the search, and returns those
/// that were ready. Errors: those of `nn::beam_search`.
std::vector<Translation> translations(const Translator& translator, const std::vector<Line>& lines,
                                      const DecodeOptions& options, const std::function<bool()>& stopped,
                                      const WhenReady& when_ready = {});

/// An empty page for the attention of the translator's model; of the first, if several translate together.
AttentionPage attention_page(const Translator& translator);

/// Adds a line and its translation. `written` are the tokens that the model wrote, at least one: the last is the end
/// mark, unless the translation was cut off. Returns false if the page has no room for the pair. Error: no tokens.
bool add_attention(AttentionPage& page, const Translator& translator, const std::string& line,
                   std::span<const i32> written);

/// Adds --beam, --length-penalty, --max-length, --batch-tokens and constraints. `answer`: "translation".
void add_decode_options(CLI::App& command, DecodeOptions& options, const std::string& answer);

/// A command that writes a line for each line that it reads, in the words of its task.
struct DecodeCommand {
  std::string name{}, description{}, footer{};
  std::string program = "translate", answer = "translation", answers = "translations";
  std::string done = "translated", lines = "lines to translate";
  DecodeOptions decode{};
};
void add_decode_command(CLI::App& parent, int& exit_code, const DecodeCommand& command);

}  // namespace orrery::translate
