#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the guests of Xen, checks them, and tells what takes their space.

Needs cargo and binutils. ``image.py --out DIR`` writes DIR/clickos and
DIR/pkt-gen. Each is one ELF that boots as PV and as PVH. The file
docs/bounds.toml has the largest size and the fewest classes of each profile.
Without a choice clickos is of the profile core. ``--profile full`` writes
DIR/clickos-full, with all groups of elements but ``inspect``, which
``--profile ids`` has. The option ``--groups standard,device,control`` chooses
groups. ``--config FILE`` chooses the classes
of a configuration, and the image is DIR/clickos-NAME. DIR/IMAGE.groups names
the groups of an image, for its property in Glance. ``--twice`` builds all
again, from nothing, and fails if a byte differs.
"""
import argparse
import collections
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

import selection

ROOT = selection.ROOT
TARGET = 'x86_64-unknown-linux-gnu'
#: The folders that releases of cargo have for crates.io.
_REGISTRIES = ('index.crates.io-1949cf8c6b5b557f',
               'index.crates.io-6f17d22bba15001f')
PROGRAMS = ('clickos', 'pkt-gen')
BOUNDS = selection.ROOT / 'docs/bounds.toml'
#: The bounds of each profile: KiB, element classes.
PROFILE_BOUNDS = {
    selection.CORE: ('max_default_image_kib', 'min_default_image_classes'),
    selection.FULL: ('max_full_image_kib', 'min_full_image_classes'),
    selection.IDS: ('max_ids_image_kib', 'min_ids_image_classes'),
}
#: Built only when named: the conformance corpus as a guest, one that lies in
#: its rings, one that lies to the store, and one that does nothing, for
#: measuring.
TESTS = ('conformance', 'empty', 'hostile', 'hostile-store')
#: The program that has elements.
CLICKOS = 'clickos'
PARTS = {
    'language': ('click_lang',),
    'engine': ('click_core', 'click_packet', 'click_wire'),
    'guest OS': ('clickos_os', 'xen_sys', 'xenstore', 'talc',
                 'clickos_guest'),
    'network': ('xen_net', 'ring'),
    'control': ('clickos_control', 'clickos_protocol'),
    'core and alloc': ('core', 'alloc', 'compiler_builtins'),
}


def main():
    args = parse_arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    for program in args.programs:
        linked = build(program, args)
        check(linked)
        image = args.out / image_name(program, args)
        strip(linked, image)
        if not args.quiet:
            report(linked, image)
        if program in PROGRAMS:
            check_size(image, args.profile)
    if CLICKOS in args.programs:
        report_classes(args)
        write_groups(args)
    if args.twice:
        check_same(args)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument('--groups', help='groups of elements, commas between')
    choice.add_argument('--profile', choices=selection.PROFILES,
                        help='builds clickos with the groups of a profile')
    choice.add_argument('--config', type=pathlib.Path, metavar='FILE',
                        help='builds clickos for one configuration')
    parser.add_argument('--twice', action='store_true',
                        help='build all twice and compare')
    parser.add_argument('--quiet', action='store_true', help='no sizes')
    parser.add_argument('programs', nargs='*', metavar='PROGRAM',
                        help=f'{", ".join(PROGRAMS)} (if none is named), '
                             f'{", ".join(TESTS)}')
    args = parser.parse_args()
    check_names(parser, 'program', args.programs, PROGRAMS + TESTS)
    asked = args.groups.split(',') if args.groups else []
    check_names(parser, 'group', asked, selection.groups())
    one = (CLICKOS,) if args.profile or args.config else PROGRAMS
    args.programs = args.programs or one
    if not (args.groups or args.profile or args.config):
        args.profile = selection.CORE
    args.element_groups = chosen_groups(args)
    args.elements = chosen_elements(args)
    return args


def chosen_elements(args):
    """Return the elements to be built in; a wrong choice ends the program."""
    if args.config:
        try:
            return selection.of_flat(selection.flatten(args.config))
        except subprocess.CalledProcessError:
            sys.exit(f'{args.config}: no image of a wrong configuration')
        except selection.UnknownClass as e:
            sys.exit(f'{args.config}: {e}')
    return selection.of_groups(args.element_groups)


def chosen_groups(args):
    """Return the groups that the image has whole."""
    if args.profile:
        return selection.of_profile(args.profile)
    return args.groups.split(',') if args.groups else []


def image_name(program, args):
    """Return the name of an image's file."""
    choice = (args.config.stem if args.config
              else args.profile if args.profile != selection.CORE else None)
    return f'{program}-{choice}' if choice else program


def check_names(parser, what, names, known):
    for name in names:
        if name not in known:
            parser.error(f'{what}: {name!r} is none of '
                         f'{", ".join(sorted(known))}')


def broken(key, measured):
    """Tell how a value breaks a bound of docs/promises.md; None if it holds.
    """
    path = os.environ.get('CLICKOS_BOUNDS') or BOUNDS
    bound = tomllib.loads(pathlib.Path(path).read_text())[key]
    if key.startswith('max_') and measured > bound:
        return f'{key}: {measured}, expected at most {bound}'
    if key.startswith('min_') and measured < bound:
        return f'{key}: {measured}, expected at least {bound}'
    return None


def check_size(image, profile):
    """Fail if an image is larger than its profile may be."""
    key, _classes = PROFILE_BOUNDS[profile or selection.FULL]
    wrong = broken(key, image.stat().st_size / 1024)
    if wrong:
        sys.exit(f'{image.name}: {wrong}')


