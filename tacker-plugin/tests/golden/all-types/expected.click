define($IN_PORT_VIF 0,
       $IN_PORT_MAC fa:16:3e:00:00:03,
       $IN_PORT_IP 192.0.2.7,
       $IN_PORT_NET 192.0.2.0/25,
       $IN_PORT_GW 192.0.2.1,
       $IN_PORT_MTU 9000,
       $IN_PORT_IP6 2001:db8:1::7,
       $IN_PORT_NET6 2001:db8:1::/64,
       $IN_PORT_GW6 2001:db8:1::1,
       $IN_PORT_IPS 192.0.2.7 192.0.2.9,
       $IN_PORT_IP6S 2001:db8:1::7 2001:db8:1::8,
       $SERVER 192.0.2.80,
       $INSIDE 10.0.0.0/8,
       $NEIGHBOR fa:16:3e:00:00:09,
       $SERVICE 80,
       $WINDOW 64,
       $STRICT true,
       $MODE safe,
       $PORTS 1024-65535,
       $PATH "/a/b.html");
# 1 "input.click"
// Only the text is looked at here.
FromDevice($IN_PORT_VIF) -> fw :: IPFilter(deny all) -> Discard;
// $IN_PORT_IP6 ${IN_PORT_NET6} $IN_PORT_GW6, all: $IN_PORT_IPS and $IN_PORT_IP6S
