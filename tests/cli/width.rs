//! Output fits into the available width: 80 characters in a pipe, or COLUMNS.

use super::*;

/// The characters of the longest line that could be broken: a path alone cannot.
fn widest(text: &str) -> usize {
    text.lines()
        .filter(|line| line.split_whitespace().nth(1).is_some())
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0)
}

#[test]
fn nothing_in_a_pipe_is_wider_than_80_characters() {
    let run = run();
    let positions = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/positions/tic_tac_toe.jsonl");
    let quick =
        ["--game", "tic_tac_toe", "--games", "1,4", "--net", "uniform", "--seconds", "0.05", "--sims", "8"];
    let texts = [
        RUN.1.clone(),
        stdout(&mut vecaz(&["eval", &run, "--against", "random", "--games", "6", "--sims", "8"])),
        stdout(&mut vecaz(&["eval", &run, "--positions", positions, "--sims", "8"])),
        stdout(vecaz(&["bench-scaling"]).args(quick)),
        stdout(&mut vecaz(&["verify", &run])),
        stdout(&mut vecaz(&["inspect", "--game", "go", "--actions", "0 1"])),
    ];
    for text in &texts {
        assert!(widest(text) <= 80 && text.lines().count() >= 1, "{}:\n{text}", widest(text));
    }
    for figure in ["won, ", "\n  win rate  ", "\n  score     ", "\n  Elo       "] {
        assert!(texts[1].contains(figure), "{}", texts[1]);
    }
    assert_eq!(texts[3].lines().next().map(|line| line.split_whitespace().count()), Some(9), "{}", texts[3]);
}

#[test]
fn a_wide_terminal_has_all_columns() {
    let args = ["bench-scaling", "--game", "tic_tac_toe", "--games", "1", "--net", "uniform"];
    let mut bench = vecaz(&args);
    let bench = stdout(bench.args(["--seconds", "0.05", "--sims", "8"]).env("COLUMNS", "200"));
    for column in ["select", "forward/s", "fwd eff", "depth", "idle", "MiB"] {
        assert!(bench.lines().next().is_some_and(|header| header.contains(column)), "{bench}");
    }
    let out = sibling_path("wide").display().to_string();
    let mut run = vecaz(&["run", "--game", "tic_tac_toe", "--epochs", "1", "--out", &out]);
    TINY.iter().for_each(|setting| {
        run.args(["--set", setting]);
    });
    let text = stdout(run.env("COLUMNS", "100"));
    assert!(text.contains("\nepoch  minutes   left  games/s "), "{text}");
    assert!(text.lines().any(|line| line.chars().count() > 80) && widest(&text) <= 100, "{text}");
}

/// Examples are complete, and every line of a paragraph is full: the first word of the next line does not fit. Text with its own line
/// breaks that is wrapped again has lines that are not full.
#[test]
fn help_is_wrapped_once() {
    for subcommand in Cli::command().get_subcommands() {
        let name = subcommand.get_name();
        let help = stdout(&mut vecaz(&[name, "--help"]));
        assert!(widest(&help) <= 80, "{name}: {help}");
        let examples = &help[help.find("Examples:").expect("examples")..];
        let source = subcommand.get_after_help().expect("examples").to_string();
        for example in source.lines().filter(|line| line.starts_with("  ")) {
            assert!(examples.contains(&format!("\n{example}\n")), "{name}: {example}");
        }
        let lines: Vec<&str> = examples.lines().collect();
        for pair in lines.windows(2) {
            let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ') && !line.ends_with(':');
            let next = pair[1].split(' ').next().unwrap_or_default();
            let broken = pair.iter().all(|line| is_prose(line));
            let could_take = pair[0].chars().count() + 1 + next.chars().count() <= 80;
            assert!(!(broken && could_take), "{name}: {pair:?}");
        }
    }
}
