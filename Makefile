# SPDX-License-Identifier: Apache-2.0
# PYTHON is a Python 3.11 to 3.13; CLICKOS_STATE is the state folder (.state).
PYTHON ?= python3
KEEP ?=
HOST ?=
UI ?=
TLS ?=
OPENSTACK ?=
ifdef OPENSTACK
export CLICKOS_OPENSTACK = $(OPENSTACK)
endif
LAB = PYTHONPATH=$(CURDIR)/devstack/lab $(PYTHON) -m clickos_lab
SETTINGS = CLICKOS_TLS=$(TLS)
# What needs no virtual environment finds our own packages in the tree.
PLAIN = PYTHONPATH=$(CURDIR)/devstack/lab:$(CURDIR)/cosmos/python:$(CURDIR)/interfaces

.PHONY: help try cast demo lint unit integration test audit bench build click image csars lab soak lab-up lab-down clean-demo packages release docs

help:
	@echo 'Try the product (root, Debian 12 or 13)'
	@echo '  make try          show a firewall guest between two namespaces, without OpenStack;'
	@echo '                    KEEP=1 then opens a shell; leaving it removes all'
	@echo '  make demo         show the main job on real services; KEEP=1 leaves them up,'
	@echo '                    HOST=xen runs the VNF on a patched Xen host in QEMU,'
	@echo '                    HOST=xen-stock on one of Debian'"'"'s Xen,'
	@echo '                    UI=1 shows it in a browser first, with pictures,'
	@echo '                    OPENSTACK=2026.1 runs it on that release, as all targets do'
	@echo '  make lab-up       start the services (HOST=xen as above; TLS=1 encrypts HTTP and the'
	@echo '                    message queue, as in the demo); make lab-down stops them, and VNFs'
	@echo '                    come back with the next lab-up'
	@echo '  make lab          a shell on a Xen host in QEMU, which ends with it'
	@echo '  make clean-demo   remove the services, the environment and all data'
	@echo 'Change the code (any user; Python 3.11 and Rust)'
	@echo '  make lint         linters: style, names and types, clippy, prose, links, licenses, bandit'
	@echo '  make unit         unit tests of Python and Rust'
	@echo '  make docs         the site of all documents, in .state/site; a broken link fails'
	@echo 'Show that a change is good (root, Debian 12 or 13); SUITES="a b" runs only those'
	@echo '  make test         what a change must pass, at most 20 minutes: the above, Rust, one boot'
	@echo '                    of Xen, the demonstration and the commands that it prints'
	@echo '  make integration  all suites that end within hours: Xen, VNFs, guides, all of Tempest'
	@echo '  make soak         1,000 guests, 10,048 routers in one guest and so on: hours; PARTS="many cycles" some, PARTS=help lists them;'
	@echo '                    PARTS=attack an hour of hostile guests, clients and tenants on the lab;'
	@echo '                    PARTS=faults services that fail in the middle of operations, FAULTS=_nova_kill some;'
	@echo '                    PARTS=gate make test under load, RUNS times, and each promise broken'
	@echo '  make audit        dependencies against advisory databases and licenses; needs the network'
	@echo '  make bench        time of a packet per configuration; ENGINE="name=path ..." compares, ONLY=30,41 restricts;'
	@echo '                    FIGURES=all or FIGURES="7 10" measures and draws figures of the papers instead'
	@echo 'Build a part'
	@echo '  make build        install what is needed and build what make demo starts'
	@echo '  make click        click, click-check and others, about 6 minutes; an openrc has them on the path'
	@echo '  make image        the guests of Xen; sizes by part; PROFILE=core|full|ids or'
	@echo '                    CONFIG=FILE builds one with fewer elements'
	@echo '  make packages     Debian packages of a compute host: cosmosd, valed, guests, agent, patched Xen'
	@echo '  make release      wheel, source archives, Debian packages and site of HEAD in dist/VERSION,'
	@echo '                    installed and upgraded to; root, Debian 12, half an hour'
	@echo '  make cast         record the picture of the README, docs/images/live-rule-change.svg (root)'
	@echo '  make csars        the packages of all VNFs, checked; draws their graphs'

try:
	@$(PLAIN) $(PYTHON) -m clickos_lab try $(if $(KEEP),--keep)

cast:
	@$(PLAIN) $(PYTHON) -m clickos_lab.trial.cast

demo:
	@$(SETTINGS) $(LAB) demo $(if $(HOST),--host $(HOST)) $(if $(KEEP),--keep) $(if $(UI),--ui)

test:
	@$(LAB) test $(SUITES)

lint unit integration:
	@$(LAB) test --tier $@ $(SUITES)

audit:
	@PYTHONPATH=$(CURDIR)/devstack/lab $(PYTHON) -m clickos_lab.audit

# About 12 minutes for each engine, 4 with RUNS=1. ENGINE names other programs that run as click does.
BENCH = PYTHONPATH=$(CURDIR)/clickos-image/benches $(PYTHON) -m click_bench
CLICK = $(or $(CARGO_TARGET_DIR),target)/release/click

bench:
ifdef FIGURES
	@$(LAB) figures $(filter-out all,$(FIGURES))
else
	cargo build --release -p click-run --bin click
	@$(BENCH) --work .state/bench --click $(CLICK) $(addprefix --engine ,$(ENGINE)) $(if $(ONLY),--only $(ONLY)) $(if $(RUNS),--runs $(RUNS))
endif

build:
	@$(LAB) prepare

click:
	@$(LAB) click

image:
	@$(LAB) image $(if $(PROFILE),--profile $(PROFILE)) $(if $(CONFIG),--config $(CONFIG))

csars:
	@$(LAB) csars

packages:
	@$(LAB) packages

release:
	@$(LAB) release

docs:
	@$(LAB) docs

lab:
	@$(LAB) xen lab

soak:
	@RUNS=$(RUNS) FAULTS='$(FAULTS)' PYTHONPATH=$(CURDIR)/devstack/lab $(PYTHON) -m clickos_lab.suites.soak $(PARTS)

lab-up:
	@$(SETTINGS) $(LAB) up $(if $(HOST),--host $(HOST))

lab-down:
	@$(LAB) down

clean-demo:
	@$(LAB) clean
