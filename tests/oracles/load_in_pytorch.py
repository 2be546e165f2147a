"""Loads a network that `vecaz export-weights` wrote and compares PyTorch's outputs with the self-check vectors.

    pip install torch safetensors
    python tests/oracles/load_in_pytorch.py NETWORK.safetensors

`Net` (`EdgeNet` where `net.arch` is `edge`) is all it takes to use such a network elsewhere. Observations go in flat, `[B, F]`, channels first, seen by the
player to move; out come raw logits `[B, A]`, to be masked by the legal actions, and values `[B, P]` in seats relative to
the player to move. The metadata entry `vecaz` (JSON) names the game, its settings and the actions.
"""

import json
import sys

import torch
from safetensors import safe_open
from torch import nn


class Net(nn.Module):
    def __init__(self, net):
        super().__init__()
        c, obs = net["channels"], net["obs"]
        self.shape = (obs["channels"], obs["height"], obs["width"])
        self.conv, self.pair = net["arch"] == "resnet", net["zero_sum_pair"]
        area = obs["height"] * obs["width"]
        norm = nn.BatchNorm2d if self.conv else nn.BatchNorm1d

        def inner(inputs):
            return nn.Conv2d(inputs, c, 3, padding=1, bias=False) if self.conv else nn.Linear(inputs, c)

        layer = "conv" if self.conv else "linear"
        self.stem = inner(obs["channels"] if self.conv else obs["channels"] * area)
        names = ("bn1", layer + "1", "bn2", layer + "2")
        self.blocks = nn.ModuleList(
            nn.ModuleDict({name: norm(c) if "bn" in name else inner(c) for name in names}) for _ in range(net["blocks"])
        )
        self.bn = norm(c)

        def head(channels, layers):
            if self.conv:
                layers |= {"conv": nn.Conv2d(c, channels, 1, bias=False), "bn": norm(channels)}
            return nn.ModuleDict(layers)

        pc, vc = (net["policy_channels"], net["value_channels"]) if self.conv else (c, c)
        size = area if self.conv else 1
        out = nn.Linear(net["value_hidden"], 1 if self.pair else net["num_players"])
        self.policy = head(pc, {"linear": nn.Linear(pc * size, net["num_actions"])})
        self.value = head(vc, {"hidden": nn.Linear(vc * size, net["value_hidden"]), "out": out})

    def forward(self, obs):
        x = self.stem(obs.view(-1, *self.shape) if self.conv else obs)
        for block in self.blocks:
            bn1, layer1, bn2, layer2 = block.values()
            x = x + layer2(bn2(layer1(bn1(x).relu())).relu())
        x = self.bn(x).relu()
        p, v = ((h["bn"](h["conv"](x)).relu().flatten(1) if self.conv else x) for h in (self.policy, self.value))
        v = self.value["out"](self.value["hidden"](v).relu()).tanh()
        return self.policy["linear"](p), torch.cat([v, -v], 1) if self.pair else v


class EdgeNet(nn.Module):
    """The edge network of the clique game; the weights serve any number of vertices."""

    def __init__(self, net):
        super().__init__()
        c, self.planes, self.pair = net["channels"], net["obs"]["channels"], net["zero_sum_pair"]
        self.half = c // 2

        def linear(inputs=c, outputs=c):
            return nn.Linear(inputs, outputs, bias=False)

        self.stem = linear(self.planes)
        self.blocks = nn.ModuleList(
            nn.ModuleDict(
                {"bn1": nn.BatchNorm1d(c), "edge": linear(), "vertex": linear(), "bn2": nn.BatchNorm1d(c), "out": linear()}
            )
            for _ in range(net["blocks"])
        )
        self.bn = nn.BatchNorm1d(c)
        self.policy = nn.ModuleDict({"linear": linear(outputs=1)})
        out = nn.Linear(net["value_hidden"], 1 if self.pair else net["num_players"])
        self.value = nn.ModuleDict({"hidden": nn.Linear(c, net["value_hidden"]), "out": out})

    @staticmethod
    def norm_relu(bn, x):
        return bn(x.flatten(0, 1)).view_as(x).relu()

    def forward(self, obs):
        x = obs.view(len(obs), self.planes, -1).transpose(1, 2)  # [B, E, planes]
        n = next(n for n in range(3, 99) if n * (n - 1) // 2 == x.shape[1])
        i, j = torch.triu_indices(n, n, 1)  # edges in lexicographic order
        x = self.stem(x)
        for block in self.blocks:
            full = self.to_matrix(self.norm_relu(block["bn1"], x), i, j, n)
            sent = block["vertex"](full.sum(2) / (n - 1))
            y = block["edge"](full[:, i, j]) + sent[:, i] + sent[:, j]
            z = self.norm_relu(block["bn2"], y)
            matrix = self.to_matrix(z[..., : self.half], i, j, n)
            around = torch.einsum("bikc,bkjc->bijc", matrix, matrix)[:, i, j] / (n - 2) ** 0.5
            x = x + block["out"](torch.cat([around, z[..., self.half :]], 2))
        x = self.norm_relu(self.bn, x)
        v = self.value["out"](self.value["hidden"](x.mean(1)).relu()).tanh()
        return self.policy["linear"](x).squeeze(2), torch.cat([v, -v], 1) if self.pair else v

    @staticmethod
    def to_matrix(x, i, j, n):
        """[B, E, C] -> [B, n, n, C], symmetric, 0 on the diagonal."""
        full = x.new_zeros(len(x), n, n, x.shape[2])
        full[:, i, j], full[:, j, i] = x, x
        return full


def main(path):
    with safe_open(path, "pt") as file:
        header = json.loads(file.metadata()["vecaz"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}
    check = {name: tensors.pop("selfcheck." + name) for name in ("obs", "logits", "values")}
    net = (EdgeNet if header["net"]["arch"] == "edge" else Net)(header["net"]).eval()
    missing, surplus = net.load_state_dict(tensors, strict=False)
    wrong = [name for name in missing if not name.endswith("num_batches_tracked")] + surplus
    if wrong:
        sys.exit(f"{path}: tensors that do not fit: {', '.join(wrong)}")
    with torch.no_grad():
        logits, values = net(check["obs"])
    worst = 0.0
    for found, right in ((logits, check["logits"]), (values, check["values"])):
        worst = max(worst, ((found - right).abs() / right.abs().clamp(min=1.0)).max().item())
    print(f"{header['game']}, {header['updates']} updates: largest difference to the self-check {worst:.2e}")
    if not worst < 1e-3:
        sys.exit("the outputs differ")


if __name__ == "__main__":
    main(sys.argv[1])
