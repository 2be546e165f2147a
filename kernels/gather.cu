// A training batch out of the replay's samples. Twin of src/replay.rs `Replay::batch`; launched by src/train/device/samples.rs. It
// is compiled with the game, since samples hold its states.
#include "gather/layout.cuh"
#include "rng.cuh"

// One warp a row of the batch from `first_row` on. Row r is sample `draw(r)` of `len`; where `drawn`, the arrays hold the
// batch's own samples, that of row `first_row` first.
VZ_KERNEL gather_samples(VZ_BY_VALUE gather::GatherBlock args) {
    const u32 warp = (u32)(thread_in_grid() / WARP);
    const int lane = (int)(threadIdx.x % WARP);
    if (warp >= args.rows) return;
    const u64 row = (u64)args.first_row + warp;
    const u64 at = args.drawn ? warp : Key::of(args.seed, Purpose::Batch).with(args.number).with(row).stream().below(args.len);
    const u64 symmetry =
        args.symmetries ? Key::of(args.seed, Purpose::Symmetry).with(args.number).with(row).stream().below(VZ_SYMMETRIES) : 0;

    f32* out_policy = args.out_policy + (u64)warp * VZ_ACTIONS;
    u8* out_legal = args.out_legal + (u64)warp * VZ_ACTIONS;
    for (int i = lane; i < VZ_ACTIONS; i += WARP) {
        out_policy[i] = 0.0f;
        out_legal[i] = 0;
    }
    State& image = args.images[warp];
    const int observer = game_transform_player(args.players[at], symmetry);
    if (lane == 0) {
        game_transform(read_pod<State>(args.states + at * VZ_STATE_BYTES), symmetry, image);
        const int seated = game_num_seated(image);
        for (int player = 0; player < VZ_PLAYERS; player++) {
            const bool is_taken = player < seated;
            const int seat = is_taken ? (game_transform_player(player, symmetry) + seated - observer) % seated : player;
            args.out_values[(u64)warp * VZ_PLAYERS + seat] = is_taken ? args.values[at * VZ_PLAYERS + player] : 0.0f;
        }
        args.out_weight[warp] = 1.0f;
    }
    __syncwarp();
    for (int i = lane; i < args.num_legal[at]; i += WARP) {
        const u16 action = game_transform_action(args.actions[at * VZ_MAX_LEGAL + i], symmetry);
        out_policy[action] = args.policy[at * VZ_MAX_LEGAL + i];
        out_legal[action] = 1;
    }
    game_observe(image, observer, lane, WARP, args.out_obs + (u64)warp * VZ_OBS_CHANNELS * VZ_OBS_HEIGHT * VZ_OBS_WIDTH);
}
