// SPDX-License-Identifier: Apache-2.0
//! The syntax tree of a configuration, as close to the text as unparsing needs.
use alloc::string::String;
use alloc::vec::Vec;

use crate::error::Place;

/// One statement.
#[derive(Clone, Debug)]
pub enum Statement {
    /// Declarations and connections: `a :: A -> b [1] => ...`.
    Chain(Vec<Step>),
    /// `elementclass Name ...`.
    ElementClass {
        /// The new class.
        name: String,
        /// What it is.
        body: ClassBody,
        /// Where.
        place: Place,
    },
    /// `require(...)`, its arguments verbatim.
    Require(Config),
    /// `provide(...)`, its arguments verbatim.
    Provide(Config),
    /// `define($name value, ...)`, its arguments verbatim.
    Define(Config),
}

/// What `elementclass` gives a name to.
#[derive(Clone, Debug)]
pub enum ClassBody {
    /// Another name for a class.
    Synonym(String),
    /// A compound element class.
    Compound(Compound),
}

/// The braces of a compound element: one body per overload.
#[derive(Clone, Debug)]
pub struct Compound {
    /// The overloads in order.
    pub overloads: Vec<Overload>,
    /// Whether `...` ends it: the class of the same name so far is tried last.
    pub extends: bool,
    /// Where.
    pub place: Place,
}

/// One overload of a compound element class.
#[derive(Clone, Debug)]
pub struct Overload {
    /// Its parameters.
    pub formals: Vec<Formal>,
    /// Its content.
    pub statements: Vec<Statement>,
    /// Where.
    pub place: Place,
}

/// A parameter: `$name` or `KEYWORD $name`; `__REST__ $name` takes what is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Formal {
    /// The keyword, empty for a positional parameter.
    pub keyword: String,
    /// The variable, without `$`.
    pub name: String,
}

/// The elements between two arrows.
#[derive(Clone, Debug)]
pub struct Step {
    /// Separated by commas.
    pub terms: Vec<Term>,
    /// The arrow behind them; none behind the last step.
    pub arrow: Option<(Arrow, Place)>,
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
pub struct Term {
    /// `[..]` in front.
    pub inputs: Option<Ports>,
    /// The element.
    pub what: What,
    /// The class behind `::`.
    pub class: Option<ClassRef>,
    /// The configuration string.
    pub config: Option<Config>,
    /// `[..]` behind.
    pub outputs: Option<Ports>,
    /// Where.
    pub place: Place,
}

/// What stands for the element itself.
#[derive(Clone, Debug)]
pub enum What {
    /// A name: of an element, or of a class for an anonymous element.
    Name(String),
    /// An anonymous compound element.
    Compound(Compound),
    /// A group in parentheses.
    Group(Vec<Statement>),
    /// Nothing: the compound's `input` or `output`.
    Implicit,
}

/// The class of a declaration.
#[derive(Clone, Debug)]
pub enum ClassRef {
    /// By name.
    Name(String, Place),
    /// Written on the spot.
    Compound(Compound),
}

/// A configuration string, verbatim but without line directives.
#[derive(Clone, Debug)]
pub struct Config {
    /// The text between the parentheses.
    pub text: String,
    /// Where the text begins.
    pub place: Place,
}

/// A port list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports {
    /// The ports in order.
    pub list: Vec<usize>,
    /// Whether a trailing comma (or `[]`) lets the list go on as needed.
    pub open: bool,
}
