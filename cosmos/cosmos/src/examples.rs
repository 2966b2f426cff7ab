// SPDX-License-Identifier: Apache-2.0
//! Examples for `--help`, of the program and of each command.

/// Examples of the program.
pub const ALL: &str = "\
Examples:
  cosmos create fw.cfg
  cosmos create --name wire --config wire.click \\
      --vif bridge=vale0,port=a,segment=1 --vif bridge=vale0,port=b,segment=2
  cosmos read fw counter.count
  cosmos write fw fw.config 'allow icmp, deny all'
  cosmos install fw firewall.click
  cosmos install fw other.click --rid 1 --halted && cosmos start fw --rid 1
  cosmos save fw && cosmos restore fw
  cosmos migrate fw --to /run/host-b/cosmosd.sock
  cosmos doctor
  cosmos -o json list

A guest is named by its UUID or by its name.
Exit status: 0 done, 1 refused or failed, 2 wrong usage, 3 no such guest,
4 the daemon cannot be reached or did not answer.";

pub const ON_DEMAND: &str = "\
The configuration has the variables $ADDRESS and $MAC of its guest:
  FromDevice(0) -> c :: Classifier(12/0806 20/0001, -);
  c[0] -> ARPResponder($ADDRESS $MAC) -> q :: Queue -> ToDevice(0);
  c[1] -> Discard;

An ARP request for an address makes its guest, and so does a frame to its MAC address: 02:00 and the
four octets of the address. The frames that come meanwhile go to the guest once it forwards.

Example, with a guest file that has vif = ['segment=7']:
  cosmos on-demand customer.cfg --network 10.0.0.0/24 --most 50 --idle 300";

pub const DESTROY: &str = "\
Example:
  cosmos destroy fw";

pub const LIST: &str = "\
Example, the names of all that run:
  cosmos list -o json | jq -r '.[] | select(.state == \"running\").name'";

pub const INFO: &str = "\
Example, the guest's domain:
  cosmos info fw -o json | jq .domid";

pub const START: &str = "\
Example:
  cosmos start fw --rid 1";

pub const STOP: &str = "\
Example:
  cosmos stop fw";

pub const REMOVE: &str = "\
Example:
  cosmos remove fw --rid 1";

pub const SAVE: &str = "\
Example:
  cosmos save fw
  cosmos restore fw

Guests of hosts of kind xen, type pvh, can be saved.";

pub const RESTORE: &str = "\
Example:
  cosmos restore fw";

pub const MIGRATE: &str = "\
Example, with the other host's socket brought here by SSH:
  ssh -N -L /run/host-b.sock:/run/clickos/cosmosd.sock root@host-b &
  cosmos migrate fw --to /run/host-b.sock

The command halts the guest. It copies the configurations and the value of every handler that
can be read and written, counters too. Then it starts the guest on the other host and destroys
it on this one.

If a step fails, or the command is killed, the guest continues here and the copy is removed. A kill
between start and destruction leaves the guest halted here: if the other host has it, destroy it
here, else start it. Meanwhile no other client may change or move the guest.

The command does not copy packets in queues, tables that elements learned, or a share of
processor time.";

pub const ROUTERS: &str = "\
Example:
  cosmos routers fw";

pub const CPU: &str = "\
Example, on processor 1 only, and at most half of it:
  cosmos cpu fw --pin 1 --cap 50";

pub const DOCTOR: &str = "\
Example, in a script:
  cosmos doctor || exit";

pub const INSTALL: &str = "\
Examples, from a file, from standard input, and a second router that runs later:
  cosmos install fw firewall.click
  sed s/80/443/ firewall.click | cosmos install fw -
  cosmos install fw second.click --rid 1 --halted
  cosmos start fw --rid 1";

pub const READ: &str = "\
Examples:
  cosmos read fw counter.count
  cosmos read fw config --raw >running.click

Without --raw the output ends with a newline, and a terminal gets no control characters.";

pub const WRITE: &str = "\
Example, two handlers or none:
  cosmos write fw fw.config 'allow icmp, deny all' counter.reset ''";

pub const HANDLERS: &str = "\
Example:
  cosmos handlers fw";

pub const CONSOLE: &str = "\
Example, the last kilobyte:
  cosmos console fw --max-bytes 1024";

pub const PAUSE: &str = "\
Example:
  cosmos pause fw
  cosmos unpause fw";

pub const UNPAUSE: &str = "\
Example:
  cosmos unpause fw";

pub const VIF_REMOVE: &str = "\
Example, the second interface:
  cosmos vif-remove fw 1";

pub const VIF_SET: &str = "\
Example:
  cosmos vif-set fw 1 down
  cosmos vif-set fw 1 up";

pub const IMAGE_ADD: &str = "\
Example:
  cosmos image-add clickos
  cosmos create --name fw --config fw.click --image-sha256 $(sha256sum <clickos | cut -c-64)";

pub const IMAGE_LIST: &str = "\
Example:
  cosmos image-list -o json";

pub const IMAGE_REMOVE: &str = "\
Example:
  cosmos image-remove $(sha256sum <clickos | cut -c-64)";

pub const COMPLETION: &str = "\
Example, for bash, zsh and fish:
  cosmos completion bash >/etc/bash_completion.d/cosmos
  cosmos completion zsh >\"${fpath[1]}/_cosmos\"
  cosmos completion fish >~/.config/fish/completions/cosmos.fish";

pub const EVENTS: &str = "\
Example, one object a line:
  cosmos events -o json";

pub const HOST: &str = "\
Example, how much memory is left for guests:
  cosmos host -o json | jq '.memory_mib - .memory_used_mib'";
