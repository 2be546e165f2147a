//! `vecaz run --cluster`: the components of a run whose games also come from workers.

use super::run::RunArgs;
use crate::cluster::address::{Address, password};
use crate::cluster::learner::{Begin, LearnerFactory, LearnerPlay};
use crate::cluster::server::Server;
use crate::error::Result;
use crate::registry::Registry;
use crate::run::factory::ComponentFactory;

/// The factory of a run that workers at `url` play for.
///
/// # Errors
/// Those of [`password`], [`Address::typed`] and [`Server::new`].
pub(super) fn learner_factory(
    url: &str,
    args: &RunArgs,
    registry: &Registry,
) -> Result<Box<dyn ComponentFactory>> {
    let password = password(args.password_file.as_deref())?;
    let server = Server::new(Address::typed("--cluster", url)?, password.as_deref())?;
    let play = if args.play == 0 { LearnerPlay::Idle } else { LearnerPlay::Plays };
    let begin = if args.resume.is_some() { Begin::Resumed } else { Begin::New };
    let password_file = args.password_file.clone();
    Ok(Box::new(LearnerFactory { registry: registry.clone(), server, play, begin, password_file }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::fs;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: RunArgs,
    }

    fn factory(line: &str) -> Box<dyn ComponentFactory> {
        let args = Line::try_parse_from(line.split_whitespace()).expect("valid").args;
        learner_factory(args.cluster.as_deref().expect("a URL"), &args, &Registry::built_in()).expect("valid")
    }

    #[test]
    fn resume_arguments_are_the_flags_of_the_cluster() {
        let folder = tempfile::tempdir().expect("a folder");
        let secret = folder.path().join("secret.txt");
        fs::write(&secret, "secret\n").expect("written");
        let with_file =
            format!(" --cluster rediss://me@host:7000/r --play 0 --password-file {}", secret.display());
        for flags in [" --cluster redis://host:6379/r", " --cluster redis://host:6379/r --play 0", &with_file]
        {
            let factory = factory(&format!("run --out runs/r{flags}"));
            assert_eq!(factory.resume_arguments(), flags);
        }
    }
}
