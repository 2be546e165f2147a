"""What each verb of benches/gpu_machine.sh runs, and for how long at most. Data alone: run.py runs it, page.py shows it.

Commands are tuples of words. In a word, {bin} is the unpacked pack, {work} the folder of logs, and {kernel:PART:NET:RANK:ELSE} the
kernel that took the RANK-th most time in the rows of PART whose network is NET, or ELSE if that part has no such row."""

import fnmatch
from dataclasses import dataclass, field

# Seconds that a verb takes at most, by which the machine's own limit of 600 s is never met.
CALL_SECONDS = 540
# Of these, for unpacking and setting up before the first part, and for writing the results after the last.
UNPACK_SECONDS, FINISH_SECONDS = 20, 5


@dataclass(frozen=True)
class Part:
    """One process. `seconds` is its limit, killing included; `group` is `ours` or `peer`, whose failure costs only itself."""

    name: str
    seconds: int
    command: tuple
    group: str = "ours"


@dataclass(frozen=True)
class Stage:
    """Parts that run at the same time. If all parts of a `gate` fail, no later stage runs."""

    parts: list
    kind: str = "plain"

    @property
    def seconds(self):
        return max(part.seconds for part in self.parts)


@dataclass(frozen=True)
class Verb:
    title: str
    stages: list = field(default_factory=list)

    @property
    def seconds(self):
        """The most that the verb can take: what all limits add up to."""
        return UNPACK_SECONDS + sum(stage.seconds for stage in self.stages) + FINISH_SECONDS


def one(name, seconds, *command, group="ours"):
    """A stage of one part."""
    return Stage([Part(name, seconds, command, group)])


def peer(name, seconds, *command):
    """A stage with one reference program in Python."""
    return one(name, seconds, "python3", *command, group="peer")


LIBRARIES = one("libraries", 10, "python3", "{bin}/gpu_machine/libraries.py")

# Rules, trees and search to the bit; networks within their rounding.
GATE_TESTS = (
    "self_play_is_the_same_with_many_rows_and_constant_outputs",
    "the_networks_kernels_are_candle_within_their_rounding",
)


def parity(test, seconds):
    return Part(f"parity-{test}", seconds, ("{bin}/cuda_parity", "--exact", test))


def scaling(name, seconds, *arguments):
    """A stage that measures self-play. Searches select as mctx does, by the improved policy in the whole tree; networks see what those of pgx do."""
    output = ("--json", f"{{work}}/{name}.json")
    alike = ("--set", "search.puct_visits=1000000", "--set", "game.network_sees=stones")
    command = ("{bin}/vecaz", "bench-scaling", "--device", "cuda", *alike, *output, *arguments)
    return one(name, seconds, *command)


def first(tests):
    """`tests` are all parity tests of the pack."""
    others = [test for test in tests if test not in GATE_TESTS]
    return Verb(
        "First run: parity with the CPU, one row of pure search, the forward, random play",
        [
            LIBRARIES,
            Stage([parity(test, 45) for test in GATE_TESTS], "gate"),
            scaling("search-uniform", 30, "--game", "connect_four", "--net", "uniform", "--sims", "800", "--games", "4096"),
            one(
                "forward", 60, "{bin}/device_forward", "2x32", "6x64", "6x128", "20x256",
                "--tensor-cores", "mma,wgmma", "--slots", "1024,4096,32768", "--seconds", "0.2",
            ),
            Stage([parity(test, 240) for test in others]),
            one("random-play", 40, "{bin}/device_games", "--slots", "65536", "--json", "{work}/random-play.json"),
            peer("pgx-random-play", 70, "{bin}/pgx_random_play.py", "--slots", "65536", "--json", "{work}/pgx-random-play.json"),
        ],
    )  # fmt: skip


GAMES_AT_ONCE = "1,128,1024,4096,32768"
NETWORKS = ("2x32", "6x64", "6x128")
NUMBERS = ("--set", "net.precision=bf16", "--seconds", "1")
# A search that mctx does at the same N and S.
BESIDE = ("--sims", "200", *NUMBERS)


def rates(_tests):
    # Few simulations a move, where the host has most to do between two polls, and many.
    busy = [
        scaling(f"search-6x64-{sims}", 20, "--game", "connect_four", "--net", "6x64", "--games", "4096", "--sims", sims, *NUMBERS)
        for sims in ("64", "800")
    ]
    search = [
        scaling(f"search-{net}", 36, "--game", "connect_four", "--net", net, "--games", GAMES_AT_ONCE, *BESIDE)
        for net in NETWORKS
    ]
    mctx = [
        peer(f"mctx-{net}", 50, "{bin}/mctx_search.py", net, "4096", "200", "4", "bfloat16", "connect_four")
        for net in ("2x32", "6x128")
    ]
    return Verb(
        "Rates: search and training beside other programs",
        [
            LIBRARIES,
            *busy,
            *search,
            scaling("search-hex11", 25, "--game", "hex", "--net", "uniform", "--sims", "800", "--games", "4096,16384", "--seconds", "1"),
            scaling("search-hex13", 18, "--game", "hex", "--set", "game.size=13", "--net", "6x64", "--games", "4096", *BESIDE),
            one(
                "train", 40, "{bin}/device_train", "--nets", "6x64,6x128", "--batches", "512,2048",
                "--precisions", "bf16,f32", "--samples", "20000", "--seconds", "0.5",
            ),
            one("candle", 40, "{bin}/device_candle", "2x32", "6x128", "--slots", "1024,4096", "--seconds", "0.2"),
            *mctx,
            peer("torch-train-eager", 40, "{bin}/torch_resnet.py", "6x64,6x128", "cuda", "512,2048", "bf16,f32", "eager"),
            peer("torch-train-compiled", 90, "{bin}/torch_resnet.py", "6x128", "cuda", "2048,512", "bf16", "compiled"),
        ],
    )  # fmt: skip


