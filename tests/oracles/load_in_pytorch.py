"""Loads a network that `vecaz export-weights` wrote and compares PyTorch's outputs with the self-check vectors.

    pip install torch safetensors
    python tests/oracles/load_in_pytorch.py NETWORK.safetensors

`forward` is all it takes to use such a network elsewhere. The metadata entry `vecaz` (JSON) names the game, its settings and the
actions, and describes the network (`model`) as a list of layers in order: each has a kind, the layers that it reads, and the prefix
of its tensors' names. Its heads say which layers give logits and values (`play`), and which others only training uses (`play` null). Observations go in flat, `[B, F]`, channels first, seen by the player to move; out come raw logits `[B, A]`, to
be masked by the legal actions, and values `[B, P]` in seats relative to the player to move.
"""

import json
import sys

import torch
from safetensors import safe_open
from torch.nn import functional as F


def to_matrix(x, i, j, n):
    """Edges [B, C, E] -> [B, C, n, n], symmetric, 0 on the diagonal."""
    full = x.new_zeros(len(x), x.shape[1], n, n)
    full[:, :, i, j], full[:, :, j, i] = x, x
    return full


def run(layer, p, inputs):
    """One layer with the tensors `p`. Boards are [B, C, H, W], edges [B, C, E], vectors [B, F]."""
    kind, x = layer["kind"], inputs[0]
    if "edges" in layer["shape"]:
        n = layer["shape"]["edges"]["vertices"]
        i, j = torch.triu_indices(n, n, 1)  # edges in lexicographic order
    if kind == "conv3x3":
        return F.conv2d(x, p["weight"], padding=1)
    if kind == "conv1x1":
        return torch.einsum("oi,bi...->bo...", p["weight"].flatten(1), x)
    if kind == "linear":
        return F.linear(x, p["weight"], p["bias"])
    if kind == "batch_norm":
        return F.batch_norm(x, p["running_mean"], p["running_var"], p["weight"], p["bias"])
    if kind == "relu":
        return x.relu()
    if kind == "tanh":
        return x.tanh()
    if kind == "win_loss":
        probabilities = x.softmax(1)
        return probabilities[:, :1] - probabilities[:, 2:]
    if kind == "add":
        return x + inputs[1]
    if kind == "flatten":
        return x.flatten(1)
    if kind == "edge_message":
        sent = torch.einsum("oi,bin->bon", p["vertex.weight"], to_matrix(x, i, j, n).sum(3) / (n - 1))
        return torch.einsum("oi,bie->boe", p["edge.weight"], x) + sent[:, :, i] + sent[:, :, j]
    if kind == "triangle_mix":
        matrix = to_matrix(x[:, : layer["channels"]], i, j, n)
        around = (matrix @ matrix)[:, :, i, j] / (n - 2) ** 0.5
        return torch.cat([around, x[:, layer["channels"] :]], 1)
    if kind == "mean_over_edges":
        return x.mean(2)
    if kind == "point_logits":
        planes = x[:, : layer["planes"]]
        if layer["order"] == "columns":  # column by column, each from the last row
            planes = planes.flip(2).transpose(2, 3)
        return torch.cat([planes.permute(0, 2, 3, 1).flatten(1), x[:, layer["planes"] :].mean((2, 3))], 1)
    sys.exit(f"a layer of kind {kind} is not known here")


def forward(model, tensors, obs):
    """Logits and values of observations [B, F]."""
    outputs = []
    for layer in model["layers"]:
        if layer["kind"] == "input":
            (shape, sizes), = layer["shape"].items()
            if shape == "edges":
                sizes = {"channels": sizes["channels"], "edges": sizes["vertices"] * (sizes["vertices"] - 1) // 2}
            outputs.append(obs if shape == "vector" else obs.view(-1, *sizes.values()))
            continue
        prefix = layer["name"] + "."
        own = {name[len(prefix) :]: t for name, t in tensors.items() if layer["name"] and name.startswith(prefix)}
        outputs.append(run(layer, own, [outputs[i] for i in layer["inputs"]]))
    play = {head["role"]: outputs[head["play"]] for head in model["heads"] if head["play"] is not None}
    v = play["value"]
    return play["policy"], torch.cat([v, -v], 1) if v.shape[1] < model["num_players"] else v


def main(path):
    with safe_open(path, "pt") as file:
        header = json.loads(file.metadata()["vecaz"])
        tensors = {name: file.get_tensor(name).float() for name in file.keys()}
    if "model" not in header:
        sys.exit(f"{path}: describes no layers; write it with `vecaz export-weights`")
    check = {name: tensors.pop("selfcheck." + name) for name in ("obs", "logits", "values")}
    with torch.no_grad():
        logits, values = forward(header["model"], tensors, check["obs"])
    pairs = ((logits, check["logits"]), (values, check["values"]))
    # torch's maximum, which keeps NaN.
    worst = torch.cat([((found - right).abs() / right.abs().clamp(min=1.0)).flatten() for found, right in pairs]).max().item()
    print(f"{header['game']}, {header['updates']} updates: largest difference to the self-check {worst:.2e}")
    if not worst < 1e-3:
        sys.exit("the outputs differ")


if __name__ == "__main__":
    main(sys.argv[1])
