// Twin of src/selfplay/shard.rs and src/play/slot.rs: what follows in a game when its search is over, for all N games at once and without
// the host. Game slot i has the rows i D to (i + 1) D - 1.
//
// The host reads what was decided (`Decision`) once a poll and applies it to its own copy of the slot: everything else follows
// from keyed random numbers. Every function is called by all lanes of a warp, unless its comment says one lane.
#pragma once
#include "search/compact.cuh"
#include "search/root.cuh"
#include "search/rows.cuh"

namespace search {

static_assert(!(VZ_HIDDEN && VZ_USES_HISTORY), "a game slot's history is that of its row");

// One decided ply.
struct Decision {
    DecisionHead head;
    Summary summary;
};

// Twin of `GameSlot::key`.
VZ_DEVICE RowKey slot_key(const PlayNumbers& play, const SlotRow& row, u64 determinisation) {
    return RowKey{play.seed, row.slot, row.game, determinisation, row.plies};
}

// A game while it is stepped by one lane of a warp.
struct SlotGame {
    State state;
    u64* keys; // of earlier positions
    u32 num_keys;

    VZ_DEVICE History history() const { return History{keys, (int)num_keys, keys, 0}; }

    // Twin of `GameSlot::step`.
    VZ_DEVICE void step(SlotRow& row, u16 action) {
        const u64 key = VZ_USES_HISTORY ? game_history_key(state) : 0;
        game_step(state, action, history());
        if (VZ_USES_HISTORY) keys[num_keys++] = key;
        row.plies += 1;
    }
};

// The outcome that chance deals in `state`. One lane.
VZ_DEVICE_CALL u16 dealt_outcome(
    [[maybe_unused]] const State& state, [[maybe_unused]] const History& history, [[maybe_unused]] const RowKey& key
) {
#if VZ_CHANCE
    u16 outcomes[VZ_NUM_EDGES];
    f32 probs[VZ_CHANCE];
    const int n = game_legal(state, history, outcomes);
    game_chance_probs(state, outcomes, n, probs);
    Stream stream = key_of(key, Purpose::Chance).stream();
    return outcomes[stream.weighted(probs, n)];
#else
    return 0;
#endif
}

// Twin of `GameSlot::deal`. One lane.
VZ_DEVICE_CALL void deal(const PlayNumbers& play, SlotRow& row, SlotGame& game) {
    while (game_turn(game.state) == TURN_CHANCE) {
        game.step(row, dealt_outcome(game.state, game.history(), slot_key(play, row, 0)));
    }
}

// Twin of `GameSlot::begin`: the slot's game from its start. One lane.
VZ_DEVICE_CALL void begin_game(const PlayNumbers& play, SlotRow& row, SlotGame& game) {
    game_init(game.state);
    game.num_keys = 0;
    row.plies = 0;
    deal(play, row, game);
}

// Twin of `GameSlot::begin_decided`: the slot's game, or the next one that a player decides. One lane.
VZ_DEVICE_CALL void begin_decided_game(const PlayNumbers& play, SlotRow& row, SlotGame& game) {
    begin_game(play, row, game);
    for (u64 ended = 0; ended < MAX_UNDECIDED_GAMES && game_turn(game.state) == TURN_OVER; ended++) {
        row.game += 1;
        begin_game(play, row, game);
    }
}

// Twin of `GameSlot::open`: the slot's next game from its start, with its random opening. One lane.
VZ_DEVICE_CALL void open_game(const PlayNumbers& play, SlotRow& row, SlotGame& game) {
    begin_decided_game(play, row, game);
    const Key openings = Key::of(play.seed, Purpose::Opening).with(row.slot).with(row.game);
    for (u64 attempt = 0; attempt < MAX_OPENING_ATTEMPTS; attempt++) {
        Stream stream = openings.with(attempt).stream();
        // Drawn once, so that the share of games without an opening is the one that is set.
        if (attempt == 0 && (play.opening_plies == 0 || stream.uniform() < play.opening_none)) break;
        const u32 plies = 1 + (u32)stream.below(play.opening_plies);
        for (u32 ply = 0; ply < plies && game_turn(game.state) != TURN_OVER; ply++) {
            u16 legal[VZ_NUM_EDGES];
            const int n = game_legal(game.state, game.history(), legal);
            game.step(row, legal[stream.below((u64)n)]);
            deal(play, row, game);
        }
        row.opening = row.plies;
        if (game_turn(game.state) != TURN_OVER) return;
        begin_game(play, row, game);
    }
    row.opening = row.plies;
}

// Twin of `sum_determinisations` in src/play/act.rs, of the D rows from `first` on.
VZ_DEVICE void sum_determinisations(const Rows& rows, Summary* parts, u32 first, u32 d, Summary& out) {
    // No barrier follows: each lane reads below only what it wrote itself. Where lanes repeat, those past the edges may read
    // entries that are not written yet; their results are not used.
    for (u32 j = 0; j < d; j++) summarise(rows, first + j, parts[first + j]);
    const Summary* all = parts + first;
    const f32 share = 1.0f / (f32)d;
    Reals policy, q, prior;
    i32 visits[SLICES], new_visits[SLICES];
VZ_UNROLL
    for (int slice = 0; slice < SLICES; slice++) {
        const int e = edge_in(slice);
        const int at = PADDED % WIDTH == 0 || e < PADDED ? e : 0;
        policy[slice] = all[0].policy[at];
        q[slice] = all[0].q[at];
        prior[slice] = all[0].prior[at];
        visits[slice] = all[0].visits[at];
        new_visits[slice] = all[0].new_visits[at];
        for (u32 j = 1; j < d; j++) {
            policy[slice] += all[j].policy[at];
            prior[slice] += all[j].prior[at];
            const f32 n = (f32)visits[slice], m = (f32)all[j].visits[at];
            if (n + m > 0.0f) q[slice] = (q[slice] * n + all[j].q[at] * m) / (n + m);
            visits[slice] += all[j].visits[at];
            new_visits[slice] += all[j].new_visits[at];
        }
        policy[slice] *= share;
        prior[slice] *= share;
    }
    for_own_edges([&](int slice, int e) {
        out.policy[e] = policy[slice];
        out.q[e] = q[slice];
        out.visits[e] = visits[slice];
        out.new_visits[e] = new_visits[slice];
        out.prior[e] = prior[slice];
        out.actions[e] = all[0].actions[e];
    });
    const int num_edges = rows.row(first).nodes[ROOT].num_edges;
    const int best = argmax(policy, num_edges);
    if (lane() < VZ_PLAYERS) {
        f32 value = all[0].value[lane()];
        for (u32 j = 1; j < d; j++) value += all[j].value[lane()];
        out.value[lane()] = value * share;
    }
    if (lane() != 0) return;
    u32 proven = 1;
    for (u32 j = 0; j < d; j++) proven &= all[j].head.proven;
    out.head = SummaryHead{(u32)num_edges, (u32)best, all[0].head.player, proven};
}

// Writes the decision of game slot `i` and returns its action. Twin of `Shard::summarise` and `choose`.
VZ_DEVICE u32 decide(const Rows& rows, const GameSlots& slots, u32 i, const SlotRow& row) {
    const PlayNumbers& play = *slots.play;
    const u32 d = play.determinisations;
    const u32 number = from_lane(lane() == 0 ? slots.queue->first + atomicAdd(&slots.queue->num, 1u) : 0u, 0);
    Decision& out = slots.decisions[number];
    if (d == 1) {
        summarise(rows, i, out.summary);
    } else {
        sum_determinisations(rows, slots.parts, i * d, d, out.summary);
    }
    VZ_SYNC(23); // lane 0 reads all of the summary
    u32 action = 0;
    if (lane() == 0) {
        const u32 last = row.opening + play.temperature_plies;
        u32 action_index = out.summary.head.best;
        if (last < row.opening || row.plies < last) {
            Stream stream = key_of(slot_key(play, row, 0), Purpose::Act).stream();
            action_index = (u32)stream.weighted(out.summary.policy, (int)out.summary.head.num_edges);
        }
        out.head = DecisionHead{i, row.passes, action_index, 0};
        action = out.summary.actions[action_index];
    }
    return from_lane(action, 0);
}

// The slot's game is over: opens the next one where its rows take their roots from.
VZ_DEVICE void next_game(const Rows& rows, const GameSlots& slots, u32 i, SlotRow& row) {
    row.game += 1;
    row.task = SlotTask::SetRoot;
    if (lane() != 0) return;
    const u32 first = i * slots.play->determinisations;
    SlotGame game{State{}, rows.history(first), 0};
    open_game(*slots.play, row, game);
    (VZ_HIDDEN ? slots.positions[i] : rows.row(first).states[ROOT]) = game.state;
    rows.roots[first].num_history = game.num_keys;
}

// Plays `action` in game slot `i`, then deals chance outcomes. Twin of `GameSlot::step` and `GameSlot::deal` with the rows' `advance`.
VZ_DEVICE void play_ply(const Rows& rows, const GameSlots& slots, u32 i, SlotRow& row, u32 action) {
#if VZ_HIDDEN
    // New hands are drawn for every ply, so no row keeps its tree.
    row.task = SlotTask::SetRoot;
    int turn = 0;
    if (lane() == 0) {
        SlotGame game{slots.positions[i], nullptr, 0};
        game.step(row, (u16)action);
        deal(*slots.play, row, game);
        slots.positions[i] = game.state;
        turn = game_turn(game.state);
    }
    if (from_lane(turn, 0) == TURN_OVER) next_game(rows, slots, i, row);
#else
    row.task = SlotTask::BeginPly;
    const State& state = rows.row(i).states[ROOT];
    // Read by lane 0 alone: it may run ahead of the other lanes and write the next game there.
    const auto turn = [&] { return from_lane(lane() == 0 ? (int)game_turn(state) : 0, 0); };
    // `advance` ends with a barrier after all its writes except the row's scalars, which only lane 0 writes and reads here.
    advance(rows, AdvanceCommand{i, action});
    row.plies += 1;
    int now = turn();
    while (now == TURN_CHANCE) {
        u32 outcome = 0;
        if (lane() == 0) {
            const u64* keys = rows.history(i);
            const History history{keys, (int)rows.roots[i].num_history, keys, 0};
            outcome = dealt_outcome(state, history, slot_key(*slots.play, row, 0));
        }
        outcome = from_lane(outcome, 0);
        advance(rows, AdvanceCommand{i, outcome});
        row.plies += 1;
        now = turn();
    }
    if (now == TURN_OVER) next_game(rows, slots, i, row);
#endif
}

// The end of a pass in game slot `i`: plays a ply where the searches of all its rows are done. Twin of `Shard::finish_ply`.
VZ_DEVICE_CALL void act(const Rows& rows, const GameSlots& slots, u32 i) {
    const u32 d = slots.play->determinisations;
    SlotRow row = slots.all[i];
    row.passes += 1;
    row.task = SlotTask::SearchOn;
    u32 left = 0;
    for (u32 j = 0; j < d; j++) left |= rows.roots[i * d + j].left;
    if (left == 0) {
        const u32 action = decide(rows, slots, i, row);
        play_ply(rows, slots, i, row, action);
    }
    // Only lane 0 writes the slot's scalars.
    if (lane() == 0) slots.all[i] = row;
}

constexpr int NO_START = 0x7FFFFFFF;

// The tree that games at `state`, after positions with these keys, are cloned from, or NO_START. Twin of `RootCache::find`.
VZ_DEVICE int start_of(
    const GameSlots& slots, const State& state, [[maybe_unused]] const u64* keys, [[maybe_unused]] u32 num_keys
) {
    const u32 num = slots.play->num_starts;
    for (u32 first = 0; first < num; first += WARP) {
        const u32 k = first + lane();
        bool same = k < num;
        if (same) {
            const TreeParts& start = slots.starts[k];
            const u8* root = slots.trees + start.states;
            const u8* found = (const u8*)&state;
            for (int at = 0; at < VZ_STATE_BYTES && same; at++) same = root[at] == found[at];
#if VZ_USES_HISTORY
            const u64* history = (const u64*)(slots.trees + start.history);
            same = same && start.num_history == num_keys;
            for (u32 at = 0; at < num_keys && same; at++) same = history[at] == keys[at];
#endif
        }
        const u32 mask = __ballot_sync(ALL_LANES, same);
        if (mask != 0) return (int)first + trailing_zeros(mask);
    }
    return NO_START;
}

// Gives row `b` a copy of a tree.
VZ_DEVICE void clone_start(const Rows& rows, const GameSlots& slots, u32 b, const TreeParts& start) {
    const Row row = rows.row(b);
    const u64 count = start.count;
    const u8* from = slots.trees;
    move_items(row.nodes, (const Node*)(from + start.nodes), count);
    move_items(row.edges, (const Word*)(from + start.edges), count * 4 * PADDED);
    move_items(row.actions_, (const u16*)(from + start.actions), count * PADDED);
    move_items(row.values, (const f32*)(from + start.values), count * VZ_PLAYERS);
    move_items(row.states, (const State*)(from + start.states), count);
    move_items(rows.history(b), (const u64*)(from + start.history), start.num_history);
    if (lane() == 0) *row.count = start.count;
    deactivate(rows, b, start.num_history);
}

// Gives row `b` the tree that its slot's position begins with: twin of `Shard::begin_ply`.
VZ_DEVICE void set_slot_root(const Rows& rows, const GameSlots& slots, u32 b, [[maybe_unused]] const RowKey& key) {
    const Row row = rows.row(b);
#if VZ_HIDDEN
    State state;
    if (lane() == 0) {
        const State& position = slots.positions[b / slots.play->determinisations];
        Stream stream = key_of(key, Purpose::Determinise).stream();
        game_determinise(position, maximum(game_turn(position), 0), stream, state);
    }
    set_root_state(rows, row, b, state, 0);
    deactivate(rows, b, 0);
#else
    const u32 num_history = rows.roots[b].num_history;
    const State state = row.states[ROOT];
    // `start_of` ends with a vote of all lanes, so all have read the row before a copy overwrites it; `set_root_state` takes lane
    // 0's state.
    const int start = start_of(slots, state, rows.history(b), num_history);
    if (start != NO_START) {
        clone_start(rows, slots, b, slots.starts[start]);
    } else {
        set_root_state(rows, row, b, state, num_history);
        deactivate(rows, b, num_history);
    }
#endif
}

// Begins row `b`'s next ply where its slot has one. Twin of `Shard::begin_rows`.
VZ_DEVICE_CALL void start_ply(const Rows& rows, const GameSlots& slots, u32 b) {
    const PlayNumbers& play = *slots.play;
    const SlotRow row = slots.all[b / play.determinisations];
    if (row.task == SlotTask::SearchOn) return;
    const RowKey key = slot_key(play, row, b % play.determinisations);
    if (row.task == SlotTask::SetRoot) {
        set_slot_root(rows, slots, b, key);
        VZ_SYNC(24);
    }
    begin(rows, BeginCommand{b, play.simulations, 1, play.schedule, key});
}

} // namespace search
