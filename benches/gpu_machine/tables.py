"""Markdown tables of measured rows. A row with `error` is what could not be measured."""

import operator

# Kernels shown of each network, and plies of a game of Hex 13x13.
TOP = 8
HEX_PLIES = 90
# A figure this many times above or below its estimate needs a reason.
OFF_BY = 1.5
# What a goal asks of a figure.
REACHED = {"at least": operator.ge, "at most": operator.le}


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]) + "\n"


def percent(share):
    return "-" if share is None else f"{100 * share:.0f}"


def measured(rows):
    return [row for row in rows if "error" not in row]


def errors(rows):
    """What could not be measured, one line each."""
    named = lambda row: ", ".join(str(value) for key, value in row.items() if key not in ("error", "gpu"))
    return "".join(f"\nFailed: {named(row)}: {row['error']}\n" for row in rows if "error" in row)


def search_table(rows):
    head = (
        "game", "network", "N", "S", "simulations/s (millions)", "moves/s", "select, forward, expand, backup (%)", "GPU busy (%)",
        "mean depth", "speed-up", "copied in passes",
    )  # fmt: skip
    return table(
        head,
        [
            (
                row["game"],
                f"{row['net']}, {row['path']}",
                row["games"],
                row["sims"],
                f"{row['simulations_per_second'] / 1e6:.3f}",
                f"{row['moves_per_second']:.0f}",
                ", ".join(f"{100 * row['share'][part]:.0f}" for part in ("select", "forward", "expand", "backup")),
                percent(row["device_busy"]),
                f"{row['mean_depth']:.2f}",
                f"{row['speedup']:.1f}",
                f"{row['copied_in_passes']} B",
            )
            for row in rows
        ],
    )


def games_per_second(row):
    """Of Hex 13x13, from the plies per second."""
    return row["moves_per_second"] / HEX_PLIES


def hex_text(row):
    return f"{games_per_second(row):.1f} games/s, counted as {HEX_PLIES} plies each.\n"


def kernel_table(rows):
    """The longest kernels of each game and network, in search at its largest N and in training."""
    lines = []
    for row in {(row["game"], row["net"], "games" in row): row for row in rows}.values():
        kernels = sorted(row["kernels"], key=lambda time: -time["seconds"])
        total = sum(time["seconds"] for time in kernels)
        for time in kernels[:TOP]:
            each = 1e6 * time["seconds"] / time["launches"]
            size = row["games"] if "games" in row else row["batch"]
            work = (row["game"], row["net"], size)
            lines.append((*work, time["kernel"], time["launches"], f"{each:.1f}", percent(time["seconds"] / total)))
    return table(("game", "network", "N or batch", "kernel", "launches", "microseconds each", "% of all kernels"), lines)


def mctx_table(rows, peers):
    """Search beside mctx at the same game, network, N and S."""
    work = lambda row: (row["game"], row["net"], row["games"], row["sims"])
    lines = []
    for peer in peers:
        for row in rows:
            if work(row) == work(peer):
                rate, theirs = row["simulations_per_second"], peer["simulations_per_second"]
                cells = (*work(row), f"{rate:.0f}", f"{theirs:.0f}", f"{rate / theirs:.1f}")
                lines.append((*cells, f"{row['mean_depth']:.2f}, {peer['mean_depth']:.2f}"))
    return table(("game", "network", "N", "S", "simulations/s", "mctx + pgx", "ratio", "mean depths"), lines)


def forward_table(rows):
    """The forward against the peaks in the last row, where they could be measured."""
    peaks = {key: value for row in rows if "network" not in row for key, value in row.items()}
    share = lambda flops, peak: percent(flops / peaks[peak] if peak in peaks else None)
    head = (
        "network", "by", "N", "positions/s", "TFLOP/s", "% of cuBLAS's peak", "on the board", "% of mma.sync's peak",
    )  # fmt: skip
    text = table(
        head,
        [
            (
                row["network"],
                row["tensor_cores"],
                row["slots"],
                f"{row['positions_per_second']:.0f}",
                f"{row['tflops']:.1f}",
                share(row["tflops"], "gemm_bf16_tflops"),
                share(row["tflops_on_board"], "gemm_bf16_tflops"),
                share(row["tflops"], "mma_tflops"),
            )
            for row in measured(rows)
            if "network" in row
        ],
    )
    names = {"gemm_bf16": "cuBLAS, bf16", "mma": "mma.sync"}
    figures = [f"{name}: {peaks.get(key + '_error') or format(peaks[key + '_tflops'], '.0f') + ' TFLOP/s'}"
               for key, name in names.items() if key + "_tflops" in peaks or key + "_error" in peaks]  # fmt: skip
    return text + f"\nPeaks: {'; '.join(figures) or 'not measured'}.\n" + errors(rows)


