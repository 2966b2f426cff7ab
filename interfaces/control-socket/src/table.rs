// SPDX-License-Identifier: Apache-2.0
//! The contract of a verb: one row of the table that a daemon shares with its clients.
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Access;

/// The length of the lines of a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A request of at most [`crate::SMALL_LINE`] bytes, a short answer.
    Small,
    /// A request of at most [`crate::MAX_LINE`] bytes.
    Large,
    /// An answer of at most [`crate::MAX_LINE`] bytes that costs nothing but memory. Its call
    /// waits for that many bytes. Not for a verb that waits for a guest: it would hold the bytes
    /// meanwhile.
    Listing,
}

/// A verb: who may call it, and the types of its arguments and its answer.
pub trait Signature {
    const NAME: &'static str;
    const ACCESS: Access;
    const SIZE: Size;
    type Args: Serialize + DeserializeOwned + 'static;
    type Answer: Serialize + DeserializeOwned + 'static;
}

/// The arguments of a verb that has none.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NoArgs {}

/// The answer of a verb that only does something.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Done {}

impl From<()> for Done {
    fn from((): ()) -> Self {
        Self {}
    }
}

/// Makes a type with a [`Signature`] for each row, and `NAMES`. The feature `schema` adds the
/// function `contract`.
///
/// A row begins with the verb's meaning, its type and its name. In brackets are the roles that may
/// call it besides the operator; `any` stands for every role. The [`Size`] follows, unless it is
/// small, and the types of arguments and answer:
///
/// ```
/// control_socket::verbs! {
///     /// Removes a port; idempotent.
///     RemovePort "port-remove" [toolstack]: control_socket::NoArgs => control_socket::Done;
/// }
/// assert_eq!(NAMES, ["port-remove"]);
/// ```
#[macro_export]
macro_rules! verbs {
    ($(
        $(#[doc = $meaning:literal])+
        $verb:ident $name:literal [$($role:ident),+] $($size:ident)?: $args:ty => $answer:ty;
    )*) => {
        $(
            $(#[doc = $meaning])+
            #[derive(Debug)]
            pub enum $verb {}

            impl $crate::Signature for $verb {
                const NAME: &'static str = $name;
                const ACCESS: $crate::Access = $crate::verbs!(@access $($role)+);
                const SIZE: $crate::Size = $crate::verbs!(@size $($size)?);
                type Args = $args;
                type Answer = $answer;
            }
        )*

        /// The names of all verbs.
        pub const NAMES: &[&str] = &[$($name),*];

        /// The contract of each verb by its name.
        #[cfg(feature = "schema")]
        pub fn contract(
            generator: &mut schemars::SchemaGenerator,
        ) -> std::collections::BTreeMap<&'static str, $crate::Described> {
            [$({
                let meaning = concat!($($meaning, "\n"),+);
                $crate::Described::of::<$verb>(meaning, generator)
            }),*]
            .into()
        }
    };
    (@access any) => { $crate::Access::Any };
    (@access $($role:ident)+) => { $crate::Access::Only(&[$(stringify!($role)),+]) };
    (@size) => { $crate::Size::Small };
    (@size large) => { $crate::Size::Large };
    (@size listing) => { $crate::Size::Listing };
}

/// A verb as the file of the contract describes it.
#[cfg(feature = "schema")]
#[derive(Debug, Serialize)]
pub struct Described {
    args: schemars::Schema,
    answer: schemars::Schema,
    meaning: String,
    /// Those that may call it besides the operator; none for every role.
    roles: Option<&'static [&'static str]>,
    size: &'static str,
}

#[cfg(feature = "schema")]
impl Described {
    /// A verb by its name.
    pub fn of<V: Signature<Args: schemars::JsonSchema, Answer: schemars::JsonSchema>>(
        meaning: &str,
        generator: &mut schemars::SchemaGenerator,
    ) -> (&'static str, Self) {
        let words: Vec<_> = meaning.split_whitespace().collect();
        let described = Self {
            args: generator.subschema_for::<V::Args>(),
            answer: generator.subschema_for::<V::Answer>(),
            meaning: words.join(" "),
            roles: match V::ACCESS {
                Access::Any => None,
                Access::Only(roles) => Some(roles),
            },
            size: match V::SIZE {
                Size::Small => "small",
                Size::Large => "large",
                Size::Listing => "listing",
            },
        };
        (V::NAME, described)
    }
}
