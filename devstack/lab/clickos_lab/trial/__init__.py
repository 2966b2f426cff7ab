# SPDX-License-Identifier: Apache-2.0
"""``make try``: a firewall guest between two namespaces, no OpenStack.

The package imports nothing but Python and cosmos_client, so no virtual
environment is needed.
"""

import signal

from clickos_lab import log
from clickos_lab import prepare
from clickos_lab.trial import place as _place
from clickos_lab.trial import trial_run as _trial_run


def run(state, keep):
    """Install, build, run the steps, clean up.

    :param keep: then give the terminal a shell, whose end cleans up
    :returns: 0, or 1 if an expectation was not met
    """
    signal.signal(signal.SIGHUP, signal.getsignal(signal.SIGTERM))
    prepare.process_host(state)
    with _place.opened(state) as place:
        trial_run = _trial_run.TrialRun(place)
        trial_run.run()
        if keep:
            place.interact()
    left = place.leftovers()
    trial_run.figures.expect('left behind', ', '.join(left) or 'nothing',
                             not left)
    trial_run.figures.print()
    failed = trial_run.figures.failed
    log.info(f'{failed} expectations were NOT met' if failed
             else 'all expectations were met')
    return 1 if failed else 0
