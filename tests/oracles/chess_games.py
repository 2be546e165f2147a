"""Random chess games by python-chess, one JSON line each, for tests/playthroughs.rs; with --pgx, pgx agrees too.

    python chess_games.py --out ../fixtures/playthroughs/chess.jsonl      # the committed fixture
    python chess_games.py --games 5000 --seed 7 --plies 512 --out big.jsonl
    python chess_games.py --pgx --games 40                               # masks of pgx against python-chess

Needs chess 1.11 (and pgx 2.6 for --pgx). Draws are those on the board: is_repetition(3), halfmove clock 100.
"""

import argparse
import json
import random

import chess

STARTS = [
    chess.STARTING_FEN,
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
    "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8",
    "4k3/pppppppp/8/8/8/8/PPPPPPPP/4K3 w - - 0 1",
    "r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 90 80",
    "8/P6k/8/8/8/8/p6K/8 w - - 0 1",
    "8/8/4k3/2n5/8/3K4/6P1/8 w - - 0 50",
    "k7/8/8/3b4/8/4B3/8/K6n w - - 96 120",
    "7k/8/8/8/8/8/1p6/K1B5 w - - 0 1",
]
UNDERPROMOTIONS = {chess.ROOK: 0, chess.BISHOP: 3, chess.KNIGHT: 6}
KNIGHT_STEPS = [(-2, -1), (-2, 1), (-1, -2), (-1, 2), (2, -1), (2, 1), (1, -2), (1, 2)]  # (files, ranks)
RAYS = [(0, -1), (0, 1), (-1, 0), (1, 0), (-1, -1), (1, 1), (-1, 1), (1, -1)]


def action_number(board, move):
    """The move's number: from * 73 + plane, squares counted file by file as the side to move sees them."""
    def view(square):
        rank = chess.square_rank(square)
        return chess.square_file(square), rank if board.turn == chess.WHITE else 7 - rank

    (file, rank), (to_file, to_rank) = view(move.from_square), view(move.to_square)
    files, ranks = to_file - file, to_rank - rank
    if move.promotion in UNDERPROMOTIONS:
        plane = UNDERPROMOTIONS[move.promotion] + {0: 0, 1: 1, -1: 2}[files]
    elif (files, ranks) in KNIGHT_STEPS:
        plane = 65 + KNIGHT_STEPS.index((files, ranks))
    else:
        steps = max(abs(files), abs(ranks))
        ray = RAYS.index((files // steps, ranks // steps))
        towards_lower_squares = files < 0 or (files == 0 and ranks < 0)
        plane = 9 + 7 * ray + (7 - steps if towards_lower_squares else steps - 1)
    return (file * 8 + rank) * 73 + plane


def is_over(board, plies, max_plies):
    return (
        not any(board.legal_moves)
        or board.is_insufficient_material()
        or board.is_repetition(3)
        or board.halfmove_clock >= 100
        or plies >= max_plies
    )


def returns(board):
    if not board.is_checkmate():
        return [0.0, 0.0]
    return [-1.0, 1.0] if board.turn == chess.WHITE else [1.0, -1.0]


def is_rare(board, move):
    return move.promotion or board.is_castling(move) or board.is_en_passant(move) or board.is_capture(move)


def choose(board, moves, rng):
    rare = [m for m in moves if is_rare(board, m)]
    if rare and rng.random() < 0.25:
        return rng.choice(rare)
    if board.move_stack and rng.random() < 0.15:  # Going back makes repetitions.
        last = board.move_stack[-2] if len(board.move_stack) > 1 else None
        back = [m for m in moves if last and (m.from_square, m.to_square) == (last.to_square, last.from_square)]
        if back:
            return back[0]
    return rng.choice(moves)


def play(fen, max_plies, rng):
    board = chess.Board(fen)
    options = {"max_plies": max_plies} if fen == chess.STARTING_FEN else {"fen": fen, "max_plies": max_plies}
    actions, plies = [], []
    while not is_over(board, len(actions), max_plies):
        numbered = {action_number(board, m): m for m in board.legal_moves}
        legal = sorted(numbered)
        plies.append({"kind": "player", "to_play": 0 if board.turn == chess.WHITE else 1, "legal": legal})
        move = choose(board, [numbered[a] for a in legal], rng)
        actions.append(action_number(board, move))
        board.push(move)
    source = f"python-chess {chess.__version__}"
    line = {"game": "chess", "options": options, "source": source, "actions": actions, "plies": plies}
    return {**line, "returns": returns(board)}


def compare_with_pgx(games, rng):
    """Plays pgx's chess beside python-chess; en passant squares without a capture count in pgx's repetitions."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import pgx

    env = pgx.make("chess")
    init, step = jax.jit(env.init), jax.jit(env.step)
    plies, differing_ends = 0, 0
    for game in range(games):
        board, state = chess.Board(), init(jax.random.PRNGKey(game))
        white = int(state.current_player)
        while not is_over(board, plies=0, max_plies=512) and not bool(state.terminated):
            numbered = {action_number(board, m): m for m in board.legal_moves}
            mask = np.flatnonzero(np.asarray(state.legal_action_mask)).tolist()
            assert mask == sorted(numbered), (board.fen(), set(mask) ^ set(numbered))
            move = choose(board, [numbered[a] for a in mask], rng)
            state = step(state, jnp.int32(action_number(board, move)))
            board.push(move)
            plies += 1
        if len(board.move_stack) < 512 and is_over(board, 0, 512) != bool(state.terminated):
            differing_ends += 1
            continue
        rewards = np.asarray(state.rewards)
        assert [rewards[white], rewards[1 - white]] == returns(board), board.fen()
    print(f"pgx: {games} games, {plies} plies, masks and results equal; {differing_ends} ended apart")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=22)
    parser.add_argument("--plies", type=int, default=40, help="max_plies of the games")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", help="file of JSON lines")
    parser.add_argument("--pgx", action="store_true", help="compare python-chess with pgx instead")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    if args.pgx:
        compare_with_pgx(args.games, rng)
        return
    with open(args.out, "w", encoding="utf-8") as out:
        for game in range(args.games):
            line = play(STARTS[game % len(STARTS)], args.plies, rng)
            out.write(json.dumps(line, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
