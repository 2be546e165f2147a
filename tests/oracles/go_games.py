"""Random Go games by OpenSpiel, one JSON line each, for tests/playthroughs.rs; with --pgx or --gnugo, those agree too.

    python go_games.py --out ../fixtures/playthroughs/go.jsonl     # the committed fixture
    python go_games.py --games 2000 --seed 7 --size 5 --out big.jsonl
    python go_games.py --games 500 --seed 8 --size 9 --whole --out whole.jsonl
    python go_games.py --pgx --games 30                            # masks of pgx
    python go_games.py --gnugo --games 5 --seed 2 --out ../fixtures/playthroughs/go_gnugo.jsonl   # played, scored by gnugo

Needs open_spiel 2.0 (pgx 2.6 for --pgx, gnugo 3.8 for --gnugo). The legal lists are those of a plain reference below with
positional superko; each is compared with OpenSpiel's, which may differ in one way only: it lists moves that repeat a
position other than by taking back a ko at once.
"""

import argparse
import json
import os
import random
import subprocess

import pyspiel

# (size, max_plies or 0, komi) of the committed games; whole games with --whole.
SHAPES = [(5, 90, 7.5), (5, 0, 0.0), (6, 60, 5.5), (7, 60, 3.0), (9, 0, 7.5), (11, 12, 7.5), (13, 14, 7.5), (16, 8, 7.5)]
SHAPES += [(19, 8, 6.5), (5, 250, 1.0), (5, 300, -2.0), (6, 0, 24.5), (5, 250, 7.5), (5, 250, 3.5)]


class Board:
    """Stones as a tuple of 0 empty, 1 black, 2 white; rules by definition, nothing incremental."""

    def __init__(self, size):
        self.size = size
        self.stones = (0,) * (size * size)
        self.seen = {self.stones}

    def beside(self, point):
        row, column = divmod(point, self.size)
        steps = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
        return [r * self.size + c for r, c in steps if 0 <= r < self.size and 0 <= c < self.size]

    def group(self, stones, point):
        group, todo, liberties = {point}, [point], set()
        while todo:
            for near in self.beside(todo.pop()):
                if stones[near] == 0:
                    liberties.add(near)
                elif stones[near] == stones[point] and near not in group:
                    group.add(near)
                    todo.append(near)
        return group, liberties

    def after(self, point, player):
        """The stones after a move and how many it takes, or None for suicide."""
        stones, taken = list(self.stones), 0
        stones[point] = 1 + player
        for near in self.beside(point):
            if stones[near] == 2 - player:
                group, liberties = self.group(stones, near)
                if not liberties:
                    taken += len(group)
                    for stone in group:
                        stones[stone] = 0
        return (tuple(stones), taken) if self.group(stones, point)[1] else None

    def moves(self, player):
        """Every move that is no suicide: point -> (stones after it, stones taken)."""
        empty = [point for point, stone in enumerate(self.stones) if stone == 0]
        return {p: result for p in empty if (result := self.after(p, player))}

    def play(self, stones):
        self.stones = stones
        self.seen.add(stones)

    def areas(self):
        areas, counted = [0, 0], set()
        for point, stone in enumerate(self.stones):
            if stone:
                areas[stone - 1] += 1
            elif point not in counted:
                region, colours, todo = {point}, set(), [point]
                while todo:
                    for near in self.beside(todo.pop()):
                        if self.stones[near]:
                            colours.add(self.stones[near])
                        elif near not in region:
                            region.add(near)
                            todo.append(near)
                counted |= region
                if len(colours) == 1:
                    areas[colours.pop() - 1] += len(region)
        return areas


def choose(moves, legal, passing, rng):
    """A legal action, captures often, passes now and then."""
    taking = [p for p in legal if p != passing and moves[p][1]]
    if taking and rng.random() < 0.4:
        return rng.choice(taking)
    points = [p for p in legal if p != passing]
    return rng.choice(points) if points and rng.random() > 0.02 else passing


def play(size, max_plies, komi, rng, counts):
    parameters = {"board_size": size, "komi": komi}
    if max_plies:
        parameters["max_game_length"] = max_plies
    state = pyspiel.load_game("go", parameters).new_initial_state()
    board, actions, plies, passing = Board(size), [], [], size * size
    while not state.is_terminal():
        player = len(actions) % 2
        moves = board.moves(player)
        repeats = {p for p, (stones, _) in moves.items() if stones in board.seen}
        legal = sorted(moves.keys() - repeats) + [passing]
        theirs = set(state.legal_actions())
        assert set(legal) <= theirs and theirs - set(legal) <= repeats, state
        counts["repeats"] += len(repeats)
        counts["old repeats"] += len(repeats & theirs)
        counts["plies"] += 1
        plies.append({"kind": "player", "to_play": player, "legal": legal})
        action = choose(moves, legal, passing, rng)
        actions.append(action)
        state.apply_action(action)
        if action != passing:
            board.play(moves[action][0])
    black, white = board.areas()
    lead = black - white - komi
    assert state.returns()[0] == (lead > 0) - (lead < 0), state
    options = {"size": size, "komi": komi, "max_plies": max_plies}
    line = {"game": "go", "options": options, "source": "open_spiel 2.0.2", "actions": actions, "plies": plies}
    return {**line, "returns": state.returns()}


