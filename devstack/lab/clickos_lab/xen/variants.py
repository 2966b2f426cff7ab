# SPDX-License-Identifier: Apache-2.0
"""The Xens that a host may have: Debian's, and the same with our patches."""

STOCK, PATCHED = ALL = 'stock', 'patched'
#: Names of kinds of hosts, as ``make`` has them.
OF_HOSTS = {'xen': PATCHED, 'xen-stock': STOCK}


def choose(places, variant):
    """Note which one the hosts of the cloud get from now on."""
    places.create()
    (places.root / 'variant').write_text(variant)


def chosen(places):
    """Return the one that was chosen last."""
    noted = places.root / 'variant'
    return noted.read_text() if noted.exists() else STOCK
