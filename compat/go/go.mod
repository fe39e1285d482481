module compat

go 1.13

require (
	github.com/sirupsen/logrus v1.5.0
	github.com/tsuna/gohbase v0.0.0-20201125011725-348991136365
)
