//! How a law says whether it holds.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Whether a law holds; the error says what was found, and what is right.
pub(super) type Law = Result<(), String>;

/// The result of `f`.
///
/// # Errors
/// The message of its panic.
pub(super) fn caught<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|panic| message_of(&*panic).to_string())
}

/// The message of a panic.
fn message_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

/// Returns an error unless the condition holds, with the condition itself or a message.
macro_rules! holds {
    ($condition:expr $(,)?) => { holds!($condition, "{}", stringify!($condition)) };
    ($condition:expr, $($message:tt)+) => {
        let is_kept: bool = $condition;
        if !is_kept {
            return Err(format!($($message)+));
        }
    };
}

/// Returns an error unless both values are equal.
macro_rules! equal {
    ($left:expr, $right:expr $(,)?) => { equal!($left, $right, "{}", stringify!($left)) };
    ($left:expr, $right:expr, $($message:tt)+) => {
        match (&$left, &$right) {
            (left, right) => {
                holds!(left == right, "{}: got {left:?}, expected {right:?}", format_args!($($message)+));
            }
        }
    };
}

pub(super) use {equal, holds};
