// One layer: a 3x3 or 1x1 convolution over boards, or a linear layer (1x1 on boards of one square), as one implicit matrix product with
// a fused epilogue.
//
// Bytes and operations. A layer of C to C channels takes 18 C C operations a square; it reads C elements of a square and writes
// as many (and 8 C bytes where it updates the residual stream). In 16 bits that is 4 to 12 C bytes: for C = 128 from 190 to 580
// operations a byte, where an H200 breaks even at about 200 (990 Tflop/s, 4.8 TB/s); the average of a block's two layers is
// 290. So half of the peak needs no fusion of layers, but an input must not be read nine times from L2 or DRAM,
// nor be copied to another layout (im2col):
// - A block of threads takes a tile of up to 256 consecutive squares of all boards, wherever boards begin (no rows are wasted, whatever
//   the board's size), and all or up to 128 of the output channels. The launcher chooses the tile by a computed cost
//   (src/net/gpu/tile.rs). Its squares and W + 1 on either side go to shared memory once;
//   the nine taps read them there at nine offsets. A tap off the board reads a row of zeros: ldmatrix takes an address for
//   each row, so this costs one selection a row and tap.
// - Weights stream from L2, laid out as the instruction's fragments, in weight tiles of one tap and 64 channels (16 KiB), three in
//   flight: 128 rows a block make 128 operations a byte, at half of the peak 4 TB/s, some 60 % of what L2 gives; 256 rows,
//   where there are at most 64 channels, half of that.
// - A warp takes 64 x 64 sums: per step of 16 channels it reads 4 KiB of shared memory for 65,536 products, 32 cycles of the
//   multiprocessor's 128 bytes a cycle, when the products take 64 cycles at half of its 2,048 a cycle (mma.sync gets to about
//   0.6 of them; wgmma, which has no such limit, is a choice: see net/warpgroup.cuh). 64 x 32, for 32 channels, would
//   be limited by shared memory at about that rate.
// - Two blocks of 128 threads fit a multiprocessor of 228 KiB (255 registers a thread, 98 KiB a block), so that one computes
//   while the other begins or ends.
//
// Rows of shared memory are an odd number of 16-byte units long and zeros are there in eight copies, one for each position in
// that pattern: ldmatrix has no bank conflicts at any tap. Output channels are assigned to the columns of the instruction so that
// a thread has four consecutive ones: it stores 8 or 16 bytes, a group of four threads a whole sector.
//
// Every sum takes its products in one order (channels by weight tile, in a weight tile by tap, in a tap ascending), whatever the batch, the
// slot in it and the tile: a board's results are the same bits anywhere.
#pragma once
#include "net/layout.cuh"
#include "net/warpgroup.cuh"

namespace net {

// A layer's shape. Twin of `ForwardLayer::constants` in src/net/gpu/layer.rs, which chooses it.
template <
    class ElementType_, int TAPS_, int HEIGHT_, int WIDTH_, int ROW_WORDS_, int K_TILE_WORDS_, int K_TILES_, int WARP_ROWS_,
    int WARP_COLUMNS_, int ROW_TILES_, int COLUMN_TILES_, int COLUMN_BLOCKS_, int STAGES_, int WARPS_PER_MMA_, int THREADS_,
    int SHARED_>
struct Layer {
    typedef ElementType_ ElementType;
    static constexpr int TAPS = TAPS_; // 9 or 1
    static constexpr int HEIGHT = HEIGHT_, WIDTH = WIDTH_;
    static constexpr int ROW_WORDS = ROW_WORDS_; // words of an input square, a multiple of 4
    static constexpr int K_TILE_WORDS = K_TILE_WORDS_; // words of it in a weight tile, a multiple of 8
    static constexpr int K_TILES = K_TILES_; // weight tiles of a tap; words past ROW_WORDS are zeros
    static constexpr int WARP_ROWS = WARP_ROWS_, WARP_COLUMNS = WARP_COLUMNS_; // warps of a block
    static constexpr int ROW_TILES = ROW_TILES_; // 16 rows each, of a warp
    static constexpr int COLUMN_TILES = COLUMN_TILES_; // 16 output channels each, of a warp
    static constexpr int COLUMN_BLOCKS = COLUMN_BLOCKS_; // blocks of threads side by side
    static constexpr int STAGES = STAGES_; // weight tiles in shared memory
    static constexpr int WARPS_PER_MMA = WARPS_PER_MMA_; // that issue a product: one by mma.sync, a warpgroup by wgmma

