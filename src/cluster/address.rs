//! Where a run is reached: the server, the run's name there, and the credentials.

use crate::error::{Error, Result};
use crate::files::read_text;
use redis::{ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// The environment variable of the password.
pub const PASSWORD: &str = "VECAZ_REDIS_PASSWORD";
/// The port of Redis, where none is named.
const PORT: u16 = 6379;
/// Bytes of a run's name.
const LONGEST_NAME: usize = 64;
/// Bytes of a password's file.
const LONGEST_PASSWORD: u64 = 4096;
/// What an address looks like.
const EXPECTED: &str = "redis://[USER@]HOST[:PORT]/RUN, or rediss:// for TLS";

/// A server and the name of a run there: `redis://[USER@]HOST[:PORT]/RUN`, or `rediss://` for TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    scheme: &'static str,
    user: Option<String>,
    /// With its brackets where it is an IPv6 address.
    host: String,
    port: u16,
    run: String,
}

impl Address {
    /// The address that was typed for `argument`. Errors do not show it, since it may have a password.
    ///
    /// # Errors
    /// [`Error::ConfigText`] with what would be right.
    pub fn typed(argument: &str, text: &str) -> Result<Self> {
        text.parse().map_err(|what| Error::ConfigText { origin: argument.to_string(), what })
    }

    /// The run's name, which begins all of its keys.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// What a client needs, with this password.
    ///
    /// # Errors
    /// [`Error::Server`] for a host that is no name.
    pub fn connection(&self, password: Option<&str>) -> Result<ConnectionInfo> {
        let url = format!("{}://{}:{}", self.scheme, self.host, self.port);
        let info = url.into_connection_info();
        let info = info.map_err(|e| Error::Server { server: self.to_string(), what: e.to_string() })?;
        let mut credentials = RedisConnectionInfo::default().set_skip_set_lib_name();
        if let Some(user) = &self.user {
            credentials = credentials.set_username(user);
        }
        if let Some(password) = password {
            credentials = credentials.set_password(password);
        }
        Ok(info.set_redis_settings(credentials))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.iter().map(|user| format!("{user}@")).collect::<String>();
        write!(f, "{}://{user}{}:{}/{}", self.scheme, self.host, self.port, self.run)
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let expected = || format!("expected {EXPECTED}");
        let (scheme, rest) = text.split_once("://").ok_or_else(expected)?;
        let scheme = match scheme {
            "redis" => "redis",
            "rediss" => "rediss",
            other => return Err(format!("{other}:// is no scheme of it, expected {EXPECTED}")),
        };
        let (authority, run) = rest.split_once('/').ok_or_else(expected)?;
        let (user, authority) = match authority.rsplit_once('@') {
            Some((user, authority)) => (Some(user), authority),
            None => (None, authority),
        };
        if user.is_some_and(|user| user.contains(':')) {
            return Err(format!(
                "a password in the address is seen by everybody on this machine, expected it in {PASSWORD} or in the \
                 file of --password-file"
            ));
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| format!("{port} is no port, expected 1 to 65535"))?)
            }
            _ => (authority, PORT),
        };
        if host.is_empty() || port == 0 || user == Some("") {
            return Err(expected());
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if run.is_empty() || run.len() > LONGEST_NAME || !run.chars().all(is_name) {
            return Err(format!(
                "{run:?} is no name of a run, expected 1 to {LONGEST_NAME} letters, digits, dots, hyphens or underscores"
            ));
        }
        let [host, run] = [host, run].map(str::to_string);
        Ok(Self { scheme, user: user.map(str::to_string), host, port, run })
    }
}

/// The password: the first line of `file`, otherwise of the environment; None where there is neither.
///
/// # Errors
/// [`Error::Io`] for a file that cannot be read.
pub fn password(file: Option<&Path>) -> Result<Option<String>> {
    let Some(path) = file else { return Ok(std::env::var(PASSWORD).ok().filter(|text| !text.is_empty())) };
    let text = read_text(path, LONGEST_PASSWORD).map_err(|e| Error::io("reading", path, e))?;
    Ok(text.lines().next().map(str::to_string))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        for (text, written) in [
            ("redis://host/run", "redis://host:6379/run"),
            ("rediss://10.0.0.1:7000/a.b-c_1", "rediss://10.0.0.1:7000/a.b-c_1"),
            ("redis://me@[::1]:80/r", "redis://me@[::1]:80/r"),
            ("redis://[::1]/r", "redis://[::1]:6379/r"),
        ] {
            let address: Address = text.parse().expect(text);
            assert_eq!(address.to_string(), written);
            assert!(address.connection(Some("secret")).is_ok(), "{text}");
        }
    }

    #[test]
    fn wrong_addresses_are_refused_with_what_would_be_right() {
        for (text, part) in [
            ("host/run", "expected redis://"),
            ("http://host/run", "http:// is no scheme of it, expected redis://"),
            ("redis://host", "expected redis://"),
            ("redis:///run", "expected redis://"),
            ("redis://host:99999/run", "99999 is no port"),
            ("redis://host/", "\"\" is no name of a run"),
            ("redis://host/a b", "\"a b\" is no name of a run"),
            ("redis://host/a/b", "is no name of a run"),
            ("redis://me:secret@host/run", "expected it in VECAZ_REDIS_PASSWORD"),
        ] {
            let error = text.parse::<Address>().expect_err(text);
            assert!(error.contains(part) && !error.contains("secret"), "{text}: {error}");
        }
    }
}
