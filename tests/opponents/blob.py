#!/usr/bin/env python3
"""A rule-based player of Blob as an opponent of `vecaz eval`: a floor that a trained network must beat.

    vecaz eval runs/blob --against 'exec:python3 tests/opponents/blob.py' --opening-plies 0 --games 500
    python3 tests/opponents/blob.py --check     # positions with known answers

It does not search and it is deterministic. Each card has a chance to take a trick, estimated from the unseen cards, the
sizes of the other hands, the voids that they have shown and what the other players still need. With these chances taken
as independent, the number of tricks has a known distribution. The player bids the number with the most expected points
and plays the card after which the bid is most likely to be met exactly. So it wins cheaply while it needs tricks, and
once it has them it discards high cards under better ones. A player who can no longer meet the bid spoils those of the
others.
"""

import sys
from math import comb, prod

from protocol import serve

TRUMPS = ("spades", "hearts", "clubs", "diamonds", "none")
# The chance that a player who needs tricks takes one that it can take.
EAGER = 0.9
# The share of such players before their bids are known.
NEEDY = 0.7
# What each higher trump in the same hand adds to the chance of a trump, as a share of the chance that it fails.
LENGTH = 0.15
# The same for every card but the last, for tricks that the estimates leave out.
FLOOR = 0.04


def suit_of(card):
    return card // 13


def rank_of(card):
    return card % 13


