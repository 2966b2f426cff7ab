// SPDX-License-Identifier: Apache-2.0
//! What the switch may ask the store for.
use xenstore::Kind;

/// The event of the end of a domain.
const RELEASE: &str = "@releaseDomain";
/// The node with the number of the client's own domain.
const OWN_DOMAIN: &str = "domid";
/// Where the toolstack describes ports for guests.
const BACKENDS: &str = "/local/domain/0/backend";

/// What is done with a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    /// It passes while the toolstack has made the backend whose node `frontend` this is.
    PassWith(String),
    Refuse,
}

/// Judges a request by its type and its payload.
pub fn judge(kind: u32, payload: &[u8]) -> Verdict {
    let Some(path) = path(payload) else {
        return Verdict::Refuse;
    };
    let pass = |allowed: bool| match allowed {
        true => Verdict::Pass,
        false => Verdict::Refuse,
    };
    match kind {
        kind if kind == Kind::Read as u32 => pass(may_read(path)),
        kind if kind == Kind::Watch as u32 || kind == Kind::Unwatch as u32 => pass(may_watch(path)),
        kind if kind == Kind::Write as u32 => {
            owner(path).map_or(Verdict::Refuse, Verdict::PassWith)
        }
        kind if kind == Kind::TransactionStart as u32
            || kind == Kind::TransactionEnd as u32
            || kind == Kind::IsDomainIntroduced as u32 =>
        {
            Verdict::Pass
        }
        _ => Verdict::Refuse,
    }
}

/// The first string of a payload: the path, if the request has one.
fn path(payload: &[u8]) -> Option<&str> {
    let end = payload.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&payload[..end]).ok()
}

fn may_read(path: &str) -> bool {
    path == OWN_DOMAIN
        || frontend_key(path).is_some()
        || matches!(backend_key(path), Some((_, _, "frontend")))
}

fn may_watch(path: &str) -> bool {
    path == RELEASE || frontend_key(path) == Some("state")
}

/// A key of a guest's frontend, or of netback in its place.
fn frontend_key(path: &str) -> Option<&str> {
    if let Some(("vif", _, key)) = backend_key(path) {
        return key.strip_prefix("netback/");
    }
    let (domain, rest) = path.strip_prefix("/local/domain/")?.split_once('/')?;
    let (device, key) = rest.strip_prefix("device/vale/")?.split_once('/')?;
    (is_number(domain) && is_number(device)).then_some(key)
}

/// Class, directory and key of a backend's node.
fn backend_key(path: &str) -> Option<(&str, &str, &str)> {
    let rest = path.strip_prefix(BACKENDS)?.strip_prefix('/')?;
    let mut parts = rest.splitn(4, '/');
    let (class, domain, device) = (parts.next()?, parts.next()?, parts.next()?);
    let key = parts.next()?;
    let known = matches!(class, "vale" | "vif") && is_number(domain) && is_number(device);
    known.then_some((class, &path[..path.len() - key.len()], key))
}

/// The node `frontend` next to a node that the switch writes.
fn owner(path: &str) -> Option<String> {
    let (class, directory, key) = backend_key(path)?;
    let key = match class {
        "vif" => key.strip_prefix("valed/")?,
        _ => key,
    };
    matches!(key, "state" | "ring-version" | "multi-queue-max-queues")
        .then(|| format!("{directory}frontend"))
}

