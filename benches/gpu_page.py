"""What benches/gpu_machine.sh left in a folder -> results.json and page.md there: python gpu_page.py FOLDER"""

import datetime
import json
import os
import sys

TAIL = 3


def read(folder, name):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return None
    with open(path) as file:
        return file.read()


def rows_of(folder, name):
    text = read(folder, name + ".json")
    return json.loads(text) if text else []


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


def verdict(part):
    if part["exit"] == 0:
        return "passed"
    return "**out of time**" if part["exit"] in (124, 137) else f"**failed ({part['exit']})**"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]) + "\n"


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
    head = ("network", "N", "S", "simulations/s", "games/s", "select, forward, expand, backup (%)", "speed-up", "copied in passes")
    return table(
        head,
        [
            (
                f"{row['net']}, {row['path']}",
                row["games"],
                row["sims"],
                f"{row['simulations_per_second']:.0f}",
                f"{row['games_per_second'] or 0:.1f}",
                ", ".join(f"{100 * row['share'][part]:.0f}" for part in ("select", "forward", "expand", "backup")),
                f"{row['speedup']:.1f}",
                f"{row['copied_in_passes']} B",
            )
            for row in rows
        ],
    )


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


def page(result):
    machine = "\n".join(result["parts"][0]["last_lines"]) if result["parts"] else ""
    text = f"# On a GPU, {result['date']}\n\nCommit {result['commit'][:10]}. `benches/gpu_machine.sh measure`.\n\n"
    text += "    " + machine.replace("\n", "\n    ") + "\n\n"
    rows = [(p["name"], verdict(p), p["seconds"], f"`{p['command']}`") for p in result["parts"]]
    text += table(("part", "result", "seconds", "command"), rows)
    for title, key in (("Pure search, Connect Four", "search_connect_four"), ("Pure search, Hex 11", "search_hex")):
        text += f"\n## {title}\n\n" + (search_table(result[key]) if result[key] else "Not measured.\n")
    text += "\n## Search with the network beside the trees, Connect Four\n\n"
    text += network_table(result["search_network"]) if result["search_network"] else "Not measured.\n"
    text += "\n## Search on the CPU, the network on the GPU\n\n"
    text += network_table(result["search_hybrid"]) if result["search_hybrid"] else "Not measured.\n"
    text += "\n## Random play\n\n"
    text += play_table(result["random_play"], result["pgx"]) if result["random_play"] else "Not measured.\n"
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
        "search_network": rows_of(folder, "search-network"),
        "search_hybrid": rows_of(folder, "search-hybrid"),
        "search_hex": rows_of(folder, "search-hex"),
        "random_play": rows_of(folder, "random_play"),
        "pgx": rows_of(folder, "pgx"),
    }
    with open(os.path.join(folder, "results.json"), "w") as file:
        json.dump(result, file, indent=1)
    with open(os.path.join(folder, "page.md"), "w") as file:
        file.write(page(result))
    print(page(result))


main()
