// SPDX-License-Identifier: Apache-2.0
//! Wrong variants of good arguments: each place in turn gets each value of a table.
use serde_json::{Value, json};

use crate::compact::repeated;

/// The way from the arguments to a value, with one part for each level.
type Place = Vec<Part>;

#[derive(Clone)]
enum Part {
    Key(String),
    Entry(usize),
}

enum Change {
    Remove,
    Put(Value),
}

/// Arguments with one wrong value each, in a fixed order.
pub fn singles(args: &Value) -> Vec<Value> {
    let changes = all(args);
    let made = changes
        .iter()
        .map(|(place, change)| apply(args, place, change));
    made.collect()
}

/// `count` arguments with two wrong values: they fix which one the daemon names. `seed` chooses.
pub fn doubles(args: &Value, count: usize, seed: u64) -> Vec<Value> {
    let changes = all(args);
    let mut random = Random(seed);
    let mut one = |args: &Value| {
        let (place, change) = &changes[random.below(changes.len())];
        apply(args, place, change)
    };
    let mut two = || {
        let changed = one(args);
        one(&changed)
    };
    (0..count).map(|_| two()).collect()
}

/// The generator splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % end as u64) as usize
    }
}

fn all(args: &Value) -> Vec<(Place, Change)> {
    let mut changes = Vec::new();
    walk(args, &mut Vec::new(), &mut changes);
    changes
}

fn walk(value: &Value, place: &mut Place, changes: &mut Vec<(Place, Change)>) {
    if !place.is_empty() {
        changes.push((place.clone(), Change::Remove));
    }
    let values = wrong(value).into_iter();
    changes.extend(values.map(|value| (place.clone(), Change::Put(value))));
    let parts: Place = match value {
        Value::Object(members) => members.keys().cloned().map(Part::Key).collect(),
        Value::Array(entries) => (0..entries.len()).map(Part::Entry).collect(),
        _ => Vec::new(),
    };
    for part in parts {
        let inner = match &part {
            Part::Key(key) => &value[key],
            Part::Entry(at) => &value[at],
        };
        place.push(part);
        walk(inner, place, changes);
        place.pop();
    }
}

/// Values to put instead of a good one.
fn wrong(good: &Value) -> Vec<Value> {
    let mut values = vec![json!(null), json!([]), json!({}), json!(true), json!("x y")];
    values.extend(match good {
        Value::Number(_) => vec![
            json!(-1),
            json!(0),
            json!(1.5),
            json!(64),
            json!(9000),
            json!(65_535),
            json!(65_536),
            json!(600_001),
            json!(1_u64 << 32),
            json!(u64::MAX),
        ],
        Value::String(text) => vec![
            json!(7),
            json!(""),
            json!("a\n"),
            json!("a\0b"),
            json!("../é"),
            json!(text.to_uppercase()),
            json!(format!("{text}z")),
            repeated(json!("a"), 300),
        ],
        Value::Bool(_) => vec![json!(1), json!("true")],
        Value::Array(entries) => {
            let first = entries.first().cloned().unwrap_or(json!("a"));
            let twin = entries.iter().chain([&first]).cloned().collect();
            let [few, many] = [65, 1025].map(|times| repeated(first.clone(), times));
            vec![json!(7), Value::Array(twin), few, many]
        }
        Value::Object(members) => {
            let mut more = members.clone();
            more.insert("nonsense".to_owned(), json!(1));
            vec![json!(7), Value::Object(more)]
        }
        Value::Null => vec![json!(7)],
    });
    values
}

fn apply(args: &Value, place: &[Part], change: &Change) -> Value {
    let mut changed = args.clone();
    let Some((last, way)) = place.split_last() else {
        return match change {
            Change::Remove => changed,
            Change::Put(value) => value.clone(),
        };
    };
    // An earlier change may have removed the place.
    let Some(holder) = way.iter().try_fold(&mut changed, step) else {
        return changed;
    };
    match (holder, last, change) {
        (Value::Object(members), Part::Key(key), Change::Remove) => {
            members.remove(key);
        }
        (Value::Object(members), Part::Key(key), Change::Put(value)) => {
            members.insert(key.clone(), value.clone());
        }
        (Value::Array(entries), Part::Entry(at), change) if *at < entries.len() => match change {
            Change::Remove => drop(entries.remove(*at)),
            Change::Put(value) => entries[*at] = value.clone(),
        },
        _ => (),
    }
    changed
}

fn step<'a>(value: &'a mut Value, part: &Part) -> Option<&'a mut Value> {
    match part {
        Part::Key(key) => value.as_object_mut()?.get_mut(key),
        Part::Entry(at) => value.as_array_mut()?.get_mut(*at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_changes_and_the_rest_stays() {
        let args = json!({"a": 1, "b": [["x", "y"]]});
        let made = singles(&args);
        for expected in [
            json!({"b": [["x", "y"]]}),
            json!({"a": -1, "b": [["x", "y"]]}),
            json!({"a": 1, "b": []}),
            json!({"a": 1, "b": [["y"]]}),
            json!({"a": 1, "b": [["x", "yz"]]}),
            json!({"a": 1, "b": [["x", "y"]], "nonsense": 1}),
            json!(null),
        ] {
            assert!(made.contains(&expected), "{expected}");
        }
        assert_eq!(doubles(&args, 5, 1), doubles(&args, 5, 1));
        assert_ne!(doubles(&args, 5, 1), doubles(&args, 5, 2));
    }
}
