//! The address of a run: the server, the run's name there, and the credentials.

use crate::error::{Error, Result};
use crate::files::read_text;
use redis::{ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo};
use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// The environment variable that holds the password.
pub const PASSWORD: &str = "VECAZ_REDIS_PASSWORD";
/// The port where the address names none: that of Redis.
const PORT: u16 = 6379;
/// Upper bound on the bytes of a run's name.
const MAX_NAME_BYTES: usize = 64;
/// Upper bound on the bytes of a password's file.
const MAX_PASSWORD_BYTES: u64 = 4096;
/// The form of an address, for error messages.
const EXPECTED: &str = "redis://[USER@]HOST[:PORT]/RUN, or rediss:// for TLS";

/// A server and the name of a run there: `redis://[USER@]HOST[:PORT]/RUN`, or `rediss://` for TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    scheme: &'static str,
    user: Option<String>,
    /// An IPv6 address has its brackets.
    host: String,
    port: u16,
    run: String,
}

impl Address {
    /// The address that was typed for `argument`. Errors do not show the whole text, since it may contain a password.
    ///
    /// # Errors
    /// [`Error::ConfigText`] with the part that is wrong and what would be right.
    pub fn typed(argument: &str, text: &str) -> Result<Self> {
        text.parse().map_err(|what| Error::ConfigText { origin: argument.to_string(), what })
    }

    /// The run's name, the prefix of all of its keys.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The client's connection parameters, with this password.
    ///
    /// # Errors
    /// [`Error::Server`] for a host that is not a valid name.
    pub fn connection(&self, password: Option<&str>) -> Result<ConnectionInfo> {
        let url = format!("{}://{}:{}", self.scheme, self.host, self.port);
        let info = url.into_connection_info();
        let info = info.map_err(|e| Error::Server { server: self.to_string(), what: e.to_string() })?;
        let credentials = RedisConnectionInfo::default().set_skip_set_lib_name();
        // The client logs a user in only with a password; users that need none take any.
        Ok(info.set_redis_settings(match (&self.user, password) {
            (Some(user), password) => credentials.set_username(user).set_password(password.unwrap_or("")),
            (None, Some(password)) => credentials.set_password(password),
            (None, None) => credentials,
        }))
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
            other => return Err(format!("scheme {other}, expected redis or rediss as in {EXPECTED}")),
        };
        let (authority, run) = rest.split_once('/').ok_or_else(expected)?;
        let (user, authority) = match authority.rsplit_once('@') {
            Some((user, authority)) => (Some(user), authority),
            None => (None, authority),
        };
        if user.is_some_and(|user| user.contains(':')) {
            return Err(format!(
                "a password in the address, which every user of this machine can read, expected it in {PASSWORD} or \
                 in the file of --password-file"
            ));
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| format!("port {port}, expected 1 to 65535"))?)
            }
            _ => (authority, PORT),
        };
        if port == 0 {
            return Err("port 0, expected 1 to 65535".into());
        }
        if host.is_empty() || user == Some("") {
            return Err(expected());
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if run.is_empty() || run.len() > MAX_NAME_BYTES || !run.chars().all(is_name) {
            return Err(format!(
                "run name {run:?}, expected 1 to {MAX_NAME_BYTES} letters, digits, dots, hyphens or underscores"
            ));
        }
        let [host, run] = [host, run].map(str::to_string);
        Ok(Self { scheme, user: user.map(str::to_string), host, port, run })
    }
}

/// The password: the first line of `file`, or the variable [`PASSWORD`] without a file. None where there is neither.
///
/// # Errors
/// [`Error::Io`] for a file that cannot be read, [`Error::Format`] for one without a password; [`Error::ConfigText`] for a variable that is
/// not UTF-8.
pub fn password(file: Option<&Path>) -> Result<Option<String>> {
    let Some(path) = file else { return of_variable(std::env::var_os(PASSWORD)) };
    let text = read_text(path, MAX_PASSWORD_BYTES).map_err(|e| Error::io("reading", path, e))?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(Some(line.to_string())),
        _ => Err(Error::format(path, "has an empty first line, expected the server's password there")),
    }
}

/// The password in the variable [`PASSWORD`]; None where it is empty.
fn of_variable(value: Option<OsString>) -> Result<Option<String>> {
    let text = value.map(OsString::into_string).transpose();
    let text = text.map_err(|_| Error::ConfigText {
        origin: PASSWORD.into(),
        what: "the password is not UTF-8, expected it in UTF-8".into(),
    });
    Ok(text?.filter(|text| !text.is_empty()))
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

    /// The client logs nobody in without a password, not even a user that needs none.
    #[test]
    fn a_user_logs_in_with_or_without_a_password() {
        for (text, given, expected) in [
            ("redis://me@host/run", None, (Some("me"), Some(""))),
            ("redis://me@host/run", Some("secret"), (Some("me"), Some("secret"))),
            ("redis://host/run", Some("secret"), (None, Some("secret"))),
            ("redis://host/run", None, (None, None)),
        ] {
            let address: Address = text.parse().expect(text);
            let info = address.connection(given).expect(text);
            assert_eq!(
                (info.redis_settings().username(), info.redis_settings().password()),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn a_file_without_a_password_is_refused() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        for (text, expected) in [("", None), ("\nsecret", None), ("secret\nmore", Some("secret"))] {
            std::fs::write(file.path(), text).expect("written");
            assert_eq!(password(Some(file.path())).ok().flatten().as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_variable_has_a_password_in_utf_8_or_none() {
        let of = |value: Option<&str>| of_variable(value.map(OsString::from)).expect("UTF-8");
        assert_eq!([None, Some(""), Some("secret")].map(of), [None, None, Some("secret".to_string())]);
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStringExt;
            let error = of_variable(Some(OsString::from_vec(vec![b's', 0xe4]))).expect_err("Latin-1");
            assert!(error.to_string().starts_with("config VECAZ_REDIS_PASSWORD: "), "{error}");
        }
    }

    #[test]
    fn wrong_addresses_are_refused_with_what_would_be_right() {
        for (text, part) in [
            ("host/run", "expected redis://"),
            ("http://host/run", "scheme http, expected redis or rediss as in redis://"),
            ("redis://host", "expected redis://"),
            ("redis:///run", "expected redis://"),
            ("redis://host:99999/run", "port 99999, expected 1 to 65535"),
            ("redis://host:0/run", "port 0, expected 1 to 65535"),
            ("redis://host/", "run name \"\", expected 1 to 64"),
            ("redis://host/a b", "run name \"a b\", expected"),
            ("redis://host/a/b", "run name \"a/b\", expected"),
            ("redis://me:secret@host/run", "expected it in VECAZ_REDIS_PASSWORD"),
        ] {
            let error = text.parse::<Address>().expect_err(text);
            assert!(error.contains(part) && !error.contains("secret"), "{text}: {error}");
        }
    }
}
