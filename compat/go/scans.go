package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/tsuna/gohbase/hrpc"
)

// scans: bounds, batches, order, columns, times; over regions; of rows too large for one response.
func scans(s *session) {
	b := bed{s, s.table("main", "3", []string{"f", "g"}, "r20", "r40")}
	b.fill()
	bounds(b)
	pieces(b)
	choices(b)
	large(b)
	refusedScans(b)
}

func bounds(b bed) {
	topic("bounds")
	b.seeScan("everything", "", "")
	b.seeScan("from a row", "r57", "")
	b.seeScan("before a row", "", "r02")
	b.seeScan("between", "r18", "r22")
	b.seeScan("from between two rows", "r05x", "r07x")
	b.seeScan("start is stop", "r07", "r07")
	b.seeScan("start after stop", "r30", "r10")
	b.seeScan("after all", "s", "")
	b.seeScan("reversed", "", "", hrpc.Reversed())
	b.seeScan("reversed between", "r22", "r18", hrpc.Reversed())
	b.seeScan("reversed from between two rows", "r05x", "r03x", hrpc.Reversed())
	b.seeScan("reversed to the front", "r02", "", hrpc.Reversed())
}

func pieces(b bed) {
	topic("pieces")
	for _, rows := range []uint32{1, 7, 20, 1000} {
		b.seeScan(fmt.Sprint("rows a call ", rows), "", "", hrpc.NumberOfRows(rows))
		b.seeScan(fmt.Sprint("reversed, rows a call ", rows), "", "", hrpc.NumberOfRows(rows), hrpc.Reversed())
	}
	for _, bytes := range []uint64{1, 100, 2000} {
		b.seeScan(fmt.Sprint("bytes a call ", bytes), "r10", "r30", hrpc.MaxResultSize(bytes))
	}
	b.seeScan("one cell of a family", "r10", "r13", hrpc.MaxResultsPerColumnFamily(1))
	b.seeScan("offset within a family", "r10", "r13", hrpc.ResultOffset(1))
	b.seeScan("partial results", "r10", "r14", hrpc.AllowPartialResults(), hrpc.MaxResultSize(1))
	b.seeScan("closed after the first call", "r10", "r30", hrpc.CloseScanner(), hrpc.NumberOfRows(5))
	b.seeScan("without the cache", "r10", "r12", hrpc.CacheBlocks(false))
	closedEarly(b)
}

// closedEarly reads three rows and closes the scanner; what follows is up to the library.
func closedEarly(b bed) {
	ctx, done := within()
	defer done()
	call, err := hrpc.NewScanStr(ctx, b.table, hrpc.NumberOfRows(2))
	must(err)
	scanner := b.client.Scan(call)
	var results []*hrpc.Result
	for range []int{0, 1, 2} {
		next, err := scanner.Next()
		must(err)
		results = append(results, next)
	}
	does("close early", scanner.Close())
	see("what was read", list(results), nil)
	for {
		if _, err = scanner.Next(); err != nil {
			break
		}
	}
	see("next after that", fmt.Sprint(err == io.EOF), nil)
}

func choices(b bed) {
	topic("columns, versions, times")
	all := hrpc.MaxVersions(allVersions)
	b.seeScan("a family", "r10", "r14", columns("g"))
	b.seeScan("a column", "", "", columns("f:only"))
	b.seeScan("columns of two families", "r10", "r14", columns("f:b", "g:x"))
	b.seeScan("a family that is not there", "r10", "r14", columns("nosuch"))
	b.seeScan("all versions", "r10", "r12", all)
	b.seeScan("two versions, reversed", "r12", "r10", hrpc.MaxVersions(2), hrpc.Reversed())
	b.seeScan("a range of times", "r10", "r12", hrpc.TimeRangeUint64(10, 16), all)
	b.seeScan("a range of none", "r10", "r12", hrpc.TimeRangeUint64(1, 2), all)
}

func large(b bed) {
	topic("rows larger than an answer")
	for at := 0; at < 6; at++ {
		for column := 0; column < 4; column++ {
			cell := fmt.Sprintf("f:c%d=%s", column, strings.Repeat(string(rune('a'+at)), 300_000))
			must(b.put(fmt.Sprintf("w%d", at), values(cell), hrpc.TimestampUint64(5)))
		}
	}
	b.seeScan("all of them", "w", "x")
	b.seeScan("reversed", "x", "w", hrpc.Reversed())
	b.seeScan("in small pieces", "w", "x", hrpc.MaxResultSize(500_000))
	// HBase ends a response early when it switches its read mode, so the boundaries of pieces are not
	// guaranteed.
	pieces, err := b.results("w", "w2", hrpc.MaxResultSize(500_000), hrpc.AllowPartialResults())
	var all []*hrpc.Cell
	for _, piece := range pieces {
		all = append(all, piece.Cells...)
	}
	see("partial", fmt.Sprint(len(pieces) > 2, " ", cells(all)), err)
}

func refusedScans(b bed) {
	topic("refused")
	bed{b.session, b.name("nosuch")}.seeScan("a table that is not there", "", "")
	ctx, done := within()
	defer done()
	call, err := hrpc.NewScanStr(ctx, b.table, hrpc.ScannerID(123456789))
	must(err)
	_, err = b.client.Scan(call).Next()
	does("a scanner that is not there", err)
}
