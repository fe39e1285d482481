# The doors of the project. Each fetches what it needs through the ordinary package managers.
#
#   make run     build and serve on loopback, data in ./grampus-data
#   make optimized  build as for users of a release: a minute of load tells the compiler what is common (some 15 minutes);
#                the binary is target/optimized/grampus
#   make test    everything that must hold at every commit (what CI runs)
#   make check   test, and format, lints, docs, licences, a short run of every fuzz target
#   make compare processor time and throughput beside real HBase, on this machine (hours; ARGS=--quick for a first look)
#   make compat  stock Java clients against Grampus and against HBase itself, answers compared

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
	cargo build --release --locked --package limits
	bench/compare/compare --grampus target/optimized/grampus $(ARGS)

compat: toolchain
	compat/run --against-hbase

toolchain:
	@command -v cargo >/dev/null || { echo "Rust is missing. Install it with:  curl -sSf https://sh.rustup.rs | sh"; exit 1; }
	@command -v cc >/dev/null || { echo "A C compiler is missing. Install it with:  apt-get install gcc libc6-dev"; exit 1; }
