// Chapter 7. Grades exercise 7.3.

void grade(Grader& g) {
  Rng shapes = Rng::of_shapes();  // the layers take no memory
  const auto count = [](nn::Module&& layer) { return static_cast<double>(layer.parameter_count()); };
  g.equal(
      "attention with d_model = 4", [] { return static_cast<double>(my_attention_count(4)); }, 80,
      "A map from 4 to 4 has 4 * 4 weights and 4 biases. How many maps are there?");
  g.equal(
      "feed-forward with d_model = 4, d_ff = 16", [] { return static_cast<double>(my_feed_forward_count(4, 16)); }, 148,
      "The first map has 16 biases, the second one 4.");
  g.equal(
      "an encoder layer of the base model", [] { return static_cast<double>(my_encoder_layer_count(512, 2048)); },
      count(nn::EncoderLayer({.d_model = 512, .num_heads = 8, .d_ff = 2048}, shapes)),
      "Attention, feed-forward and two norms, each norm with a weight and a bias of d_model numbers.");
  g.equal(
      "a decoder layer of the base model", [] { return static_cast<double>(my_decoder_layer_count(512, 2048)); },
      count(nn::DecoderLayer({.d_model = 512, .num_heads = 8, .d_ff = 2048}, shapes)),
      "A decoder layer has a sub-layer more than an encoder layer, and each sub-layer has a norm.");
  g.equal(
      "the base model with 37,000 words", [] { return static_cast<double>(my_model_count(37000, 512, 2048, 6)); },
      static_cast<double>(nn::base(37000).parameter_count()),
      "Which matrices does the model share? And which part outside the layers has a bias?");
  g.equal(
      "the big model with 37,000 words", [] { return static_cast<double>(my_model_count(37000, 1024, 4096, 6)); },
      static_cast<double>(nn::big(37000).parameter_count()), "The same formula with other sizes.");
}
