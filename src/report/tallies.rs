//! The table of what people count in a game beside points, over many games.

use crate::batch::Playthrough;
use crate::game::{TallyCell, TallyTable};
use indicatif::HumanCount;
use std::fmt::Write;

/// How often players counted in each cell of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tallies {
    /// The games, in words: "games of epoch 9".
    of: String,
    table: TallyTable,
    /// `[rows, columns]`
    counts: Vec<u64>,
}

impl Tallies {
    /// A table of zeros about `of`, the games in words.
    pub fn new(table: TallyTable, of: String) -> Self {
        let counts = vec![0; table.rows.len() * table.columns.len()];
        Self { of, table, counts }
    }

    /// Counts all players of a game.
    pub fn add(&mut self, play: &Playthrough) {
        for TallyCell { row, column } in play.tallies() {
            self.counts[row * self.table.columns.len() + column] += 1;
        }
    }

    /// The rows that count anything, and all of them together where they are several: name and counts. `[columns]`
    fn rows(&self) -> Vec<(&str, Vec<u64>)> {
        let counts = self.counts.chunks_exact(self.table.columns.len()).map(<[u64]>::to_vec);
        let names = self.table.rows.iter().map(String::as_str);
        let mut rows: Vec<_> =
            names.zip(counts).filter(|(_, counts)| counts.iter().any(|n| *n > 0)).collect();
        if rows.len() > 1 {
            let column = |column: usize| rows.iter().map(|(_, counts)| counts[column]).sum();
            let all = (0..self.table.columns.len()).map(column).collect();
            rows.push(("all", all));
        }
        rows
    }

    /// The section of a page, whose title ends with `of`: how often each row came up, and the shares of its columns. Nothing where nothing
    /// was counted.
    pub(super) fn html(&self, of: &str, escape: fn(&str) -> String) -> String {
        let rows = self.rows();
        if rows.is_empty() {
            return String::new();
        }
        let columns: String = self.table.columns.iter().map(|name| format!("<th>{}", escape(name))).collect();
        let mut html = format!(
            "<h2>{}{}</h2>\n<p>In the {}.</p>\n<div class=\"wide\"><table class=\"tallies\">\n<tr><th><th>number{columns}</tr>\n",
            escape(self.table.title),
            escape(of),
            escape(&self.of)
        );
        for (name, counts) in rows {
            let total: u64 = counts.iter().sum();
            let _ = write!(html, "<tr><th>{}<td>{}", escape(name), HumanCount(total));
            counts.iter().for_each(|n| {
                let _ = write!(html, "<td>{:.1} %", 100.0 * *n as f64 / total as f64);
            });
            html += "</tr>\n";
        }
        html + "</table></div>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::any_game;
    use std::sync::Arc;

    /// Random games of Blob, each until its end.
    fn games(options: &str, number: u64) -> Vec<Playthrough> {
        let game = any_game("blob", &options.parse().expect("options")).expect("registered");
        let mut stream = crate::rng::Key::new(3, crate::rng::Purpose::Evaluation).stream();
        let play = |_| {
            let rules: Arc<dyn crate::batch::ErasedRules> = game.clone();
            let mut play = Playthrough::new(rules);
            while play.turn() != crate::game::Turn::Over {
                let legal = play.legal();
                play.step(legal[stream.below(legal.len())]).expect("legal");
            }
            play
        };
        (0..number).map(play).collect()
    }

    #[test]
    fn each_player_counts_once_a_round_and_points_are_those_of_bids_made() {
        let options = "players = 3\ncards = 3\nfull = true";
        let games = games(options, 40);
        let game = games[0].game().clone();
        let mut tallies = Tallies::new(game.tally_table().expect("a table"), "games".into());
        games.iter().for_each(|play| tallies.add(play));
        // Seven rounds: of 3, 2, 1, 1, 1, 2 and 3 cards.
        assert_eq!(tallies.counts.iter().sum::<u64>(), 40 * 7 * 3);
        let points: f32 = games.iter().flat_map(|play| game.scores(play.state())).sum();
        let made = (0..=3_u64).map(|bid| (10 + bid) * tallies.counts[3 * bid as usize]);
        assert_eq!(points, made.sum::<u64>() as f32);
        // A bid of all cards cannot take too many tricks, one of none not too few.
        assert_eq!((tallies.counts[2], tallies.counts[1] > 0), (0, true));
        assert_eq!((tallies.counts[3 * 3 + 1], tallies.counts[3 * 3 + 2] > 0), (0, true));
    }

    #[test]
    fn a_page_has_shares_by_row_and_of_all() {
        let table = TallyTable {
            title: "Bids",
            rows: vec!["0".into(), "1".into(), "2".into()],
            columns: &["made", "<missed"],
        };
        let mut tallies = Tallies::new(table, "games of epoch 9".into());
        assert_eq!(tallies.html("", str::to_string), "", "nothing was counted");
        tallies.counts = vec![3, 1, 0, 0, 0, 4];
        let html = tallies.html(" of b", |text| text.replace('<', "&lt;"));
        assert!(html.contains("<h2>Bids of b</h2>\n<p>In the games of epoch 9.</p>"), "{html}");
        assert!(html.contains("<tr><th><th>number<th>made<th>&lt;missed</tr>"), "{html}");
        assert!(html.contains("<tr><th>0<td>4<td>75.0 %<td>25.0 %</tr>"), "{html}");
        assert!(html.contains("<tr><th>2<td>4<td>0.0 %<td>100.0 %</tr>"), "{html}");
        assert!(
            html.contains("<tr><th>all<td>8<td>37.5 %<td>62.5 %</tr>") && !html.contains("<tr><th>1<"),
            "{html}"
        );
    }
}
