#!/usr/bin/env python3
"""Kuhn poker and Leduc poker by OpenSpiel, for tests/poker.

    pip install open_spiel
    python poker.py figures                                        # the exact figures in ../poker/figures.rs
    python poker.py fixtures > ../poker/open_spiel.jsonl           # the committed games, seed 1
    python poker.py fixtures --games 2000 --seed 7 > games.jsonl   # more of them

Rules, information states and their tensors are OpenSpiel's. A line has the format of README.md; `ones` are the indices of the ones in the
tensor of the player to move. The best response is the script's own, in fractions, and is compared with OpenSpiel's `nash_conv`. Figures are
in chips: the value of the first player, what a best response gains for either player, and NashConv, the sum of both. Exploitability is half
of NashConv.
"""

import argparse
import json
import random
from fractions import Fraction
from importlib.metadata import version

import pyspiel

SOURCE = f"open_spiel {version('open_spiel')}"

# The games with the most chips that a player can win: returns of vecaz are chips over this.
GAMES = {"kuhn_poker": 2, "leduc_poker": 13}

# Name and number of games of the committed file.
COMMITTED = {"kuhn_poker": 40, "leduc_poker": 120}


def uniform(state):
    legal = state.legal_actions()
    return {action: Fraction(1, len(legal)) for action in legal}


def first_action(state):
    return {state.legal_actions()[0]: Fraction(1)}


def last_action(state):
    return {state.legal_actions()[-1]: Fraction(1)}


def hashed(state):
    """Probabilities from the numbers of the ones in the information state's tensor."""
    ones = sum((i + 1) ** 2 for i, x in enumerate(state.information_state_tensor()) if x == 1)
    weights = {action: 1 + (ones * (action + 2) + action) % 7 for action in state.legal_actions()}
    return {action: Fraction(weight, sum(weights.values())) for action, weight in weights.items()}


def kuhn_equilibrium(alpha):
    """The equilibria of Kuhn (1950): alpha is the probability of a bet of the first player with the lowest card."""
    third = Fraction(1, 3)
    bet = {"0": alpha, "1": 0, "2": 3 * alpha, "0pb": 0, "1pb": alpha + third, "2pb": 1}
    bet |= {"0p": third, "1p": 0, "2p": 1, "0b": 0, "1b": third, "2b": 1}

    def strategy(state):
        p = Fraction(bet[state.information_state_string()])
        return {0: 1 - p, 1: p}

    return strategy


def known_cards(game):
    """The limit of determinised search for many simulations and deals: the mean, over the deals that the player cannot tell apart, of the
    optimal policy with known cards. Actions that are equally good have equal probabilities."""
    values, policies = {}, {}

    def value(state):
        """The chips of player 0 by optimal play with known cards."""
        key = state.history_str()
        if key not in values:
            if state.is_terminal():
                values[key] = Fraction(state.returns()[0])
            else:
                of_children = [value(state.child(action)) for action in state.legal_actions()]
                by_chance = state.is_chance_node()
                best = None if by_chance else max if state.current_player() == 0 else min
                values[key] = sum(of_children) / len(of_children) if by_chance else best(of_children)
        return values[key]

    for (_, name), states in Solver(game, uniform).nodes.items():
        policy = policies.setdefault(name, dict.fromkeys(states[0][0].legal_actions(), Fraction(0)))
        for state, _ in states:
            best = [action for action in policy if value(state.child(action)) == value(state)]
            for action in best:
                policy[action] += Fraction(1, len(best) * len(states))
    return lambda state: policies[state.information_state_string()]


