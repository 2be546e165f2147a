#!/usr/bin/env python3
"""Random games of the crate in games/ played by OpenSpiel, one JSON line each, for games/tests/playthroughs.rs.

    pip install open_spiel
    python games_crate.py fixtures ../../games/tests/fixtures    # the committed files, seed 1
    python games_crate.py long 1000 --seed 7 > games.jsonl       # 1000 games of each, spread over its settings
    ./fresh_games.sh 1000 7                                      # the same, compared with vecaz

Actions and legal lists are OpenSpiel's in the numbers of vecaz: Breakthrough and Quoridor number them as their player sees the board.
Two things are not taken as OpenSpiel 2.0.2 gives them:
- 2048 does not list a move that only merges into a tile which the move before has merged, though it plays it. Legal here are the moves
  that change the board when OpenSpiel plays them.
- Quoridor's pass, for a player without any other action, has the number of a square, and OpenSpiel cannot play it. Such a game is cut.
"""

import argparse
import json
import pathlib
import random
from importlib.metadata import version

import pyspiel

SOURCE = f"open_spiel {version('open_spiel')}"


class Rules:
    """A game in OpenSpiel, with the numbers that vecaz gives to actions."""

    def __init__(self, name, spiel_name, **options):
        self.name, self.options = name, options
        self.oracle = pyspiel.load_game(spiel_name)

    def legal(self, state):
        return state.legal_actions()

    def number(self, action, player):
        return action

    def choose(self, legal, rng, careful):
        """A legal action. `careful` is drawn once a game."""
        return rng.choice(legal)

    def is_stuck(self, state):
        return False

    def results(self, state):
        return {"returns": state.returns()}


