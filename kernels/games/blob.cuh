// Twin of src/game/blob: rules and observations. Determinisation is in blob_deal.cuh.
#pragma once
#include "games/blob_layout.cuh"
#include "rng.cuh"

using blob::State;

namespace blob {

constexpr int SEATS = VZ_PLAYERS;
// Number of players where it is the same in all games, else 0.
constexpr int FIXED_PLAYERS = VZ_OPT_SEATED < SEATS ? VZ_OPT_SEATED : SEATS;

// Trump of the first round, in the order of the rotation; 4 is none.
#if defined(VZ_OPT_TRUMP_SPADES)
constexpr int TRUMP = 0;
#elif defined(VZ_OPT_TRUMP_HEARTS)
constexpr int TRUMP = 1;
#elif defined(VZ_OPT_TRUMP_CLUBS)
constexpr int TRUMP = 2;
#elif defined(VZ_OPT_TRUMP_DIAMONDS)
constexpr int TRUMP = 3;
#elif defined(VZ_OPT_TRUMP_NONE)
constexpr int TRUMP = 4;
#else
#error "an unknown value of option trump"
#endif

// Twin of src/game/blob/table.rs: the players and the rounds of one game.
struct Table {
    int players, cards;

    VZ_DEVICE int num_rounds() const { return VZ_OPT_FULL ? 2 * cards + players - 2 : 1; }

    VZ_DEVICE int cards_in(int round) const {
        const int single = cards - 1, last = single + players;
        if (round < single) return cards - round;
        return round < last ? 1 : round - last + 2;
    }

    VZ_DEVICE int dealer_in(int round) const { return (VZ_OPT_DEALER + round) % players; }

    VZ_DEVICE int max_points() const {
        return 10 * num_rounds() + (VZ_OPT_FULL ? cards * (cards + 1) + players - 2 : cards);
    }

    // Maximum number of points one player can make in the rounds after `round`.
    VZ_DEVICE int max_points_after(int round) const {
        int sum = 0;
        for (int later = round + 1; later < num_rounds(); later++) sum += 10 + cards_in(later);
        return sum;
    }

    // The player `steps` (at most the number of players) seats after `player`.
    VZ_DEVICE int seat_after(int player, int steps) const {
        const int seat = player + steps;
        return seat >= players ? seat - players : seat;
    }

