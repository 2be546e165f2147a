// Twin of src/game/blob: rules and observations. Determinisation is in blob_deal.cuh.
#pragma once
#include "games/blob_layout.cuh"
#include "rng.cuh"

using blob::State;

namespace blob {

constexpr int PLAYERS = VZ_PLAYERS;
constexpr int CARDS = VZ_OPT_CARDS;
constexpr int NUM_ROUNDS = VZ_OPT_FULL ? 2 * CARDS + PLAYERS - 2 : 1;
constexpr int MAX_POINTS = 10 * NUM_ROUNDS + (VZ_OPT_FULL ? CARDS * (CARDS + 1) + PLAYERS - 2 : CARDS);

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

VZ_DEVICE int cards_in(int round) {
    constexpr int SINGLE = CARDS - 1, LAST = SINGLE + PLAYERS;
    if (round < SINGLE) return CARDS - round;
    return round < LAST ? 1 : round - LAST + 2;
}

VZ_DEVICE int trump_in(int round) { return (TRUMP + round) % 5; }

VZ_DEVICE int dealer_in(int round) { return (VZ_OPT_DEALER + round) % PLAYERS; }

// Maximum number of points one player can make in the rounds after `round`.
VZ_DEVICE int max_points_after(int round) {
    int sum = 0;
    for (int later = round + 1; later < NUM_ROUNDS; later++) sum += 10 + cards_in(later);
    return sum;
}

// The points of `player` minus the mean of the others', as a share of the maximum of a game.
VZ_DEVICE f32 lead(const State& s, int player) {
    int total = 0;
    for (int p = 0; p < PLAYERS; p++) total += s.scores[p];
    return f32(PLAYERS * s.scores[player] - total) / f32((PLAYERS - 1) * MAX_POINTS);
}

VZ_DEVICE u64 suit_cards(int suit) { return SPADES << (13 * suit); }

VZ_DEVICE int suit_of(int card) { return card / 13; }

// The player `steps` (at most P) seats after `player`.
VZ_DEVICE int seat_after(int player, int steps) {
    const int seat = player + steps;
    return seat >= PLAYERS ? seat - PLAYERS : seat;
}

VZ_DEVICE int to_act(const State& s) { return seat_after(s.leader, s.count); }

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
    for (int player = 0; player < PLAYERS; player++) known |= s.hands[player];
    return PACK & ~known;
}

VZ_DEVICE u32 voids_of(const State& s, int player) { return s.voids >> (4 * player) & 15; }

// The state before the first card of `round` is dealt; scores stay.
VZ_DEVICE void start_round(State& s, int round) {
    for (int p = 0; p < MAX_PLAYERS; p++) {
        s.hands[p] = 0;
        s.trick[p] = s.tricks[p] = 0;
        s.bids[p] = NO_BID;
    }
    s.gone = 0;
    s.voids = 0;
    s.round = u8(round);
    s.phase = Phase::Deal;
    s.leader = u8(seat_after(dealer_in(round), 1));
    s.count = 0;
}

VZ_DEVICE int legal_bids(const State& s, u16* out) {
    const int cards = cards_in(s.round);
    const bool bidder_is_last = s.count + 1 == PLAYERS;
    int sum = 0;
    for (int p = 0; p < PLAYERS; p++) sum += s.bids[p] == NO_BID ? 0 : s.bids[p];
    int n = 0;
    for (int bid = 0; bid <= cards; bid++) {
        if (!bidder_is_last || bid + sum != cards) out[n++] = u16(bid);
    }
    return n;
}

// The cards that the player to act may play: of the suit led, if there are any in hand.
VZ_DEVICE u64 playable(const State& s) {
    const u64 hand = s.hands[to_act(s)];
    if (s.count == 0) return hand;
    const u64 following = hand & suit_cards(suit_of(s.trick[0]));
    return following == 0 ? hand : following;
}

VZ_DEVICE void deal(State& s, int card) {
    s.hands[s.count % PLAYERS] |= 1ull << card;
    s.count += 1;
    if (s.count == PLAYERS * cards_in(s.round)) {
        s.phase = Phase::Bid;
        s.count = 0;
    }
}

