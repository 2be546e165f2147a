//! A trained player in a program of one's own: you against it in the terminal.
//!
//!     cargo run --release --example embed_player -- runs/connect_four-1

use std::io::BufRead;
use std::path::Path;
use std::time::Duration;
use vecaz::engine::{Engine, Limit};
use vecaz::game::Turn;
use vecaz::game::view::Viewer;
use vecaz::registry::Registry;

fn main() -> vecaz::Result<()> {
    let path = std::env::args().nth(1).unwrap_or("runs/connect_four-1".into());
    let mut engine = Engine::open(Path::new(&path), &Registry::built_in())?;
    let mut lines = std::io::stdin().lock().lines().map_while(Result::ok);
    loop {
        match engine.playthrough().turn() {
            Turn::Player(0) => {
                println!("{}\nyour move:", vecaz::view::text(&engine.playthrough().view(Viewer::Player(0))));
                let Some(line) = lines.next() else { return Ok(()) };
                match engine.playthrough().find(line.trim()) {
                    Some(action) => engine.play(action)?,
                    None => println!("{}", engine.playthrough().illegal(&line)),
                }
            }
            Turn::Player(_) => {
                let found = engine.analyse(&Limit::time(Duration::from_secs(1)))?;
                println!("it plays {} after {} simulations", found.best().name, found.visits);
                engine.play(found.best().action)?;
            }
            // Whoever embeds a game with dice rolls them; here the first outcome is as good as any.
            Turn::Chance => engine.play(engine.playthrough().legal()[0])?,
            Turn::Over => break println!("{}", vecaz::view::text(&engine.playthrough().view(Viewer::All))),
        }
    }
    Ok(())
}
