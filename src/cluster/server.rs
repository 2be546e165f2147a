//! The connection to the server: opening, checks of the server's settings, and errors as one sentence. Independent of runs.

use super::address::{Address, PASSWORD};
use crate::error::{Error, Result};
use redis::{Cmd, ErrorKind, Pipeline, RedisError, Value};
use std::time::Duration;

/// Time limit for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time between two attempts after a failure.
pub const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// Time limit for a reply, or for the next bytes of a long one. Longer than any blocking read.
const REPLY_TIMEOUT: Duration = Duration::from_secs(15);
/// The oldest version of Redis that trims streams by id.
const MIN_VERSION: (u32, u32) = (6, 2);
/// The only eviction policy under which a full server refuses new data and keeps the old.
const EVICTION_POLICY: &str = "noeviction";

/// Messages of transient errors that have no error code: too many connections, and a stream whose last id leaves no greater one, which
/// the learner removes.
const TRANSIENT_MESSAGES: [&str; 2] = ["max number of clients", "last possible ID"];

/// The reason why a command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The command may succeed later, on a new connection.
    Transient(String),
    /// The command may succeed later, on this connection too: the server is full or starting, or lacks replicas.
    Busy(String),
    /// The command fails until a setting of the server, the run or this command is changed.
    Final(String),
}

impl Failure {
    /// The message: what was found, and what would be right.
    pub fn text(&self) -> &str {
        match self {
            Self::Transient(text) | Self::Busy(text) | Self::Final(text) => text,
        }
    }
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        let text = error.to_string().replace(['\n', '\r'], " ");
        if error.kind() == ErrorKind::Io {
            return Self::Transient(match error.is_connection_refusal() {
                true => format!("no server there ({text}), expected Redis or Valkey"),
                false => format!("the connection failed ({text})"),
            });
        }
        if error.kind() == ErrorKind::AuthenticationFailed {
            return Self::Final(refused_credentials(&text));
        }
        match code_of(error).as_str() {
            "WRONGPASS" => Self::Final(refused_credentials(&text)),
            "NOAUTH" => Self::Final(format!(
                "the server requires a password, expected it in {PASSWORD} or in the file of --password-file"
            )),
            "NOPERM" => Self::Final(format!(
                "the user lacks a permission ({text}), expected those of docs/cluster.md"
            )),
            "OOM" => Self::Busy(
                "the server is full (maxmemory), expected memory for cluster.max_queued_bytes and the weights"
                    .into(),
            ),
            "MISCONF" => Self::Busy(format!("the server cannot write its disk ({text})")),
            "NOGROUP" => Self::Transient("the evaluation has ended, or the server has lost it".into()),
            "LOADING" | "TRYAGAIN" | "BUSY" | "NOREPLICAS" => {
                Self::Busy(format!("the server does not take commands now ({text})"))
            }
            // Another server may have taken its place.
            "MASTERDOWN" | "READONLY" | "UNBLOCKED" => {
                Self::Transient(format!("the server does not take commands now ({text})"))
            }
            _ if TRANSIENT_MESSAGES.iter().any(|part| text.contains(part)) => {
                Self::Transient(format!("the server refuses a command ({text})"))
            }
            _ => Self::Final(format!("the server refuses a command ({text}), expected Redis 6.2 or Valkey")),
        }
    }
}

fn refused_credentials(text: &str) -> String {
    format!(
        "the server refuses the user or the password ({text}), expected that of {PASSWORD} or --password-file"
    )
}

/// The code of the server's error, such as "OOM". In a transaction it is that of the first error.
fn code_of(error: RedisError) -> String {
    let code = error.code().map(str::to_string);
    let first = error.into_server_errors().and_then(|all| all.first().map(|(_, e)| e.code().to_string()));
    first.or(code).unwrap_or_default()
}

/// A server and the credentials for it.
#[derive(Clone)]
pub struct Server {
    address: Address,
    client: redis::Client,
}

impl Server {
    /// The server at `address`; nothing is connected yet.
    ///
    /// # Errors
    /// [`Error::Server`] for a host that is not a valid name.
    pub fn new(address: Address, password: Option<&str>) -> Result<Self> {
        let info = address.connection(password)?;
        let wrong = |e: RedisError| Error::Server { server: address.to_string(), what: e.to_string() };
        let client = redis::Client::open(info).map_err(wrong)?;
        Ok(Self { address, client })
    }

