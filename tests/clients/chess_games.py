#!/usr/bin/env python3
"""Games of python-chess's engine API with `vecaz engine` by UCI.

    python3 tests/clients/chess_games.py target/release/vecaz runs/chess --games 20

Every manner of play is tried: fixed time, nodes, a clock with increment, pondering, several best moves, an analysis that is
stopped. With Stockfish half of the games are against it. The protocol is checked by python-chess, which raises an error for whatever the
engine says wrongly; moves are checked by its rules, and clocks here.
"""

import argparse
import os
import shutil
import time

import chess
import chess.engine


def stockfish():
    path = os.environ.get("PATH", "") + os.pathsep + "/usr/games"
    return shutil.which("stockfish", path=path)


def play(white, black, limit_of, ponder=False, max_plies=300):
    """One game; returns the board and the clocks."""
    board = chess.Board()
    clocks = [1.0, 1.0]
    while not board.is_game_over() and board.ply() < max_plies:
        engine = white if board.turn == chess.WHITE else black
        side = 0 if board.turn == chess.WHITE else 1
        start = time.monotonic()
        result = engine.play(board, limit_of(clocks), ponder=ponder, info=chess.engine.INFO_ALL)
        used = time.monotonic() - start
        assert result.move in board.legal_moves, (result.move, board.fen())
        if limit_of is by_clock:
            assert used < clocks[side], f"{engine.id['name']}: {used:.3f} s of {clocks[side]:.3f} s at ply {board.ply()}"
            clocks[side] += 0.01 - used
        board.push(result.move)
    return board, clocks


def by_clock(clocks):
    return chess.engine.Limit(white_clock=clocks[0], black_clock=clocks[1], white_inc=0.01, black_inc=0.01)


MANNERS = [
    ("20 ms a move", lambda _: chess.engine.Limit(time=0.02), False),
    ("30 nodes a move", lambda _: chess.engine.Limit(nodes=30), False),
    ("1 s + 10 ms", by_clock, False),
    ("1 s + 10 ms, pondering", by_clock, True),
    ("depth 2", lambda _: chess.engine.Limit(depth=2, nodes=100), False),
]


def analyse(engine):
    """Several lines, and an analysis that is stopped."""
    board = chess.Board()
    lines = engine.analyse(board, chess.engine.Limit(nodes=200), multipv=4)
    assert len(lines) == 4, lines
    for line in lines:
        copy = board.copy()
        for move in line["pv"]:
            copy.push(move)  # raises if illegal
        assert line["score"].pov(chess.WHITE).score(mate_score=100_000) is not None and line["nodes"] > 0
    with engine.analysis(board) as analysis:
        for number, _ in enumerate(analysis):
            if number == 5:
                analysis.stop()
                break
    restricted = engine.play(board, chess.engine.Limit(nodes=50), root_moves=[chess.Move.from_uci("a2a3")])
    assert restricted.move == chess.Move.from_uci("a2a3")
    print("4 lines, a stopped analysis, restricted moves: ok")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vecaz")
    parser.add_argument("run")
    parser.add_argument("--games", type=int, default=20)
    args = parser.parse_args()
    command = [args.vecaz, "engine", args.run, "--threads", "1"]
    other = stockfish()
    results = {}
    with chess.engine.SimpleEngine.popen_uci(command) as engine:
        engine.configure({"UCI_ShowWDL": True, "Hash": 128, "Move Overhead": 50})
        analyse(engine)
    for game in range(args.games):
        name, limit, ponder = MANNERS[game % len(MANNERS)]
        with chess.engine.SimpleEngine.popen_uci(command) as engine:
            engine.configure({"Move Overhead": 50})
            against = other if other and game % 2 else None
            rival = chess.engine.SimpleEngine.popen_uci([against] if against else command)
            try:
                sides = (engine, rival) if game % 4 < 2 else (rival, engine)
                board, clocks = play(*sides, limit, ponder)
            finally:
                rival.quit()
        result = board.result(claim_draw=True)
        rival_name = "Stockfish" if against else "itself"
        results[result] = results.get(result, 0) + 1
        print(f"game {game + 1}: {name}, against {rival_name}: {board.ply()} plies, {result}", flush=True)
    print(f"{args.games} games without a protocol error: {results}")


if __name__ == "__main__":
    main()
