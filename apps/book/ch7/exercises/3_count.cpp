// Chapter 7. Exercise 7.3: counting the parameters of the Transformer.
//
// How many numbers does the paper's model learn? Every linear map and every norm has a bias. In the model, one matrix
// serves both embeddings and the generator (section 3.4), but the generator has a bias of its own. The sinusoids are
// not learned, and there is no norm after the stacks.
//
// An attention has four maps from d_model to d_model: for Q, K, V and the output. The number of heads does not matter,
// since h d_k = d_model.
// Grade it:  apps/run exercise 7.3
#include "core/tensor_ops.h"

using namespace orrery;

i64 my_attention_count(i64 d_model) {
  return 0 * d_model;  // YOUR CODE
}
i64 my_feed_forward_count(i64 d_model, i64 d_ff) {
  return 0 * d_model * d_ff;  // YOUR CODE
}
i64 my_encoder_layer_count(i64 d_model, i64 d_ff) {
  return 0 * d_model * d_ff;  // YOUR CODE
}
i64 my_decoder_layer_count(i64 d_model, i64 d_ff) {
  return 0 * d_model * d_ff;  // YOUR CODE
}
i64 my_model_count(i64 words, i64 d_model, i64 d_ff, i64 layers) {
  return 0 * words * d_model * d_ff * layers;  // YOUR CODE
}
