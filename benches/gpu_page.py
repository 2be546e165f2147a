"""What benches/gpu_machine.sh left in a folder -> results.json and page.md there: python gpu_page.py FOLDER"""

import datetime
import json
import os
import sys

TAIL = 3
# Kernels shown of each network, and plies of a game of Hex 13x13.
TOP = 8
HEX_PLIES = 90


def read(folder, name):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return None
    with open(path) as file:
        return file.read()


def rows_of(folder, name):
    text = read(folder, name + ".json")
    return json.loads(text) if text else []


def lines_of(folder, name):
    """The JSON objects among the lines of a file."""
    lines = (read(folder, name) or "").splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def parts_of(folder):
    names = ("name", "limit_s", "seconds", "exit", "command")
    parts = [dict(zip(names, line.split("\t"))) for line in (read(folder, "parts.tsv") or "").splitlines()]
    for part in parts:
        for number in ("limit_s", "seconds", "exit"):
            part[number] = int(part[number])
        part["command"] = " ".join(os.path.basename(word) for word in part["command"].split())
        log = (read(folder, part["name"] + ".log") or "").strip().splitlines()
        part["last_lines"] = log[-TAIL:]
    return parts


def run_of(folder, name):
    """A run from zero: its epochs, and the share of the time that the GPU was busy, each second of it counted."""
    busy = [float(line) for line in (read(folder, name + ".busy") or "").split() if line.isdigit()]
    return {
        "epochs": lines_of(os.path.join(folder, name), "metrics.jsonl"),
        "busy": sum(busy) / len(busy) / 100 if busy else None,
    }


def verdict(part):
    if part["exit"] == 0:
        return "passed"
    return "**out of time**" if part["exit"] in (124, 137) else f"**failed ({part['exit']})**"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]) + "\n"


def percent(share):
    return "-" if share is None else f"{100 * share:.0f}"


def search_table(rows):
    head = ("N", "S", "simulations/s (millions)", "moves/s", "speed-up", "mean depth")
    return table(
        head,
        [
            (
                row["games"],
                row["sims"],
                f"{row['simulations_per_second'] / 1e6:.3f}",
                f"{row['moves_per_second']:.0f}",
                f"{row['speedup']:.1f}",
                f"{row['mean_depth']:.2f}",
            )
            for row in rows
        ],
    )


def network_table(rows):
    head = (
        "network", "N", "S", "simulations/s", "moves/s", "games/s", "select, forward, expand, backup (%)", "GPU busy (%)",
        "in copies (%)", "speed-up", "copied in passes",
    )  # fmt: skip
    return table(
        head,
        [
            (
                f"{row['net']}, {row['path']}",
                row["games"],
                row["sims"],
                f"{row['simulations_per_second']:.0f}",
                f"{row['moves_per_second']:.0f}",
                "-" if row["games_per_second"] is None else f"{row['games_per_second']:.1f}",
                ", ".join(f"{100 * row['share'][part]:.0f}" for part in ("select", "forward", "expand", "backup")),
                percent(row["device_busy"]),
                percent(row["transfers"]),
                f"{row['speedup']:.1f}",
                f"{row['copied_in_passes']} B",
            )
            for row in rows
        ],
    )


def kernel_table(rows):
    """The longest kernels of each network at its largest N."""
    lines = []
    for row in {row["net"]: row for row in rows}.values():
        total = sum(time["seconds"] for time in row["kernels"])
        for time in row["kernels"][:TOP]:
            each = 1e6 * time["seconds"] / time["launches"]
            lines.append((row["net"], row["games"], time["kernel"], time["launches"], f"{each:.1f}", percent(time["seconds"] / total)))
    return table(("network", "N", "kernel", "launches", "microseconds each", "% of all kernels"), lines)


def beside_table(rows, peers):
    """Search beside mctx at the same network and N."""
    lines = []
    for peer in peers:
        ours = [row for row in rows if (row["net"], row["games"], row["sims"]) == (peer["net"], 4096, peer["sims"])]
        for row in ours:
            rate, theirs = row["simulations_per_second"], peer["simulations_per_second"]
            cells = (peer["net"], 4096, peer["sims"], f"{rate:.0f}", f"{theirs:.0f}", f"{rate / theirs:.1f}")
            lines.append((*cells, f"{row['mean_depth']:.2f}, {peer['mean_depth']:.2f}"))
    return table(("network", "N", "S", "simulations/s", "mctx + pgx", "ratio", "mean depths"), lines)


def forward_table(rows, peers):
    theirs = {(peer["net"], peer["batch"]): peer["positions_per_second"] for peer in peers}
    head = (
        "network", "by", "N", "positions/s", "TFLOP/s", "% of cuBLAS's peak", "on the board", "% of mma.sync's peak",
        "over PyTorch (cuDNN)",
    )  # fmt: skip
    ratio = lambda row, other: f"{row['positions_per_second'] / other:.2f}" if other else "-"
    return table(
        head,
        [
            (
                row["network"],
                row["tensor_cores"],
                row["slots"],
                f"{row['positions_per_second']:.0f}",
                f"{row['tflops']:.1f}",
                percent(row["share_of_gemm"]),
                percent(row["share_of_gemm_on_board"]),
                percent(row["share_of_mma"]),
                ratio(row, theirs.get((row["network"], row["slots"]))),
            )
            for row in rows
            if "network" in row
        ],
    )


def train_table(rows, peers):
    key = lambda row: (row["net"], row["precision"], row["batch"])
    theirs = {key(row): row["updates_per_second"] for row in peers}
    lines = []
    for row in rows:
        rate, other = row["updates_per_second"], theirs.get(key(row))
        beside = ("-", "-") if other is None else (f"{other:.1f}", f"{rate / other:.2f}")
        lines.append((*key(row), f"{rate:.1f}", percent(row["busy"]), *beside))
    return table(("network", "numbers", "batch", "updates/s", "GPU busy (%)", "PyTorch", "ratio"), lines)