class Breakthrough(Rules):
    def __init__(self, rows, columns):
        super().__init__("breakthrough", f"breakthrough(rows={rows},columns={columns})", rows=rows, columns=columns)

    def number(self, action, player):
        row, column = divmod(action // 12, self.options["columns"])
        row = row if player == 0 else self.options["rows"] - 1 - row
        return (row * self.options["columns"] + column) * 3 + action // 2 % 3


class DotsAndBoxes(Rules):
    def __init__(self, rows, columns, margin):
        name = f"dots_and_boxes(num_rows={rows},num_cols={columns},utility_margin={margin})"
        super().__init__("dots_and_boxes", name, rows=rows, columns=columns, margin=margin)

    def results(self, state):
        boxes = self.options["rows"] * self.options["columns"] if self.options["margin"] else 1
        return {"returns": [x / boxes for x in state.returns()]}


class Quoridor(Rules):
    def __init__(self, size, walls):
        super().__init__("quoridor", f"quoridor(board_size={size},wall_count={walls})", size=size, walls=walls)
        self.side = 2 * size - 1

    def number(self, action, player):
        y, x = divmod(action, self.side)
        if self.is_step(action):
            step = 3 * ((y - 2) // 2) + (x - 2) // 2
            return 4 + (step if player == 0 else -step)
        across = self.options["size"] - 1
        place = y // 2 * across + x // 2
        return 9 + x % 2 * across**2 + (place if player == 0 else across**2 - 1 - place)

    def is_step(self, action):
        y, x = divmod(action, self.side)
        return x % 2 == 0 and y % 2 == 0

    def choose(self, legal, rng, careful):
        """Steps are as frequent as walls, so that games end; more in careful games, so that they end with walls left."""
        steps = [action for action in legal if self.is_step(action)]
        return rng.choice(steps if steps and rng.random() < (0.8 if careful else 0.4) else legal)

    def is_stuck(self, state):
        """True if the only action has the number of the square on which the pawn stands: a pass."""
        legal = state.legal_actions()
        if len(legal) > 1:
            return False
        mark = " 0 " if state.current_player() == 0 else " @ "
        lines = [line[2:] for line in str(state).split("\n")[2:]]
        [square] = [y * self.side + line.index(mark) // 2 for y, line in enumerate(lines[: self.side]) if mark in line]
        return legal == [square]


class UltimateTicTacToe(Rules):
    def __init__(self):
        super().__init__("ultimate_tic_tac_toe", "ultimate_tic_tac_toe")


class TwentyFortyEight(Rules):
    def __init__(self, max_tile):
        super().__init__("2048", f"2048(max_tile={max_tile})", max_tile=max_tile)

    def legal(self, state):
        return [action for action in range(4) if str(state.child(action)) != str(state)]

    def choose(self, legal, rng, careful):
        """In careful games the tiles are kept in one corner, which reaches higher ones."""
        kept = [action for action in legal if action in (2, 3)]
        return rng.choice(kept if careful and kept else legal)

    def results(self, state):
        return {"scores": state.returns()}


def play(rules, rng):
    state, actions, plies = rules.oracle.new_initial_state(), [], []
    careful = rng.random() < 0.5
    while not state.is_terminal() and not rules.is_stuck(state):
        if state.is_chance_node():
            chance = state.chance_outcomes()
            action = rng.choices([outcome for outcome, _ in chance], [p for _, p in chance])[0]
            ply = {"kind": "chance", "legal": [outcome for outcome, _ in chance]}
            # The probabilities follow from the number of outcomes; a few are enough.
            plies.append(ply | ({"chance": chance} if len(plies) % 16 < 2 else {}))
            actions.append(action)
        else:
            player, legal = state.current_player(), rules.legal(state)
            action = rules.choose(legal, rng, careful)
            numbers = sorted(rules.number(a, player) for a in legal)
            plies.append({"kind": "player", "to_play": player, "legal": numbers})
            actions.append(rules.number(action, player))
        state.apply_action(action)
    results = rules.results(state) if state.is_terminal() else {"returns": None}
    return {"game": rules.name, "options": rules.options, "source": SOURCE, "actions": actions, "plies": plies} | results


# The settings of each game with the number of committed games; the default of vecaz first.
SETTINGS = {
    "breakthrough": [(Breakthrough(*size), n) for size, n in [((8, 8), 12), ((6, 6), 8), ((5, 4), 8), ((2, 2), 3), ((3, 8), 4)]],
    "dots_and_boxes": [
        (DotsAndBoxes(*size), n)
        for size, n in [((3, 3, False), 12), ((2, 2, False), 8), ((2, 4, True), 6), ((5, 3, True), 4), ((7, 7, False), 1), ((1, 1, False), 1)]
    ],
    "quoridor": [
        (Quoridor(*size), n) for size, n in [((9, 10), 1), ((5, 3), 10), ((3, 1), 12), ((4, 6), 8), ((6, 4), 3), ((7, 20), 1), ((5, 0), 2)]
    ],
    "ultimate_tic_tac_toe": [(UltimateTicTacToe(), 30)],
    "2048": [(TwentyFortyEight(tile), n) for tile, n in [(2048, 2), (16, 14), (64, 6), (128, 2), (8192, 0)]],
}


def line(game):
    return json.dumps(game, separators=(",", ":")) + "\n"


def fixtures(folder):
    for name, settings in SETTINGS.items():
        rng = random.Random(1)
        with open(folder / f"{name}.jsonl", "w", encoding="utf-8") as out:
            out.writelines(line(play(rules, rng)) for rules, count in settings for _ in range(count))


def long(count, seed):
    for settings in SETTINGS.values():
        rng = random.Random(seed)
        for number in range(count):
            # Every second game has the first setting.
            others = settings[1:] or settings
            rules = settings[0][0] if number % 2 == 0 else others[number // 2 % len(others)][0]
            print(line(play(rules, rng)), end="")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fixtures").add_argument("folder", type=pathlib.Path)
    of_long = commands.add_parser("long")
    of_long.add_argument("count", type=int)
    of_long.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.command == "fixtures":
        fixtures(args.folder)
    else:
        long(args.count, args.seed)


if __name__ == "__main__":
    main()
