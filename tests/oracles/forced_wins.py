#!/usr/bin/env python3
"""Positions that the player to move wins by force, 20 for each of four games, one JSON line each, for tests/engine.rs.

    pip install open_spiel chess          # and apt-get install stockfish
    python forced_wins.py > ../fixtures/forced_wins.jsonl

A line has the game, its options, the start if it is not the usual one, the actions played and `wins`: the actions that win by force, at
most two thirds of the legal ones. No position has a win in one. Connect Four and Othello are solved to the end with OpenSpiel's rules,
Gomoku as far as three plies (there `wins` has the wins of three plies alone), chess by Stockfish, which announces mate in 2 and says
which other moves mate later.
"""

import json
import random
import sys
from importlib.metadata import version

import chess
import chess.engine
import pyspiel

from chess_games import action_number

PER_GAME = 20
SPIEL = f"open_spiel {version('open_spiel')}"
STOCKFISH = "/usr/games/stockfish"


def value(state, alpha, beta, memory):
    """The exact value for the player to move, by alpha-beta with a table of exact values and bounds."""
    if state.is_terminal():
        return state.returns()[0]
    sign = 1 if state.current_player() == 0 else -1
    key = str(state)
    low, high = memory.get(key, (-1, 1))
    low, high = max(low, alpha), min(high, beta)
    if low >= high:
        return low
    best = -sign
    lower, upper = low, high
    for action in state.legal_actions():
        found = value(state.child(action), lower, upper, memory)
        if sign * found > sign * best:
            best = found
        if sign == 1:
            lower = max(lower, best)
        else:
            upper = min(upper, best)
        if lower >= upper:
            break
    if low < best < high:
        memory[key] = (best, best)
    elif best <= low:
        memory[key] = (memory.get(key, (-1, 1))[0], best)
    else:
        memory[key] = (best, memory.get(key, (-1, 1))[1])
    return best


def wins_to_the_end(state):
    player, memory = state.current_player(), {}
    sign = 1 if player == 0 else -1
    return [a for a in state.legal_actions() if sign * value(state.child(a), -1, 1, memory) > 0]


def immediate_wins(state):
    player = state.current_player()
    return [a for a in state.legal_actions() if (s := state.child(a)).is_terminal() and s.returns()[player] > 0]


def wins_in_three(state):
    """Moves after which every reply allows a win in one."""
    player = state.current_player()
    found = []
    for action in state.legal_actions():
        after = state.child(action)
        threats = immediate_wins_of(after, player)
        # Fewer than two threats leave a reply that takes the only one.
        if len(threats) < 2 or immediate_wins(after):
            continue
        if all(immediate_wins(after.child(reply)) for reply in threats[:2]):
            found.append(action)
    return found


def immediate_wins_of(state, player):
    """Squares on which `player` would win, were it their move: seen after a pass elsewhere by the other player."""
    found = None
    for reply in state.legal_actions()[:2]:
        here = set(immediate_wins(state.child(reply)))
        found = here if found is None else found | here
    return sorted(found or [])


def random_state(game, plies, rng):
    state, actions = game.new_initial_state(), []
    while len(actions) < plies and not state.is_terminal():
        actions.append(rng.choice(state.legal_actions()))
        state.apply_action(actions[-1])
    return state, actions


def near(state, actions, side, rng):
    """A move beside stones, so that lines arise."""
    legal = state.legal_actions()
    def is_near(a):
        return any(abs(a // side - b // side) <= 1 and abs(a % side - b % side) <= 1 for b in actions)
    return rng.choice([a for a in legal if is_near(a)] or legal)


def solved(name, options, oracle, plies, rng):
    game = pyspiel.load_game(oracle)
    seen = set()
    while len(seen) < PER_GAME:
        state, actions = random_state(game, rng.choice(plies), rng)
        if state.is_terminal() or tuple(actions) in seen or immediate_wins(state):
            continue
        legal = state.legal_actions()
        wins = wins_to_the_end(state)
        if wins and 3 * len(wins) <= 2 * len(legal):
            seen.add(tuple(actions))
            yield {"game": name, "options": options, "source": SPIEL, "actions": actions, "wins": wins}


def gomoku(rng, side=7):
    game = pyspiel.load_game(f"gomoku(size={side})")
    found = 0
    while found < PER_GAME:
        state, actions = game.new_initial_state(), []
        while len(actions) < 32 and not state.is_terminal() and not immediate_wins(state):
            wins = wins_in_three(state) if len(actions) >= 14 else []
            if wins and 3 * len(wins) <= 2 * len(state.legal_actions()):
                found += 1
                yield {"game": "gomoku", "options": {"size": side}, "source": SPIEL, "actions": actions, "wins": wins}
                break
            actions.append(near(state, actions, side, rng))
            state.apply_action(actions[-1])


def chess_mates(rng):
    engine = chess.engine.SimpleEngine.popen_uci(STOCKFISH)
    found = 0
    while found < PER_GAME:
        board, actions = chess.Board(), []
        for _ in range(rng.randint(20, 70)):
            moves = list(board.legal_moves)
            if not moves or board.is_insufficient_material() or board.halfmove_clock >= 80:
                break
            move = rng.choice([m for m in moves if board.is_capture(m)] or moves) if rng.random() < 0.4 else rng.choice(moves)
            actions.append(action_number(board, move))
            board.push(move)
        moves = list(board.legal_moves)
        if not 3 <= len(moves) <= 40:
            continue
        score = engine.analyse(board, chess.engine.Limit(depth=7))["score"].relative
        if not score.is_mate() or score.mate() != 2:
            continue
        found_by_move = engine.analyse(board, chess.engine.Limit(depth=11), multipv=len(moves))
        scores = [(info["score"].relative, info["pv"][0]) for info in found_by_move]
        mates = [action_number(board, move) for score, move in scores if score.is_mate() and score.mate() > 0]
        if 3 * len(mates) <= 2 * len(moves):
            found += 1
            yield {"game": "chess", "options": {}, "source": engine.id["name"], "actions": actions, "wins": sorted(mates)}
    engine.quit()


def main():
    rng = random.Random(1)
    sources = [
        solved("connect_four", {}, "connect_four", range(22, 33), rng),
        solved("othello", {}, "othello", range(50, 56), rng),
        gomoku(rng),
        chess_mates(rng),
    ]
    for lines in sources:
        for line in lines:
            print(json.dumps(line, separators=(",", ":")))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
