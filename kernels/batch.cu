// N games as arrays on the device, without trees. Twin of src/batch.rs `GameBatch`; launched by src/backend/gpu/batch.rs.
//
// One thread plays one game; there is no barrier. A finished game is replaced by a new one at once, so no state is terminal.
#include "batch/layout.cuh"
#include "rng.cuh"

constexpr int BATCH_HISTORY = VZ_USES_HISTORY ? VZ_MAX_PLIES : 0;
constexpr int BATCH_OBS = VZ_OBS_CHANNELS * VZ_OBS_HEIGHT * VZ_OBS_WIDTH;

VZ_DEVICE u64* batch_keys(u64* histories, i64 game) { return histories + game * BATCH_HISTORY; }

VZ_DEVICE History batch_history(const u64* keys, u32 plies) {
    return History{keys, VZ_USES_HISTORY ? (int)plies : 0, nullptr, 0};
}

// Makes one ply and stores the key of the position before it. Returns true if the game is then over.
VZ_DEVICE bool batch_ply(State& s, u16 action, u64* keys, u32& plies) {
    const u64 key = VZ_USES_HISTORY ? game_history_key(s) : 0;
    game_step(s, action, batch_history(keys, plies));
    if (VZ_USES_HISTORY) keys[plies] = key;
    plies += 1;
    return game_turn(s) == TURN_OVER;
}

// A uniformly random legal action, or an outcome by its probability, as in `GameBatch::step_random`.
VZ_DEVICE u16 batch_random_action(const State& s, const History& history, Stream stream) {
    u16 legal[VZ_NUM_EDGES];
    const int n = game_legal(s, history, legal);
#if VZ_CHANCE
    if (game_turn(s) == TURN_CHANCE) {
        f32 probs[VZ_CHANCE];
        game_chance_probs(s, legal, n, probs);
        return legal[stream.weighted(probs, n)];
    }
#endif
    return legal[stream.below((u64)n)];
}

// Resets every game to its start.
VZ_KERNEL batch_init(VZ_BY_VALUE batch::BatchBlock args) {
    const i64 game = thread_in_grid();
    if (game >= args.num_games) return;
    game_init(args.states[game]);
    args.plies[game] = 0;
    args.games[game] = 0;
}

// Lists the legal actions or outcomes.
VZ_KERNEL batch_legal(VZ_BY_VALUE batch::BatchBlock args) {
    const i64 game = thread_in_grid();
    if (game >= args.num_games) return;
    const State s = args.states[game];
    const History history = batch_history(args.histories + game * BATCH_HISTORY, args.plies[game]);
    args.num_legal[game] = (u16)game_legal(s, history, args.legal + game * VZ_NUM_EDGES);
}

// Makes one ply in every game. Where it ends the game, a new one begins.
VZ_KERNEL batch_step(VZ_BY_VALUE batch::BatchBlock args) {
    const i64 game = thread_in_grid();
    if (game >= args.num_games) return;
    State s = args.states[game];
    u32 made = args.plies[game];
    f32 result[VZ_PLAYERS] = {};
    const bool ended = batch_ply(s, args.actions[game], batch_keys(args.histories, game), made);
    if (ended) {
        game_returns(s, result);
        game_init(s);
        made = 0;
        args.games[game] += 1;
    }
    args.states[game] = s;
    args.plies[game] = made;
    args.over[game] = ended;
    for (int player = 0; player < VZ_PLAYERS; player++) args.returns[game * VZ_PLAYERS + player] = result[player];
}

// Writes the observation of the player to move, player 0's at chance states. A warp per game.
VZ_KERNEL batch_observe(VZ_BY_VALUE batch::BatchBlock args) {
    const i64 game = thread_in_grid() / WARP;
    const int lane = (int)(thread_in_grid() % WARP);
    if (game >= args.num_games) return;
    const int turn = game_turn(args.states[game]);
    game_observe(args.states[game], turn < 0 ? 0 : turn, lane, WARP, args.observations + game * BATCH_OBS);
}

// Makes num_plies random plies in every game and replaces finished games by new ones. The draws are those of `GameBatch::step_random`:
// they depend on the seed, the game's index in the batch, its number and the ply.
VZ_KERNEL batch_random_play(VZ_BY_VALUE batch::BatchBlock args, u32 num_plies, u64 seed) {
    const i64 game = thread_in_grid();
    if (game >= args.num_games) return;
    State s = args.states[game];
    u32 made = args.plies[game];
    u64 number = args.games[game];
    u64* keys = batch_keys(args.histories, game);
    const Key game_key = Key::of(seed, Purpose::Evaluation).with((u64)game);
    for (u32 i = 0; i < num_plies; i++) {
        const Stream stream = game_key.with(number).with(made).stream();
        const u16 action = batch_random_action(s, batch_history(keys, made), stream);
        if (batch_ply(s, action, keys, made)) {
            game_init(s);
            made = 0;
            number += 1;
        }
    }
    args.states[game] = s;
    args.plies[game] = made;
    args.games[game] = number;
}
