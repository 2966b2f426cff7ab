# SPDX-License-Identifier: Apache-2.0
"""An upgrade of a cloud from the previous release, under traffic.

:mod:`older` builds the parts of the previous release, :mod:`place` holds a
lab of them, :mod:`steps` upgrades it part by part, and :mod:`probe` looks at
the cloud between two steps.
"""
