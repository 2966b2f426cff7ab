// Only the text is looked at here.
FromDevice($IN_PORT_VIF) -> fw :: IPFilter(deny all) -> Discard;
// $IN_PORT_IP6 ${IN_PORT_NET6} $IN_PORT_GW6, all: $IN_PORT_IPS and $IN_PORT_IP6S
