// SPDX-License-Identifier: Apache-2.0
//! A client that speaks valed's verbs.
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use control_socket::{ApiError, Client, ClientError, NoArgs, Signature};
use serde::Serialize;
use serde_json::Value;

use crate::{
    ChainId, ChainInfo, ChainList, ChainSet, Keep, KeptList, Kind, MirrorInfo, MirrorList,
    OffloadChange, OffloadEnable, OffloadId, OffloadInfo, OffloadList, OffloadSet, PortAdd, PortId,
    PortInfo, PortList, PortMove, PortName, PortSet, PortTrace, PreconnectAdd, PreconnectRemove,
    PreconnectedVif, SegmentLimit, SegmentList, SwitchName, Trace, WorkerInfo, verb,
};

/// The descriptors for the owner of a process port.
#[derive(Debug)]
pub struct RingFds {
    /// The sealed rings.
    pub memfd: OwnedFd,
    /// Eventfd, guest to switch.
    pub kick: OwnedFd,
    /// Read end of a pipe, switch to guest.
    pub wake: OwnedFd,
}

/// A connection to valed.
pub struct ValeClient(Client);

impl ValeClient {
    pub fn connect(socket: impl AsRef<Path>) -> Result<Self, ClientError> {
        Client::connect(socket).map(Self)
    }

