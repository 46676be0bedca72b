"use strict";
// The paper's Transformer in plain JavaScript, as nn/models/transformer.cpp computes it without dropout, for one
// sequence at a time. Weights are f32, sums f64. A row is the vector of one token; `rows` is a list of them.
// A pass says what is off, and keeps what every head read: maps[attention][layer][head][row] are weights that add up
// to 1. Its attentions are called "encoder", "decoder" (both self-attention) and "cross".

const headName = (attention, layer, head) => attention + " " + layer + " " + head;

// off.heads is a Set of names, off.positions true or false.
function newPass(model, off) {
  const empty = (layers) => Array.from({length: layers}, () => Array.from({length: model.heads}, () => []));
  return {off, maps: {encoder: empty(model.encoderLayers), decoder: empty(model.decoderLayers),
                      cross: empty(model.decoderLayers)}};
}

function softmax(scores) {
  const largest = scores.reduce((a, b) => Math.max(a, b)), e = scores.map((score) => Math.exp(score - largest));
  const sum = e.reduce((a, b) => a + b);
  return e.map((x) => x / sum);
}

const argmax = (scores) => scores.indexOf(scores.reduce((a, b) => Math.max(a, b)));  // the first of equals
const sum = (x, y) => x.map((value, i) => value + y[i]);

function dot(x, atX, y, atY, count) {
  let total = 0;
  for (let i = 0; i < count; ++i) total += x[atX + i] * y[atY + i];
  return total;
}

class Transformer {
  // `numbers` are all weights as f32 in base64, one parameter after another.
  constructor({config, parameters, numbers}) {
    this.width = config.d_model;
    this.heads = config.num_heads;
    this.keySize = config.d_k || this.width / this.heads;
    this.valueSize = config.d_v || this.width / this.heads;
    this.encoderLayers = config.num_encoder_layers;
    this.decoderLayers = config.num_decoder_layers;
    this.normFirst = config.norm_first;
    this.finalNorm = config.final_norm;
    this.eps = config.layer_norm_eps;
    const bytes = Uint8Array.from(atob(numbers), (letter) => letter.charCodeAt(0));
    const all = new Float32Array(bytes.buffer);
    let at = 0;
    this.weights = Object.fromEntries(parameters.map(({name, shape}) => {
      const count = shape.reduce((a, b) => a * b, 1);
      at += count;
      return [name, all.subarray(at - count, at)];
    }));
  }

  // y = x W^T + b: the outputs from `first` to before `last`, by default all.
  linear(x, name, first = 0, last = this.weights[name + ".weight"].length / x.length) {
    const W = this.weights[name + ".weight"], b = this.weights[name + ".bias"], y = new Float64Array(last - first);
    for (let i = first; i < last; ++i) {
      let total = b ? b[i] : 0;
      for (let j = 0; j < x.length; ++j) total += W[i * x.length + j] * x[j];
      y[i - first] = total;
    }
    return y;
  }

  // Mean 0 and variance 1, then scaled and shifted as learned.
  norm(x, name) {
    const weight = this.weights[name + ".weight"], bias = this.weights[name + ".bias"], count = x.length;
    const mean = x.reduce((a, b) => a + b) / count, centred = x.map((value) => value - mean);
    const deviation = Math.sqrt(dot(centred, 0, centred, 0, count) / count + this.eps);
    return centred.map((value, i) => value / deviation * weight[i] + (bias ? bias[i] : 0));
  }

  // A sub-layer f with its residual connection: norm(x + f(x)), or with normFirst x + f(norm(x)).
  residual(rows, norm, f) {
    if (!this.normFirst) return f(rows).map((y, i) => this.norm(sum(rows[i], y), norm));
    return f(rows.map((x) => this.norm(x, norm))).map((y, i) => sum(rows[i], y));
  }

  feedForward(rows, layer) {
    return rows.map((x) => this.linear(this.linear(x, layer + ".linear1").map((z) => Math.max(0, z)),
                                       layer + ".linear2"));
  }

  // in_proj has W^Q, W^K and W^V of all heads, one below another.
  keysAndValues(rows, name) {
    const queries = this.heads * this.keySize, keys = 2 * queries;
    return rows.map((x) => ({key: this.linear(x, name + ".in_proj", queries, keys),
                             value: this.linear(x, name + ".in_proj", keys)}));
  }

