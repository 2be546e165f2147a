//! How a law says whether it holds.

/// Whether a law holds; the error says what was found, and what is right.
pub(super) type Law = Result<(), String>;

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
