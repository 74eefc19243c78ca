#!/usr/bin/env python3
"""Counts the parameters of Hugging Face model classes at their defaults, for
tests/unit/costmodel/model/test_model_hf_types.c: sums of tensor shapes by the formulas of
each class (huggingface transformers 5.0.0.dev0, modeling_<type>.py; main of 2026 for
glm4_moe_lite, minimax_m2 and nemotron_h), written without a look at the importer.

    tests/oracle/hf_counts.py > tests/data/hf/defaults.csv
"""
import json


def gqa(c):
    h, n, d = c["H"], c["n"], c["d"]
    kv = c["kv"]
    count = h * n * d + 2 * h * kv * d + n * d * h
    count += (n * d + 2 * kv * d) * c["qkv_bias"] + h * c["out_bias"]
    if c["qk_norm"] == "head":
        count += 2 * d
    if c["qk_norm"] == "full":
        count += (n + kv) * d
    return count + n * c["sinks"]


def mla(c):
    h, n, q, r = c["H"], c["n"], c["q"], c["c"]
    nope, rope, v = c["nope"], c["rope"], c["v"]
    queries = h * q + q + q * n * (nope + rope) if q else h * n * (nope + rope)
    return queries + h * (r + rope) + r + r * n * (nope + v) + n * v * h


def glu(c, width):
    return 3 * c["H"] * width + (2 * width + c["H"]) * c["mlp_bias"]


def mlp(c, width):
    return 2 * c["H"] * width + (width + c["H"]) * c["mlp_bias"] + c["mlp_extra"]


def mamba2(c):
    inner = c["m_heads"] * c["m_dim"]
    conv = inner + 2 * c["m_groups"] * c["m_state"]
    return (c["H"] * (inner + conv + c["m_heads"]) + conv * (c["m_conv"] + 1)
            + 3 * c["m_heads"] + inner + inner * c["H"])


def feed_forward(c, width):
    return glu(c, width) if c["gated"] else mlp(c, width)


def experts(c):
    """Parameters of a layer's mixture, and of those that a token does not use."""
    one = feed_forward(c, c["Fe"]) + (2 * c["Fe"] + c["H"]) * c["expert_bias"]
    router = c["H"] * c["E"] + c["E"] * c["router_bias"] + c["H"] * c["shared_gate"]
    shared = feed_forward(c, c["Fs"]) if c["Fs"] else 0
    return c["E"] * one + router + shared, (c["E"] - c["k"]) * one


def norm(c):
    return {"rms": c["H"], "ln": 2 * c["H"], "none": 0}[c["norm"]]


BASE = dict(kv=0, d=0, qkv_bias=0, out_bias=0, mlp_bias=0, qk_norm="", sinks=0, gated=1,
            mlp_extra=0, norm="rms", norms=2, tied=0, head_bias=0, learned=0, E=0, k=0,
            Fe=0, Fs=0, router_bias=0, shared_gate=0, expert_bias=0, dense=lambda i: False,
            extra_norms=1, attention=gqa, blocks=None, keys={})


def count(case):
    c = {**BASE, **case}
    c["kv"] = c["kv"] or c["n"]
    c["d"] = c["d"] or c["H"] // c["n"]
    total = c["V"] * c["H"] * (1 if c["tied"] else 2) + c["V"] * c["head_bias"]
    total += c["learned"] * c["H"] + c["extra_norms"] * norm(c)
    idle = 0
    for block in c["blocks"] or "AF" * c["L"]:
        total += norm(c) * c["norms"] / 2
        if block == "A":
            total += c["attention"](c)
        elif block == "M":
            total += mamba2(c)
    layer = 0
    for block in c["blocks"] or "AF" * c["L"]:
        if block in "AM":
            continue
        moe = block == "E" or (block == "F" and c["E"] and not c["dense"](layer))
        layer += 1
        if moe:
            mixture, unused = experts(c)
            total += mixture
            idle += unused
        else:
            total += feed_forward(c, c["F"])
    return int(total), int(total - idle)


def sizes(vocab, h, f, layers, n, kv, d, **more):
    return dict(V=vocab, H=h, F=f, L=layers, n=n, kv=kv, d=d, **more)


def moe(vocab, h, f, layers, n, kv, d, e, k, **more):
    """All layers have experts of the width F."""
    return sizes(vocab, h, f, layers, n, kv, d, E=e, k=k, Fe=f, **more)


LN = dict(norm="ln", gated=0)
GPT = dict(LN, qkv_bias=1, out_bias=1, mlp_bias=1)
MLA = dict(attention=mla, q=1536, c=512, nope=128, rope=64, v=128)
MIXERS = ["mamba", "attention"] * 16

