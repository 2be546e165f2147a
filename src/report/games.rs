//! The section of a page with games on a board, in the same file.

use super::bundle;
use super::changes::change;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write;

/// Bytes of the games of one section.
const MAX_BYTES: usize = 600_000;

/// A game of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReportGame {
    /// Its name in the list.
    pub title: String,
    /// The names of actions and chance outcomes.
    pub moves: Vec<String>,
    /// The result in words, with players as "player 0".
    pub result: String,
    /// The result. `[P]`
    pub returns: Vec<f32>,
    /// The raw scores. `[P]`
    pub scores: Vec<f32>,
    /// The first position, a [`crate::game::view::View`].
    first: Value,
    /// The changes to each next position.
    changes: Vec<Value>,
}

impl ReportGame {
    /// A game with these positions, one more than `moves`, and its result in words, as returns and as scores.
    pub fn new(
        title: String,
        moves: Vec<String>,
        (result, returns, scores): (String, Vec<f32>, Vec<f32>),
        views: Vec<Value>,
    ) -> Self {
        let changes = views.windows(2).map(|pair| change(&pair[0], &pair[1])).collect();
        let first = views.into_iter().next().unwrap_or_default();
        Self { title, moves, result, returns, scores, first, changes }
    }
}

/// Sections of games on one page, which has script and styles once.
#[derive(Debug, Default)]
pub(super) struct GameSections {
    html: String,
}

impl GameSections {
    /// Adds a section with the first of `games` that fit, unless there are none.
    pub fn add(&mut self, title: &str, games: &[ReportGame], escape: fn(&str) -> String) {
        let (mut list, mut bytes) = (Vec::new(), 0);
        for game in games {
            // A `<` would end the element or begin a comment in it.
            let text = serde_json::to_string(game).unwrap_or_default().replace('<', "\\u003c");
            bytes += text.len();
            if bytes > MAX_BYTES && !list.is_empty() {
                break;
            }
            list.push(text);
        }
        if !list.is_empty() {
            let _ = writeln!(
                self.html,
                "<h2>{}</h2>\n<section class=\"games\" tabindex=\"-1\" aria-label=\"{}\"><script type=\"application/json\">[{}]</script></section>",
                escape(title),
                escape(title),
                list.join(",")
            );
        }
    }

    /// The sections with what they need; nothing without a section.
    pub fn html(self) -> String {
        match self.html.is_empty() {
            true => String::new(),
            false => format!(
                "<style>{}</style>\n{}<script>\n{}</script>\n",
                bundle::style(),
                self.html,
                bundle::script()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn game(title: &str, positions: usize) -> ReportGame {
        let view = |ply: usize| json!({"board": {"kind": "text", "text": format!("ply {ply} </script>")}, "last": []});
        let moves = (1..positions).map(|ply| format!("move {ply}")).collect();
        let views = (0..positions).map(view).collect();
        let result = ("player 0 wins".into(), vec![1.0, -1.0], vec![1.0, -1.0]);
        ReportGame::new(title.into(), moves, result, views)
    }

    #[test]
    fn a_section_has_its_games_and_a_page_its_script_once() {
        let mut sections = GameSections::default();
        sections.add("None", &[], str::to_string);
        assert!(sections.html.is_empty());
        sections.add("First <run>", &[game("a", 3), game("b", 2)], |text| text.replace('<', "&lt;"));
        sections.add("Second", &[game("c", 4)], str::to_string);
        let html = sections.html();
        assert_eq!(html.matches("const modules").count(), 1);
        assert_eq!(html.matches("</script>").count(), 3, "texts end no element");
        assert!(html.contains("<h2>First &lt;run></h2>"));
        let list = html.split("application/json\">").nth(1).and_then(|rest| rest.split("</script>").next());
        let list: Vec<Value> = serde_json::from_str(list.expect("games")).expect("JSON");
        assert_eq!((list.len(), list[0]["changes"].as_array().map(Vec::len)), (2, Some(2)));
        assert_eq!(list[0]["first"]["board"]["text"], "ply 0 </script>");
        assert_eq!(GameSections::default().html(), "");
    }

    #[test]
    fn games_beyond_the_size_are_left_out_but_for_one() {
        let long = |title: &str| {
            let mut game = game(title, 2);
            game.moves = vec!["x".repeat(MAX_BYTES); 1];
            game
        };
        let mut sections = GameSections::default();
        sections.add("Long", &[long("a"), long("b")], str::to_string);
        assert!(sections.html.contains("\"title\":\"a\"") && !sections.html.contains("\"title\":\"b\""));
    }
}
