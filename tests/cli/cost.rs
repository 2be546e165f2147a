//! `vecaz tune` and `vecaz plan`.

use super::*;

#[test]
fn the_tuned_configuration_is_one_of_those_tried_and_a_run_takes_it() {
    let file = sibling_path("tuned.toml");
    let out = file.to_str().expect("UTF-8");
    let game = ["tune", "--game", "tic_tac_toe", "--minutes", "0.1", "--set", "search.simulations=8"];
    let text = stdout(vecaz(&game).args(["--threads", "1", "--games", "16,32", "--out", out]));
    let table: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .filter(|row: &Vec<&str>| row.len() == 7)
        .collect();
    let [header, first, ..] = &table[..] else { panic!("{text}") };
    assert_eq!(header.join(" "), "threads N L passes cache sims/s ratio");
    assert_eq!(
        (first[1], first[6]),
        ("32", "1.00"),
        "the nearest to the configuration's 128 comes first: {text}"
    );
    let config: toml::Table = std::fs::read_to_string(&file).expect("written").parse().expect("TOML");
    let key = |section: &str, key: &str| config[section][key].as_integer().expect("a number").to_string();
    let (games, passes) = (key("selfplay", "games"), key("selfplay", "passes_per_poll"));
    let cache = key("search", "cache_entries");
    let tried = |row: &&Vec<&str>| row[1] == games && row[3] == passes && row[4] == cache;
    assert!(table.iter().any(|row| tried(&row)), "{games} {passes} {cache}: {text}");
    assert!(["16", "32"].contains(&games.as_str()), "{games}");
    assert!(!text.contains("the configuration's own"), "which was not measured: {text}");
    assert!(text.contains(&format!("\n  vecaz run --config {out}\n")), "{text}");
    let run = sibling_path("of_tuned");
    let args = ["run", "--config", out, "--epochs", "1", "--quiet", "--out", run.to_str().expect("UTF-8")];
    vecaz(&args).assert().success();
    let (code, line) = refusal(&mut vecaz(&["tune", "--minutes", "0"]));
    assert!(code == 2 && line.contains("--minutes: got 0, expected more than 0"), "{line}");
}

#[test]
fn a_plan_follows_from_a_short_run_or_from_a_run_that_is_there() {
    let args = ["plan", "--game", "tic_tac_toe", "--seconds", "1", "--total-games", "1000", "--price", "36"];
    let text = stdout(&mut vecaz(&args));
    for part in [
        "tic_tac_toe: a run of 1 s on ",
        "memory: ",
        "% self-play",
        " training, up to 9 % evaluation\n",
        "a day: ",
        "1000 games: ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = stdout(&mut vecaz(&["plan", "--run", &run()]));
    let records = std::fs::read_to_string(Path::new(&run()).join("metrics.jsonl")).expect("a log");
    let last: Value = serde_json::from_str(records.lines().last().expect("a record")).expect("JSON");
    let seconds = last["seconds"].as_f64().expect("a number");
    let shown = text.split("the last ").nth(1).and_then(|rest| rest.split(' ').next()).map(str::parse::<f64>);
    assert!(shown.and_then(Result::ok).is_some_and(|shown| shown <= seconds + 0.5), "{text}");
    let rates = sibling_path("rates.json");
    std::fs::write(&rates, "[]").expect("written");
    let rates = rates.to_str().expect("UTF-8");
    for (arguments, code, part) in [
        (vec!["plan", "--seconds", "0"], 2, "--seconds: got 0, expected from 1 to 86400"),
        (vec!["plan", "--price=-1"], 2, "--price: got -1, expected 0 or more"),
        (vec!["plan", "--rates", rates], 1, "rates.json: it has no rows"),
    ] {
        let (got, line) = refusal(&mut vecaz(&arguments));
        assert!(got == code && line.contains(part), "{got}: {line}");
    }
}

/// Trees on a GPU, and the training of a network there, take no memory of the host.
#[cfg(feature = "cuda")]
#[test]
fn a_plan_of_a_run_on_a_gpu_has_its_memory() {
    let copy = sibling_path("on_a_gpu");
    verify::copy(Path::new(&run()), &copy);
    let (file, copy) = (copy.join("config.toml"), copy.display().to_string());
    let text = std::fs::read_to_string(&file).expect("read");
    let on_gpu = text.replace("device = \"cpu\"", "device = \"cuda\"");
    assert_ne!(on_gpu, text);
    std::fs::write(&file, on_gpu).expect("written");
    stdout(&mut vecaz(&["verify", &copy, "--accept"]));
    let text = stdout(&mut vecaz(&["plan", "--run", &copy])).replace("\n  ", " ");
    for part in ["trees 0 MiB", "training 0 MiB"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_plan_names_what_it_does_not_count() {
    let plan = |settings: &[&str]| {
        let mut command = vecaz(&["plan", "--game", "tic_tac_toe", "--seconds", "1"]);
        settings.iter().for_each(|setting| {
            command.args(["--set", setting]);
        });
        stdout(&mut command).replace("\n  ", " ")
    };
    let text = plan(&["search.simulations=800", "train.min_samples=40000", "eval.share=0"]);
    for part in [
        " % self-play, 0 % training, 0 % evaluation\n",
        "\nevaluation is not counted, since eval.share = 0 does not limit its time\n",
        "\ntraining is not counted: ",
        " played, and the first update needs 40000 (train.min_samples, train.replay_ratio); set more --seconds\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = plan(&["train.replay_ratio=0", "eval.every=0"]);
    assert!(text.contains(" 0 % training, 0 % evaluation\n") && !text.contains("not counted"), "{text}");
}
