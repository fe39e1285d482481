package main

import (
	"fmt"
	"strings"

	"github.com/tsuna/gohbase"
	"github.com/tsuna/gohbase/hrpc"
)

// compressed: cell blocks in snappy, in both directions, small and large, single and in batches.
func compressed(s *session) {
	s.client.Close()
	s.client = gohbase.NewClient(s.quorum, gohbase.CompressionCodec("snappy"), gohbase.RpcQueueSize(50),
		gohbase.EffectiveUser("tester"))
	b := bed{s, s.table("main", "3", []string{"f", "g"}, "r20", "r40")}
	topic("with snappy")
	b.fill()
	b.seeGet("a row", "r30", hrpc.MaxVersions(allVersions))
	b.seeGet("no row", "nosuch")
	b.seeScan("all", "", "")
	b.seeScan("in pieces, reversed", "", "", hrpc.Reversed(), hrpc.NumberOfRows(7))
	for _, length := range []int{0, 1, 1000, 300_000, 3_000_000} {
		name := fmt.Sprint("long", length)
		does(name, b.put(name, values("f:q="+strings.Repeat("0123456789", length/10)), at(1)))
		b.seeGet("the row", name)
	}
	topic("at once")
	b.parallel(50, func(at int) (string, error) {
		return "ok", b.put(row(at), values("f:many="+strings.Repeat(row(at), 200)), hrpc.TimestampUint64(7))
	})
	b.parallel(50, func(at int) (string, error) {
		return b.get(row(at))
	})
	answer, err := b.add("n", "f", "n", 7)
	see("increment", answer, err)
	answer, err = b.append("n", values("f:t=text"))
	see("append", answer, err)
	answer, err = b.checkAndPut("n", "f", "t", []byte("text"), values("f:u=1"))
	see("conditional put", answer, err)
}
