"""Trains a network for Connect Four in PyTorch, with the games of a run of vecaz, and writes it so that it plays in vecaz.

    pip install torch safetensors
    vecaz run --game connect_four --set game.network_sees=stones --minutes 5 --out runs/c4
    vecaz export-weights runs/c4 --out net.safetensors
    python examples/train_in_pytorch.py net.safetensors runs/c4/games trained.safetensors
    vecaz import-weights trained.safetensors
    vecaz eval trained.imported.safetensors --against random

The exported file names the game and the sizes; its weights are not used. `Network` is the residual network of `net.arch = "resnet"` without
net.auxiliary and with net.value_head = "scalar", for any game: parameters have the names and the shapes of vecaz by the names of the modules alone.
"""

import json
import pathlib
import sys

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

EPOCHS, BATCH = 3, 256


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bn1, self.conv1 = nn.BatchNorm2d(channels), nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2, self.conv2 = nn.BatchNorm2d(channels), nn.Conv2d(channels, channels, 3, padding=1, bias=False)

    def forward(self, x):
        y = self.conv1(F.relu(self.bn1(x)))
        return x + self.conv2(F.relu(self.bn2(y)))


class Head(nn.Module):
    """Layers under one name, such as policy.conv."""

    def __init__(self, channels, width):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class Network(nn.Module):
    """Observations [B, C, H, W] -> logits [B, A] and values [B, P]."""

    def __init__(self, net):
        super().__init__()
        obs, channels = net["obs"], net["channels"]
        squares = obs["height"] * obs["width"]
        self.pair = net["zero_sum_pair"]
        self.stem = nn.Conv2d(obs["channels"], channels, 3, padding=1, bias=False)
        self.blocks = nn.ModuleList(Block(channels) for _ in range(net["blocks"]))
        self.bn = nn.BatchNorm2d(channels)
        self.policy = Head(channels, net["policy_channels"])
        self.points = net.get("point_actions")  # with net.policy_head = "points"
        if self.points:
            outputs = self.points["planes"] + net["num_actions"] - self.points["planes"] * squares
            self.policy.points = nn.Conv2d(net["policy_channels"], outputs, 1, bias=False)
        else:
            self.policy.linear = nn.Linear(net["policy_channels"] * squares, net["num_actions"])
        self.value = Head(channels, net["value_channels"])
        self.value.hidden = nn.Linear(net["value_channels"] * squares, net["value_hidden"])
        self.value.out = nn.Linear(net["value_hidden"], 1 if self.pair else net["num_players"])

    def forward(self, obs):
        x = self.stem(obs)
        for block in self.blocks:
            x = block(x)
        x = F.relu(self.bn(x))
        values = self.value.out(F.relu(self.value.hidden(self.value(x).flatten(1)))).tanh()
        return self.logits(self.policy(x)), torch.cat([values, -values], 1) if self.pair else values

    def logits(self, x):
        if not self.points:
            return self.policy.linear(x.flatten(1))
        x, planes = self.policy.points(x), self.points["planes"]
        at_points, others = x[:, :planes], x[:, planes:].mean((2, 3))
        if self.points["order"] == "columns":  # column by column, each from the last row
            at_points = at_points.flip(2).transpose(2, 3)
        return torch.cat([at_points.permute(0, 2, 3, 1).flatten(1), others], 1)


def positions(game, rows, columns):
    """Observation, action and values of each ply of one game after its random opening: own stones, the other's, the top row first."""
    board, heights = torch.zeros(2, rows, columns), [0] * columns
    for ply, column in enumerate(game["actions"]):
        player = ply % 2
        if ply >= game["opening"]:
            yield board[[player, 1 - player]], column, torch.tensor(game["returns"]).roll(-player)
        board[player, rows - 1 - heights[column], column] = 1
        heights[column] += 1


def samples(folder, obs):
    games = [json.loads(line) for file in sorted(pathlib.Path(folder).glob("*.jsonl")) for line in file.open()]
    found = [sample for game in games for sample in positions(game, obs["height"], obs["width"])]
    if not found:
        sys.exit(f"{folder}: has no games")
    boards, actions, values = zip(*found)
    print(f"{len(games)} games, {len(found)} positions")
    return torch.stack(boards), torch.tensor(actions), torch.stack(values)


def main(exported, games, out):
    torch.manual_seed(1)
    with safe_open(exported, "pt") as file:
        header = json.loads(file.metadata()["vecaz"])
    boards, actions, values = samples(games, header["net"]["obs"])
    network = Network(header["net"])
    optimizer = torch.optim.AdamW(network.parameters(), 2e-3)
    updates = 0
    for epoch in range(EPOCHS):
        losses = []
        for batch in torch.randperm(len(boards)).split(BATCH):
            logits, expected = network(boards[batch])
            loss = F.cross_entropy(logits, actions[batch]) + F.mse_loss(expected, values[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            updates += 1
            losses.append(loss.item())
        print(f"epoch {epoch + 1}: loss {sum(losses) / len(losses):.4f}")
    network.eval()
    # vecaz must compute the same outputs: these are compared when the file is imported.
    obs = boards[:: max(1, len(boards) // 32)]
    with torch.no_grad():
        logits, expected = network(obs)
    check = {"obs": obs.flatten(1), "logits": logits, "values": expected}
    tensors = network.state_dict() | {f"selfcheck.{name}": rows.contiguous() for name, rows in check.items()}
    header["updates"], header["model"] = updates, None
    save_file(tensors, out, metadata={"vecaz": json.dumps(header)})


if __name__ == "__main__":
    main(*sys.argv[1:])
