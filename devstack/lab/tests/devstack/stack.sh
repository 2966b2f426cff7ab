#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# stack.sh MODE: runs the plugin's phases of MODE (stack, unstack, clean) as DevStack does, into the folder ROOT.
# DevStack's functions that the plugin calls are written here again, small: they note their arguments in ROOT/calls.
set -eo pipefail

: "${ROOT:?}" "${PLUGIN:?}" "${ENABLED_SERVICES:?}"
mode=$1

# The variables of stackrc and of DevStack's libraries.
STACK_USER=$(id -un)
DATA_DIR=$ROOT/opt/stack/data
SYSTEMD_DIR=$ROOT/etc/systemd/system
SERVICE_PROTOCOL=http
SERVICE_HOST=192.0.2.1
HOST_IP=192.0.2.7
REGION_NAME=RegionOne
RABBIT_USERID=stackrabbit
RABBIT_PASSWORD=secret
KEYSTONE_SERVICE_URI=$SERVICE_PROTOCOL://$SERVICE_HOST/identity
NOVA_DIR=$ROOT/opt/stack/nova
HORIZON_DIR=$ROOT/opt/stack/horizon
NOVA_CONF_DIR=$ROOT/etc/nova
NOVA_CONF=$NOVA_CONF_DIR/nova.conf
NEUTRON_CONF=$ROOT/etc/neutron/neutron.conf
GLANCE_API_CONF=$ROOT/etc/glance/glance-api.conf
TACKER_CONF=$ROOT/etc/tacker/tacker.conf
TEMPEST_DIR=$ROOT/opt/stack/tempest
TEMPEST_CONFIG=$TEMPEST_DIR/etc/tempest.conf
CLICKOS_CONF_DIR=$ROOT/etc/clickos
CLICKOS_RUN_DIR=$ROOT/run/clickos
CLICKOS_TMPFILES=$ROOT/etc/tmpfiles.d/clickos.conf
CLICKOS_CARGO=$ROOT/bin/cargo
export STACK_USER DATA_DIR SYSTEMD_DIR KEYSTONE_SERVICE_URI NOVA_DIR NOVA_CONF_DIR NOVA_CONF HORIZON_DIR
export GLANCE_API_CONF TACKER_CONF
export NEUTRON_CONF TEMPEST_DIR TEMPEST_CONFIG CLICKOS_CONF_DIR CLICKOS_RUN_DIR CLICKOS_TMPFILES CLICKOS_CARGO
export SERVICE_PROTOCOL REGION_NAME RABBIT_USERID RABBIT_PASSWORD

function note {
    echo "$*" >>"$ROOT/calls"
}

function die {
    echo "error: ${*:2}" >&2
    exit 1
}

function noted {
    eval "function $1 { note $1 \"\$@\"; }"
}
for name in define_plugin echo_summary install_package recreate_database create_service_user \
    get_or_create_service get_or_create_endpoint neutron_service_plugin_class_add \
    pip_install test_with_retry systemd-tmpfiles; do
    noted "$name"
done

function is_service_enabled {
    local name
    for name in "$@"; do
        case ",$ENABLED_SERVICES," in
            *",$name,"*) return 0 ;;
        esac
        # A project runs if one of its services does.
        case "$name:,$ENABLED_SERVICES" in
            nova:*,n-* | glance:*,g-* | neutron:*,q-*) return 0 ;;
        esac
    done
    return 1
}

function enable_service {
    local name
    for name in "$@"; do
        is_service_enabled "$name" || ENABLED_SERVICES+=",$name"
    done
}

