// Chapter 7. What users of nn include: layers, the Transformer, GPT, decoding. The checker is in nn/check/proof.h.
//
// Serves: nn/module.h
#pragma once

#include "nn/attention/attention.h"
#include "nn/attention/key_value_cache.h"
#include "nn/generate/beam_search.h"
#include "nn/generate/decoder_state.h"
#include "nn/generate/decoding.h"
#include "nn/generate/sampling.h"
#include "nn/init.h"
#include "nn/layers/dropout.h"
#include "nn/layers/embedding.h"
#include "nn/layers/feed_forward.h"
#include "nn/layers/layer_norm.h"
#include "nn/layers/linear.h"
#include "nn/layers/rms_norm.h"
#include "nn/models/decoder.h"
#include "nn/models/encoder.h"
#include "nn/models/gpt.h"
#include "nn/models/gpt_config.h"
#include "nn/models/stacks.h"
#include "nn/models/transformer.h"
#include "nn/models/transformer_config.h"
#include "nn/module.h"
#include "nn/pass.h"
#include "nn/positions/positional_encoding.h"
