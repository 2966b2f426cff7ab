// SPDX-License-Identifier: Apache-2.0
//! The syntax tree of a configuration, as close to the text as unparsing needs. Names and
//! configuration strings are parts of the text.
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::source::SourcePos;
use crate::text;

/// One statement.
#[derive(Clone, Debug)]
pub enum Statement<'a> {
    /// Declarations and connections: `a :: A -> b [1] => ...`.
    Chain(Vec<Step<'a>>),
    /// `elementclass Name ...`.
    ElementClass {
        /// The new class.
        name: &'a str,
        /// The class, or the compound.
        body: ClassBody<'a>,
        /// Where.
        place: SourcePos,
    },
    /// `require(...)`, its arguments verbatim.
    Require(Config<'a>),
    /// `provide(...)`, its arguments verbatim.
    Provide(Config<'a>),
    /// `define($name value, ...)`, its arguments verbatim.
    Define(Config<'a>),
}

/// The body of an `elementclass`.
#[derive(Clone, Debug)]
pub enum ClassBody<'a> {
    /// Another name for a class.
    Synonym(&'a str),
    /// A compound element class.
    Compound(Box<Compound<'a>>),
}

/// The braces of a compound element: one body per overload.
#[derive(Clone, Debug)]
pub struct Compound<'a> {
    /// The overloads in order.
    pub overloads: Vec<Overload<'a>>,
    /// True if `...` ends it: the class of the same name so far is tried last.
    pub extends: bool,
    /// Where.
    pub place: SourcePos,
}

/// One overload of a compound element class.
#[derive(Clone, Debug)]
pub struct Overload<'a> {
    /// Its parameters.
    pub formals: Vec<Formal<'a>>,
    /// Its content.
    pub statements: Vec<Statement<'a>>,
    /// Where.
    pub place: SourcePos,
}

/// A parameter: `$name` or `KEYWORD $name`; `__REST__ $name` takes what is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formal<'a> {
    /// The keyword, empty for a positional parameter.
    pub keyword: &'a str,
    /// The variable, without `$`.
    pub name: &'a str,
}

/// The elements between two arrows.
#[derive(Clone, Debug)]
pub struct Step<'a> {
    /// Separated by commas.
    pub terms: Vec<Term<'a>>,
    /// The arrow behind them; none behind the last step.
    pub arrow: Option<(Arrow, SourcePos)>,
}

/// How two steps are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrow {
    /// `->`
    Single,
    /// `=>`: port by port.
    Pairwise,
}

/// One element in a chain: a reference, a declaration or an anonymous element.
#[derive(Clone, Debug)]
pub struct Term<'a> {
    /// `[..]` in front.
    pub inputs: Option<Box<Ports>>,
    /// The element.
    pub what: What<'a>,
    /// The class behind `::`.
    pub class: Option<ClassRef<'a>>,
    /// The configuration string.
    pub config: Option<Config<'a>>,
    /// `[..]` behind.
    pub outputs: Option<Box<Ports>>,
    /// Where.
    pub place: SourcePos,
}

/// The element itself.
#[derive(Clone, Debug)]
pub enum What<'a> {
    /// A name: of an element, or of a class for an anonymous element.
    Name(&'a str),
    /// An anonymous compound element.
    Compound(Box<Compound<'a>>),
    /// A group in parentheses.
    Group(Vec<Statement<'a>>),
    /// Nothing: the compound's `input` or `output`.
    Implicit,
}

/// The class of a declaration.
#[derive(Clone, Debug)]
pub enum ClassRef<'a> {
    /// By name.
    Name(&'a str, SourcePos),
    /// Written on the spot.
    Compound(Box<Compound<'a>>),
}

/// A configuration string, verbatim.
#[derive(Clone, Copy, Debug)]
pub struct Config<'a> {
    /// The text between the parentheses, with its line directives.
    pub raw: &'a str,
    /// Where the text begins.
    pub place: SourcePos,
}

impl<'a> Config<'a> {
    /// The text without line directives.
    pub fn text(&self) -> Cow<'a, str> {
        text::without_directives(self.raw)
    }
}

/// A port list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports {
    /// The ports in order.
    pub list: Vec<usize>,
    /// True if a trailing comma (or `[]`) lets the list go on as needed.
    pub open: bool,
}
