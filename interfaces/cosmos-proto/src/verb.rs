// SPDX-License-Identifier: Apache-2.0
//! The verbs of cosmosd. A row has the meaning, the name, the roles besides the operator, the size
//! and the types of arguments and answer.
use control_socket::verbs;
use vale_proto::{
    ChainId, ChainSet, Chains, HostDevice, PortFilter, PortGuard, PortId, PortLimit, SegmentUplink,
};

use crate::answer;
use crate::guest::Spec;
use crate::request::*;
use crate::{Done, NoArgs};

verbs! {
    /// Names the version, the kind of host, and the caller's roles.
    HelloVerb "hello" [any]: NoArgs => answer::Hello;
    /// Describes the host and its faults. The faults `valed` and `xenstored` mean that the daemon
    /// does not answer; `state_dir` means that a folder takes no files for one more guest, and its
    /// reason begins with the folder (adr/0105).
    DescribeHost "host" [any]: NoArgs => answer::Host;
    /// Makes a guest. The answer comes once its router is `Running` and every write is applied; a
    /// guest with a `kernel` has none, and the answer comes once its domain runs.
    /// The ports come up last. After an error nothing is left. With `hold` the ports stay down until
    /// `release`. With `replace` a guest of this UUID ends first, once all that the new guest needs
    /// is checked and held: after a refusal for a lack the old guest runs on (adr/0105). A guest
    /// that moves is `busy`.
    Create "create" [nova] large: Spec => answer::Created;
    /// Ends a guest; idempotent.
    Destroy "destroy" [nova]: OfGuest => Done;
    /// Sets the ports of a held guest up; idempotent.
    Release "release" [nova]: OfGuest => Done;
    /// Lists all guests of the host.
    List "list" [agent, nova] listing: NoArgs => answer::Guests;
    /// Lists domains of others with the UUID or the name of a guest. While there is one, `create`
    /// and `restore` of the guest answer `exists` (adr/0104).
    ListStrangers "strangers" [agent, nova]: NoArgs => answer::Strangers;
    /// Finds the guests of a name; several may have the same.
    Find "find" [agent, nova]: Named => answer::Found;
    /// Describes a guest.
    Info "info" [agent, nova]: OfGuest => answer::Guest;
    /// Stops a guest's processors; idempotent.
    Pause "pause" [nova]: OfGuest => Done;
    /// Ends a pause, also one by others; idempotent.
    Unpause "unpause" [nova]: OfGuest => Done;
    /// Returns the end of a guest's log, with control characters escaped.
    ReadConsole "console" [nova]: Console => answer::Log;
    /// Sets a guest's share of processor time, in Xen's units, until the guest ends, also by
    /// `save` (adr/0027).
    SetCpu "cpu" [nova]: Share => Done;
    /// Writes a guest's memory to a file and removes its domain and ports; kind `xen` of type
    /// `pvh` only.
    Save "save" [nova]: OfGuest => answer::Saved;
    /// Brings a saved guest back, with its routers, counters and ports. After a failure it stays
    /// `saved`.
    Restore "restore" [nova]: OfGuest => answer::Restored;
    /// Halts the routers of a guest for the client of this connection, which moves the guest to
    /// another host. The routers run again if the connection or cosmosd ends. Changes by others get
    /// `busy`. A held guest, and one that has not answered a change, gets `busy` and stays. The
    /// answer has the routers as they were before, and the numbered changes.
    BeginMigration "migrate-begin" [nova]: MigrateBegin => answer::Halted;
    /// The other host has the guest: its routers stay halted, whatever happens to the connection.
    /// The guest takes no numbered change until `router-run`.
    CommitMigration "migrate-commit" [nova]: OfGuest => Done;
    /// The guest does not move: its routers run again.
    CancelMigration "migrate-cancel" [nova]: MigrateBegin => Done;
    /// Makes a guest that comes from another host, as `create` does. cosmosd undoes it if the
    /// connection or cosmosd ends before `migrate-finish`. It refuses `replace`.
    ReceiveMigration "migrate-receive" [nova] large: Spec => answer::Created;
    /// Completes a guest from another host, which resumes with the `changes` of `migrate-begin`, and
    /// runs its routers. From then on it stays, even if the connection or cosmosd ends.
    FinishMigration "migrate-finish" [nova] large: MigrateFinish => Done;
    /// Adds a piece of an image, for kinds of hosts with an image cache. Pieces come in order from
    /// 0; repeated pieces are allowed. After the last piece cosmosd checks the sum, and that the
    /// image is a kernel that Xen can start, or a RAM disk.
    AddImage "image-add" [nova] large: ImageAdd => answer::Taken;
    /// Lists the images of the cache.
    ListImages "image-list" [agent, nova]: NoArgs => answer::Images;
    /// Removes an image from the cache; its guests run on; idempotent.
    RemoveImage "image-remove" [nova]: OfImage => Done;
    /// Removes the switch port of an interface; the guest keeps the interface; idempotent.
    RemoveVif "vif-remove" [agent]: Place => Done;
    /// Lists the switch ports of a guest with their counters; removed ones are left out.
    ListVifs "vif-list" [agent, nova]: OfGuest => answer::GuestPorts;
    /// Gives a running guest one more interface (adr/0069). After an error
    /// the guest is as before.
    Plug "vif-plug" [nova] large: PlugVif => Done;
    /// Takes an interface from a running guest. An event `state` follows, as after `vif-plug`.
    Unplug "vif-unplug" [nova]: Place => Done;
    /// Sets the link of an interface's switch port; idempotent.
    SetVif "vif-set" [agent]: VifLink => Done;
    /// As of valed: cosmosd passes it on and keeps nothing.
    FilterPort "port-filter" [agent] large: PortFilter => Done;
    /// As of valed: cosmosd passes it on and keeps nothing.
    GuardPort "port-guard" [agent] large: PortGuard => Done;
    /// As of valed: cosmosd passes it on and keeps nothing.
    LimitPort "port-limit" [agent]: PortLimit => Done;
    /// Leads a segment to an interface, to one VLAN, or to a VXLAN network, by the port
    /// `u<segment>`. Other peers of the same network cost no frame (adr/0054).
    SetUplink "uplink-set" [agent]: SegmentUplink => Done;
    /// Removes the uplink of a segment; idempotent.
    RemoveUplink "uplink-remove" [agent]: OfSegment => Done;
    /// Lists the uplinks.
    ListUplinks "uplink-list" [agent]: NoArgs => answer::Uplinks;
    /// Makes an interface of the host a port of the switch. A port of this name goes first
    /// (adr/0021).
    SetDevice "device-set" [agent]: HostDevice => Done;
    /// Removes the port of a host's interface; idempotent.
    RemoveDevice "device-remove" [agent]: PortId => Done;
    /// Lists the ports of `device-set`.
    ListDevices "device-list" [agent]: NoArgs => answer::Devices;
    /// As of valed: cosmosd passes it on and keeps nothing.
    SetChain "chain-set" [agent]: ChainSet => Done;
    /// As of valed: cosmosd passes it on and keeps nothing.
    RemoveChain "chain-remove" [agent]: ChainId => Done;
    /// As of valed, for all switches.
    ListChains "chain-list" [agent]: NoArgs => Chains;
    /// Installs a configuration, once the guest has answered. The old router keeps running if the
    /// new one does not start. An empty configuration removes the router.
    InstallRouter "router-install" [agent, nova] large: Install => answer::Installed;
    /// Resumes or halts a router.
    RunRouter "router-run" [agent]: Run => Done;
    /// Lists the installed routers of a guest.
    ListRouters "router-list" [agent, nova]: OfGuest => answer::Routers;
    /// Lists the handlers of a router.
    ListHandlers "handler-list" [agent, nova]: OfRouter => answer::Handlers;
    /// Reads a handler. One that takes no parameter refuses it with `handler-error`.
    ReadHandler "handler-read" [agent, nova]: Read => answer::HandlerValue;
    /// Reads several handlers, each for itself. All values together have at most 256 KiB; those
    /// beyond get `too-long`. Up to eight requests are on their way to the guest at a time. A
    /// message has at most 600 characters.
    ReadHandlers "handlers-read" [agent, nova]: Reads => answer::HandlerValues;
    /// Applies all writes, or none. With `has_secrets` errors and the ledger have a fixed text
    /// instead of the guest's words (adr/0067).
    WriteHandlers "handler-write" [agent, nova] large: Writes => answer::Applied;
    /// Lists the newest 16 verdicts of numbered changes. The guest takes no change up to `number` any more.
    FenceChanges "change-fence" [agent]: ChangeFence => answer::Changes;
    /// From the answer on, the connection carries only events.
    Events "events" [agent, nova]: NoArgs => Done;

    /// The name of `change-fence` before 1.0.
    SettleChanges "change-settle" [agent]: ChangeFence => answer::Changes;
    /// The name of `migrate-begin` before 1.0.
    MoveBegin "move-begin" [nova]: MigrateBegin => answer::Halted;
    /// The name of `migrate-commit` before 1.0.
    MoveSettle "move-settle" [nova]: OfGuest => Done;
    /// The name of `migrate-cancel` before 1.0.
    MoveCancel "move-cancel" [nova]: MigrateBegin => Done;
    /// The name of `migrate-receive` before 1.0.
    MoveReceive "move-receive" [nova] large: Spec => answer::Created;
    /// The name of `migrate-finish` before 1.0.
    MoveArrive "move-arrive" [nova] large: MigrateFinish => Done;
}