    VZ_DEVICE int to_act(const State& s) const { return seat_after(s.leader, s.count); }
};

VZ_DEVICE Table table_of(int players) {
    const int shared = NUM_CARDS / players;
    return Table{players, VZ_OPT_CARDS < shared ? VZ_OPT_CARDS : shared};
}

// While the number of players is not drawn, all seats are taken.
VZ_DEVICE Table table(const State& s) {
    if (FIXED_PLAYERS > 0) return table_of(FIXED_PLAYERS);
    return table_of(s.players == 0 ? SEATS : s.players);
}

VZ_DEVICE int trump_in(int round) { return (TRUMP + round) % 5; }

// The points of `player` minus the mean of the others', as a share of `max`.
template <class Points>
VZ_DEVICE f32 share_of(const Table& t, const Points* points, int player, int max) {
    int total = 0;
    for (int p = 0; p < t.players; p++) total += points[p];
    return f32(t.players * points[player] - total) / f32((t.players - 1) * max);
}

// The same of all points, as a share of the maximum of a game.
VZ_DEVICE f32 lead(const Table& t, const State& s, int player) { return share_of(t, s.scores, player, t.max_points()); }

// The same of the points of the last finished round alone, as a share of the maximum of that round.
VZ_DEVICE f32 lead_in_round(const Table& t, const State& s, int player) {
    const int round = s.phase == Phase::Over || s.round == 0 ? s.round : s.round - 1;
    return share_of(t, s.round_points, player, 10 + t.cards_in(round));
}

VZ_DEVICE u64 suit_cards(int suit) { return SPADES << (13 * suit); }

VZ_DEVICE int suit_of(int card) { return card / 13; }

// Cards in the current trick.
VZ_DEVICE int trick_len(const State& s) { return s.phase == Phase::Play ? s.count : 0; }

VZ_DEVICE u64 trick_cards(const State& s) {
    u64 cards = 0;
    for (int i = 0; i < trick_len(s); i++) cards |= 1ull << s.trick[i];
    return cards;
}

// The cards neither in a hand nor played.
VZ_DEVICE u64 stock(const State& s) {
    u64 known = s.gone | trick_cards(s);
    for (int player = 0; player < SEATS; player++) known |= s.hands[player];
    return PACK & ~known;
}

VZ_DEVICE u32 voids_of(const State& s, int player) { return s.voids >> (4 * player) & 15; }

// The state before the first card of `round` is dealt; scores and the last round's points stay.
VZ_DEVICE void start_round(const Table& t, State& s, int round) {
    for (int p = 0; p < MAX_PLAYERS; p++) {
        s.hands[p] = 0;
        s.trick[p] = s.tricks[p] = 0;
        s.bids[p] = NO_BID;
    }
    s.gone = 0;
    s.voids = 0;
    s.round = u8(round);
    s.phase = Phase::Deal;
    s.leader = u8(t.seat_after(t.dealer_in(round), 1));
    s.count = 0;
    s.players = u8(t.players);
}

VZ_DEVICE int legal_bids(const State& s, u16* out) {
    const Table t = table(s);
    const int cards = t.cards_in(s.round);
    const bool bidder_is_last = s.count + 1 == t.players;
    int sum = 0;
    for (int p = 0; p < t.players; p++) sum += s.bids[p] == NO_BID ? 0 : s.bids[p];
    int n = 0;
    for (int bid = 0; bid <= cards; bid++) {
        if (!bidder_is_last || bid + sum != cards) out[n++] = u16(bid);
    }
    return n;
}

// The cards that the player to act may play: of the suit led, if there are any in hand.
VZ_DEVICE u64 playable(const State& s) {
    const u64 hand = s.hands[table(s).to_act(s)];
    if (s.count == 0) return hand;
    const u64 following = hand & suit_cards(suit_of(s.trick[0]));
    return following == 0 ? hand : following;
}

VZ_DEVICE void deal(State& s, int card) {
    const Table t = table(s);
    s.hands[s.count % t.players] |= 1ull << card;
    s.count += 1;
    if (s.count == t.players * t.cards_in(s.round)) {
        s.phase = Phase::Bid;
        s.count = 0;
    }
}

VZ_DEVICE void bid(State& s, int bid) {
    const Table t = table(s);
    s.bids[t.to_act(s)] = u8(bid);
    s.count += 1;
    if (s.count == t.players) {
        s.phase = Phase::Play;
        s.count = 0;
    }
}

VZ_DEVICE int strength(int card, int led, int trump) {
    const int suit = suit_of(card);
    return 32 * (suit == trump) + 16 * (suit == led) + card % 13;
}

// The player whose card is the best of the current trick so far, which is not empty.
VZ_DEVICE int trick_winner(const State& s) {
    const int led = suit_of(s.trick[0]), trump = trump_in(s.round);
    int best = strength(s.trick[0], led, trump), index = 0;
    for (int i = 1; i < trick_len(s); i++) {
        const int other = strength(s.trick[i], led, trump);
        if (other > best) {
            best = other;
            index = i;
        }
    }
    return table(s).seat_after(s.leader, index);
}

VZ_DEVICE void finish_round(const Table& t, State& s) {
    for (int p = 0; p < t.players; p++) {
        s.round_points[p] = u8(s.bids[p] == s.tricks[p] ? 10 + s.bids[p] : 0);
        s.scores[p] += s.round_points[p];
    }
    if (s.round + 1 == t.num_rounds()) {
        s.phase = Phase::Over;
    } else {
        start_round(t, s, s.round + 1);
    }
}

VZ_DEVICE void finish_trick(State& s) {
    const int winner = trick_winner(s);
    s.gone |= trick_cards(s);
    for (int i = 0; i < MAX_PLAYERS; i++) s.trick[i] = 0;
    s.tricks[winner] += 1;
    s.leader = u8(winner);
    s.count = 0;
    if (s.hands[winner] == 0) finish_round(table(s), s);
}

VZ_DEVICE void play(State& s, int card) {
    const Table t = table(s);
    const int player = t.to_act(s);
    s.hands[player] &= ~(1ull << card);
    s.trick[s.count] = u8(card);
    const int led = suit_of(s.trick[0]);
    if (suit_of(card) != led) s.voids |= 1u << (4 * player + led);
    s.count += 1;
    if (s.count == t.players) finish_trick(s);
}

// The layout of observations is described in src/game/blob/observe.rs.
constexpr int ROUND_AT = SEATS_AT + SEAT_LEN * SEATS;
constexpr int DEAL_AT = ROUND_AT + ROUND_LEN; // of the deal, with network_sees = "deal"; otherwise the end of the observation

VZ_DEVICE f32 share(int x, int of) { return f32(x) / f32(of); }

VZ_DEVICE int tricks_made(const State& s) {
    int sum = 0;
    for (int p = 0; p < SEATS; p++) sum += s.tricks[p];
    return sum;
}

// Cards that `player` holds, from public facts only.
VZ_DEVICE int hand_size(const Table& t, const State& s, int player, int cards_in_trick) {
    switch (s.phase) {
    case Phase::Deal: return (s.count + t.players - 1 - player) / t.players;
    case Phase::Bid: return t.cards_in(s.round);
    case Phase::Play: return t.cards_in(s.round) - tricks_made(s) - cards_in_trick;
    default: return 0;
    }
}

// Number `i` of the seat of `player`.
VZ_DEVICE f32 seat_number(const Table& t, const State& s, int player, int i) {
    const int index = t.seat_after(player, t.players - s.leader);
    const bool has_card = index < trick_len(s);
    const int card = s.trick[has_card ? index : 0];
    const bool has_bid = s.bids[player] != NO_BID;
    const int bid = has_bid ? s.bids[player] : 0, taken = s.tricks[player];
    if (i < 4) return f32(has_card && suit_of(card) == i);
    if (i >= 6 && i < 20) return f32(has_bid && bid == i - 6);
    if (i >= 25 && i < 29) return f32(voids_of(s, player) >> (i - 25) & 1);
    switch (i) {
    case 4: return share(has_card ? card % 13 + 1 : 0, 13);
    case 5: return f32(has_card && trick_winner(s) == player);
    case 20: return share(bid, 13);
    case 21: return share(taken, 13);
    case 22: return has_bid ? share(bid - taken, 13) : 0.0f;
    case 23: return f32(has_bid && bid == taken);
    case 24: return share(hand_size(t, s, player, has_card), 13);
    case 29: return f32(t.dealer_in(s.round) == player);
    case 30: return f32(s.leader == player);
    case 31: return f32((s.phase == Phase::Bid || s.phase == Phase::Play) && t.to_act(s) == player);
    default: return lead(t, s, player);
    }
}

// Number `i` after the seats.
VZ_DEVICE f32 round_number(const Table& t, const State& s, int i) {
    const int cards = t.cards_in(s.round);
    if (i < 5) return f32(trump_in(s.round) == i);
    if (i < 9) return f32(trick_len(s) > 0 && suit_of(s.trick[0]) == i - 5);
    if (i < 13) return f32((int)s.phase == i - 9);
    int num_bids = 0, sum = 0;
    for (int p = 0; p < t.players; p++) {
        const bool has_bid = s.bids[p] != NO_BID;
        num_bids += has_bid;
        sum += has_bid ? s.bids[p] : 0;
    }
    switch (i) {
    case 13: return share(cards, 13);
    case 14: return share(cards - tricks_made(s), 13);
    case 15: return share(sum - cards, 13);
    case 16: return share(t.players - num_bids, 8);
    case 17: return share(t.num_rounds() - 1 - s.round, t.num_rounds());
    default: return share(t.max_points_after(s.round), t.max_points());
    }
}

// The card that wins the current trick so far, as a set.
VZ_DEVICE u64 best_of_trick(const Table& t, const State& s) {
    if (trick_len(s) == 0) return 0;
    return 1ull << s.trick[t.seat_after(trick_winner(s), t.players - s.leader)];
}

// Number `i` of the deal: 1 if the card with that rank in its suit, the highest live one first, is in the given set.
VZ_DEVICE f32 deal_number(const Table& t, const State& s, int observer, int i) {
    const int set = i / NUM_CARDS, trump = trump_in(s.round);
    if (set >= t.players && set < SEATS) return 0.0f;
    const int suit = ((trump == 4 ? 0 : trump) + i % NUM_CARDS / 13) % 4;
    const u64 best = best_of_trick(t, s);
    u64 live = best;
    for (int player = 0; player < SEATS; player++) live |= s.hands[player];
    live &= suit_cards(suit);
    for (int above = i % 13; above > 0 && live != 0; above--) live &= ~(1ull << (63 - leading_zeros(live)));
    if (live == 0) return 0.0f;
    const u64 cards = set == SEATS ? best : s.hands[t.seat_after(observer, set)];
    return f32(cards >> (63 - leading_zeros(live)) & 1);
}

VZ_DEVICE f32 observed(const State& s, int observer, int i) {
    const Table t = table(s);
    // One without a seat sees the table as player 0 does, without a hand.
    const int first = observer < t.players ? observer : 0, seat = (i - SEATS_AT) / SEAT_LEN;
    if (i >= DEAL_AT) return deal_number(t, s, first, i - DEAL_AT);
    if (i < NUM_CARDS) return f32(s.hands[observer] >> i & 1);
    if (i < 2 * NUM_CARDS) return f32(s.gone >> (i - NUM_CARDS) & 1);
    if (i < SEATS_AT) return f32(trick_cards(s) >> (i - 2 * NUM_CARDS) & 1);
    if (i >= ROUND_AT) return round_number(t, s, i - ROUND_AT);
    return seat >= t.players ? 0.0f : seat_number(t, s, t.seat_after(first, seat), (i - SEATS_AT) % SEAT_LEN);
}

} // namespace blob

