"""Results of a verb -> its page in Markdown, whatever of it has run."""

import goals
import logs
import tables

# Last lines of a log that are kept.
TAIL = 5
NOT_MEASURED = "Not measured.\n"


def verdict(part):
    """How a part went, in a few words."""
    if part["exit"] is None:
        return part["reason"]
    if part["exit"] == 0:
        return "passed"
    return f"failed ({part['exit']}): {part['reason']}"


def cell(text):
    return text.replace("|", "\\|")


class Rows:
    """Rows by the beginning of their part's name."""

    def __init__(self, parts):
        self.parts = parts

    def __getitem__(self, prefix):
        return [row for part in self.parts if part["name"].startswith(prefix) for row in part["rows"]]


def sections(verb, rows):
    """Title of each section, and a function that gives its text, empty where nothing was measured."""
    search = rows["search-"]
    libraries = rows["libraries"]
    yield "This machine", lambda: libraries and tables.library_table(libraries[0])
    chosen = [goal for goal in goals.GOALS if verb == goal.verb or (verb == "parts" and goal.measured(rows) is not None)]
    yield "Goals and estimates", lambda: tables.goal_table(chosen, rows)
    if verb in ("first", "parts"):
        play, pgx = rows["random-play"], rows["pgx-"]
        yield "Pure search", lambda: verb == "first" and search and tables.search_table(search)
        yield "Forward, bf16", lambda: rows["forward"] and tables.forward_table(rows["forward"])
        yield "Random play beside pgx", lambda: play and tables.play_table(play, pgx)
    if verb in ("rates", "parts"):
        hex13, candle, train = rows["search-hex13"], rows["candle"], rows["train"]
        mctx, torch = rows["mctx-"], rows["torch-"]
        yield "Search", lambda: search and tables.search_table(search)
        yield "Hex 13x13", lambda: hex13 and tables.hex_text(hex13[0])
        yield "Kernels of the searches", lambda: search and tables.kernel_table(search)
        yield "Search beside mctx + pgx", lambda: search and mctx and tables.mctx_table(search, mctx)
        yield "Training beside PyTorch", lambda: train and tables.train_table(train, torch)
        yield "Forward beside candle's kernels", lambda: candle and tables.candle_table(candle)
    if verb in ("deep", "parts"):
        heavy, profiles, learn = rows["profile-"], rows["ncu-"], rows["learn"]
        yield "Heaviest kernels", lambda: heavy and tables.kernel_table(tables.measured(heavy))
        yield "Profiles of them", lambda: profiles and tables.profile_table(profiles, logs.METRICS)
        yield "Connect Four from zero", lambda: learn and tables.learning_table(learn)


def text_of(section):
    """A section's text. What cannot be shown costs no other section; its rows are in results.json."""
    try:
        return section() or NOT_MEASURED
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        return f"Measured, but not shown: {type(error).__name__}: {error}.\n"


def page(results):
    parts = results["parts"]
    text = f"# On a GPU, {results['date']}\n\n{results['title']}. Commit {results['commit'][:10]}, `gpu_machine.sh {results['verb']}`.\n"
    if results["kernels_from"]:
        text += f"\n**The kernels are those in {results['kernels_from']}, not those of this commit (VECAZ_KERNELS).**\n"
    head = ("part", "result", "seconds", "programs compiled", "command")
    lines = [(p["name"], cell(verdict(p)), p["seconds"], p["programs_compiled"], f"`{cell(p['command'])}`") for p in parts]
    text += "\n" + tables.table(head, lines)
    for title, section in sections(results["verb"], Rows(parts)):
        shown = text_of(section)
        # Of chosen parts, only what they measured is there.
        if results["verb"] != "parts" or shown != NOT_MEASURED:
            text += f"\n## {title}\n\n{shown}"
    for part in parts:
        if part["exit"] and len(part["last_lines"]) > 1:
            text += f"\n## {part['name']}: last lines\n\n" + "".join(f"    {line}\n" for line in part["last_lines"])
    return text