fn is_number(text: &str) -> bool {
    text.parse::<u16>().is_ok_and(|n| n.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "/local/domain/0/backend/vale/7/1";

    fn of(kind: Kind, path: &str, rest: &str) -> Verdict {
        judge(kind as u32, format!("{path}\0{rest}").as_bytes())
    }

    #[test]
    fn what_valed_asks_for_passes() {
        for path in [
            "domid",
            "/local/domain/7/device/vale/1/state",
            "/local/domain/7/device/vale/1/queue-0/ring-ref",
            "/local/domain/0/backend/vale/7/1/frontend",
            "/local/domain/0/backend/vif/7/1/frontend",
            "/local/domain/0/backend/vif/7/1/netback/ring-ref",
        ] {
            assert_eq!(of(Kind::Read, path, ""), Verdict::Pass, "{path}");
        }
        for path in [
            "@releaseDomain",
            "/local/domain/7/device/vale/1/state",
            "/local/domain/0/backend/vif/7/1/netback/state",
        ] {
            assert_eq!(of(Kind::Watch, path, "token\0"), Verdict::Pass, "{path}");
            assert_eq!(of(Kind::Unwatch, path, "token\0"), Verdict::Pass, "{path}");
        }
        for kind in [Kind::TransactionStart, Kind::TransactionEnd] {
            assert_eq!(of(kind, "", ""), Verdict::Pass);
        }
        assert_eq!(of(Kind::IsDomainIntroduced, "7", ""), Verdict::Pass);
    }

    #[test]
    fn a_write_needs_the_port_of_the_toolstack() {
        let frontend = |directory: &str| Verdict::PassWith(format!("{directory}/frontend"));
        for key in ["state", "ring-version", "multi-queue-max-queues"] {
            let found = of(Kind::Write, &format!("{OWN}/{key}"), "4");
            assert_eq!(found, frontend(OWN), "{key}");
        }
        let vif = "/local/domain/0/backend/vif/7/1";
        let found = of(Kind::Write, &format!("{vif}/valed/state"), "4");
        assert_eq!(found, frontend(vif));
    }

    #[test]
    fn all_else_is_refused() {
        for (kind, path) in [
            (Kind::Read, "/local/domain/7/data/clickos/key"),
            (Kind::Read, "/local/domain/7/device/vif/1/state"),
            (Kind::Read, "/local/domain/7/device/vale/x/state"),
            (Kind::Read, "/local/domain/07/device/vale/1/state"),
            (Kind::Read, "/local/domain/7/device/vale/1"),
            (Kind::Read, "/local/domain/0/backend/vale/7/1/mac"),
            (Kind::Read, "/local/domain/0/backend/vbd/7/1/frontend"),
            (Kind::Read, "/local/domain/1/backend/vale/7/1/frontend"),
            (Kind::Read, "/libxl/7/device"),
            (Kind::Watch, "/"),
            (Kind::Watch, "/local/domain"),
            (Kind::Watch, "@introduceDomain"),
            (Kind::Watch, "/local/domain/7/device/vale/1/ring-ref"),
            (Kind::Write, "/local/domain/7/device/vale/1/state"),
            (Kind::Write, "/local/domain/0/backend/vale/7/1/frontend"),
            (Kind::Write, "/local/domain/0/backend/vale/7/1/state/x"),
            (Kind::Write, "/local/domain/0/backend/vif/7/1/state"),
            (Kind::Write, "/local/domain/0/backend/vale/7/state"),
            (Kind::Write, "domid"),
            (Kind::Rm, OWN),
            (Kind::Mkdir, OWN),
            (Kind::SetPerms, OWN),
            (Kind::Directory, OWN),
            (Kind::GetPerms, OWN),
            (Kind::Introduce, "7"),
            (Kind::Release, "7"),
            (Kind::GetDomainPath, "7"),
            (Kind::ResetWatches, ""),
        ] {
            assert_eq!(of(kind, path, "v"), Verdict::Refuse, "{kind:?} {path}");
        }
        for kind in (0..200).filter(|kind| !(2..=17).contains(kind)) {
            assert_eq!(judge(kind, b"/a\0"), Verdict::Refuse, "{kind}");
        }
        assert_eq!(judge(Kind::Read as u32, b"domid"), Verdict::Refuse);
        assert_eq!(judge(Kind::Read as u32, b"\xff\0"), Verdict::Refuse);
    }
}