    static constexpr int THREADS = WARP * WARP_ROWS * WARP_COLUMNS;
    static constexpr int ROWS = 16 * ROW_TILES * WARP_ROWS; // of a block
    static constexpr int N_TILES = COLUMN_TILES * WARP_COLUMNS; // of a block, in units of 16 channels
    static constexpr int HALO = TAPS == 9 ? WIDTH + 1 : 0;
    static constexpr int INPUT_ROWS = ROWS + 2 * HALO;
    static constexpr int PITCH = 4 * K_TILE_WORDS + 16; // bytes of an input row
    static constexpr int STEPS = K_TILE_WORDS / 8;
    static constexpr int WEIGHT_TILE_WORDS = STEPS * N_TILES * 128;
    static constexpr int WEIGHT_TILES = K_TILES * TAPS;
    // Inputs of the next weight tiles are fetched while a weight tile is multiplied.
    static constexpr int INPUTS = TAPS == 1 ? STAGES : K_TILES > 1 ? 2 : 1;
    static constexpr int ZEROS_AT = 0;
    static constexpr int INPUTS_AT = 8 * PITCH;
    static constexpr int WEIGHTS_AT = INPUTS_AT + INPUTS * INPUT_ROWS * PITCH;
    static constexpr int MBARRIERS_AT = WEIGHTS_AT + STAGES * WEIGHT_TILE_WORDS * 4; // of wgmma's weight tiles, 8 bytes each
    static constexpr int SHARED = MBARRIERS_AT + (WARPS_PER_MMA == 1 ? 0 : 8 * STAGES);

    static_assert(THREADS == THREADS_ && SHARED == SHARED_, "must equal the launcher's block");
    static_assert(TAPS == 9 || TAPS == 1, "3x3 or 1x1");
    static_assert(ROW_WORDS % 4 == 0 && K_TILE_WORDS % 8 == 0 && K_TILES * K_TILE_WORDS >= ROW_WORDS, "words");
    static_assert(STAGES >= 2 && STAGES <= 9, "inputs are fetched once a round of taps");
    static_assert(WARPS_PER_MMA == 1 || (WARPS_PER_MMA == WARPGROUP && ElementType::PER_WORD == 2), "16 bits by warpgroups");
    static_assert(WARPS_PER_MMA == 1 || (WARP_COLUMNS == 1 && WARP_ROWS % WARPGROUP == 0), "whole warpgroups, one by one");
    static_assert(WARPS_PER_MMA == 1 || STAGES >= 3, "a barrier stands between the request of weights and the wait for them");
};

// The boards of a launch, with its methods.
struct Boards : BoardRange {
    VZ_DEVICE Boards(const BoardRange& range) : BoardRange(range) {}

    VZ_DEVICE u32 num() const {
        if (live == nullptr) return boards;
        return *live > first ? minimum(*live - first, boards) : 0;
    }

