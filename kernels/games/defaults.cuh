// The defaults of a game's kernel functions: twin of the provided methods of `Game` in src/game/rules.rs.
// Included after games/<name>.cuh. The game's sizes tell whether it has chance, hidden hands, a history or symmetries.
#pragma once

VZ_TABLE u8 INIT_STATE[VZ_STATE_BYTES] = {VZ_INIT_STATE};

// The initial state, computed by Rust from the settings.
VZ_DEVICE void game_init(State& s) { s = read_pod<State>(INIT_STATE); }

#ifndef VZ_OWN_CHANCE_PROBS
VZ_DEVICE void game_chance_probs(const State&, const u16*, int n, f32* out) {
    for (int i = 0; i < n; i++) out[i] = 1.0f / (f32)n;
}
#endif

#ifndef VZ_OWN_STAGE_RETURNS
VZ_DEVICE void game_stage_returns(const State& s, f32* out) { game_returns(s, out); }
#endif

#ifndef VZ_OWN_SEATED
VZ_DEVICE int game_num_seated(const State&) { return VZ_PLAYERS; }
#endif

#ifndef VZ_OWN_HORIZON
VZ_DEVICE bool game_is_horizon(const State&) { return false; }
#endif

#if !VZ_USES_HISTORY
VZ_DEVICE u64 game_history_key(const State&) { return 0; }
#endif

#if !VZ_HIDDEN
VZ_DEVICE void game_determinise(const State& s, int, Stream&, State& out) { out = s; }
#endif

#if VZ_SYMMETRIES == 1
VZ_DEVICE void game_transform(const State& s, u64, State& out) { out = s; }

VZ_DEVICE u16 game_transform_action(u16 action, u64) { return action; }
#endif

#ifndef VZ_OWN_TRANSFORM_PLAYER
VZ_DEVICE int game_transform_player(int player, u64) { return player; }
#endif
