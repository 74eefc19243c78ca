"""Searches the fastest plan of a model on some clusters and numbers of GPUs, and compares them."""
import meshsim

clusters = ["hgx-h100", "hgx-h200"]

with meshsim.Context(threads=2) as ms:
    found = {}
    for cluster in clusters:
        for gpus in (16, 32):
            found[f"{cluster} x {gpus}"] = ms.search(model="8b", cluster=cluster, gpus=gpus, top=1)

    comparison = meshsim.compare(**found)
    for row in comparison.rows():
        print(f"{row['name']:14} {row['step_s']:7.3f} s  MFU {row['mfu_frac']:.1%}  {row['mesh']}")

    # what the best plan of the first cluster would take with more tensor parallelism
    plan = found["hgx-h100 x 32"].best.plan
    changed = ms.predict(ms.plan(plan, tp=8, pp=1, cp=1, dp_shard=4, layers_per_stage=None))
    print(f"with tp 8: {changed.step_s:.3f} s, {changed.peak_bytes / 2**30:.1f} GiB")
