# SPDX-License-Identifier: Apache-2.0
"""What an act of Tacker's API costs the thread that serves all projects."""

import resource


def least_thread_s(act):
    """Return the least processor time that this thread spends in an act.

    Of three times: what else the machine does only adds to a time.

    :returns: seconds
    """
    def spent_s():
        used = resource.getrusage(resource.RUSAGE_THREAD)
        return used.ru_utime + used.ru_stime

    def cost_s():
        before_s = spent_s()
        act()
        return spent_s() - before_s

    return min(cost_s() for _time in range(3))
