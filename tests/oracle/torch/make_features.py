"""Losses and gradients of small models with the features of Gemma, DeepSeek, Llama 3.1, GPT-NeoX and GLM, by plain
PyTorch in fp64: an implementation that shares nothing with meshsim but the formulas.

    make_features.py FOLDER [NAME]...
        For each model file FOLDER/*.json (or those named) writes beside it .results.safetensors: the gradients of the first step by
        weight name, and the losses of five steps of AdamW.

Multi-token prediction is that of DeepSeek-V3, arXiv 2412.19437, section 2.2, equations 21 to 25.
Formulas: huggingface transformers modeling_gemma2.py, modeling_gemma3.py, modeling_deepseek_v2.py, modeling_deepseek_v3.py,
modeling_gpt_neox.py, modeling_glm4.py, modeling_rope_utils.py. Weights and tokens: make_oracle.py. Needs torch only.
"""
import glob
import json
import math
import os
import sys

import numpy as np
import torch

import make_oracle as base

STEPS = 5
RATE, BETA1, BETA2, EPSILON, DECAY = 1e-3, 0.9, 0.95, 1e-6, 0.1

# ---- layers ----


def layers_of(model):
    """[(has experts, window or None)] of every layer."""
    runs = model.get("layer_pattern", [{"count": model["layers"]}])
    layers = []
    while len(layers) < model["layers"]:
        for run in runs:
            layers += [(run.get("moe", "moe" in model), run.get("window_tokens"))] * run["count"]
    return layers[: model["layers"]]


def norm_shapes(model, name, width):
    shapes = {name + ".weight": [width]}
    if model["norm"] == "layer":
        shapes[name + ".bias"] = [width]
    return shapes


def mlp_shapes(model, name, width, biases):
    hidden = model["hidden"]
    shapes = {name + "up_proj.weight": [width, hidden], name + "down_proj.weight": [hidden, width]}
    if model["activation"] in ("swiglu", "geglu"):
        shapes[name + "gate_proj.weight"] = [width, hidden]
    if biases:
        shapes[name + "up_proj.bias"] = [width]
        shapes[name + "down_proj.bias"] = [hidden]
    return shapes


def attention_shapes(model, name):
    hidden, heads = model["hidden"], model["heads"]
    shapes = {}
    if "mla" in model:
        mla = model["mla"]
        width = mla["nope_head_dim"] + mla["rope_head_dim"]
        if mla["q_lora_rank"] > 0:
            shapes[name + "q_a_proj.weight"] = [mla["q_lora_rank"], hidden]
            shapes[name + "q_a_layernorm.weight"] = [mla["q_lora_rank"]]
            shapes[name + "q_b_proj.weight"] = [heads * width, mla["q_lora_rank"]]
        else:
            shapes[name + "q_proj.weight"] = [heads * width, hidden]
        shapes[name + "kv_a_proj_with_mqa.weight"] = [mla["kv_lora_rank"] + mla["rope_head_dim"], hidden]
        shapes[name + "kv_a_layernorm.weight"] = [mla["kv_lora_rank"]]
        shapes[name + "kv_b_proj.weight"] = [heads * (mla["nope_head_dim"] + mla["value_head_dim"]), mla["kv_lora_rank"]]
        shapes[name + "o_proj.weight"] = [hidden, heads * mla["value_head_dim"]]
        return shapes
    width = model["head_dim"]
    for letter, count in (("q", heads), ("k", model["kv_heads"]), ("v", model["kv_heads"])):
        shapes[name + letter + "_proj.weight"] = [count * width, hidden]
        if model.get("qkv_bias"):
            shapes[name + letter + "_proj.bias"] = [count * width]
        if model.get("qk_norm") and letter != "v":
            shapes[name + letter + "_norm.weight"] = [width]
    shapes[name + "o_proj.weight"] = [hidden, heads * width]
    if model.get("attention_out_bias"):
        shapes[name + "o_proj.bias"] = [hidden]
    return shapes


def expert_shapes(model, name):
    moe, hidden = model["moe"], model["hidden"]
    shapes = {name + "gate.weight": [moe["num_experts"], hidden]}
    if moe.get("router_bias"):
        shapes[name + "gate.e_score_correction_bias"] = [moe["num_experts"]]
    for e in range(moe["num_experts"]):
        shapes.update(mlp_shapes(model, f"{name}experts.{e}.", moe["ffn_hidden"], False))
    if moe.get("shared_ffn_hidden"):
        shapes.update(mlp_shapes(model, name + "shared_experts.", moe["shared_ffn_hidden"], False))
    return shapes