    // Rows of layer L.
    template <class L>
    VZ_DEVICE u32 rows() const {
        return num() * (L::HEIGHT * L::WIDTH);
    }
};
// What a layer reads.
struct Operands {
    const u32* input; // [rows, ROW_WORDS], rows being squares board by board
    const u32* weights; // [COLUMN_BLOCKS, K_TILES, TAPS, WEIGHT_TILE_WORDS]
    u32 num_rows;
};

// What layer L reads in the launch of `args`.
template <class L>
VZ_DEVICE Operands operands_of(const LayerBlock& args) {
    return {args.input, args.weights, Boards(args.boards).rows<L>()};
}

// The position of word `word` of 8 of column `column` of 16 in the order of mma.sync's fragments. Column 4 t + e is column
// 2 t + e % 2 of instruction e / 2.
VZ_DEVICE int fragment_offset(int column, int word) {
    const int owner = (column / 4 * 2 + column % 2) * 4 + word % 4, part = column / 2 % 2 * 2 + word / 4;
    return owner * 4 + part;
}

// The position of input word `word` of output `column` and tap `tap` in the packed weights. Twin of `ForwardLayer::word_offset`.
template <class L>
VZ_DEVICE u64 weight_offset(int column, int tap, int word) {
    const int block = column / (16 * L::N_TILES), sixteen = column / 16 % L::N_TILES, within = column % 16;
    const int k_tile = word / L::K_TILE_WORDS, step = word % L::K_TILE_WORDS / 8, k = word % 8;
    const int word_offset = L::WARPS_PER_MMA == 1 ? fragment_offset(within, k) : core_matrix_offset(within, k);
    const u64 tile = ((u64)block * L::K_TILES + k_tile) * L::TAPS + tap;
    return tile * L::WEIGHT_TILE_WORDS + (step * L::N_TILES + sixteen) * 128 + word_offset;
}

// A layer's input: `load_async<L>` writes words `word` to `word` + 3 of input row `square` of layer L, or zeros, to `to`; its copies are
// asynchronous, its own stores are not. Of a row's units of four words in K tile `k_tile` the first `made<L>(k_tile)` are computed and take
// much longer than the others. This one copies rows from memory.
struct DirectInput {
    template <class L>
    VZ_DEVICE static int made(int) {
        return 0;
    }
    template <class L>
    VZ_DEVICE static void load_async(const Operands& operands, SmemAddr to, u32 square, int word, Source source) {
        copy_four_words(to, operands.input + (u64)square * L::ROW_WORDS + word, source);
    }
};

// The work of one block of threads.
template <class L, class Input>
struct BlockTile {
    typedef L Shape;
    typedef typename L::ElementType ElementType;
    static constexpr int ROW_TILES = L::ROW_TILES, COLUMN_TILES = L::COLUMN_TILES;

    const Operands operands;
    const SmemAddr shared;
    const int column_block;
    const i64 first_row; // of the block
    const int warp_row, warp_n_tile; // the warp's first row and column in the block, the latter in units of 16
    f32 sums[ROW_TILES][2 * COLUMN_TILES][4] = {};
    // Taps on the board, a bit each, of the rows whose addresses this lane gives to ldmatrix.
    u32 taps[ROW_TILES];

    VZ_DEVICE explicit BlockTile(const Operands& given)
        : operands(given), shared(dynamic_shared()), column_block((int)(blockIdx.x % L::COLUMN_BLOCKS)),
          first_row((i64)(blockIdx.x / L::COLUMN_BLOCKS) * L::ROWS),
          warp_row((int)(threadIdx.x / WARP) / L::WARP_COLUMNS * 16 * ROW_TILES),
          warp_n_tile((int)(threadIdx.x / WARP) % L::WARP_COLUMNS * COLUMN_TILES) {
VZ_UNROLL
        for (int i = 0; i < ROW_TILES; i++) taps[i] = taps_of(warp_row + 16 * i + lane() % 16);
        // Rows of zeros: eight, so that each lies as the row that it stands for.
        for (int i = (int)threadIdx.x; i < 8 * L::PITCH / 16; i += L::THREADS) {
            store_four_words(shared + L::ZEROS_AT + 16 * i, 0, 0, 0, 0);
        }
    }

    // A bit for each tap of the block's row `row` that is on the board.
    VZ_DEVICE u32 taps_of(int row) const {
        const i64 square = first_row + row;
        if (square >= operands.num_rows) return 0;
        if (L::TAPS == 1) return 1;
        const u32 at = (u32)square % (L::HEIGHT * L::WIDTH);
        const int y = (int)at / L::WIDTH, x = (int)at % L::WIDTH;
        const u32 lines = (y > 0 ? 0007 : 0) | 0070 | (y < L::HEIGHT - 1 ? 0700 : 0);
        const u32 columns = (x > 0 ? 0111 : 0) | 0222 | (x < L::WIDTH - 1 ? 0444 : 0);
        return lines & columns;
    }

