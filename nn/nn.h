// Chapter 7. All of nn: layers, the Transformer, GPT, decoding, and the checker for layers.
//
// Read next: nn/encoder.h
#pragma once

#include "nn/attention.h"
#include "nn/decoder.h"
#include "nn/decoder_state.h"
#include "nn/decoding.h"
#include "nn/dropout.h"
#include "nn/embedding.h"
#include "nn/encoder.h"
#include "nn/feed_forward.h"
#include "nn/gpt.h"
#include "nn/gpt_config.h"
#include "nn/gradcheck.h"
#include "nn/init.h"
#include "nn/key_value_cache.h"
#include "nn/layer_norm.h"
#include "nn/linear.h"
#include "nn/module.h"
#include "nn/pass.h"
#include "nn/positional_encoding.h"
#include "nn/samples.h"
#include "nn/sampling.h"
#include "nn/stacks.h"
#include "nn/transformer.h"
#include "nn/transformer_config.h"
