#!/usr/bin/env python3
"""The training step of `meshsim run --dtype bf16` in PyTorch, for comparison: one GPU, the same model, tokens and optimizer.

A Llama of its own, written as PyTorch's users write it: scaled_dot_product_attention, torch.compile of each layer (as torchtitan does:
layers share what was compiled) and of head and loss, products and activations in bf16 by autocast, weights, gradients and moments in
fp32, fused AdamW, clipping by the norm of all gradients. Reads a file of configs/models; the last line of its output is JSON:
{"step_s": ..., "tokens_per_s": ..., "peak_bytes": ..., ...}.
"""
import argparse
import json
import statistics
import sys
import time

try:
    import torch
    import torch.nn.functional as F
    from torch import nn
except ImportError as error:
    print(f"no PyTorch: {error}", file=sys.stderr)
    sys.exit(3)


class Rotary(nn.Module):
    """Rotary positions (Su et al. 2021), halves rotated as Hugging Face does."""

    def __init__(self, head_dim, base, length):
        super().__init__()
        frequency = base ** (-torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)
        angle = torch.outer(torch.arange(length, dtype=torch.float32), frequency)
        self.register_buffer("cos", torch.cat((angle, angle), -1).cos(), persistent=False)
        self.register_buffer("sin", torch.cat((angle, angle), -1).sin(), persistent=False)

    def forward(self, x):
        first, second = x.chunk(2, -1)
        turned = torch.cat((-second, first), -1)
        return (x * self.cos + turned * self.sin).to(x.dtype)


class Norm(nn.Module):
    """RMS norm in fp32, whose result has the type of its input."""

    def __init__(self, c):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(c["hidden"]))
        self.epsilon = c["norm_epsilon"]

    def forward(self, x):
        wide = x.float()
        scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.epsilon)
        return (wide * scale * self.weight).to(x.dtype)


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = c["heads"], c["kv_heads"], c["head_dim"]
        hidden, ffn = c["hidden"], c["ffn_hidden"]
        self.attention_norm = Norm(c)
        self.q = nn.Linear(hidden, self.heads * self.head_dim, bias=False)
        self.k = nn.Linear(hidden, self.kv_heads * self.head_dim, bias=False)
        self.v = nn.Linear(hidden, self.kv_heads * self.head_dim, bias=False)
        self.o = nn.Linear(self.heads * self.head_dim, hidden, bias=False)
        self.mlp_norm = Norm(c)
        self.gate = nn.Linear(hidden, ffn, bias=False)
        self.up = nn.Linear(hidden, ffn, bias=False)
        self.down = nn.Linear(ffn, hidden, bias=False)

    def split(self, x, heads):
        return x.view(x.shape[0], x.shape[1], heads, self.head_dim).transpose(1, 2)

    def forward(self, x, rotary):
        h = self.attention_norm(x)
        q, k = rotary(self.split(self.q(h), self.heads)), rotary(self.split(self.k(h), self.kv_heads))
        v = self.split(self.v(h), self.kv_heads)
        shared = {"enable_gqa": True} if self.heads != self.kv_heads else {}
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True, **shared)
        x = x + self.o(a.transpose(1, 2).flatten(2))
        h = self.mlp_norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Head(nn.Module):
    """The last norm, logits and the mean loss."""

    def __init__(self, c):
        super().__init__()
        self.norm = Norm(c)
        self.logits = nn.Linear(c["hidden"], c["vocab"], bias=False)

    def forward(self, x, targets):
        logits = self.logits(self.norm(x))
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


class Llama(nn.Module):
    def __init__(self, c, length):
        super().__init__()
        self.embedding = nn.Embedding(c["vocab"], c["hidden"])
        self.rotary = Rotary(c["head_dim"], c["rotary_base"], length)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c["layers"]))
        self.head = Head(c)
        if c["tied_embeddings"]:
            self.head.logits.weight = self.embedding.weight
        for weight in self.parameters():
            if weight.dim() > 1:
                nn.init.normal_(weight, std=0.02)

    def compile_parts(self):
        for part in (*self.layers, self.head):
            part.compile()

    def forward(self, tokens, targets):
        x = self.embedding(tokens).to(torch.bfloat16)
        for layer in self.layers:
            x = layer(x, self.rotary)
        return self.head(x, targets)


def finish(device):
    if device.type == "cuda":
        torch.cuda.synchronize()


def train(options, config, device):
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    with device:
        model = Llama(config, options.seq)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=1e-3, betas=(0.9, 0.95), eps=1e-5, weight_decay=0.1, fused=device.type == "cuda")
    if not options.no_compile:
        model.compile_parts()
    shape = (options.microbatches, options.microbatch, options.seq + 1)
    seconds, losses = [], []
    for step in range(options.steps):
        data = torch.randint(config["vocab"], shape, device=device)
        finish(device)
        start = time.perf_counter()
        total = torch.zeros((), device=device)
        for rows in data:
            with torch.autocast(device.type, torch.bfloat16):
                loss = model(rows[:, :-1], rows[:, 1:]) / options.microbatches
            loss.backward()
            total += loss.detach()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        finish(device)
        seconds.append(time.perf_counter() - start)
        losses.append(total.item())
        print(f"step {step + 1}: loss {losses[-1]:.6f}, {1e3 * seconds[-1]:.2f} ms", flush=True)
    return seconds, losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, help="file of configs/models")
    parser.add_argument("--seq", type=int, default=4096)
    parser.add_argument("--microbatch", type=int, default=2, help="sequences")
    parser.add_argument("--microbatches", type=int, default=4, help="of a step")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--warm-up", type=int, default=3, help="first steps that are not measured")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--cpu", action="store_true", help="to try this file; times say nothing")
    options = parser.parse_args()
    if not options.cpu and not torch.cuda.is_available():
        print("PyTorch sees no GPU", file=sys.stderr)
        sys.exit(3)
    device = torch.device("cpu" if options.cpu else "cuda")
    with open(options.model, encoding="utf-8") as file:
        config = json.load(file)
    seconds, losses = train(options, config, device)
    step_s = statistics.median(seconds[options.warm_up :])
    tokens = options.microbatches * options.microbatch * options.seq
    print(json.dumps({
        "schema": "meshsim.gpu-report-torch/1",
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "compiled": not options.no_compile,
        "step_s": step_s,
        "tokens_per_s": tokens / step_s,
        "peak_bytes": None if options.cpu else torch.cuda.max_memory_allocated(),
        "reserved_bytes": None if options.cpu else torch.cuda.max_memory_reserved(),
        "first_loss": losses[0],
        "last_loss": losses[-1],
        "steps_s": seconds,
    }))


if __name__ == "__main__":
    main()
