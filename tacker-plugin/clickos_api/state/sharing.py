# SPDX-License-Identifier: Apache-2.0
"""Shares of common limits: which guest may use how much (docs/adr/0117).

No clock, no database and no guest is used here. The ledger is plain JSON:

    limits      [{name, kind, handler, total, spent}]
    is_deleted  if so: the guests keep their shares, and nothing is written
    members     {server id: {incarnation, is_leaving, is_doubtful, is_silent,
                 for each limit: bounds, shares, used, rates, and origins,
                 the shares that the guest had before the ledger's,
                 former: {handler: {bound, origin, is_doubtful}} of handlers
                 that no limit has any more, until the guest has its own
                 share there again}}

A bound is the most that a guest may have, whatever became of the writes to
it. What holds after each method: the bounds of a limit, and the ``spent`` of
its former guests, are together at most the largest total since they were
less. A bound grows in plan() only, before the guest can see the share. It
falls when the guest, without a write in doubt, shows the lower share, when
the guest starts again, or when its server is gone.
"""

RATE, QUOTA = 'rate', 'quota'
KINDS = (RATE, QUOTA)
MAX_LIMITS, MAX_MEMBERS = 8, 64
#: Handlers that guests may have to get back.
MAX_FORMER = MAX_LIMITS
#: No total and no number of a guest is larger.
MAX_TOTAL = 2 ** 53
#: A quota is given in parts of this fraction of it, at least of these bytes.
_LEASES, LEAST_LEASE = 64, 16384
#: A guest whose share this fraction is used of can use more.
_HUNGRY = 7 / 8
#: A guest that needs nothing has this fraction of an equal share.
_IDLE = 4
#: Shares are written if one is off by this fraction of the total.
_STEP = 32


def number(text):
    """Return (share, used) of a handler's value; None for another text."""
    words = text.split(None, 2)    # no work for a long list of a guest
    if len(words) != 2 or not all(
            each.isascii() and each.isdecimal() and len(each) <= 20
            for each in words):
        return None
    return tuple(min(int(each), MAX_TOTAL) for each in words)