#include "games/blob_deal.cuh"

VZ_DEVICE int game_turn(const State& s) {
    if (s.phase == blob::Phase::Deal || s.phase == blob::Phase::Seating) return TURN_CHANCE;
    return s.phase == blob::Phase::Over ? TURN_OVER : blob::table(s).to_act(s);
}

VZ_DEVICE int game_legal(const State& s, const History&, u16* out) {
    switch (s.phase) {
    case blob::Phase::Seating:
        for (int players = blob::MIN_PLAYERS; players <= blob::SEATS; players++) out[players - blob::MIN_PLAYERS] = u16(players);
        return blob::SEATS - blob::MIN_PLAYERS + 1;
    case blob::Phase::Deal: return write_bits(blob::stock(s), 0, out);
    case blob::Phase::Bid: return blob::legal_bids(s, out);
    case blob::Phase::Play: return write_bits(blob::playable(s), 0, out);
    default: return 0;
    }
}

VZ_DEVICE void game_step(State& s, u16 action, const History&) {
    switch (s.phase) {
    case blob::Phase::Seating: return blob::start_round(blob::table_of(action), s, 0);
    case blob::Phase::Deal: return blob::deal(s, action);
    case blob::Phase::Bid: return blob::bid(s, action);
    case blob::Phase::Play: return blob::play(s, action);
    default: return;
    }
}

