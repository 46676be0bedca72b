// Chapter 7. The recurrent and the convolutional translator one token at a time: their layers, called with states.
#include "nn/generate/translator_states.h"

#include "core/tensor_ops.h"

namespace orrery::nn {
namespace {

constexpr std::string_view translator_state = "translator state";

// The chosen rows of x along axis 0, one after another.
Tensor gathered(const Tensor& x, std::span<const i64> chosen) {
  Tensor rows = Tensor::empty(x.shape().with(0, static_cast<i64>(chosen.size())), x.dtype());
  for (size_t i = 0; i < chosen.size(); ++i) {
    Tensor to = rows.rows(static_cast<i64>(i), static_cast<i64>(i) + 1);
    copy_into(to, x.rows(chosen[i], chosen[i] + 1));
  }
  return rows;
}

// Keeps the rows that `chosen` names, in its order.
void choose_source_rows(SourceRows& source, std::span<const i64> chosen) {
  const i64 rows = static_cast<i64>(source.source_of.size());
  std::vector<i64> source_of;
  for (const i64 row : chosen) {
    check(row >= 0 && row < rows, translator_state, "row ", row, " is not one of ", rows);
    source_of.push_back(source.source_of[static_cast<size_t>(row)]);
  }
  if (source_of == source.source_of) return;  // each sequence translates what it did
  source.keys = gathered(source.keys, chosen);
  source.values = gathered(source.values, chosen);
  if (source.lengths.defined()) source.lengths = gathered(source.lengths, chosen);
  source.source_of = std::move(source_of);
}

SourceRows source_rows(const Variable& keys, const Variable& values, const Tensor& source, i32 pad_id) {
  SourceRows rows{keys.value(), values.value(), pad_id < 0 ? Tensor() : lengths_of(source, pad_id), {}};
  for (i64 row = 0; row < source.size(0); ++row) rows.source_of.push_back(row);
  return rows;
}

void check_step(const Tensor& tokens, const SourceRows& source) {
  check(!gradients_are_recorded(), translator_state, "is for generation: nothing may be recorded (NoGradient)");
  const i64 R = dims<2>(tokens, "tokens")[0], rows = static_cast<i64>(source.source_of.size());
  check(R == rows, translator_state, "has ", rows, " rows, the tokens have ", R);
}

// A model and its state after reading `source`, for beam search.
template <class Model, class State>
class StateDecoder : public StepwiseDecoder {
 public:
  StateDecoder(const Model& model, State state) : model_(model), state_(std::move(state)) {}

  Tensor next_logits(const Tensor& tokens) override {
    const NoGradient nothing_recorded;
    return nn::next_logits(model_, tokens, state_).reshape({tokens.size(0), -1});
  }
  void choose(std::span<const i64> chosen) override { choose_rows(state_, chosen); }

 private:
  const Model& model_;
  State state_;
};

template <class Model, class State>
std::unique_ptr<StepwiseDecoder> decoder_of(const Model& model, State state) {
  return std::make_unique<StateDecoder<Model, State>>(model, std::move(state));
}

void check_max_len(i64 of_model, i64 max_len) {
  check(max_len > 0 && max_len <= of_model, translator_state, "max_len must be from 1 to ", of_model,
        ", the model's own, not ", max_len);
}

}  // namespace

RecurrentState recurrent_state(const RecurrentTranslator& model, const Tensor& source) {
  Pass pass = Pass::inference();
  const RecurrentMemory memory = model.encode(source, pass);
  const Variable keys = model.decoder.key(memory.annotations);
  return {source_rows(keys, memory.annotations, source, model.config.pad_id), memory.first_state.value()};
}

Tensor next_logits(const RecurrentTranslator& model, const Tensor& tokens, RecurrentState& state) {
  check_step(tokens, state.source);
  const SourceRows& source = state.source;
  Tensor after = state.state;
  const Variable hidden =
      model.next_hidden(tokens, constant(source.values), constant(source.keys), source.mask(), after);
  const Tensor logits = model.generator(hidden).value();
  state.state = after;  // only now: a step that fails can be made again
  return logits;
}

void choose_rows(RecurrentState& state, std::span<const i64> chosen) {
  choose_source_rows(state.source, chosen);
  state.state = gathered(state.state, chosen);
}

ConvolutionalState convolutional_state(const ConvolutionalTranslator& model, const Tensor& source) {
  Pass pass = Pass::inference();
  const ConvolutionalMemory memory = model.encode(source, pass);
  ConvolutionalState state{source_rows(memory.keys, memory.values, source, model.config.pad_id), {}, 0};
  const Tensor before = zeros({source.size(0), model.config.width - 1, model.config.d_hidden}, memory.keys.dtype());
  state.inputs.assign(model.decoder.size(), before);
  return state;
}

Tensor next_logits(const ConvolutionalTranslator& model, const Tensor& tokens, ConvolutionalState& state) {
  check_step(tokens, state.source);
  check(state.inputs.size() == model.decoder.size(), translator_state, "is of a model of ", state.inputs.size(),
        " layers, this one has ", model.decoder.size());
  Pass pass = Pass::inference();
  const ConvolutionalMemory memory{constant(state.source.keys), constant(state.source.values), state.source.mask()};
  const i64 n = tokens.size(1);
  const Variable g = model.embed(tokens, model.tgt_embed, model.tgt_positions, state.length, pass);
  Variable h = model.decoder_in(g);
  std::vector<Tensor> newest;
  for (size_t i = 0; i < model.decoder.size(); ++i) {
    const Variable inputs = concat({constant(state.inputs[i]), h}, 1);
    h = model.decoder[i].newest(inputs, g, memory);
    newest.push_back(slice(inputs.value(), 1, n));
  }
  const Tensor logits = model.generator(model.decoder_out(h)).value();
  // Only now: a step that fails can be made again.
  state.inputs = std::move(newest);
  state.length += n;
  return logits;
}

void choose_rows(ConvolutionalState& state, std::span<const i64> chosen) {
  choose_source_rows(state.source, chosen);
  for (Tensor& inputs : state.inputs) inputs = gathered(inputs, chosen);
}

std::unique_ptr<StepwiseDecoder> stepwise_decoder(const RecurrentTranslator& model, const Tensor& source, i64 max_len,
                                                  i64) {
  check_max_len(model.config.max_len, max_len);
  const NoGradient nothing_recorded;
  return decoder_of(model, recurrent_state(model, source));
}

std::unique_ptr<StepwiseDecoder> stepwise_decoder(const ConvolutionalTranslator& model, const Tensor& source,
                                                  i64 max_len, i64) {
  check_max_len(model.config.max_len, max_len);
  const NoGradient nothing_recorded;
  return decoder_of(model, convolutional_state(model, source));
}

}  // namespace orrery::nn