def num_modules(model):
    return model.get("num_nextn_predict_layers", 0)


def shapes_of(model):
    hidden, vocab = model["hidden"], model["vocab"]
    shapes = {"model.embed_tokens.weight": [vocab, hidden], **norm_shapes(model, "model.norm", hidden)}
    if not model["tied_embeddings"]:
        shapes["lm_head.weight"] = [vocab, hidden]
    layers = layers_of(model)
    for i in range(len(layers), len(layers) + num_modules(model)):
        shapes[f"model.layers.{i}.eh_proj.weight"] = [hidden, 2 * hidden]
        for norm in ("enorm", "hnorm", "shared_head.norm"):
            shapes.update(norm_shapes(model, f"model.layers.{i}.{norm}", hidden))
    for i, (moe, _) in enumerate(layers + num_modules(model) * layers[-1:]):
        layer = f"model.layers.{i}."
        norms = ["input_layernorm", "post_attention_layernorm"]
        if model.get("post_norms"):
            norms += ["pre_feedforward_layernorm", "post_feedforward_layernorm"]
        for norm in norms:
            shapes.update(norm_shapes(model, layer + norm, hidden))
        shapes.update(attention_shapes(model, layer + "self_attn."))
        mlp = layer + "mlp."
        shapes.update(expert_shapes(model, mlp) if moe else mlp_shapes(model, mlp, model["ffn_hidden"], model.get("mlp_bias")))
    return shapes


# ---- rotary positions ----


