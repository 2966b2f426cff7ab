#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# DevStack sources this file with a mode and a phase; lib/clickos holds the functions.
# shellcheck source=devstack/lib/clickos

_CLICKOS_XTRACE=$(set +o | grep xtrace)
set +o xtrace
source "$CLICKOS_DEVSTACK/lib/clickos"

case "$1 ${2:-}" in
    "stack pre-install")
        check_clickos
        ;;
    "stack install")
        echo_summary "Installing ClickOS"
        install_clickos
        ;;
    "stack post-config")
        echo_summary "Configuring ClickOS"
        configure_clickos
        start_clickos_host
        ;;
    "stack extra")
        echo_summary "Starting ClickOS"
        init_clickos
        start_clickos
        register_clickos
        ;;
    "stack test-config")
        configure_clickos_tempest
        ;;
    "unstack "*)
        stop_clickos
        ;;
    "clean "*)
        cleanup_clickos
        ;;
esac

$_CLICKOS_XTRACE