CASES = {
    "llama": sizes(32000, 4096, 11008, 32, 32, 0, 0),
    "mistral": sizes(32000, 4096, 14336, 32, 32, 8, 0),
    "ministral3": sizes(131072, 4096, 14336, 34, 32, 8, 128),
    "mixtral": moe(32000, 4096, 14336, 32, 32, 8, 0, 8, 2),
    "qwen2": sizes(151936, 4096, 22016, 32, 32, 32, 0, qkv_bias=1),
    "mimo": sizes(151936, 4096, 22016, 32, 32, 32, 0, qkv_bias=1),
    "qwen2_moe": sizes(151936, 2048, 5632, 24, 16, 16, 0, qkv_bias=1, E=60, k=4, Fe=1408,
                       Fs=5632, shared_gate=1),
    "qwen3": sizes(151936, 4096, 22016, 32, 32, 32, 128, qk_norm="head"),
    "qwen3_moe": sizes(151936, 2048, 6144, 24, 32, 4, 0, qk_norm="head", E=128, k=8,
                       Fe=768),
    "qwen2_vl": sizes(152064, 8192, 29568, 80, 64, 8, 0, qkv_bias=1),
    "qwen2_5_vl": sizes(152064, 8192, 29568, 80, 64, 8, 0, qkv_bias=1),
    "qwen3_vl_text": sizes(151936, 4096, 22016, 32, 32, 32, 128, qk_norm="head"),
    "qwen3_vl_moe_text": sizes(151936, 2048, 5632, 24, 16, 16, 0, qk_norm="head", E=60,
                               k=4, Fe=1408),
    "gemma": sizes(256000, 3072, 24576, 28, 16, 16, 256, tied=1),
    "gemma2": sizes(256000, 2304, 9216, 26, 8, 4, 256, tied=1, norms=4),
    "gemma3_text": sizes(262208, 2304, 9216, 26, 8, 4, 256, tied=1, norms=4,
                         qk_norm="head"),
    "phi": dict(GPT, **sizes(51200, 2048, 8192, 24, 32, 0, 0, norms=1, head_bias=1)),
    "phi3": sizes(32064, 3072, 8192, 32, 32, 0, 0),
    "phimoe": moe(32064, 4096, 6400, 32, 32, 8, 0, 16, 2, norm="ln"),
    "gpt2": dict(GPT, **sizes(50257, 768, 3072, 12, 12, 0, 0, tied=1, learned=1024)),
    "gpt_bigcode": dict(GPT, **sizes(50257, 768, 3072, 12, 12, 1, 0, tied=1,
                                     learned=1024)),
    "gpt_neo": dict(LN, **sizes(50257, 2048, 8192, 24, 16, 0, 0, tied=1, learned=2048,
                                out_bias=1, mlp_bias=1)),
    "gpt_neox": dict(GPT, **sizes(50432, 6144, 24576, 44, 64, 0, 0)),
    "gptj": dict(LN, **sizes(50400, 4096, 16384, 28, 16, 0, 0, norms=1, mlp_bias=1,
                             head_bias=1)),
    "codegen": dict(LN, **sizes(50400, 4096, 16384, 28, 16, 0, 0, norms=1, mlp_bias=1,
                                head_bias=1)),
    "opt": dict(GPT, **sizes(50272, 768, 3072, 12, 12, 0, 0, tied=1, learned=2050)),
    "bloom": dict(GPT, **sizes(250880, 64, 256, 2, 8, 0, 0, tied=1, extra_norms=2)),
    "falcon": dict(LN, **sizes(65024, 4544, 18176, 32, 71, 1, 0, tied=1, norms=1)),
    "mpt": dict(norm="rms", gated=0, **sizes(50368, 2048, 8192, 24, 16, 0, 0, tied=1)),
    "starcoder2": dict(GPT, **sizes(49152, 3072, 12288, 30, 24, 2, 0, tied=1)),
    "stablelm": sizes(50304, 2560, 6912, 32, 32, 32, 0, norm="ln"),
    "olmo": sizes(50304, 4096, 11008, 32, 32, 0, 0, norm="none"),
    "olmo2": sizes(50304, 4096, 11008, 32, 32, 0, 0, qk_norm="full"),
    "olmo3": sizes(50304, 4096, 11008, 32, 32, 0, 0, qk_norm="full"),
    "olmoe": moe(50304, 2048, 2048, 16, 16, 0, 0, 64, 8, qk_norm="full"),
    "flex_olmo": moe(100352, 4096, 11008, 32, 32, 0, 0, 7, 5, qk_norm="full"),
    "cohere": sizes(256000, 8192, 22528, 40, 64, 0, 0, tied=1, norms=1),
    "cohere2": sizes(256000, 8192, 22528, 40, 64, 0, 128, tied=1, norms=1),
    "dbrx": moe(32000, 2048, 3584, 24, 16, 1, 0, 4, 1),
    "deepseek_v2": dict(MLA, **sizes(32000, 4096, 11008, 32, 32, 0, 0, E=64, k=6, Fe=1407,
                                     Fs=2 * 1407, keys={"num_experts_per_tok": 6})),
    "deepseek_v3": dict(MLA, **sizes(129280, 7168, 18432, 61, 128, 128, 0, E=256, k=8,
                                     Fe=2048, Fs=2048, router_bias=1,
                                     dense=lambda i: i < 3)),
    "kimi_k2": dict(MLA, **sizes(129280, 7168, 18432, 61, 128, 128, 0, E=256, k=8,
                                 Fe=2048, Fs=2048, router_bias=1, dense=lambda i: i < 3)),
    "glm4_moe_lite": sizes(154880, 2048, 10240, 47, 20, 20, 0, attention=mla, q=768, c=512,
                           nope=192, rope=64, v=256, E=64, k=4, Fe=1536, Fs=1536,
                           router_bias=1, dense=lambda i: i < 1),
    "glm": sizes(151552, 4096, 13696, 40, 32, 2, 128, qkv_bias=1),
    "glm4": sizes(151552, 4096, 13696, 40, 32, 2, 128, qkv_bias=1, norms=4),
    # 4096 / 96 is no whole number: configs of this class have a head_dim
    "glm4_moe": sizes(151552, 4096, 10944, 46, 96, 8, 128, E=128, k=8, Fe=1408, Fs=1408,
                      router_bias=1, dense=lambda i: i < 1, keys={"head_dim": 128}),
    "minicpm3": sizes(32000, 4096, 11008, 32, 32, 0, 0, tied=1, attention=mla, q=768,
                      c=256, nope=64, rope=32, v=64),
    "granite": sizes(32000, 4096, 11008, 32, 32, 0, 0),
    "granitemoe": moe(32000, 4096, 11008, 32, 32, 0, 0, 8, 2),
    "granitemoeshared": moe(32000, 4096, 11008, 32, 32, 0, 0, 8, 2),
    "granitemoehybrid": moe(32000, 4096, 11008, 32, 32, 0, 0, 8, 2, Fs=1024, m_heads=128,
                            m_dim=64, m_groups=1, m_state=256, m_conv=4,
                            blocks="MEAE" * 16, keys={"layer_types": MIXERS}),
    "smollm3": sizes(128256, 2048, 11008, 36, 16, 4, 0, tied=1),
    "gpt_oss": moe(201088, 2880, 2880, 36, 64, 8, 64, 128, 4, qkv_bias=1, out_bias=1,
                   sinks=1, router_bias=1, expert_bias=1),
    "llama4_text": sizes(202048, 5120, 16384, 48, 40, 8, 128, E=16, k=1, Fe=8192, Fs=8192),
    "llama4": sizes(202048, 5120, 16384, 48, 40, 8, 128, E=16, k=1, Fe=8192, Fs=8192,
                    dense=lambda i: i % 2 == 0,
                    keys={"text_config": {"interleave_moe_layer_step": 2}}),
    "nemotron": dict(LN, **sizes(256000, 6144, 24576, 32, 48, 0, 128)),
    "nemotron_h": sizes(131072, 4096, 21504, 0, 32, 8, 128, norms=2, gated=0, E=8, k=2,
                        Fe=7688, Fs=7688, router_bias=1, m_heads=128, m_dim=64, m_groups=8,
                        m_state=128, m_conv=4, blocks="MEMAME-",
                        keys={"hybrid_override_pattern": "MEM*ME-"}),
    "exaone4": sizes(102400, 4096, 16384, 32, 32, 32, 0, qk_norm="head"),
    "ernie4_5": sizes(103424, 1024, 3072, 18, 16, 2, 128, tied=1),
    "ernie4_5_moe": sizes(103424, 2560, 12288, 28, 20, 4, 0, tied=1, E=64, k=6, Fe=1536,
                          Fs=2 * 1536, router_bias=1, dense=lambda i: i < 1),
    "hunyuan_v1_dense": sizes(290943, 4096, 11008, 32, 32, 0, 0, qk_norm="head"),
    "hunyuan_v1_moe": moe(290943, 4096, 11008, 32, 32, 0, 0, 1, 1, qk_norm="head",
                          Fs=11008),
    "minimax_m2": moe(200064, 3072, 1536, 62, 48, 8, 128, 256, 8, qk_norm="full",
                      router_bias=1),
    "seed_oss": sizes(155136, 4096, 27648, 64, 80, 8, 128, qkv_bias=1),
    "dots1": sizes(152064, 4608, 10944, 62, 32, 32, 0, qk_norm="head", E=128, k=6,
                   Fe=1408, Fs=2 * 1408, router_bias=1,
                   keys={"n_routed_experts": 128, "n_shared_experts": 2,
                         "num_experts_per_tok": 6}),
    "apertus": sizes(131072, 4096, 14336, 32, 32, 0, 0, gated=0, mlp_extra=2,
                     qk_norm="head"),
    "mamba2": sizes(32768, 4096, 0, 64, 1, 0, 0, norms=2, m_heads=128, m_dim=64,
                    m_groups=8, m_state=128, m_conv=4, blocks="M" * 64),
    "bamba": sizes(128000, 4096, 14336, 32, 32, 8, 0, m_heads=128, m_dim=64, m_groups=1,
                   m_state=256, m_conv=4, blocks="MF" * 32),
}


def main():
    print("model_type,total,active,keys")
    for model_type, case in CASES.items():
        total, active = count(case)
        keys = json.dumps({"model_type": model_type, **case.get("keys", {})})
        print('%s,%d,%d,"%s"' % (model_type, total, active, keys.replace('"', '""')))


main()
