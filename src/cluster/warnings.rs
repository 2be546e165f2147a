//! Warnings about one server. A lasting failure is repeated once a minute, and its end is reported.

use super::address::Address;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Time between two warnings of one kind.
const INTERVAL: Duration = Duration::from_secs(60);

/// What a warning is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// The connection, or a server that takes no commands; [`Warnings::recovered`] ends it.
    Connection,
    /// Data of a worker that is refused.
    Refused,
    /// The stream, which is removed or lacks entries.
    Stream,
}

/// The warnings about one server.
pub(super) struct Warnings {
    address: Address,
    /// By kind: when the last one was logged, and how many were not logged since.
    last: BTreeMap<Kind, (Instant, u64)>,
    /// When the connection failed; None while it works.
    failed_at: Option<Instant>,
}

impl Warnings {
    /// No warnings yet.
    pub(super) fn new(address: &Address) -> Self {
        Self { address: address.clone(), last: BTreeMap::new(), failed_at: None }
    }

    /// Logs `what`, unless one of this kind was logged within the last minute.
    pub(super) fn warn(&mut self, kind: Kind, what: &str) {
        if let Some(text) = self.text(kind, what, Instant::now()) {
            tracing::warn!("{}: {text}", self.address);
        }
    }

    /// Logs that the connection works again, if it had failed.
    pub(super) fn recovered(&mut self) {
        if let Some(text) = self.recovery(Instant::now()) {
            tracing::warn!("{}: {text}", self.address);
        }
    }

    fn text(&mut self, kind: Kind, what: &str, now: Instant) -> Option<String> {
        if kind == Kind::Connection {
            self.failed_at.get_or_insert(now);
        }
        if let Some((at, count)) = self.last.get_mut(&kind)
            && now.saturating_duration_since(*at) < INTERVAL
        {
            *count += 1;
            return None;
        }
        let before = self.last.insert(kind, (now, 0)).map_or(0, |(_, count)| count);
        Some(match (before, kind) {
            (0, _) | (_, Kind::Connection) => what.to_string(),
            (count, _) => format!("{what} (and {count} more since the last warning)"),
        })
    }

    fn recovery(&mut self, now: Instant) -> Option<String> {
        let failed_at = self.failed_at.take()?;
        self.last.remove(&Kind::Connection);
        Some(format!("connected again after {:.1} s", now.saturating_duration_since(failed_at).as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_is_said_once_a_minute_and_when_it_ends() {
        let address = Address::typed("URL", "redis://host/run").expect("an address");
        let (mut warnings, start) = (Warnings::new(&address), Instant::now());
        let at = |seconds: f64| start + Duration::from_secs_f64(seconds);
        assert_eq!(warnings.recovery(at(0.0)), None, "nothing has failed");
        let failing =
            (0..250).filter_map(|i| warnings.text(Kind::Connection, "lost", at(f64::from(i) * 0.5)));
        assert_eq!(failing.collect::<Vec<_>>(), ["lost"; 3], "at 0, 60 and 120 s");
        assert_eq!(warnings.recovery(at(125.0)).as_deref(), Some("connected again after 125.0 s"));
        assert_eq!(warnings.recovery(at(126.0)), None, "once");
        assert_eq!(
            warnings.text(Kind::Connection, "lost", at(127.0)).as_deref(),
            Some("lost"),
            "another failure"
        );
    }

    #[test]
    fn other_kinds_are_counted() {
        let address = Address::typed("URL", "redis://host/run").expect("an address");
        let (mut warnings, start) = (Warnings::new(&address), Instant::now());
        let mut refused =
            |seconds| warnings.text(Kind::Refused, "refused", start + Duration::from_secs(seconds));
        assert_eq!(refused(0).as_deref(), Some("refused"));
        assert_eq!([refused(1), refused(59)], [None, None]);
        assert_eq!(refused(60).as_deref(), Some("refused (and 2 more since the last warning)"));
    }
}