class Solver:
    """Values of a strategy and of best responses to it."""

    def __init__(self, game, strategy):
        self.root, self.strategy = game.new_initial_state(), strategy
        self.nodes = {}  # information state -> [(state, chance)]
        self.best = {}
        self.gather(self.root, Fraction(1))

    def branches(self, state):
        """The children of a state where chance decides or the strategy, with their probabilities."""
        if state.is_chance_node():
            outcomes = [outcome for outcome, _ in state.chance_outcomes()]
            return [(state.child(outcome), Fraction(1, len(outcomes))) for outcome in outcomes]
        return [(state.child(action), p) for action, p in self.strategy(state).items()]

    def gather(self, state, chance, reach=(Fraction(1), Fraction(1))):
        """Lists the states of every information state, each with the probability that the others bring it about."""
        if state.is_terminal():
            return
        if state.is_chance_node():
            for child, p in self.branches(state):
                self.gather(child, chance * p, reach)
            return
        player = state.current_player()
        others = chance * reach[1 - player]
        self.nodes.setdefault((player, state.information_state_string()), []).append((state, others))
        probabilities = self.strategy(state)
        for action in state.legal_actions():
            of_player = reach[player] * probabilities.get(action, 0)
            self.gather(state.child(action), chance, (of_player, reach[1]) if player == 0 else (reach[0], of_player))

    def value(self, state, player, responds):
        """The chips of `player`, who plays the best response if `responds`, otherwise the strategy."""
        if state.is_terminal():
            return Fraction(state.returns()[player])
        if responds and not state.is_chance_node() and state.current_player() == player:
            return self.value(state.child(self.response(player, state)), player, True)
        return sum(p * self.value(child, player, responds) for child, p in self.branches(state) if p)

    def response(self, player, state):
        key = (player, state.information_state_string())
        if key not in self.best:
            def total(action):
                return sum(p * self.value(of.child(action), player, True) for of, p in self.nodes[key] if p)

            self.best[key] = max(state.legal_actions(), key=total)
        return self.best[key]

    def open_spiel(self, game):
        """NashConv by OpenSpiel, in floats."""
        table = {}
        for (_, name), [(state, _), *_] in self.nodes.items():
            probabilities = self.strategy(state)
            table[name] = [(action, float(probabilities.get(action, 0))) for action in state.legal_actions()]
        return pyspiel.nash_conv(game, pyspiel.TabularPolicy(table), True)


def figures():
    strategies = {"uniform": uniform, "first": first_action, "last": last_action, "hashed": hashed}
    for name in GAMES:
        game = pyspiel.load_game(name)
        strategies["known cards"] = known_cards(game)
        of_kuhn = {f"equilibrium {alpha}": kuhn_equilibrium(Fraction(alpha)) for alpha in ["0", "1/5", "1/3"]}
        for title, strategy in (strategies | (of_kuhn if name == "kuhn_poker" else {})).items():
            solver = Solver(game, strategy)
            value = solver.value(solver.root, 0, False)
            best = [solver.value(solver.root, player, True) for player in range(2)]
            gains = [best[0] - value, best[1] + value]
            theirs = solver.open_spiel(game)
            assert abs(float(sum(gains)) - theirs) < 1e-9, (name, title, sum(gains), theirs)
            print(f"{name} {title}: {len(solver.nodes)} information states, value {value} = {float(value):.12f}, ", end="")
            print(f"gains {[float(gain) for gain in gains]}, NashConv {sum(gains)} = {float(sum(gains)):.12f}")


def play(name, rng):
    state, actions, plies = pyspiel.load_game(name).new_initial_state(), [], []
    while not state.is_terminal():
        if state.is_chance_node():
            plies.append({"kind": "chance", "legal": state.legal_actions()})
        else:
            seen = [i for i, x in enumerate(state.information_state_tensor()) if x == 1]
            ply = {"kind": "player", "to_play": state.current_player(), "legal": state.legal_actions()}
            plies.append(ply | {"ones": seen})
        actions.append(rng.choice(plies[-1]["legal"]))
        state.apply_action(actions[-1])
    results = {"returns": [x / GAMES[name] for x in state.returns()], "scores": state.returns()}
    return {"game": name, "options": {}, "source": SOURCE, "actions": actions, "plies": plies} | results


def fixtures(games, seed):
    for name, committed in COMMITTED.items():
        rng = random.Random(f"{name} {seed}")
        for _ in range(games or committed):
            print(json.dumps(play(name, rng), separators=(",", ":")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["figures", "fixtures"])
    parser.add_argument("--games", type=int, default=0, help="games of each; 0 for the number that is committed")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    figures() if args.command == "figures" else fixtures(args.games, args.seed)


if __name__ == "__main__":
    main()
