//! The findings of the clique game, compared with graphs checked and encoded by networkx: see `tests/oracles/clique.py`.

use serde_json::Value;
use std::collections::BTreeSet;
use vecaz::batch::Playthrough;
use vecaz::game::Turn;
use vecaz::registry::any_game;

#[test]
fn colourings_are_encoded_as_by_networkx() {
    let mut found = 0;
    for line in include_str!("fixtures/playthroughs/clique.jsonl").lines() {
        let case: Value = serde_json::from_str(line).expect("a fixture line");
        let options = serde_json::from_value(case["options"].clone()).expect("options");
        let mut play = Playthrough::new(any_game("clique", &options).expect("a game"));
        for action in case["actions"].as_array().expect("actions") {
            assert_eq!(play.game().finding(play.state()), None, "the game still goes on");
            play.step(action.as_u64().expect("a number") as u16).expect("legal");
        }
        assert_eq!(play.turn(), Turn::Over);
        let finding = play.game().finding(play.state()).unwrap_or(Value::Null);
        assert_eq!(finding, case["finding"], "{}", case["options"]);
        found += usize::from(!finding.is_null());
    }
    assert_eq!(found, 10);
}

const PENTAGONS: &str = "
[game]
name = 'clique'
n = 5
k = 3
mode = 'avoid_clique'
[net]
arch = 'mlp'
blocks = 1
channels = 16
[search]
simulations = 8
[selfplay]
games = 16
samples_per_epoch = 1500
opening_plies = 6
[train]
batch = 64
min_samples = 1000
[eval]
every = 0
";

/// A list of pairs as numbers.
fn pairs(edges: &Value) -> BTreeSet<(u64, u64)> {
    let number = |value: &Value| value.as_u64().expect("a vertex");
    edges.as_array().expect("edges").iter().map(|e| (number(&e[0]), number(&e[1]))).collect()
}

/// The edges of a graph6 text (B. McKay's format), column by column of the upper triangle.
fn decoded(graph6: &str) -> BTreeSet<(u64, u64)> {
    let mut bytes = graph6.bytes().map(|byte| byte - 63);
    let n = u64::from(bytes.next().expect("the number of vertices"));
    let bits: Vec<bool> = bytes.flat_map(|byte| (0..6).rev().map(move |bit| byte >> bit & 1 == 1)).collect();
    let edges = (1..n).flat_map(|j| (0..j).map(move |i| (i, j)));
    edges.zip(bits).filter(|(_, bit)| *bit).map(|(edge, _)| edge).collect()
}

#[test]
fn a_run_saves_every_colouring_it_finds_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let (config, run) = (folder.path().join("pentagons.toml"), folder.path().join("run"));
    std::fs::write(&config, PENTAGONS).expect("written");
    let mut command = assert_cmd::Command::cargo_bin("vecaz").expect("the program is built");
    command.args(["run", "--epochs", "2", "--threads", "2", "--config"]).arg(config).arg("--out").arg(&run);
    let output = command.env_remove("VECAZ_LOG").assert().success();
    let table = String::from_utf8_lossy(&output.get_output().stdout).into_owned();

    let text = std::fs::read_to_string(run.join("findings.jsonl")).expect("something was found");
    let mut reds = BTreeSet::new();
    for line in text.lines() {
        let found: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!((&found["n"], &found["k"]), (&5.into(), &3.into()));
        let [red, blue] = [0, 1].map(|player| pairs(&found["edges"][player]));
        for (player, edges) in [&red, &blue].into_iter().enumerate() {
            assert_eq!(*edges, decoded(found["graph6"][player].as_str().expect("text")), "{line}");
        }
        let all: BTreeSet<(u64, u64)> = (0..5).flat_map(|j| (0..j).map(move |i| (i, j))).collect();
        assert!(
            red.is_disjoint(&blue) && red.union(&blue).copied().collect::<BTreeSet<_>>() == all,
            "{line}"
        );
        for (a, b, c) in [0, 1, 2]
            .into_iter()
            .flat_map(|a| (a + 1..4).flat_map(move |b| (b + 1..5).map(move |c| (a, b, c))))
        {
            let side = |edge| red.contains(&edge);
            let sides = [side((a, b)), side((a, c)), side((b, c))];
            assert!(sides.contains(&true) && sides.contains(&false), "triangle {a} {b} {c} of {line}");
        }
        assert!(reds.insert(red), "twice: {line}");
    }
    // Either colour is a pentagon; five labelled points have 4! / 2 = 12 of them.
    assert!((6..=12).contains(&reds.len()), "{} colourings", reds.len());
    let columns = |line: &str| line.split_whitespace().last().map(str::to_string);
    let rows = table.lines().skip_while(|line| columns(line).as_deref() != Some("findings"));
    assert!(rows.skip(1).any(|line| columns(line) == Some(reds.len().to_string())), "{table}");
    let metrics = std::fs::read_to_string(run.join("metrics.jsonl")).expect("read");
    let last: Value = serde_json::from_str(metrics.lines().last().expect("an epoch")).expect("JSON");
    assert_eq!(last["findings"], reds.len());
}