  // softmax(q K^T / sqrt(d_k)) V in each head, for each row; then the heads joined and projected. A head that is off
  // adds nothing.
  attend(rows, memory, name, attention, layer, pass) {
    const {heads, keySize, valueSize} = this;
    return rows.map((x) => {
      const query = this.linear(x, name + ".in_proj", 0, heads * keySize), joined = new Float64Array(heads * valueSize);
      for (let head = 0; head < heads; ++head) {
        const at = head * keySize;
        const weights = softmax(memory.map(({key}) => dot(query, at, key, at, keySize) / Math.sqrt(keySize)));
        pass.maps[attention][layer][head].push(weights);
        if (pass.off.heads.has(headName(attention, layer, head))) continue;
        memory.forEach(({value}, j) => {
          for (let i = head * valueSize; i < (head + 1) * valueSize; ++i) joined[i] += weights[j] * value[i];
        });
      }
      return this.linear(joined, name + ".out_proj");
    });
  }

  // A token's vector times sqrt(d_model), plus that of its position: learned, or sines and cosines.
  embed(token, position, side, pass) {
    const table = this.weights[side + "_embed.weight"], learned = this.weights[side + "_positions.weight"];
    return Float64Array.from({length: this.width}, (_, i) => {
      const value = table[token * this.width + i] * Math.sqrt(this.width);
      if (pass.off.positions) return value;
      if (learned) return value + learned[position * this.width + i];
      const angle = position / Math.pow(10000, (i - i % 2) / this.width);
      return value + (i % 2 === 0 ? Math.sin(angle) : Math.cos(angle));
    });
  }

  // The memory of a source: a row for each of its tokens.
  encode(source, pass) {
    let rows = source.map((token, position) => this.embed(token, position, "src", pass));
    for (let layer = 0; layer < this.encoderLayers; ++layer) {
      const name = "encoder.layers." + layer, attention = name + ".self_attn";
      rows = this.residual(rows, name + ".norm1", (x) =>
          this.attend(x, this.keysAndValues(x, attention), attention, "encoder", layer, pass));
      rows = this.residual(rows, name + ".norm2", (x) => this.feedForward(x, name));
    }
    return this.finalNorm ? rows.map((x) => this.norm(x, "encoder.norm")) : rows;
  }

  // The decoder before its first token. What it reads it keeps, as keys and values in each layer. So no token can see
  // later ones: they are not there yet.
  begin(memory) {
    const layers = Array.from({length: this.decoderLayers}, (_, layer) => (
        {read: [], memory: this.keysAndValues(memory, "decoder.layers." + layer + ".multihead_attn")}));
    return {position: 0, layers};
  }

  // Reads one token more; returns the logits of the one after it.
  next(token, state, pass) {
    let rows = [this.embed(token, state.position++, "tgt", pass)];
    state.layers.forEach(({read, memory}, layer) => {
      const name = "decoder.layers." + layer, self = name + ".self_attn", cross = name + ".multihead_attn";
      rows = this.residual(rows, name + ".norm1", (x) => {
        read.push(...this.keysAndValues(x, self));
        return this.attend(x, read, self, "decoder", layer, pass);
      });
      rows = this.residual(rows, name + ".norm2", (x) => this.attend(x, memory, cross, "cross", layer, pass));
      rows = this.residual(rows, name + ".norm3", (x) => this.feedForward(x, name));
    });
    return this.linear(this.finalNorm ? this.norm(rows[0], "decoder.norm") : rows[0], "generator");
  }

  // The answer, the likeliest token at each step: at most `longest`, or up to `end`. With the logits of each step.
  answer(source, {begin, end, longest}, pass) {
    const state = this.begin(this.encode(source, pass)), tokens = [], logits = [];
    for (let token = begin; tokens.length < longest && token !== end;) {
      logits.push(this.next(token, state, pass));
      token = argmax(logits[logits.length - 1]);
      tokens.push(token);
    }
    return {tokens, logits, maps: pass.maps};
  }

  // Whether that answer would be `target` without its first token: whether each token follows from the right ones.
  answers(source, target, pass) {
    const state = this.begin(this.encode(source, pass));
    return target.slice(1).every((token, i) => argmax(this.next(target[i], state, pass)) === token);
  }
}