    /// Longest wait for one answer.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.0.set_timeout(timeout);
    }

    /// Adds a port. Returns the rings of a process port.
    pub fn port_add(&mut self, port: &PortAdd) -> Result<Option<RingFds>, ClientError> {
        let mut fds = self.call_port_add(port, &[])?.into_iter();
        match (port.kind, fds.next(), fds.next(), fds.next()) {
            (Kind::Process, Some(memfd), Some(kick), Some(wake)) => {
                Ok(Some(RingFds { memfd, kick, wake }))
            }
            (Kind::Process, ..) => Err(ClientError::Connection(
                "port-add: valed sent no rings".to_owned(),
            )),
            _ => Ok(None),
        }
    }

    /// Adds a process port whose valed has ended. It continues with the rings of its owner.
    pub fn port_resume(&mut self, port: &PortAdd, rings: &RingFds) -> Result<(), ClientError> {
        let RingFds { memfd, kick, wake } = rings;
        let fds = [memfd.as_fd(), kick.as_fd(), wake.as_fd()];
        self.call_port_add(port, &fds).map(drop)
    }

    /// Calls `port-add`. A valed of before 1.0 gets the field `in_place_domid` by its name there.
    fn call_port_add(
        &mut self,
        port: &PortAdd,
        fds: &[BorrowedFd<'_>],
    ) -> Result<Vec<OwnedFd>, ClientError> {
        let mut args = json(port)?;
        let done = match self.0.call_with_fds("port-add", args.clone(), fds) {
            Err(ClientError::Api(error)) if lacks_field(&error, "in_place_domid") => {
                args["in_place"] = port.in_place_domid.into();
                if let Some(args) = args.as_object_mut() {
                    args.remove("in_place_domid");
                }
                self.0.call_with_fds("port-add", args, fds)
            }
            done => done,
        };
        done.map(|(_, fds)| fds)
    }

    /// Calls a verb; a valed of before 1.0 by `Earlier`, the verb's name there.
    fn ask_renamed<V, Earlier>(&mut self, args: &V::Args) -> Result<V::Answer, ClientError>
    where
        V: Signature,
        Earlier: Signature<Args = V::Args, Answer = V::Answer>,
    {
        match self.0.ask::<V>(args) {
            Err(ClientError::Api(error)) if error.is_unknown_verb() => self.0.ask::<Earlier>(args),
            done => done,
        }
    }

    /// Calls a verb with its types.
    pub fn ask<V: Signature>(&mut self, args: &V::Args) -> Result<V::Answer, ClientError> {
        self.0.ask::<V>(args)
    }

    /// Calls a verb by its name.
    pub fn call(&mut self, verb: &str, args: Value) -> Result<Value, ClientError> {
        self.0.call(verb, args)
    }

    /// True if valed closes the connection within `timeout`.
    pub fn closes_within(&self, timeout: Duration) -> bool {
        self.0.closes_within(timeout)
    }

    /// Removes a port; one that does not exist is fine.
    pub fn port_remove(&mut self, switch: &SwitchName, port: &PortName) -> Result<(), ClientError> {
        let id = PortId {
            switch: switch.clone(),
            port: port.clone(),
        };
        self.0.ask::<verb::RemovePort>(&id).map(drop)
    }

    /// Connects to a vif of a Xen guest that has no port yet; one that is there is fine.
    pub fn preconnect_add(&mut self, vif: &PreconnectAdd) -> Result<(), ClientError> {
        self.ask_renamed::<verb::AddPreconnected, verb::AddSilent>(vif)
            .map(drop)
    }

    /// Leaves the preconnected vifs of a domain.
    pub fn preconnect_remove(&mut self, domid: u16) -> Result<(), ClientError> {
        let vifs = PreconnectRemove { domid };
        self.ask_renamed::<verb::RemovePreconnected, verb::RemoveSilent>(&vifs)
            .map(drop)
    }

    /// All preconnected vifs.
    pub fn preconnect_list(&mut self) -> Result<Vec<PreconnectedVif>, ClientError> {
        let found = self.ask_renamed::<verb::ListPreconnected, verb::ListSilent>(&NoArgs {})?;
        Ok(found.vifs)
    }

    pub fn port_set(&mut self, set: &PortSet) -> Result<(), ClientError> {
        self.0.ask::<verb::SetPort>(set).map(drop)
    }

    /// The segments with limits of one switch, or of all.
    pub fn segment_list(
        &mut self,
        switch: Option<SwitchName>,
    ) -> Result<Vec<SegmentLimit>, ClientError> {
        let found = self.0.ask::<verb::ListSegments>(&SegmentList { switch })?;
        Ok(found.segments)
    }

    /// Carries out a request, and keeps an operator's for the next start of valed. Returns why it is not
    /// kept, if an operator has to know.
    ///
    /// A service repeats its own requests. A valed from before an upgrade keeps none.
    pub fn keep(&mut self, request: &Keep) -> Result<Option<String>, ClientError> {
        let error = match self.0.ask::<verb::KeepRequest>(request) {
            Err(ClientError::Api(error)) => error,
            done => return Ok(done?.not_kept),
        };
        let note = match &error.code[..] {
            "forbidden" => None,
            _ if error.is_unknown_verb() => Some("valed is older than this program".to_owned()),
            _ => return Err(ClientError::Api(error)),
        };
        let mut request = json(request)?;
        let (verb, args) = (request["verb"].take(), request["args"].take());
        match self.0.call(verb.as_str().unwrap_or_default(), args) {
            // valed has disconnected a peer without any role.
            Err(ClientError::Connection(_)) if note.is_none() => Err(ClientError::Api(error)),
            done => done.map(|_| note),
        }
    }

    /// The kept requests.
    pub fn kept_list(&mut self) -> Result<KeptList, ClientError> {
        self.0.ask::<verb::ListKept>(&NoArgs {})
    }

    /// Moves a port to another worker.
    pub fn port_move(&mut self, to: &PortMove) -> Result<(), ClientError> {
        self.0.ask::<verb::MovePort>(to).map(drop)
    }

    /// The forwarding threads.
    pub fn worker_list(&mut self) -> Result<Vec<WorkerInfo>, ClientError> {
        let found = self.0.ask::<verb::ListWorkers>(&NoArgs {})?;
        Ok(found.workers)
    }

    /// The way of a frame that would come from a port.
    pub fn port_trace(&mut self, trace: &PortTrace) -> Result<Trace, ClientError> {
        self.0.ask::<verb::TracePort>(trace)
    }

    /// Makes a chain, or replaces it as a whole.
    pub fn chain_set(&mut self, chain: &ChainSet) -> Result<(), ClientError> {
        self.0.ask::<verb::SetChain>(chain).map(drop)
    }

    /// Removes a chain; one that does not exist is fine.
    pub fn chain_remove(&mut self, chain: &ChainId) -> Result<(), ClientError> {
        self.0.ask::<verb::RemoveChain>(chain).map(drop)
    }

    /// The chains of one switch, or of all.
    pub fn chain_list(
        &mut self,
        switch: Option<SwitchName>,
    ) -> Result<Vec<ChainInfo>, ClientError> {
        let found = self.0.ask::<verb::ListChains>(&ChainList { switch })?;
        Ok(found.chains)
    }

    /// The mirrors of one switch, or of all.
    pub fn mirror_list(
        &mut self,
        switch: Option<SwitchName>,
    ) -> Result<Vec<MirrorInfo>, ClientError> {
        let found = self.0.ask::<verb::ListMirrors>(&MirrorList { switch })?;
        Ok(found.mirrors)
    }

    /// Replaces the table of an owner at a port.
    pub fn offload_set(&mut self, set: &OffloadSet) -> Result<OffloadChange, ClientError> {
        self.0.ask::<verb::SetOffload>(set)
    }

    /// Removes the table of an owner at a port; one that does not exist is fine.
    pub fn offload_remove(&mut self, id: &OffloadId) -> Result<OffloadChange, ClientError> {
        self.0.ask::<verb::RemoveOffload>(id)
    }

    /// Lets a table decide, or ends that.
    pub fn offload_enable(&mut self, enable: &OffloadEnable) -> Result<(), ClientError> {
        self.0.ask::<verb::EnableOffload>(enable).map(drop)
    }

    /// The tables of one switch, or of all.
    pub fn offload_list(
        &mut self,
        switch: Option<SwitchName>,
    ) -> Result<Vec<OffloadInfo>, ClientError> {
        let found = self.0.ask::<verb::ListOffloads>(&OffloadList { switch })?;
        Ok(found.offloads)
    }

    /// The ports of one switch, or of all.
    pub fn port_list(&mut self, switch: Option<SwitchName>) -> Result<Vec<PortInfo>, ClientError> {
        let mut ports = self.0.ask::<verb::ListPorts>(&PortList { switch })?.ports;
        for port in &mut ports {
            port.counters = port.counters.with_earlier_names();
        }
        Ok(ports)
    }
}

