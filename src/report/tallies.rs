//! The table of what people count in a game besides points, over many games.

use crate::batch::ErasedRules;
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

    /// Counts the players of `game` that count with the ply from `before` to `after`.
    pub fn add(&mut self, game: &dyn ErasedRules, before: &[u8], after: &[u8]) {
        let players = 0..game.sizes().num_players as u8;
        for TallyCell { row, column } in players.filter_map(|player| game.tally(before, after, player)) {
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
    use crate::batch::Playthrough;
    use crate::game::Turn;
    use crate::registry::any_game;
    use crate::rng::{Key, Purpose};

    #[test]
    fn each_player_counts_once_a_round_and_points_are_those_of_bids_made() {
        let options = "players = 3\ncards = 3\nfull = true".parse().expect("options");
        let game = any_game("blob", &options).expect("registered");
        let mut tallies = Tallies::new(game.tally_table().expect("a table"), "games".into());
        let mut stream = Key::new(3, Purpose::Evaluation).stream();
        let mut points = 0.0;
        for _ in 0..40 {
            let mut play = Playthrough::new(game.clone());
            while play.turn() != Turn::Over {
                let (before, legal) = (play.state().to_vec(), play.legal());
                play.step(legal[stream.below(legal.len())]).expect("legal");
                tallies.add(game.as_ref(), &before, play.state());
            }
            points += game.scores(play.state()).iter().sum::<f32>();
        }
        // Seven rounds: of 3, 2, 1, 1, 1, 2 and 3 cards.
        assert_eq!(tallies.counts.iter().sum::<u64>(), 40 * 7 * 3);
        let made = (0..=3_u64).map(|bid| (10 + bid) * tallies.counts[3 * bid as usize]);
        assert_eq!(points, made.sum::<u64>() as f32);
        // A bid of none cannot be missed by too few tricks, one of all cards not by too many.
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