class Ledger:
    """Who has which share.

    :param content: a former Ledger's content, or None
    """

    def __init__(self, content=None):
        content = content or {'limits': [], 'members': {}}
        self.limits, self.members = content['limits'], content['members']
        for member in self.members.values():
            # A ledger of before has none. A guest that was never read has
            # no share there, and nothing was written to it.
            member.setdefault('origins', [
                share if share or bound else None for share, bound
                in zip(member['shares'], member['bounds'])])
            member.setdefault('former', {})
        self.is_deleted = content.get('is_deleted', False)

    @property
    def content(self):
        """The ledger as JSON."""
        deleted = {'is_deleted': True} if self.is_deleted else {}
        return {'limits': self.limits, **deleted, 'members': self.members}

    def handlers(self):
        """Return the handlers of a guest, in the order of the limits."""
        return [limit['handler'] for limit in self.limits]

    def handlers_of(self, server_id):
        """Return the set of handlers where a guest may have shares."""
        member = self.members.get(server_id)
        return {*self.handlers(), *member['former']} if member else set()

    def former_without(self, handlers):
        """Return the handlers to be given back under other limits."""
        return {each for server_id in self.members
                for each in self.handlers_of(server_id)}.difference(handlers)

    def in_doubt(self, handlers):
        """Return {server id: [handler]} of former handlers without a verdict.

        Such a guest may get its own share back yet, however large it is.
        """
        found = {server_id: [
            each for each, former in member['former'].items()
            if former['is_doubtful'] and each in handlers]
            for server_id, member in self.members.items()}
        return {server_id: each for server_id, each in found.items() if each}

    def declare(self, limits, server_ids):
        """Set limits and guests; other guests have to give back.

        Guests get the share back that they had before at a handler that no
        limit has any more. None of the handlers may be in_doubt().

        :param limits: [{name, kind, handler, total}]; a limit with the name,
            kind and handler of a former one continues it. Another one of
            its handler begins with the shares that guests have there
        """
        for member in self.members.values():
            self._set_aside(member, {each['handler'] for each in limits})
        former = {limit['handler']: place
                  for place, limit in enumerate(self.limits)}
        places = [former.get(limit['handler']) for limit in limits]
        continues = [place is not None
                     and _key(self.limits[place]) == _key(limit)
                     for limit, place in zip(limits, places)]
        for member in self.members.values():
            for name, continued in (
                    ('bounds', places), ('shares', places),
                    ('origins', places),
                    ('used', _of(places, continues)),
                    ('rates', _of(places, continues))):
                nothing = None if name == 'origins' else 0
                member[name] = [
                    nothing if place is None else member[name][place]
                    for place in continued]
            for place, limit in enumerate(limits):
                _take_back(member, place, limit['handler'])
        self.limits = [
            {**limit, 'spent': 0 if place is None
             else self.limits[place]['spent']}
            for limit, place in zip(limits, _of(places, continues))]
        self.is_deleted = False
        for server_id in server_ids:
            self.members.setdefault(server_id, _member(len(limits)))
        for server_id, member in self.members.items():
            member['is_leaving'] = server_id not in server_ids

    def _set_aside(self, member, handlers):
        """Keep what a guest may have at handlers that are no limit's now."""
        for place, limit in enumerate(self.limits):
            handler, origin = limit['handler'], member['origins'][place]
            # Nothing was written to a guest that has never answered.
            if handler not in handlers and origin is not None:
                member['former'][handler] = {
                    'bound': member['bounds'][place], 'origin': origin,
                    'is_doubtful': member['is_doubtful']}

    def observe(self, server_id, incarnation, values, seconds):
        """Take over what a guest shows.

        :param incarnation: of the guest that showed it; None if unknown
        :param values: [(share, used)] in the order of the limits; None if
            the guest was silent
        :param seconds: since the last time
        """
        member = self.members[server_id]
        known = member['incarnation']
        if known and incarnation and incarnation != known:
            self._restart(member)
        member['incarnation'] = incarnation or known
        member['is_silent'] = values is None
        if values is None:
            return
        for place, (share, used) in enumerate(values):
            self._show(member, place, share, used, seconds)
        if member['is_leaving'] and not member['is_doubtful'] \
                and not any(member['shares']) and not member['former']:
            self.drop(server_id)

    def _show(self, member, place, share, used, seconds):
        limit, bounds = self.limits[place], member['bounds']
        if member['origins'][place] is None:
            member['origins'][place] = share
        is_quota = limit['kind'] == QUOTA
        if used < member['used'][place]:
            # The guest counts from the beginning, with a new configuration.
            if is_quota:
                self._spend(member, place)
            member['used'][place] = 0
        if is_quota:
            used = min(used, bounds[place])
        growth = used - member['used'][place]
        member['rates'][place] = min(MAX_TOTAL,
                                     int(growth / max(seconds, 0.001)))
        member['used'][place], member['shares'][place] = used, share
        if not member['is_doubtful']:
            bounds[place] = max(min(bounds[place], share),
                                used if is_quota else 0)

    def _restart(self, member):
        """A guest that starts again has no shares, and no write to it counts.
        """
        for place, limit in enumerate(self.limits):
            if limit['kind'] == QUOTA:
                self._spend(member, place)
        count = len(self.limits)
        member.update(_member(count), is_leaving=member['is_leaving'])

    def _spend(self, member, place):
        """Count all that a guest may have used as spent."""
        self.limits[place]['spent'] += member['bounds'][place]
        member['bounds'][place] = member['used'][place] = 0

    def drop(self, server_id):
        """Forget a guest that uses nothing any more."""
        member = self.members[server_id]
        for place, limit in enumerate(self.limits):
            if limit['kind'] == QUOTA:
                self._spend(member, place)
        del self.members[server_id]

    def delete(self):
        """Leave the guests the shares that they have.

        Those that may have one stay members, so that limits that are
        declared again give no other guest its share.
        """
        self.is_deleted = True
        for server_id, member in list(self.members.items()):
            if not any(member['bounds']) and not member['former']:
                self.drop(server_id)

    def plan(self):
        """Return {server id: [share]} of the guests to be written.

        Until accept() the guest may have the former share or the new one.
        """
        if self.is_deleted:
            self.delete()
            return {}
        writes, active = {}, []
        for server_id, member in self.members.items():
            if member['is_silent']:
                continue
            if member['is_leaving'] or not member['incarnation']:
                # An unknown incarnation is in the answer to a write.
                writes[server_id] = [0] * len(self.limits)
            else:
                writes[server_id] = list(map(min, member['shares'],
                                             member['bounds']))
                active.append(server_id)
        for place, limit in enumerate(self.limits):
            share = _rates if limit['kind'] == RATE else _quotas
            for server_id, new in share(limit, place, self.members,
                                        active).items():
                writes[server_id][place] = new
        writes = {server_id: shares for server_id, shares in writes.items()
                  if shares != self.members[server_id]['shares']
                  or self.members[server_id]['is_doubtful']
                  or not self.members[server_id]['incarnation']}
        for server_id, shares in writes.items():
            member = self.members[server_id]
            member['is_doubtful'] = True
            member['bounds'] = [max(pair) for pair in zip(member['bounds'],
                                                          shares)]
        return writes

    def accept(self, server_id, shares):
        """Note that a guest has taken the newest write, and no former one.
        """
        member = self.members[server_id]
        member['is_doubtful'], member['shares'] = False, list(shares)

    def restores(self):
        """Return {server id: {handler: share}} that guests get back.

        Until restored() the guest may have either share.
        """
        writes = {}
        for server_id, member in self.members.items():
            if member['is_silent']:
                continue
            for handler, former in member['former'].items():
                former['is_doubtful'] = True
                writes.setdefault(server_id, {})[handler] = former['origin']
        return writes

    def restored(self, server_id, handler):
        """Note that a guest has its own share, or refused it for ever.

        No former write to the handler counts.
        """
        self.members[server_id]['former'].pop(handler)

    def shown(self):
        """Return the limits as clients see them."""
        return [_shown(limit, place, self.members)
                for place, limit in enumerate(self.limits)]


