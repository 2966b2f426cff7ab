# SPDX-License-Identifier: Apache-2.0
"""``make release``: builds what users install, from a commit, and checks it.

:mod:`tree` refuses what must not be released, :mod:`artifacts` builds, and
:mod:`trials` installs and upgrades.
"""