class Table:
    """A round as the player to move sees it. Cards and suits are numbered as in `src/game/blob.rs`; 4 is no trump."""

    def __init__(self, question):
        options, actions = at_table(question["options"], question["actions"])
        self.me, self.players = question["player"], options["players"]
        self.hand = [card["number"] for card in question["view"]["board"]["seats"][self.me]["hand"]]
        number, cards, actions = present_round(options, actions)
        self.trump = (TRUMPS.index(options["trump"]) + number) % 5
        self.leader = (options["dealer"] + number + 1) % self.players
        bids, plays = actions[: self.players], actions[self.players :]
        self.bids = dict(zip(self.from_seat(self.leader), bids))
        self.taken, self.sizes = [0] * self.players, [cards] * self.players
        self.voids, self.trick = set(), []
        for card in plays:
            self.play(card)
        seen = {*self.hand, *plays}
        self.unseen = [[rank for rank in range(13) if 13 * suit + rank not in seen] for suit in range(4)] + [[]]

    def from_seat(self, first):
        """All players in order of play, from `first` on."""
        return [(first + i) % self.players for i in range(self.players)]

    def play(self, card):
        player = (self.leader + len(self.trick)) % self.players
        self.sizes[player] -= 1
        self.trick.append(card)
        led = suit_of(self.trick[0])
        if suit_of(card) != led and player != self.me:
            self.voids.add((player, led))
        if len(self.trick) == self.players:
            best = max(self.trick, key=lambda card: self.strength(card, led))
            self.leader = (self.leader + self.trick.index(best)) % self.players
            self.taken[self.leader] += 1
            self.trick = []

    def strength(self, card, led):
        return 32 * (suit_of(card) == self.trump) + 16 * (suit_of(card) == led) + rank_of(card)

    def need(self, player):
        """The tricks that `player` still needs, negative if it has too many; None before its bid."""
        return self.bids[player] - self.taken[player] if player in self.bids else None

    def holds(self, player, suit, ranks=range(13), count=1, void=None):
        """The chance that `player` holds `count` unseen cards of `suit` with these ranks, given that it has none of `void`."""
        if (player, suit) in self.voids:
            return 0.0
        n, size = sum(rank in ranks for rank in self.unseen[suit]), self.sizes[player]
        slots = sum(map(len, self.unseen)) - sum(self.sizes[other] for other, s in self.voids if s == suit)
        if void is not None and (player, void) not in self.voids:
            slots = max(n, size, slots - len(self.unseen[void]))
        fewer = range(min(count, size + 1))
        return 1 - sum(comb(n, k) * comb(slots - n, size - k) for k in fewer) / comb(slots, size)

    def beats(self, player, card, led, count=1):
        """The chance that `player` beats `card`, the best so far, in the `count`-th trick from now that is led in `led`."""
        rank, suit = rank_of(card), suit_of(card)
        over = self.holds(player, led, range(rank + 1, 13)) if suit == led else 0.0
        forced = over * (1 - self.holds(player, led, range(rank)))
        ruff = 0.0
        if led != self.trump:
            trumps = range(rank + 1, 13) if suit == self.trump else range(13)
            ruff = (1 - self.holds(player, led, count=count)) * self.holds(player, self.trump, trumps, void=led)
        if self.sizes[player] == 1:
            return over + ruff
        need = self.need(player)
        needy = NEEDY if need is None else float(need > 0)
        return needy * EAGER * (over + ruff) + (1 - needy) * forced

    def wins_now(self, card):
        """The chance that `card` takes the present trick."""
        trick = [*self.trick, card]
        led = suit_of(trick[0])
        if max(trick, key=lambda card: self.strength(card, led)) != card:
            return 0.0
        later = self.from_seat(self.leader)[len(trick) :]
        return prod(1 - self.beats(player, card, led) for player in later)

    def wins_later(self, card, hand, leads):
        """The chance that `card` of `hand` takes a trick, where the owner `leads` the next one or does not.

        A card of a side suit wins in a trick of its suit. A trump also wins as a ruff, less often in a hand without short
        suits. The last card of a side suit needs the lead, or it wins only if its suit is led.
        """
        suit, is_last = suit_of(card), len(hand) == 1
        longer = sum(suit_of(other) == suit and other > card for other in hand)
        others = self.from_seat(self.me)[1:]
        if suit == self.trump:
            highest = prod(1 - self.holds(player, suit, range(rank_of(card) + 1, 13)) for player in others)
            shortest = min(sum(suit_of(other) == side for other in hand) for side in range(4) if side != suit)
            chance = highest if is_last else highest ** (0.5 + 2.5 * shortest / len(hand))
            chance += (1 - chance) * min(1.0, LENGTH * longer)
        else:
            chance = prod(1 - self.beats(player, card, suit, longer + 1) for player in others)
            chance *= 1.0 if leads else 1 - 0.75 / len(hand)
        return chance if is_last else chance + (1 - chance) * FLOOR

    def tricks(self, hand, leads):
        """The chances that `hand` takes 0, 1, 2, ... tricks."""
        out = [1.0]
        for p in (self.wins_later(card, hand, leads) for card in hand):
            out = [fails * (1 - p) + wins * p for fails, wins in zip([*out, 0.0], [0.0, *out])]
        return out