def _of(places, continues):
    """Return the places of former limits that are continued, or None."""
    return [place if is_same else None
            for place, is_same in zip(places, continues)]


def _key(limit):
    return limit['name'], limit['kind'], limit['handler']


def _take_back(member, place, handler):
    """Let a limit have what a guest may have at its handler."""
    former = member['former'].pop(handler, None)
    if former:
        member['bounds'][place] = member['shares'][place] = former['bound']
        member['origins'][place] = former['origin']


def _member(count):
    return {'incarnation': None, 'is_leaving': False, 'is_doubtful': False,
            'is_silent': True, 'origins': [None] * count, 'former': {},
            **{name: [0] * count for name in (
                'bounds', 'shares', 'used', 'rates')}}


def _rates(limit, place, members, active):
    """Return {server id: share} of a rate, max-min fair by use.

    What no guest needs is divided equally, so that all of it is given.
    """
    bounds = {each: member['bounds'][place]
              for each, member in members.items()}
    held = sum(bound for each, bound in bounds.items() if each not in active)
    total = max(0, limit['total'] - held)
    if not active:
        return {}
    idle = total // (_IDLE * len(active))
    wanted = {}
    for each in active:
        used = members[each]['rates'][place]
        is_hungry = used >= _HUNGRY * bounds[each]
        wanted[each] = total if is_hungry else min(total, used + used // 4
                                                   + idle)
    shares = _fair(total, wanted)
    given = sum(bounds[each] for each in active)
    if total - len(active) <= given <= total and all(
            abs(shares[each] - bounds[each]) <= total // _STEP
            for each in active):
        shares = {each: bounds[each] for each in active}
    free = limit['total'] - sum(bounds.values())
    return _raised(shares, bounds, free)


def _fair(total, wanted):
    """Return max-min fair parts of a total; what is over is divided."""
    left, parts = total, {}
    for count, each in zip(range(len(wanted), 0, -1),
                           sorted(wanted, key=wanted.get)):
        parts[each] = min(wanted[each], left // count)
        left -= parts[each]
    return {each: part + left // len(wanted)
            for each, part in parts.items()}


def _raised(shares, bounds, free):
    """Return shares that raise the bounds by no more than what is free."""
    for each in sorted(shares, key=bounds.get):
        more = max(0, shares[each] - bounds[each])
        if more > max(0, free):
            shares[each] = bounds[each] + max(0, free)
            more = max(0, free)
        free -= more
    return shares


def _quotas(limit, place, members, active):
    """Return {server id: share} of a quota: a lease beyond what it used."""
    bounds = {each: member['bounds'][place]
              for each, member in members.items()}
    used = {each: member['used'][place] for each, member in members.items()}
    left = limit['total'] - limit['spent'] - sum(
        used[each] if each in active else bound
        for each, bound in bounds.items())
    if not active:
        return {}
    count, left = len(active), max(0, left)
    lease = min(left // count, max(LEAST_LEASE, min(
        left // (2 * count), limit['total'] // _LEASES)))
    shares = {}
    for each in active:
        rest = bounds[each] - used[each]
        if rest < lease - lease // 2 or rest > lease + lease // 2:
            shares[each] = used[each] + lease
    free = limit['total'] - limit['spent'] - sum(bounds.values())
    return _raised(shares, bounds, free)


def _shown(limit, place, members):
    is_quota = limit['kind'] == QUOTA
    used = 'used' if is_quota else 'rates'
    return {
        'name': limit['name'], 'kind': limit['kind'],
        'handler': limit['handler'], 'total': limit['total'],
        'used': min(MAX_TOTAL, limit['spent'] + sum(
            member[used][place] for member in members.values())),
        'shared': limit['spent'] + sum(
            member['bounds'][place] for member in members.values()),
        'guests': [{
            'server': server_id, 'share': member['bounds'][place],
            'used': member[used][place], 'is_silent': member['is_silent']}
            for server_id, member in members.items()]}
