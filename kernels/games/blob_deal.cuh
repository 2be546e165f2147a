// Twin of src/game/blob/determinise.rs, which describes the method and its exactness: a uniform draw from the deals that are
// consistent with what one player knows. Included by blob.cuh.
//
// The counts `ways` are exact integers, so the order in which they are computed does not matter. Rust keeps all of them in a
// table; here a walk over the splits with a stack of its own keeps the latest ones in a memo of fixed size.
#pragma once

namespace blob {

// C(n, k) for n, k up to 52.
struct Binomials {
    u64 rows[NUM_CARDS + 1][NUM_CARDS + 1];
};

VZ_DEVICE constexpr Binomials binomials() {
    Binomials out = {};
    for (int n = 0; n <= NUM_CARDS; n++) {
        out.rows[n][0] = 1;
        for (int k = 1; k <= n; k++) out.rows[n][k] = out.rows[n - 1][k - 1] + out.rows[n - 1][k];
    }
    return out;
}

VZ_TABLE Binomials BINOMIALS = binomials();

// An integer of 128 bits.
struct Wide {
    u64 high, low;
};

VZ_DEVICE bool operator<(const Wide& a, const Wide& b) {
    return a.high < b.high || (a.high == b.high && a.low < b.low);
}

VZ_DEVICE Wide operator+(const Wide& a, const Wide& b) {
    const u64 low = a.low + b.low;
    return Wide{a.high + b.high + (low < a.low), low};
}

VZ_DEVICE Wide operator-(const Wide& a, const Wide& b) {
    return Wide{a.high - b.high - (a.low < b.low), a.low - b.low};
}

VZ_DEVICE Wide operator*(const Wide& a, u64 b) { return Wide{a.high * b + multiply_high(a.low, b), a.low * b}; }

// An integer in 0..n, n > 0, uniform: as many random bits as n has, drawn again if the result is n or more.
VZ_DEVICE Wide below(const Wide& n, Stream& rng) {
    const int shift = leading_zeros(n.high != 0 ? n.high : n.low);
    const u64 mask = ~u64(0) >> shift; // for the upper word that is not 0
    while (true) {
        Wide x;
        x.high = n.high != 0 ? rng.next_u64() & mask : 0;
        x.low = rng.next_u64() & (n.high != 0 ? ~u64(0) : mask);
        if (x < n) return x;
    }
}

// Cards of each of at most four classes, class c in byte c. A difference of two is a difference of words.
using Counts = u32;

VZ_DEVICE int cards_of(Counts counts, int c) { return int(counts >> (8 * c) & 255); }

VZ_DEVICE int sum_of(Counts counts) {
    return cards_of(counts, 0) + cards_of(counts, 1) + cards_of(counts, 2) + cards_of(counts, 3);
}

// An unordered set of cards.
struct Pile {
    u8 cards[NUM_CARDS];
    int len;
};

VZ_DEVICE void push(Pile& pile, u8 card) { pile.cards[pile.len++] = card; }

// Removes a uniformly random card.
VZ_DEVICE u8 draw(Pile& pile, Stream& rng) {
    const int index = int(rng.below(u64(pile.len)));
    const u8 card = pile.cards[index];
    pile.len -= 1;
    pile.cards[index] = pile.cards[pile.len];
    return card;
}

VZ_DEVICE u64 draw_hand(Pile& pile, int size, Stream& rng) {
    u64 hand = 0;
    for (int i = 0; i < size; i++) hand |= 1ull << draw(pile, rng);
    return hand;
}

// Hands that may hold the same cards, and not all cards.
struct Group {
    u32 players; // bit p: player p is one of them
    u32 voids;   // bit s: none of them holds suit s
    u32 classes; // bit c: they may hold class c
    int size;    // cards they hold together
};

struct Groups {
    Group groups[MAX_PLAYERS];
    int len;
};

// Of `left`, the classes that a group may hold.
VZ_DEVICE Counts allowed(const Group& group, Counts left) {
    Counts out = 0;
    for (int c = 0; c < 4; c++) {
        if (group.classes >> c & 1) out |= left & (Counts(255) << (8 * c));
    }
    return out;
}

// The end: no further split.
constexpr Counts NO_SPLIT = ~Counts(0);

// The first split of `need` cards over the classes from `c` on, in lexicographic order: as much as there is of the last.
VZ_DEVICE Counts lowest_split(Counts limits, int need, int c) {
    Counts split = 0;
    for (int last = 3; last >= c; last--) {
        const int n = minimum(need, cards_of(limits, last));
        split |= Counts(n) << (8 * last);
        need -= n;
    }
    return split;
}

VZ_DEVICE Counts first_split(Counts limits, int size) {
    return sum_of(limits) < size ? NO_SPLIT : lowest_split(limits, size, 0);
}

// The split after `split`: one card more of the last class possible, and the rest as late as possible.
VZ_DEVICE Counts next_split(Counts limits, Counts split) {
    int later = cards_of(split, 3);
    for (int c = 2; c >= 0; c--) {
        if (later > 0 && cards_of(split, c) < cards_of(limits, c)) {
            const Counts kept = split & ((Counts(1) << (8 * c + 8)) - 1);
            return (kept + (Counts(1) << (8 * c))) | lowest_split(limits, later - 1, c + 1);
        }
        later += cards_of(split, c);
    }
    return NO_SPLIT;
}

// `later` times the ways to take `split` out of `left`.
VZ_DEVICE Wide times_choices(Wide later, Counts left, Counts split) {
    for (int c = 0; c < 4; c++) later = later * BINOMIALS.rows[cards_of(left, c)][cards_of(split, c)];
    return later;
}

// A cache of recent counts, keyed by the cards left, whose sum identifies the group. 64 entries hold nearly all that are
// looked up again: of 15,000 draws in random play of 8 players with 6 cards the longest summed 2,826 products, with every
// count kept 1,449; on average 23 and 21.
constexpr int MEMO_BITS = 6;
struct Memo {
    Counts keys[1 << MEMO_BITS];
    Wide values[1 << MEMO_BITS];
};

VZ_DEVICE int memo_index(Counts left) { return int(left * 0x9E3779B1u >> (32 - MEMO_BITS)); }

VZ_DEVICE void clear(Memo& memo) {
    for (int i = 0; i < 1 << MEMO_BITS; i++) memo.keys[i] = NO_SPLIT;
}

// The deals of the last group.
VZ_DEVICE Wide ways_of_last(const Group& group, Counts left) {
    return Wide{0, BINOMIALS.rows[sum_of(allowed(group, left))][group.size]};
}

// ways(first, start): the deals of the groups from `first` on, given the cards left of each class.
VZ_DEVICE_CALL Wide count_ways(const Groups& all, int first, Counts start, Memo& memo) {
    struct Frame {
        Counts left, split;
        Wide sum;
    };
    const int last = all.len - 1;
    if (first == last) return ways_of_last(all.groups[last], start);
    const int at_start = memo_index(start);
    if (memo.keys[at_start] == start) return memo.values[at_start];
    Frame frames[MAX_PLAYERS];
    int g = first;
    Counts entered = start;
    while (true) {
        Frame& frame = frames[g];
        const Group& group = all.groups[g];
        if (entered != NO_SPLIT) {
            frame = Frame{entered, first_split(allowed(group, entered), group.size), Wide{0, 0}};
            entered = NO_SPLIT;
        }
        if (frame.split == NO_SPLIT) {
            const int index = memo_index(frame.left);
            memo.keys[index] = frame.left;
            memo.values[index] = frame.sum;
            if (g == first) return frame.sum;
            g -= 1; // which finds the count in the memo
            continue;
        }
        const Counts left = frame.left - frame.split;
        const int index = memo_index(left);
        if (g + 1 < last && memo.keys[index] != left) {
            entered = left;
            g += 1;
            continue;
        }
        const Wide later = g + 1 < last ? memo.values[index] : ways_of_last(all.groups[last], left);
        frame.sum = frame.sum + times_choices(later, frame.left, frame.split);
        frame.split = next_split(allowed(group, frame.left), frame.split);
    }
}

// How many cards of each class group `g` gets out of `left`, drawn in proportion to the number of deals.
//
// `draw_split`, `sort_unseen` and `deal_group` are calls: inlined, NVRTC 13.0 makes code for sm_90 that reads far outside of a pile (seen
// on an H100; as calls the games are those of the CPU to the bit).
VZ_DEVICE_CALL Counts draw_split(const Groups& all, int g, Counts left, Memo& memo, Stream& rng) {
    const Group& group = all.groups[g];
    const Counts limits = allowed(group, left);
    Counts split = first_split(limits, group.size);
    if (popcount(group.classes) == 1) return split;
    Wide at = below(count_ways(all, g, left, memo), rng);
    while (true) {
        const Wide later = g + 1 == all.len ? Wide{0, 1} : count_ways(all, g + 1, left - split, memo);
        const Wide weight = times_choices(later, left, split);
        if (at < weight) return split;
        at = at - weight;
        split = next_split(limits, split);
    }
}

// Adds a hand of `size` cards of `player`.
VZ_DEVICE void add_hand(Groups& all, int player, u32 voids, int size) {
    int index = 0;
    while (index < all.len && all.groups[index].voids != voids) index++;
    if (index == all.len) all.groups[all.len++] = Group{0, voids, 0, 0};
    all.groups[index].players |= 1u << player;
    all.groups[index].size += size;
}

// The index of a group in their order: those that may hold the fewest suits first. No two are equal.
VZ_DEVICE int rank_of(const Group& group) {
    return (4 - popcount(group.voids)) << 16 | group.size << 8 | int(group.voids);
}

VZ_DEVICE void sort(Groups& all) {
    for (int i = 1; i < all.len; i++) {
        const Group moved = all.groups[i];
        int at = i;
        for (; at > 0 && rank_of(moved) < rank_of(all.groups[at - 1]); at--) all.groups[at] = all.groups[at - 1];
        all.groups[at] = moved;
    }
}

// The groups, those that may hold the fewest suits first, and the `unseen` cards by class.
VZ_DEVICE_CALL void sort_unseen(const State& s, int observer, u64 unseen, Groups& all, Pile* piles) {
    u32 suits = 0;
    for (int suit = 0; suit < 4; suit++) suits |= u32((unseen & suit_cards(suit)) != 0) << suit;
    all.len = 0;
    for (int player = 0; player < SEATS; player++) {
        // A void in a suit of which all cards are seen has no effect.
        const u32 voids = voids_of(s, player) & suits;
        if (player != observer && s.hands[player] != 0 && voids != 0) {
            add_hand(all, player, voids, popcount(s.hands[player]));
        }
    }
    sort(all);

    u32 holders_of_class[4];
    int num_classes = 0;
    for (int c = 0; c < 4; c++) piles[c].len = 0;
    for (int suit = 0; suit < 4; suit++) {
        if (!(suits >> suit & 1)) continue;
        u32 holders = 0;
        for (int g = 0; g < all.len; g++) holders |= (~all.groups[g].voids >> suit & 1) << g;
        int c = 0;
        while (c < num_classes && holders_of_class[c] != holders) c++;
        if (c == num_classes) holders_of_class[num_classes++] = holders;
        u64 rest = unseen & suit_cards(suit);
        for (; rest != 0; rest &= rest - 1) push(piles[c], u8(trailing_zeros(rest)));
        for (int g = 0; g < all.len; g++) all.groups[g].classes |= (holders >> g & 1) << c;
    }
}

// Distributes the cards of one split over the hands of a group.
VZ_DEVICE_CALL void deal_group(const State& s, const Group& group, Counts split, Pile* piles, Stream& rng, u64* hands) {
    Pile cards;
    cards.len = 0;
    for (int c = 0; c < 4; c++) {
        for (int i = 0; i < cards_of(split, c); i++) push(cards, draw(piles[c], rng));
    }
    for (int player = 0; player < SEATS; player++) {
        if (group.players >> player & 1) hands[player] = draw_hand(cards, popcount(s.hands[player]), rng);
    }
}

// Deals the unseen cards anew to the players other than `observer`, uniformly over what `observer` knows.
VZ_DEVICE void redeal(const State& s, int observer, Stream& rng, u64* hands) {
    Groups all;
    Pile piles[4];
    sort_unseen(s, observer, PACK & ~(s.hands[observer] | s.gone | trick_cards(s)), all, piles);
    u32 is_dealt = 1u << observer;
    if (all.len > 0) {
        Counts left = 0, splits[MAX_PLAYERS];
        for (int c = 0; c < 4; c++) left |= Counts(piles[c].len) << (8 * c);
        Memo memo;
        clear(memo);
        for (int g = 0; g < all.len; g++) {
            splits[g] = draw_split(all, g, left, memo, rng);
            left -= splits[g];
        }
        for (int g = 0; g < all.len; g++) {
            deal_group(s, all.groups[g], splits[g], piles, rng, hands);
            is_dealt |= all.groups[g].players;
        }
    }
    for (int c = 1; c < 4; c++) {
        for (int i = 0; i < piles[c].len; i++) push(piles[0], piles[c].cards[i]);
    }
    for (int player = 0; player < SEATS; player++) {
        if (!(is_dealt >> player & 1)) hands[player] = draw_hand(piles[0], popcount(s.hands[player]), rng);
    }
}

} // namespace blob
