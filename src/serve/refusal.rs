//! A refused request: a status and one sentence.

use crate::error::Error;
use axum::http::StatusCode;

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status of the reply.
    pub status: StatusCode,
    /// What was found and what would be right, in one sentence.
    pub message: String,
}

/// The result of a request.
pub type Served<T> = Result<T, Refusal>;

impl Refusal {
    /// A refusal with `status`.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    /// A value that is not valid.
    pub fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// Something that does not exist.
    pub fn unknown(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// A request at the wrong moment.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    /// Something that the client may not know or do.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message)
    }

    /// More than the server does at once.
    pub fn busy(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }
}

impl From<Error> for Refusal {
    /// Errors of the rules, configurations and files are the client's: it named them. Their texts are one line.
    fn from(error: Error) -> Self {
        Self::bad(error.to_string().split_whitespace().collect::<Vec<_>>().join(" "))
    }
}
