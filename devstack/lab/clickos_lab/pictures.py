# SPDX-License-Identifier: Apache-2.0
"""Pictures for documents: a palette makes them small enough for git."""

import io

from PIL import Image

_COLORS = 128


def shrink(path):
    """Write a PNG file again with a palette, if that makes it smaller."""
    with Image.open(path) as picture:
        few = picture.convert('RGB').quantize(
            _COLORS, method=Image.Quantize.MEDIANCUT,
            dither=Image.Dither.NONE)
    made = io.BytesIO()
    few.save(made, 'PNG', optimize=True)
    if len(made.getvalue()) < path.stat().st_size:
        path.write_bytes(made.getvalue())