# Few enough simulations for a profiler that runs each profiled kernel some forty times.
PROFILED = ("--game", "connect_four", "--set", "net.precision=bf16", "--games", "4096", "--seconds", "0.01")
SEARCH_ALONE, WITH_NETWORK = ("--net", "uniform", "--sims", "200"), ("--net", "6x128", "--sims", "32")
TRAINED = ("--nets", "6x128", "--batches", "2048", "--precisions", "bf16", "--samples", "4096", "--seconds", "0.01")


def ncu(number, kernel, *command):
    """A stage that reads the hardware counters of one launch. The clocks stay as they are."""
    return one(
        f"ncu-{number}", 30, "ncu", "--set", "detailed", "--clock-control", "none", "--kernel-name", kernel,
        "--launch-skip", "3", "--launch-count", "1", "--csv", "--page", "details", "--log-file", f"{{work}}/ncu-{number}.csv",
        *command,
    )  # fmt: skip


def sanitizer(tool, name, *arguments):
    command = ("{bin}/vecaz", "bench-scaling", "--device", "cuda", "--seconds", "0.01", *arguments)
    # The driver is asked for a kernel's parameters up to the first that is not there, which is no error.
    words = ("compute-sanitizer", "--tool", tool, "--report-api-errors", "no", "--error-exitcode", "9")
    return Part(f"{tool}-{name}", 110, (*words, *command))


def deep(_tests):
    # Search without a network is one kernel; the others are found by timing them.
    bench = ("{bin}/vecaz", "bench-scaling", "--device", "cuda", *PROFILED)
    of_network = [
        ncu(2 + rank, f"{{kernel:profile-search:6x128:{rank}:{other}}}", *bench, *WITH_NETWORK)
        for rank, other in enumerate(("bias_relu", "residual_add_bn_relu", "select_rows"))
    ]
    alone = ("--net", "uniform", "--sims", "24", "--games", "5")
    network = ("--net", "2x32", "--set", "net.precision=bf16", "--sims", "8", "--games", "16", "--game", "connect_four")
    checks = [
        sanitizer("memcheck", "search", *alone, "--game", "connect_four"),
        sanitizer("memcheck", "blob", *alone, "--game", "blob"),
        sanitizer("memcheck", "network", *network),
        # Races are looked for in shared memory, which networks use; searches have barriers of warps.
        sanitizer("racecheck", "network", *network),
        sanitizer("synccheck", "search", *alone, "--game", "connect_four"),
        sanitizer("synccheck", "network", *network),
    ]
    run = ("{bin}/vecaz", "run", "--config", "connect_four_gpu", "--minutes", "3", "--out", "{work}/learn")
    return Verb(
        "Deep: profiles, memory and race checks, learning Connect Four from zero",
        [
            LIBRARIES,
            one("profile-search", 25, *bench, *WITH_NETWORK, "--json", "{work}/profile-search.json"),
            one("profile-train", 15, "{bin}/device_train", *TRAINED),
            ncu(1, "simulate_rows", *bench, *SEARCH_ALONE),
            *of_network,
            ncu(5, "{kernel:profile-train:6x128:0:linear_wide}", "{bin}/device_train", *TRAINED),
            Stage(checks),
            one("learn", 200, *run),
        ],
    )  # fmt: skip


VERBS = {"first": first, "rates": rates, "deep": deep}


def chosen(names, tests):
    """The parts of all verbs that `names` name, in that order; a name may have wildcards. Parts that run at once do so here; none is a
    gate."""
    stages = [stage for verb in VERBS.values() for stage in verb(tests).stages]
    found = {part.name for stage in stages for part in stage.parts}
    if unknown := [name for name in names if not fnmatch.filter(found, name)]:
        raise ValueError(f"no part is named {', '.join(unknown)}; there are {', '.join(sorted(found))}")
    taken, out = set(), []
    for name in names:
        for stage in stages:
            parts = [part for part in stage.parts if part.name not in taken and fnmatch.fnmatchcase(part.name, name)]
            taken.update(part.name for part in parts)
            out += [Stage(parts)] if parts else []
    return Verb(f"Chosen parts: {', '.join(names)}", out)
