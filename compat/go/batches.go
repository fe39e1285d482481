package main

import (
	"fmt"
	"sync"

	"github.com/tsuna/gohbase"
	"github.com/tsuna/gohbase/hrpc"
)

// batches: the library combines concurrent requests into one Multi; some of them fail.
func batches(s *session) {
	s.client.Close()
	s.client = gohbase.NewClient(s.quorum, gohbase.RpcQueueSize(50))
	b := bed{s, s.table("main", "3", []string{"f", "g"}, "r020", "r040", "r060")}
	topic("many puts at once")
	b.parallel(100, func(at int) (string, error) {
		return "ok", b.put(row(at), values(fmt.Sprintf("f:q=%d", at), fmt.Sprintf("g:q=%d", at*at)), hrpc.TimestampUint64(5))
	})
	b.seeScan("the rows", "", "")
	topic("gets of all kinds at once")
	b.parallel(40, func(at int) (string, error) {
		switch at % 4 {
		case 0:
			return b.get(row(at))
		case 1:
			return b.get("nosuch" + row(at))
		case 2:
			return b.get(row(at), columns("g"))
		default:
			return b.exists(row(at))
		}
	})
	topic("everything at once")
	b.parallel(60, func(at int) (string, error) {
		switch at % 6 {
		case 0:
			return "put", b.put(row(at), values("f:new=1"), hrpc.TimestampUint64(6))
		case 1:
			return "delete", b.delete(row(at), nil, hrpc.TimestampUint64(9))
		case 2:
			return b.add(row(at), "f", "n", int64(at))
		case 3:
			return "append", func() error { _, err := b.append(row(at), values("f:t=x")); return err }()
		case 4:
			return "bad put", b.put(row(at), values("nosuch:q=1"))
		default:
			return b.get(row(at), columns("nosuch"))
		}
	})
	b.seeScan("rows and columns then", "", "", columns("f:new", "f:q"))
	topic("without batches")
	b.parallel(20, func(at int) (string, error) {
		return b.get(row(at), hrpc.SkipBatch())
	})
}

func row(at int) string {
	return fmt.Sprintf("r%03d", at)
}

// parallel sends count requests concurrently and records the results in the order of their numbers.
func (b bed) parallel(count int, question func(int) (string, error)) {
	answers := make([]string, count)
	errors := make([]error, count)
	var wait sync.WaitGroup
	for at := 0; at < count; at++ {
		wait.Add(1)
		go func(at int) {
			defer wait.Done()
			answers[at], errors[at] = question(at)
		}(at)
	}
	wait.Wait()
	for at := range answers {
		see(fmt.Sprint(at), answers[at], errors[at])
	}
}
