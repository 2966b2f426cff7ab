# SPDX-License-Identifier: Apache-2.0
"""``make demo``: the main job on real services, from VNFD to packets."""

from clickos_lab.config import hosts
from clickos_lab import dashboard
from clickos_lab.demo import demo_run as _demo_run
from clickos_lab.demo import usage
from clickos_lab.host import target
from clickos_lab import lab as _lab
from clickos_lab import log


def run(state, host, keep, ui=False):
    """Bring the lab up, run the demonstration, print the figures, clean up.

    :param host: of the VNF, one of :data:`target.NAMES`
    :param ui: do the main job in a browser, too
    :param keep: leave everything running, and say how to use it
    :returns: 0, or 1 if an expectation was not met
    """
    lab = _lab.Lab(state, [hosts.XEN] if host == target.XEN else [])
    lab.up()
    log.info(dashboard.invitation(state))
    demo_run = _demo_run.DemoRun(state, target.of(host, state))
    done = False
    try:
        if ui:
            dashboard.show(state)
        demo_run.run(keep)
        # Also without keep: a fault in it shows in each run.
        told = usage.text(state, host, demo_run.vnf_id, demo_run.client.name,
                          demo_run.server_port.ip)
        done = True
    finally:
        if not (keep and done):
            _clean_up(demo_run, lab)
    demo_run.figures.print()
    if keep:
        log.info(dashboard.invitation(state))
        print(told)
    failed = demo_run.figures.failed
    log.info(f'{failed} expectations were NOT met' if failed
             else 'all expectations were met')
    return 1 if failed else 0


def _clean_up(demo_run, lab):
    try:
        demo_run.remove()
    finally:
        lab.down()
