//! A terminal: what is drawn on each kind, and what happens when it is closed. `script` of util-linux makes the terminals.

use super::long_work::wait_until;
use super::*;
use std::io::Read;
use std::process::{Child, Command as Process};
use std::thread::sleep;
use std::time::Duration;

/// Runs the line of a shell on a new terminal, with only these variables of its own. `$VECAZ` is the program.
fn start(line: &str, variables: &[(&str, &str)]) -> Child {
    let mut process = Process::new("script");
    process.args(["--quiet", "--flush", "--return", "--command", line, "/dev/null"]);
    for name in [
        "VECAZ_LOG",
        "COLUMNS",
        "TERM",
        "NO_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "LC_ALL",
        "LC_CTYPE",
        "LANG",
    ] {
        process.env_remove(name);
    }
    process.env("SHELL", "/bin/sh").env("VECAZ", assert_cmd::cargo::cargo_bin("vecaz"));
    process.envs(variables.iter().copied()).stdin(Stdio::null()).stdout(Stdio::piped());
    process.spawn().expect("script of util-linux runs")
}

/// What a match of `games`, of some tenths of a second, shows on a terminal.
fn shown(games: u32, flags: &str, variables: &[(&str, &str)]) -> String {
    let line =
        format!("\"$VECAZ\" eval {} --against random --games {games} --sims 200 --threads 1 {flags}", run());
    let output = start(&line, variables).wait_with_output().expect("ends");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{text}");
    text
}

/// The same with a bar that is not full, which a match needs some time for.
fn with_bar(flags: &str, variables: &[(&str, &str)]) -> String {
    let has_bar = |text: &String| text.contains("match") && (text.contains('─') || text.is_ascii());
    let mut texts = [40, 160, 640].map(|games| move || shown(games, flags, variables)).into_iter();
    texts.find_map(|text| Some(text()).filter(has_bar)).expect("a bar in one of three matches")
}

#[test]
fn bars_have_the_colours_and_the_characters_that_the_variables_name() {
    const CYAN: &str = "\u{1b}[36m";
    const UTF8: (&str, &str) = ("LC_ALL", "C.UTF-8");
    const XTERM: (&str, &str) = ("TERM", "xterm");
    let in_colour = with_bar("", &[XTERM, UTF8]);
    assert!(in_colour.contains('─') && in_colour.contains(CYAN), "{in_colour:?}");
    let empty = with_bar("", &[XTERM, UTF8, ("NO_COLOR", "")]);
    assert!(empty.contains(CYAN), "an empty variable is not set: {empty:?}");
    let forced = with_bar("--color always", &[XTERM, UTF8, ("NO_COLOR", "1")]);
    assert!(forced.contains(CYAN), "{forced:?}");
    for (flags, variable) in
        [("", ("NO_COLOR", "1")), ("", ("CLICOLOR", "0")), ("--color never", ("CLICOLOR_FORCE", "1"))]
    {
        let plain = with_bar(flags, &[XTERM, UTF8, variable]);
        assert!(plain.contains('─') && !plain.contains("[36m"), "{variable:?}: {plain:?}");
    }
    let ascii = with_bar("", &[XTERM, ("LC_ALL", "C")]);
    assert!(ascii.is_ascii() && ascii.contains("match"), "{ascii:?}");
    for dumb in [&[("TERM", "dumb")][..], &[]] {
        let lines = shown(40, "", dumb);
        assert!(!lines.contains('\u{1b}') && lines.contains("against random: "), "{lines:?}");
    }
}

/// Closes the terminal of `line`, in which SIGHUP is ignored, once `is_ready`. Returns the exit code that the line ends with.
fn code_without_terminal(name: &str, line: &str, is_ready: impl FnMut() -> bool) -> String {
    let code = sibling_path(&format!("{name}.code"));
    let mut terminal =
        start(&format!("trap '' HUP; {line}; echo $? > {}", code.display()), &[("TERM", "xterm")]);
    wait_until(is_ready);
    terminal.kill().and_then(|()| terminal.wait()).expect("closed");
    let written = || std::fs::read_to_string(&code).unwrap_or_default();
    wait_until(|| written().ends_with('\n'));
    written().trim().to_string()
}

#[test]
fn a_run_goes_on_when_its_terminal_is_closed() {
    let folder = sibling_path("closed_terminal");
    let settings: String = TINY.iter().map(|setting| format!(" --set {setting}")).collect();
    let line = format!(
        "\"$VECAZ\" run --game tic_tac_toe --threads 1 --epochs 12{settings} --out {}",
        folder.display()
    );
    let epochs = || std::fs::read_to_string(folder.join("metrics.jsonl")).unwrap_or_default().lines().count();
    assert_eq!(code_without_terminal("run", &line, || epochs() >= 1), "0");
    assert_eq!(epochs(), 12);
}

#[test]
fn a_command_whose_result_finds_no_terminal_ends_as_by_sighup() {
    for (name, command) in [
        ("config", "config".to_string()),
        ("eval", format!("eval {} --against random --games 2 --sims 8", run())),
        ("play", format!("play {} --sims 8", run())),
    ] {
        let (begun, closed) =
            (sibling_path(&format!("{name}.begun")), sibling_path(&format!("{name}.closed")));
        let line = format!(
            "touch {}; while ! test -e {}; do sleep 0.05; done; \"$VECAZ\" {command}",
            begun.display(),
            closed.display()
        );
        let close = || {
            // The terminal is closed after this; the command begins half a second later.
            let is_begun = begun.exists();
            if is_begun {
                let closed = closed.clone();
                std::thread::spawn(move || {
                    sleep(Duration::from_millis(500));
                    std::fs::write(closed, "").expect("written");
                });
            }
            is_begun
        };
        assert_eq!(code_without_terminal(name, &line, close), "129", "{command}");
    }
}

/// One line on stderr, after ten seconds, where a bar cannot be drawn.
#[test]
fn a_dumb_terminal_has_lines() {
    let settings = TINY.iter().chain(&["selfplay.samples_per_epoch=1000000000"]);
    let settings: String = settings.map(|setting| format!(" --set {setting}")).collect();
    let folder = sibling_path("dumb_terminal");
    let line = format!(
        "exec \"$VECAZ\" run --game tic_tac_toe --threads 1 --minutes 2{settings} --out {}",
        folder.display()
    );
    let mut child = start(&line, &[("TERM", "dumb")]);
    let mut text = Vec::new();
    let mut part = [0; 4096];
    let shown = child.stdout.as_mut().expect("a pipe");
    while !String::from_utf8_lossy(&text).contains("self-play: ") {
        let count = shown.read(&mut part).expect("read");
        assert!(count > 0, "no line before the end: {}", String::from_utf8_lossy(&text));
        text.extend(&part[..count]);
    }
    assert!(!text.contains(&0x1b), "{}", String::from_utf8_lossy(&text));
    child.kill().and_then(|()| child.wait()).expect("closed");
}