def run_table(run):
    head = ("minutes", "epoch", "games/s", "simulations/s", "outcome error of search (%)", "of the bare policy (%)")
    measured = [epoch for epoch in run["epochs"] if epoch.get("strength")]
    text = table(
        head,
        [
            (
                f"{epoch['seconds'] / 60:.2f}",
                epoch["epoch"],
                f"{epoch['games_per_second']:.0f}",
                f"{epoch['simulations_per_second']:.0f}",
                *(f"{100 * epoch['strength'][key]:.1f}" for key in ("search_outcome_error", "policy_outcome_error")),
            )
            for epoch in measured
        ],
    )
    return text + f"\nGPU busy, as nvidia-smi has it, from the program's start to its end: {percent(run['busy'])} %.\n"


def board(row):
    """The game, and whether its board is the large one."""
    return row["game"], "size = 19" in row["settings"]


def at_most_games(rows):
    """The rows at the largest N of each board."""
    return {board(row): row for row in sorted(rows, key=lambda row: row["lanes"])}


def play_table(ours, pgx):
    theirs, lines = at_most_games(pgx), []
    for key, row in at_most_games(ours).items():
        rate, beside = row["plies_per_second"], ("-", "-", "-")
        if key in theirs:
            other = theirs[key]["plies_per_second"]
            beside = (theirs[key]["lanes"], f"{other:.3e}", f"{rate / other:.1f}")
        lines.append((row["game"], row["settings"] or "-", row["lanes"], f"{rate:.3e}", *beside))
    return table(("game", "settings", "N", "plies/s", "pgx: N", "pgx: plies/s", "ratio"), lines)


def sections(result):
    """Title, and text where it was measured."""
    network, hex13 = result["search_network"], result["search_hex13"]
    yield "Pure search, Connect Four", result["search_connect_four"] and search_table(result["search_connect_four"])
    yield "Pure search, Hex 11", result["search_hex"] and search_table(result["search_hex"])
    yield "Random play", result["random_play"] and play_table(result["random_play"], result["pgx"])
    yield "Forward, bf16", result["forward"] and forward_table(result["forward"], result["forward_torch"])
    by_wgmma = result["forward_wgmma"]
    yield "Forward by mma and by wgmma, bf16", by_wgmma and forward_table(by_wgmma, result["forward_torch"])
    yield "Search with the network beside the trees, Connect Four", network and network_table(network)
    yield "Its kernels", network and kernel_table(network)
    yield "ResidentNetwork mctx + pgx", network and result["mctx"] and beside_table(network, result["mctx"])
    games = hex13 and f"\n{hex13[0]['moves_per_second'] / HEX_PLIES:.1f} games/s, counted as {HEX_PLIES} plies each.\n"
    yield "Search, Hex 13x13", hex13 and network_table(hex13) + games
    yield "Search on the CPU, the network on the GPU", result["search_hybrid"] and network_table(result["search_hybrid"])
    yield "Training", result["train"] and train_table(result["train"], result["train_torch"])
    for name in ("learn", "learn_overlapped"):
        title = "Connect Four from zero" + (", training beside self-play" if name == "learn_overlapped" else "")
        yield title, result[name]["epochs"] and run_table(result[name])


def page(result):
    machine = "\n".join(result["parts"][0]["last_lines"]) if result["parts"] else ""
    text = f"# On a GPU, {result['date']}\n\nCommit {result['commit'][:10]}. `benches/gpu_machine.sh measure`, then `network` and `learn`.\n\n"
    text += "    " + machine.replace("\n", "\n    ") + "\n\n"
    rows = [(p["name"], verdict(p), p["seconds"], f"`{p['command']}`") for p in result["parts"]]
    text += table(("part", "result", "seconds", "command"), rows)
    for title, found in sections(result):
        text += f"\n## {title}\n\n" + (found or "Not measured.\n")
    for part in result["parts"]:
        if part["exit"] != 0:
            text += f"\n## {part['name']}: last lines\n\n    " + "\n    ".join(part["last_lines"]) + "\n"
    return text


def main():
    folder = sys.argv[1]
    result = {
        "date": datetime.date.today().isoformat(),
        "commit": (read(folder, "commit") or "unknown").strip(),
        "parts": parts_of(folder),
        "search_connect_four": rows_of(folder, "search-connect_four"),
        "search_hex": rows_of(folder, "search-hex"),
        "random_play": rows_of(folder, "random_play"),
        "pgx": rows_of(folder, "pgx"),
        "forward": lines_of(folder, "forward.log"),
        "forward_wgmma": lines_of(folder, "forward-wgmma.log"),
        "forward_torch": lines_of(folder, "forward-torch.log"),
        "search_network": rows_of(folder, "search-network") + rows_of(folder, "search-large"),
        "mctx": lines_of(folder, "mctx.jsonl"),
        "search_hex13": rows_of(folder, "search-hex13"),
        "search_hybrid": rows_of(folder, "search-hybrid"),
        "train": lines_of(folder, "train.log"),
        "train_torch": lines_of(folder, "train-torch.log"),
        "learn": run_of(folder, "learn"),
        "learn_overlapped": run_of(folder, "learn-overlapped"),
    }
    with open(os.path.join(folder, "results.json"), "w") as file:
        json.dump(result, file, indent=1)
    with open(os.path.join(folder, "page.md"), "w") as file:
        file.write(page(result))
    print(page(result))


main()
