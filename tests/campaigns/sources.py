"""The tiny runs whose files are mutated: one of every game, with all its kinds of files."""

import os
import shutil
import sys

from program import start

BASE = """run.seed=5 run.threads=1 run.epochs=2 net.arch=mlp net.blocks=1 net.channels=16 net.value_hidden=8 net.policy_channels=2
    net.value_channels=2 net.precision=f32 search.simulations=4 search.cache_entries=128 search.max_num_considered_actions=4
    search.reuse=true search.determinisations=1 selfplay.games=3 selfplay.samples_per_epoch=24 selfplay.passes_per_poll=2
    selfplay.opening_plies=2 replay.capacity=60 train.batch=8 train.min_samples=10 eval.share=0.0 eval.every=1 eval.simulations=2 eval.positions=3
    run.keep_checkpoints=2 eval.match_games=2 eval.opponent=random eval.determinisations=1"""
RESNET = "net.arch=resnet net.channels=16"
GAMES = {
    "tic_tac_toe": "search.root_cache=16",
    "connect_four": f"{RESNET} train.mode=overlapped game.rows=4 game.columns=5 eval.positions=2",
    "othello": f"game.size=6 {RESNET}",
    "hex": f"game.size=3 game.swap=true {RESNET}",
    "gomoku": f"game.size=5 {RESNET}",
    "go": f"game.size=5 {RESNET} net.policy_head=points search.algorithm=puct",
    "chess": "game.max_plies=40 search.algorithm=puct net.channels=4",
    "backgammon": "game.short_game=true search.algorithm=gumbel",
    "blob": "game.players=3 game.cards=2 search.determinisations=2 search.reuse=false search.solver=false",
    "clique": "net.arch=edge game.n=6 game.k=4 game.mode=avoid_clique",
}
# Actions of a game's exact scores, for files of solved positions.
SOLVED = "tic_tac_toe"


def assignments(text):
    """`--set` arguments of the keys in `text`; later ones win."""
    keys = dict(assignment.split("=", 1) for assignment in text.split())
    return [part for key, value in keys.items() for part in ("--set", f"{key}={value}")]


def make(program, folder):
    """Makes the runs in `folder`, each next to its exported network: game -> {"run": FOLDER, "net": FILE}."""
    made = {}
    for game, settings in GAMES.items():
        run, net = os.path.join(folder, game, "run"), os.path.join(folder, game, "net.safetensors")
        os.makedirs(os.path.dirname(run))
        must([program, "run", "--game", game, "--out", run, *assignments(f"{BASE} {settings}")])
        must([program, "export-weights", run, "--out", net])
        must([program, "verify", run])
        os.remove(os.path.join(run, "report.html"))  # written anew by every epoch, and as large as all others together
        made[game] = {"run": run, "net": net}
    return made


def must(command):
    done = start(command)
    if done.code:
        sys.exit(f"{' '.join(command)}: exit code {done.code}: {done.stderr.decode()}")


def copy(source, folder):
    """Copies a source's files into the new folder `folder`."""
    os.makedirs(folder)
    shutil.copytree(source["run"], os.path.join(folder, "run"))
    shutil.copy(source["net"], os.path.join(folder, "net.safetensors"))
