# Entry points of the project. Each fetches what it needs through the ordinary package managers.
#
#   make run        build and run the server on loopback, with data in ./grampus-data
#   make optimized  profile-guided (PGO) build with a one-minute training load, as released; takes
#                   about 15 minutes; the binary is target/optimized/grampus
#   make build      the two binaries as released: make optimized, and grampus-sql
#   make install    installs the built binaries, man pages, completions and systemd units below
#                   PREFIX (/usr/local); make uninstall removes them and keeps data
#   make deb        the Debian package with all of it: target/package/grampus_VERSION_ARCH.deb
#   make static     binaries that need no libraries: target/static/grampus, target/static/grampus-sql
#   make image      the container image
#   make test       everything that must hold at every commit (what CI runs)
#   make check      make test, and format, lints, docs, licences and a short run of each fuzz target
#   make compare    CPU time and throughput compared with HBase on this machine (hours; for a first
#                   impression: ARGS=--quick)
#   make compat     stock Java clients against Grampus and HBase, responses compared

ARGS ?=
PREFIX ?= /usr/local
# The binaries to install or package; without them, make deb builds the released ones.
GRAMPUS ?= target/optimized/grampus
SQL ?= target/sql/release/grampus-sql
# Options of deploy/package.
PACKAGE ?=
DEPLOY = --prefix $(PREFIX) $(if $(DESTDIR),--destdir $(DESTDIR))

.PHONY: run optimized build install uninstall deb static image test check compare compat toolchain

run: toolchain
	cargo run --release --locked --package server -- $(ARGS)

optimized: toolchain
	cargo xtask optimized

build: toolchain
	cargo xtask optimized
	cargo build --release --locked --manifest-path sql/Cargo.toml --target-dir target/sql

# Builds nothing, because it often runs as root.
install:
	deploy/install $(DEPLOY) $(GRAMPUS) $(SQL)

uninstall:
	deploy/install $(DEPLOY) --uninstall

deb: $(if $(filter file,$(origin GRAMPUS)),build)
	deploy/package $(PACKAGE) $(GRAMPUS) $(SQL)

static: toolchain
	cargo xtask static

image:
	docker build -f deploy/Dockerfile -t grampus .

test: toolchain
	cargo xtask test

check: toolchain
	cargo xtask check

compare: optimized
	cargo build --release --locked --package limits --package records
	bench/compare/compare --grampus target/optimized/grampus $(ARGS)

compat: toolchain
	compat/run --against-hbase

toolchain:
	@command -v cargo >/dev/null || { echo "Rust is missing. Install it with:  curl -sSf https://sh.rustup.rs | sh"; exit 1; }
	@command -v cc >/dev/null || { echo "A C compiler is missing. Install it with:  apt-get install gcc libc6-dev"; exit 1; }
