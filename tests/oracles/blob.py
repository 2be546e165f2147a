"""Random games of Blob, one JSON line each, for tests/playthroughs.rs.

    python blob.py --out ../fixtures/playthroughs/blob.jsonl       # the committed fixture
    python blob.py --check 5000                                    # OpenSpiel against the model below, no output
    python blob.py --games 2000 --seed 7 --out big.jsonl           # a longer cross-check, to be replayed once

Two sources. `open_spiel`: single rounds of OpenSpiel's oh_hell, whose deal, bidding, play and trick winners are Blob's
(its trump is the suit of a card turned up after the deal, hence never "none"; with the off-bid penalty its return is
10 + bid exactly for an exact bid, and negative for others). `model`: the whole of Blob, full games and rounds without trump
included, written below from the rules, on lists of cards by name and with no regard for speed.

Needs open_spiel 2.0.2.
"""

import argparse
import json
import random

SUITS = "♠♥♣♦"
TRUMPS = ["spades", "hearts", "clubs", "diamonds", "none"]
RANKS = ["2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K", "A"]
PACK = [(suit, rank) for suit in SUITS for rank in RANKS]


def number(card):
    return PACK.index(card)


def fits(players, cards):
    return cards <= 13 and players * cards <= 52


class Model:
    """Blob from its rules, with the game's `options`: players, seated, cards, full, trump, dealer."""

    def __init__(self, options):
        options = {"players": 4, "seated": 8, "cards": 5, "full": False, "trump": "spades", "dealer": 0} | options
        self.options, self.seats = options, options["players"]
        self.first_trump, self.first_dealer = TRUMPS.index(options["trump"]), options["dealer"]
        self.players = None
        if options["seated"] > 0:
            self.sit_down(min(options["seated"], self.seats))

    def sit_down(self, players):
        self.players = players
        cards = min(self.options["cards"], 52 // players)
        self.schedule = [cards]
        if self.options["full"]:
            self.schedule = [*range(cards, 1, -1), *[1] * players, *range(2, cards + 1)]
        self.points = [0] * players
        self.round = 0
        self.start_round()

    def start_round(self):
        self.hands = [[] for _ in range(self.players)]
        self.undealt = list(PACK)
        self.bids = {}
        self.won = [0] * self.players
        self.table = []  # (player, card)
        dealer = self.first_dealer + self.round
        self.order = [(dealer + 1 + k) % self.players for k in range(self.players)]
        trump = TRUMPS[(self.first_trump + self.round) % 5]
        self.trump = None if trump == "none" else SUITS[TRUMPS.index(trump)]

    @property
    def cards(self):
        return self.schedule[self.round]

    def kind(self):
        if self.players is None:
            return "chance"
        if self.round == len(self.schedule):
            return "over"
        return "chance" if 52 - len(self.undealt) < self.players * self.cards else "player"

    def bidding(self):
        return len(self.bids) < self.players

    def to_play(self):
        if self.kind() != "player":
            return 0
        if self.bidding():
            return self.order[len(self.bids)]
        return self.order[len(self.table)]

    def legal(self):
        if self.players is None:
            return list(range(3, self.seats + 1))
        if self.kind() == "chance":
            return [number(card) for card in self.undealt]
        if self.bidding():
            bids = list(range(self.cards + 1))
            if len(self.bids) == self.players - 1:
                bids = [bid for bid in bids if sum(self.bids.values()) + bid != self.cards]
            return bids
        hand = self.hands[self.to_play()]
        if self.table:
            led = self.table[0][1][0]
            hand = [card for card in hand if card[0] == led] or hand
        return sorted(number(card) for card in hand)

    def apply(self, action):
        if self.players is None:
            self.sit_down(action)
        elif self.kind() == "chance":
            dealt = 52 - len(self.undealt)
            self.undealt.remove(PACK[action])
            self.hands[dealt % self.players].append(PACK[action])
        elif self.bidding():
            self.bids[self.to_play()] = action
        else:
            player = self.to_play()
            self.hands[player].remove(PACK[action])
            self.table.append((player, PACK[action]))
            if len(self.table) == self.players:
                self.take_trick()

    def take_trick(self):
        led = self.table[0][1][0]
        trumps = [entry for entry in self.table if entry[1][0] == self.trump]
        running = trumps or [entry for entry in self.table if entry[1][0] == led]
        winner = max(running, key=lambda entry: RANKS.index(entry[1][1]))[0]
        self.won[winner] += 1
        self.table = []
        self.order = [(winner + k) % self.players for k in range(self.players)]
        if not self.hands[winner]:
            for player in range(self.players):
                if self.bids[player] == self.won[player]:
                    self.points[player] += 10 + self.bids[player]
            self.round += 1
            if self.round < len(self.schedule):
                self.start_round()

    def returns(self):
        empty = [0] * (self.seats - self.players)
        return lead(self.points, sum(10 + cards for cards in self.schedule)) + empty


def lead(points, most):
    """Own points less the mean of the others', over the most points one player can make."""
    others = len(points) - 1
    return [round((own - (sum(points) - own) / others) / most, 9) for own in points]


def line(options, source, actions, plies, returns):
    return {"game": "blob", "options": options, "source": source, "actions": actions, "plies": plies, "returns": returns}


def model_game(options, rng):
    game, actions, plies = Model(options), [], []
    while game.kind() != "over":
        plies.append({"kind": game.kind(), "to_play": game.to_play(), "legal": game.legal()})
        actions.append(rng.choice(plies[-1]["legal"]))
        game.apply(actions[-1])
    return line(options, "model", actions, plies, game.returns())


def spiel_card(state, action):
    """Blob's number of an OpenSpiel card, by its name: suit letter, rank character."""
    name = state.action_to_string(state.current_player(), action)
    rank = "10" if name[1] == "T" else name[1]
    return number((SUITS["SHCD".index(name[0])], rank))


def open_spiel_game(players, cards, rng):
    """One round of oh_hell; its number of tricks, dealer and turned-up card become options."""
    import pyspiel

    parameters = f"players={players},num_tricks_fixed={cards},off_bid_penalty=true,points_per_trick=1"
    state = pyspiel.load_game(f"oh_hell({parameters})").new_initial_state()
    state.apply_action(cards)
    dealer = rng.randrange(players)
    state.apply_action(dealer)
    actions, plies, phase_ends = [], [], (players * cards, players * cards + players)
    while not state.is_terminal():
        choices = state.legal_actions()
        choice = rng.choice(choices)
        if len(actions) == phase_ends[0] and state.is_chance_node():
            trump = TRUMPS[spiel_card(state, choice) // 13]
        else:
            bidding = phase_ends[0] <= len(actions) < phase_ends[1]
            name = (lambda a: a - 52) if bidding else (lambda a: spiel_card(state, a))
            chance = state.is_chance_node()
            plies.append({
                "kind": "chance" if chance else "player",
                "to_play": 0 if chance else state.current_player(),
                "legal": sorted(name(a) for a in choices),
            })
            actions.append(name(choice))
        state.apply_action(choice)
    points = [max(0, int(x)) for x in state.returns()]
    options = {"players": players, "cards": cards, "trump": trump, "dealer": dealer}
    return line(options, "open_spiel 2.0.2", actions, plies, lead(points, 10 + cards))


def check_with_model(game):
    """Replays a game in the model; any difference is an error."""
    model = Model(game["options"])
    for ply, (action, seen) in enumerate(zip(game["actions"], game["plies"])):
        told = {"kind": model.kind(), "to_play": model.to_play(), "legal": model.legal()}
        assert told == seen, (game["options"], ply, told, seen)
        model.apply(action)
    assert model.kind() == "over" and model.returns() == game["returns"], game


def random_shape(rng):
    """Players and cards such that OpenSpiel has a card left to turn up; small deals more often than large."""
    players = rng.randint(3, 7)
    return players, min(rng.randint(1, 51 // players), rng.randint(1, 51 // players), 13)


def committed(rng):
    """The fixture: every number of players in both sources, the largest deals, full games, every trump."""
    for players, cards in [(3, 13), (4, 12), (5, 10), (6, 8), (7, 7), (3, 5), (4, 5), (4, 5), (5, 3), (6, 2), (7, 1)]:
        yield open_spiel_game(players, cards, rng)
    for options in [
        {"players": 4, "cards": 13, "trump": "none"},
        {"players": 8, "cards": 6, "trump": "none", "dealer": 7},
        {"players": 8, "cards": 3, "trump": "hearts", "dealer": 3},
        {"players": 3, "cards": 4, "full": True},
        {"players": 4, "cards": 3, "full": True, "trump": "clubs", "dealer": 2},
        {"players": 5, "cards": 1, "full": True, "trump": "none", "dealer": 4},
        {"players": 8, "cards": 9, "seated": 0},
        {"players": 8, "cards": 3, "seated": 0, "full": True, "dealer": 2},
        {"players": 5, "cards": 2, "seated": 3, "full": True, "trump": "diamonds"},
    ]:
        yield model_game(options, rng)


def cross_check(count, rng):
    """Half from each source, of all shapes."""
    for i in range(count):
        if i % 2 == 0:
            yield open_spiel_game(*random_shape(rng), rng)
            continue
        players = rng.randint(3, 8)
        cards = rng.choice([cards for cards in range(1, 14) if fits(players, cards)])
        trump, dealer = rng.choice(TRUMPS), rng.randrange(players)
        full = rng.random() < 0.2
        options = {"players": players, "cards": cards, "full": full, "trump": trump, "dealer": dealer}
        if rng.random() < 0.3:
            # 0, or fewer players than seats, of whom one deals.
            seated = rng.choice([0, *range(3, players + 1)])
            options |= {"seated": seated, "dealer": rng.randrange(seated or 3)}
        yield model_game(options, rng)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="file to write")
    parser.add_argument("--games", type=int, help="random games instead of the committed ones")
    parser.add_argument("--check", type=int, help="compare OpenSpiel with the model on so many rounds")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    if args.check:
        for _ in range(args.check):
            check_with_model(open_spiel_game(*random_shape(rng), rng))
        print(f"{args.check} rounds of OpenSpiel agree with the model")
    if args.out:
        games = cross_check(args.games, rng) if args.games else committed(rng)
        with open(args.out, "w") as file:
            count = 0
            for game in games:
                check_with_model(game)
                file.write(json.dumps(game, separators=(",", ":")) + "\n")
                count += 1
        print(f"{count} games written to {args.out}")


if __name__ == "__main__":
    main()
