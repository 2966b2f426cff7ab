# SPDX-License-Identifier: Apache-2.0
"""Works on VNFs in a few threads, so that one that hangs delays no other."""

import collections
import threading
import time

from tacker_clickos import outages

#: VNFs at the same time, and those of one project.
PLACES, OF_PROJECT = 8, 2


class Rounds:
    """Calls a function for the VNFs of each round, side by side.

    A round leaves out the VNFs that an earlier one still works on. It drops
    those that the earlier one has not begun; they are the first ones of
    its own that begin. Projects take turns, however many VNFs each has.

    :param work: called with the arguments of a VNF; raises nothing
    """

    def __init__(self, work):
        self._work = work
        self._lock = threading.Lock()
        self._threads = 0
        self._waiting = {}
        #: Of the projects, by VNF that is worked on.
        self._running = {}
        self._begun_s = {}
        #: By project: the time of its last turn.
        self._turn_s = {}

    def begin(self, wanted):
        """Begin a round; does not wait for it.

        :param wanted: {VNF: (project, arguments)}
        """
        with self._lock:
            self._begun_s = {vnf_id: begun_s for vnf_id, begun_s
                             in self._begun_s.items() if vnf_id in wanted}
            self._waiting = {vnf_id: wanted[vnf_id] for vnf_id in sorted(
                wanted, key=lambda each: self._begun_s.get(each, 0))}
            projects = {project_id for project_id, _ in wanted.values()}
            self._turn_s = {project_id: turn_s for project_id, turn_s
                            in self._turn_s.items() if project_id in projects}
            added = max(0, min(PLACES - self._threads, len(wanted)))
            self._threads += added
        for _thread in range(added):
            _spawn(self._serve)

    def _serve(self):
        """Work until nothing waits that may begin."""
        with outages.ignored():
            while (found := self._next()) is not None:
                vnf_id, arguments = found
                try:
                    self._work(*arguments)
                finally:
                    with self._lock:
                        del self._running[vnf_id]

    def _next(self):
        """Return (VNF, arguments), or None: then the thread ends."""
        with self._lock:
            held = collections.Counter(self._running.values())
            first = {}    # the first VNF of each project that may begin
            for vnf_id, (project_id, _arguments) in self._waiting.items():
                if vnf_id not in self._running \
                        and held[project_id] < OF_PROJECT:
                    first.setdefault(project_id, vnf_id)
            if first:
                project_id = min(
                    first, key=lambda each: self._turn_s.get(each, 0))
                vnf_id = first[project_id]
                _project, arguments = self._waiting.pop(vnf_id)
                self._running[vnf_id] = project_id
                self._turn_s[project_id] = time.monotonic()
                self._begun_s[vnf_id] = self._turn_s[project_id]
                return vnf_id, arguments
            self._threads -= 1
            return None


def _spawn(work):
    threading.Thread(target=work, name='clickos-scale', daemon=True).start()
