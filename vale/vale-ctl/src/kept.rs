// SPDX-License-Identifier: Apache-2.0
//! Requests that valed repeats when it starts.
use vale_proto::{Keep, KeptInfo, KeptList, ValeClient};

use crate::show::{self, Format};

/// Carries out a request that valed keeps. A request that is not kept is noted on standard error.
pub fn keep(client: &mut ValeClient, request: &Keep) -> Result<(), String> {
    let not_kept = client.keep(request).map_err(|e| e.to_string())?;
    note(not_kept);
    Ok(())
}

/// Notes on standard error why a request is not kept.
pub fn note(not_kept: Option<String>) {
    if let Some(why) = not_kept {
        eprintln!("vale-ctl: note: not kept for the next start of valed: {why}");
    }
}

/// The kept requests.
pub fn list(client: &mut ValeClient, format: Format) -> Result<String, String> {
    let list = client.kept_list().map_err(|e| e.to_string())?;
    Ok(show(&list, format))
}

/// Notes on standard error what of the kept requests is not in force.
pub fn note_waiting(client: &mut ValeClient) {
    // valed does not list them for every peer.
    let list = client.kept_list().unwrap_or_default();
    let waiting = list.kept.iter().filter(|kept| kept.waits.is_some());
    if let count @ 1.. = waiting.count() {
        eprintln!("vale-ctl: note: {count} kept requests are not in force: vale-ctl kept");
    }
    if let Some(fault) = list.fault {
        eprintln!("vale-ctl: note: {fault}");
    }
}

fn show(list: &KeptList, format: Format) -> String {
    if format == Format::Json {
        return show::json_text(list);
    }
    let rows = list.kept.iter().map(row);
    let mut text = show::table(&["VERB", "ARGUMENTS", "IN FORCE"], rows);
    if let Some(fault) = &list.fault {
        text.push_str(&format!("{fault}\n"));
    }
    text
}

fn row(kept: &KeptInfo) -> Vec<String> {
    let request = serde_json::json!(kept.request);
    let waits = kept.waits.as_ref().map(|why| format!("no: {why}"));
    vec![
        request["verb"].as_str().unwrap_or_default().to_owned(),
        request["args"].to_string(),
        waits.unwrap_or_else(|| "yes".to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_says_whether_it_is_in_force() {
        let request = |port: &str| {
            let args = serde_json::json!({"switch": "vale0", "port": port});
            let request = serde_json::json!({"verb": "port-remove", "args": args});
            serde_json::from_value(request).unwrap()
        };
        let list = KeptList {
            kept: vec![
                KeptInfo {
                    request: request("a"),
                    waits: None,
                },
                KeptInfo {
                    request: request("b"),
                    waits: Some("ifname: b does not exist".to_owned()),
                },
            ],
            fault: Some("kept.json.unusable: could not be used".to_owned()),
        };
        let text = show(&list, Format::Table);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[1].ends_with("  yes"), "{text}");
        assert!(lines[2].ends_with("no: ifname: b does not exist"), "{text}");
        assert_eq!(lines[3], "kept.json.unusable: could not be used");
        let back: KeptList = serde_json::from_str(&show(&list, Format::Json)).unwrap();
        assert_eq!(back, list);
    }
}
