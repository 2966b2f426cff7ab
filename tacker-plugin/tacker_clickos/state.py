# SPDX-License-Identifier: Apache-2.0
"""What the drivers keep in Tacker's VNF instance.

additional_params of the instantiated VNF is the truth, since a tenant's
update cannot touch it; the metadata, all JSON text, is what a tenant sees.
"""

import dataclasses
import json
import uuid

from oslo_utils import uuidutils

from tacker_clickos.vnfd import model

PROPERTIES = 'clickos_properties'
UPDATE = 'clickos_update'
STATE = 'clickos_state'
STATES = 'clickos_states'
REQUEST = 'clickos_request'
OUTPUTS = 'clickos_outputs'
AUTOMATIC = 'clickos_automatic'
SHARED = 'clickos_shared'
VNFD = 'clickos_vnfd'
RECORD = 'clickos_resources'


def text(value):
    """Return a value as the metadata's JSON text."""
    return json.dumps(value, sort_keys=True)


def params(info):
    """Return the additional_params of an instantiated VNF as a dict."""
    return dict(info.additional_params or {})


def set_param(info, name, value):
    """Set a parameter, or remove it with None."""
    changed = params(info)
    changed.pop(name, None)
    if value is not None:
        changed[name] = value
    info.additional_params = changed


def drop_claims(info):
    """Remove what only the drivers say, and a tenant's request said.

    Projects that share a VIM have their states and groups in one project.
    """
    for name in (STATES, RECORD, OUTPUTS, AUTOMATIC, SHARED, VNFD):
        set_param(info, name, None)


def in_force(vnf_instance):
    """Return {property: value} that hold now."""
    return params(vnf_instance.instantiated_vnf_info).get(PROPERTIES) or {}


@dataclasses.dataclass
class Record:
    """Ids of what a VNF has besides its guests and their ports.

    :param group: of the security group of its ports
    :param networks: {internal link: id of its network}
    :param keys: {VDU: key with which the guests of its pair know each other}
    """

    group: str | None = None
    networks: dict = dataclasses.field(default_factory=dict)
    keys: dict = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, info):
        """Return what the VNF instance has."""
        found = params(info).get(RECORD)
        found = found if isinstance(found, dict) else {}
        group, networks, keys = (found.get(name) for name in (
            'group', 'networks', 'keys'))
        return cls(group if isinstance(group, str) else None,
                   dict(networks) if isinstance(networks, dict) else {},
                   dict(keys) if isinstance(keys, dict) else {})

    def keep(self, info):
        """Note it in the VNF instance."""
        set_param(info, RECORD, dataclasses.asdict(self))


def state_ids(vnf_instance):
    """Return {name of a guest: id of its state in clickos-api}.

    The guest's servers come and go; each one refers to this state. Guests of
    builds before 0.2.0 have ids made of VNF and name.
    """
    info = vnf_instance.instantiated_vnf_info
    found = params(info).get(STATES)
    if not isinstance(found, dict):
        vnf_id = uuid.UUID(vnf_instance.id)
        return {each: str(uuid.uuid5(vnf_id, each))
                for each in map(name, info.vnfc_resource_info or ())}
    return {each: state_id for each, state_id in found.items()
            if isinstance(state_id, str) and uuidutils.is_uuid_like(state_id)}


def set_metadata(vnf_instance, **entries):
    """Set entries of the metadata, or remove them with None."""
    metadata = dict(vnf_instance.vnf_metadata or {})
    for name, value in entries.items():
        metadata.pop(name, None)
        if value is not None:
            metadata[name] = value
    vnf_instance.vnf_metadata = metadata


def show(vnf_instance):
    """Show properties and states of a VNF whose guests all just started."""
    info = vnf_instance.instantiated_vnf_info
    set_metadata(vnf_instance, **{
        PROPERTIES: text(in_force(vnf_instance)),
        STATE: text({vnfc.id: 'ACTIVE'
                     for vnfc in info.vnfc_resource_info or []}),
        OUTPUTS: text(params(info).get(OUTPUTS) or {}),
        SHARED: text(params(info)[SHARED]) if SHARED in params(info)
        else None,
    })


def kept_handlers(info, flavour, vnfd_id):
    """Return {VDU name: handlers} whose writes outlast a change of package.

    The new package's configuration may lack the other handlers.

    :param flavour: model.Flavour of the package
    :returns: None if the VNF has the package already: all writes stay
    """
    if params(info).get(VNFD) in (None, vnfd_id):
        return None
    return {name: {prop.handler for prop in
                   vdu.configuration.properties.values() if prop.handler}
            for name, vdu in flavour.vdus.items()}


def set_flavour(info, flavour, vnfd_id):
    """Note what a flavour says beyond its guests, for show and the watcher.

    :param flavour: model.Flavour
    """
    set_param(info, VNFD, vnfd_id)
    vdus = flavour.vdus
    own = dataclasses.asdict(flavour.automatic)
    set_param(info, AUTOMATIC, own if any(own.values()) else None)
    set_param(info, SHARED, [
        name for name, vdu in vdus.items() if model.shared(vdu)] or None)
    set_param(info, OUTPUTS, {
        name: {output.name: output.handler
               for output in vdu.configuration.outputs.values()}
        for name, vdu in vdus.items() if vdu.configuration.outputs} or None)


def server_id(vnfc):
    """Return the Nova server of a vnfcResourceInfo, or None."""
    if not vnfc.obj_attr_is_set('compute_resource'):
        return None
    handle = vnfc.compute_resource
    if handle is None or not handle.obj_attr_is_set('resource_id'):
        return None
    return handle.resource_id or None


def name(vnfc):
    """Return the name instantiation gave to a VNFC, such as VDU1-0."""
    metadata = (vnfc.metadata if vnfc.obj_attr_is_set('metadata') else None)
    return (metadata or {}).get('name', vnfc.vdu_id)
