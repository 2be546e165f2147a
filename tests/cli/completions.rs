//! Completions of shells and man pages.

use super::*;

#[test]
fn every_shell_gets_all_commands_and_the_games() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let text = stdout(&mut vecaz(&["completions", shell]));
        for subcommand in Cli::command().get_subcommands() {
            assert!(text.contains(subcommand.get_name()), "{shell}: {}", subcommand.get_name());
        }
        // The scripts for the other two have no values of arguments.
        let has_values = ["bash", "fish", "zsh"].contains(&shell);
        assert!(text.contains("resume") && (text.contains("tic_tac_toe") || !has_values), "{shell}");
    }
    let (code, line) = refusal(&mut vecaz(&["completions", "tcsh"]));
    assert!(code == 2 && line.contains("tcsh") && line.contains("bash"), "{line}");
}

/// The shell itself reads the script and completes with it.
#[cfg(unix)]
#[test]
fn bash_completes_a_command_a_flag_and_a_game() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().display().to_string();
    assert_eq!(stdout(&mut vecaz(&["completions", "bash", "--out", &out])), "");
    let script = format!(
        "source '{out}/vecaz'; complete_line() {{ COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
         _vecaz vecaz \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; echo \"${{COMPREPLY[@]}}\"; }}; \
         complete_line vecaz ver; complete_line vecaz run --ep; complete_line vecaz run --game conn"
    );
    let output =
        std::process::Command::new("bash").args(["--norc", "-c", &script]).output().expect("bash runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(text, "verify\n--epochs\nconnect_four\n", "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_command_has_a_man_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().display().to_string();
    stdout(&mut vecaz(&["completions", "man", "--out", &out]));
    let page = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect(name);
    assert_eq!(page("vecaz.1"), stdout(&mut vecaz(&["completions", "man"])));
    for subcommand in Cli::command().get_subcommands() {
        let name = subcommand.get_name();
        let text = page(&format!("vecaz-{name}.1"));
        assert!(text.contains(".SH SYNOPSIS") && text.contains("vecaz"), "{text}");
        for flag in subcommand
            .get_opts()
            .filter(|option| !option.is_hide_set())
            .filter_map(|option| option.get_long())
        {
            assert!(text.contains(&flag.replace('-', "\\-")), "{name}: {flag}: {text}");
        }
    }
}
