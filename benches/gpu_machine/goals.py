"""What vecaz promises on one H100 or H200, what was estimated before anything was measured, and where each figure is in the rows that a
verb measured. Data and look-ups alone: page.py shows them."""

from collections.abc import Callable
from dataclasses import dataclass

import tables


@dataclass(frozen=True)
class Goal:
    """`measured` gives the figure from rows by the name of their part, in `unit`, or None where it was not measured. `bound` is AT_LEAST
    or AT_MOST and the figure promised, None where there is an estimate alone. `estimate` is a range from counted instructions and assumed
    issue rates on an H200, None where there was none."""

    verb: str
    work: str
    unit: str
    bound: tuple | None
    estimate: tuple | None
    measured: Callable


AT_LEAST, AT_MOST = tables.REACHED


def row_of(rows, **wanted):
    """The last of `rows` whose values are those `wanted`."""
    found = [row for row in rows if "error" not in row and all(row.get(key) == value for key, value in wanted.items())]
    return found[-1] if found else None


def figure(part, key, scale=1.0, **wanted):
    """Gives row[key] * scale of the row of `part` that is `wanted`."""

    def look(rows):
        row = row_of(rows[part], **wanted)
        return None if row is None or row.get(key) is None else row[key] * scale

    return look


def best(part, key, **wanted):
    """Gives the largest `key` in the rows of `part` that are `wanted`."""

    def look(rows):
        values = [row[key] for row in rows[part] if key in row and all(row.get(k) == v for k, v in wanted.items())]
        return max(values, default=None)

    return look


def ratio(ours, theirs):
    """Gives the first figure over the second."""

    def look(rows):
        a, b = ours(rows), theirs(rows)
        return a / b if a is not None and b else None

    return look


def searched(net, games=4096, sims=200, key="simulations_per_second", scale=1.0):
    return figure("search-", key, scale, game="connect_four", net=net, games=games, sims=sims)


def beside_mctx(net):
    work = {"net": net, "games": 4096, "sims": 200}
    return ratio(searched(net), figure("mctx-", "simulations_per_second", **work))


def forward(key, slots, cores):
    return best("forward", key, network="6x128", slots=slots, tensor_cores=cores)


def share_of_peak(rows):
    """Of the faster of mma.sync and wgmma at the largest N, in percent of cuBLAS's peak."""
    flops = best("forward", "tflops", network="6x128", slots=32768)(rows)
    peak = best("forward", "gemm_bf16_tflops")(rows)
    return 100 * flops / peak if flops and peak else None


def games_of_hex(rows):
    row = row_of(rows["search-hex13"])
    return row and tables.games_per_second(row)


def least_beside_pgx(rows):
    """Random play over pgx's, of the game in which it is least."""
    theirs = {tables.work_of_play(row): row["plies_per_second"] for row in rows["pgx-"]}
    ours = ((tables.work_of_play(row), row["plies_per_second"]) for row in tables.measured(rows["random-play"]))
    return min((rate / theirs[work] for work, rate in ours if work in theirs), default=None)


def copied_in_passes(rows):
    """Bytes that crossed between the host and the GPU within moves."""
    return max((row["copied_in_passes"] for row in rows["search-"]), default=None)


def search_error(rows):
    """The least outcome error of search in a run from zero, in percent."""
    return min((100 * row["strength"]["search_outcome_error"] for row in rows["learn"] if row.get("strength")), default=None)


TRAINED = {"net": "6x128", "precision": "bf16", "batch": 2048}
MILLIONS = "million simulations/s"

UPDATES = figure("train", "updates_per_second", **TRAINED)

GOALS = (
    Goal("first", "pure search, Connect Four, N = 4,096, S = 800", MILLIONS, (AT_LEAST, 100), (60, 110),
         searched("uniform", sims=800, scale=1e-6)),
    Goal("first", "forward 6x128, bf16, N = 32,768", "% of cuBLAS's peak", (AT_LEAST, 60), None, share_of_peak),
    Goal("first", "forward 6x128, bf16, N = 4,096, mma.sync", "TFLOP/s", None, (330, 400), forward("tflops", 4096, "mma")),
    Goal("first", "forward 6x128, bf16, N = 4,096, wgmma", "TFLOP/s", None, (420, 520), forward("tflops", 4096, "wgmma")),
    Goal("first", "random play, the game with the least", "times pgx", (AT_LEAST, 5), None, least_beside_pgx),
    Goal("rates", "pure search, Hex 11, N = 16,384, S = 800", MILLIONS, (AT_LEAST, 30), (45, 90),
         figure("search-hex11", "simulations_per_second", 1e-6, games=16384)),
    Goal("rates", "search with 6x128, N = 4,096", MILLIONS, (AT_LEAST, 2), (2.2, 2.7), searched("6x128", scale=1e-6)),
    Goal("rates", "the same", "times mctx", (AT_LEAST, 3), (2, 3), beside_mctx("6x128")),
    Goal("rates", "search with 2x32, N = 4,096", "times mctx", (AT_LEAST, 6), (6, 10), beside_mctx("2x32")),
    Goal("rates", "GPU busy in self-play, 6x64, N = 4,096, S = 64", "%", (AT_LEAST, 95), (80, 90),
         searched("6x64", sims=64, key="device_busy", scale=100)),
    Goal("rates", "the same, S = 800", "%", (AT_LEAST, 95), (95, 100), searched("6x64", sims=800, key="device_busy", scale=100)),
    *(Goal("rates", f"search with {net}, N = 128", "times N = 1", (AT_LEAST, 115), None, searched(net, games=128, key="speedup"))
      for net in ("2x32", "6x64", "6x128")),
    Goal("rates", "copied within a move, all searches", "bytes", (AT_MOST, 0), None, copied_in_passes),
    Goal("rates", "self-play of Hex 13 with 6x64, S = 200", "games/s", (AT_LEAST, 100), None, games_of_hex),
    Goal("rates", "training 6x128, bf16, batch 2,048", "updates/s", None, (170, 220), UPDATES),
    Goal("rates", "the same", "times PyTorch's best", (AT_LEAST, 1), None,
         ratio(UPDATES, best("torch-", "updates_per_second", **TRAINED))),
    Goal("deep", "Connect Four from zero in 3 minutes", "% outcome error of search", (AT_MOST, 2), None, search_error),
)  # fmt: skip