    // Begins to fetch weight tile number `tile` of the weights.
    VZ_DEVICE void fetch_weights(int tile) {
        const u32* from = operands.weights + ((u64)column_block * L::WEIGHT_TILES + tile) * L::WEIGHT_TILE_WORDS;
        const SmemAddr to = weights(tile);
        if constexpr (L::WARPS_PER_MMA > 1) {
            if (threadIdx.x == 0) copy_bulk(to, from, L::WEIGHT_TILE_WORDS * 4, mbarrier(tile));
        } else {
VZ_UNROLL
            for (int i = 0; i < L::WEIGHT_TILE_WORDS / 4; i += L::THREADS) {
                const int at = i + (int)threadIdx.x;
                if (L::WEIGHT_TILE_WORDS / 4 % L::THREADS == 0 || at < L::WEIGHT_TILE_WORDS / 4) {
                    copy_four_words(to + 16 * at, from + 4 * at, Source::GLOBAL);
                }
            }
        }
    }

    // Begins to fetch the input's words of K tile `k_tile`: computed units apart from the others, so that the threads of a warp have equal
    // work.
    VZ_DEVICE void fetch_input(int k_tile) {
        const int made = Input::template made<L>(L::K_TILES == 1 ? 0 : k_tile);
        fetch_units(k_tile, made, L::K_TILE_WORDS / 4);
        fetch_units(k_tile, 0, made);
    }

    // Begins to fetch units `first` to `end` - 1 of a K tile of every row.
    VZ_DEVICE void fetch_units(int k_tile, int first, int end) {
        const int units = end - first;
        const SmemAddr to = input(k_tile);
        for (int at = (int)threadIdx.x; at < L::INPUT_ROWS * units; at += L::THREADS) {
            const int row = at / units, unit = first + at % units, word = k_tile * L::K_TILE_WORDS + 4 * unit;
            const i64 square = first_row + row - L::HALO;
            const bool there = square >= 0 && square < operands.num_rows && word < L::ROW_WORDS;
            const SmemAddr word_offset = to + row * L::PITCH + 16 * unit;
            Input::template load_async<L>(
                operands, word_offset, there ? (u32)square : 0, there ? word : 0, there ? Source::GLOBAL : Source::ZEROS
            );
        }
    }

    VZ_DEVICE SmemAddr input(int k_tile) const {
        return shared + L::INPUTS_AT + k_tile % L::INPUTS * (L::INPUT_ROWS * L::PITCH);
    }

    VZ_DEVICE SmemAddr weights(int tile) const { return shared + L::WEIGHTS_AT + tile % L::STAGES * L::WEIGHT_TILE_WORDS * 4; }

    VZ_DEVICE SmemAddr mbarrier(int tile) const { return shared + L::MBARRIERS_AT + tile % L::STAGES * 8; }

    // Begins the copies that are in flight while weight tile `tile` - STAGES + 1 is multiplied.
    VZ_DEVICE void fetch(int tile) {
        if (tile < L::WEIGHT_TILES) {
            fetch_weights(tile);
            if (L::TAPS == 1) fetch_input(tile);
        }
        // In a round of taps, as soon as the last round's input is no longer read.
        if (L::TAPS == 9 && tile % L::TAPS == L::STAGES - 1) {
            const int k_tile = tile / L::TAPS + 1;
            if (k_tile < L::K_TILES) fetch_input(k_tile);
        }
        end_copies();
    }

    // The distance in rows from a square to that of tap `tap`.
    VZ_DEVICE static int offset(int tap) { return L::TAPS == 1 ? 0 : (tap / 3 - 1) * L::WIDTH + tap % 3 - 1; }

    // The address of the square of tap `tap` for row `row` of the block; of zeros where that is off the board.
    VZ_DEVICE SmemAddr source(SmemAddr input, int row, int tap, u32 on_board) const {
        const int at = row + L::HALO + offset(tap);
        return on_board >> tap & 1 ? input + at * L::PITCH : shared + L::ZEROS_AT + at % 8 * L::PITCH;
    }

    // The addresses that this lane gives to ldmatrix for tap `tap`.
    VZ_DEVICE void find_rows(SmemAddr (&rows)[ROW_TILES], SmemAddr input, int tap) const {
VZ_UNROLL
        for (int i = 0; i < ROW_TILES; i++) {
            rows[i] = source(input, warp_row + 16 * i + lane() % 16, tap, taps[i]) + lane() / 16 * 16;
        }
    }

