// SPDX-License-Identifier: Apache-2.0
//! The grammar of patterns: `or`, `and`, juxtaposition, `not`, `?:`, parentheses.
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use click_core::value::number;
use click_core::{ArgContext, did_you_mean};

use super::expr::{Expr, Side};
use super::names::{self, ICMP6, Kind, Lookup, lookup, lookup_at};
use super::primitive::{Data, Layer, Operator, Primitive, mask_data};
use super::subject::{
    Field, ICMP_TYPE, ICMP6_TYPE, ONLY4, ONLY6, SUBJECTS, Subject, subject, subject6,
};

/// How deep parentheses and negations nest at most.
const MAX_DEPTH: usize = 100;

/// Parses the words of one pattern.
pub fn parse(words: &[String], at: ArgContext<'_>) -> Result<Expr, String> {
    let mut parser = Parser {
        words,
        pos: 0,
        at,
        before: Primitive::default(),
        depth: 0,
    };
    let expr = parser.expr()?;
    match parser.word() {
        Some(word) => Err(format!("unexpected \"{word}\"")),
        None => Ok(expr),
    }
}

/// The words of the grammar that name nothing.
const GRAMMAR: [&str; 10] = [
    "and", "or", "not", "src", "dst", "ip", "ip6", "ether", "true", "false",
];

/// All words of patterns, for suggestions.
fn words() -> impl Iterator<Item = &'static str> {
    let subjects = SUBJECTS.iter().map(|(name, _)| *name);
    GRAMMAR.into_iter().chain(subjects).chain(names::all())
}

/// The likely meaning of an unknown word.
fn hint(word: &str) -> String {
    match words().any(|known| known == word) {
        true => String::new(),
        false => did_you_mean(word, words()),
    }
}

/// What a message has that says what stands for a value.
const EXPECTED: &str = ": expected ";

struct Parser<'a> {
    words: &'a [String],
    pos: usize,
    at: ArgContext<'a>,
    before: Primitive,
    depth: usize,
}

type Parsed = Result<Expr, String>;

/// One condition of a list of them; it is kept as long as its rule, so it takes no more memory than it needs.
fn joined(mut list: Vec<Expr>, join: fn(Vec<Expr>) -> Expr) -> Expr {
    if list.len() == 1 {
        return list.remove(0);
    }
    list.shrink_to_fit();
    join(list)
}