def scaled_frequencies(model, dim, window):
    """(inverse frequencies of `dim` / 2 pairs, factor of cosines and sines), as modeling_rope_utils.py."""
    local = window is not None and "rotary_local_base" in model
    theta = model["rotary_local_base"] if local else model["rotary_base"]
    exponents = torch.arange(0, dim, 2, dtype=torch.float64) / dim
    inv_freq = 1.0 / theta**exponents
    scaling = model.get("rotary_scaling")
    if scaling is None or local:
        return inv_freq, 1.0
    factor, old = scaling["factor"], scaling.get("original_positions")
    if scaling["type"] == "linear":
        return inv_freq / factor, 1.0
    if scaling["type"] == "llama3":
        low, high = scaling["low_frequency_factor"], scaling["high_frequency_factor"]
        wavelen = 2 * math.pi / inv_freq
        smooth = (old / wavelen - low) / (high - low)
        smoothed = (1 - smooth) * inv_freq / factor + smooth * inv_freq
        llama = torch.where(wavelen > old / low, inv_freq / factor, inv_freq)
        medium = (wavelen <= old / low) & (wavelen >= old / high)
        return torch.where(medium, smoothed, llama), 1.0

    def correction_dim(rotations):
        return dim * math.log(old / (rotations * 2 * math.pi)) / (2 * math.log(theta))

    def get_mscale(mscale):
        return 1.0 if factor <= 1 else 0.1 * mscale * math.log(factor) + 1.0

    low = max(math.floor(correction_dim(scaling["beta_fast"])), 0)
    high = min(math.ceil(correction_dim(scaling["beta_slow"])), dim - 1)
    if low == high:
        high += 0.001
    ramp = ((torch.arange(dim // 2, dtype=torch.float64) - low) / (high - low)).clamp(0, 1)
    inv_freq = inv_freq / factor * ramp + inv_freq * (1 - ramp)
    if scaling.get("attention_factor"):
        return inv_freq, scaling["attention_factor"]
    if scaling.get("mscale") and scaling.get("mscale_all_dim"):
        return inv_freq, get_mscale(scaling["mscale"]) / get_mscale(scaling["mscale_all_dim"])
    return inv_freq, get_mscale(1.0)


def rotate(x, model, window):
    """x [batch, heads, sequence, dim]: rotated by positions."""
    inv_freq, amplitude = scaled_frequencies(model, x.shape[-1], window)
    inv_freq = inv_freq.to(x.dtype)
    angle = torch.outer(torch.arange(x.shape[2], dtype=x.dtype), inv_freq)
    if model.get("rotary_interleaved"):
        turned = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
        turn = torch.polar(torch.full_like(angle, amplitude), angle)
        return torch.view_as_real(turned * turn).flatten(-2)
    both = torch.cat((angle, angle), -1)
    x1, x2 = x.chunk(2, -1)
    return amplitude * (x * both.cos() + torch.cat((-x2, x1), -1) * both.sin())


# ---- dropout ----


def philox(key, counter):
    """Philox4x32-10 (Salmon et al. 2011) of arrays of counters: four arrays of words."""
    c = [np.asarray(x, dtype=np.uint64) for x in counter]
    k = [key & 0xFFFFFFFF, key >> 32]
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(second >> np.uint64(32)) ^ c[1] ^ np.uint64(k[0]), second & low,
             (first >> np.uint64(32)) ^ c[3] ^ np.uint64(k[1]), first & low]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def dropped(x, rate, model, layer, place):
    """x [sequence, .., row, column]: dropout whose masks depend on these indices, the step, the layer and the place in it;
    with four dims the second counts heads, whose places follow `place`."""
    if rate == 0:
        return x
    key = base.split(base.split(base.SEED, 0xD809), model["step"])
    index = np.indices(x.shape)
    head = index[1] if x.dim() == 4 else 0
    site = np.broadcast_to((layer + 1) * (model["heads"] + 2) + place + head, x.shape)
    words = philox(key, (index[-1] // 4, index[-2], index[0], site))
    word = np.choose(index[-1] % 4, words)
    return x * torch.from_numpy((word >= int(rate * 2**32)).astype(np.float64)) / (1 - rate)


# ---- operations ----


def norm_of(x, weights, name, model, rms=False):
    weight = weights[name + ".weight"]
    if model.get("norm_plus_one"):
        weight = 1.0 + weight
    if model["norm"] == "layer" and not rms:
        return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, weights[name + ".bias"], model["norm_epsilon"])
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + model["norm_epsilon"]) * weight


def linear(x, weights, name):
    return torch.nn.functional.linear(x, weights[name + ".weight"], weights.get(name + ".bias"))


def attend(q, k, v, model, scale, window):
    scores = q @ k.transpose(-1, -2) * scale
    cap = model.get("attention_softcap")
    if cap:
        scores = cap * torch.tanh(scores / cap)
    query, key = torch.arange(q.shape[2])[:, None], torch.arange(q.shape[2])[None, :]
    hidden = key > query
    if window is not None:
        hidden = hidden | (key <= query - window)
    share = scores.masked_fill(hidden, -math.inf).softmax(-1)
    return dropped(share, model.get("attention_dropout", 0), model, model.get("layer"), 2) @ v


def grouped_attention(x, weights, name, model, window):
    width, dim = model["head_dim"], model.get("rotary_dim", model["head_dim"])
    q, k, v = (base.heads_of(linear(x, weights, name + letter + "_proj"), model["heads" if letter == "q" else "kv_heads"])
               for letter in "qkv")
    if model.get("qk_norm"):
        q = norm_of(q, weights, name + "q_norm", model, rms=True)
        k = norm_of(k, weights, name + "k_norm", model, rms=True)
    q, k = (torch.cat((rotate(y[..., :dim], model, window), y[..., dim:]), -1) for y in (q, k))
    shared = model["heads"] // model["kv_heads"]
    scale = model.get("query_pre_attn_scalar", width) ** -0.5
    out = attend(q, k.repeat_interleave(shared, 1), v.repeat_interleave(shared, 1), model, scale, window)
    return linear(base.merged(out), weights, name + "o_proj")


def latent_attention(x, weights, name, model, window):
    mla, heads = model["mla"], model["heads"]
    nope, rope, value = mla["nope_head_dim"], mla["rope_head_dim"], mla["value_head_dim"]
    if mla["q_lora_rank"] > 0:
        q = linear(norm_of(linear(x, weights, name + "q_a_proj"), weights, name + "q_a_layernorm", model), weights, name + "q_b_proj")
    else:
        q = linear(x, weights, name + "q_proj")
    q_pass, q_rot = base.heads_of(q, heads).split([nope, rope], -1)
    latent, k_rot = linear(x, weights, name + "kv_a_proj_with_mqa").split([mla["kv_lora_rank"], rope], -1)
    latent = linear(norm_of(latent, weights, name + "kv_a_layernorm", model), weights, name + "kv_b_proj")
    k_pass, v = base.heads_of(latent, heads).split([nope, value], -1)
    k_rot = rotate(k_rot[:, None], model, window).expand(-1, heads, -1, -1)
    q = torch.cat((q_pass, rotate(q_rot, model, window)), -1)
    k = torch.cat((k_pass, k_rot), -1)
    scale = (nope + rope) ** -0.5
    scaling = model.get("rotary_scaling", {})
    if scaling.get("mscale_all_dim"):
        scale *= (0.1 * scaling["mscale_all_dim"] * math.log(scaling["factor"]) + 1.0) ** 2
    return linear(base.merged(attend(q, k, v, model, scale, window)), weights, name + "o_proj")


def activation(x, model):
    if model["activation"] == "swiglu":
        return torch.nn.functional.silu(x)
    return base.gelu_tanh(x) if model.get("gelu_tanh") else torch.nn.functional.gelu(x)


def mlp(x, weights, name, model):
    up = linear(x, weights, name + "up_proj")
    if name + "gate_proj.weight" in weights:
        return linear(activation(linear(x, weights, name + "gate_proj"), model) * up, weights, name + "down_proj")
    return linear(activation(up, model), weights, name + "down_proj")


def note_margin(preference, top_k, margins):
    ranked = preference.sort(-1, descending=True).values
    margins.append((ranked[..., top_k - 1] - ranked[..., top_k]).min().item())


def experts(x, weights, name, model, margins):
    moe = model["moe"]
    logits = linear(x, weights, name + "gate")
    scores = logits.sigmoid() if moe["router"] == "sigmoid" else logits.softmax(-1)
    preference = scores.detach() + weights.get(name + "gate.e_score_correction_bias", torch.zeros(())).detach()
    if moe.get("num_groups", 1) > 1:
        grouped = preference.unflatten(-1, (moe["num_groups"], -1))
        group = grouped.topk(2, -1).values.sum(-1) if moe["router"] == "sigmoid" else grouped.max(-1).values
        if moe["top_groups"] < moe["num_groups"]:
            note_margin(group, moe["top_groups"], margins)
        chosen = torch.zeros_like(group).scatter(-1, group.topk(moe["top_groups"], -1).indices, 1).bool()
        preference = grouped.masked_fill(~chosen[..., None], -math.inf).flatten(-2)
    note_margin(preference, moe["top_k"], margins)
    index = preference.topk(moe["top_k"], -1).indices
    share = scores.gather(-1, index)
    if moe["norm_topk"]:
        share = share / share.sum(-1, keepdim=True)
    share = torch.zeros_like(scores).scatter(-1, index, share * moe.get("routed_scaling", 1.0))
    out = mlp(x, weights, name + "shared_experts.", model) if moe.get("shared_ffn_hidden") else torch.zeros_like(x)
    for e in range(moe["num_experts"]):
        out = out + share[..., e : e + 1] * mlp(x, weights, f"{name}experts.{e}.", model)
    return out


def layer_of(x, weights, model, i, kind, margins):
    moe, window = kind
    layer = f"model.layers.{i}."
    attention = latent_attention if "mla" in model else grouped_attention
    model["layer"], rate = i, model.get("hidden_dropout", 0)

    def forward(y):
        if moe:
            return experts(y, weights, layer + "mlp.", model, margins)
        return mlp(y, weights, layer + "mlp.", model)

    normed = norm_of(x, weights, layer + "input_layernorm", model)
    out = attention(normed, weights, layer + "self_attn.", model, window)
    if model.get("parallel_block"):
        return x + out + forward(norm_of(x, weights, layer + "post_attention_layernorm", model))
    if model.get("post_norms"):
        x = x + norm_of(out, weights, layer + "post_attention_layernorm", model)
        out = forward(norm_of(x, weights, layer + "pre_feedforward_layernorm", model))
        return x + norm_of(out, weights, layer + "post_feedforward_layernorm", model)
    x = x + dropped(out, rate, model, i, 0)
    out = forward(norm_of(x, weights, layer + "post_attention_layernorm", model))
    return x + dropped(out, rate, model, i, 1)


def embedding_of(tokens, weights, model):
    return weights["model.embed_tokens.weight"][tokens] * model.get("embedding_scale", 1.0)


def hidden_of(tokens, weights, model, margins):
    """Hidden states before the last norm."""
    x = embedding_of(tokens, weights, model)
    for i, kind in enumerate(layers_of(model)):
        x = layer_of(x, weights, model, i, kind, margins)
    return x


def head_of(x, weights, model, norm):
    x = norm_of(x, weights, norm, model)
    logits = x @ weights["model.embed_tokens.weight" if model["tied_embeddings"] else "lm_head.weight"].T
    cap = model.get("logit_softcap")
    return cap * torch.tanh(logits / cap) if cap else logits


def logits_of(tokens, weights, model, margins):
    return head_of(hidden_of(tokens, weights, model, margins), weights, model, "model.norm")


# ---- multi-token prediction ----


def module_losses(batch, x, weights, model, margins):
    """Weighted losses of all modules: module k predicts, at position i of T, the target of position i + k, from the hidden
    state of the module before and the embedding of token i + k; the sum is divided by all T positions (equation 24)."""
    total, layers, length = 0.0, layers_of(model), x.shape[1]
    for k in range(1, num_modules(model) + 1):
        name = f"model.layers.{len(layers) + k - 1}."
        hidden = norm_of(x[:, : length - k], weights, name + "hnorm", model)
        ahead = norm_of(embedding_of(batch["input_ids"][:, k:], weights, model), weights, name + "enorm", model)
        x = linear(torch.cat((ahead, hidden), -1), weights, name + "eh_proj")
        x = layer_of(x, weights, model, len(layers) + k - 1, layers[-1], margins)
        logits = head_of(x, weights, model, name + "shared_head.norm")
        total = total + torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch["labels"][:, k:].flatten(),
                                                          reduction="sum")
    return total * model.get("nextn_loss_weight", 0.1) / num_modules(model) / batch["labels"].numel()


# ---- training ----


def loss_of(logits, batch):
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten())


