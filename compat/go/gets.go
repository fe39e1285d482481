package main

import (
	"time"

	"github.com/tsuna/gohbase/hrpc"
)

// gets: the results of Gets of rows with versions, families and times.
func gets(s *session) {
	b := bed{s, s.table("main", "5", []string{"f", "g"}, "m")}
	topic("versions")
	for version := uint64(1); version <= 7; version++ {
		must(b.put("r", values("f:q=v"+string(rune('0'+version))), at(version*10)))
	}
	must(b.put("r", values("f:p=p", "g:x=x", "g:=empty qualifier"), at(15)))
	b.seeGet("newest", "r")
	b.seeGet("two versions", "r", hrpc.MaxVersions(2))
	b.seeGet("all versions", "r", hrpc.MaxVersions(allVersions))
	b.seeGet("a row that is not there", "nosuch")
	b.seeGet("the other region", "z")
	topic("columns")
	b.seeGet("a family", "r", columns("g"))
	b.seeGet("a column", "r", columns("f:q"))
	b.seeGet("columns of both", "r", columns("f:p", "g:x"))
	b.seeGet("the empty qualifier", "r", columns("g:"))
	b.seeGet("a column that is not there", "r", columns("f:nosuch"))
	b.seeGet("a family that is not there", "r", columns("nosuch"))
	topic("times")
	b.seeGet("a range", "r", hrpc.TimeRangeUint64(20, 40), hrpc.MaxVersions(allVersions))
	b.seeGet("a range of one", "r", hrpc.TimeRangeUint64(30, 31))
	b.seeGet("a range of none", "r", hrpc.TimeRangeUint64(31, 32))
	b.seeGet("a range of times", "r", hrpc.TimeRange(time.Unix(0, 20_000_000), time.Unix(0, 50_000_000)))
	b.seeGet("swapped", "r", hrpc.TimeRangeUint64(40, 20))
	topic("limits within a row")
	b.seeGet("one of a family", "r", hrpc.MaxResultsPerColumnFamily(1))
	b.seeGet("offset", "r", hrpc.ResultOffset(1), hrpc.MaxVersions(allVersions))
	b.seeGet("offset and limit", "r", hrpc.ResultOffset(1), hrpc.MaxResultsPerColumnFamily(2), hrpc.MaxVersions(allVersions))
	b.seeGet("without the cache", "r", hrpc.CacheBlocks(false))
	b.seeGet("without a batch", "r", hrpc.SkipBatch())
	topic("existence")
	for _, row := range []string{"r", "nosuch"} {
		answer, err := b.exists(row)
		see(row, answer, err)
	}
	answer, err := b.exists("r", columns("f:nosuch"))
	see("of a column", answer, err)
	topic("refused")
	other := bed{s, s.name("nosuch")}
	other.seeGet("a table that is not there", "r")
	_, err = b.get("")
	refused("an empty row", err)
	must(s.disable(b.table))
	must(s.enable(b.table))
	b.seeGet("after the table was away", "r")
}
