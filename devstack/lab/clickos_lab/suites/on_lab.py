# SPDX-License-Identifier: Apache-2.0
"""Work on a lab that is started for it."""

import signal

from clickos_lab import errors
from clickos_lab import prepare as prepare_lab


def run(lab, work, prepare=lambda: None):
    """Build what a lab starts, start it, do the work, stop it.

    :param work: takes no arguments, returns an exit status or None for 0
    :param prepare: what else has to be done before the start
    :returns: the exit status
    """
    def start_and_work():
        lab.down()
        prepare_lab.everything(lab.state)
        prepare()
        lab.up()
        return work()
    return then_stop(lab, start_and_work)


def then_stop(lab, work):
    """Do work that may start a lab, and stop the lab in any case.

    :param work: as of run()
    :returns: the exit status
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return work() or 0
    except errors.LabError as e:
        print(f'error: {e}')
        return 1
    except KeyboardInterrupt:
        print('interrupted')
        return 130
    finally:
        lab.down()
