define($IN_PORT_VIF 0,
       $IN_PORT_MAC fa:16:3e:00:00:03,
       $IN_PORT_IP 192.0.2.7,
       $IN_PORT_NET 192.0.2.0/25,
       $IN_PORT_GW 192.0.2.1,
       $IN_PORT_MTU 9000,
       $SERVER 192.0.2.80,
       $INSIDE 10.0.0.0/8,
       $NEIGHBOR fa:16:3e:00:00:09,
       $SERVICE 80,
       $WINDOW 64,
       $STRICT true,
       $MODE safe);
# 1 "input.click"
// Only the text is looked at here.
FromDevice($IN_PORT_VIF) -> fw :: IPFilter(deny all) -> Discard;