template <class Out>
VZ_DEVICE void game_observe(const State& s, int player, int lane, int lanes, Out* out) {
    for (int i = lane; i < VZ_OBS_CHANNELS; i += lanes) out[i] = Out(blob::observed(s, player, i));
}

VZ_DEVICE void game_returns(const State& s, f32* out) {
    const blob::Table t = blob::table(s);
    for (int player = 0; player < blob::SEATS; player++) out[player] = player < t.players ? blob::lead(t, s, player) : 0.0f;
}

#define VZ_OWN_STAGE_RETURNS
VZ_DEVICE void game_stage_returns(const State& s, f32* out) {
    const blob::Table t = blob::table(s);
    for (int player = 0; player < blob::SEATS; player++) {
        out[player] = player < t.players ? blob::lead_in_round(t, s, player) : 0.0f;
    }
}

#define VZ_OWN_SEATED
VZ_DEVICE int game_num_seated(const State& s) { return blob::table(s).players; }

#define VZ_OWN_HORIZON
VZ_DEVICE bool game_is_horizon(const State& s) {
    return s.phase == blob::Phase::Deal && s.count == 0 && s.round > 0;
}

VZ_DEVICE void game_determinise(const State& s, int player, Stream& rng, State& out) {
    out = s;
    blob::redeal(s, player, rng, out.hands);
}