def report_classes(args):
    """Print how many classes the image has; fail if a profile lacks some."""
    count = len(selection.class_names(args.elements))
    of = len(selection.class_names(selection.of_groups(selection.groups())))
    if not args.quiet:
        print(f'{image_name(CLICKOS, args)}: {count} of {of} element classes')
    wrong = args.profile and broken(PROFILE_BOUNDS[args.profile][1], count)
    if wrong:
        sys.exit(wrong)


def write_groups(args):
    """Write the groups of the image, as its property in Glance has them."""
    if args.element_groups:
        (args.out / f'{image_name(CLICKOS, args)}.groups').write_text(
            ','.join(sorted(args.element_groups)) + '\n')


def check_same(args):
    """Build again in an empty folder; fail if an image has other bytes."""
    with tempfile.TemporaryDirectory() as folder:
        for program in args.programs:
            second = pathlib.Path(folder) / program
            strip(build(program, args, folder), second)
            first = args.out / image_name(program, args)
            if second.read_bytes() != first.read_bytes():
                sys.exit(f'{program}: a second build has other bytes')
    print(f'built twice, same bytes: {", ".join(args.programs)}')


def build(program, args, target_dir=None):
    """Build a program and return the linked ELF with its symbols."""
    env = dict(os.environ, RUSTFLAGS=rust_flags())
    if target_dir:
        env['CARGO_TARGET_DIR'] = target_dir
    env['CLICKOS_ELEMENTS'] = ','.join(
        selection.of_groups(selection.corpus_groups())
        if program == 'conformance' else args.elements)
    run('cargo', 'build', '--quiet', '--locked', '-p', 'clickos-guest',
        '--features', features(program, args.elements),
        '--bin', program, '--profile', 'guest', '--target', TARGET,
        cwd=ROOT, env=env)
    target_dir = env.get('CARGO_TARGET_DIR', ROOT / 'target')
    return pathlib.Path(target_dir) / TARGET / 'guest' / program


def features(program, elements):
    """Return the features of clickos-guest a program is built with."""
    names = ['corpus' if program == 'conformance' else 'guest']
    return ','.join(names + selection.features(elements))


def rust_flags():
    """Return flags for code at a fixed address that names no path.

    Names of source files are in an image for its last words, so they are
    short.
    """
    cargo = os.environ.get('CARGO_HOME', pathlib.Path.home() / '.cargo')
    return ' '.join(['-C relocation-model=static',
                     # An eighth smaller than with 225, which opt-level 2 has.
                     '-C llvm-args=-inline-threshold=50',
                     f'--remap-path-prefix={ROOT}=clickos',
                     f'--remap-path-prefix={ROOT}/clickos-image/crates=',
                     f'--remap-path-prefix={cargo}=cargo',
                     *(f'--remap-path-prefix={cargo}/registry/src/{name}='
                       for name in _REGISTRIES)])


def strip(linked, image):
    shutil.copyfile(linked, image)
    run('strip', '--strip-all', image)


def check(linked):
    """Fail if the program needs a kernel below it, or a library."""
    undefined = run('nm', '--undefined-only', linked)
    if undefined:
        sys.exit(f'{linked}: undefined symbols:\n{undefined}')
    code = run('objdump', '--disassemble', '--no-show-raw-insn', linked)
    calls = [line for line in code.splitlines()
             if re.search(r'\t(syscall|sysenter|int +\$?0x80)\b', line)]
    if calls:
        sys.exit(f'{linked}: system calls:\n' + '\n'.join(calls))


def report(linked, image):
    digest = hashlib.sha256(image.read_bytes()).hexdigest()
    size = image.stat().st_size
    print(f'{image.name}: {size / 1024:.0f} KiB, sha256 {digest}')
    sizes = collections.Counter()
    for crate, group, symbol_size in symbols(linked):
        sizes[part_of(crate, group)] += symbol_size
    sizes['texts, tables without names'] = size - sum(sizes.values())
    for part, bytes_ in sizes.most_common():
        print(f'  {part:24} {bytes_ / 1024:8.1f} KiB')


def symbols(linked):
    """Yield crate, element group and size of each symbol with content."""
    for line in run('nm', '-S', linked).splitlines():
        fields = line.split()
        if len(fields) == 4 and fields[2] not in 'bB':
            yield *crate_of(fields[3]), int(fields[1], 16)


def crate_of(symbol):
    """Return the crate a symbol is from, and its group of elements."""
    found = re.match(r'_ZN(\d+)', symbol)
    if not found:
        return 'core', None
    path = symbol[found.end():]
    name = path[:int(found[1])]
    inner = re.match(r'_?\$LT\$(?:\$u20\$|[^a-z])*([a-z_]+)\.\.', name)
    group = re.search(
        r'8elements\d+([a-z0-9]+?)_|\.\.elements\.\.([a-z0-9]+?)_', path)
    return inner[1] if inner else name, group and (group[1] or group[2])


def part_of(crate, group):
    if crate == 'click_elements':
        return f'elements: {group or "shared"}'
    parts = (part for part, crates in PARTS.items() if crate in crates)
    return next(parts, 'core and alloc')


def run(*command, **options):
    """Run a command and return its output; a failure ends the program."""
    result = subprocess.run(command, text=True, check=False,
                            stdout=subprocess.PIPE, **options)
    if result.returncode:
        sys.exit(f'{command[0]}: exit status {result.returncode}')
    return result.stdout


if __name__ == '__main__':
    main()