def at_table(options, actions):
    """The options of the players who take part, and the actions once their number is known: 0 of them are drawn."""
    seated = options["seated"]
    players, actions = (actions[0], actions[1:]) if seated == 0 else (min(seated, options["players"]), actions)
    return options | {"players": players, "cards": min(options["cards"], 52 // players)}, actions


def present_round(options, actions):
    """The number of the present round, the cards of a hand, and its bids and plays."""
    players, most = options["players"], options["cards"]
    rounds = [*range(most, 1, -1), *[1] * players, *range(2, most + 1)] if options["full"] else [most]
    for number, cards in enumerate(rounds):
        length = players * (2 * cards + 1)
        if len(actions) < length:
            return number, cards, actions[players * cards :]
        actions = actions[length:]
    sys.exit("the game is over")


def choose_bid(table, legal):
    chances = table.tricks(table.hand, table.me == table.leader)
    return max(legal, key=lambda bid: chances[bid] * (10 + bid))


def choose_card(table, legal):
    need = table.need(table.me)

    def exact(card):
        """The chance to meet the bid exactly after `card`."""
        rest, p = [other for other in table.hand if other != card], table.wins_now(card)
        won, lost = ([0.0, *table.tricks(rest, leads), 0.0] for leads in (True, False))
        return p * won[need] + (1 - p) * lost[need + 1]

    return max(legal, key=exact if 0 <= need <= len(table.hand) else spoiler(table))


def spoiler(table):
    """The value of a card if the bid cannot be met: tricks are taken if the others need all that are left, else avoided."""
    needs = [table.need(player) for player in range(table.players) if player != table.me]
    sign = 1 if sum(max(0, need) for need in needs) >= len(table.hand) else -1
    return lambda card: (sign * table.wins_now(card), -sign * rank_of(card))


def choose(question):
    table = Table(question)
    return (choose_card if table.me in table.bids else choose_bid)(table, question["legal"])


def ask(hand, bids, plays="", players=4, trump="spades"):
    """The answer of a player with `hand` after these bids and plays in a round that player 0 deals."""
    number = {rank + suit: 13 * s + r for s, suit in enumerate("SHCD") for r, rank in enumerate("23456789TJQKA")}
    hand, plays = ([number[name] for name in text.split()] for text in (hand, plays))
    cards, turn = len(hand) + len(plays) // players, len(bids) % players
    options = {"players": players, "seated": 8, "cards": cards, "full": False, "trump": trump, "dealer": 0}
    seats = [{"hand": [{"number": card} for card in hand]}] * players
    question = {"options": options, "player": 0, "view": {"board": {"seats": seats}}}
    question["actions"] = [None] * (players * cards) + bids + plays
    table = Table(question)
    question["player"] = (table.leader + len(table.trick) + turn) % players
    if len(bids) < players:
        forbidden = cards - sum(bids) if turn == players - 1 else None
        return choose(question | {"legal": [bid for bid in range(cards + 1) if bid != forbidden]})
    follows = [card for card in hand if table.trick and suit_of(card) == suit_of(table.trick[0])]
    return list(number)[choose(question | {"legal": follows or hand})]


def check():
    """Asserts the answers of positions with a known one."""
    drawn = {"players": 8, "seated": 0, "cards": 13}
    assert at_table(drawn, [5, 7]) == (drawn | {"players": 5, "cards": 10}, [7])
    assert present_round({"players": 3, "cards": 2, "full": True}, [None] * 18 + [1]) == (1, 1, [1])
    assert ask("AS KS QS", []) == 3, "sure tricks"
    assert ask("AH AS AD", [], trump="none") == 3, "sure tricks without trumps, on lead"
    assert ask("2H 3C 4D", []) == 0, "no trick"
    assert ask("2H 3C 4D", [1, 1, 1]) == 1, "the last bid may not make the sum 3"
    assert ask("2S", [0, 0]) == 0 and ask("8S", [0, 0]) == 1, "one card: a low and a high trump"
    assert ask("AH", [0], players=8) == 0, "one card: a side suit that another player must lead"
    assert ask("AH QH 2C", [1, 1, 1, 2], "3H TH 4H") == "QH", "the cheapest winner keeps the ace for the other trick"
    assert ask("AH QH 2C", [1, 1, 1, 1], "3H TH 4H") == "AH", "the last trick needed is taken with the dangerous card"
    assert ask("3H 9H KH", [1, 0, 0, 1], "TH 2H") == "9H", "the highest card that loses"
    assert ask("KS 2H 5C", [1, 1, 1, 0], "3D AS 4D") == "KS", "a dangerous trump under a higher one"
    assert ask("2S 3H 9H 9D", [1, 1, 0, 0], "AC 2C 5C") == "9D", "a discard instead of a ruff"
    assert ask("2S 3H", [0, 1, 1, 1], "4S 5S 6S 7S AC 2C 5C") == "2S", "a ruff for the last trick needed"
    assert ask("AS 2H", [2, 0, 0, 0]) == "AS", "a sure winner is led"


if __name__ == "__main__":
    check() if sys.argv[1:] == ["--check"] else serve(choose)
