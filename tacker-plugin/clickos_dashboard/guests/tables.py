# SPDX-License-Identifier: Apache-2.0
"""The table of guests."""

from django.utils.translation import gettext_lazy as _
from horizon import tables

from clickos_dashboard import rows
from clickos_dashboard import searching


class Guests(searching.Searched):
    """One guest a row."""

    states_of = 'status'
    nothing = _('There is no guest without a VNF. Launch an instance from a'
                ' ClickOS image, with the Click configuration as user data.')

    name = tables.WrappingColumn('name', verbose_name=_('Name'),
                                 link='horizon:clickos:guests:detail')
    status = tables.Column('status', verbose_name=_('Status'))

    class Meta(object):
        """Settings for Horizon."""

        name = 'guests'
        verbose_name = _('Guests')
        row_class = rows.Row

    def get_object_display(self, datum):
        """Return a guest's name."""
        return datum.name


class Events(searching.Searched):
    """One event a row."""

    nothing = _('Nova has no event of the guest.')

    name = tables.Column('action', verbose_name=_('Event'))
    began = tables.Column('start_time', verbose_name=_('Began'))
    message = tables.Column('message', verbose_name=_('Message'),
                            empty_value='')
    asked = tables.Column('request_id', verbose_name=_('Request'),
                          classes=('clickos-wide',))

    class Meta(object):
        """Settings for Horizon."""

        name = 'events'
        verbose_name = _('Events')
        row_class = rows.Row

    def get_object_id(self, datum):
        """Return what tells one from the others."""
        return datum.request_id

    def get_object_display(self, datum):
        """Return an event's name."""
        return datum.action


class Drops(searching.Searched):
    """Packets of one flow that one rule dropped, a row each."""

    nothing = _('No packet was dropped, or the guest keeps no flow log.')

    age = tables.Column(lambda each: f'{each.age_ms / 1000:.1f}',
                        verbose_name=_('Seconds ago'))
    packets = tables.Column('packets', verbose_name=_('Packets'))
    protocol = tables.Column('protocol', verbose_name=_('Protocol'))
    source = tables.Column('source', verbose_name=_('Source'))
    destination = tables.Column('destination', verbose_name=_('Destination'))
    reason = tables.Column('reason', verbose_name=_('Rule'))
    element = tables.Column('element', verbose_name=_('Element'),
                            classes=('clickos-wide',))

    class Meta(object):
        """Settings for Horizon."""

        name = 'drops'
        verbose_name = _('Dropped')
        row_class = rows.Row

    def get_object_id(self, datum):
        """Return what tells one from the others."""
        return ' '.join((datum.element, datum.protocol, datum.source,
                         datum.destination, datum.reason))

    def get_object_display(self, datum):
        """Return a flow's ends."""
        return f'{datum.source} {datum.destination}'
