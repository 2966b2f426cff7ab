# SPDX-License-Identifier: Apache-2.0
"""The guest's image and an example of its xl configuration, for dom0."""

import pathlib

#: Where dom0 has them.
FOLDER = '/root'
NAME = 'clickos'

_CONFIG = """# SPDX-License-Identifier: Apache-2.0
# xl create {folder}/{name}-{kind}.cfg; xl console {name}-{kind}
name = "{name}-{kind}"
type = "{kind}"
kernel = "{folder}/{name}"
memory = 8
vcpus = 1
on_crash = "preserve"
on_reboot = "destroy"
# after: lab-net bridge br0
#vif = ["bridge=br0"]
"""


def path(state):
    """Return where ``make image`` writes the image."""
    return state.root / 'image' / NAME


def config(kind, name=NAME):
    """Return an xl configuration for a guest of kind ``pv`` or ``pvh``."""
    return _CONFIG.format(folder=FOLDER, kind=kind, name=name)


def put_if_built(state, host):
    """Copy image and configurations into dom0, if there is an image."""
    image: pathlib.Path = path(state)
    if not image.exists():
        return
    host.dom0.put(image, f'{FOLDER}/{NAME}')
    for kind in ('pv', 'pvh'):
        host.dom0.put_text(config(kind), f'{FOLDER}/{NAME}-{kind}.cfg')
