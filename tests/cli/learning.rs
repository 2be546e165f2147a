//! `vecaz run` says so where a network learns nothing.

use super::report::between;
use super::*;

/// Games of 24 plies, all drawn, with one simulation a ply: the search has nothing to prefer an action for.
const ONE_SIMULATION: &[&str] = &[
    "game.name='chess'",
    "game.max_plies=24",
    "net.arch='mlp'",
    "net.blocks=1",
    "net.channels=16",
    "search.simulations=1",
    "search.cache_entries=0",
    "selfplay.games=8",
    "selfplay.samples_per_epoch=400",
    "selfplay.opening_plies=4",
    "replay.capacity=2000",
    "train.batch=64",
    "train.warmup_updates=20",
    "eval.every=0",
];
const TIC_TAC_TOE: &[&str] = &[
    "game.name='tic_tac_toe'",
    "selfplay.games=32",
    "selfplay.samples_per_epoch=1500",
    "search.cache_entries=0",
    "replay.capacity=6000",
    "train.batch=64",
    "eval.every=0",
];

/// What a run with these settings prints, in one line, and its report.
fn printed_and_report(arguments: &[&str], settings: &[&str], folder: &str) -> (String, String) {
    let mut command = vecaz(&["run"]);
    command.args(arguments).arg(folder);
    settings.iter().for_each(|setting| {
        command.args(["--set", setting]);
    });
    let printed = stdout(&mut command);
    let report = std::fs::read_to_string(Path::new(folder).join("report.html")).expect("a report");
    (printed.split_whitespace().collect::<Vec<_>>().join(" "), report)
}

#[test]
fn a_run_with_one_simulation_warns_after_three_epochs_once_also_if_it_is_resumed() {
    let [whole, parts] =
        ["one_simulation", "one_simulation_resumed"].map(|name| sibling_path(name).display().to_string());
    let (printed, report) = printed_and_report(&["--epochs", "5", "--out"], ONE_SIMULATION, &whole);
    let warning = between(&printed, "warning: ", " or search.c_scale (now 1)");
    assert_eq!(warning.len(), 1, "{printed}");
    assert!(
        warning[0].starts_with("the search teaches the policy nothing: in epochs 1 to 3 its targets"),
        "{printed}"
    );
    assert!(warning[0].ends_with("raise search.simulations (now 1)"), "{printed}");
    assert_eq!(
        report.matches("Warning: the search teaches the policy nothing: in epochs 1 to 5 ").count(),
        1
    );

    let of = |arguments: &[&str]| printed_and_report(arguments, &[], &parts).0;
    let (first, _) = printed_and_report(&["--epochs", "2", "--out"], ONE_SIMULATION, &parts);
    let (third, fifth) = (of(&["--epochs", "3", "--resume"]), of(&["--epochs", "5", "--resume"]));
    let warnings =
        [&first, &third, &fifth].map(|printed| between(printed, "warning: ", " or search.c_scale").concat());
    assert_eq!(warnings, ["", warning[0], ""].map(String::from));
}

#[test]
fn a_run_that_learns_has_no_warning_but_without_a_learning_rate_it_has() {
    let run = |name: &str, rate: &str| {
        let settings = [TIC_TAC_TOE, &[rate]].concat();
        printed_and_report(&["--epochs", "4", "--out"], &settings, &sibling_path(name).display().to_string())
    };
    let (printed, report) = run("learns", "train.lr=2e-3");
    assert!(!printed.contains("warning") && !report.contains("Warning"), "{printed}");
    let (printed, report) = run("learns_nothing", "train.lr=0.0");
    let sentence = "the network learns nothing about results: in epochs 1 to ";
    assert!(printed.contains(&format!("warning: {sentence}3 the value loss")), "{printed}");
    assert_eq!(printed.matches("warning").count(), 1, "{printed}");
    assert!(printed.contains("change train.lr (now 0)"), "{printed}");
    assert!(report.contains(&format!("<p class=\"warning\">Warning: {sentence}4 the value loss")));
}
