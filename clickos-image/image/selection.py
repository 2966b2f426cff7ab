# SPDX-License-Identifier: Apache-2.0
"""Chooses the elements of an image: by group, by profile, by configuration.

An element is named as its file is, ``standard/counter``.
"""
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
ELEMENTS = ROOT / 'clickos-image/crates/click-elements/src/elements'
#: Groups that need a feature of the crate.
REGEX, INSPECT = 'regex', 'inspect'
#: Groups that only the full image has; the others fill 2 MiB.
_FULL_ONLY = ('bras', 'compress', 'flows', 'ha', 'ipsec', 'offload', REGEX,
              'summaries', 'test', 'wireguard')
#: The profile of an image without a choice, the one with every group but that
#: of inspection, and the one with core's groups and that.
CORE, FULL, IDS = 'core', 'full', 'ids'
PROFILES = (CORE, FULL, IDS)
#: Every configuration gets an element of this class.
_IMPLICIT = ('ClickOSControl',)
_NAME = re.compile(r'(?m)^    name: "(\w+)"')
_ALIASES = re.compile(r'(?m)^    aliases: &\[([^]]*)\]')
_DECLARATION = re.compile(r'(?m)^[\w@/]+ :: (\w+)')


class UnknownClass(Exception):
    """A configuration uses a class that no guest can have."""


def groups():
    """Return the names of all groups that a guest can have."""
    return sorted(folder.name for folder in ELEMENTS.iterdir())


def of_profile(profile):
    """Return the names of the groups of a profile's image."""
    left_out = {CORE: (*_FULL_ONLY, INSPECT), FULL: (INSPECT,),
                IDS: _FULL_ONLY}[profile]
    return [name for name in groups() if name not in left_out]


def corpus_groups():
    """Return the names of the groups whose cases run in a guest."""
    return [name for name in groups() if name not in (REGEX, INSPECT)]


def of_groups(names):
    """Return the elements of some groups."""
    return sorted(f'{path.parent.name}/{path.stem}' for name in names
                  for path in (ELEMENTS / name).glob('*.rs'))


def class_names(elements):
    """Return the names of the classes of some elements, without aliases."""
    return {name for element in elements for name in _NAME.findall(
        (ELEMENTS / f'{element}.rs').read_text())}


def classes():
    """Return {name or alias of a class: its element}."""
    found = {}
    for element in of_groups(groups()):
        source = (ELEMENTS / f'{element}.rs').read_text()
        aliases = ''.join(_ALIASES.findall(source))
        names = _NAME.findall(source) + re.findall(r'"(\w+)"', aliases)
        found.update(dict.fromkeys(names, element))
    return found


def of_flat(text):
    """Return the elements of a flat configuration.

    :raises UnknownClass: if a guest cannot have one of them
    """
    known = classes()
    used = {*_DECLARATION.findall(text), *_IMPLICIT}
    unknown = sorted(used - known.keys())
    if unknown:
        raise UnknownClass(f'no guest has the class {", ".join(unknown)}')
    return sorted({known[name] for name in used})


def flatten(config, cargo_environment=None):
    """Return a configuration flat; its errors are on standard error.

    :raises subprocess.CalledProcessError: if it is wrong
    """
    return subprocess.run(
        ['cargo', 'run', '--quiet', '--locked', '-p', 'click-run', '--bin',
         'click-flatten', '--', config.resolve()], check=True, text=True,
        stdout=subprocess.PIPE, cwd=ROOT, env=cargo_environment).stdout


def features(elements):
    """Return the features of clickos-guest that some elements need."""
    return [REGEX] if any(name.startswith((f'{REGEX}/', f'{INSPECT}/'))
                          for name in elements) else []