def train_table(rows, peers):
    """Training beside PyTorch's two modes; the ratio is to the faster."""
    key = lambda row: (row["net"], row["precision"], row["batch"])
    theirs = {(*key(row), row["mode"]): row["updates_per_second"] for row in peers}
    lines = []
    for row in measured(rows):
        rate, others = row["updates_per_second"], [theirs.get((*key(row), mode)) for mode in ("eager", "compiled")]
        fastest = max(filter(None, others), default=None)
        beside = ["-" if other is None else f"{other:.1f}" for other in others]
        lines.append((*key(row), f"{rate:.1f}", percent(row["busy"]), *beside, f"{rate / fastest:.2f}" if fastest else "-"))
    head = ("network", "numbers", "batch", "updates/s", "GPU busy (%)", "PyTorch", "PyTorch, compiled", "ratio")
    return table(head, lines) + errors(rows)


def candle_table(rows):
    """vecaz's forward beside candle's in f32 on the same GPU, weights and positions."""
    head = ("network", "N", "numbers", "positions/s", "candle, f32", "ratio", "logits differ", "values differ", "of rounding at most")
    return table(
        head,
        [
            (
                row["network"],
                row["slots"],
                row["element_type"],
                f"{row['positions_per_second']:.0f}",
                f"{row['candle_f32_positions_per_second']:.0f}",
                f"{row['ratio']:.1f}",
                *(format(row[key], ".1e") for key in ("logits_differ", "values_differ", "at_most")),
            )
            for row in rows
        ],
    )


def goal_table(goals, rows):
    """Each figure beside what was promised and what was estimated. Beyond OFF_BY of an estimate the reason is to be found."""
    head = ("work", "unit", "measured", "goal", "reached", "estimate", "off by")
    return table(head, [goal_cells(goal, goal.measured(rows)) for goal in goals])


def goal_cells(goal, value):
    promised = "{} {:g}".format(*goal.bound) if goal.bound else "-"
    estimate = "{:g} to {:g}".format(*goal.estimate) if goal.estimate else "-"
    if value is None:
        return (goal.work, goal.unit, "not measured", promised, "-", estimate, "-")
    return (goal.work, goal.unit, f"{value:.3g}", promised, reached(value, goal.bound), estimate, off(value, goal.estimate))


def reached(value, bound):
    if bound is None:
        return "-"
    side, figure = bound
    return "yes" if REACHED[side](value, figure) else "**no**"


def off(value, estimate):
    """How far a figure is outside of its estimate."""
    if estimate is None:
        return "-"
    low, high = estimate
    factor = value / high if value > high else low / value if 0 < value < low else 1
    side = "above" if value > high else "below"
    return "within" if factor == 1 else f"{factor:.2f} times {side}" + (", why?" if factor > OFF_BY else "")


def work_of_play(row):
    """What random play has in common with pgx's: of Go there are two boards."""
    return (row["game"], "size = 19" in row["settings"], row["slots"])


def play_table(ours, pgx):
    theirs, lines = {work_of_play(row): row["plies_per_second"] for row in pgx}, []
    for row in measured(ours):
        rate, other = row["plies_per_second"], theirs.get(work_of_play(row))
        beside = ("-", "-") if other is None else (f"{other:.3e}", f"{rate / other:.1f}")
        lines.append((row["game"], row["settings"] or "-", row["slots"], f"{rate:.3e}", *beside))
    return table(("game", "settings", "N", "plies/s", "pgx", "ratio"), lines) + errors(ours)


def profile_table(rows, metrics):
    head = ("kernel", *metrics)
    return table(head, [(row["kernel"], *(row.get(metric, "-") for metric in metrics)) for row in rows])


def learning_table(epochs):
    head = ("minutes", "epoch", "games/s", "simulations/s", "outcome error of search (%)", "of the raw policy (%)")
    return table(
        head,
        [
            (
                f"{epoch['seconds'] / 60:.2f}",
                epoch["epoch"],
                f"{epoch['games_per_second']:.0f}",
                f"{epoch['simulations_per_second']:.0f}",
                *(f"{100 * epoch['strength'][key]:.1f}" for key in ("search_outcome_error", "policy_outcome_error")),
            )
            for epoch in epochs
            if epoch.get("strength")
        ],
    )


def library_table(row):
    lines = [(name, file or "**not found**") for name, file in row["libraries"].items()]
    lines += [(name, file or "not found") for name, file in row["tools"].items()]
    lines += [(name, version or "not installed") for name, version in row["packages"].items()]
    head = "".join(f"    {line}\n" for line in [*row["gpus"], row["system"], f"Python {row['python']}", f"NVRTC {row['nvrtc']}"])
    return f"{head}\n{table(('library, tool or package', 'file or version'), lines)}"
