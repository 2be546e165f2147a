//! `vecaz verify` on whole and altered runs.

use super::*;

#[test]
fn verify_finds_nothing_in_a_run_and_a_game_that_was_altered() {
    let text = stdout(&mut vecaz(&["verify", &run()]));
    assert!(text.ends_with("nothing differs\n") && !text.starts_with("0 games"), "{text}");
    let found = &records(&stdout(&mut vecaz(&["verify", &run(), "--json", "-"])))[0];
    assert_eq!(found["differences"], json!([]));
    let altered = sibling_path("altered");
    copy(Path::new(&run()), &altered);
    let altered = altered.to_str().expect("UTF-8");
    let path = Path::new(altered).join("games/epoch-000001.jsonl");
    let stored = std::fs::read_to_string(&path).expect("read");
    let mut game: Value = records(&stored).swap_remove(0);
    let plies = game["actions"].as_array().map(Vec::len);
    game["returns"] = json!([0.25, -0.25]);
    std::fs::write(&path, format!("{game}\n")).expect("written");
    let (code, line) = refusal(&mut vecaz(&["verify", altered]));
    assert!(code == 1 && line.contains("2 of ") && line.contains("epoch-000001.jsonl: has "), "{line}");
    // No manifest is written for it either.
    let (code, line) = refusal(&mut vecaz(&["verify", altered, "--accept"]));
    assert!(code == 1 && line.contains("1 of ") && line.contains("line 1: returns"), "{line}");
    game["actions"].as_array_mut().expect("a list").pop();
    std::fs::write(&path, format!("{game}\n")).expect("written");
    let (_, line) = refusal(&mut vecaz(&["verify", altered, "--accept"]));
    assert!(line.contains("the game is not over after the stored actions"), "{plies:?}: {line}");
}

pub(super) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("made");
    for entry in std::fs::read_dir(from).expect("listed") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).expect("copied");
        }
    }
}

#[test]
fn verify_passes_where_self_play_is_in_bf16() {
    let out = sibling_path("bf16").display().to_string();
    let mut command = vecaz(&["run", "--quiet", "--game", "tic_tac_toe", "--epochs", "1", "--out", &out]);
    TINY.iter().chain(&["net.precision=bf16"]).for_each(|setting| {
        command.args(["--set", setting]);
    });
    stdout(&mut command);
    let config = std::fs::read_to_string(PathBuf::from(&out).join("config.toml")).expect("read");
    assert!(config.contains("precision = \"bf16\""), "{config}");
    let text = stdout(&mut vecaz(&["verify", &out]));
    assert!(text.ends_with("networks checked, nothing differs\n") && !text.contains(" 0 networks"), "{text}");
}