def gradients_of(loss, weights):
    gradients = torch.autograd.grad(loss, list(weights.values()), allow_unused=True)
    return {name: torch.zeros_like(weights[name]) if g is None else g for name, g in zip(weights, gradients)}


def initial_by_name(shapes, norm_plus_one):
    weights = {}
    for name, shape in shapes.items():
        about_0 = name.endswith("_bias") or (norm_plus_one and "norm" in name)
        if "mamba.skip" in name or name.endswith("_position.weight"):  # about 1, as the weights of other norms
            weights[name] = base.initial(name, shape, is_norm=True)
            continue
        weights[name] = base.initial(name, shape)
        if about_0:
            key = base.split(base.SEED, base.hash_of(name))
            drawn = [base.Stream(base.split(key, i)).uniform() for i in range(math.prod(shape))]
            weights[name] = base.SPREAD * (2.0 * torch.tensor(drawn, dtype=torch.float64) - 1.0).reshape(shape)
    return weights


def train_weights(weights, vocab, logits_of_batch, more=None):
    """Losses of five steps, the gradients of the first, and the closest choice of experts; in fp64. more(batch, weights,
    margins): what is minimized beside the loss."""
    weights = {name: w.requires_grad_() for name, w in weights.items()}
    first = {name: torch.zeros_like(w) for name, w in weights.items()}
    second = {name: torch.zeros_like(w) for name, w in weights.items()}
    losses, first_gradients, margins = [], None, [math.inf]
    for step in range(STEPS):
        batch = base.batch_of(vocab, step)
        loss = loss_of(logits_of_batch(batch, weights, margins), batch)
        gradients = gradients_of(loss if more is None else loss + more(batch, weights, margins), weights)
        losses.append(loss.detach())
        first_gradients = first_gradients or gradients
        with torch.no_grad():
            for name, w in weights.items():
                g = gradients[name]
                first[name] = BETA1 * first[name] + (1 - BETA1) * g
                second[name] = BETA2 * second[name] + (1 - BETA2) * g * g
                m = first[name] / (1 - BETA1 ** (step + 1))
                v = second[name] / (1 - BETA2 ** (step + 1))
                w -= RATE * DECAY * w + RATE * m / (v.sqrt() + EPSILON)
    return torch.stack(losses), first_gradients, min(margins)


def train(model):
    weights = initial_by_name(shapes_of(model), model.get("norm_plus_one"))
    modules = None
    if num_modules(model) > 0:
        def modules(batch, w, margins):
            return module_losses(batch, hidden_of(batch["input_ids"], w, model, margins), w, model, margins)
    def logits(batch, w, margins):
        model["step"] = model.get("step", -1) + 1
        return logits_of(batch["input_ids"], w, model, margins)

    return train_weights(weights, model["vocab"], logits, modules)


def main():
    torch.set_num_threads(1)
    named = [os.path.join(sys.argv[1], name + ".json") for name in sys.argv[2:]]
    for path in named or sorted(glob.glob(os.path.join(sys.argv[1], "*.json"))):
        with open(path) as file:
            model = json.load(file)
        losses, gradients, margin = train(model)
        print(f"{model['name']}: losses {losses.tolist()}; closest choice of experts {margin:.2e}")
        if margin < 1e-5:
            raise SystemExit("two experts are too close: the choice may depend on rounding")
        base.write_tensors(path[: -len(".json")] + ".results.safetensors", {**gradients, "losses": losses})


if __name__ == "__main__":
    main()