    // Adds the products of one weight tile.
    VZ_DEVICE void multiply(int tile, int k_tile, int tap) {
        if constexpr (TENSOR_CORES<ElementType>) {
            multiply_by_tensor_cores(input(k_tile), weights(tile), tap);
        } else {
            multiply_one_by_one(input(k_tile), weights(tile), tap);
        }
    }

    VZ_DEVICE void multiply_by_tensor_cores(SmemAddr input, SmemAddr weights, int tap) {
        SmemAddr rows[ROW_TILES];
        find_rows(rows, input, tap);
        const SmemAddr columns = weights + (warp_n_tile * 32 + lane()) * 16;
VZ_UNROLL
        for (int step = 0; step < L::STEPS; step++) {
            u32 a[ROW_TILES][4], b[COLUMN_TILES][4];
VZ_UNROLL
            for (int i = 0; i < ROW_TILES; i++) load_blocks(a[i], rows[i] + 32 * step);
VZ_UNROLL
            for (int j = 0; j < COLUMN_TILES; j++) load_four_words(b[j], columns + (step * L::N_TILES + j) * 512);
VZ_UNROLL
            for (int i = 0; i < ROW_TILES; i++) {
VZ_UNROLL
                for (int j = 0; j < COLUMN_TILES; j++) {
                    multiply_add<ElementType>(sums[i][2 * j], a[i], b[j][0], b[j][1]);
                    multiply_add<ElementType>(sums[i][2 * j + 1], a[i], b[j][2], b[j][3]);
                }
            }
        }
    }

    // The same sums by the same lanes, product by product.
    VZ_DEVICE void multiply_one_by_one(SmemAddr input, SmemAddr weights, int tap) {
        const int g = lane() / 4, t = lane() % 4;
        SmemAddr rows[ROW_TILES][2];
VZ_UNROLL
        for (int i = 0; i < ROW_TILES; i++) {
VZ_UNROLL
            for (int half = 0; half < 2; half++) {
                const int row = warp_row + 16 * i + 8 * half + g;
                rows[i][half] = source(input, row, tap, taps_of(row));
            }
        }
        for (int word = 0; word < L::K_TILE_WORDS; word++) {
            u32 a[ROW_TILES][2];
VZ_UNROLL
            for (int i = 0; i < ROW_TILES; i++) {
VZ_UNROLL
                for (int half = 0; half < 2; half++) a[i][half] = load_word(rows[i][half] + 4 * word);
            }
VZ_UNROLL
            for (int j = 0; j < COLUMN_TILES; j++) {
                const SmemAddr columns = weights + (word / 8 * L::N_TILES + warp_n_tile + j) * 512;
VZ_UNROLL
                for (int e = 0; e < 4; e++) {
                    // This lane's column 4 t + e of 16.
                    const int owner = (2 * t + e % 2) * 4 + word % 4;
                    const u32 b = load_word(columns + owner * 16 + (e / 2 * 2 + word % 8 / 4) * 4);
VZ_UNROLL
                    for (int part = 0; part < ElementType::PER_WORD; part++) {
                        const f32 weight = ElementType::number(b, part);
VZ_UNROLL
                        for (int i = 0; i < ROW_TILES; i++) {
VZ_UNROLL
                            for (int half = 0; half < 2; half++) {
                                f32& sum = sums[i][2 * j + e / 2][2 * half + e % 2];
                                sum = fused_multiply_add(ElementType::number(a[i][half], part), weight, sum);
                            }
                        }
                    }
                }
            }
        }
    }

    // Begins the first copies.
    VZ_DEVICE void begin() {
        fetch_input(0);
VZ_UNROLL
        for (int tile = 0; tile < L::STAGES - 1; tile++) {
            if (tile < L::WEIGHT_TILES) fetch_weights(tile);
            if (L::TAPS == 1 && tile > 0 && tile < L::WEIGHT_TILES) fetch_input(tile);
            end_copies();
        }
    }