impl<'a> Parser<'a> {
    fn word(&self) -> Option<&'a str> {
        self.words.get(self.pos).map(String::as_str)
    }

    fn ahead(&self, n: usize) -> &'a str {
        self.words.get(self.pos + n).map_or("", String::as_str)
    }

    fn accept(&mut self, either: &[&str]) -> bool {
        let found = self.word().is_some_and(|w| either.contains(&w));
        self.pos += usize::from(found);
        found
    }

    fn nested(&mut self, parse: impl FnOnce(&mut Self) -> Parsed) -> Parsed {
        if self.depth == MAX_DEPTH {
            return Err(format!("nested deeper than {MAX_DEPTH}"));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn expr(&mut self) -> Parsed {
        let condition = self.or()?;
        if !self.accept(&["?"]) {
            return Ok(condition);
        }
        let yes = self.nested(Self::expr)?;
        if !self.accept(&[":"]) {
            return Err("\"?\" without \":\"".to_string());
        }
        let no = self.nested(Self::expr)?;
        Ok(Expr::If(Box::new([condition, yes, no])))
    }

    fn or(&mut self) -> Parsed {
        let mut list = Vec::from([self.and()?]);
        while self.accept(&["or", "||"]) {
            list.push(self.and()?);
        }
        Ok(joined(list, Expr::Or))
    }

    fn and(&mut self) -> Parsed {
        let mut list = Vec::from([self.factor()?]);
        loop {
            let required = self.accept(&["and", "&&"]);
            let ends = self
                .word()
                .is_none_or(|w| [")", "or", "||", "?", ":"].contains(&w));
            if ends && !required {
                break;
            }
            list.push(self.factor()?);
        }
        Ok(joined(list, Expr::And))
    }

    fn factor(&mut self) -> Parsed {
        if self.accept(&["not", "!"]) {
            return self.nested(Self::factor).map(|e| Expr::Not(Box::new(e)));
        }
        if self.accept(&["("]) {
            let inner = self.nested(Self::expr)?;
            return if self.accept(&[")"]) {
                Ok(inner)
            } else {
                Err("\"(\" without \")\"".to_string())
            };
        }
        self.test()
    }

    fn test(&mut self) -> Parsed {
        match self.word() {
            None => return Err("expected a condition at the end".to_string()),
            Some("true") => {
                self.pos += 1;
                return Ok(Expr::Const(true));
            }
            Some("false") => {
                self.pos += 1;
                return Ok(Expr::Const(false));
            }
            Some(_) => {}
        }
        let start = self.pos;
        let mut primitive = Primitive::default();
        let (mut layer, negated) = self.qualifiers(&mut primitive)?;
        if self.pos != start {
            self.before = Primitive::default();
        }
        if matches!(self.before.data, Data::Ether(_)) {
            layer = Some(Layer::Ether);
        }
        if self.pos != start && primitive.subject.is_none() && self.word() == Some("[") {
            self.brackets(&mut primitive)?;
        }
        self.mask(&mut primitive, layer)?;
        let has_operator = self.operator(&mut primitive);
        self.data(&mut primitive, layer, has_operator)?;
        if self.pos == start {
            let word = self.ahead(0);
            return Err(format!("unknown word \"{word}\"{}", hint(word)));
        }
        let made = primitive.finish(&self.before, layer);
        let taken = self
            .pos
            .checked_sub(1)
            .and_then(|last| self.words.get(last));
        let expr = made.map_err(|message| match (primitive.data, self.word()) {
            (Data::None, Some(word)) => format!("{message}, got \"{word}\"{}", hint(word)),
            (Data::None, None) if message.contains(EXPECTED) => format!("{message}, got nothing"),
            (_, _) if message.contains(EXPECTED) => {
                format!("{message}, got \"{}\"", taken.map_or("", String::as_str))
            }
            _ => message,
        })?;
        self.before = primitive;
        Ok(if negated {
            Expr::Not(Box::new(expr))
        } else {
            expr
        })
    }

    /// The protocol of a word that the grammar does not know.
    fn protocol(&self, word: &str) -> Option<u32> {
        let found = match lookup(word, None, None) {
            Lookup::Unknown if !GRAMMAR.contains(&word) => {
                lookup_at(self.at, word, Some(Kind::Protocol), None)
            }
            found => found,
        };
        match found {
            Lookup::Value(Kind::Protocol, protocol) => Some(protocol),
            _ => None,
        }
    }

    /// `src tcp port` and the like, up to what does not belong to it.
    fn qualifiers(&mut self, primitive: &mut Primitive) -> Result<(Option<Layer>, bool), String> {
        let (mut layer, mut negated) = (None, false);
        while let Some(word) = self.word() {
            if let Some(found) = found_subject(word, layer, primitive.protocol)? {
                set(&mut primitive.subject, found, "what is tested")?;
                if let Subject::Field(Field {
                    protocol: Some(protocol),
                    ..
                }) = found
                {
                    set(&mut primitive.protocol, protocol, "the protocol")?;
                }
            } else if let Some(protocol) = self.protocol(word) {
                set(&mut primitive.protocol, protocol, "the protocol")?;
            } else {
                match word {
                    "src" => {
                        let side = self.source_and_destination();
                        set(&mut primitive.side, side, "src or dst")?;
                    }
                    "dst" | "dest" => set(&mut primitive.side, Side::Destination, "src or dst")?,
                    "ip" if layer.is_none() => layer = Some(Layer::Ip),
                    "ip6" if layer.is_none() => layer = Some(Layer::Ip6),
                    "ether" if layer.is_none() => layer = Some(Layer::Ether),
                    "not" | "!" => negated = !negated,
                    _ => break,
                }
            }
            self.pos += 1;
        }
        Ok((layer, negated))
    }

    /// `src`, `src or dst`, `src and dst`; leaves the last word to the caller.
    fn source_and_destination(&mut self) -> Side {
        let both = ["dst", "dest"].contains(&self.ahead(2));
        let side = match self.ahead(1) {
            "and" | "&&" if both => Side::Both,
            "or" | "||" if both => Side::Either,
            _ => return Side::Source,
        };
        self.pos += 2;
        side
    }

    /// `[POS]`, `[POS:LEN]` or `[POS,LAST]`, in bytes.
    fn brackets(&mut self, primitive: &mut Primitive) -> Result<(), String> {
        let Some(end) = self.words[self.pos..].iter().position(|w| w == "]") else {
            return Err("\"[\" without \"]\"".to_string());
        };
        let inside = self.words[self.pos + 1..self.pos + end].concat();
        self.pos += end + 1;
        let small = |s: &str| {
            number(s)
                .and_then(|n| u32::try_from(n).ok())
                .filter(|n| *n < 1 << 16)
        };
        let parts = match (inside.split_once(':'), inside.split_once(',')) {
            (Some((at, len)), _) => small(at).zip(small(len)),
            (_, Some((at, last))) => small(at)
                .zip(small(last))
                .and_then(|(a, l)| Some((a, (l + 1).checked_sub(a)?))),
            _ => small(&inside).map(|at| (at, 1)),
        };
        let Some((at, len)) = parts else {
            return Err(format!("expected [POS] or [POS:LEN], got \"[{inside}]\""));
        };
        if !(1..=4).contains(&len) || at / 4 != (at + len - 1) / 4 {
            return Err(format!(
                "\"[{inside}]\" must be 1 to 4 bytes inside an aligned word"
            ));
        }
        let (transport, protocol) = (primitive.protocol.is_some(), primitive.protocol);
        primitive.subject = Some(Subject::Field(Field {
            transport,
            protocol,
            offset: 8 * at,
            len: 8 * u8::try_from(len).expect("at most 4 bytes"),
        }));
        Ok(())
    }

    fn mask(&mut self, primitive: &mut Primitive, layer: Option<Layer>) -> Result<(), String> {
        if self.word() != Some("&") {
            return Ok(());
        }
        let Some(mask) = mask_data(self.ahead(1), layer, self.at) else {
            return Err(format!(
                "expected a mask behind \"&\", got \"{}\"",
                self.ahead(1)
            ));
        };
        if matches!(mask, Data::Int(0) | Data::Host(0)) {
            return Err("a mask of zero leaves nothing to test".to_string());
        }
        primitive.mask = mask;
        self.pos += 2;
        Ok(())
    }

    fn operator(&mut self, primitive: &mut Primitive) -> bool {
        let (operator, negated) = match self.word() {
            Some("=" | "==") => (Operator::Equal, false),
            Some("!=") => (Operator::Equal, true),
            Some(">") => (Operator::Greater, false),
            Some("<") => (Operator::Less, false),
            Some(">=") => (Operator::Less, true),
            Some("<=") => (Operator::Greater, true),
            _ => return false,
        };
        (primitive.operator, primitive.negated) = (operator, negated);
        self.pos += 1;
        true
    }

    fn data(
        &mut self,
        primitive: &mut Primitive,
        layer: Option<Layer>,
        required: bool,
    ) -> Result<(), String> {
        let stop = [
            "and", "&&", "or", "||", ")", "?", ":", "(", "not", "!", "src", "dst", "dest", "ip",
            "ip6", "ether",
        ];
        let word = self
            .word()
            .filter(|w| !stop.contains(w) && subject(w).is_none());
        let taken = match word {
            Some(word) => primitive.parse_data(word, layer, self.at)?,
            None => false,
        };
        if !taken {
            return if required {
                Err("an operator without a value".to_string())
            } else {
                Ok(())
            };
        }
        self.pos += 1;
        if let (Data::Host(address), Some("mask")) = (primitive.data, self.word()) {
            let Some(Data::Host(mask)) = mask_data(self.ahead(1), Some(Layer::Ip), self.at) else {
                return Err(format!(
                    "expected a mask such as 255.0.0.0, got \"{}\"",
                    self.ahead(1)
                ));
            };
            primitive.data = Data::Net(address, mask);
            self.pos += 2;
        }
        Ok(())
    }
}

/// The subject that a word names after a header's name and a protocol.
#[inline(never)]
fn found_subject(
    word: &str,
    layer: Option<Layer>,
    protocol: Option<u32>,
) -> Result<Option<Subject>, String> {
    let is_ip6 = layer == Some(Layer::Ip6);
    let wrong = if is_ip6 { ONLY4.as_slice() } else { &ONLY6 };
    if wrong.contains(&word) {
        let (here, other) = if is_ip6 { ("ip6", "ip") } else { ("ip", "ip6") };
        return Err(format!(
            "\"{word}\" is a field of {other}, and {here} has none of that name"
        ));
    }
    let found = if is_ip6 {
        subject6(word)
    } else {
        subject(word)
    };
    Ok(match (found, protocol) {
        (Some(ICMP_TYPE), Some(ICMP6)) => Some(ICMP6_TYPE),
        (found, _) => found,
    })
}

/// Sets what may be given once, or again the same.
fn set<T: PartialEq + Copy>(slot: &mut Option<T>, value: T, what: &str) -> Result<(), String> {
    match slot.replace(value) {
        Some(before) if before != value => Err(format!("{what} is given twice")),
        _ => Ok(()),
    }
}