# iniset FILE SECTION OPTION VALUE
function iniset {
    mkdir -p "$(dirname "$1")"
    touch "$1"
    grep -qxF "[$2]" "$1" || echo "[$2]" >>"$1"
    HEADER="[$2]" OPTION="$3 = " VALUE="$4" awk '
        /^\[/ { inside = $0 == ENVIRON["HEADER"] }
        !inside || index($0, ENVIRON["OPTION"]) != 1 { print }
        $0 == ENVIRON["HEADER"] { print ENVIRON["OPTION"] ENVIRON["VALUE"] }
    ' "$1" >"$ROOT/new.ini"
    cat "$ROOT/new.ini" >"$1"
    rm "$ROOT/new.ini"
}

# inidelete FILE SECTION OPTION
function inidelete {
    sed -i "/^\[$2\]/,/^\[/{/^$3 =/d}" "$1"
}

# merge_config_group FILE GROUP, for files with one space on each side of "=".
function merge_config_group {
    local line target='' section='' value
    while IFS= read -r line; do
        if [[ "$line" =~ ^\[\[(.+)\|(.+)\]\]$ ]]; then
            target=''
            if [[ "${BASH_REMATCH[1]}" == "$2" ]]; then
                eval "target=${BASH_REMATCH[2]}"
            fi
        elif [[ -z "$target" || -z "$line" || "$line" == \#* ]]; then
            continue
        elif [[ "$line" =~ ^\[(.+)\]$ ]]; then
            section=${BASH_REMATCH[1]}
        else
            eval "value=\"${line#* = }\""
            iniset "$target" "$section" "${line%% = *}" "$value"
        fi
    done <"$1"
}

# run_process NAME COMMAND [GROUP] [USER]
function run_process {
    is_service_enabled "$1" || return 0
    [[ "$2" == /* ]] || die "$1" "$2: not an absolute path"
    mkdir -p "$SYSTEMD_DIR"
    printf '[Service]\nExecStart = %s\nGroup = %s\nUser = %s\n' "$2" "${3:-}" "${4:-$STACK_USER}" \
        >"$SYSTEMD_DIR/devstack@$1.service"
    touch "$ROOT/running/$1"
}

function stop_process {
    rm -f "$ROOT/running/$1"
}

# A wheel has nova/virt/clickos, next to a Nova that is installed from its checkout.
function setup_install {
    note setup_install "$@"
    mkdir -p "$ROOT"/venv/lib/python3.11/site-packages/nova/virt/clickos
}

function get_python_exec_prefix {
    echo "$ROOT/venv/bin"
}

function database_connection_url {
    echo "mysql+pymysql://root:secret@127.0.0.1/$1?charset=utf8"
}

function iniset_rpc_backend {
    iniset "$2" DEFAULT transport_url "rabbit://stackrabbit:secret@$SERVICE_HOST:5672/"
}

function get_transport_url {
    echo "rabbit://stackrabbit:secret@$SERVICE_HOST:5672/${1:-}"
}

# shellcheck disable=SC2032  # sudo is a function here
function rabbitmqctl {
    note rabbitmqctl "$@"
}

function configure_keystoneauth {
    iniset "$1" "$3" auth_type password
    iniset "$1" "$3" interface public
    iniset "$1" "$3" auth_url "$KEYSTONE_SERVICE_URI"
    iniset "$1" "$3" username "$2"
}

function configure_keystone_authtoken_middleware {
    configure_keystoneauth "$1" "$2" keystone_authtoken
}

function write_uwsgi_config {
    note write_uwsgi_config "$@"
    rm -f "$1"
    iniset "$1" uwsgi module "$2"
    touch "$(apache_site_config_for "$5")"
}

function apache_site_config_for {
    echo "$ROOT/etc/$1.apache"
}

function remove_uwsgi_config {
    rm -f "$1"
    touch "$ROOT/etc/$2.disabled"
}

# a2dissite --quiet --purge SITE
# shellcheck disable=SC2032  # sudo is a function here
function a2dissite {
    rm -f "$ROOT/etc/$3.disabled"
}

function sudo {
    "$@"
}

function getent {
    grep "^$2:" "$ROOT/etc/passwd"
}

# shellcheck disable=SC2032  # sudo is a function here
function useradd {
    echo "${*: -1}:" >>"$ROOT/etc/passwd"
}

# The users are in a file of the test.
# shellcheck disable=SC2032  # sudo is a function here
function chown {
    grep -q "^${1%%:*}:" "$ROOT/etc/passwd" || die chown "$1: no such user"
    note chown "$@"
}

# shellcheck disable=SC2032
function userdel {
    sed -i "/^$1:/d" "$ROOT/etc/passwd"
}

# apt knows the packages in KNOWN_PACKAGES; dpkg installs the one of the folder that dpkg-deb got.
function apt-cache {
    [[ " ${KNOWN_PACKAGES:-} " != *" $2 "* ]] || echo "$2 | 1.0 | Debian"
}

function dpkg-deb {
    cp "$3/DEBIAN/control" "$4"
}

# shellcheck disable=SC2032  # sudo is a function here
function dpkg {
    note dpkg "$@"
    case "$1" in
        --install) cp "$2" "$ROOT/etc/installed" ;;
        --purge) rm "$ROOT/etc/installed" ;;
    esac
}

function dpkg-query {
    sed -n 's/^Version: //p' "$ROOT/etc/installed"
}

# Glance and Nova know what was made before, by the names in ROOT/cloud.
function openstack {
    note openstack "$@"
    case "$3 $4" in
        "flavor show") test -e "$ROOT/cloud/$5" ;;
        "flavor create" | "image create") touch "$ROOT/cloud/$5" ;;
        "image list") find "$ROOT/cloud" -name "$6" -printf '%f\n' ;;
        *) die "$3" "$4: no such command here" ;;
    esac
}

function phase {
    # shellcheck source=devstack/plugin.sh
    source "$PLUGIN/plugin.sh" "$@"
}

# shellcheck source=devstack/override-defaults
source "$PLUGIN/override-defaults"
Q_PLUGIN_CONF_FILE=
# shellcheck source=devstack/settings
source "$PLUGIN/settings"
# shellcheck disable=SC2034  # options.conf uses it
Q_PLUGIN_CONF_FILE=${ROOT#/}/etc/neutron/plugins/ml2/ml2_conf.ini

case "$mode" in
    stack)
        # The plugin of Tacker runs first.
        if is_service_enabled tacker; then
            mkdir -p "$(dirname "$TACKER_CONF")"
        fi
        for name in pre-install install post-config extra test-config; do
            phase stack "$name"
        done
        ;;
    unstack | clean)
        set +e
        phase "$mode"
        ;;
esac
