//! Configuration keys. Each is described once, at the definition of its field: `section!` takes its meaning (the doc comment), type, valid
//! values and default. Reading, range checks, errors and the listing of `vecaz config` all use this description.

use crate::error::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::ops::RangeInclusive;

/// One key of a section, described for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyInfo {
    /// Name in its section.
    pub name: &'static str,
    /// Meaning: the field's doc comment, on one line.
    pub meaning: &'static str,
    /// Valid values in words, such as "a whole number from 1 to 256".
    pub values: String,
    /// Default, as TOML.
    pub default: String,
    /// Value in the section that was described, as TOML.
    pub value: String,
}

/// A table of keys, defined by `section!`.
pub trait Section: Default + Serialize + DeserializeOwned {
    /// The keys in the order of the fields.
    fn keys(&self) -> Vec<KeyInfo>;

    /// Checks every key that has a set of valid values. `section` is the table's name.
    ///
    /// # Errors
    /// [`Error::Config`] with the first key whose value is invalid.
    fn check_values(&self, section: &str) -> Result<()>;
}

/// The type of a key's value.
pub trait Value: Serialize {
    /// All values of the type, in words.
    fn any() -> String;
}

/// A set of valid values.
pub trait Allowed<T> {
    /// True if `value` is in the set.
    fn allows(&self, value: &T) -> bool;
    /// The set in words.
    fn words(&self) -> String;
}

/// A type of numbers.
pub trait Number: Value + PartialOrd + Display {
    /// One number in words.
    const NOUN: &str;
}

impl<T: Number> Allowed<T> for RangeInclusive<T> {
    fn allows(&self, value: &T) -> bool {
        self.contains(value)
    }

    fn words(&self) -> String {
        format!("{} from {} to {}", T::NOUN, self.start(), self.end())
    }
}

/// A list of values.
impl<T: Number, const N: usize> Allowed<T> for [T; N] {
    fn allows(&self, value: &T) -> bool {
        self.contains(value)
    }

    fn words(&self) -> String {
        self.each_ref().map(T::to_string).join(" or ")
    }
}

macro_rules! whole_numbers {
    ($($ty:ty: $max:expr),+) => {$(
        impl Number for $ty {
            const NOUN: &str = "a whole number";
        }
        impl Value for $ty {
            /// TOML's integers have 64 bits with a sign.
            fn any() -> String {
                let max: $ty = $max;
                (0..=max).words()
            }
        }
    )+};
}
whole_numbers!(u16: u16::MAX, u32: u32::MAX, u64: i64::MAX as u64, usize: i64::MAX as usize);

macro_rules! values {
    ($($ty:ty: $words:literal),+ $(,)?) => {
        $(impl Value for $ty {
            fn any() -> String {
                $words.to_string()
            }
        })+
    };
}
values! {
    f32: "a number",
    f64: "a number",
    bool: "true or false",
    String: "a text",
}

impl Number for f32 {
    const NOUN: &str = "a number";
}

impl Number for f64 {
    const NOUN: &str = "a number";
}

impl<T: Value> Value for Option<T> {
    fn any() -> String {
        T::any()
    }
}

/// Checks one value.
///
/// # Errors
/// [`Error::Config`].
pub fn within<T: Display>(key: &str, got: T, allowed: impl Allowed<T>) -> Result<()> {
    match allowed.allows(&got) {
        true => Ok(()),
        false => Err(Error::config(key, got, allowed.words())),
    }
}

/// Reads a section key by key, so that an error names the key, and checks its values. `suggest` gives the hint for a key that the section
/// does not have.
///
/// # Errors
/// [`Error::ConfigKey`], [`Error::Config`] or [`Error::ConfigText`].
pub fn read<T: Section>(section: &str, table: toml::Table, suggest: impl Fn(&str) -> String) -> Result<T> {
    let keys = T::default().keys();
    for (name, value) in &table {
        let one = toml::Table::from_iter([(name.clone(), value.clone())]);
        let Err(error) = one.try_into::<T>() else { continue };
        let (key, what) = (format!("{section}.{name}"), error.message().replace('\n', " "));
        if what.starts_with("unknown field") {
            let hint = suggest(&key);
            return Err(Error::unknown_key(key, hint));
        }
        // Messages of serde contain Rust types and are replaced; those of a key's own parser are shown.
        let is_serdes = ["invalid ", "unknown "].iter().any(|start| what.starts_with(start));
        return Err(match keys.iter().find(|key| key.name == name).filter(|_| is_serdes) {
            Some(known) => Error::config(key, value, known.values.clone()),
            None => Error::ConfigKey { key, origin: None, what },
        });
    }
    let read: T = table.try_into().map_err(|e: toml::de::Error| Error::ConfigText {
        origin: format!("[{section}]"),
        what: e.message().replace('\n', " "),
    })?;
    read.check_values(section)?;
    Ok(read)
}

