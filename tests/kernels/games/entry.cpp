// What the test calls: the functions of one game's kernel under names of their own. Stands below a program's
// source.

namespace {
constexpr int OBSERVED = VZ_OBS_CHANNELS * VZ_OBS_HEIGHT * VZ_OBS_WIDTH;
constexpr u32 UNWRITTEN = 0x7FC0DEAD; // a NaN that no game writes
} // namespace

extern "C" {

void entry_init(State* s) { game_init(*s); }

int entry_turn(const State* s) { return game_turn(*s); }

int entry_legal(const State* s, const u64* played, int num_played, const u64* path, int num_path, u16* out) {
    return game_legal(*s, History{played, num_played, path, num_path}, out);
}

void entry_step(State* s, u16 action, const u64* played, int num_played, const u64* path, int num_path) {
    game_step(*s, action, History{played, num_played, path, num_path});
}

// What one thread alone writes.
void entry_observe(const State* s, int player, f32* out) {
    for (int i = 0; i < OBSERVED; i++) out[i] = from_bits(UNWRITTEN);
    game_observe(*s, player, 0, 1, out);
}

// What 32 lanes write, one after another. Gives -1, or the first entry that a wrong lane wrote.
int entry_observe_lanes(const State* s, int player, f32* out) {
    static thread_local f32 seen_by_lane[OBSERVED];
    f32* const seen = seen_by_lane;
    for (int i = 0; i < OBSERVED; i++) out[i] = seen[i] = from_bits(UNWRITTEN);
    for (int lane = 0; lane < 32; lane++) {
        game_observe(*s, player, lane, 32, seen);
        for (int i = lane; i < OBSERVED; i += 32) {
            out[i] = seen[i];
            seen[i] = from_bits(UNWRITTEN);
        }
        // What is left was written by a wrong lane; mostly nothing is, and all entries are the same.
        if (to_bits(seen[0]) == UNWRITTEN && memcmp(seen, seen + 1, (OBSERVED - 1) * sizeof *seen) == 0) continue;
        for (int i = 0; i < OBSERVED; i++) {
            if (to_bits(seen[i]) != UNWRITTEN) return i;
        }
    }
    return -1;
}

void entry_returns(const State* s, f32* out) { game_returns(*s, out); }

void entry_stage_returns(const State* s, f32* out) { game_stage_returns(*s, out); }

int entry_num_seated(const State* s) { return game_num_seated(*s); }

void entry_chance_probs(const State* s, const u16* outcomes, int n, f32* out) {
    game_chance_probs(*s, outcomes, n, out);
}

int entry_is_horizon(const State* s) { return game_is_horizon(*s); }

u64 entry_history_key(const State* s) { return game_history_key(*s); }

// Draws from the stream at (seed, DETERMINISE, number, ply); gives the stream's next number after that.
u64 entry_determinise(const State* s, int player, u64 seed, u64 number, u64 ply, State* out) {
    Stream stream = Key::of(seed, Purpose::Determinise).with(number).with(ply).stream();
    game_determinise(*s, player, stream, *out);
    return stream.next_u64();
}

void entry_transform(const State* s, u64 symmetry, State* out) { game_transform(*s, symmetry, *out); }

u16 entry_transform_action(u16 action, u64 symmetry) { return game_transform_action(action, symmetry); }

} // extern "C"
