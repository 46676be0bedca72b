// Chapter 7. Configurations of the translators before the Transformer, checked, and as JSON text.
//
// Their defaults are the sizes of tutorials 3 and 5 of github.com/bentrevett/pytorch-seq2seq, which train both models
// on Multi30k. With its 7,853 and 5,893 words, the recurrent model has 20,518,405 parameters.
#pragma once

#include <string>

#include "core/dtype.h"

namespace orrery::nn {

struct RecurrentTranslatorConfig {
  i64 src_vocab_size = 0, tgt_vocab_size = 0;
  i64 d_embedding = 256;
  i64 d_encoder = 512;    ///< units of each direction of the encoder
  i64 d_decoder = 512;    ///< units of the decoder
  i64 d_attention = 512;  ///< size of a query and a key
  /// 0: the generator reads states, contexts and embeddings as they are. Otherwise a linear map and tanh bring them to
  /// this size first (Luong et al. 2015, equation 5), which makes the generator, the largest product, smaller.
  i64 d_output = 0;
  double dropout = 0.5;       ///< on the embeddings
  double output_dropout = 0;  ///< on what the generator reads
  /// The longest sentence that the model is meant for, its begin or end included. The layers could compute longer ones,
  /// but nothing was learned about those, so no translation is longer.
  i64 max_len = 256;
  i32 pad_id = 0;                 ///< trailing tokens of this id are padding; -1: there is none
  bool share_embeddings = false;  ///< one table for both languages; also the generator's if d_output is d_embedding

  /// What the generator reads.
  i64 generator_inputs() const { return d_output > 0 ? d_output : d_decoder + 2 * d_encoder + d_embedding; }
  bool shares_generator() const { return share_embeddings && generator_inputs() == d_embedding; }
  /// Errors, naming the field: a value is out of range, or two values do not fit together.
  void validate() const;
  /// The number of the model's parameters, counted without building it; 2^53 if there are more.
  i64 parameter_count() const;
  friend bool operator==(const RecurrentTranslatorConfig&, const RecurrentTranslatorConfig&) = default;
};

struct ConvolutionalTranslatorConfig {
  i64 src_vocab_size = 0, tgt_vocab_size = 0;
  i64 d_embedding = 256, d_hidden = 512;
  i64 num_encoder_layers = 10, num_decoder_layers = 10;
  i64 width = 3;                  ///< positions that each output of a convolution sees; odd
  double dropout = 0.25;          ///< on embeddings, on each layer's input, and on what the generator reads
  i64 max_len = 256;              ///< positions, which are learned; a longer sequence is an error
  i32 pad_id = 0;                 ///< as above
  bool share_embeddings = false;  ///< one table for both languages, also as the generator's matrix

  // As above.
  void validate() const;
  i64 parameter_count() const;
  friend bool operator==(const ConvolutionalTranslatorConfig&, const ConvolutionalTranslatorConfig&) = default;
};

/// Every field as JSON, for a file's metadata; and back, where absent fields keep their defaults.
/// Errors: text that is not a JSON object, unknown fields, values of a wrong type, and those of `validate`.
std::string to_json(const RecurrentTranslatorConfig& config);
std::string to_json(const ConvolutionalTranslatorConfig& config);
RecurrentTranslatorConfig recurrent_translator_config(const std::string& json);
ConvolutionalTranslatorConfig convolutional_translator_config(const std::string& json);

}  // namespace orrery::nn
