# SPDX-License-Identifier: GPL-2.0-only
# Applies the series to the source of netback and netfront.
# KDIR is the headers of the kernel that loads the module; SOURCE is its
# source, from the Debian package linux-source-6.1.
KDIR ?= /lib/modules/$(shell uname -r)/build
SOURCE ?= /usr/src/linux-source-6.1.tar.xz
BUILD ?= $(CURDIR)/build
SERIES := $(abspath $(dir $(lastword $(MAKEFILE_LIST))))

$(BUILD)/patched.stamp: $(SOURCE) $(SERIES)/series $(wildcard $(SERIES)/*.patch)
	rm -rf $(BUILD)
	mkdir -p $(BUILD)
	tar -x -f $(SOURCE) -C $(BUILD) --strip-components=1 --wildcards \
		'*/drivers/net/xen-netback/*' '*/drivers/net/xen-netfront.c'
	grep -v '^#' $(SERIES)/series | while read -r patch; do \
		patch -d $(BUILD) -p1 --fuzz=0 --batch -i $(SERIES)/$$patch || \
			exit 1; done
	touch $@

clean:
	rm -rf $(BUILD)

.PHONY: all clean
