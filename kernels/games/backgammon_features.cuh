// Twin of src/game/backgammon/features.rs: contact, shots, escapes, primes. Included by backgammon.cuh.
#pragma once

namespace backgammon {

// The checkers of one side before those of the other.
struct Side {
    u32 own;          // points with at least one own checker, and the bar
    u32 blots;        // points with exactly one
    u32 made;         // points with more, where the other side cannot land
    u32 other;        // points with at least one checker of the other side, and its bar
    u32 blocked;      // points that the other side holds
    int other_on_bar; // the other side's checkers on the bar
};

VZ_DEVICE Side side_of(const State& s, View view) {
    Side side = {0, 0, 0, 0, 0, -seen(s, view, OTHER_BAR)};
    for (int index = BAR; index <= OTHER_BAR; index++) {
        const int n = seen(s, view, index);
        side.own |= u32(n > 0) << index;
        side.blots |= u32(n == 1) << index;
        side.made |= u32(n > 1) << index;
        side.other |= u32(n < 0) << index;
        side.blocked |= u32(n < -1) << index;
    }
    side.blots &= POINTS;
    side.made &= POINTS;
    side.blocked &= POINTS;
    return side;
}

// The own blots that the other side can hit with four dice of one face.
VZ_DEVICE u32 hit_by_double(const Side& side, u32 die) {
    const u32 free = POINTS & ~side.made;
    u32 front = side.other, hit = 0;
    for (int step = 1; step <= 4; step++) {
        // While checkers are on the bar, they alone move.
        const u32 from = step <= side.other_on_bar ? 1u << OTHER_BAR : front | (side.other & POINTS);
        front = (from >> die) & free;
        hit |= front & side.blots;
        if (front == 0) break;
    }
    return hit;
}

// The own blots that the other side can hit with two dice, `first` before `second`.
VZ_DEVICE u32 hit_in_order(const Side& side, u32 first, u32 second) {
    const u32 free = POINTS & ~side.made;
    const u32 from = side.other_on_bar > 0 ? 1u << OTHER_BAR : side.other;
    const u32 front = (from >> first) & free;
    u32 next = front;
    if (side.other_on_bar > 0 && front != 0) {
        next = side.other_on_bar == 1 ? front | (side.other & POINTS) : 1u << OTHER_BAR;
    }
    return (front | ((next >> second) & free)) & side.blots;
}

// Of 36 rolls, those that hit a blot, or with `lost` the pips that the blot farthest on the way loses over all rolls.
VZ_DEVICE int shots(const Side& side, bool lost) {
    int sum = 0;
    for (int roll = 0; roll < NUM_ROLLS; roll++) {
        const u32 a = ROLLS[roll][0], b = ROLLS[roll][1];
        const u32 hit =
            a == b ? hit_by_double(side, a) : hit_in_order(side, a, b) | hit_in_order(side, b, a);
        if (hit != 0) sum += (a == b ? 1 : 2) * (lost ? 31 - leading_zeros(hit) - BAR : 1);
    }
    return sum;
}

// Of 36 rolls, those that take the rearmost own checker on by both dice (of doubles two).
VZ_DEVICE int escapes(const Side& side) {
    const u32 rear = trailing_zeros(side.own), free = ~side.blocked;
    int sum = 0;
    for (int roll = 0; roll < NUM_ROLLS; roll++) {
        const u32 a = ROLLS[roll][0], b = ROLLS[roll][1];
        const u32 first = free >> minimum(rear + a, 31u) | free >> minimum(rear + b, 31u);
        if (first & free >> minimum(rear + a + b, 31u) & 1) sum += a == b ? 1 : 2;
    }
    return sum;
}

// The longest run of made points in front of the other side's rearmost checker.
VZ_DEVICE int prime(const Side& side, int other_rear) {
    int length = 0;
    for (u32 run = side.made & ((1u << other_rear) - 1); run != 0; run &= run >> 1) length++;
    return length;
}

// Pips that the checkers have to go until all have passed the other side's rearmost one.
VZ_DEVICE int contact(const State& s, View view, int other_rear) {
    int sum = 0;
    for (int index = BAR; index < other_rear; index++) sum += (other_rear - index) * maximum(seen(s, view, index), 0);
    return sum;
}

// Number `i` of the side with this view.
VZ_DEVICE f32 feature(const State& s, View view, int i) {
    const Side side = side_of(s, view);
    const int other_rear = 31 - leading_zeros(side.other | 1);
    const int home = popcount(side.made >> HOME);
    if (i == 9) return f32(home * home) * (1.0f / 36.0f);
    if (i == 10) return f32(popcount(side.blots)) * 0.25f;
    if (i == 11) {
        const int rear = side.own == 0 ? ACE + 1 : trailing_zeros(side.own);
        return f32(ACE + 1 - rear) * (1.0f / 24.0f);
    }
    const int distance = contact(s, view, other_rear);
    if (distance == 0) return 0.0f;
    switch (i) {
    case 0: return f32(distance) * (1.0f / 100.0f);
    case 1: return 1.0f;
    case 2: return f32(shots(side, false)) * (1.0f / 36.0f);
    case 3: return f32(shots(side, true)) * (1.0f / 432.0f);
    case 4: return f32(escapes(side)) * (1.0f / 36.0f);
    default: return f32(prime(side, other_rear) >= i - 2);
    }
}

} // namespace backgammon