/// True if valed does not know a field of the arguments: it is older than this program.
fn lacks_field(error: &ApiError, field: &str) -> bool {
    let text = format!("unknown field `{field}`");
    error.code == "bad-request" && error.message.contains(&text)
}

fn json(args: &impl Serialize) -> Result<Value, ClientError> {
    serde_json::to_value(args).map_err(|e| ClientError::Connection(e.to_string()))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;
    use std::thread::JoinHandle;

    use serde_json::json;

    use super::*;

    /// Starts a valed of 0.3 for one client, as far as the tests need it; the thread returns the calls
    /// that it accepted.
    fn start_older(socket: &Path) -> JoinHandle<Vec<Value>> {
        let listener = UnixListener::bind(socket).unwrap();
        std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let lines = BufReader::new(client.try_clone().unwrap()).lines();
            let mut accepted = Vec::new();
            for line in lines {
                let call: Value = serde_json::from_str(&line.unwrap()).unwrap();
                let (id, refusal) = (&call["id"], refusal_of_older(&call));
                let answer = match &refusal {
                    Some(text) => json!({"v": 1, "id": id,
                        "error": {"code": "bad-request", "message": text}}),
                    None => json!({"v": 1, "id": id, "ok": {"vifs": []}}),
                };
                client.write_all(format!("{answer}\n").as_bytes()).unwrap();
                if refusal.is_none() {
                    accepted.push(json!([call["verb"], call["args"]]));
                }
            }
            accepted
        })
    }

    fn refusal_of_older(call: &Value) -> Option<String> {
        let verb = call["verb"].as_str().unwrap();
        if verb.starts_with("preconnect-") {
            return Some(format!("unknown verb {verb:?}"));
        }
        call["args"].get("in_place_domid").map(|_| {
            format!("{verb}: unknown field `in_place_domid`, expected one of `switch`, `port`")
        })
    }

    #[test]
    fn a_valed_of_before_1_0_gets_the_names_that_it_knows() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("valed.sock");
        let valed = start_older(&socket);
        let mut client = ValeClient::connect(&socket).unwrap();

        let vif = json!({"domid": 7, "devid": 0, "slots": 256});
        let add: PreconnectAdd = serde_json::from_value(vif.clone()).unwrap();
        client.preconnect_add(&add).unwrap();
        assert_eq!(client.preconnect_list().unwrap(), []);
        client.preconnect_remove(7).unwrap();
        let mut port = PortAdd::open("vale0:p".parse().unwrap(), Kind::Tap, 1);
        port.in_place_domid = Some(7);
        client.port_add(&port).unwrap();

        drop(client);
        let accepted = valed.join().unwrap();
        let silent = [
            json!(["silent-add", vif]),
            json!(["silent-list", {}]),
            json!(["silent-remove", {"domid": 7}]),
        ];
        assert_eq!(accepted[..3], silent);
        assert_eq!(accepted[3][1]["in_place"], 7);
        assert_eq!(accepted.len(), 4);
    }
}