    VZ_DEVICE void multiply_all() {
        begin();
        int tile = 0;
        for (int k_tile = 0; k_tile < L::K_TILES; k_tile++) {
            for (int tap = 0; tap < L::TAPS; tap++, tile++) {
                wait_for_copies<L::STAGES - 2>();
                VZ_BLOCK_SYNC(30); // all copies for this weight tile are done, and no warp reads the last weight tile any more
                fetch(tile + L::STAGES - 1);
                multiply(tile, k_tile, tap);
            }
        }
    }

    // Gives the sums to `epilogue`, four consecutive channels of one square at a time. All reads of a column tile (of two, where a warp has
    // one row tile) come before its stores: a read after a store that may be to the same address would wait for it. With more reads in flight
    // a thread of wgmma would need more than 128 registers, and fewer blocks would run at once.
    template <class Epilogue>
    VZ_DEVICE void finish(const Epilogue& epilogue) const {
        constexpr int TOGETHER = ROW_TILES == 1 ? 2 : 1; // column tiles
VZ_UNROLL
        for (int first = 0; first < COLUMN_TILES; first += TOGETHER) {
            typename Epilogue::Read read[TOGETHER][ROW_TILES][2];
VZ_UNROLL
            for (int j = first; j < first + TOGETHER && j < COLUMN_TILES; j++) read_column_tile(epilogue, j, read[j - first]);
VZ_UNROLL
            for (int j = first; j < first + TOGETHER && j < COLUMN_TILES; j++) store_column_tile(epilogue, j, read[j - first]);
        }
    }

    // This lane's row of its row tile `i`, and its first channel of column tile `j`.
    VZ_DEVICE i64 square(int i, int half) const { return first_row + warp_row + 16 * i + 8 * half + lane() / 4; }
    VZ_DEVICE int channel(int j) const { return (column_block * L::N_TILES + warp_n_tile + j) * 16 + 4 * (lane() % 4); }

    // Rows past the last one read the block's first: no branch parts the reads.
    template <class Epilogue>
    VZ_DEVICE void read_column_tile(const Epilogue& epilogue, int j, typename Epilogue::Read (&read)[ROW_TILES][2]) const {
VZ_UNROLL
        for (int i = 0; i < ROW_TILES; i++) {
VZ_UNROLL
            for (int half = 0; half < 2; half++) {
                const i64 row = square(i, half);
                read[i][half] = epilogue.read((u64)(row < operands.num_rows ? row : first_row), channel(j));
            }
        }
    }

    template <class Epilogue>
    VZ_DEVICE void store_column_tile(const Epilogue& epilogue, int j, const typename Epilogue::Read (&read)[ROW_TILES][2]) const {
        const typename Epilogue::Terms terms = epilogue.terms(channel(j));
VZ_UNROLL
        for (int i = 0; i < ROW_TILES; i++) {
VZ_UNROLL
            for (int half = 0; half < 2; half++) {
                const Four sum = {{
                    sums[i][2 * j][2 * half], sums[i][2 * j][2 * half + 1], sums[i][2 * j + 1][2 * half],
                    sums[i][2 * j + 1][2 * half + 1],
                }};
                const i64 row = square(i, half);
                if (row < operands.num_rows) epilogue.store(terms, read[i][half], (u64)row, channel(j), sum);
            }
        }
    }
};

// Runs layer L; the grid is COLUMN_BLOCKS blocks for every ROWS rows, of THREADS threads with SHARED bytes. Blocks past the last row
// leave at once. `epilogue` has the types `Terms` and `Read`, `terms(channel)`, `read(square, channel)` and
// `store(terms, read, square, channel, four sums)`, which are called for channels past the last one too.
template <class L, class Input = DirectInput, class Epilogue>
VZ_DEVICE void run_layer(const Operands& operands, const Epilogue& epilogue) {
    if ((u64)(blockIdx.x / L::COLUMN_BLOCKS) * L::ROWS >= operands.num_rows) return;
    if constexpr (L::WARPS_PER_MMA == 1) {
        BlockTile<L, Input> tile(operands);
        tile.multiply_all();
        tile.finish(epilogue);
    } else {
        WarpgroupTile<BlockTile<L, Input>> tile(operands);
        tile.multiply_all();
        tile.finish(epilogue);
    }
}

} // namespace net
