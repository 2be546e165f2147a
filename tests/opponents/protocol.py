"""The opponent's side of the line protocol of `vecaz eval --against exec:COMMAND`; see `src/eval/external.rs`."""

import json
import sys


def serve(choose):
    """Answers each question on stdin with `choose(question)`, an action's number or name, until there are no more."""
    for line in sys.stdin:
        question = json.loads(line)
        legal = question["legal"]
        action = legal[0] if len(legal) == 1 else choose(question)
        print(json.dumps({"action": action}), flush=True)
