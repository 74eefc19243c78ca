"""Losses and gradients of small models of published architectures, by plain PyTorch in fp64: an implementation that
shares nothing with meshsim but the formulas.

    make_architectures.py FOLDER [NAME]...
        For each architecture (or those named) writes FOLDER/NAME.results.safetensors: the gradients of the first step by
        weight name, and the losses of five steps of AdamW. FOLDER/NAME.json is meshsim's model: a Hugging Face config
        where meshsim imports the family, which is then read here too; otherwise a model file, and the config is below.

Sources: huggingface transformers modeling_gpt2.py, modeling_opt.py, modeling_bloom.py, modeling_mpt.py, modeling_falcon.py,
modeling_gptj.py, modeling_phi.py, modeling_stablelm.py, modeling_mistral.py, modeling_qwen2.py, modeling_qwen3.py,
modeling_mixtral.py, modeling_qwen2_moe.py, modeling_qwen3_moe.py, modeling_starcoder2.py, modeling_nemotron.py, nvidia/Nemotron-H-8B-Base-8K modeling_nemotron_h.py;
baichuan-inc/Baichuan-13B-Base modeling_baichuan.py; modeling_olmo2.py, modeling_cohere.py, modeling_gpt_oss.py. Weights, tokens and training: make_oracle.py, make_features.py.
Needs torch only.
"""
import json
import math
import os
import sys

import torch
import torch.nn.functional as F

import make_features as features
import make_oracle as base

# ---- pieces ----


def gelu_new(x):
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


def relu2(x):
    return torch.square(F.relu(x))


def rms_norm(x, weight, epsilon):
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon))


def layer_norm(x, weights, name, epsilon):
    return F.layer_norm(x, x.shape[-1:], weights[name + ".weight"], weights.get(name + ".bias"), epsilon)


def rotate_half(x):
    """Llama's and GPT-NeoX's pairs: entry i and entry i + width / 2."""
    x1, x2 = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), -1)


def rotate_every_two(x):
    """GPT-J's pairs: neighbours."""
    return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)


def rotary(x, theta, width=None, interleaved=False):
    """x [batch, heads, sequence, dim]: the first `width` entries are rotated."""
    width = width or x.shape[-1]
    inv_freq = 1.0 / theta ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
    angle = torch.outer(torch.arange(x.shape[2], dtype=torch.float64), inv_freq)
    if interleaved:
        angle, turned = angle.repeat_interleave(2, -1), rotate_every_two(x[..., :width])
    else:
        angle, turned = torch.cat((angle, angle), -1), rotate_half(x[..., :width])
    return torch.cat((x[..., :width] * angle.cos() + turned * angle.sin(), x[..., width:]), -1)


def alibi_slopes(num_heads):
    """modeling_bloom.py build_alibi_tensor."""
    closest = 2 ** math.floor(math.log2(num_heads))
    slope = 2 ** (-(2 ** -(math.log2(closest) - 3)))
    slopes = [slope**power for power in range(1, 1 + closest)]
    if closest != num_heads:
        extra = 2 ** (-(2 ** -(math.log2(2 * closest) - 3)))
        slopes += [extra**power for power in range(1, 1 + 2 * min(closest, num_heads - closest), 2)]
    return torch.tensor(slopes, dtype=torch.float64)


def mpt_slopes(num_heads, bias_max=8):
    """modeling_mpt.py build_mpt_alibi_tensor."""
    power_of_2 = 2 ** math.ceil(math.log2(num_heads))
    slopes = 1.0 / torch.pow(2, torch.arange(1, power_of_2 + 1, dtype=torch.float64) * (bias_max / power_of_2))
    if power_of_2 != num_heads:
        slopes = torch.cat((slopes[1::2], slopes[::2]))[:num_heads]
    return slopes


