//! `vecaz run --cluster`: the components of a run whose games also come from workers.

use crate::cluster::address::{Address, password};
use crate::cluster::learner::{Begin, LearnerFactory, LearnerPlay};
use crate::cluster::server::Server;
use crate::error::Result;
use crate::registry::Registry;
use crate::run::factory::ComponentFactory;
use std::path::Path;

/// The factory of a run that workers at `url` play for, from the flags of `vecaz run`.
///
/// # Errors
/// Those of [`password`], [`Address::typed`] and [`Server::new`].
pub(super) fn learner_factory(
    registry: &Registry,
    url: &str,
    play: u64,
    password_file: Option<&Path>,
    resume: Option<&Path>,
) -> Result<Box<dyn ComponentFactory>> {
    let password = password(password_file)?;
    let server = Server::new(Address::typed("--cluster", url)?, password.as_deref())?;
    let play = if play == 0 { LearnerPlay::Idle } else { LearnerPlay::Plays };
    let begin = if resume.is_some() { Begin::Resumed } else { Begin::New };
    let (registry, password_file) = (registry.clone(), password_file.map(Path::to_path_buf));
    Ok(Box::new(LearnerFactory { registry, server, play, begin, password_file }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn resume_arguments_are_the_flags_of_the_cluster() {
        let folder = tempfile::tempdir().expect("a folder");
        let secret = folder.path().join("secret.txt");
        fs::write(&secret, "secret\n").expect("written");
        let with_file =
            format!(" --cluster rediss://me@host:7000/r --play 0 --password-file {}", secret.display());
        for (url, play, file, arguments) in [
            ("redis://host:6379/r", 1, None, " --cluster redis://host:6379/r"),
            ("redis://host:6379/r", 0, None, " --cluster redis://host:6379/r --play 0"),
            ("rediss://me@host:7000/r", 0, Some(secret.as_path()), with_file.as_str()),
        ] {
            let factory = learner_factory(&Registry::built_in(), url, play, file, None).expect("valid");
            assert_eq!(factory.resume_arguments(), arguments);
        }
    }
}