    /// The server and the run's name.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// `failure` as an error about this server.
    pub fn error(&self, failure: &Failure) -> Error {
        Error::Server { server: self.address.to_string(), what: failure.text().to_string() }
    }

    /// A new connection to a server whose settings do not drop data.
    ///
    /// # Errors
    /// Where the server is unreachable, refuses the credentials, is too old or read-only, or evicts keys.
    pub fn connect(&self) -> Result<Connection, Failure> {
        let connection = self.client.get_connection_with_timeout(CONNECT_TIMEOUT)?;
        connection.set_read_timeout(Some(REPLY_TIMEOUT))?;
        connection.set_write_timeout(Some(REPLY_TIMEOUT))?;
        let mut link = Connection { connection };
        let info = link.command(&redis::cmd("INFO"))?;
        check_info(&String::from_utf8_lossy(&bytes_of(info).unwrap_or_default()))?;
        Ok(link)
    }
}

/// Checks the server's version, role and eviction policy in its reply to INFO.
fn check_info(info: &str) -> Result<(), Failure> {
    let value = |key: &str| info.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    let version = value("redis_version").unwrap_or("unknown");
    let mut numbers = version.split('.').map_while(|part| part.parse::<u32>().ok());
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if found < MIN_VERSION {
        return Err(Failure::Final(format!(
            "the server has version {version}, expected Redis {}.{} or newer",
            MIN_VERSION.0, MIN_VERSION.1
        )));
    }
    if value("role") == Some("slave") {
        // During a failover the address still leads to the former primary.
        return Err(Failure::Transient("the server is a read-only replica, expected its primary".into()));
    }
    match value("maxmemory_policy") {
        None | Some(EVICTION_POLICY) => Ok(()),
        Some(policy) => Err(Failure::Final(format!(
            "the server's maxmemory-policy is {policy}, which may drop games, expected {EVICTION_POLICY} \
             (redis-cli CONFIG SET maxmemory-policy {EVICTION_POLICY})"
        ))),
    }
}

/// An open connection.
pub struct Connection {
    connection: redis::Connection,
}

impl Connection {
    /// Sets the time limit for replies from now on.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn set_timeout(&mut self, timeout: Duration) -> Result<(), Failure> {
        self.connection.set_read_timeout(Some(timeout))?;
        Ok(self.connection.set_write_timeout(Some(timeout))?)
    }

    /// The reply to a command.
    ///
    /// # Errors
    /// The server's, and those of the connection.
    pub fn command(&mut self, command: &Cmd) -> Result<Value, Failure> {
        Ok(command.query(&mut self.connection)?)
    }

    /// The replies to several commands.
    ///
    /// # Errors
    /// As [`Connection::command`].
    pub fn pipeline(&mut self, pipeline: &Pipeline) -> Result<Vec<Value>, Failure> {
        Ok(pipeline.query(&mut self.connection)?)
    }
}

/// The bytes of a reply that is a text; None for any other reply.
pub fn bytes_of(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text.into_bytes()),
        _ => None,
    }
}

/// The number of a reply that is a number or the text of one; None for any other reply.
pub fn number_of(value: Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(number).ok(),
        other => String::from_utf8(bytes_of(other)?).ok()?.parse().ok(),
    }
}

/// The values of a reply that is a list; None for any other reply.
pub fn list_of(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(values) => Some(values),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_may_lose_data_are_refused() {
        let info = |version: &str, role: &str, policy: &str| {
            check_info(&format!(
                "# Server\r\nredis_version:{version}\r\nrole:{role}\r\nmaxmemory_policy:{policy}\r\n"
            ))
        };
        assert_eq!(info("7.0.15", "master", "noeviction"), Ok(()));
        assert_eq!(info("6.2.0", "master", "noeviction"), Ok(()));
        for (version, role, policy, part) in [
            ("6.0.16", "master", "noeviction", "has version 6.0.16, expected Redis 6.2"),
            ("7.0.15", "slave", "noeviction", "a read-only replica"),
            ("7.0.15", "master", "allkeys-lru", "maxmemory-policy is allkeys-lru"),
            ("7.0.15", "master", "volatile-ttl", "maxmemory-policy is volatile-ttl"),
            ("none", "master", "noeviction", "has version none"),
        ] {
            let failure = info(version, role, policy).expect_err(policy);
            assert!(failure.text().contains(part), "{failure:?}");
            let is_transient = matches!(failure, Failure::Transient(_));
            assert_eq!(is_transient, role == "slave", "a failover ends: {failure:?}");
        }
    }
}