/// Names to choose from, in words.
pub fn one_of(names: &[&str]) -> String {
    match names {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    }
}

/// A value as it is typed in TOML; "none" for a key without a value.
pub fn toml_text(value: &impl Serialize) -> String {
    let mut text = String::new();
    match value.serialize(toml::ser::ValueSerializer::new(&mut text)) {
        Ok(_) => text,
        Err(_) => "none".into(),
    }
}

/// The text of doc comments among attributes.
#[doc(hidden)]
#[macro_export]
macro_rules! doc_text {
    () => { "" };
    ([doc = $text:literal] $($rest:tt)*) => {
        concat!($text, $crate::doc_text!($($rest)*))
    };
    ([$($other:tt)*] $($rest:tt)*) => { $crate::doc_text!($($rest)*) };
}

/// The valid values of a key in words: the set after its type, otherwise all values of the type.
#[doc(hidden)]
#[macro_export]
macro_rules! value_words {
    ($ty:ty) => {
        <$ty as $crate::config::keys::Value>::any()
    };
    ($ty:ty, $allowed:expr) => {
        $crate::config::keys::Allowed::<$ty>::words(&$allowed)
    };
}

/// Defines one or more [`Section`]s: each key as `/// meaning`, `name: type [valid values] = default`.
#[macro_export]
macro_rules! section {
    ($(
        $(#[$($meta:tt)*])*
        $name:ident {
            $($(#[$($key_meta:tt)*])* $key:ident: $ty:ty $([$allowed:expr])? = $default:expr),* $(,)?
        }
    )+) => {$(
        $(#[$($meta)*])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name { $($(#[$($key_meta)*])* pub $key: $ty),* }

        impl Default for $name {
            fn default() -> Self { Self { $($key: $default),* } }
        }

        impl $crate::config::keys::Section for $name {
            fn keys(&self) -> Vec<$crate::config::keys::KeyInfo> {
                vec![$($crate::config::keys::KeyInfo {
                    name: stringify!($key),
                    meaning: $crate::doc_text!($([$($key_meta)*])*).trim(),
                    values: $crate::value_words!($ty $(, $allowed)?),
                    default: $crate::config::keys::toml_text(&Self::default().$key),
                    value: $crate::config::keys::toml_text(&self.$key),
                }),*]
            }

            fn check_values(&self, section: &str) -> $crate::error::Result<()> {
                let _ = section; // not used by a section without limits
                $($(
                    let key = format!("{section}.{}", stringify!($key));
                    $crate::config::keys::within(&key, self.$key, $allowed)?;
                )?)*
                Ok(())
            }
        }
    )+};
}
pub use section;

/// Implements `Display` and `Value` for an enum of names.
macro_rules! show_names {
    ($name:ident { $($variant:ident = $text:literal),+ }) => {
        impl std::fmt::Display for $name {
            /// The name as typed in a configuration.
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $(Self::$variant => $text),+ })
            }
        }

        impl $crate::config::keys::Value for $name {
            fn any() -> String {
                $crate::config::keys::one_of(&[$($text),+])
            }
        }
    };
}
pub(crate) use show_names;

/// Defines enums whose values are typed by name.
macro_rules! names {
    ($(
        $(#[$meta:meta])*
        $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal),+ $(,)? }
    )+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$variant_meta])* #[serde(rename = $text)] $variant,)+ }

        $crate::config::keys::show_names! { $name { $($variant = $text),+ } }
    )+};
}
pub(crate) use names;
