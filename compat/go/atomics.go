package main

import (
	"fmt"
	"sync"

	"github.com/tsuna/gohbase/hrpc"
)

// atomics: increments, appends and conditional puts.
func atomics(s *session) {
	b := bed{s, s.table("main", "3", []string{"f", "g"})}
	increments(b)
	appends(b)
	conditions(b)
	together(b)
}

func (b bed) increment(row string, cells map[string]map[string][]byte, options ...option) (string, error) {
	ctx, done := within()
	defer done()
	call, err := hrpc.NewIncStr(ctx, b.table, row, cells, options...)
	if err != nil {
		return "", err
	}
	// The library expects a single cell in the response, and treats several as an error.
	answer, err := b.client.Increment(call)
	return fmt.Sprint(answer), err
}

func (b bed) add(row, family, qualifier string, amount int64, options ...option) (string, error) {
	ctx, done := within()
	defer done()
	call, err := hrpc.NewIncStrSingle(ctx, b.table, row, family, qualifier, amount, options...)
	if err != nil {
		return "", err
	}
	answer, err := b.client.Increment(call)
	return fmt.Sprint(answer), err
}

func (b bed) append(row string, cells map[string]map[string][]byte, options ...option) (string, error) {
	ctx, done := within()
	defer done()
	call, err := hrpc.NewAppStr(ctx, b.table, row, cells, options...)
	if err != nil {
		return "", err
	}
	answer, err := b.client.Append(call)
	return result(answer), err
}

func increments(b bed) {
	topic("increments")
	for _, amount := range []int64{5, 0, -7, 1 << 40} {
		answer, err := b.add("i", "f", "n", amount)
		see(fmt.Sprint("by ", amount), answer, err)
	}
	b.seeGet("the row", "i")
	answer, err := b.add("i", "f", "n", 9223372036854775807)
	see("over the end", answer, err)
	answer, err = b.increment("two", values("f:a=\x00\x00\x00\x00\x00\x00\x00\x01", "g:b=\x00\x00\x00\x00\x00\x00\x00\x02"))
	see("of two columns", answer, err)
	b.seeGet("the row", "two")
	answer, err = b.increment("short", values("f:a=\x01"))
	see("by less than eight bytes", answer, err)
	must(b.put("text", values("f:n=no number"), at(5)))
	answer, err = b.add("text", "f", "n", 1)
	see("of what is no number", answer, err)
	answer, err = b.add("i", "nosuch", "n", 1)
	see("of a family that is not there", answer, err)
	_, err = b.add("", "f", "n", 1)
	refused("of an empty row", err)
	must(b.put("future", values("f:n=\x00\x00\x00\x00\x00\x00\x00\x09"), at(9_000_000_000_000)))
	answer, err = b.add("future", "f", "n", 1)
	see("of a cell from the future", answer, err)
	b.seeGet("the row", "future")
	answer, err = b.add("skipped", "f", "n", 3, hrpc.Durability(hrpc.SkipWal))
	see("without the log", answer, err)
}

func appends(b bed) {
	topic("appends")
	for _, more := range []string{"one", "", " two"} {
		answer, err := b.append("a", values("f:t="+more))
		see("of '"+more+"'", answer, err)
	}
	answer, err := b.append("a", values("f:t=3", "f:u=4", "g:v=5"))
	see("to three columns", answer, err)
	b.seeGet("the row", "a")
	answer, err = b.append("a", values("nosuch:t=3"))
	see("to a family that is not there", answer, err)
	_, err = b.append("", values("f:t=3"))
	refused("to an empty row", err)
}

func (b bed) checkAndPut(row, family, qualifier string, expected []byte, cells map[string]map[string][]byte) (string, error) {
	ctx, done := within()
	defer done()
	call, err := hrpc.NewPutStr(ctx, b.table, row, cells, at(50))
	if err != nil {
		return "", err
	}
	answer, err := b.client.CheckAndPut(call, family, qualifier, expected)
	return fmt.Sprint(answer), err
}

func conditions(b bed) {
	topic("conditional puts")
	must(b.put("c", values("f:q=old"), at(10)))
	for _, step := range []struct {
		name, qualifier string
		expected        []byte
	}{
		{"another value", "q", []byte("other")},
		{"the value", "q", []byte("old")},
		{"nothing where something is", "q", nil},
		{"nothing where nothing is", "nosuch", nil},
		{"the empty value where nothing is", "nosuch", []byte{}},
		{"something where nothing is", "nosuch", []byte("x")},
	} {
		answer, err := b.checkAndPut("c", "f", step.qualifier, step.expected, values("g:"+step.name+"=done"))
		see(step.name, answer, err)
	}
	b.seeGet("the row", "c")
	answer, err := b.checkAndPut("c", "nosuch", "q", nil, values("f:x=1"))
	see("of a family that is not there", answer, err)
	answer, err = b.checkAndPut("c", "f", "q", []byte("old"), values("nosuch:x=1"))
	see("puts to a family that is not there", answer, err)
	answer, err = b.checkAndPut("", "f", "q", nil, values("f:x=1"))
	see("of an empty row", answer, err)
}

func together(b bed) {
	topic("many at once")
	var wait sync.WaitGroup
	for worker := 0; worker < 20; worker++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for i := 0; i < 25; i++ {
				if answer, err := b.add("shared", "f", "n", 1); err != nil {
					see("increment", answer, err)
				}
			}
		}()
	}
	wait.Wait()
	b.seeGet("500 increments of one cell", "shared")
	wins := make(chan bool, 20)
	for worker := 0; worker < 20; worker++ {
		wait.Add(1)
		go func(worker int) {
			defer wait.Done()
			answer, err := b.checkAndPut("race", "f", "q", nil, values("f:q=taken"))
			wins <- err == nil && answer == "true"
		}(worker)
	}
	wait.Wait()
	close(wins)
	won := 0
	for win := range wins {
		if win {
			won++
		}
	}
	see("winners of a race", fmt.Sprint(won), nil)
}
