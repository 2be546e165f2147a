// The forward of a network, one kernel a layer, launched by src/net/gpu. This file has what all networks share; their
// blocks are in net_tower.cu or net_edge.cu. The launcher defines the constants: the layers' shapes as VZ_STEM, VZ_TOWER and VZ_DENSE,
// the sizes of a game's observations, logits and values.
#include "math.cuh"
#include "net/epilogues.cuh"
#include "net/layer.cuh"

typedef net::VZ_ELEMENT_TYPE ElementType;
typedef net::Layer<ElementType, VZ_STEM> Stem;
typedef net::Layer<ElementType, VZ_TOWER> Tower;
typedef net::Layer<ElementType, VZ_DENSE> Dense;
constexpr int SQUARES = Stem::HEIGHT * Stem::WIDTH;
constexpr int TOWER_CHANNELS = Tower::ROW_WORDS * ElementType::PER_WORD;

VZ_DEVICE f32 observed(f32 x) { return x; }
VZ_DEVICE f32 observed(u16 x) { return from_bits((u32)x << 16); }

// Observations plane by plane [slots, VZ_NET_PLANES, SQUARES] become rows of words [slots, SQUARES, ROW_WORDS], a thread a word.
template <class In>
VZ_DEVICE void take_observations(const In* obs, u32* out, u32 num) {
    constexpr int WORDS = Stem::ROW_WORDS * SQUARES;
    const u64 at = thread_in_grid(), slot = at / WORDS;
    const int word = (int)(at % WORDS) / SQUARES, square = (int)(at % WORDS) % SQUARES;
    if (slot >= num) return;
    f32 numbers[ElementType::PER_WORD];
VZ_UNROLL
    for (int part = 0; part < ElementType::PER_WORD; part++) {
        const int plane = word * ElementType::PER_WORD + part;
        numbers[part] = plane < VZ_NET_PLANES ? observed(obs[(slot * VZ_NET_PLANES + plane) * SQUARES + square]) : 0.0f;
    }
    out[(slot * SQUARES + square) * Stem::ROW_WORDS + word] = net::pack_word<ElementType>(numbers);
}
VZ_KERNEL take_observations_f32(const f32* obs, u32* out, VZ_BY_VALUE net::BoardRange boards) {
    take_observations(obs, out, net::Boards(boards).num());
}
VZ_KERNEL take_observations_bf16(const u16* obs, u32* out, VZ_BY_VALUE net::BoardRange boards) {
    take_observations(obs, out, net::Boards(boards).num());
}

VZ_BLOCK_KERNEL(Stem::THREADS) stem(VZ_BY_VALUE net::LayerBlock args) {
    typedef net::StreamBnRelu<ElementType, TOWER_CHANNELS, net::StreamUpdate::WRITE> StemBnRelu;
    net::run_layer<Stem>(net::operands_of<Stem>(args), StemBnRelu{args.bias, args.scale, args.offset, args.stream, args.output});
}

// The linear layers that read a whole board: the value head's hidden units and, but for edge networks, the logits.
VZ_BLOCK_KERNEL(Dense::THREADS) dense(VZ_BY_VALUE net::LayerBlock args) {
    typedef net::Heads<VZ_NET_DENSE_LOGITS, VZ_NET_HIDDEN> Heads;
    net::run_layer<Dense>(net::operands_of<Dense>(args), Heads{args.bias, args.logits, args.hidden});
}

VZ_DEVICE bool is_finite(f32 x) { return x - x == 0.0f; }

// The value head's last layer and its tanh; where one value stands for two players, (v, -v). One warp a slot.
VZ_KERNEL values(VZ_BY_VALUE net::ValuesBlock args) {
    const u64 slot = thread_in_grid() / WARP;
    if (slot >= net::Boards(args.boards).num()) return;
    const int lane = ::lane();
    bool finite = true;
    for (int action = lane; action < VZ_NET_ACTIONS; action += WARP) {
        finite = finite && is_finite(args.logits[slot * VZ_NET_ACTIONS + action]);
    }
    for (int value = 0; value < VZ_NET_VALUES; value++) {
        f32 sum = 0.0f;
        for (int unit = lane; unit < VZ_NET_HIDDEN; unit += WARP) {
            const f32 x = args.hidden[slot * VZ_NET_HIDDEN + unit];
            sum = net::fused_multiply_add(x, args.weights[value * VZ_NET_HIDDEN + unit], sum);
        }
VZ_UNROLL
        for (int distance = WARP / 2; distance > 0; distance /= 2) {
            sum += __shfl_xor_sync(0xFFFFFFFFu, sum, distance);
        }
        sum += args.bias[value];
        finite = finite && is_finite(sum);
        if (lane == 0) {
            const f32 value_of_player = math::tanh(sum);
            args.values[slot * VZ_NET_PLAYERS + value] = value_of_player;
            if (VZ_NET_VALUES < VZ_NET_PLAYERS) args.values[slot * VZ_NET_PLAYERS + 1] = -value_of_player;
        }
    }
    if (!finite) *args.not_finite = 1;
}