def attention(q, k, v, slopes=None, window=None):
    """Causal attention over [batch, heads, sequence, dim]; key heads are repeated."""
    k, v = (y.repeat_interleave(q.shape[1] // y.shape[1], 1) for y in (k, v))
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    length = q.shape[2]
    if slopes is not None:
        scores = scores + slopes[:, None, None] * torch.arange(length, dtype=torch.float64)
    seen = torch.ones(length, length, dtype=torch.bool).tril()
    if window is not None:
        seen = seen & torch.ones(length, length, dtype=torch.bool).triu(1 - window)
    return base.merged(scores.masked_fill(~seen, -math.inf).softmax(-1) @ v)


def top_k_experts(x, logits, top_k, renormalise, expert, margins):
    """Softmax over all experts, then the best k; expert(e, x) is one expert's MLP."""
    share = logits.softmax(-1)
    features.note_margin(share.detach(), top_k, margins)
    chosen, index = share.topk(top_k, -1)
    if renormalise:
        chosen = chosen / chosen.sum(-1, keepdim=True)
    share = torch.zeros_like(share).scatter(-1, index, chosen)
    return sum(share[..., e : e + 1] * expert(e, x) for e in range(logits.shape[-1]))


# ---- weights by meshsim's own names: families whose names of weights it does not know ----


class Own:
    """Names and shapes of meshsim's weights: dims in the order of its einsums."""

    def __init__(self, c, norm_bias=True):
        self.c, self.norm_bias, self.shapes = c, norm_bias, {}
        self.add("embedding.tokens.weight", c["vocab"], c["hidden"])

    def add(self, name, *shape):
        self.shapes["model." + name] = list(shape)

    def norm(self, name, width=None):
        self.add(name + ".weight", width or self.c["hidden"])
        if self.norm_bias:
            self.add(name + ".bias", width or self.c["hidden"])

    def layer(self, i, norms, qkv_bias=False, out_bias=False, mlp_bias=False, gated=False):
        c, layer = self.c, f"layers.{i}."
        heads, kv_heads, dim = c["heads"], c.get("kv_heads", c["heads"]), c["hidden"] // c["heads"]
        for norm in norms:
            self.norm(layer + norm)
        for name, count in (("query", heads), ("key", kv_heads), ("value", kv_heads)):
            self.add(f"{layer}attention.{name}.weight", c["hidden"], count, dim)
            if qkv_bias:
                self.add(f"{layer}attention.{name}_bias", count, dim)
        self.add(layer + "attention.output.weight", heads, dim, c["hidden"])
        if out_bias:
            self.add(layer + "attention.output_bias", c["hidden"])
        for name in ("gate", "up") if gated else ("up",):
            self.add(f"{layer}mlp.{name}.weight", c["hidden"], c["ffn"])
            if mlp_bias:
                self.add(f"{layer}mlp.{name}_bias", c["ffn"])
        self.add(layer + "mlp.down.weight", c["ffn"], c["hidden"])
        if mlp_bias:
            self.add(layer + "mlp.down_bias", c["hidden"])

    def head(self, tied, bias=False):
        self.norm("head.norm")
        if not tied:
            self.add("head.logits.weight", self.c["vocab"], self.c["hidden"])
        if bias:
            self.add("head.bias.bias", self.c["vocab"])
        return self.shapes


class Layer:
    """Projections of one layer by meshsim's names."""

    def __init__(self, weights, i):
        self.weights, self.name = weights, f"model.layers.{i}."

    def bias(self, name):
        return self.weights.get(self.name + name + "_bias", 0.0)

    def heads(self, x, name):
        """[batch, heads, sequence, dim]"""
        y = torch.einsum("bsh,hnd->bsnd", x, self.weights[f"{self.name}attention.{name}.weight"])
        return (y + self.bias("attention." + name)).transpose(1, 2)

    def qkv(self, x):
        return (self.heads(x, name) for name in ("query", "key", "value"))

    def out(self, x):
        weight = self.weights[self.name + "attention.output.weight"]
        return x @ weight.flatten(0, 1) + self.bias("attention.output")

    def linear(self, x, name):
        return x @ self.weights[f"{self.name}mlp.{name}.weight"] + self.bias("mlp." + name)

    def norm(self, x, name, epsilon):
        return layer_norm(x, self.weights, self.name + name, epsilon)


def embed(weights, tokens):
    return weights["model.embedding.tokens.weight"][tokens]


def logits_of(weights, x):
    head = weights.get("model.head.logits.weight", weights["model.embedding.tokens.weight"])
    return x @ head.T + weights.get("model.head.bias.bias", 0.0)


# ---- architectures with meshsim's own names: (config, shapes(config), logits(tokens, weights, config, margins)) ----

NORMS = ("attention.norm", "mlp.norm")


def bloom_shapes(c):
    own = Own(c)
    own.norm("embedding.norm")
    for i in range(c["layers"]):
        own.layer(i, NORMS, qkv_bias=True, out_bias=True, mlp_bias=True)
    return own.head(tied=True)


def bloom(tokens, weights, c, _):
    """Bloom's GELU has its constant sqrt(2 / pi) cut to eight digits, which is not done here."""
    x = layer_norm(embed(weights, tokens), weights, "model.embedding.norm", c["epsilon"])
    for i in range(c["layers"]):
        layer = Layer(weights, i)
        q, k, v = layer.qkv(layer.norm(x, "attention.norm", c["epsilon"]))
        x = x + layer.out(attention(q, k, v, alibi_slopes(c["heads"])))
        x = x + layer.linear(gelu_new(layer.linear(layer.norm(x, "mlp.norm", c["epsilon"]), "up")), "down")
    return logits_of(weights, layer_norm(x, weights, "model.head.norm", c["epsilon"]))


def mpt_shapes(c):
    own = Own(c, norm_bias=False)
    for i in range(c["layers"]):
        own.layer(i, NORMS)
    return own.head(tied=True)


def mpt(tokens, weights, c, _):
    x = embed(weights, tokens)
    for i in range(c["layers"]):
        layer = Layer(weights, i)
        q, k, v = layer.qkv(layer.norm(x, "attention.norm", c["epsilon"]))
        x = x + layer.out(attention(q, k, v, mpt_slopes(c["heads"])))
        x = x + layer.linear(F.gelu(layer.linear(layer.norm(x, "mlp.norm", c["epsilon"]), "up")), "down")
    return logits_of(weights, layer_norm(x, weights, "model.head.norm", c["epsilon"]))


def baichuan_shapes(c):
    own = Own(c, norm_bias=False)
    for i in range(c["layers"]):
        own.layer(i, NORMS, gated=True)
    return own.head(tied=False)


def baichuan(tokens, weights, c, _):
    def norm(x, name):
        return rms_norm(x, weights[name + ".weight"], c["epsilon"])

    x = embed(weights, tokens)
    for i in range(c["layers"]):
        layer = Layer(weights, i)
        q, k, v = layer.qkv(norm(x, layer.name + "attention.norm"))
        x = x + layer.out(attention(q, k, v, alibi_slopes(c["heads"])))
        y = norm(x, layer.name + "mlp.norm")
        x = x + layer.linear(F.silu(layer.linear(y, "gate")) * layer.linear(y, "up"), "down")
    return logits_of(weights, norm(x, "model.head.norm"))


def falcon_config(hf):
    heads = hf["num_attention_heads"]
    kv_heads = hf["num_kv_heads"] if hf["new_decoder_architecture"] else 1 if hf["multi_query"] else heads
    return {"hidden": hf["hidden_size"], "heads": heads, "kv_heads": kv_heads, "layers": hf["num_hidden_layers"],
            "vocab": hf["vocab_size"], "ffn": 4 * hf["hidden_size"], "epsilon": hf["layer_norm_epsilon"],
            "theta": hf["rope_theta"], "two_norms": hf["new_decoder_architecture"]}


def falcon_shapes(c):
    own = Own(c)
    for i in range(c["layers"]):
        own.layer(i, NORMS if c["two_norms"] else ("attention.norm",))
    return own.head(tied=True)


def falcon(tokens, weights, c, _):
    x = embed(weights, tokens)
    for i in range(c["layers"]):
        layer = Layer(weights, i)
        y = layer.norm(x, "attention.norm", c["epsilon"])
        z = layer.norm(x, "mlp.norm", c["epsilon"]) if c["two_norms"] else y
        q, k, v = layer.qkv(y)
        attended = layer.out(attention(rotary(q, c["theta"]), rotary(k, c["theta"]), v))
        x = x + attended + layer.linear(F.gelu(layer.linear(z, "up")), "down")
    return logits_of(weights, layer_norm(x, weights, "model.head.norm", c["epsilon"]))


def gptj_shapes(c):
    own = Own(c)
    for i in range(c["layers"]):
        own.layer(i, ("attention.norm",), mlp_bias=True)
    return own.head(tied=False, bias=True)


def gptj(tokens, weights, c, _):
    x = embed(weights, tokens)
    for i in range(c["layers"]):
        layer = Layer(weights, i)
        y = layer.norm(x, "attention.norm", c["epsilon"])
        q, k, v = layer.qkv(y)
        q, k = (rotary(z, 10000, c["rotary_dim"], interleaved=True) for z in (q, k))
        x = x + layer.out(attention(q, k, v)) + layer.linear(gelu_new(layer.linear(y, "up")), "down")
    return logits_of(weights, layer_norm(x, weights, "model.head.norm", c["epsilon"]))


def phi_shapes(c):
    own = Own(c)
    for i in range(c["layers"]):
        own.layer(i, ("attention.norm",), qkv_bias=True, out_bias=True, mlp_bias=True)
    return own.head(tied=False, bias=True)


def phi(tokens, weights, c, _):
    x = embed(weights, tokens)
    width = int(c["partial_rotary_factor"] * c["hidden"] // c["heads"])
    for i in range(c["layers"]):
        layer = Layer(weights, i)
        y = layer.norm(x, "attention.norm", c["epsilon"])
        q, k, v = layer.qkv(y)
        q, k = (rotary(z, c["theta"], width) for z in (q, k))
        x = x + layer.out(attention(q, k, v)) + layer.linear(gelu_new(layer.linear(y, "up")), "down")
    return logits_of(weights, layer_norm(x, weights, "model.head.norm", c["epsilon"]))


def stablelm_shapes(c):
    own = Own(c)
    for i in range(c["layers"]):
        own.layer(i, NORMS, qkv_bias=True, gated=True)
    return own.head(tied=False)


def stablelm(tokens, weights, c, _):
    x = embed(weights, tokens)
    width = int(c["partial_rotary_factor"] * c["hidden"] // c["heads"])
    for i in range(c["layers"]):
        layer = Layer(weights, i)
        q, k, v = layer.qkv(layer.norm(x, "attention.norm", c["epsilon"]))
        q, k = (rotary(z, c["theta"], width) for z in (q, k))
        x = x + layer.out(attention(q, k, v))
        y = layer.norm(x, "mlp.norm", c["epsilon"])
        x = x + layer.linear(F.silu(layer.linear(y, "gate")) * layer.linear(y, "up"), "down")
    return logits_of(weights, layer_norm(x, weights, "model.head.norm", c["epsilon"]))


def starcoder2_shapes(c):
    own = Own(c)
    for i in range(c["layers"]):
        own.layer(i, NORMS, qkv_bias=True, out_bias=True, mlp_bias=True)
    return own.head(tied=True)


def starcoder2(tokens, weights, c, _):
    x = embed(weights, tokens)
    for i in range(c["layers"]):
        layer = Layer(weights, i)
        q, k, v = layer.qkv(layer.norm(x, "attention.norm", c["epsilon"]))
        q, k = (rotary(z, c["theta"]) for z in (q, k))
        x = x + layer.out(attention(q, k, v, window=c["sliding_window"]))
        x = x + layer.linear(gelu_new(layer.linear(layer.norm(x, "mlp.norm", c["epsilon"]), "up")), "down")
    return logits_of(weights, layer_norm(x, weights, "model.head.norm", c["epsilon"]))


def nemotron_shapes(c):
    own = Own(c)
    for i in range(c["layers"]):
        own.layer(i, NORMS)
    return own.head(tied=False)


def nemotron(tokens, weights, c, _):
    def norm(x, name):  # NemotronLayerNorm1P
        return F.layer_norm(x, x.shape[-1:], weights[name + ".weight"] + 1, weights[name + ".bias"], c["epsilon"])

    x = embed(weights, tokens)
    width = int(c["partial_rotary_factor"] * c["hidden"] // c["heads"])
    for i in range(c["layers"]):
        layer = Layer(weights, i)
        q, k, v = layer.qkv(norm(x, layer.name + "attention.norm"))
        q, k = (rotary(z, c["theta"], width) for z in (q, k))
        x = x + layer.out(attention(q, k, v))
        x = x + layer.linear(relu2(layer.linear(norm(x, layer.name + "mlp.norm"), "up")), "down")
    return logits_of(weights, norm(x, "model.head.norm"))


def olmo2_shapes(c):
    own = Own(c, norm_bias=False)
    for i in range(c["layers"]):
        own.layer(i, ("attention.post_norm", "mlp.post_norm"), gated=True)
        for name, count in (("query", c["heads"]), ("key", c["kv_heads"])):
            own.add(f"layers.{i}.attention.{name}_position.weight", count, c["hidden"] // c["heads"])
    return own.head(tied=False)


def olmo2(tokens, weights, c, _):
    """Olmo2Attention's q_norm and k_norm are over all heads; Olmo2DecoderLayer has norms after its branches alone."""
    def norm(x, name):
        return rms_norm(x, weights[name + ".weight"], c["epsilon"])

    def over_heads(x, name):  # [batch, heads, sequence, dim]
        flat = x.transpose(1, 2).flatten(-2)
        flat = rms_norm(flat, weights[name + ".weight"].flatten(), c["epsilon"])
        return flat.unflatten(-1, (x.shape[1], x.shape[3])).transpose(1, 2)

    x = embed(weights, tokens)
    for i in range(c["layers"]):
        layer = Layer(weights, i)
        q, k, v = layer.qkv(x)
        q, k = (over_heads(y, f"{layer.name}attention.{name}_position") for y, name in ((q, "query"), (k, "key")))
        out = layer.out(attention(rotary(q, c["theta"]), rotary(k, c["theta"]), v))
        x = x + norm(out, layer.name + "attention.post_norm")
        out = layer.linear(F.silu(layer.linear(x, "gate")) * layer.linear(x, "up"), "down")
        x = x + norm(out, layer.name + "mlp.post_norm")
    return logits_of(weights, norm(x, "model.head.norm"))


def cohere_shapes(c):
    own = Own(c, norm_bias=False)
    for i in range(c["layers"]):
        own.layer(i, ("attention.norm",), gated=True)
    return own.head(tied=True)


def cohere(tokens, weights, c, _):
    """CohereLayerNorm has no bias; CohereDecoderLayer adds attention and MLP of one norm."""
    x = embed(weights, tokens)
    for i in range(c["layers"]):
        layer = Layer(weights, i)
        y = layer.norm(x, "attention.norm", c["epsilon"])
        q, k, v = layer.qkv(y)
        q, k = (rotary(z, c["theta"], interleaved=True) for z in (q, k))
        mlp = layer.linear(F.silu(layer.linear(y, "gate")) * layer.linear(y, "up"), "down")
        x = x + layer.out(attention(q, k, v)) + mlp
    return c["logit_scale"] * logits_of(weights, layer_norm(x, weights, "model.head.norm", c["epsilon"]))


def gpt_oss_shapes(c):
    own = Own(c, norm_bias=False)
    dim = c["hidden"] // c["heads"]
    for i in range(c["layers"]):
        layer = f"layers.{i}."
        for norm in NORMS:
            own.norm(layer + norm)
        for name, count in (("query", c["heads"]), ("key", c["kv_heads"]), ("value", c["kv_heads"])):
            own.add(f"{layer}attention.{name}.weight", c["hidden"], count, dim)
            own.add(f"{layer}attention.{name}_bias", count, dim)
        own.add(layer + "attention.sinks.weight", c["heads"])
        own.add(layer + "attention.output.weight", c["heads"], dim, c["hidden"])
        own.add(layer + "attention.output_bias", c["hidden"])
        own.add(layer + "router.logits.weight", c["hidden"], c["experts"])
        own.add(layer + "router.logits_bias", c["experts"])
        for e in range(c["experts"]):
            for name, shape in (("gate", ("hidden", "ffn")), ("up", ("hidden", "ffn")), ("down", ("ffn", "hidden"))):
                own.add(f"{layer}experts.{name}.{e}.weight", *(c[s] for s in shape))
                own.add(f"{layer}experts.{name}_bias.{e}.bias", c[shape[1]])
    return own.head(tied=False)


def yarn_angles(c, dim, length):
    """modeling_rope_utils.py _compute_yarn_parameters with truncate false: (angles of pairs, factor)."""
    base, factor, old = c["theta"], c["factor"], c["original"]

    def bound(rotations):
        return dim * math.log(old / (rotations * 2 * math.pi)) / (2 * math.log(base))

    low, high = max(bound(c["beta_fast"]), 0), min(bound(c["beta_slow"]), dim - 1)
    pairs = torch.arange(dim // 2, dtype=torch.float64)
    ramp = ((pairs - low) / (high - low)).clamp(0, 1)
    inv_freq = base ** (-2 * pairs / dim)
    inv_freq = inv_freq / factor * ramp + inv_freq * (1 - ramp)
    return torch.outer(torch.arange(length, dtype=torch.float64), inv_freq), 0.1 * math.log(factor) + 1


def with_sinks(q, k, v, sinks, window):
    """eager_attention_forward: one more column of scores, which the values do not have."""
    k, v = (y.repeat_interleave(q.shape[1] // y.shape[1], 1) for y in (k, v))
    length = q.shape[2]
    seen = torch.ones(length, length, dtype=torch.bool).tril()
    if window:
        seen = seen & torch.ones(length, length, dtype=torch.bool).triu(1 - window)
    scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(~seen, -math.inf)
    sink = sinks[None, :, None, None].expand(q.shape[0], -1, length, 1)
    return base.merged(torch.cat((scores, sink), -1).softmax(-1)[..., :-1] @ v)


def gpt_oss_experts(x, weights, name, c, margins):
    """GptOssTopKRouter and GptOssExperts, whose gate and up are limited."""
    logits = x @ weights[name + "router.logits.weight"] + weights[name + "router.logits_bias"]
    features.note_margin(logits.detach(), c["top_k"], margins)
    chosen, index = logits.topk(c["top_k"], -1)
    share = torch.zeros_like(logits).scatter(-1, index, chosen.softmax(-1))

    def expert(e):
        def linear(y, which):
            return y @ weights[f"{name}experts.{which}.{e}.weight"] + weights[f"{name}experts.{which}_bias.{e}.bias"]

        gate = linear(x, "gate").clamp(max=c["limit"])
        up = linear(x, "up").clamp(min=-c["limit"], max=c["limit"])
        return linear((up + 1) * gate * torch.sigmoid(1.702 * gate), "down")

    return sum(share[..., e : e + 1] * expert(e) for e in range(c["experts"]))


def gpt_oss(tokens, weights, c, margins):
    def norm(x, name):
        return rms_norm(x, weights[name + ".weight"], c["epsilon"])

    def turned(x):
        angle, factor = yarn_angles(c, x.shape[-1], x.shape[2])
        angle = torch.cat((angle, angle), -1)
        return factor * (x * angle.cos() + rotate_half(x) * angle.sin())

    x = embed(weights, tokens)
    for i in range(c["layers"]):
        layer = Layer(weights, i)
        q, k, v = layer.qkv(norm(x, layer.name + "attention.norm"))
        sinks = weights[layer.name + "attention.sinks.weight"]
        x = x + layer.out(with_sinks(turned(q), turned(k), v, sinks, c["window"] if i % 2 == 0 else None))
        x = x + gpt_oss_experts(norm(x, layer.name + "mlp.norm"), weights, layer.name, c, margins)
    return logits_of(weights, norm(x, "model.head.norm"))


def opt_config(hf):
    return {"layers": hf["num_hidden_layers"], "hidden": hf["hidden_size"], "heads": hf["num_attention_heads"],
            "ffn": hf["ffn_dim"], "vocab": hf["vocab_size"], "positions": hf["max_position_embeddings"], "epsilon": 1e-5}


def opt_shapes(c):
    own = Own(c)
    own.add("embedding.positions.weight", c["positions"] + 2, c["hidden"])
    for i in range(c["layers"]):
        own.layer(i, NORMS, qkv_bias=True, out_bias=True, mlp_bias=True)
    return own.head(tied=True)


def opt(tokens, weights, c, _):
    """OPTLearnedPositionalEmbedding: position 0 has row 2."""
    x = embed(weights, tokens) + weights["model.embedding.positions.weight"][2 : 2 + tokens.shape[1]]
    for i in range(c["layers"]):
        layer = Layer(weights, i)
        q, k, v = layer.qkv(layer.norm(x, "attention.norm", c["epsilon"]))
        x = x + layer.out(attention(q, k, v))
        x = x + layer.linear(F.relu(layer.linear(layer.norm(x, "mlp.norm", c["epsilon"]), "up")), "down")
    return logits_of(weights, layer_norm(x, weights, "model.head.norm", c["epsilon"]))


def nemotron_h_config(hf):
    return {"layers": hf["num_hidden_layers"], "hidden": hf["hidden_size"], "heads": hf["num_attention_heads"],
            "kv_heads": hf["num_key_value_heads"], "ffn": hf.get("intermediate_size"), "vocab": hf["vocab_size"],
            "epsilon": hf["layer_norm_epsilon"], "pattern": hf["hybrid_override_pattern"],
            "mamba_heads": hf["mamba_num_heads"], "mamba_dim": hf["mamba_head_dim"], "state": hf["ssm_state_size"],
            "groups": hf["n_groups"], "kernel": hf["conv_kernel"],
            "experts": hf.get("n_routed_experts"), "top_k": hf.get("num_experts_per_tok"),
            "expert_ffn": hf.get("moe_intermediate_size"), "shared_ffn": hf.get("moe_shared_expert_intermediate_size"),
            "scaling": hf.get("routed_scaling_factor")}


def nemotron_h_shapes(c):
    own = Own(c, norm_bias=False)
    inner, channels = c["mamba_heads"] * c["mamba_dim"], c["mamba_heads"] * c["mamba_dim"] + 2 * c["groups"] * c["state"]
    dim = c["hidden"] // c["heads"]
    for i, kind in enumerate(c["pattern"]):
        layer = f"layers.{i}."
        if kind == "M":
            own.norm(layer + "mamba.norm")
            own.add(layer + "mamba.input.weight", c["hidden"], inner + channels + c["mamba_heads"])
            own.add(layer + "mamba.convolution.weight", channels, c["kernel"])
            own.add(layer + "mamba.convolution_bias", channels)
            for name in ("decay.weight", "skip.weight", "step_bias"):
                own.add(layer + "mamba." + name, c["mamba_heads"])
            own.add(layer + "mamba.inner_norm.weight", inner)
            own.add(layer + "mamba.output.weight", inner, c["hidden"])
        elif kind == "*":
            own.norm(layer + "attention.norm")
            for name, count in (("query", c["heads"]), ("key", c["kv_heads"]), ("value", c["kv_heads"])):
                own.add(f"{layer}attention.{name}.weight", c["hidden"], count, dim)
            own.add(layer + "attention.output.weight", c["heads"], dim, c["hidden"])
        elif kind == "E":
            own.norm(layer + "mlp.norm")
            own.add(layer + "router.logits.weight", c["hidden"], c["experts"])
            own.add(layer + "router.bias.bias", c["experts"])
            mlps = [("experts", f".{e}", c["expert_ffn"]) for e in range(c["experts"])] + [("shared", "", c["shared_ffn"])]
            for name, expert, width in mlps:
                own.add(f"{layer}{name}.up{expert}.weight", c["hidden"], width)
                own.add(f"{layer}{name}.down{expert}.weight", width, c["hidden"])
        else:
            own.norm(layer + "mlp.norm")
            own.add(layer + "mlp.up.weight", c["hidden"], c["ffn"])
            own.add(layer + "mlp.down.weight", c["ffn"], c["hidden"])
    return own.head(tied=False)


def nemotron_experts(x, weights, name, c, margins):
    """NemotronHMOE: sigmoid scores; a bias chooses; the weights of the chosen are renormalised and scaled."""
    scores = torch.sigmoid(x @ weights[name + "router.logits.weight"])
    preference = (scores + weights[name + "router.bias.bias"]).detach()
    features.note_margin(preference, c["top_k"], margins)
    index = preference.topk(c["top_k"], -1).indices
    share = scores.gather(-1, index)
    share = share / share.sum(-1, keepdim=True) * c["scaling"]
    share = torch.zeros_like(scores).scatter(-1, index, share)

    def expert(kind, number):
        up, down = (weights[f"{name}{kind}.{way}{number}.weight"] for way in ("up", "down"))
        return relu2(x @ up) @ down

    routed = sum(share[..., e : e + 1] * expert("experts", f".{e}") for e in range(c["experts"]))
    return routed + expert("shared", "")


def mamba(x, weights, name, c):
    """NemotronHMamba2Mixer, its recurrence token after token. Projections are in_proj's, by groups of heads: gate, x, B, C,
    steps of one group, then of the next; channels of the convolution likewise."""
    batch, length, _ = x.shape
    groups, per_group, dim, state = c["groups"], c["mamba_heads"] // c["groups"], c["mamba_dim"], c["state"]
    inner = per_group * dim
    projected = (x @ weights[name + "input.weight"]).unflatten(-1, (groups, -1))
    gate, channels, step = projected.split([inner, inner + 2 * state, per_group], -1)
    kernel = weights[name + "convolution.weight"][:, None]
    mixed = F.conv1d(channels.flatten(-2).transpose(1, 2), kernel, weights[name + "convolution_bias"],
                     padding=c["kernel"] - 1, groups=kernel.shape[0])[..., :length]
    mixed = F.silu(mixed).transpose(1, 2).unflatten(-1, (groups, -1))
    u, b, k = mixed.split([inner, state, state], -1)
    u = u.unflatten(-1, (per_group, dim))
    by_head = {n: weights[name + n].unflatten(0, (groups, per_group)) for n in ("decay.weight", "skip.weight", "step_bias")}
    step = F.softplus(step + by_head["step_bias"])
    decay = torch.exp(step * -torch.exp(by_head["decay.weight"]))
    memory, out = torch.zeros(batch, groups, per_group, dim, state, dtype=torch.float64), []
    for t in range(length):
        added = (step[:, t, ..., None] * u[:, t])[..., None] * b[:, t, :, None, None, :]
        memory = decay[:, t, ..., None, None] * memory + added
        y = (memory * k[:, t, :, None, None, :]).sum(-1) + by_head["skip.weight"][..., None] * u[:, t]
        out.append(y.flatten(-2))
    y = torch.stack(out, 1) * F.silu(gate)  # norm_before_gate is false
    y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + c["epsilon"])
    return (y.flatten(-2) * weights[name + "inner_norm.weight"]) @ weights[name + "output.weight"]


def nemotron_h(tokens, weights, c, margins):
    """Attention has no positions; MLPs have squared ReLU."""

    def norm(x, name):
        return rms_norm(x, weights[name + ".weight"], c["epsilon"])

    x = embed(weights, tokens)
    for i, kind in enumerate(c["pattern"]):
        layer = Layer(weights, i)
        if kind == "M":
            x = x + mamba(norm(x, layer.name + "mamba.norm"), weights, layer.name + "mamba.", c)
        elif kind == "*":
            q, k, v = layer.qkv(norm(x, layer.name + "attention.norm"))
            x = x + layer.out(attention(q, k, v))
        elif kind == "E":
            x = x + nemotron_experts(norm(x, layer.name + "mlp.norm"), weights, layer.name, c, margins)
        else:
            x = x + layer.linear(relu2(layer.linear(norm(x, layer.name + "mlp.norm"), "up")), "down")
    return logits_of(weights, norm(x, "model.head.norm"))


# ---- architectures whose Hugging Face names meshsim knows; c is the config ----


def gpt2_shapes(c):
    model = {"hidden": c["n_embd"], "ffn_hidden": 4 * c["n_embd"], "vocab": c["vocab_size"],
             "max_positions": c["n_positions"], "layers": c["n_layer"]}
    return base.gpt2_shapes(model)


def gpt2(tokens, weights, c, margins):
    model = {"norm_epsilon": c["layer_norm_epsilon"], "layers": c["n_layer"], "heads": c["n_head"]}
    return base.gpt2_logits(tokens, weights, model, margins)


def llama_like_shapes(c):
    hidden, vocab = c["hidden_size"], c["vocab_size"]
    heads, dim = c["num_attention_heads"], c.get("head_dim", c["hidden_size"] // c["num_attention_heads"])
    kind = c["model_type"]
    shapes = {"model.embed_tokens.weight": [vocab, hidden], "model.norm.weight": [hidden]}
    if not c["tie_word_embeddings"]:
        shapes["lm_head.weight"] = [vocab, hidden]
    for i in range(c["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        shapes[layer + "input_layernorm.weight"] = [hidden]
        shapes[layer + "post_attention_layernorm.weight"] = [hidden]
        for letter, count in (("q", heads), ("k", c["num_key_value_heads"]), ("v", c["num_key_value_heads"])):
            shapes[f"{layer}self_attn.{letter}_proj.weight"] = [count * dim, hidden]
            if kind in ("qwen2", "qwen2_moe"):
                shapes[f"{layer}self_attn.{letter}_proj.bias"] = [count * dim]
            if kind in ("qwen3", "qwen3_moe") and letter != "v":
                shapes[f"{layer}self_attn.{letter}_norm.weight"] = [dim]
        shapes[layer + "self_attn.o_proj.weight"] = [hidden, heads * dim]
        if kind == "mixtral":
            moe = layer + "block_sparse_moe."
            shapes[moe + "gate.weight"] = [c["num_local_experts"], hidden]
            for e in range(c["num_local_experts"]):
                for name, shape in (("w1", [0, 1]), ("w2", [1, 0]), ("w3", [0, 1])):
                    sizes = (c["intermediate_size"], hidden)
                    shapes[f"{moe}experts.{e}.{name}.weight"] = [sizes[s] for s in shape]
            continue
        mlps = {"mlp.": c["intermediate_size"]}
        if kind.endswith("_moe"):
            shapes[layer + "mlp.gate.weight"] = [c["num_experts"], hidden]
            mlps = {f"mlp.experts.{e}.": c["moe_intermediate_size"] for e in range(c["num_experts"])}
        if kind == "qwen2_moe":
            shapes[layer + "mlp.shared_expert_gate.weight"] = [1, hidden]
            mlps["mlp.shared_expert."] = c["shared_expert_intermediate_size"]
        for name, width in mlps.items():
            shapes.update({layer + name + "gate_proj.weight": [width, hidden], layer + name + "up_proj.weight": [width, hidden],
                           layer + name + "down_proj.weight": [hidden, width]})
    return shapes


def llama_like(tokens, weights, c, margins):
    kind, epsilon = c["model_type"], c["rms_norm_eps"]

    def linear(x, name):
        return F.linear(x, weights[name + ".weight"], weights.get(name + ".bias"))

    def swiglu(x, gate, up, down):
        return linear(F.silu(linear(x, gate)) * linear(x, up), down)

    def projections(x, name):
        return swiglu(x, name + "gate_proj", name + "up_proj", name + "down_proj")

    def attend(x, name):
        heads = {"q": c["num_attention_heads"], "k": c["num_key_value_heads"], "v": c["num_key_value_heads"]}
        q, k, v = (base.heads_of(linear(x, f"{name}{letter}_proj"), heads[letter]) for letter in "qkv")
        if kind in ("qwen3", "qwen3_moe"):
            q = rms_norm(q, weights[name + "q_norm.weight"], epsilon)
            k = rms_norm(k, weights[name + "k_norm.weight"], epsilon)
        q, k = rotary(q, c["rope_theta"]), rotary(k, c["rope_theta"])
        return linear(attention(q, k, v, window=c["sliding_window"] if kind == "mistral" else None), name + "o_proj")

    def feed_forward(x, name):
        if kind == "mixtral":
            moe = name + "block_sparse_moe."
            return top_k_experts(x, linear(x, moe + "gate"), c["num_experts_per_tok"], True,
                                 lambda e, y: swiglu(y, *(f"{moe}experts.{e}.w{w}" for w in (1, 3, 2))), margins)
        if not kind.endswith("_moe"):
            return projections(x, name + "mlp.")
        y = top_k_experts(x, linear(x, name + "mlp.gate"), c["num_experts_per_tok"], c["norm_topk_prob"],
                          lambda e, z: projections(z, f"{name}mlp.experts.{e}."), margins)
        if kind == "qwen2_moe":
            y = y + torch.sigmoid(linear(x, name + "mlp.shared_expert_gate")) * projections(x, name + "mlp.shared_expert.")
        return y

    x = weights["model.embed_tokens.weight"][tokens]
    for i in range(c["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        x = x + attend(rms_norm(x, weights[layer + "input_layernorm.weight"], epsilon), layer + "self_attn.")
        x = x + feed_forward(rms_norm(x, weights[layer + "post_attention_layernorm.weight"], epsilon), layer)
    x = rms_norm(x, weights["model.norm.weight"], epsilon)
    return x @ weights.get("lm_head.weight", weights["model.embed_tokens.weight"]).T


# ---- the list ----

SMALL = {"layers": 2, "hidden": 16, "heads": 4, "ffn": 24, "vocab": 32, "epsilon": 1e-5}

# name: (config of a family that meshsim does not import, shapes, logits, whether norms are about 0)
OWN = {
    "bloom": ({**SMALL, "hidden": 24, "heads": 12, "ffn": 32}, bloom_shapes, bloom),
    "mpt": ({**SMALL, "ffn": 64}, mpt_shapes, mpt),
    "baichuan-13b": ({**SMALL, "epsilon": 1e-6}, baichuan_shapes, baichuan),
    "gpt-j": ({**SMALL, "hidden": 32, "rotary_dim": 4}, gptj_shapes, gptj),
    "phi-2": ({**SMALL, "hidden": 32, "partial_rotary_factor": 0.5, "theta": 10000}, phi_shapes, phi),
    "stablelm-2": ({**SMALL, "hidden": 32, "kv_heads": 4, "partial_rotary_factor": 0.25, "theta": 10000},
                   stablelm_shapes, stablelm),
    "starcoder2": ({**SMALL, "kv_heads": 2, "theta": 100000, "sliding_window": 6}, starcoder2_shapes, starcoder2),
    "nemotron-4": ({**SMALL, "kv_heads": 2, "partial_rotary_factor": 0.5, "theta": 10000}, nemotron_shapes, nemotron),
    "olmo-2": ({**SMALL, "kv_heads": 2, "theta": 500000, "epsilon": 1e-6}, olmo2_shapes, olmo2),
    "command-r": ({**SMALL, "theta": 10000, "logit_scale": 0.25}, cohere_shapes, cohere),
    "gpt-oss": ({**SMALL, "kv_heads": 2, "ffn": 12, "experts": 4, "top_k": 2, "window": 6, "limit": 0.125, "theta": 10,
                 "factor": 4, "original": 16, "beta_fast": 2, "beta_slow": 0.5}, gpt_oss_shapes, gpt_oss),
}
IMPORTED = {"gpt2": (gpt2_shapes, gpt2), "opt": (opt_shapes, opt), "falcon": (falcon_shapes, falcon),
            "nemotron_h": (nemotron_h_shapes, nemotron_h)}
CONFIGS = {"opt": opt_config, "falcon": falcon_config, "nemotron_h": nemotron_h_config}


def architecture(folder, name):
    """(config, shapes of weights, logits)"""
    if name in OWN:
        config, shapes, logits = OWN[name]
        return config, shapes(config), logits
    with open(os.path.join(folder, name + ".json")) as file:
        config = json.load(file)
    shapes, logits = IMPORTED.get(config["model_type"], (llama_like_shapes, llama_like))
    config = CONFIGS.get(config["model_type"], lambda c: c)(config)
    return config, shapes(config), logits


def main():
    torch.set_num_threads(1)
    folder = sys.argv[1]
    names = sys.argv[2:] or sorted(f[: -len(".json")] for f in os.listdir(folder) if f.endswith(".json"))
    for name in names:
        config, shapes, logits = architecture(folder, name)
        vocab = config.get("vocab", config.get("vocab_size"))
        weights = features.initial_by_name(shapes, name == "nemotron-4")
        losses, gradients, margin = features.train_weights(
            weights, vocab, lambda batch, w, margins: logits(batch["input_ids"], w, config, margins))
        print(f"{name}: losses {losses.tolist()}; closest choice of experts {margin:.2e}")
        if margin < 1e-5:
            raise SystemExit("two experts are too close: the choice may depend on rounding")
        base.write_tensors(os.path.join(folder, name + ".results.safetensors"), {**gradients, "losses": losses})


if __name__ == "__main__":
    main()
