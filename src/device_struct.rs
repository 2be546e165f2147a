//! Structs and enums that kernels share with Rust. Each is defined once, in Rust; tests generate the CUDA definitions from them and
//! compare them with the committed files in `kernels/`.
//!
//! `bytemuck` refuses padding between fields at compile time, and the generated file asserts that CUDA has the same size, so the fields
//! have the same offsets on both sides.

/// Defines a `#[repr(C)]` struct with a CUDA definition. It derives `bytemuck::NoUninit`, or `Pod`.
///
/// The CUDA type of a field has the name of its Rust type, which is a primitive type, another shared type or an array of these.
/// A field that is an address is a `u64` with its CUDA type behind `as`. Padding at the end that CUDA adds by itself has the type "".
macro_rules! device_struct {
    (
        $(#[doc = $doc:literal])*
        #[derive($($derive:tt)*)]
        $vis:vis struct $name:ident {
            $($(#[doc = $field_doc:literal])* $field_vis:vis $field:ident: $ty:ty $(as $cuda:literal)?,)+
        }
    ) => {
        $(#[doc = $doc])*
        #[derive($($derive)*)]
        #[repr(C)]
        $vis struct $name { $($(#[doc = $field_doc])* $field_vis $field: $ty,)+ }

        $crate::device_struct::device_type! {
            $name: [$($doc)*], Fields,
            $([$($field_doc)*] $field: [stringify!($ty), $($cuda)?].last().copied().unwrap_or_default(),)+
        }
    };
}
pub(crate) use device_struct;

/// Defines a `#[repr(u32)]` enum with a CUDA definition; variants are numbered from 0. It derives `bytemuck::NoUninit`.
macro_rules! device_enum {
    (
        $(#[doc = $doc:literal])*
        #[derive($($derive:tt)*)]
        $vis:vis enum $name:ident {
            $($(#[doc = $variant_doc:literal])* $(#[serde($($serde:tt)*)])? $variant:ident,)+
        }
    ) => {
        $(#[doc = $doc])*
        #[derive($($derive)*)]
        #[repr(u32)]
        $vis enum $name { $($(#[doc = $variant_doc])* $(#[serde($($serde)*)])? $variant,)+ }

        $crate::device_struct::device_type! {
            $name: [$($doc)*], Variants, $([$($variant_doc)*] $variant: "",)+
        }
    };
}
pub(crate) use device_enum;

/// The CUDA definition of a struct or an enum: its documentation, what its body consists of, and each item with its documentation and type.
macro_rules! device_type {
    ($name:ident: [$($doc:literal)*], $body:ident, $([$($item_doc:literal)*] $item:ident: $ty:expr,)+) => {
        #[cfg(test)]
        impl $crate::device_struct::DeviceType for $name {
            fn definition() -> $crate::device_struct::Definition {
                use $crate::device_struct::{Body, Definition, Item};
                let items = vec![$(Item { docs: &[$($item_doc),*], name: stringify!($item), ty: $ty }),+];
                let docs = &[$($doc),*];
                Definition { name: stringify!($name), docs, size: size_of::<Self>(), body: Body::$body(items), alignment: None }
            }
        }
    };
}
pub(crate) use device_type;

#[cfg(test)]
pub(crate) use generate::{Body, Definition, DeviceType, Item, check_header};

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

    /// A struct or an enum.
    pub(crate) struct Definition {
        pub name: &'static str,
        pub docs: &'static [&'static str],
        pub size: usize,
        pub body: Body,
        pub alignment: Option<usize>,
    }

    /// What a definition consists of.
    pub(crate) enum Body {
        Fields(Vec<Item>),
        Variants(Vec<Item>),
    }

    /// A field, or a variant, which has no type.
    pub(crate) struct Item {
        pub docs: &'static [&'static str],
        pub name: &'static str,
        pub ty: &'static str,
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
            match body {
                Body::Fields(fields) => {
                    let align = alignment.map_or(String::new(), |bytes| format!("alignas({bytes}) "));
                    let declare = |field: &Item| format!("{};", declaration(field.ty, field.name));
                    let declared = fields.iter().filter(|field| !field.ty.is_empty());
                    let fields: String = declared.map(|field| line(&declare(field), field)).collect();
                    let assert =
                        format!("static_assert(sizeof({name}) == {size}, \"must equal the Rust struct\");");
                    format!("{docs}struct {align}{name} {{\n{fields}}};\n{assert}\n")
                }
                Body::Variants(variants) => {
                    let define = |(number, variant): (usize, &Item)| {
                        line(&format!("{} = {number},", variant.name), variant)
                    };
                    let variants: String = variants.iter().enumerate().map(define).collect();
                    format!("{docs}enum class {name} : u32 {{\n{variants}}};\n")
                }
            }
        }
    }

    /// A member with its documentation, behind it where one line holds both.
    fn line(declared: &str, member: &Item) -> String {
        let behind = format!("    {declared} {}", comment(member.docs, ""));
        if member.docs.len() == 1 && behind.trim_end().len() <= WIDTH {
            return behind;
        }
        format!("{}    {declared}\n", comment(member.docs, "    "))
    }

    /// Documentation as lines of a CUDA comment.
    fn comment(docs: &[&str], indent: &str) -> String {
        let plain = |line: &str| line.replace("[`", "`").replace("`]", "`");
        docs.iter().map(|line| format!("{indent}//{}\n", plain(line))).collect()
    }

    /// A field in CUDA: the Rust type `[T; N]` is written behind the name.
    fn declaration(ty: &str, name: &str) -> String {
        match ty.strip_prefix('[').and_then(|array| array.strip_suffix(']')?.split_once("; ")) {
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
