"""Loss and gradients of small transformers, by plain PyTorch: an implementation that shares nothing with
meshsim but the formulas, against which its runner is tested.

    make_oracle.py FOLDER
        For each model FOLDER/tiny-*.json writes beside it .weights, .batch and .gradients.safetensors: initial
        weights and tokens by meshsim's generators, written here a second time, and what follows from them.
    make_oracle.py --model M.json --weights W --batch B -o G
        Gradients of weights and a batch that `meshsim run --save-weights W --save-batch B` wrote.

Formulas: Llama (Touvron et al. 2023), Mixtral (Jiang et al. 2024), GPT-2 (Radford et al. 2019); names and layouts of
weights as in transformers modeling_llama.py, modeling_mixtral.py, modeling_gpt2.py. Needs torch only.
"""
import argparse
import glob
import json
import math
import os
import struct

import torch

SEED = 1
DEVIATION = 0.2  # of initial weights: large, so that every gradient matters
SPREAD = 0.1  # of norms about 1 and of biases about 0
SEQUENCE = 16
BATCH = 4

# ---- safetensors ----

TYPES = {"F64": torch.float64, "F32": torch.float32, "BF16": torch.bfloat16, "I64": torch.int64}


def read_tensors(path):
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        bytes_ = bytearray(data[8 + length + begin : 8 + length + end])
        tensors[name] = torch.frombuffer(bytes_, dtype=TYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def write_tensors(path, tensors):
    names = {dtype: name for name, dtype in TYPES.items()}
    header, data = {}, b""
    for name in sorted(tensors):
        tensor = tensors[name].detach().contiguous()
        begin = len(data)
        data += bytes(tensor.numpy().tobytes())
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


# ---- meshsim's generators (base/rng.c, exec/params/names.c, exec/params/tokens.c) ----

MASK = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15


def mix(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def split(seed, key):
    return mix(mix(seed + GAMMA & MASK) ^ mix(key * GAMMA + 1 & MASK))


class Stream:
    """SplitMix64."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = self.state + GAMMA & MASK
        return mix(self.state)

    def uniform(self):
        return (self.next() >> 11) * 2.0**-53

    def below(self, bound):
        while True:
            drawn = self.next()
            if drawn >= 2**64 % bound:
                return drawn % bound


def hash_of(name):
    """FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 & MASK
    return value


def initial(name, shape, is_norm=False):
    key = split(SEED, hash_of(name))
    is_bias = name.endswith(".bias")
    is_norm = is_norm or not is_bias and ("norm" in name or ".ln_" in name or name.startswith("ln_"))
    values = []
    for element in range(math.prod(shape)):
        stream = Stream(split(key, element))
        first = stream.uniform()
        if is_norm or is_bias:
            values.append(is_norm + SPREAD * (2.0 * first - 1.0))
        else:
            angle = 2.0 * math.pi * stream.uniform()
            values.append(DEVIATION * math.sqrt(-2.0 * math.log(1.0 - first)) * math.cos(angle))
    return torch.tensor(values, dtype=torch.float64).reshape(shape)


def batch_of(vocab, step=0):
    symbols = min(vocab, 256)
    inputs, labels = [], []
    for sequence in range(BATCH):
        stream = Stream(split(split(SEED, step), sequence))
        tokens = [stream.below(symbols)]
        for _ in range(SEQUENCE):
            symbol = (5 * tokens[-1] + 7) % symbols
            if stream.uniform() < 0.1:
                symbol = stream.below(symbols)
            tokens.append(symbol)
        tokens = [token * (vocab // symbols) for token in tokens]
        inputs.append(tokens[:-1])
        labels.append(tokens[1:])
    return {"input_ids": torch.tensor(inputs), "labels": torch.tensor(labels)}


# ---- names and shapes ----


def llama_shapes(model):
    hidden, vocab, width = model["hidden"], model["vocab"], model["head_dim"]
    shapes = {"model.embed_tokens.weight": [vocab, hidden], "model.norm.weight": [hidden], "lm_head.weight": [vocab, hidden]}
    for i in range(model["layers"]):
        layer = f"model.layers.{i}."
        shapes[layer + "input_layernorm.weight"] = [hidden]
        shapes[layer + "post_attention_layernorm.weight"] = [hidden]
        shapes[layer + "self_attn.q_proj.weight"] = [model["heads"] * width, hidden]
        shapes[layer + "self_attn.k_proj.weight"] = [model["kv_heads"] * width, hidden]
        shapes[layer + "self_attn.v_proj.weight"] = [model["kv_heads"] * width, hidden]
        shapes[layer + "self_attn.o_proj.weight"] = [hidden, model["heads"] * width]
        if "moe" in model:
            moe = layer + "block_sparse_moe."
            shapes[moe + "gate.weight"] = [model["moe"]["num_experts"], hidden]
            for e in range(model["moe"]["num_experts"]):
                shapes[f"{moe}experts.{e}.w1.weight"] = [model["moe"]["ffn_hidden"], hidden]
                shapes[f"{moe}experts.{e}.w2.weight"] = [hidden, model["moe"]["ffn_hidden"]]
                shapes[f"{moe}experts.{e}.w3.weight"] = [model["moe"]["ffn_hidden"], hidden]
        else:
            shapes[layer + "mlp.gate_proj.weight"] = [model["ffn_hidden"], hidden]
            shapes[layer + "mlp.up_proj.weight"] = [model["ffn_hidden"], hidden]
            shapes[layer + "mlp.down_proj.weight"] = [hidden, model["ffn_hidden"]]
    return shapes


def gpt2_shapes(model):
    hidden, ffn = model["hidden"], model["ffn_hidden"]
    shapes = {"wte.weight": [model["vocab"], hidden], "wpe.weight": [model["max_positions"], hidden]}
    shapes.update({"ln_f.weight": [hidden], "ln_f.bias": [hidden]})
    for i in range(model["layers"]):
        for norm in ("ln_1", "ln_2"):
            shapes[f"h.{i}.{norm}.weight"] = [hidden]
            shapes[f"h.{i}.{norm}.bias"] = [hidden]
        for name, rows, columns in (
            ("attn.c_attn", hidden, 3 * hidden),
            ("attn.c_proj", hidden, hidden),
            ("mlp.c_fc", hidden, ffn),
            ("mlp.c_proj", ffn, hidden),
        ):
            shapes[f"h.{i}.{name}.weight"] = [rows, columns]
            shapes[f"h.{i}.{name}.bias"] = [columns]
    return shapes


# ---- models ----


def rms_norm(x, weight, epsilon):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon) * weight


def layer_norm(x, weight, bias, epsilon):
    centred = x - x.mean(-1, keepdim=True)
    return centred * torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + epsilon) * weight + bias


def rotate(x, base):
    """x [batch, heads, sequence, width]: halves rotated against each other."""
    half = x.shape[-1] // 2
    frequency = base ** (-torch.arange(half, dtype=x.dtype) / half)
    angle = torch.arange(x.shape[2], dtype=x.dtype)[:, None] * frequency
    low, high = x[..., :half], x[..., half:]
    return torch.cat([low * angle.cos() - high * angle.sin(), high * angle.cos() + low * angle.sin()], -1)


def attend(q, k, v):
    """Causal attention over [batch, heads, sequence, width]."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    length = q.shape[2]
    later = torch.ones(length, length, dtype=torch.bool).triu(1)
    return scores.masked_fill(later, -math.inf).softmax(-1) @ v


def heads_of(x, num_heads):
    batch, length, width = x.shape
    return x.view(batch, length, num_heads, width // num_heads).transpose(1, 2)


def merged(x):
    return x.transpose(1, 2).flatten(2)


def llama_attention(x, weights, layer, model):
    q = heads_of(x @ weights[layer + "self_attn.q_proj.weight"].T, model["heads"])
    k = heads_of(x @ weights[layer + "self_attn.k_proj.weight"].T, model["kv_heads"])
    v = heads_of(x @ weights[layer + "self_attn.v_proj.weight"].T, model["kv_heads"])
    q, k = rotate(q, model["rotary_base"]), rotate(k, model["rotary_base"])
    shared = model["heads"] // model["kv_heads"]
    out = attend(q, k.repeat_interleave(shared, 1), v.repeat_interleave(shared, 1))
    return merged(out) @ weights[layer + "self_attn.o_proj.weight"].T


def swiglu(x, gate, up, down):
    return (torch.nn.functional.silu(x @ gate.T) * (x @ up.T)) @ down.T


def experts(x, weights, layer, model, margins):
    """The top-k of a softmax over all experts, renormalised."""
    moe = layer + "block_sparse_moe."
    num, top_k = model["moe"]["num_experts"], model["moe"]["top_k"]
    probability = (x @ weights[moe + "gate.weight"].T).softmax(-1)
    ranked = probability.sort(-1, descending=True).values
    margins.append((ranked[..., top_k - 1] / ranked[..., top_k]).min().item())
    chosen, index = probability.topk(top_k, -1)
    share = torch.zeros_like(probability).scatter(-1, index, chosen / chosen.sum(-1, keepdim=True))
    out = torch.zeros_like(x)
    for e in range(num):
        w1, w2, w3 = (weights[f"{moe}experts.{e}.w{i}.weight"] for i in (1, 2, 3))
        out = out + share[..., e : e + 1] * swiglu(x, w1, w3, w2)
    return out


def llama_logits(tokens, weights, model, margins):
    x = weights["model.embed_tokens.weight"][tokens]
    epsilon = model["norm_epsilon"]
    for i in range(model["layers"]):
        layer = f"model.layers.{i}."
        normed = rms_norm(x, weights[layer + "input_layernorm.weight"], epsilon)
        x = x + llama_attention(normed, weights, layer, model)
        normed = rms_norm(x, weights[layer + "post_attention_layernorm.weight"], epsilon)
        if "moe" in model:
            x = x + experts(normed, weights, layer, model, margins)
        else:
            x = x + swiglu(normed, *(weights[f"{layer}mlp.{name}_proj.weight"] for name in ("gate", "up", "down")))
    return rms_norm(x, weights["model.norm.weight"], epsilon) @ weights["lm_head.weight"].T


def gelu_tanh(x):
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x.pow(3))))


def gpt2_logits(tokens, weights, model, _):
    epsilon = model["norm_epsilon"]
    x = weights["wte.weight"][tokens] + weights["wpe.weight"][: tokens.shape[1]]

    def norm(x, name):
        return layer_norm(x, weights[name + ".weight"], weights[name + ".bias"], epsilon)

    def linear(x, name):
        return x @ weights[name + ".weight"] + weights[name + ".bias"]

    for i in range(model["layers"]):
        layer = f"h.{i}."
        q, k, v = linear(norm(x, layer + "ln_1"), layer + "attn.c_attn").chunk(3, -1)
        q, k, v = (heads_of(part, model["heads"]) for part in (q, k, v))
        x = x + linear(merged(attend(q, k, v)), layer + "attn.c_proj")
        x = x + linear(gelu_tanh(linear(norm(x, layer + "ln_2"), layer + "mlp.c_fc")), layer + "mlp.c_proj")
    return norm(x, "ln_f") @ weights["wte.weight"].T


# ---- the oracle ----


def gradients_of(model, weights, batch, dtype):
    """The mean loss over all tokens, its gradients, and the smallest ratio between an expert that was chosen and one that was not."""
    weights = {name: weight.detach().to(dtype).requires_grad_() for name, weight in weights.items()}
    margins = [math.inf]
    logits = (gpt2_logits if model["family"] == "gpt2" else llama_logits)(batch["input_ids"], weights, model, margins)
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten())
    loss.backward()
    return loss.detach(), {name: weight.grad for name, weight in weights.items()}, min(margins)


def write_oracle(model, weights, batch, path):
    loss, gradients, margin = gradients_of(model, weights, batch, torch.float64)
    loss32, gradients32, _ = gradients_of(model, weights, batch, torch.float32)
    worst = max(((gradients32[n] - gradients[n]).abs().max() / gradients[n].abs().max()).item() for n in gradients)
    chosen = "" if margin == math.inf else f"; experts are chosen by a factor of at least {margin:.3f}"
    print(f"{model['name']}: loss {loss:.15f}, in fp32 {loss32:.9f}; "
          f"gradients in fp32 differ by up to {worst:.1e} of their largest{chosen}")
    if margin < 1.0001:
        raise SystemExit("two experts are too close: the choice may depend on rounding")
    write_tensors(path, {**gradients, "loss": loss, "loss_fp32": loss32})


def read_model(path):
    with open(path) as file:
        return json.load(file)


def write_folder(folder):
    for path in sorted(glob.glob(os.path.join(folder, "tiny-*.json"))):
        model = read_model(path)
        stem = path[: -len(".json")]
        shapes = (gpt2_shapes if model["family"] == "gpt2" else llama_shapes)(model)
        weights = {name: initial(name, shape) for name, shape in shapes.items()}
        batch = batch_of(model["vocab"])
        write_tensors(stem + ".weights.safetensors", weights)
        write_tensors(stem + ".batch.safetensors", batch)
        write_oracle(model, weights, batch, stem + ".gradients.safetensors")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--model")
    parser.add_argument("--weights")
    parser.add_argument("--batch")
    parser.add_argument("-o", dest="out")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.folder is not None:
        write_folder(args.folder)
    elif args.model and args.weights and args.batch and args.out:
        write_oracle(read_model(args.model), read_tensors(args.weights), read_tensors(args.batch), args.out)
    else:
        parser.error("give a folder, or --model, --weights, --batch and -o")


if __name__ == "__main__":
    main()
