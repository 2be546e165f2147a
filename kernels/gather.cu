// A training batch out of the replay's samples. Twin of src/replay.rs `Replay::batch`; launched by src/train/device/samples.rs. It
// is compiled with the game, since samples hold its states.
#include "rng.cuh"

// One warp a row of the batch from `first_row` on. Row r is sample `draw(r)` of `len`; where `drawn`, the arrays hold the
// batch's own samples, that of row `first_row` first. `images` [rows, state bytes] is scratch for states after a symmetry. Outputs:
// obs [rows, F], targets policy [rows, A], legal [rows, A], values [rows, P] and weights [rows].
VZ_KERNEL gather_samples(
    u32 rows, u32 first_row, u64 seed, u64 number, u64 len, u32 drawn, u32 symmetries, const u8* states, const u8* players,
    const u16* num_legal, const u16* actions, const f32* policy, const f32* values, State* images, f32* out_obs, f32* out_policy,
    u8* out_legal, f32* out_values, f32* out_weight
) {
    const u32 warp = (u32)(thread_in_grid() / 32);
    const int lane = (int)(threadIdx.x % 32);
    if (warp >= rows) return;
    const u64 row = (u64)first_row + warp;
    const u64 at = drawn ? warp : Key::of(seed, Purpose::BATCH).with(number).with(row).stream().below(len);
    const u64 symmetry =
        symmetries ? Key::of(seed, Purpose::SYMMETRY).with(number).with(row).stream().below(VZ_SYMMETRIES) : 0;

    out_policy += (u64)warp * VZ_ACTIONS;
    out_legal += (u64)warp * VZ_ACTIONS;
    for (int i = lane; i < VZ_ACTIONS; i += 32) {
        out_policy[i] = 0.0f;
        out_legal[i] = 0;
    }
    if (lane == 0) {
        game_transform(read_pod<State>(states + at * VZ_STATE_BYTES), symmetry, images[warp]);
        const int observer = game_transform_player(players[at], symmetry);
        for (int player = 0; player < VZ_PLAYERS; player++) {
            const int seat = (game_transform_player(player, symmetry) + VZ_PLAYERS - observer) % VZ_PLAYERS;
            out_values[(u64)warp * VZ_PLAYERS + seat] = values[at * VZ_PLAYERS + player];
        }
        out_weight[warp] = 1.0f;
    }
    __syncwarp();
    for (int i = lane; i < num_legal[at]; i += 32) {
        const u16 image = game_transform_action(actions[at * VZ_MAX_LEGAL + i], symmetry);
        out_policy[image] = policy[at * VZ_MAX_LEGAL + i];
        out_legal[image] = 1;
    }
    const int turn = game_turn(images[warp]);
    game_observe(images[warp], turn < 0 ? 0 : turn, lane, 32, out_obs + (u64)warp * VZ_OBS_CHANNELS * VZ_OBS_HEIGHT * VZ_OBS_WIDTH);
}
