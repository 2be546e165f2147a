//! Structs, enums and constants that kernels share with Rust. Each is defined once, in Rust; tests generate the CUDA definitions from
//! them and compare them with the committed files in `kernels/`.
//!
//! `bytemuck` refuses padding between fields at compile time, and the generated file asserts that CUDA has the same size, so the fields
//! have the same offsets on both sides.

/// Defines `#[repr(C)]` structs with CUDA definitions. Each derives `bytemuck::NoUninit`, or `Pod`.
///
/// The CUDA type of a field has the name of its Rust type, which is a primitive type, another shared type or an array of these.
/// A field with another type in CUDA has that behind `as`: an address is a `u64`, the number of an enum's variant a `u8`. Padding at
/// the end that CUDA adds by itself has the type "".
macro_rules! device_struct {
    ($(
        $(#[doc = $doc:literal])*
        #[derive($($derive:tt)*)]
        $vis:vis struct $name:ident {
            $($(#[doc = $field_doc:literal])* $field_vis:vis $field:ident: $ty:ty $(as $cuda:literal)?,)+
        }
    )+) => {$(
        $(#[doc = $doc])*
        #[derive($($derive)*)]
        #[repr(C)]
        $vis struct $name { $($(#[doc = $field_doc])* $field_vis $field: $ty,)+ }

        $crate::device_struct::device_type! {
            $name: [$($doc)*], Fields,
            $([$($field_doc)*] $crate::device_struct::field(stringify!($field), &[stringify!($ty), $($cuda)?]),)+
        }
    )+};
}
pub(crate) use device_struct;

/// Defines an enum with a CUDA definition and the integer type behind its name as its representation. A variant without a number
/// has the number after that of the variant before it, from 0 on.
macro_rules! device_enum {
    (
        $(#[doc = $doc:literal])*
        #[derive($($derive:tt)*)]
        $vis:vis enum $name:ident: $repr:ident {
            $($(#[doc = $variant_doc:literal])* $(#[serde($($serde:tt)*)])? $variant:ident $(= $number:literal)?,)+
        }
    ) => {
        $(#[doc = $doc])*
        #[derive($($derive)*)]
        #[repr($repr)]
        $vis enum $name { $($(#[doc = $variant_doc])* $(#[serde($($serde)*)])? $variant $(= $number)?,)+ }
        // A variant that only kernels use is no dead code.
        const _: &[$name] = &[$($name::$variant),+];

        $crate::device_struct::device_type! {
            $name: [$($doc)*], Variants(stringify!($repr)),
            $([$($variant_doc)*] format!("{} = {},", stringify!($variant), Self::$variant as u64),)+
        }
    };
}
pub(crate) use device_enum;

/// Implements `DeviceType`: the documentation of a type, what its body consists of, and each item's documentation and CUDA text.
macro_rules! device_type {
    (
        $name:ident: [$($doc:literal)*], $body:ident $(($repr:expr))?, $([$($item_doc:literal)*] $text:expr,)+
    ) => {
        #[cfg(test)]
        impl $crate::device_struct::DeviceType for $name {
            fn definition() -> $crate::device_struct::Definition {
                use $crate::device_struct::{Body, Definition, Item};
                let items = vec![$(Item { docs: &[$($item_doc),*], text: $text }),+];
                let body = Body::$body { items, $(repr: $repr)? };
                Definition { name: stringify!($name), docs: &[$($doc),*], size: size_of::<Self>(), body, alignment: None }
            }
        }
    };
}
pub(crate) use device_type;

/// Defines constants with CUDA definitions, and a function that returns these. The CUDA type has the name of the Rust type, or the
/// name behind `as`. An array is a table in the memory of the device.
macro_rules! device_constants {
    (
        fn $definition:ident;
        $($(#[doc = $doc:literal])* $vis:vis const $name:ident: $ty:tt $(as $cuda:literal)? = $value:expr;)+
    ) => {
        $(
            $(#[doc = $doc])*
            $vis const $name: $ty = $value;
            // A constant that only kernels read is no dead code.
            const _: $ty = $name;
        )+

        /// The CUDA definitions of this module's constants.
        #[cfg(test)]
        pub(crate) fn $definition() -> $crate::device_struct::Definition {
            use $crate::device_struct::{Body, Definition, Item, constant};
            let items = vec![$({
                let ty = [stringify!($ty), $($cuda)?].last().copied().unwrap_or_default();
                Item { docs: &[$($doc),*], text: constant(ty, stringify!($name), &$name) }
            }),+];
            Definition { name: "", docs: &[], size: 0, body: Body::Constants { items }, alignment: None }
        }
    };
}
pub(crate) use device_constants;

#[cfg(test)]
pub(crate) use generate::{Body, Definition, DeviceType, Item, check_header, constant, field};

#[cfg(test)]
mod generate {
    use std::path::Path;

    /// The variable that makes the tests write the generated files instead of comparing them.
    const WRITE_VARIABLE: &str = "VECAZ_WRITE_HEADERS";
    const WIDTH: usize = 130;

    /// A type with a CUDA definition.
    pub(crate) trait DeviceType {
        /// Its definition.
        fn definition() -> Definition;
    }

    /// A struct, an enum, or the constants of a module, which have no name.
    pub(crate) struct Definition {
        pub name: &'static str,
        pub docs: &'static [&'static str],
        pub size: usize,
        pub body: Body,
        pub alignment: Option<usize>,
    }

    /// What a definition consists of.
    pub(crate) enum Body {
        Fields { items: Vec<Item> },
        Variants { items: Vec<Item>, repr: &'static str },
        Constants { items: Vec<Item> },
    }

    /// A field, a variant or a constant, and its CUDA text; a field that CUDA adds by itself has no text.
    pub(crate) struct Item {
        pub docs: &'static [&'static str],
        pub text: String,
    }

    /// A field's CUDA text; its type is the last of `types`.
    pub(crate) fn field(name: &str, types: &[&str]) -> String {
        match types.last() {
            None | Some(&"") => String::new(),
            Some(ty) => format!("{};", declaration(ty, name)),
        }
    }

    /// A constant's CUDA text. Large unsigned numbers are masks and have hexadecimal digits.
    pub(crate) fn constant(ty: &str, name: &str, value: &impl std::fmt::Debug) -> String {
        let value = format!("{value:?}");
        if ty.starts_with('[') {
            return format!(
                "VZ_TABLE {} = {};",
                declaration(ty, name),
                value.replace('[', "{").replace(']', "}")
            );
        }
        let value = match value.parse::<u64>() {
            Ok(mask) if mask >= 0xFFFF => match ty {
                "u16" => format!("{mask:#06X}"),
                "u32" => format!("{mask:#010X}"),
                "u64" => format!("{mask:#018X}"),
                _ => value,
            },
            _ => value,
        };
        let suffix = match ty {
            "u32" => "u",
            "u64" => "ull",
            "f32" => "f",
            _ => "",
        };
        format!("constexpr {ty} {name} = {value}{suffix};")
    }

    impl Definition {
        /// The same under another name in CUDA: the base of a struct that has the type's own name and its methods.
        pub(crate) fn base(self, name: &'static str) -> Self {
            Self { name, ..self }
        }

        /// The same with a larger alignment in CUDA.
        pub(crate) fn aligned(self, bytes: usize) -> Self {
            Self { alignment: Some(bytes), ..self }
        }

        fn text(&self) -> String {
            let Self { name, docs, size, body, alignment } = self;
            let docs = comment(docs, "");
            let lines = |items: &[Item], indent: &str| -> String {
                items.iter().filter(|item| !item.text.is_empty()).map(|item| line(item, indent)).collect()
            };
            match body {
                Body::Fields { items } => {
                    let align = alignment.map_or(String::new(), |bytes| format!("alignas({bytes}) "));
                    let fields = lines(items, "    ");
                    let assert =
                        format!("static_assert(sizeof({name}) == {size}, \"must equal the Rust struct\");");
                    format!("{docs}struct {align}{name} {{\n{fields}}};\n{assert}\n")
                }
                Body::Variants { items, repr } => {
                    format!("{docs}enum class {name} : {repr} {{\n{}}};\n", lines(items, "    "))
                }
                Body::Constants { items } => lines(items, ""),
            }
        }
    }

    /// An item with its documentation, behind it where one line holds both.
    fn line(item: &Item, indent: &str) -> String {
        let behind = format!("{indent}{} {}", item.text, comment(item.docs, ""));
        if item.docs.len() == 1 && behind.trim_end().len() <= WIDTH {
            return behind;
        }
        format!("{}{indent}{}\n", comment(item.docs, indent), item.text)
    }

    /// Documentation as lines of a CUDA comment.
    fn comment(docs: &[&str], indent: &str) -> String {
        let plain = |line: &str| line.replace("[`", "`").replace("`]", "`");
        docs.iter().map(|line| format!("{indent}//{}\n", plain(line))).collect()
    }

    /// A field or a table in CUDA: the length of the Rust type `[T; N]` is written behind the name.
    fn declaration(ty: &str, name: &str) -> String {
        match ty.strip_prefix('[').and_then(|array| array.strip_suffix(']')?.rsplit_once("; ")) {
            Some((item, length)) => declaration(item, &format!("{name}[{length}]")),
            None => format!("{ty} {name}"),
        }
    }

    /// Fails where `kernels/<path>` is not the header with `definitions` in `namespace`, which uses what `preamble` declares; writes
    /// the header instead where [`WRITE_VARIABLE`] is set.
    pub(crate) fn check_header(path: &str, namespace: &str, preamble: &str, definitions: &[Definition]) {
        let definitions: String =
            definitions.iter().map(|definition| format!("\n{}", definition.text())).collect();
        let text = format!(
            "// The types that these kernels share with Rust, generated from the Rust types of the same names. Do not edit: the test\n\
             // that compares this file says how to write it.\n#pragma once\n#include \"common.cuh\"\n\n\
             namespace {namespace} {{\n{preamble}{definitions}\n}} // namespace {namespace}\n"
        );
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels").join(path);
        if std::env::var_os(WRITE_VARIABLE).is_some() {
            std::fs::write(&file, text).expect("writable");
            return;
        }
        let found = std::fs::read_to_string(&file).unwrap_or_default();
        let line = found.lines().zip(text.lines()).take_while(|(found, right)| found == right).count();
        assert!(
            found == text,
            "kernels/{path} is not what the Rust types give, from line {} on: found {:?}, expected {:?}; write it with \
             {WRITE_VARIABLE}=1 cargo test --lib generated",
            line + 1,
            found.lines().nth(line).unwrap_or("its end"),
            text.lines().nth(line).unwrap_or("its end"),
        );
    }
}
