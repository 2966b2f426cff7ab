# SPDX-License-Identifier: Apache-2.0
"""The guests' images and an example of an xl configuration, for dom0."""

import sys

from clickos_lab import bounds
from clickos_lab import log
from clickos_lab import paths
from clickos_lab import rust
from clickos_lab import shell
from clickos_lab import stamps

#: Where dom0 has them.
FOLDER = '/root'
CLICKOS, PKT_GEN = 'clickos', 'pkt-gen'
#: The images of the profiles with nearly every group of elements, and with the
#: group that inspects streams.
FULL, IDS = f'{CLICKOS}-full', f'{CLICKOS}-ids'
#: The images that guests of a cloud may have, the small one first, and what
#: of them is built.
OF_PROFILES = {CLICKOS: (), FULL: ('--profile', 'full'),
               IDS: ('--profile', 'ids')}
KINDS = ('pv', 'pvh')

_PROGRAM = paths.REPO / 'clickos-image/image/image.py'
#: What the images are built from.
_INPUTS = ('clickos-image', 'interfaces', 'Cargo.toml', 'Cargo.lock',
           'rust-toolchain.toml')
_CONFIG = """\
# SPDX-License-Identifier: Apache-2.0
# xl create {folder}/{name}.cfg; xl console {name}
name = "{name}"
type = "{kind}"
kernel = "{folder}/{image}"
memory = 8
# To be named: without it xl finds no page tables for a small pvh guest.
vcpus = 1
on_crash = "preserve"
on_reboot = "destroy"
# after: lab-net bridge br0
#vif = ["bridge=br0"]
"""


def folder(state):
    """Return the folder of the images."""
    return state.root / 'image'


def build(state, programs=()):
    """Build the images, if their sources changed; return their sizes.

    cargo alone would build all again after each other choice of elements.

    :param programs: instead of those that users need; also options
    """
    words = list(map(str, programs))
    report = folder(state) / f'{"".join(words) or "usual"}.report'
    if any(word.startswith('--config') for word in words):
        return _build(state, words)
    # The build checks the bounds on its size and classes.
    wanted = stamps.digest(stamps.tracked(*_INPUTS), *words,
                           bounds.path().read_text())
    stamp = report.with_suffix('.stamp')
    if not stamps.fresh(stamp, wanted):
        stamp.unlink(missing_ok=True)
        report.write_text(_build(state, words))
        stamp.write_text(wanted)
    return report.read_text()


def build_profiles(state):
    """Build the image of each profile."""
    for name in OF_PROFILES:
        build_profile(state, name)


def build_profile(state, name):
    """Build one of OF_PROFILES."""
    build(state, OF_PROFILES[name])


def groups(state, name):
    """Return the groups of elements in an image, commas between."""
    return (folder(state) / f'{name}.groups').read_text().strip()


def _build(state, words):
    log_file = state.log / 'image.log'
    with log.step('guest images'):
        folder(state).mkdir(parents=True, exist_ok=True)
        log_file.unlink(missing_ok=True)
        shell.run([sys.executable, _PROGRAM, '--out', folder(state), *words],
                  log_file, env=rust.environment(state), timeout_s=2400)
    return log_file.read_text()


def config(kind, name, image=CLICKOS):
    """Return an xl configuration for a guest of kind ``pv`` or ``pvh``."""
    return _CONFIG.format(folder=FOLDER, kind=kind, name=name, image=image)


def add(state, files):
    """Add the images and examples of configurations to a host's files."""
    for image in (CLICKOS, PKT_GEN):
        files.add(folder(state) / image, f'{FOLDER}/{image}')
    for kind in KINDS:
        name = f'{CLICKOS}-{kind}'
        files.add_text(config(kind, name), f'{FOLDER}/{name}.cfg')
