// Only the text is looked at here.
FromDevice($IN_PORT_VIF) -> fw :: IPFilter(deny all) -> Discard;
