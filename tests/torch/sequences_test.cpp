// Chapter 7. Equal to PyTorch: GRU, convolution, gated linear unit, and the translators made of them.
#include "apps/tasks/translate/rivals/convolutional_translator.h"
#include "apps/tasks/translate/rivals/recurrent_translator.h"
#include "autograd/ops.h"
#include "tests/torch/fixture.h"

using namespace orrery;
using namespace orrery::torch_parity;

TEST_CASE("promise 9: Gru is torch.nn.GRU, from a given state") {
  Rng rng(1);
  translate::Gru layer(4, 3, rng);
  check_equal(Case("sequences", "gru"), layer, [&](const Inputs& in) { return layer(in["x"], {}, in["h0"]); });
}

TEST_CASE("promise 9: BidirectionalGru is torch.nn.GRU on packed sequences") {
  Rng rng(1);
  translate::BidirectionalGru layer(4, 3, rng);
  check_equal(Case("sequences", "gru_bidirectional"), layer,
              [&](const Inputs& in) { return layer(in["x"], Mask::padding(in.ids("lengths"))).states; });
  check_equal(Case("sequences", "gru_bidirectional_last"), layer,
              [&](const Inputs& in) { return layer(in["x"], Mask::padding(in.ids("lengths"))).last; });
}

TEST_CASE("promise 9: Convolution is torch.nn.Conv1d, with zeros on both sides or before the sequence") {
  for (const bool causal : {false, true}) {
    CAPTURE(causal);
    Rng rng(1);
    nn::Convolution layer(4, 5, 3, causal ? ConvolutionPadding::causal : ConvolutionPadding::same, rng);
    check_equal(Case("sequences", causal ? "convolution_causal" : "convolution_same"), layer,
                [&](const Inputs& in) { return layer(in["x"]); });
  }
}

TEST_CASE("promise 9: glu is PyTorch's") {
  check_equal(Case("sequences", "glu"), [](const Inputs& in) { return glu(in["x"]); });
}

TEST_CASE("promise 9: AttentiveGru is additive attention and torch.gru_cell, step by step") {
  Rng rng(1);
  translate::AttentiveGru layer({.in = 4, .H = 3, .M = 5, .A = 6}, rng);
  check_equal(Case("sequences", "attentive_gru"), layer, [&](const Inputs& in) {
    const auto [states, contexts] = layer(in["x"], in["s0"], in["memory"], Mask::padding(in.ids("lengths")));
    return concat({states, contexts}, 2);
  });
}

TEST_CASE("promise 9: RecurrentTranslator equals a tutorial's model, built from PyTorch's layers") {
  Rng rng(1);
  translate::RecurrentTranslator model(
      {.src_vocab_size = 9, .tgt_vocab_size = 9, .d_embedding = 4, .d_encoder = 3, .d_decoder = 5, .d_attention = 4},
      rng);
  check_equal(Case("sequences", "recurrent_translator"), model, [&](const Inputs& in) {
    nn::Pass pass;
    return model(in.ids("source"), in.ids("target"), pass);
  });
}

TEST_CASE("promise 9: ConvolutionalTranslator equals a tutorial's model, built from PyTorch's layers") {
  Rng rng(1);
  translate::ConvolutionalTranslator model({.src_vocab_size = 9,
                                            .tgt_vocab_size = 9,
                                            .d_embedding = 4,
                                            .d_hidden = 6,
                                            .num_encoder_layers = 2,
                                            .num_decoder_layers = 2,
                                            .max_len = 7},
                                           rng);
  check_equal(Case("sequences", "convolutional_translator"), model, [&](const Inputs& in) {
    nn::Pass pass;
    return model(in.ids("source"), in.ids("target"), pass);
  });
}
