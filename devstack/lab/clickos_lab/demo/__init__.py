# SPDX-License-Identifier: Apache-2.0
"""``make demo``: the main job on real services, from VNFD to packets."""

from clickos_lab.config import hosts
from clickos_lab import dashboard
from clickos_lab.demo import story
from clickos_lab.demo import usage
from clickos_lab.host import target
from clickos_lab import lab as _lab
from clickos_lab import log


def run(state, host, keep, ui=False):
    """Bring the lab up, run the story, print the figures, clean up.

    :param host: of the VNF, one of :data:`target.NAMES`
    :param ui: do the main job in a browser, too
    :param keep: leave everything running, and say how to use it
    :returns: 0, or 1 if an expectation was not met
    """
    lab = _lab.Lab(state, [hosts.XEN] if host == target.XEN else [])
    lab.up()
    log.info(dashboard.invitation(state))
    tale = story.Story(state, target.of(host, state))
    done = False
    try:
        if ui:
            dashboard.show(state)
        tale.run(keep)
        # Also without keep: a fault in it shows in each run.
        told = usage.text(state, host, tale.vnf_id, tale.client.name,
                          tale.server_port.ip)
        done = True
    finally:
        if not (keep and done):
            _clean_up(tale, lab)
    tale.figures.print()
    if keep:
        log.info(dashboard.invitation(state))
        print(told)
    failed = tale.figures.failed
    log.info(f'{failed} expectations were NOT met' if failed
             else 'all expectations were met')
    return 1 if failed else 0


def _clean_up(tale, lab):
    try:
        tale.remove()
    finally:
        lab.down()
