// Chapter 7. A wrong answer to exercise 7.3: three matrices instead of a shared one.
// Expect: the number is 101007496
#include "core/tensor_ops.h"

using namespace orrery;

i64 my_attention_count(i64 d_model) { return 4 * (d_model * d_model + d_model); }
i64 my_feed_forward_count(i64 d_model, i64 d_ff) { return 2 * d_model * d_ff + d_ff + d_model; }
i64 my_encoder_layer_count(i64 d_model, i64 d_ff) {
  return my_attention_count(d_model) + my_feed_forward_count(d_model, d_ff) + 2 * 2 * d_model;
}
i64 my_decoder_layer_count(i64 d_model, i64 d_ff) {
  return 2 * my_attention_count(d_model) + my_feed_forward_count(d_model, d_ff) + 3 * 2 * d_model;
}
i64 my_model_count(i64 words, i64 d_model, i64 d_ff, i64 layers) {
  return layers * (my_encoder_layer_count(d_model, d_ff) + my_decoder_layer_count(d_model, d_ff)) +
         3 * words * d_model + words;
}