def compare_with_pgx(games, rng):
    """Plays pgx's Go beside the reference; a move that repeats loses at once there, so it is not played."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from pgx.go import Go

    plies = 0
    for size in (5, 9):
        env = Go(size=size, komi=7.5)
        init, step = jax.jit(env.init), jax.jit(env.step)
        for game in range(games):
            state, board, passing = init(jax.random.PRNGKey(game)), Board(size), size * size
            black = int(state.current_player)
            while not bool(state.terminated):
                moves = board.moves(int(state._x.step_count) % 2)
                repeats = {p for p, (stones, _) in moves.items() if stones in board.seen}
                legal = sorted(moves.keys() - repeats) + [passing]
                theirs = set(np.flatnonzero(np.asarray(state.legal_action_mask)).tolist())
                assert set(legal) <= theirs and theirs - set(legal) <= repeats
                action = choose(moves, legal, passing, rng)
                state = step(state, jnp.int32(action))
                if action != passing:
                    board.play(moves[action][0])
                plies += 1
            areas = board.areas()
            expected = 1.0 if areas[0] - 7.5 > areas[1] else -1.0
            assert float(state.rewards[black]) == expected
    print(f"pgx: {2 * games} games, {plies} plies, masks (repeats apart) and results equal")


class Gtp:
    """gnugo under the Go Text Protocol."""

    def __init__(self, size, komi):
        command = ["gnugo", "--mode", "gtp", "--chinese-rules", "--positional-superko", "--never-resign", "--level", "0"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for line in (f"boardsize {size}", "clear_board", f"komi {komi}"):
            self.ask(line)

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        while self.process.stdout.readline().strip():
            pass
        assert answer.startswith("="), (command, answer)
        return answer[1:].strip()


def gnugo_game(size, komi, opening, seed, rng):
    """A game by gnugo after a random opening, dead stones taken off by play, and its own score of black less white."""
    letters = "ABCDEFGHJKLMNOPQRST"
    gtp, board, passing = Gtp(size, komi), Board(size), size * size
    gtp.ask(f"set_random_seed {seed}")
    actions, plies, passes = [], [], 0
    for command in ("genmove", "kgs-genmove_cleanup"):
        passes = 0
        while passes < 2:
            player = len(actions) % 2
            moves = board.moves(player)
            legal = sorted(p for p, (stones, _) in moves.items() if stones not in board.seen) + [passing]
            if len(actions) < opening:
                action = rng.choice(legal[:-1])
                gtp.ask(f"play {'bw'[player]} {letters[action % size]}{size - action // size}")
            else:
                name = gtp.ask(f"{command} {'bw'[player]}")
                if name == "PASS":
                    action = passing
                else:
                    action = (size - int(name[1:])) * size + letters.index(name[0])
            assert action in legal
            passes = passes + 1 if action == passing else 0
            # The passes between play and cleaning up would end the game: both are left out.
            plies.append({"kind": "player", "to_play": player, "legal": legal})
            actions.append(action)
            if action != passing:
                board.play(moves[action][0])
        if command == "genmove":
            del actions[-2:], plies[-2:]
    score = gtp.ask("final_score")
    gtp.ask("quit")
    lead = 0.0 if score == "0" else float(score[2:]) * (1 if score[0] == "B" else -1)
    options = {"size": size, "komi": komi, "max_plies": 4 * size * size}
    line = {"game": "go", "options": options, "source": "gnugo 3.8", "actions": actions, "plies": plies}
    sign = float((lead > 0) - (lead < 0))
    return {**line, "returns": [sign, -sign]}, board, lead


def compare_with_gnugo(games, rng, path):
    """Lets gnugo play out and score games; `path`, if any, gets them as JSON lines."""
    differing = []
    with open(path or os.devnull, "w", encoding="utf-8") as out:
        for game in range(games):
            size = (5, 7, 9, 9, 13)[game % 5]
            komi = rng.choice([0.5, 5.5, 7.5])
            line, board, lead = gnugo_game(size, komi, rng.randrange(size * 2), 1 + game, rng)
            out.write(json.dumps(line, separators=(",", ":")) + "\n")
            black, white = board.areas()
            if black - white - komi != lead:
                differing.append((game, black - white - komi, lead))
                print("\n".join("".join(".XO"[s] for s in board.stones[r : r + size]) for r in range(0, size**2, size)))
    print(f"gnugo: {games} games; scores that differ (game, here, gnugo): {differing}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=len(SHAPES))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", help="file of JSON lines")
    parser.add_argument("--size", type=int, help="only this size of board")
    parser.add_argument("--whole", action="store_true", help="play every game to its natural end")
    parser.add_argument("--pgx", action="store_true", help="compare the reference with pgx instead")
    parser.add_argument("--gnugo", action="store_true", help="let gnugo play and score instead")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    if args.pgx:
        compare_with_pgx(args.games, rng)
        return
    if args.gnugo:
        compare_with_gnugo(args.games, rng, args.out)
        return
    shapes = [shape for shape in SHAPES if args.size in (None, shape[0])]
    counts = {"plies": 0, "repeats": 0, "old repeats": 0}
    with open(args.out, "w", encoding="utf-8") as out:
        for game in range(args.games):
            size, max_plies, komi = shapes[game % len(shapes)]
            line = play(size, 0 if args.whole else max_plies, komi, rng, counts)
            out.write(json.dumps(line, separators=(",", ":")) + "\n")
    print(counts)


if __name__ == "__main__":
    main()