VZ_DEVICE void bid(State& s, int bid) {
    s.bids[to_act(s)] = u8(bid);
    s.count += 1;
    if (s.count == PLAYERS) {
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
    return seat_after(s.leader, index);
}

VZ_DEVICE void finish_round(State& s) {
    for (int p = 0; p < PLAYERS; p++) {
        if (s.bids[p] == s.tricks[p]) s.scores[p] += u16(10 + s.bids[p]);
    }
    if (s.round + 1 == NUM_ROUNDS) {
        s.phase = Phase::Over;
    } else {
        start_round(s, s.round + 1);
    }
}

VZ_DEVICE void finish_trick(State& s) {
    const int winner = trick_winner(s);
    s.gone |= trick_cards(s);
    for (int i = 0; i < MAX_PLAYERS; i++) s.trick[i] = 0;
    s.tricks[winner] += 1;
    s.leader = u8(winner);
    s.count = 0;
    if (s.hands[winner] == 0) finish_round(s);
}

VZ_DEVICE void play(State& s, int card) {
    const int player = to_act(s);
    s.hands[player] &= ~(1ull << card);
    s.trick[s.count] = u8(card);
    const int led = suit_of(s.trick[0]);
    if (suit_of(card) != led) s.voids |= 1u << (4 * player + led);
    s.count += 1;
    if (s.count == PLAYERS) finish_trick(s);
}

// The layout of observations is described in src/game/blob/observe.rs.
constexpr int ROUND_AT = SEATS_AT + SEAT_LEN * PLAYERS;
constexpr int DEAL_AT = ROUND_AT + ROUND_LEN; // of the deal, with network_sees = "deal"; otherwise the end of the observation

VZ_DEVICE f32 share(int x, int of) { return f32(x) / f32(of); }

VZ_DEVICE int tricks_made(const State& s) {
    int sum = 0;
    for (int p = 0; p < PLAYERS; p++) sum += s.tricks[p];
    return sum;
}

// Cards that `player` holds, from public facts only.
VZ_DEVICE int hand_size(const State& s, int player, int cards_in_trick) {
    switch (s.phase) {
    case Phase::Deal: return (s.count + PLAYERS - 1 - player) / PLAYERS;
    case Phase::Bid: return cards_in(s.round);
    case Phase::Play: return cards_in(s.round) - tricks_made(s) - cards_in_trick;
    default: return 0;
    }
}

// Number `i` of a seat.
VZ_DEVICE f32 seat_number(const State& s, int player, int i) {
    const int index = seat_after(player, PLAYERS - s.leader);
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
    case 24: return share(hand_size(s, player, has_card), 13);
    case 29: return f32(dealer_in(s.round) == player);
    case 30: return f32(s.leader == player);
    case 31: return f32((s.phase == Phase::Bid || s.phase == Phase::Play) && to_act(s) == player);
    default: return lead(s, player);
    }
}

// Number `i` after the seats.
VZ_DEVICE f32 round_number(const State& s, int i) {
    const int cards = cards_in(s.round);
    if (i < 5) return f32(trump_in(s.round) == i);
    if (i < 9) return f32(trick_len(s) > 0 && suit_of(s.trick[0]) == i - 5);
    if (i < 13) return f32((int)s.phase == i - 9);
    int num_bids = 0, sum = 0;
    for (int p = 0; p < PLAYERS; p++) {
        const bool has_bid = s.bids[p] != NO_BID;
        num_bids += has_bid;
        sum += has_bid ? s.bids[p] : 0;
    }
    switch (i) {
    case 13: return share(cards, 13);
    case 14: return share(cards - tricks_made(s), 13);
    case 15: return share(sum - cards, 13);
    case 16: return share(PLAYERS - num_bids, 8);
    case 17: return share(NUM_ROUNDS - 1 - s.round, NUM_ROUNDS);
    default: return share(max_points_after(s.round), MAX_POINTS);
    }
}

// The card that wins the current trick so far, as a set.
VZ_DEVICE u64 best_of_trick(const State& s) {
    if (trick_len(s) == 0) return 0;
    return 1ull << s.trick[seat_after(trick_winner(s), PLAYERS - s.leader)];
}

// Number `i` of the deal: 1 if the card with that rank in its suit, the highest live one first, is in the given set.
VZ_DEVICE f32 deal_number(const State& s, int observer, int i) {
    const int set = i / NUM_CARDS, trump = trump_in(s.round);
    const int suit = ((trump == 4 ? 0 : trump) + i % NUM_CARDS / 13) % 4;
    const u64 best = best_of_trick(s);
    u64 live = best;
    for (int player = 0; player < PLAYERS; player++) live |= s.hands[player];
    live &= suit_cards(suit);
    for (int above = i % 13; above > 0 && live != 0; above--) live &= ~(1ull << (63 - leading_zeros(live)));
    if (live == 0) return 0.0f;
    const u64 cards = set == PLAYERS ? best : s.hands[seat_after(observer, set)];
    return f32(cards >> (63 - leading_zeros(live)) & 1);
}

VZ_DEVICE f32 observed(const State& s, int observer, int i) {
    if (i >= DEAL_AT) return deal_number(s, observer, i - DEAL_AT);
    if (i < NUM_CARDS) return f32(s.hands[observer] >> i & 1);
    if (i < 2 * NUM_CARDS) return f32(s.gone >> (i - NUM_CARDS) & 1);
    if (i < SEATS_AT) return f32(trick_cards(s) >> (i - 2 * NUM_CARDS) & 1);
    if (i >= ROUND_AT) return round_number(s, i - ROUND_AT);
    return seat_number(s, seat_after(observer, (i - SEATS_AT) / SEAT_LEN), (i - SEATS_AT) % SEAT_LEN);
}

} // namespace blob

#include "games/blob_deal.cuh"

VZ_DEVICE int game_turn(const State& s) {
    if (s.phase == blob::Phase::Deal) return TURN_CHANCE;
    return s.phase == blob::Phase::Over ? TURN_OVER : blob::to_act(s);
}

VZ_DEVICE int game_legal(const State& s, const History&, u16* out) {
    switch (s.phase) {
    case blob::Phase::Deal: return write_bits(blob::stock(s), 0, out);
    case blob::Phase::Bid: return blob::legal_bids(s, out);
    case blob::Phase::Play: return write_bits(blob::playable(s), 0, out);
    default: return 0;
    }
}

VZ_DEVICE void game_step(State& s, u16 action, const History&) {
    switch (s.phase) {
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
    for (int player = 0; player < blob::PLAYERS; player++) out[player] = blob::lead(s, player);
}

#define VZ_OWN_HORIZON
VZ_DEVICE bool game_is_horizon(const State& s) {
    return s.phase == blob::Phase::Deal && s.count == 0 && s.round > 0;
}

VZ_DEVICE void game_determinise(const State& s, int player, Stream& rng, State& out) {
    out = s;
    blob::redeal(s, player, rng, out.hands);
}
