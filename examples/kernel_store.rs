//! Compiles the kernels of games for a GPU that need not be there, into a folder that is carried to the machine that has it
//! (`VECAZ_CACHE`): that machine then starts without compiling.
//!
//!     cargo run --release --example kernel_store -- 90 FOLDER < programs.txt
//!
//! Each line of the input is a game's name and, after a bar, its options with `;` between them: `hex | size = 13; swap = true`.

use std::io::BufRead;
use std::path::Path;
use vecaz::backend::kernels::cuda::code_for;
use vecaz::backend::kernels::source::{GAME_UNITS, program};
use vecaz::backend::kernels::store::Store;
use vecaz::batch::any_game;
use vecaz::config::DeviceName;
use vecaz::error::{Error, Result};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wrong =
        || Error::unsupported("these arguments", "expected a compute capability such as 90, and a folder");
    let [capability, folder] = arguments.as_slice() else { return Err(wrong()) };
    let capability: u32 = capability.parse().map_err(|_| wrong())?;
    let store = Store::at(Path::new(folder).join("programs"));
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|e| Error::io("reading", "stdin", e))?;
        let (name, options) = line.split_once('|').unwrap_or((&line, ""));
        let options = options.replace(';', "\n").parse().map_err(|e: toml::de::Error| Error::ConfigText {
            origin: line.clone(),
            what: e.message().to_string(),
        })?;
        let game = any_game(name.trim(), &options)?;
        for unit in GAME_UNITS {
            let code =
                code_for(&program(game.as_ref(), unit)?, DeviceName::Cuda(0), capability, Some(&store))?;
            println!("{line}: {unit}.cu, {} bytes", code.len());
        }
    }
    Ok(())
}
