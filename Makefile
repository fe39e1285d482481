# Entry points of the project. Each fetches what it needs through the ordinary package managers.
#
#   make run        build and run the server on loopback, with data in ./grampus-data
#   make optimized  profile-guided (PGO) build with a one-minute training load, as released; takes
#                   about 15 minutes; the binary is target/optimized/grampus
#   make test       everything that must hold at every commit (what CI runs)
#   make check      make test, and format, lints, docs, licences and a short run of each fuzz target
#   make compare    CPU time and throughput compared with HBase on this machine (hours; for a first
#                   impression: ARGS=--quick)
#   make compat     stock Java clients against Grampus and HBase, responses compared

ARGS ?=

.PHONY: run optimized test check compare compat toolchain

run: toolchain
	cargo run --release --locked --package server -- $(ARGS)

optimized: toolchain
	cargo xtask optimized

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
